r"""Calls of `einsum` in code, checked against the shapes that the text gives their operands. No code is run.

`torch.einsum("bd,hdq->bhq", x, W_q)` with "`W_q` has shape `[h, d, q]`" near by is a claim about shapes. A call with an
operand whose shape nothing says is left alone; another shape of a name is a claim of its own, at the line that says so.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from likewise.reading.segments import Turn

CALL = re.compile(
    r"einsum\(\s*f?[\"'“”](?P<letters>[A-Za-z, ]+->\s*[A-Za-z]*|[A-Za-z, ]+\\rightarrow\s*[A-Za-z]*)[\"'“”]\s*,"
    r"\s*(?P<operands>[A-Za-z_][\w.]*(?:\s*,\s*[A-Za-z_][\w.]*)*)\s*\)"
)
SHAPE = re.compile(
    r"(?P<name>[A-Za-z]\w*|[A-Za-z]_\{\w+\})[`$*]{0,3}\s*"
    r"(?:has (?:the )?shape|is of shape|of shape|with shape|shape:|:)\s*[`$*]{0,3}\s*"
    r"[\[(](?P<axes>\s*[a-z]\w*(?:\s*,\s*[a-z]\w*)+\s*)[\])]"
)
NEAR = 12  # lines from a call to the shapes that belong to it
FAR = 60  # lines within which another shape of the same name contradicts it


@dataclass(frozen=True)
class Found:
    """A call or a stated shape, as a claim, with the lines that say the shapes."""

    line: int
    column: int
    source: str
    claim: str
    shapes: tuple[tuple[str, str, int], ...]  # name, axes, line
    turn: int


def einsums(text: str, turns: Sequence[Turn]) -> list[Found]:
    r"""All calls whose operands have shapes.

    >>> found = einsums('`W` has shape `[d, k]` and `x: [b, d]`, so `einsum("bd,kd->bk", x, W)`.', ())
    >>> print(found[0].claim)
    given: x[b, d], W[d, k]
    assert: einsum("bd,kd->bk", x, W) has shape [b, k]
    """
    lines = text.split("\n")
    shapes: list[tuple[int, int, str, tuple[str, ...], int, str]] = []
    calls: list[tuple[int, int, str, str, list[str], int]] = []
    for number, line in enumerate(lines, start=1):
        turn = next((place for place, each in enumerate(turns) if each.first <= number <= each.last), 0)
        if turns and turns[turn].speaker in ("annotator", "user"):
            continue
        if "einsum" in line:
            for match in CALL.finditer(line):
                letters = re.sub(r"\s|\\rightarrow", lambda each: "->" if len(each[0]) > 1 else "", match["letters"])
                operands = [each.strip().rpartition(".")[2] for each in match["operands"].split(",")]
                if letters.partition("->")[0].count(",") == len(operands) - 1:
                    calls.append((number, match.start() + 1, match[0], letters, operands, turn))
        for match in SHAPE.finditer(line):
            name = match["name"].replace("{", "").replace("}", "")
            axes = tuple(each.strip() for each in match["axes"].split(","))
            shapes.append((number, match.start() + 1, name, axes, turn, match[0]))
    found = []
    for number, column, source, letters, operands, turn in calls:
        said: dict[str, tuple[tuple[str, ...], int]] = {}
        for name in operands:
            near = [each for each in shapes if each[2] == name and each[4] == turn and abs(each[0] - number) <= NEAR]
            if near:  # the one that the letters of the call repeat, else the nearest
                axes = tuple(letters.partition("->")[0].split(",")[operands.index(name)])
                own = min(near, key=lambda each: (each[3] != axes, abs(each[0] - number)))
                said[name] = (own[3], own[0])
        if set(said) != set(operands) or len(set(operands)) != len(operands):
            continue
        found.append(_made(number, column, source, letters, operands, said, turn))
        for line, place, name, axes, its_turn, words in shapes:  # another shape of the same name
            if name in said and its_turn == turn and abs(line - number) <= FAR and axes != said[name][0]:
                found.append(_made(line, place, words, letters, operands, {**said, name: (axes, line)}, turn))
    return found


def _made(
    line: int,
    column: int,
    source: str,
    letters: str,
    operands: list[str],
    said: dict[str, tuple[tuple[str, ...], int]],
    turn: int,
) -> Found:
    given = ", ".join(f"{_safe(name)}[{', '.join(said[name][0])}]" for name in operands)
    right = ", ".join(letters.partition("->")[2])
    call = f'einsum("{letters}", {", ".join(map(_safe, operands))})'
    shapes = tuple((name, f"[{', '.join(axes)}]", where) for name, (axes, where) in said.items())
    return Found(line, column, source, f"given: {given}\nassert: {call} has shape [{right}]", shapes, turn)


def _safe(name: str) -> str:
    return f"{name}_" if name in ("E", "P", "O", "I", "R", "N", "Z", "U") else name
