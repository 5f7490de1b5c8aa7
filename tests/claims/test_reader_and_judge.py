"""The reader and the judge are two implementations of format.md: they agree wherever both have a value."""

from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import prod
from random import Random
from typing import Any

import pytest
from flint import ctx, fmpq

from likewise.claims import judge
from likewise.claims.arrays import Array
from likewise.claims.enclosures import ENCLOSURES
from likewise.claims.judge.numbers import ball
from likewise.claims.language.expressions import expression
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Reader as Tokens
from likewise.claims.language.tree import Node
from likewise.claims.reader import Reader
from likewise.claims.verdict import Undecided

SIZES = {"N": 2, "D": 3, "M": 4}
SHAPES = {"a": "", "b": "", "x": "D", "y": "D", "z": "N", "A": "ND", "B": "DM", "S": "DD", "T": "NND"}
GIVEN = (
    "given: a, b in R; x, y in R^D; z in R^N; A in R^(N, D); B in R^(D, M); S in R^(D, D); T[N, N, D]\nsizes: N, D, M\n"
)
FRAME = parse(f"{GIVEN}assert: a == b")
NUMBERS = ("0", "1", "2", "3", "1/2", "0.1", "4", "N", "D", "M", "pi")
MAPS = ("abs", "relu", "sqrt", "exp", "log", "sin", "cos")
NEW_MAPS = ("tanh", "sigmoid", "erf", "normcdf", "sign", "floor", "ceil", "log2", "factorial")


class Sentences:
    """Random expressions of a wanted shape, a string of size letters: "" is a number, "ND" a matrix."""

    def __init__(self, seed: int) -> None:
        self.draw = Random(seed)
        self.inside_slope = False

    def of(self, shape: str, depth: int) -> str:
        if depth <= 0 or self.draw.random() < 0.12:
            return self.leaf(shape)
        ways = [self.binary, self.binary, self.mapped, self.negative, self.extreme]
        ways += [self.indexed] if depth < 4 else []
        ways += [self.slope] if not self.inside_slope else []
        ways += [self.number] * 4 if shape == "" else []
        ways += [self.vector] * 3 if len(shape) == 1 else []
        ways += [self.matrix] * 3 if len(shape) == 2 else []
        way = self.draw.choice(ways)
        if way != self.slope:
            return way(shape, depth - 1)
        self.inside_slope = True
        found = way(shape, depth - 1)
        self.inside_slope = False
        return found

    def leaf(self, shape: str) -> str:
        named = [name for name, mine in SHAPES.items() if mine == shape]
        if shape == "":
            return self.draw.choice([*named, *NUMBERS])
        made = [f"{kind}({', '.join(shape)})" for kind in ("ones", "zeros")] + [f"I({shape[0]})"] * (
            len(shape) == 2 and shape[0] == shape[1]
        )
        return self.draw.choice([*(named * 3), *made])

    def smaller(self, shape: str) -> str:
        """A shape that broadcasts to this one."""
        return self.draw.choice([shape, shape, "", shape[self.draw.randint(0, len(shape)) :]])

    def binary(self, shape: str, depth: int) -> str:
        sign = self.draw.choice("+-*/+-*^")
        sides = [self.of(shape, depth), self.of(self.smaller(shape), depth)]
        if sign == "^":
            sides[1] = self.draw.choice(["2", "3", "0", "(-1)", "(1/2)", "(-2)", "a", "D", "(3/2)", "0.25"])
        elif self.draw.random() < 0.3:
            sides.reverse()
        return f"({sides[0]}) {sign} ({sides[1]})" if sign != "^" else f"({sides[0]})^{sides[1]}"

    def mapped(self, shape: str, depth: int) -> str:
        if shape and self.draw.random() < 0.2:
            return f"softmax({self.of(shape, depth)})"
        if self.draw.random() < 0.1:
            return f"mod({self.of(shape, depth)}, {self.of(self.smaller(shape), depth)})"
        return f"{self.draw.choice(MAPS + NEW_MAPS)}({self.of(shape, depth)})"

    def indexed(self, shape: str, depth: int) -> str:
        """A sum, product, mean or extreme over an index, which stands in the body too."""
        function, index = self.draw.choice(["sum", "prod", "mean", "max", "min"]), f"i{depth}"
        length = self.draw.choice("DN")
        lowest = self.draw.choice(["1", "1", "1", "0", "2"])
        array = self.draw.choice([name for name, mine in SHAPES.items() if mine == length])
        if lowest == "0":
            array = f"[0, 1*{array}]" if self.draw.random() < 0.5 else array
        entry = self.draw.choice([f"{array}[{index}]", index, f"{index}*{array}[{index}]"])
        return f"{function}({index} in {lowest}..{length}, {entry}*({self.of(shape, depth)}) + {self.of('', 0)})"

    def slope(self, shape: str, depth: int) -> str:
        """A derivative whose shape is wanted: of an array by a number, or of a number by an array."""
        by = self.draw.choice([name for name, mine in SHAPES.items() if mine == shape] or ["a"])
        if shape and self.draw.random() < 0.5:
            return f"grad({self.of(shape, depth)}, {self.draw.choice('ab')})"
        if len(shape) == 2 and self.draw.random() < 0.5:
            rows, columns = ([name for name, mine in SHAPES.items() if mine == axis] for axis in shape)
            if rows and columns:
                return f"grad({self.of(shape[0], depth)}, {self.draw.choice(columns)})"
        return f"grad({self.of('', depth)}, {by})" if by in SHAPES and SHAPES[by] == shape else self.leaf(shape)

    def negative(self, shape: str, depth: int) -> str:
        return f"-({self.of(shape, depth)})"

    def extreme(self, shape: str, depth: int) -> str:
        others = [self.of(self.smaller(shape), depth) for _ in range(self.draw.randint(1, 2))]
        return f"{self.draw.choice(['max', 'min'])}({', '.join([self.of(shape, depth), *others])})"

    def any_shape(self) -> str:
        return self.draw.choice(["D", "N", "ND", "DM", "DD", "NND", "D"])

    def number(self, shape: str, depth: int) -> str:
        way = self.draw.randint(0, 10)
        if way == 9:
            return f"argmax({self.of(self.any_shape(), depth)})"
        if way == 10:
            return f"prod({self.of(self.draw.choice(['D', 'N', '']), depth)})"
        if way == 0:
            same = self.draw.choice(["D", "N", "ND"])
            return f"dot({self.of(same, depth)}, {self.of(same, depth)})"
        if way == 1:
            return f"({self.of('D', depth)}) @ ({self.of('D', depth)})"
        if way == 2:
            return f"tr({self.of('DD', depth)})"
        if way == 3:
            matrix = self.of("ND", depth)
            return f"({matrix})[{self.draw.randint(1, 2)}, {self.draw.randint(1, 3)}]"
        if way == 4:
            return f"({self.of('D', depth)})[{self.draw.choice(['1', 'D', '2', 'N', 'D - 1'])}]"
        if way == 5:
            return f"choose({self.of('', depth)}, {self.draw.choice(['0', '1', '2', '3', 'N'])})"
        if way == 6:
            return f'einsum("ij,ij->", {self.of("ND", depth)}, {self.of("ND", depth)})'
        function = self.draw.choice(["sum", "mean", "norm", "sqnorm", "dim", "max", "min"])
        return f"{function}({self.of(self.any_shape(), depth)})"

    def vector(self, shape: str, depth: int) -> str:
        way = self.draw.randint(0, 5)
        if shape == "D" and way == 0:
            return f"({self.of('N', depth)}) @ ({self.of('ND', depth)})"
        if shape == "N" and way <= 1:
            return f"({self.of('ND', depth)}) @ ({self.of('D', depth)})"
        if shape == "D" and way == 1:
            return f"({self.of('ND', depth)})[{self.draw.randint(1, 2)}]"
        if shape == "D" and way == 2:
            return f"pairs({self.of('D', depth)})"
        if shape == "D" and way == 3:
            return f"[1*({self.of('N', depth)}), {self.of('', depth)}]"
        if shape == "D" and way == 4:
            return f'einsum("nd->d", {self.of("ND", depth)})'
        parts = [self.of("", depth) for _ in range(SIZES[shape])]
        return f"[{', '.join(parts)}]"

    def matrix(self, shape: str, depth: int) -> str:
        way, (rows, columns) = self.draw.randint(0, 6), shape
        if way == 5:
            return f"transpose({self.of(columns + rows, depth)}, {self.draw.choice(['1, 2', '2, 1'])})"
        if way == 6:
            return f"reshape(vec({self.of(columns + rows, depth)}), {rows}, {columns})"
        if way == 0:
            return f"outer({self.of(rows, depth)}, {self.of(columns, depth)})"
        if way == 1:
            return f"({self.of(columns + rows, depth)})'"
        if way == 2:
            return f"({self.of(rows + 'D', depth)}) @ ({self.of('D' + columns, depth)})"
        if way == 3:
            return f'einsum("ik,jk->ij", {self.of(rows + "D", depth)}, {self.of(columns + "D", depth)})'
        written = [f"[{', '.join(self.of('', 0) for _ in range(SIZES[columns]))}]" for _ in range(SIZES[rows])]
        return f"[{', '.join(written)}]"


def entries(draw: Random, count: int) -> list[Fraction]:
    pool = [0, 1, -1, 2, -3, Fraction(1, 2), Fraction(-2, 3), 5, Fraction(7, 4), 10]
    return [Fraction(draw.choice(pool)) for _ in range(count)]


@dataclass
class Place:
    """One point, as the reader and as the judge have it."""

    values: dict[str, list[Fraction]]

    def __post_init__(self) -> None:
        arrays = {name: Array((), (fmpq(size),)) for name, size in SIZES.items()}
        exact = {name: [judge.rational(value) for value in mine] for name, mine in self.values.items()}
        for name, shape in SHAPES.items():
            arrays[name] = Array(tuple(SIZES[letter] for letter in shape), tuple(exact[name]))
        self.reader = Reader(arrays, SIZES, ENCLOSURES)
        self.judge = judge.place(FRAME, SIZES, exact)

    def read(self, node: Node) -> tuple[tuple[int, ...], list] | str:
        """Shape and entries as the reader has them; a word where there is no value."""
        try:
            found = self.reader.evaluate(node)
            return found.shape, list(found.entries)
        except (ArithmeticError, IndexError):
            return "undefined"
        except Undecided:
            return "open"

    def judged(self, node: Node) -> tuple[tuple[int, ...], list] | str:
        """Shape and entries as the judge has them."""
        try:
            found = self.judge.value(node).array
            return found.shape, list(found.reshape(-1))
        except judge.Undefined:
            return "undefined"
        except (judge.Unclear, judge.Misfit):
            return "open"


def overlap(left: Any, right: Any) -> bool:
    if isinstance(left, fmpq) and isinstance(right, fmpq):
        return left == right
    a, b = ball(left), ball(right)
    return bool(a.overlaps(b)) or not (a.is_finite() and b.is_finite())


def differences(count: int, seed: int) -> tuple[list[str], Counter]:
    """Expressions on which reader and judge differ, and how many there were of each kind."""
    ctx.prec = 80
    sentences, seen, wrong = Sentences(seed), Counter(), []
    places: list[Place] = []
    for number in range(count):
        if number % 50 == 0:
            dims = {name: prod(SIZES[letter] for letter in shape) for name, shape in SHAPES.items()}
            places.append(Place({name: entries(sentences.draw, each) for name, each in dims.items()}))
        shape = sentences.draw.choice(["", "", "D", "N", "ND", "DD"])
        text = sentences.of(shape, sentences.draw.randint(1, 4))
        node = expression(Tokens(text))
        one, other = places[-1].read(node), places[-1].judged(node)
        kinds = [found if isinstance(found, str) else "value" for found in (one, other)]
        seen[" and ".join(sorted(set(kinds)))] += 1
        agree = kinds[0] == kinds[1] or "open" in kinds
        if not isinstance(one, str) and not isinstance(other, str):
            agree = one[0] == other[0] and all(map(overlap, one[1], other[1]))
        if not agree:
            wrong.append(f"{text}: {one} and {other}")
    return wrong, seen


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_reader_and_judge_agree_on_generated_expressions(seed: int) -> None:
    wrong, seen = differences(5_000, seed)
    assert not wrong, wrong[0]
    assert seen["value"] > 2_500
    assert seen["undefined"] > 50
