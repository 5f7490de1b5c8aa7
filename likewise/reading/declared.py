"""What a declaration says: the names before it, a space, an interval, a set or a law."""

from collections.abc import Sequence

from likewise.reading.expressions import Node, Parser, value
from likewise.reading.latex import Token, Unread


def names_of(side: Sequence[Token]) -> list[str] | None:
    """q, k or w_i before a declaring relation."""
    found: list[str] = []
    try:
        for part in split_commas(side):
            if [token.kind for token in part] == ["dots"]:  # x_1, ..., x_n
                continue
            node = Parser(part).side()
            if node.kind == "index":
                node = node.parts[0]
            if node.kind != "name":
                return None
            found.append(node.text)
    except Unread:
        return None
    return found


def split_commas(side: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    for token in side:
        if token.kind == "sign" and token.text == ",":
            parts.append([])
        else:
            parts[-1].append(token)
    return [part for part in parts if part]


def space(side: Sequence[Token]) -> tuple[str, ...] | None:
    r"""The sizes of `\mathbb{R}^{N \times D}`; () for the numbers."""
    side = [token for token in side if not (token.kind == "sign" and token.text in (".", ","))]
    if not side or side[0].text != "R":
        return None
    if len(side) == 1 or (side[2:3] and side[2].text == "+"):
        return ()
    if side[1].text != "^" or len(side) != 3:
        return None
    inner = list(side[2].inner[0]) if side[2].kind == "group" else [side[2]]
    if [token.text for token in inner] == ["+"]:
        return ()
    dims = []
    part: list[Token] = []
    for token in [*inner, Token("sign", "×")]:
        if token.kind == "sign" and token.text == "×":
            try:
                node = Parser(part).side()
            except Unread:
                return None
            if node.kind not in ("name", "number"):
                return None
            dims.append(node.text)
            part = []
        else:
            part.append(token)
    return tuple(dims)


def interval_of(side: Sequence[Token]) -> str:
    """`in [0, 1]` or `in (0, 1)` for an interval between two numbers, `in {0, 1}` for a set of a few."""
    if len(side) == 1 and side[0].kind == "group" and side[0].text == "[":
        side = [Token("sign", "["), *side[0].inner[0], Token("sign", "]")]
    ends = "".join(token.text for token in (side[0], side[-1])) if len(side) > 2 else ""
    if ends not in ("[]", "()", "{}"):
        return ""
    try:
        bounds = [value(Parser(part).side()) for part in split_commas(side[1:-1])]
    except Unread:
        return ""
    if ends == "{}":
        plain = bounds and None not in bounds and len(bounds) <= 6
        return f"in {{{', '.join(map(str, bounds))}}}" if plain else ""
    return f"in {ends[0]}{bounds[0]}, {bounds[1]}{ends[1]}" if len(bounds) == 2 and None not in bounds else ""


LAWS = {"U": "U", "Uniform": "U", "Unif": "U", "Bernoulli": "Bernoulli", "Bern": "Bernoulli", "Exp": "Exp"}


def other_law(side: Sequence[Token]) -> Node | None:
    """`U(-a, a)`, `Bernoulli(p)` or `Exp(r)` as a call, if a side is one."""
    if len(side) < 4 or side[0].text.strip() not in LAWS or side[1].text not in ("(", "["):
        return None
    name = LAWS[side[0].text.strip()]
    inside = list(side[1].inner[0]) if side[1].kind == "group" else list(side[2:-1])
    if side[1].kind != "group" and side[-1].text not in (")", "]"):
        return None
    try:
        parts = tuple(Parser(part).side() for part in split_commas(inside))
    except Unread:
        return None
    return Node("call", parts, name) if len(parts) == (2 if name == "U" else 1) else None
