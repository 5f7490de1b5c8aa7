"""Vectors and matrices: sums of words that do not commute, with exact coefficients.

A word is a product of letters: a name, its transpose or inverse, or a function of which nothing is known. A row times a
column is a number, equal to its own transpose; that is the only way in which words commute.
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from likewise.grading.algebra import SINGLE, Forms, Ratio, Unclear, rational
from likewise.grading.parsing import bare
from likewise.reading.expressions import Node

Letter = tuple[str, str, bool, bool]  # kind (vector, matrix), name, transposed, inverse
Word = tuple[Letter, ...]
WORDS = 300
LETTER = r"(?:[a-df-hj-z]|mu|theta|beta|phi)(?:_\w+)?"  # names of vectors: not e and i, which are numbers


@dataclass(frozen=True)
class Words:
    """A sum of words: kind is s (a number), c (a column), r (a row) or m (a matrix)."""

    kind: str
    terms: Mapping[Word, Ratio]


class MatrixForms:
    """The forms of one comparison, over the atoms of its numbers."""

    def __init__(self, forms: Forms, types: Mapping[str, str]) -> None:
        self.forms, self.types = forms, types  # name -> vector or matrix

    def same(self, one: Words, other: Words) -> bool:
        """Whether two forms are equal."""
        if one.kind != other.kind:
            return False
        zero = self.forms.constant(0)
        return all(
            self.forms.same(one.terms.get(word, zero), other.terms.get(word, zero))
            for word in {*one.terms, *other.terms}
        )

    def form(self, node: Node) -> Words:
        """The form of a tree."""
        node = bare(node)
        if not self.has_arrays(node):
            return self.scalar(self.forms.form(node))
        match node.kind:
            case "name" if is_identity(node):
                return Words("m", {(): self.forms.constant(1)})
            case "name":
                kind = self.types[node.text]
                return Words(kind[0].replace("v", "c"), {((kind, node.text, False, False),): self.forms.constant(1)})
            case "index" if is_identity(node):
                return Words("m", {(): self.forms.constant(1)})
            case "+" | "-":
                one, other = map(self.form, node.parts)
                return self.add(one, other if node.kind == "+" else self.scaled(other, self.forms.constant(-1)))
            case "neg":
                return self.scaled(self.form(node.parts[0]), self.forms.constant(-1))
            case "product":
                if "⊙" in node.joined:
                    raise Unclear("an elementwise product")
                found = self.form(node.parts[0])
                for sign, part in zip(node.joined, node.parts[1:], strict=True):
                    right = self.form(part)
                    if sign in "·×" and sign and found.kind == right.kind == "c":
                        found = self.transposed(found)  # a dot between two columns
                    found = self.times(found, right)
                return found
            case "/":
                one, other = map(self.form, node.parts)
                return self.scaled(one, self.forms.over(self.forms.constant(1), self.number(other)))
            case "transpose":
                return self.transposed(self.form(node.parts[0]))
            case "^":
                return self.powered(self.form(node.parts[0]), self.number(self.form(node.parts[1])))
            case "norm":
                inner = self.form(node.parts[0])
                if inner.kind not in ("c", "r"):
                    raise Unclear("the norm of a matrix")
                column = inner if inner.kind == "c" else self.transposed(inner)
                squared = self.times(self.transposed(column), column)
                return self.scalar(self.forms.root(self.number(squared), Fraction(1, 2)))
            case "call":
                return self.called(node)
            case "sum_over":
                return self.summed(node)
        raise Unclear(f"{node.kind} of vectors or matrices")

    def has_arrays(self, node: Node) -> bool:
        """Whether a vector or matrix occurs."""
        return any(
            (part.kind in ("name", "index") and part.text in self.types)
            or part.kind == "transpose"
            or is_identity(part)
            for part in node.walk()
        )

    def summed(self, node: Node) -> Words:
        """A sum over i of x_i y_i: the product x'y."""
        index, body = node.parts[0].text, bare(node.parts[1])
        factors = []
        for part in map(bare, body.parts if body.kind == "product" else (body,)):
            square = part.kind == "^" and bare(part.parts[1]).text == "2"
            factors += [bare(part.parts[0])] * 2 if square else [part]
        entries = [
            Node("name", text=part.text)
            for part in factors
            if part.kind == "index" and len(part.parts) == 1 and bare(part.parts[0]).text == index
        ]
        rest = [part for part in factors if index not in part.names]
        if (
            len(entries) != 2
            or len(rest) + 2 != len(factors)
            or any(self.types.get(x.text) != "vector" for x in entries)
        ):
            raise Unclear("a sum of entries")
        found = self.times(self.transposed(self.form(entries[0])), self.form(entries[1]))
        for part in rest:
            found = self.times(self.form(part), found)
        return found

    def scalar(self, value: Ratio) -> Words:
        """A number as a form."""
        return Words("s", {(): value})

    def number(self, value: Words) -> Ratio:
        """The form of what must be a number."""
        if value.kind != "s":
            raise Unclear("a vector or matrix where a number is wanted")
        return value.terms.get((), self.forms.constant(0))

    def add(self, one: Words, other: Words) -> Words:
        """one + other."""
        if one.kind != other.kind:
            raise Unclear("a sum of different shapes")
        terms = dict(one.terms)
        for word, value in other.terms.items():
            terms[word] = self.forms.add(terms[word], value) if word in terms else value
        return self._made(one.kind, terms)

    def _made(self, kind: str, terms: dict[Word, Ratio]) -> Words:
        if len(terms) > WORDS:
            raise Unclear("too many terms")
        return Words(kind, {word: value for word, value in terms.items() if value.top != 0})

    def scaled(self, value: Words, factor: Ratio) -> Words:
        """factor * value."""
        return self._made(value.kind, {word: self.forms.times(each, factor) for word, each in value.terms.items()})

    def times(self, one: Words, other: Words) -> Words:
        """one * other, in this order."""
        if "s" in (one.kind, other.kind):
            number, rest = (one, other) if one.kind == "s" else (other, one)
            return self.scaled(rest, self.number(number))
        pair = one.kind + other.kind
        if pair not in ("mm", "mc", "rm", "rc", "cr"):
            raise Unclear("a product whose shapes do not fit")
        kind = {"mm": "m", "mc": "c", "rm": "r", "rc": "s", "cr": "m"}[pair]
        terms: dict[Word, Ratio] = {}
        if len(one.terms) * len(other.terms) > WORDS:
            raise Unclear("too many terms")
        for left, factor in one.terms.items():
            for right, more in other.terms.items():
                word, number = self.contracted(_cancelled(left + right))
                value = self.forms.times(self.forms.times(factor, more), number)
                terms[word] = self.forms.add(terms[word], value) if word in terms else value
        return self._made(kind, terms)

    def contracted(self, word: Word) -> tuple[Word, Ratio]:
        """The word without its numbers (row ... column), and their product."""
        number = self.forms.constant(1)
        start = None
        place = 0
        while place < len(word):
            kind, _, turned, _ = word[place]
            if kind == "vector" and turned:
                start = place
            elif kind == "vector" and start is not None:
                number = self.forms.times(number, self.closed(word[start : place + 1]))
                word = word[:start] + word[place + 1 :]
                place, start = start - 1, None
            place += 1
        return word, number

    def closed(self, word: Word) -> Ratio:
        """row ... column as a number; its transpose is the same number."""
        return self.forms.opaque("word", repr(min(word, _turned(word))))

    def transposed(self, value: Words) -> Words:
        """The transpose."""
        kind = {"c": "r", "r": "c"}.get(value.kind, value.kind)
        return Words(kind, {_turned(word): each for word, each in value.terms.items()})

    def powered(self, base: Words, exponent: Ratio) -> Words:
        """An integer power."""
        if base.kind == "s":
            return self.scalar(self.forms.power(self.number(base), exponent))
        fixed = rational(exponent)
        if base.kind != "m" or fixed is None or fixed.denominator != 1 or abs(fixed) > 8:
            raise Unclear("the power of a vector or matrix")
        base = base if fixed > 0 else self.inverse(base)
        found = Words("m", {(): self.forms.constant(1)})
        for _ in range(abs(int(fixed))):
            found = self.times(found, base)
        return found

    def inverse(self, value: Words) -> Words:
        """The inverse: of a word the words reversed, of a sum a new letter."""
        if len(value.terms) == 1:
            ((word, factor),) = value.terms.items()
            if any(kind == "vector" for kind, *_ in word):
                raise Unclear("the inverse of an outer product")
            turned = tuple((kind, name, flip, not inverse) for kind, name, flip, inverse in reversed(word))
            return Words("m", {turned: self.forms.over(self.forms.constant(1), factor)})
        return self.letter("inverse", value)

    def letter(self, name: str, value: Words, kind: str = "matrix") -> Words:
        """A function of which nothing is known, as a letter."""
        shown = sorted(f"{word!r}:{self.forms.ratio(each.top, each.bottom)!r}" for word, each in value.terms.items())
        return Words(
            "m" if kind == "matrix" else "c",
            {((kind, f"{name}[{'; '.join(shown)}]", False, False),): self.forms.constant(1)},
        )

    def called(self, node: Node) -> Words:
        """A function of vectors or matrices."""
        if len(node.parts) != 1:
            raise Unclear(f"{node.text} of several arguments")
        inner = self.form(node.parts[0])
        if inner.kind == "s":
            value = self.number(inner)
            if node.text in SINGLE:
                return self.scalar(SINGLE[node.text](self.forms, value))
            return self.scalar(self.forms.opaque("call", node.text, (value,)))
        if node.text in ("tr", "det") and inner.kind == "m":
            return self.scalar(self._trace(inner) if node.text == "tr" else self._determinant(inner))
        if node.text == "softmax" or node.text in ("f", "g", "h", "phi", "psi", "relu"):
            if inner.kind == "r":
                raise Unclear("a function of a row")
            return self.letter(node.text, inner, "matrix" if inner.kind == "m" else "vector")
        raise Unclear(f"{node.text} of a vector or matrix")

    def _trace(self, value: Words) -> Ratio:
        found = self.forms.constant(0)
        for word, factor in value.terms.items():
            heads = [place for place, (kind, _, turned, _) in enumerate(word) if kind == "vector" and turned]
            if heads:
                turned = word[heads[0] :] + word[: heads[0]]
                left, number = self.contracted(turned)
                if left:
                    raise Unclear("a trace")
            else:
                turns = [word[place:] + word[:place] for place in range(len(word))] or [()]
                turns += [_turned(each) for each in turns]
                number = self.forms.opaque("trace", repr(min(turns)))
            found = self.forms.add(found, self.forms.times(factor, number))
        return found

    def _determinant(self, value: Words) -> Ratio:
        if len(value.terms) != 1:
            return self.forms.opaque("det", next(iter(self.letter("det", value).terms))[0][1])
        ((word, factor),) = value.terms.items()
        if rational(factor) != 1 or any(kind == "vector" for kind, *_ in word):
            raise Unclear("the determinant of a multiple")
        found = self.forms.constant(1)
        for _, name, _, inverse in word:
            atom = self.forms.opaque("det", name)
            found = self.forms.over(found, atom) if inverse else self.forms.times(found, atom)
        return found


def is_identity(node: Node) -> bool:
    """Whether a node is the identity matrix I or I_n."""
    return (node.kind == "name" and (node.text == "I" or node.text.startswith("I_"))) or (
        node.kind == "index" and node.text == "I"
    )


def _turned(word: Word) -> Word:
    return tuple((kind, name, not turned, inverse) for kind, name, turned, inverse in reversed(word))


def _cancelled(word: Word) -> Word:
    """A word without A times its inverse."""
    found: list[Letter] = []
    for letter in word:
        if found and found[-1][0] == "matrix" and found[-1][:3] == letter[:3] and found[-1][3] != letter[3]:
            found.pop()
        else:
            found.append(letter)
    return tuple(found)


def inferred_types(trees: list[Node]) -> dict[str, str]:
    """Names that must be vectors or matrices by the way they are written: transposes, norms, traces, inverses.

    Capital letters beside these are matrices, unless they stand under a root, below a line or in an exponent.
    """
    found: dict[str, str] = {}
    evident = False
    for tree in trees:
        for node in tree.walk():
            inner = bare(node.parts[0]) if node.parts else node
            if node.kind in ("transpose", "norm") or (node.kind == "call" and node.text in ("tr", "det")):
                evident = True
                vectors = inner.walk() if node.kind in ("transpose", "norm") else ()
                for part in vectors:
                    if part.kind == "name" and re.fullmatch(LETTER, part.text):
                        found.setdefault(part.text, "vector")
            if node.kind == "^" and bare(node.parts[1]) == Node("neg", (Node("number", text="1"),)):
                names = [part.text for part in inner.walk() if part.kind == "name"]
                if names and all(_capital(name) for name in names):
                    evident = True
    for tree in trees:
        for node in tree.walk():
            if node.kind == "product":
                _beside(node.parts, found)
    if evident:
        sizes = {name for tree in trees for name in _sizes(tree)}
        for tree in trees:
            for node in tree.walk():
                if node.kind == "name" and _capital(node.text) and node.text not in sizes and not is_identity(node):
                    found[node.text] = "matrix"
    return found


def _beside(factors: tuple[Node, ...], found: dict[str, str]) -> None:
    """A letter right after a row, or right before a row that ends the product, is a vector: q'k, kq'."""
    for place, (one, other) in enumerate(itertools.pairwise(map(bare, factors))):
        rows = [part.kind == "transpose" and bare(part.parts[0]).text in found for part in (one, other)]
        beside = other if rows[0] else one if rows[1] and place == len(factors) - 2 else None
        if beside is not None and beside.kind == "name" and re.fullmatch(LETTER, beside.text):
            found.setdefault(beside.text, "vector")


def _capital(name: str) -> bool:
    return name.split("_")[0] in {*"ABCDFGHJKLMNPQRSTUVWXYZ", "Sigma", "Lambda", "Phi", "Psi"}


def _sizes(node: Node, inside: bool = False) -> set[str]:
    """Names under a root, below a line or in an exponent."""
    if node.kind == "name":
        return {node.text} if inside else set()
    found = set()
    for place, part in enumerate(node.parts):
        below = (node.kind in ("/", "^", "root") and place == 1) or (node.kind == "call" and node.text == "sqrt")
        arrays = any(each.kind in ("transpose", "norm") for each in part.walk())
        found |= _sizes(part, inside or (below and not arrays))
    return found
