"""Orders about programs: which program a row of a table, a sentence or a label is about, and which of its quantities.

Programs are a short, written list of names. A part of a computation ("per query", "the numerator") has none, and where
two programs are spoken of a label such as "Time complexity:" belongs to none of them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from likewise.reading.segments import Turn
from likewise.reading.statements import Said

QUERY = {"N": "N", "n": "N", "T": "N", "L": "N", "D": "D", "d": "D", "M": "M"}
STEP = {name: name for name in "bnhkvd"}


@dataclass(frozen=True)
class Program:
    """A program with the names that people give it, and how their letters are its sizes."""

    name: str
    called: re.Pattern[str]
    letters: dict[str, str]
    sizes: tuple[tuple[str, str], ...]  # in order, with what a size is if the text does not tell it apart
    lines: tuple[str, ...] = ()


PROGRAMS = (
    Program(
        "attention.random_features",
        re.compile(r"\brandom(?: fourier)? features?\b|\bRFF\b", re.I),
        {**QUERY, "D_random": "R", "R": "R", "m": "R", "r": "R"},
        (("N", ""), ("D", ""), ("M", "D"), ("R", "")),
    ),
    Program(
        "attention.quadratic",
        re.compile(
            r"\b(?:quadratic|degree[- ](?:2|two)|(?:second|2nd)[- ]order)(?: polynomial)?(?: kernel)? attention\b"
            r"|\bpolynomial kernel attention\W+of degree 2\b|\bquadratic kernel\b",
            re.I,
        ),
        QUERY,
        (("N", ""), ("D", ""), ("M", "D")),
    ),
    Program(
        "attention.mqa_step",
        re.compile(r"\bmulti-query attention\b|\bMQA\b", re.I),
        STEP,
        (("b", ""), ("n", ""), ("h", ""), ("k", ""), ("v", "k"), ("d", "h*k")),
        ("kernel: fused",),
    ),
    Program(
        "attention.softmax",
        re.compile(r"\b(?:softmax|(?:scaled )?dot-product|vanilla|full) attention\b", re.I),
        QUERY,
        (("N", ""), ("D", ""), ("M", "D")),
    ),
)
BESIDE = re.compile(
    r"(?:approximat\w+|opposed to|compared (?:to|with)|than|unlike|instead of|replac\w+|versus|vs\.?|regular|in)"
    r"(?: the| standard| usual)*\W*$",
    re.I,
)
OTHERWISE = re.compile(r"flash|online|stream|memory-efficient|tiled|sparse|parallel|\bif\b|assum|when|unless", re.I)
PART = re.compile(
    r"\bper (?!token\b)\w+|\beach\b|\bnumerator|\bdenominator|\bproject\w*|\bupdat\w*|\binitial\w*|\bextra|"
    r"\badditional|\bscal(?:e|ing)\b|\bnorms?\b|\bdivi\w+|\bonly\b|\bcache\b|\bdot products?\b|\bstore\b|\bstep \d|"
    r"\bqueries and keys\b",
    re.I,
)
KIND = re.compile(
    r"(?P<traffic>memory access|memory traffic)|(?P<peak>\b(?:space|memory)\b)"
    r"|(?P<cost>\btime\b|\bcomput\w*|\bFLOPs?\b|\bcosts?\b|\bcomplexity\b)",
    re.I,
)
LABEL = re.compile(
    r"^\W*(?:(?:so|thus|hence|the|final|answer|total|overall|\(\w\)|\[\w+\])\W+)*"
    r"(?:time|space|memory(?: access)?|computation(?:al)?|total|overall)\W+(?:and \w+ )?"
    r"(?:complexity|cost|requirement|usage)\b[^$|]{0,90}$",
    re.I,
)
SAYS = re.compile(
    r"(?:(?:,? (?:which|that))? (?:is|costs?|takes?|needs?|requires?|runs in"
    r"|has (?:a )?(?:\w+ )?(?:complexity|cost)(?: of)?)|'s)"
    r"\W*$",
    re.I,
)
ANSWER = re.compile(r"^\W*(?:answer|total|final answer)\W*$", re.I)
BACK = 40  # lines before a label in which its program may be named


@dataclass(frozen=True)
class Text:
    """The lines of an answer, with who speaks."""

    lines: tuple[str, ...] = ()
    turns: tuple[Turn, ...] = ()

    def mentions(self, first: int, last: int) -> list[tuple[int, Program]]:
        """Programs that the lines from first to last name, where they are not only compared with."""
        found = []
        for number in range(max(1, first), last + 1):
            found += [(number, program) for program in named(self.lines[number - 1])]
        return found


def named(text: str) -> list[Program]:
    """The programs that a piece of prose is about."""
    found = []
    for program in PROGRAMS:
        for match in program.called.finditer(text):
            if not BESIDE.search(text[max(0, match.start() - 40) : match.start()]):
                found.append(program)
                break
    return found


def subject(said: Said, text: Text) -> tuple[Program, str, int] | None:
    """The program that a bare order is about, which quantity of it, and the line that says so; or nothing."""
    number = said.formula.line
    line = text.lines[number - 1] if 0 < number <= len(text.lines) else ""
    if said.formula.displayed:  # what leads to a display stands on the line before
        above = [place for place in range(number - 1, max(0, number - 4), -1) if text.lines[place - 1].strip(" $[\\")]
        number = above[0] if above else number
        before = text.lines[number - 1] if above else ""
    else:
        before = line[: max(0, said.formula.column - 1)].rstrip(" $(\\")
    after = said.formula.after.split("\n")[0][:60]
    if OTHERWISE.search(after):
        return None
    if "|" in before or "\t" in before:
        return _row(number, before, text)
    if PART.search(before) or OTHERWISE.search(before):
        return None
    sentence = re.split(r"[.;]\s|\$", before)[-1]
    kind = _kind(sentence)
    for program in PROGRAMS:
        for match in program.called.finditer(before):
            if SAYS.fullmatch(before[match.end() :]):
                return program, kind or "cost", number
    if ANSWER.match(before):
        above = [place for place in range(number - 1, max(0, number - 6), -1) if text.lines[place - 1].strip()][:2]
        kind = next((found for place in above if (found := _kind(text.lines[place - 1]))), "")
    elif not (LABEL.match(before) and kind):
        return None
    if not kind:
        return None
    own = named(before)
    if len(own) == 1:
        return own[0], kind, number
    turn = next((each for each in text.turns if each.first <= number <= each.last), Turn("unknown", 1, number))
    seen = text.mentions(max(turn.first, number - BACK), number)
    programs = {program.name for _, program in seen}
    if len(programs) != 1:
        return None
    return seen[-1][1], kind, seen[-1][0]


def _kind(text: str) -> str:
    match = KIND.search(text)
    return match.lastgroup or "" if match else ""


def _row(number: int, before: str, text: Text) -> tuple[Program, str, int] | None:
    """The cell of a table: its row names the program, its column the quantity."""
    sign = "|" if "|" in before else "\t"
    cells = before.split(sign)
    place = len(cells) - 1
    first = next((cell for cell in cells[:-1] if cell.strip()), "")
    found = named(first)
    if len(found) != 1 or PART.search(first) or OTHERWISE.search(first):
        return None
    top = number
    while top > 1 and sign in text.lines[top - 2]:
        top -= 1
    head = text.lines[top - 1].split(sign)
    if top == number or place >= len(head) or OTHERWISE.search(head[place]) or PART.search(head[place]):
        return None
    kind = _kind(head[place])
    return (found[0], kind, number) if kind else None


def claim(program: Program, assertion: tuple[str, str, str], names: Sequence[str]) -> str | None:
    """The claim that a quantity grows like an order of a polynomial; nothing if a letter is no size of the program."""
    kind, order, polynomial = assertion
    if not set(names) <= program.letters.keys() or len({program.letters[name] for name in names}) != len(set(names)):
        return None
    used = {program.letters[name] for name in names}
    sizes = [
        size if not default or (size in used and default == "D") else f"{size} = {default}"
        for size, default in program.sizes
    ]
    lines = [f"of: {program.name}", f"sizes: {', '.join(sizes)}", *(program.lines if kind == "traffic" else ())]
    return "\n".join([*lines, f"assert: {kind} in {order}({renamed(polynomial, program)})"])


def renamed(text: str, program: Program) -> str:
    """A polynomial in the letters of a program."""
    return re.sub(r"\b[A-Za-z]\w*\b", lambda match: program.letters.get(match[0], match[0]), text)
