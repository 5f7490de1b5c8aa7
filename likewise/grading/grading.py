"""One answer against one key."""

import contextlib
import re
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from likewise.checks import require, require_number
from likewise.grading.comparing import compared
from likewise.grading.conditions import rows_as_columns
from likewise.grading.final import DENIED, Final, final_answer
from likewise.grading.given import conventions_of, given_of, name_of, renamed
from likewise.grading.outcomes import EQUAL, Outcome, World, depends, different, undecided
from likewise.grading.parsing import readings
from likewise.grading.showing import shown
from likewise.grading.sizes import replaced
from likewise.grading.spelling import cleaned, spelled_number
from likewise.grading.splitting import VOWELS
from likewise.grading.stated import FLOP, PLAIN_LOG, in_conventions, stated_conventions
from likewise.grading.units import unit_of
from likewise.reading.expressions import Node
from likewise.reading.latex import Unread, tokens

SECONDS = 0.8  # of processor time for one answer, so that a verdict does not depend on the load
MOST_BOXES = 12
VERDICTS = ("equal", "different", "depends", "undecided")
EINSUM = re.compile(r"[\"'`\s]*([A-Za-z\s]*(?:,[A-Za-z\s]*)*)(?:->|\\to|\\rightarrow|→)([A-Za-z\s]*)[\"'`\s]*")
Einsum = list[tuple[str, ...]]  # the names of the indices of each operand, and of the result
CHOICE = re.compile(
    r"\s*(?:\\text\s*\{)?\s*(?:option|choice|answer)?\s*[(\[]?([A-J])[)\]]?\s*\}?\s*(?:[.:)]\s*(.*)|\s+is\s+(?:the\s+)?(?:correct|right|true)(?:\s+\w+)?\.?)?",
    re.I | re.S,
)
WITH_TEXT = re.compile(r"\s*(?:\\text\s*\{\s*)?(?:\(([A-Ja-j])\)|([A-J])[.:)])\s*\}?\s+(\S.*)", re.S)  # (B) 42
BOLD_CHOICE = re.compile(r"\\(?:text\w*|math\w+)\s*\{\s*(\(?[A-J]\)?[.:)]?)\s*\}(?:\\[ ,;]|\\q?quad|~|\s)*")
UNITED = re.compile(r"\$?(-?\d[\d.,]*(?:\s*\\(?:times|cdot)\s*10\^\{?-?\d+\}?)?)\s*([A-Za-z][A-Za-z0-9 /*^-]*)\$?")
DECIMAL_COMMA = re.compile(r"(-?\d+),(\d+)")
SPOKEN = {
    "yes", "no", "true", "false", "odd", "even", "none", "all", "never", "always", "both", "neither", "row", "column",
}  # fmt: skip
EXCLUSIVE = [  # of each of these only one word can be right
    {*words.split()}
    for words in (
        "yes no",
        "true false",
        "odd even neither",
        "none all",
        "never always",
        "increasing decreasing constant",
        "convergent divergent",
        "converges diverges",
        "convex concave",
        "row column",
        "linear quadratic cubic exponential logarithmic",
        "monday tuesday wednesday thursday friday saturday sunday",
        "january february march april may june july august september october november december",
        "north south east west northeast northwest southeast southwest",
        "left right",
        "clockwise counterclockwise",
        "positive negative zero",
        "larger smaller equal",
        "maximum minimum",
        "singular invertible",
    )
]
SENTENCE = re.compile(
    r"(?:(?:the|this)\s+(?:answer|statement|claim|assertion|function|series|sequence|result|matrix|direction|day|month)|it)"
    r"\s+is\s+(?:an?\s+|the\s+)?(\w+)",
    re.I,
)
SIGMA = re.compile(r"(?:\\sigma|σ|(?<![A-Za-z\\])sigma)(?![A-Za-z])")
SHAPE, LONGEST_SHAPE = re.compile(r"\bshape\b|\bSize\(", re.I), 300
FILLER = re.compile(r"\b(?:the|an?|it|is|are|that)\b")


@dataclass(frozen=True)
class Grade:
    """The result of grading one answer.

    verdict: equal, different (witness), depends (condition) or undecided (reason). reward: 1 if equal, 0 if
    different, what the caller set otherwise. read: both sides as they were read. reasons: how, in the order found.
    """

    verdict: str
    reward: float | None
    witness: str = ""
    condition: str = ""
    reason: str = ""
    reasons: tuple[str, ...] = ()
    read: tuple[str, str] = ("", "")
    seconds: float = field(default=0.0, compare=False)

    def to_json(self) -> dict[str, Any]:
        """The grade as plain data."""
        return {
            "schema": 1,
            "verdict": self.verdict,
            "reward": self.reward,
            "witness": self.witness,
            "condition": self.condition,
            "reason": self.reason,
            "reasons": list(self.reasons),
            "read": list(self.read),
            "seconds": self.seconds,
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "Grade":
        """The grade of `to_json`."""
        fields: dict[str, Any] = {name: data[name] for name in cls.__dataclass_fields__}
        fields["reasons"], fields["read"] = tuple(data["reasons"]), tuple(data["read"])
        return cls(**fields)


def grade(
    answer: str,
    key: str,
    given: str | None = None,
    conventions: Mapping[str, Any] | None = None,
    *,
    depends: float | None = None,
    undecided: float | None = None,
) -> Grade:
    r"""Compare the final answer of a text with a key.

    `equal` has a proof, `different` a witness. Agreement at points is never a proof.

    answer, key: Markdown or LaTeX; in both the final answer is looked for. given: what is known of names, such as
    `x > 0; A, B in R^(n, n); d = h*k`. conventions: see `likewise.grading.given.Conventions`. depends, undecided: the
    rewards for these verdicts; None unless set.

    >>> grade(r"So it is \boxed{\frac{2x}{4}}.", "x/2").verdict
    'equal'
    >>> grade("A^{-1}B^{-1}", "(AB)^{-1}").verdict, grade("O(ND^2)", "O(Nd^2)").condition
    ('different', 'if D = d')
    """
    require(isinstance(answer, str), "grade", "answer", "be a text", type(answer).__name__)
    require(isinstance(key, str), "grade", "key", "be a text", type(key).__name__)
    require(given is None or isinstance(given, str), "grade", "given", "be a text", type(given).__name__)
    for name, value in (("depends", depends), ("undecided", undecided)):
        if value is not None:
            require_number("grade", name, value, least=0.0)
            require(value <= 1, "grade", name, "be at most 1", value)
    start = time.monotonic()
    world = World(given_of(given), conventions_of(conventions), time.thread_time() + SECONDS)
    reasons: list[str] = []
    read = ["", ""]
    try:
        outcome = _graded(answer, key, world, reasons, read)
    except (Unread, RecursionError, OverflowError, MemoryError) as error:
        outcome = Outcome("undecided", str(error) if isinstance(error, Unread) else "too deeply nested, or too large")
    except Exception as error:  # a fault of ours must not end a training run of others
        outcome = Outcome("undecided", f"an error of the grader ({type(error).__name__}: {error})")
    reasons += list(dict.fromkeys(world.notes))
    if outcome.why:
        reasons.append(outcome.why)
    return Grade(
        verdict=outcome.verdict,
        reward=reward_of(outcome.verdict, depends, undecided),
        witness=outcome.why if outcome.verdict == "different" else "",
        condition=outcome.why if outcome.verdict == "depends" else "",
        reason=outcome.why if outcome.verdict == "undecided" else "",
        reasons=tuple(reasons),
        read=(read[0], read[1]),
        seconds=time.monotonic() - start,
    )


def reward_of(verdict: str, depends: float | None, undecided: float | None) -> float | None:
    """1 for equal, 0 for different, what the caller set otherwise."""
    return {"equal": 1.0, "different": 0.0, "depends": depends, "undecided": undecided}[verdict]


def _graded(answer: str, key: str, world: World, reasons: list[str], read: list[str]) -> Outcome:
    finals = []
    for name, text in (("answer", answer), ("key", key)):
        try:
            plain, base, flops = stated_conventions(text)
            found = final_answer(plain)
            if (base and not PLAIN_LOG.search(found.text)) or (flops and not FLOP.search(found.text)):
                base, flops, found = "", None, final_answer(text)  # it is not about the answer: 1011 (base 2)
        except Unread as error:
            raise Unread(f"the {name}: {error}") from error
        finals.append(_translated(found, base, flops))
        if finals[-1].how != "the whole text":
            reasons.append(f"the {name} was taken from {finals[-1].how}")
        if base or flops:
            said = [f"log to base {base}"] * bool(base) + [f"a multiply-add as {flops} FLOP"] * bool(flops)
            reasons.append(f"the {name} states {' and '.join(said)}")
    for final, other in (finals, finals[::-1]):
        if final.where[0]:
            world = _defined(final, other, world)
    if any(SHAPE.search(text[-LONGEST_SHAPE:]) for text in (answer, key)):
        world = replace(world, shape=True)
    outcome = _pair(finals[0].text, finals[1].text, world, read)
    for place, final in enumerate(finals):  # $\\boxed{125}$ miles
        if outcome.verdict != "equal" and final.unit:
            united = rf"{final.text} \text{{ {final.unit}}}"
            if _pair(united, finals[1 - place].text, world, ["", ""]).verdict == "equal":
                return EQUAL
    for place, final in enumerate(finals):  # other boxes that say something else
        if outcome.verdict != "equal" or not final.others:
            continue
        for other in final.others[-MOST_BOXES:]:
            again = _pair(other, finals[1 - place].text, world, ["", ""])
            if again.verdict != "equal":
                return depends(f"if {final.how} is meant")
    for place, final in enumerate(finals):
        boxes = final.others if outcome.verdict == "different" and final.boxed else ()
        if any(_pair(each, finals[1 - place].text, world, ["", ""]).verdict == "equal" for each in boxes[-MOST_BOXES:]):
            return depends("if another box than the last is meant")
    for place, final in enumerate(finals):
        if outcome.verdict not in ("equal", "depends") and 0 < len(final.others) < MOST_BOXES:
            listed = ", ".join([*final.others, final.text])
            if _pair(listed, finals[1 - place].text, world, ["", ""]).verdict == "equal":
                if not final.listed:
                    return depends("if all boxes together are meant")
                reasons.append("all boxes together are the answer")
                return EQUAL
        if outcome.verdict == "different" and not final.sure:
            return undecided(f"the text goes on after what was taken ({final.text[:60]}), and that is different")
    return outcome


def _translated(final: Final, base: str, flops: int | None) -> Final:
    """A final answer in the conventions that its own text states."""
    others = tuple(in_conventions(each, base, flops) for each in final.others)
    return replace(final, text=in_conventions(final.text, base, flops), others=others)


def _defined(final: Final, other: Final, world: World) -> World:
    """The comparison with a name that one text defines; the other must not use it."""
    name, value = final.where
    if name in world.given.declared or re.search(rf"(?<![A-Za-z\\]){re.escape(name)}(?![A-Za-z])", other.text):
        raise Unread(f"a value for {name}, which the other side uses")
    given = replace(world.given, values={**world.given.values, name: readings(value)[0]})
    return replace(world, given=given)


def _pair(one: str, other: str, world: World, read: list[str]) -> Outcome:
    """Two final answers, as text: choices, einsums and words first, then formulas."""
    one, other = (spelled_number(text) or BOLD_CHOICE.sub(r"\1 ", text).strip() for text in (one, other))
    texts = [_plain(text) for text in (one, other)]
    read[:] = texts
    if texts[0] == texts[1] and texts[0]:
        return EQUAL if not _contradicts(one, world) else undecided("it states an equality that does not hold")
    if (chosen := _choices(one, other, world)) is not None:
        return chosen
    labels = [choice[1] or choice[2] for text in (one, other) if (choice := WITH_TEXT.fullmatch(text))]
    if len({*labels}) == 2:
        return undecided(f"{labels[0]} and {labels[1]}, which may be other choices or parts")
    for text, rest in ((one, other), (other, one)):
        if (choice := WITH_TEXT.fullmatch(text)) and not re.search(rf"(?<![A-Za-z\\]){choice[1] or choice[2]}\b", rest):
            if re.search(r"\([A-Ja-j]\)\s", choice[3]):
                return undecided("more is said than one choice")
            world.notes.append(f"the text of choice {choice[1] or choice[2]} was compared")
            return _pair(choice[3], rest, world, read)
    einsums = [found for text in (one, other) if (found := _einsum(text)) is not None]
    if len(einsums) == 2:
        return _einsums(einsums[0], einsums[1])
    words = [_words(text) for text in (one, other)]
    if world.conventions.kind == "text" or any(words):
        return _spoken(texts, words, world.conventions.kind == "text")
    if all(re.fullmatch(r"[A-Za-z]{3,}", text) and set(text.lower()) & VOWELS for text in texts):
        return undecided("letters that may be words")
    trees: list[list[Node]] = []
    marks = [text[mark.end() :].lstrip() for text in (one, other) for mark in SIGMA.finditer(text)]
    applied = frozenset(["sigma"] if all(re.match(r"'*(?:\\left\s*)?\(", rest) for rest in marks) else [])
    for place, text in enumerate((one, other)):
        try:
            trees.append(readings(_convention(text), applied))
        except Unread as error:
            if _tokens(one) == _tokens(other) and _tokens(one):
                return EQUAL
            if (united := _united(text)) is not None:  # 90 min, where min is a function
                trees.append([united])
                continue
            if (scaled := _by_letters(texts, world)) is not None:
                return scaled
            raise Unread(f"the {('answer', 'key')[place]} is not read: {error}") from error
        read[place] = shown(trees[-1][0])
    for place in (0, 1):  # 3000 m beside 3 km
        united = _united(texts[place])
        if united is not None and any(tree.kind == "unit" for tree in trees[1 - place]):
            trees[place] = [united]
    trees = _same_indices(trees)
    if any(_indexed_by_i(tree) for each in trees for tree in each):  # then i is no imaginary unit
        trees = [[renamed(tree, {"i": "i_"}) for tree in each] for each in trees]
    sides = [_stated(text) or world.conventions.vectors for text in (one, other)]
    if world.given.types and all(sides):
        trees = [
            [rows_as_columns(tree, world.given.types) for tree in each] if side == "rows" else each
            for each, side in zip(trees, sides, strict=True)
        ]
        if sides[0] != sides[1]:
            world.notes.append("the two sides use different conventions for vectors; rows were transposed")
    outcomes = [compared(left, right, world) for left in trees[0] for right in trees[1]]
    if outcomes[0].verdict == "different" and any(DECIMAL_COMMA.fullmatch(text) for text in texts):
        points = [DECIMAL_COMMA.sub(r"\1.\2", text) if DECIMAL_COMMA.fullmatch(text) else text for text in texts]
        if compared(readings(points[0])[0], readings(points[1])[0], world).verdict == "equal":
            return depends("if the comma is a decimal point")
    if outcomes[0].verdict == "different":
        units = [unit for text in texts if (unit := _united(text)) is not None]
        if len(units) == 2 and compared(units[0], units[1], world).verdict == "equal":  # 36 km/h and 10 m/s
            return EQUAL
        if len(units) == 1:  # 120 beside 120 km/h
            place = 0 if _united(texts[1]) is not None else 1
            if compared(trees[place][0], units[0].parts[0], world).verdict == "equal":
                return depends(f"if the number is in {units[0].text}")
        if (scaled := _by_letters(texts, world)) is not None:
            return scaled
    if len({outcome.verdict for outcome in outcomes}) > 1:
        return undecided("it can be read in two ways, with different verdicts")
    return outcomes[0]


def _united(text: str) -> Node | None:
    """A number with a unit that is typed without a command, or nothing."""
    spelled = UNITED.fullmatch(re.sub(r"\\[, ;!]|~", " ", text))
    if not spelled or not unit_of(spelled[2]):
        return None
    try:
        return Node("unit", (readings(spelled[1])[0],), spelled[2].strip())
    except Unread:
        return None


def _by_letters(texts: list[str], world: World) -> Outcome | None:
    """The condition that letters stand for sizes (25.6M beside 25,600,000), if that makes both equal."""
    scaled = _scaled(texts)
    if scaled and compared(scaled[0], scaled[1], world).verdict in ("equal", "depends"):
        return depends("if k, M and B stand for thousand, million and billion")
    return None


def _scaled(texts: list[str]) -> list[Node] | None:
    """Both as numbers, where one ends in a letter for its size (2.5M), or nothing."""
    found, letters = [], 0
    for text in texts:
        match = re.fullmatch(
            r"\$?(-?\d[\d.,]*)\s?([kKMBT]?)\$?(?: (?:parameters|params|tokens|weights|entries))?", text
        )
        try:
            value = readings(match[1] if match else text)[0]
        except Unread:
            return None
        if match and match[2]:
            letters += 1
            zeros = Node("number", text="1" + "0" * {"K": 3, "M": 6, "B": 9, "T": 12}[match[2].upper()])
            value = Node("product", (value, zeros), joined=("",))
        found.append(value)
    return found if letters else None


def _plain(text: str) -> str:
    """A text without the differences that never matter."""
    with contextlib.suppress(Unread):
        text = cleaned(text)
    text = re.sub(r"\\(?:text|mathrm|mathbf|textbf|operatorname)\s*\{([^{}]*)\}", r"\1", text)
    return " ".join(text.split())


def _contradicts(text: str, world: World) -> bool:
    """Whether an answer states an equality between numbers that is false."""
    try:
        return any(compared(tree, tree, world).is_contradicted for tree in readings(text))
    except Unread:
        return False


def _choices(one: str, other: str, world: World) -> Outcome | None:
    """Two choices such as (B) and B: Paris, or None if they are not."""
    asked = world.conventions.kind == "choice"
    found = [CHOICE.fullmatch(text) for text in (one, other)]
    if not all(found) or not (asked or any(map(_only_letter, (one, other)))):
        return undecided("no choice was read") if asked else None
    letters = [match[1] for match in found if match]
    rest = [match[2] or "" for match in found if match]
    if any(re.search(r"\b[B-J]\b", text) or DENIED.search(text) for text in rest):
        return undecided("more is said than one choice")
    marked = asked or all(re.search(r"[()\[\].:]", text) for text in (one, other))
    if letters[0] == letters[1] or (marked and letters[0].upper() == letters[1].upper()):
        return EQUAL
    return different(f"choice {letters[0]} and choice {letters[1]}") if marked else None


def _only_letter(text: str) -> bool:
    return bool(re.fullmatch(r"\s*(?:\\text\s*\{)?\s*\(?[A-J]\)?[.:]?\s*\}?\s*", text))


def _tokens(text: str) -> list[Any]:
    try:
        return tokens(cleaned(text))
    except Unread:
        return []


def _words(text: str) -> list[str]:
    """The words of an answer that is no formula, or nothing."""
    plain = _plain(text).lower().strip(" .!")
    if sentence := SENTENCE.fullmatch(plain):
        plain = sentence[1]
    if not re.fullmatch(r"[a-z][a-z' ,.\-]*", plain):
        return []
    words = re.findall(r"[a-z']+", plain)
    if len(words) > 1 and unit_of(words[-1]) and len("".join(words[:-1])) < 4:  # MNK MACs
        return []
    spelled = [word for word in words if len(word) >= 4 or word in SPOKEN]
    return [word for word in words if not FILLER.fullmatch(word)] if spelled else []


def _spoken(texts: list[str], words: list[list[str]], exact: bool) -> Outcome:
    found = [each or re.findall(r"\w+", text.lower()) for each, text in zip(words, texts, strict=True)]
    if found[0] == found[1] and found[0]:
        return EQUAL
    if exact:
        return different("other words")
    pair = {" ".join(each) for each in found}
    if any(pair <= words for words in EXCLUSIVE):
        return different("words that exclude each other")
    return undecided("words, whose meaning is not known here")


def _einsum(text: str) -> Einsum | None:
    """An einsum with letters for indices, or with names between spaces as einops writes them; or nothing."""
    text = re.sub(r"^\s*(?:\w+\.)?einsum\(\s*[\"']([^\"']*)[\"'].*\)\s*$", r"\1", text.strip().strip("$`"))
    match = EINSUM.fullmatch(text)
    if not match or not match[1].replace(",", "").strip():
        return None
    parts = [part.strip() for part in (*match[1].split(","), match[2])]
    spaced = any(re.search(r"\s", part) for part in parts)
    return [tuple(part.split() if spaced else part) for part in parts]


def _einsums(one: Einsum, other: Einsum) -> Outcome:
    """Two einsums: equal up to the names of the indices; other operands in another order are a condition."""
    if _renamed(one) == _renamed(other):
        return EQUAL
    if sorted(map(len, one[:-1])) != sorted(map(len, other[:-1])) or len(one[-1]) != len(other[-1]):
        return different("operands or results of other ranks")
    if one[:-1] == other[:-1]:
        return different(f"the same operands with the results {''.join(one[-1])} and {''.join(other[-1])}")
    if len(one) == len(other) == 3 and _renamed([one[1], one[0], one[2]]) == _renamed(other):
        return depends("if the operands are given in the other order")
    return different(f"they are not the same up to the names of indices: {_renamed(one)} and {_renamed(other)}")


def _renamed(parts: Einsum) -> str:
    names: dict[str, str] = {}
    *operands, result = ["".join(names.setdefault(each, chr(97 + len(names) % 26)) for each in part) for part in parts]
    return f"{','.join(operands)}->{result}"


def _convention(text: str) -> str:
    """An answer without the sentence in which it states its convention for vectors."""
    return re.sub(
        r"[\s,;(]*(?:with|using|in|for|where)?\s*(?:the\s+)?(row|column)[- ]vectors?(?:\s+convention)?\)?\s*\.?$",
        "",
        text,
    )


def _stated(text: str) -> str:
    found = re.search(r"\b(row|column)[- ]vectors?\b", text)
    return f"{found[1]}s" if found else ""


def _same_indices(trees: list[list[Node]]) -> list[list[Node]]:
    r"""The trees with C_{in} as the name C_in where the other side writes C_{\text{in}}."""
    names = {part.text for each in trees for tree in each for part in tree.walk() if part.kind == "name"}
    values = {
        part: Node("name", text=spelled)
        for each in trees
        for tree in each
        for part in tree.walk()
        if part.kind == "index" and (spelled := f"{part.text}_{''.join(map(name_of, part.parts))}") in names
    }
    return [[replaced(tree, values) for tree in each] for each in trees] if values else trees


def _indexed_by_i(tree: Node) -> bool:
    return any(
        part.kind == "index" and "i" in {name for each in part.parts for name in each.names} for part in tree.walk()
    )
