"""Vectors and matrices: sums of words that do not commute, with exact coefficients.

A word is a product of letters: a name, its transpose or inverse, or a function of which nothing is known. A row times a
column is a number, equal to its own transpose; that is the only way in which words commute.
"""

import itertools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from likewise.grading.algebra import SINGLE, Forms
from likewise.grading.arithmetic import Ratio, Unclear, rational
from likewise.grading.parsing import bare
from likewise.reading.expressions import Node

Letter = tuple[str, str, bool, bool]  # kind (vector, matrix), name, transposed, inverse
Word = tuple[Letter, ...]
WORDS = 300
MULTIPLICATIONS, REWRITINGS = 5, 60  # of a difference with inverses of sums
LETTER = r"(?:[a-df-hj-z]|mu|theta|beta|phi)(?:_\w+)?"  # names of vectors: not e and i, which are numbers


@dataclass(frozen=True)
class Words:
    """A sum of words: kind is s (a number), c (a column), r (a row) or m (a matrix)."""

    kind: str
    terms: Mapping[Word, Ratio]


class MatrixForms:
    """The forms of one comparison, over the atoms of its numbers."""

    def __init__(
        self, forms: Forms, types: Mapping[str, str], shapes: Mapping[str, tuple[str, ...]] | None = None
    ) -> None:
        self.forms, self.types = forms, types  # name -> vector or matrix
        self.shapes = shapes or {}
        self.inverted: dict[str, Words] = {}  # letter -> the sum whose inverse it is

    def same(self, one: Words, other: Words) -> bool:
        """Whether two forms are equal: their difference is 0, also times sums whose inverses begin or end its words."""
        if one.kind != other.kind:
            return False
        gap = self.reduced(self.add(one, self.scaled(other, self.forms.constant(-1))))
        sums = [one, other, *self.inverted.values()]
        invertible = {letter[1] for each in sums for word in each.terms for letter in word if letter[3]}
        for _ in range(MULTIPLICATIONS):
            if not gap.terms:
                return True
            begin = [word[0] for word in gap.terms if word and word[0][1] in invertible and not word[0][3]]
            if begin and gap.kind in "mc":
                kind, name, turned, _ = min(begin)
                gap = self.reduced(self.times(Words("m", {((kind, name, turned, True),): self.forms.constant(1)}), gap))
                continue
            left = [word[0][1] for word in gap.terms if word and word[0][1] in self.inverted and not word[0][3]]
            right = [word[-1][1] for word in gap.terms if word and word[-1][1] in self.inverted and not word[-1][3]]
            if left and gap.kind in "mc":
                gap = self.reduced(self.times(self.inverted[min(left)], gap))
            elif right and gap.kind in "mr":
                gap = self.reduced(self.times(gap, self.inverted[min(right)]))
            else:
                return False
        return not gap.terms

    def reduced(self, value: Words) -> Words:
        """The form with S^-1 next to the leading word L of S = L + R put away: L S^-1 = 1 - R S^-1."""
        for _ in range(REWRITINGS):
            due = next((found for word in value.terms if (found := self._beside_its_inverse(word)) is not None), None)
            if due is None:
                return value
            word, replaced = due
            terms = {**value.terms}
            factor = terms.pop(word)
            for each, number in replaced:
                each, closed = self.contracted(_cancelled(each))
                number = self.forms.times(self.forms.times(factor, number), closed)
                terms[each] = self.forms.add(terms[each], number) if each in terms else number
            value = self._made(value.kind, terms)
        raise Unclear("an inverse of a sum")

    def _beside_its_inverse(self, word: Word) -> tuple[Word, list[tuple[Word, Ratio]]] | None:
        for place, (_, name, _, inverse) in enumerate(word):
            if inverse or name not in self.inverted:
                continue
            terms = self.inverted[name].terms
            lead = _leading(terms)
            if not lead:
                continue
            for start, end in ((place - len(lead), place), (place + 1, place + 1 + len(lead))):
                if start >= 0 and word[start:end] == lead:
                    low, high = min(start, place), max(end, place + 1)
                    over = self.forms.over(self.forms.constant(1), terms[lead])
                    found = [(word[:low] + word[high:], over)]
                    for rest, factor in terms.items():
                        if rest != lead:
                            inner = (*rest, word[place]) if start < place else (word[place], *rest)
                            number = self.forms.negative(self.forms.times(factor, over))
                            found.append((word[:low] + inner + word[high:], number))
                    return word, found
        return None

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
            case "sum_over" | "sum":
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
        """A sum over indices of products of entries: x_i A_ij y_j is x' A y, A_ij B_ij the trace of A B'."""
        ends: dict[str, Node | None] = {}
        body = node
        while body.kind in ("sum", "sum_over"):
            index, *bounds, inner = body.parts
            if index.text in ends or (bounds and bare(bounds[0]).text != "1"):
                raise Unclear("a sum of entries")
            ends[index.text] = bare(bounds[1]) if bounds else None
            body = bare(inner)
        entries: list[tuple[str, list[str]]] = []
        found = self.forms.constant(1)
        for part in map(bare, body.parts if body.kind == "product" and "⊙" not in body.joined else (body,)):
            square = part.kind == "^" and bare(part.parts[1]).text == "2"
            entry = bare(part.parts[0]) if square else part
            if not entry.names & {*ends}:
                found = self.forms.times(found, self.number(self.form(part)))
            elif entry.kind == "index" and entry.text in self.types:
                entries += [(entry.text, [bare(each).text for each in entry.parts])] * (1 + square)
            else:
                raise Unclear("a sum of entries")
        used = [each for _, places in entries for each in places]
        ranks = {"vector": 1, "matrix": 2}
        if any(ranks[self.types[name]] != len(places) for name, places in entries) or sorted(used) != sorted(
            [*ends] * 2
        ):
            raise Unclear("a sum of entries")
        for name, places in entries:
            for each, size in itertools.zip_longest(places, self.shapes.get(name, ())):
                end = ends.get(each)
                if end is not None and end.text != size:
                    raise Unclear("a sum that may leave entries out")
        while entries:
            found = self.forms.times(found, self._chain(entries))
        return self.scalar(found)

    def _chain(self, entries: list[tuple[str, list[str]]]) -> Ratio:
        """The number x' A ... y, or the trace of A B ..., of entries with an index in common; they are taken out."""
        first = next((each for each in entries if len(each[1]) == 1), entries[0])
        entries.remove(first)
        value = self.form(Node("name", text=first[0]))
        end, at = (None, first[1][0]) if len(first[1]) == 1 else (first[1][0], first[1][1])
        value = self.transposed(value) if end is None else value
        while at != end:
            name, places = next(each for each in entries if at in each[1])
            entries.remove((name, places))
            matrix = self.form(Node("name", text=name))
            if len(places) == 1:
                return self.number(self.times(value, matrix))
            turned = places[0] != at
            value = self.times(value, self.transposed(matrix) if turned else matrix)
            at = places[0] if turned else places[1]
        return self._trace(value)

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
        return self.forms.opaque("word", repr(min(word, self._turned_word(word))))

    def _turned_word(self, word: Word) -> Word:
        """The transpose of a word; symmetric sums have symmetric inverses."""
        ((turned, factor),) = self.transposed(Words("m", {word: self.forms.constant(1)})).terms.items()
        return turned if rational(factor) == 1 else _turned(word)

    def transposed(self, value: Words) -> Words:
        """The transpose; of the inverse of a sum the inverse of the transposed sum."""
        kind = {"c": "r", "r": "c"}.get(value.kind, value.kind)
        terms: dict[Word, Ratio] = {}
        for word, factor in value.terms.items():
            letters: list[Letter] = []
            for letter in _turned(word):
                if letter[1] in self.inverted and not letter[3]:
                    base = self.inverted[letter[1]]
                    (((turned,), number),) = self.inverse(self.transposed(base)).terms.items()
                    letters.append(turned)
                    factor = self.forms.times(factor, number)
                else:
                    letters.append(letter)
            word = tuple(letters)
            terms[word] = self.forms.add(terms[word], factor) if word in terms else factor
        return self._made(kind, terms)

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
        lead = _leading(value.terms)
        scale = rational(value.terms[lead]) if lead else None
        over = self.forms.constant(1 / scale if scale else 1)
        value = self.scaled(value, over)
        found = self.letter("inverse", value)
        (((_, name, _, _),),) = found.terms
        self.inverted[name] = value
        return self.scaled(found, over)

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
        if node.text == "norm_F":
            square = self._trace(self.times(self.transposed(inner), inner)) if inner.kind == "m" else None
            if square is None:
                return self.form(Node("norm", node.parts))
            return self.scalar(self.forms.root(square, Fraction(1, 2)))
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
                turns += [self._turned_word(each) for each in turns]
                number = self.forms.opaque("trace", repr(min(turns)))
            found = self.forms.add(found, self.forms.times(factor, number))
        return found

    def _determinant(self, value: Words) -> Ratio:
        if len(value.terms) != 1:
            return self.forms.opaque("det", next(iter(self.letter("det", value).terms))[0][1])
        ((word, factor),) = value.terms.items()
        found = self.forms.constant(1)
        if rational(factor) != 1:
            found = self.forms.power(factor, self._rows(word))
        if any(kind == "vector" for kind, *_ in word):
            raise Unclear("the determinant of an outer product")
        for _, name, _, inverse in word:
            atom = self.forms.opaque("det", name)
            found = self.forms.over(found, atom) if inverse else self.forms.times(found, atom)
        return found

    def _rows(self, word: Word) -> Ratio:
        """The number of rows of a square product, where a shape is given."""
        for _, name, *_ in word:
            shape = self.shapes.get(name, ())
            if len(shape) == 2 and shape[0] == shape[1]:
                return self.forms.form(Node("number" if shape[0].isdigit() else "name", text=shape[0]))
        raise Unclear("the determinant of a multiple")


def _leading(terms: Mapping[Word, Ratio]) -> Word:
    """The longest word without vectors, of these the first; nothing if it is no word."""
    words = [word for word in terms if all(kind == "matrix" for kind, *_ in word)]
    return min(words, key=lambda word: (-len(word), word), default=())


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
