"""Text into tokens, by one regular expression; what it does not know is refused, with its place."""

import difflib
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import NoReturn

from likewise.claims.language.limits import DIGITS, EXPONENT

TOKEN = re.compile(
    r"""(?P<space>\s+)
    | (?P<number>[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<text>"[A-Za-z0-9 .,>-]*")
    | (?P<sign>\.\.|\*\*|==|!=|<=|>=|[-+*/@^'!\[\](){},;:<>=~%.])""",
    re.VERBOSE,
)


class Unparsed(Exception):
    """The text is no claim: why, where (`place`, the line and column of the text), and the name that was meant.

    column: where it is in its line, from 1. name: the word to blame, by which the line is found if there is no column.
    """

    def __init__(self, reason: str, *, column: int = 0, name: str = "", known: Iterable[str] = ()) -> None:
        self.nearest = nearest(name, known)
        super().__init__(f"{reason}; did you mean {self.nearest}?" if self.nearest else reason)
        self.column, self.name = column, name
        self.place: tuple[int, int] | None = None


class Unbounded(Unparsed):
    """The text may be a claim, but one of `limits` is passed before that is known."""


def nearest(name: str, known: Iterable[str], *, likeness: float = 0.66) -> str:
    """The known name that is spelled most like this one, or the empty text.

    >>> nearest("sofmax", ["softmax", "sum"]), nearest("Given", ["given"]), nearest("colour", ["given"])
    ('softmax', 'given', '')
    """
    by_letters = {each.lower(): each for each in sorted(known, reverse=True)}
    found = difflib.get_close_matches(name.lower(), by_letters, n=1, cutoff=likeness)
    return by_letters[found[0]] if found else ""


@dataclass(frozen=True, slots=True)
class Line:
    """A logical line: its text, and where each of the physical lines that it was joined of begins in it.

    >>> Line("assert: 1 == 2", ((0, 3, 1), (10, 4, 5))).place(13)
    (4, 7)
    """

    text: str
    pieces: tuple[tuple[int, int, int], ...]  # (offset in text, line, column)

    def place(self, column: int) -> tuple[int, int]:
        """Line and column, from 1, of a column of the logical line."""
        offset, line, start = next(piece for piece in reversed(self.pieces) if piece[0] < max(column, 1))
        return line, start + max(column, 1) - 1 - offset


@dataclass(frozen=True, slots=True)
class Token:
    """One word of a claim. `kind` is number, name, text, sign or end."""

    kind: str
    text: str
    column: int  # from 1

    def __str__(self) -> str:
        return "the end of the line" if self.kind == "end" else repr(self.text)


def tokens(line: str, start: int = 0) -> Iterator[Token]:
    """The tokens of one line from `start` on, then one of kind end.

    >>> [token.text for token in tokens("2*x' <= 1e-3")]
    ['2', '*', 'x', "'", '<=', '1e-3', '']
    """
    place = start
    while place < len(line):
        match = TOKEN.match(line, place)
        if match is None:
            raise Unparsed(f"unexpected {line[place]!r}", column=place + 1)
        if match.lastgroup != "space":
            yield Token(str(match.lastgroup), match.group(), place + 1)
        place = match.end()
    yield Token("end", "", len(line) + 1)


def number(text: str) -> Fraction:
    """An exact number; its digits and its exponent are bounded.

    >>> number("85.1"), number("10E-3")
    (Fraction(851, 10), Fraction(1, 100))
    """
    mantissa, _, exponent = text.lower().partition("e")
    if len(mantissa.replace(".", "")) > DIGITS:
        raise Unbounded(f"a number of more than {DIGITS} digits")
    if exponent and (len(exponent) > 4 or abs(int(exponent)) > EXPONENT):
        raise Unbounded(f"an exponent beyond {EXPONENT}: {text}")
    return Fraction(mantissa) * Fraction(10) ** int(exponent or 0)


def decimals(text: str) -> int:
    """How many digits after the point a printed number shows; below zero when it ends before the units.

    >>> decimals("85.1"), decimals("140"), decimals("1.6e9")
    (1, 0, -8)
    """
    mantissa, _, exponent = text.lower().partition("e")
    return len(mantissa.partition(".")[2]) - int(exponent or 0)


class Reader:
    """The tokens of one line, with the next one in sight."""

    def __init__(self, line: str, start: int = 0) -> None:
        self._tokens = list(tokens(line, start))
        self._place = 0

    @property
    def next(self) -> Token:
        """The token that was not taken yet."""
        return self._tokens[self._place]

    def after(self) -> Token:
        """The token behind the next one."""
        return self._tokens[min(self._place + 1, len(self._tokens) - 1)]

    def take(self) -> Token:
        """The next token; the end is never passed."""
        token = self.next
        self._place = min(self._place + 1, len(self._tokens) - 1)
        return token

    def at(self, *texts: str) -> bool:
        """Whether the next token is one of these signs or words."""
        return self.next.kind in ("sign", "name") and self.next.text in texts

    def skip(self, text: str) -> bool:
        """Take the next token if it is this sign or word."""
        found = self.at(text)
        if found:
            self.take()
        return found

    def want(self, text: str) -> None:
        """Take this sign or word, or refuse the line."""
        if not self.skip(text):
            self.refuse(repr(text))

    def name(self) -> str:
        """Take a name, or refuse the line."""
        if self.next.kind != "name":
            self.refuse("a name")
        return self.take().text

    def end(self) -> None:
        """Refuse a line that goes on."""
        if self.next.kind != "end":
            self.refuse("the end of the line")

    def refuse(self, wanted: str) -> NoReturn:
        """The line is wrong here."""
        raise Unparsed(f"expected {wanted}, got {self.next}", column=self.next.column)
