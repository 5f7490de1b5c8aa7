"""Tokens of an answer before they are parsed: groups opened, units joined, words refused, cuts at commas and words."""

import re
from collections.abc import Sequence

from likewise.grading.units import UNITS
from likewise.reading.expressions import Node, number
from likewise.reading.latex import Token, Unread

VOWELS = {*"aeiou"}
SMALL_WORDS = {
    "not", "but", "are", "was", "has", "the", "nor", "yet", "all", "any", "for", "can", "may", "its", "too", "out",
    "off", "is", "no", "if", "so", "we", "of", "as", "to", "by",
}  # fmt: skip
OPENING, CLOSING = {"(": ")", "[": "]", "{": "}"}, {")", "]", "}"}
COUNTED = re.compile(r"[kMGTP]?(?:FLOPs?|(?:half)?MACs?)")


def flattened(found: Sequence[Token]) -> list[Token]:
    """Optional-argument groups as brackets, boxes opened."""
    made: list[Token] = []
    for token in found:
        if token.kind == "group" and token.text == "[":
            made += [Token("sign", "[", spaced=token.spaced), *flattened(token.inner[0]), Token("sign", "]")]
        elif token.kind == "boxed":
            made += flattened(token.inner[0])
        elif (token.kind == "row" and token.text in ("begin", "end")) or token.kind == "gap":
            continue
        else:
            made.append(token)
    return made


def with_units(found: list[Token]) -> list[Token]:
    """Letters that spell a unit of at least two letters at the end, after a number, as one word: 5 km."""
    end = len(found)
    while end and found[end - 1].kind == "name" and found[end - 1].style == "" and len(found[end - 1].text) == 1:
        end -= 1
        if found[end].spaced:  # 2 B T H d is a product
            break
    spelled = "".join(token.text for token in found[end:])
    numbered = end and (found[end - 1].kind == "number" or found[end - 1].text == "frac" or COUNTED.fullmatch(spelled))
    if numbered and len(spelled) > 1 and found[end].spaced and (spelled in UNITS or len(spelled) > 3):
        return [*found[:end], Token("word", f" {spelled}", spaced=True)]
    return found


def refuse_words(found: Sequence[Token]) -> None:
    """Refuse letters that spell a word: 42 is not, more than 42."""
    run = ""
    for place, token in enumerate([*found, Token("row", "")]):
        letter = token.kind == "name" and len(token.text) == 1 and token.text.islower() and not token.style
        if letter and not (run and token.spaced):
            run += token.text
            continue
        ends = token.spaced or place == len(found)
        if (len(run) > 3 and set(run) & VOWELS) or (run in SMALL_WORDS and ends):
            raise Unread(f"the word {run}")
        run = token.text if letter else ""


def depth_step(token: Token) -> int:
    """How a token changes the depth of brackets."""
    if token.kind != "sign":
        return 0
    return (token.text in OPENING or token.text == "⟨") - (token.text in CLOSING or token.text == "⟩")


def cut_at_words(parts: list[list[Token]], separators: set[str]) -> list[list[Token]]:
    """Parts cut again at the letters o, r or a, n, d with spaces around: x = 1 or x = 2; 1, 2, and 3."""
    made: list[list[Token]] = []
    for part in parts:
        start = place = 0
        while place < len(part):
            for word in ("or", "and"):
                run = part[place : place + len(word)]
                if (
                    "".join(each.text for each in run if each.kind == "name") == word
                    and run[0].spaced
                    and not any(each.spaced for each in run[1:])
                    and place + len(word) < len(part)
                    and (place > start or (made and not place))
                ):
                    if place > start:
                        made.append(part[start:place])
                    separators.add(word)
                    start = place = place + len(word)
                    break
            else:
                place += 1
        made.append(part[start:])
    return made


def cut_at_commas(found: Sequence[Token]) -> list[list[Token]]:
    parts: list[list[Token]] = [[]]
    depth = 0
    for token in found:
        depth += depth_step(token)
        if token.kind == "sign" and token.text in (",", ";") and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    if not all(parts):
        raise Unread("a comma without an expression beside it")
    return parts


def shown_token(token: Token) -> str:
    """A token as text, for messages."""
    return {"other": token.text, "macro": f"\\{token.text}"}.get(token.kind, token.text or token.kind)


def in_base(digits: str, base: str) -> Node:
    """The value of 1011_2."""
    try:
        return number(str(int(digits, int(base))))
    except ValueError:
        raise Unread("a number with an index that is no base") from None


def word_name(text: str) -> str:
    """A word as a part of a name."""
    return re.sub(r"\W+", "_", text.replace("\\", "").strip()).strip("_")
