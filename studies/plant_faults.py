"""Plant one fault at a time into the reader and the engines, and see whether a wrong verdict comes out.

Run it as `python -m studies.plant_faults`, or with `--only 3` for one fault. Each fault is a change of one line in a
copy of the package; a process of its own decides claims of known truth with it, by the engines alone and with the
judge. It prints, for the reader and for the engines apart, how many faults changed no verdict, made the engines wrong
and were caught by the judge, or ended in a wrong verdict; and ends with 1 if one did.

First the battery is decided once without a fault, and the lines that each claim runs are noted: a fault can change
only the claims that run its line, so only those are decided with it. With `--log FILE` every result is written as soon
as it is known, and a run that was interrupted goes on where it stopped, as long as the package is the same.
"""
# ruff: noqa: E501

import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from random import Random
from types import FrameType
from typing import Annotated, Any, NamedTuple

import typer
from rich.console import Console

import likewise
from studies import known_claims

PACKAGE = Path(likewise.__file__).parent
EACH = 2  # claims of a family of known_claims
SECONDS = 300.0


class Fault(NamedTuple):
    """A line of a file of claims, and the line that is put in its place."""

    file: str
    old: str
    new: str

    @property
    def where(self) -> str:
        return "reader" if self.file in ("arrays.py", "reader.py", "language/expressions.py") else "engines"


READER = (
    Fault("language/expressions.py", "self._replaced(body, dict(zip(parameters, arguments, strict=True)))",
          "self._replaced(body, {**known, **dict(zip(parameters, arguments, strict=True))})"),
    Fault("arrays.py", "return sum(found[1:], found[0]) if found", "return sum(found[1:-1], found[0]) if found"),
    Fault("arrays.py", "scalar(total(a * b for a, b in zip", "scalar(total(a * a for a, b in zip"),
    Fault("arrays.py", "right.at((*there, i, *column))", "right.at((*there, i, *column)) * 2"),
    Fault("arrays.py", "left.at((*here, *row, i)) * right", "left.at((*here, *row, 0)) * right"),
    Fault("arrays.py", "array.at((*place[:-2], place[-1], place[-2]))", "array.at((*place[:-2], *place[-2:]))"),
    Fault("arrays.py", "a * b for a in left.entries for b in right.entries", "a * b for b in right.entries for a in left.entries"),
    Fault("arrays.py", "a * b for a, b in combinations(array.entries, 2)", "a + b for a, b in combinations(array.entries, 2)"),
    Fault("arrays.py", "before = tuple(i - 1 for i in indices)", "before = tuple(max(i - 2, 0) for i in indices)"),
    Fault("arrays.py", "array.at((i, i)) for i", "array.at((0, i)) for i"),
    Fault("arrays.py", "start=1,", "start=2,"),
    Fault("arrays.py", "list(chain.from_iterable(part.entries for part in parts))",
          "list(chain.from_iterable(part.entries for part in reversed(parts)))"),
    Fault("arrays.py", "tuple(chain.from_iterable(row.entries for row in rows))",
          "tuple(chain.from_iterable(row.entries for row in reversed(rows)))"),
    Fault("arrays.py", "own = ([i if n > 1 else 0 for i", "own = ([0 for i"),
    Fault("reader.py", "return self.evaluate(operand).map(operator.neg)", "return self.evaluate(operand)"),
    Fault("reader.py", '"-": operator.sub', '"-": operator.add'),
    Fault("reader.py", "arrays.broadcast(self.scalars.divide, self.evaluate(left), self.evaluate(right))",
          "arrays.broadcast(self.scalars.divide, self.evaluate(right), self.evaluate(left))"),
    Fault("reader.py", "self.scalars.number(Fraction(len(given[0].entries)))", "self.scalars.number(Fraction(len(given[0].entries) + 1))"),
    Fault("reader.py", "total(value * value for value in array.entries)", "total(value for value in array.entries)"),
    Fault("reader.py", 'arrays.scalar(self._elementwise("sqrt")(SHAPED["sqnorm"](given[0]).scalar))', 'SHAPED["sqnorm"](given[0])'),
    Fault("reader.py", 'Fraction(function == "ones")', "Fraction(1)"),
    Fault("reader.py", "Fraction(place[0] == place[1])", "Fraction(place[0] <= place[1])"),
    Fault("reader.py", "array.map(operator.neg) if negated else array for array", "array for array"),
    Fault("reader.py", "arrays.broadcast(pick, *turned)",
          "arrays.scalar(pick(*(e for a in turned for e in a.entries)))"),
    Fault("reader.py", "raised.entries[i : i + n]", "raised.entries[i : i + n - 1]"),
    Fault("reader.py", "top - i for i", "top + i for i"),
    Fault("reader.py", "places = range(self.whole(node.lowest), self.whole(node.highest) + 1)", "places = range(self.whole(node.lowest), self.whole(node.highest))"),
    Fault("reader.py", "turned = None if other.rate is None else -(quotient * other.rate)", "turned = None if other.rate is None else quotient * other.rate"),
    Fault("reader.py", "if not _is_zero(at.scalars, a + b):", "if a is None:"),
    Fault("reader.py", "best = place if above > 0 else best", "best = place if above < 0 else best"),
    Fault("reader.py", "parts[0] = value * self.scalars.elementwise[\"log\"](self.value) * exponent.rate", "parts[0] = value * exponent.rate"),
    Fault("reader.py", '"dim": lambda array: arrays.scalar(Fraction(len(array.entries)))', '"dim": lambda array: arrays.scalar(Fraction(len(array.entries) + 1))'),
)  # fmt: skip
ENGINES = (
    Fault("algebra/coordinates.py", '"<=": lambda sign: sign <= 0', '"<=": lambda sign: sign < 0'),
    Fault("algebra/coordinates.py", '">": lambda sign: sign > 0', '">": lambda sign: sign >= 0'),
    Fault("algebra/coordinates.py", 'return not compare(left, "==", right)', 'return compare(left, "==", right)'),
    Fault("algebra/coordinates.py", '"relu": lambda value: _maximum(value, Fraction(0))', '"relu": lambda value: value'),
    Fault("algebra/coordinates.py", '"abs": lambda value: _maximum(value, -value)', '"abs": lambda value: value'),
    Fault("algebra/elementary.py", "(exp(angle) + exp(-angle)) * Fraction(1, 2)", "(exp(angle) + exp(-angle))"),
    Fault("algebra/elementary.py", "(exp(-angle) - exp(angle)) * of_atom", "(exp(angle) - exp(-angle)) * of_atom"),
    Fault("algebra/elementary.py", "return -maximum(*(-form(value)", "return maximum(*(-form(value)"),
    Fault("growth/impossible.py", '[_row(form, ">=", LinearForm.made(lowest)), _row(form, "<=", LinearForm.made(highest))]', '[_row(form, ">=", LinearForm.made(highest))]'),
    Fault("growth/impossible.py", "if not isinstance(solve(rows), Certificate) and not indivisible(rows, whole):", "if False:"),
    Fault("growth/impossible.py", '"<" if comparison in ("<", ">") else "<="', '"<"'),
    Fault("smt/terms.py", '"abs": lambda value: maximum(value, -value)', '"abs": lambda value: maximum(value, Fraction(0))'),
    Fault("smt/terms.py", "largest = z3.If(a >= b, a, b)", "largest = z3.If(a <= b, a, b)"),
    Fault("smt/terms.py", "part = Part(symbol, other != 0, symbol * other == term)", "part = Part(symbol, other != 0, symbol == term)"),
    Fault("smt/problems.py", "for assumption in claim.assumptions:", "for assumption in claim.assumptions[:0]:"),
    Fault("growth/linear.py", 'raise NotLinear("a product of variables")', "pass"),
    Fault("growth/everywhere.py", "min(shifted.terms.values(), default=Fraction(0)) >= 0 and", "shifted.coefficient() >= 0 and"),
    Fault("growth/everywhere.py", "Polynomial.variable(name) + least.get(name, 1)", "Polynomial.variable(name) + least.get(name, 2)"),
    Fault("growth/everywhere.py", '"<=": left <= right', '"<=": left < right'),
    Fault("growth/everywhere.py", "ceil(bound) + (strict and bound.denominator == 1)", "ceil(bound) + 1"),
    Fault("growth/orders.py", 'Row(logarithm(b) - logarithm(a) + one, "<=")', 'Row(logarithm(a) - logarithm(b) + one, "<=")'),
    Fault("growth/orders.py", "if self.f.exact and len(self.f.sums) == 1 and not self.f.positive:", "if self.f is None:"),
    Fault("growth/orders.py", "return max(value) if value and value[max(value)] > 0 else NEVER", "return min(value) if value else NEVER"),
    Fault("growth/powers.py", "lambda part: raised(part, Fraction(1, 2))", "lambda part: part"),
    Fault("growth/powers.py", 'minimum=_smallest', 'minimum=_largest'),
    Fault("algebra/identities.py", "None if not methods or None in methods else max(filter(None, methods), key=METHODS.index)",
          "max(filter(None, methods), key=METHODS.index, default=None)"),
    Fault("algebra/identities.py", "if not reader.of(difference) <= allowed(comparison):", "if not reader.of(difference) & allowed(comparison):"),
    Fault("algebra/identities.py", 'comparison != "==" and signs <= allowed(comparison)', 'comparison != "==" and signs & allowed(comparison)'),
    Fault("algebra/inequalities.py", 'yield first * second - both * both, ">="', 'yield both * both - first * second, ">="'),
    Fault("algebra/inequalities.py", "exp(of_key(exponent)) - 1 - of_key(exponent)", "exp(of_key(exponent)) - 3 - of_key(exponent)"),
    Fault("algebra/stability.py", "return {name: max(highest.get(name, 0), 1) for name in question.sizes}", "return dict.fromkeys(question.sizes, 1)"),
    Fault("algebra/witnesses.py", "return all(violation(at, each) is None for each in asked.assumptions)", "return True"),
    Fault("algebra/questions.py", 'Binary("*", bound, Call("abs", (right,))) if within.relative else bound', "bound"),
    Fault("algebra/questions.py", 'above = right.value > 0 if comparison == ">=" else right.value >= 0', "above = True"),
    Fault("algebra/intervals.py", "below, above = difference.b < 0, difference.a > 0", "below, above = difference.a < 0, difference.b > 0"),
    Fault("algebra/intervals.py", "if _outside(asked, box) or _holds(asked, box):", "if counted > 3 or _holds(asked, box):"),
    Fault("algebra/intervals.py", "ends[0] if slope.a >= 0 else ends[1]", "ends[1] if slope.a >= 0 else ends[0]"),
    Fault("chance/moments.py", "turned[i] * Fraction(1, 2)", "turned[i]"),
    Fault("chance/moments.py", "self.covariance[i][j] * e * moment(fewer)", "self.covariance[i][j] * moment(fewer)"),
    Fault("chance/moments.py", "substitute(value, {self.atom: -1})", "substitute(value, {self.atom: 1})"),
    Fault("chance/moments.py", "for k in range(n + 1)), form(0)) / (n + 1)", "for k in range(n + 1)), form(0)) / (n + 2)"),
    Fault("chance/chances.py", "self.expected(value * value) - self.expected(value) ** 2", "self.expected(value * value)"),
    Fault("chance/chances.py", "weight = weight * Fraction(1, 2)", "weight = weight * Fraction(1, 4)"),
    Fault("chance/chances.py", "law.chance if up else 1 - law.chance", "law.chance if up else law.chance"),
    Fault("chance/pieces.py", "(factorial(n), factorial(n - k)) / fall", "(factorial(n), factorial(k)) / fall"),
    Fault("chance/pieces.py", "(below(high, 1) - below(low, -1)) * HALF", "(below(high, 1) - below(low, -1))"),
    Fault("chance/pieces.py", "if law.lowest is not None and sign(cut - law.lowest) <= 0:", "if law.lowest is not None:"),
    Fault("chance/wick.py", "total, half = form(0), Fraction(1, 2)", "total, half = form(0), Fraction(1)"),
    Fault("chance/wick.py", "4: -2", "4: 2"),
    Fault("chance/gaussian.py", "variance = spread * spread if each.kind.is_std else spread", "variance = spread"),
    Fault("shapes.py", "if a[-1] != b[-2]:", "if a[0] != b[-2]:"),
    Fault("smt/orders.py", "low = None if mine.low is None or its.low is None else mine.low + its.low", "low = mine.low"),
    Fault("smt/orders.py", "if not stated.book.excluded(small.high > large.low):", "if not stated.book.excluded(small.high < large.low):"),
    Fault("smt/entries.py", "mine.entry * mine.entry <= both", "mine.entry <= both"),
    Fault("smt/curves.py", "other.y >= one.y * (1 + step), one.y >= other.y * (1 - step)", "other.y <= one.y * (1 + step), one.y >= other.y * (1 - step)"),
    Fault("smt/problems.py", "found.known.append(whole >= 1)", "found.known.append(whole >= 2)"),
    Fault("spelling.py", "minus(a, times(b, call(\"floor\", over_(a, b))))", "minus(a, call(\"floor\", over_(a, b)))"),
    Fault("spelling.py", "over_(call(\"log\", x), call(\"log\", TWO))", "call(\"log\", x)"),
    Fault("spelling.py", "minus(ONE, over_(TWO, plus(call(\"exp\", times(TWO, x)), ONE)))", "minus(ONE, over_(TWO, plus(call(\"exp\", x), ONE)))"),
    Fault("shapes.py", "if len(lengths) > 1:", "if len(lengths) > 2:"),
    Fault("shapes.py", "if first != dim:", "if first is None:"),
    Fault("shapes.py", "return Shape((shapes[0].length, shapes[1].length))", "return Shape((shapes[1].length, shapes[0].length))"),
    Fault("arithmetic/cited.py", "if high < 0 or (high == 0 and not strict):", "if high < 0 or high == 0:"),
    Fault("arithmetic/cited.py", '[over] if self.sign in ("<", "<=") else [under]', '[under] if self.sign in ("<", "<=") else [over]'),
)  # fmt: skip
FAULTS = (*READER, *ENGINES)

# (claim, whether it is true): one pair for every operation that a fault touches.
BATTERY: tuple[tuple[str, bool], ...] = (
    ("given: x, y in R\nf(a) = a + y\ng(y) = 2*f(y)\nassert: g(3) == 2*(3 + y)", True),
    ("given: x, y in R\nf(a) = a + y\ng(y) = 2*f(y)\nassert: g(3) == 12", False),
    ("given: A in R^(2, 3); b in R^3\nassert: (A @ b)[2] == A[2, 1]*b[1] + A[2, 2]*b[2] + A[2, 3]*b[3]", True),
    ("given: A in R^(2, 2)\nassert: A' == A", False),
    ("given: A in R^(2, 2)\nassert: (A')[1, 2] == A[2, 1]", True),
    ("given: A, B in R^(2, 2)\nassert: (A @ B)' == B' @ A'", True),
    ("given: A, B in R^(2, 2)\nassert: (A @ B)' == A' @ B'", False),
    ("given: x in R^2; y in R^3\nassert: outer(x, y)[2, 1] == x[2]*y[1]", True),
    ("given: x in R^2; y in R^2\nassert: outer(x, y) == outer(y, x)", False),
    ("given: x in R^3\nassert: sum(pairs(x)) == (sum(x)^2 - sqnorm(x))/2", True),
    ("given: x in R^3\nassert: sum(pairs(x)) == sum(x)^2", False),
    ("given: A in R^(3, 3)\nassert: tr(A) == A[1, 1] + A[2, 2] + A[3, 3]", True),
    ("given: A in R^(2, 2)\nassert: tr(A) == sum(A)", False),
    ('given: A, B in R^(2, 2)\nassert: einsum("ij,jk->ik", A, B) == A @ B', True),
    ('given: A, B in R^(2, 2)\nassert: einsum("ij,kj->ik", A, B) == A @ B', False),
    ("given: x, y in R^2\nassert: [x, y][3] == y[1]", True),
    ("given: a, b, c, d in R\nassert: [[a, b], [c, d]][2, 1] == c", True),
    ("given: a, b, c, d in R\nassert: [[a, b], [c, d]][2, 1] == b", False),
    ("given: A in R^(2, 3); b in R^3\nassert: (A + b)[2, 3] == A[2, 3] + b[3]", True),
    ("given: x in R^2\nassert: -x + x == 0", True),
    ("given: x, y in R\nassert: x - y == -(y - x)", True),
    ("given: x, y in R\nassert: x - y == y - x", False),
    ("given: x, y in R\nassume: x > 0; y > 0\nassert: x/y == y/x", False),
    ("given: x, y in R\nassume: x > 0; y > 0\nassert: (x/y)*(y/x) == 1", True),
    ("given: x in R^D\nassert: mean(x)*dim(x) == sum(x)", True),
    ("given: x in R^3\nassert: mean(x) == sum(x)/4", False),
    ("given: q, k in R^D\nassert: sqnorm(q + k) + sqnorm(q - k) == 2*sqnorm(q) + 2*sqnorm(k)", True),
    ("given: q in R^D\nassert: sqnorm(2*q) == 2*sqnorm(q)", False),
    ("given: q in R^D\nassert: norm(3*q) == 3*norm(q)", True),
    ("given: q in R^D\nassert: norm(3*q) == 9*norm(q)", False),
    ("given: x in R^3\nassert: dot(ones(3), x) + dot(zeros(3), x) == sum(x)", True),
    ("given: x in R^3\nassert: I(3) @ x == x", True),
    ("given: x, y in R\nassert: max(x, y) + min(x, y) == x + y", True),
    ("given: x, y in R^2\nassert: sum(max(x, y)) >= max(x) + max(y)", False),
    ("given: x in R^2\nassert: sum(softmax(x)) == 1", True),
    ("given: x in R^2\nassert: sum(softmax(x)) == 2", False),
    ("sizes: n\nassert: choose(n, 2) == n*(n - 1)/2", True),
    ("sizes: n\nassert: choose(n, 2) == n*(n + 1)/2", False),
    ("given: x in R\nassert: x^2 <= 0", False),
    ("given: x in R\nassert: x^2 > 0", False),
    ("given: x in R\nassert: x^2 >= 2*x - 1", True),
    ("given: x, y in R^2\nassert: x != y", False),
    ("given: x in R\nassert: relu(x) - relu(-x) == x", True),
    ("given: x in R\nassert: abs(x) == relu(x)", False),
    ("given: x in R\nassert: sin(x)^2 + cos(x)^2 == 1", True),
    ("given: x, y in R\nassert: sin(x + y) == sin(x)*cos(y) + cos(x)*sin(y)", True),
    ("given: x, y in R\nassert: sin(x - y) == sin(y - x)", False),
    ("given: x in [0, 1]\nassert: x >= 0", True),
    ("given: x in [0, 1]\nassert: x <= 1/2", False),
    ("given: x, y in R\nassume: x < y\nassert: x <= y", True),
    ("given: x, y in R\nassume: x <= y\nassert: x < y", False),
    ("given: x, y in R\nassert: max(x, y) == x", False),
    ("given: x, y in R\nassert: abs(x) + abs(y) >= abs(x + y)", True),
    ("given: x in R\nassert: x == 0 within 1", False),
    ("given: x in [0, 1]\nassert: x == 1/2 within 0.5", True),
    ("given: x in [1, 4]\nassert: x == 2 within 50%", False),
    ("given: x in [2, 4]\nassert: x == 3 within 34%", True),
    ("sizes: N, D\nassert: N*D + 1 >= N + D", True),
    ("sizes: N, D\nassert: N*D > N + D", False),
    ("sizes: N\nassert: N^2 >= 2", False),
    ("sizes: N\nassume: N > 3\nassert: N^2 >= 16", True),
    ("sizes: N\nassume: N >= 3\nassert: N^2 >= 16", False),
    ("sizes: N, D\nassert: N*D in O(N^2 + D^2)", True),
    ("sizes: N, D\nassert: N*D in O(N + D)", False),
    ("sizes: N\nassert: -N^2 in O(N)", False),
    ("sizes: N\nassert: sqrt(N) in Theta(N)", False),
    ("sizes: N, D\nassert: min(N, D) in O(N)", True),
    ("sizes: N, D\nassert: max(N, D) in O(N)", False),
    ("given: q, k in R^D\nassert: dot(q, k)^2 <= sqnorm(q)*sqnorm(k)", True),
    ("given: q, k in R^D\nassert: dot(q, k)^2 >= sqnorm(q)*sqnorm(k)", False),
    ("given: x in R\nassert: exp(x) >= 1 + x", True),
    ("given: x in R\nassert: exp(x) >= 3 + x", False),
    ("given: q, k in R^D\nphi(x) = [1, sqrt(2)*x, x*x]\nassert: dot(phi(q), phi(k)) == (dot(q, k) + 1)^2", False),
    ("given: x in [0, 1]\nassert: x*(1 - x) <= 1/3", True),
    ("given: x in [0, 1]\nassert: x*(1 - x) <= 1/5", False),
    ("given: x in [0, 2]\nassert: exp(x) <= 7", False),
    ("given: w ~ N(0, 1)\nassert: E[w^4] == 3", True),
    ("given: w ~ N(0, 1)\nassert: E[w^4] == 1", False),
    ("given: a in R; w ~ N(0, 1)\nassert: E[exp(a*w)] == exp(a^2/2)", True),
    ("given: a in R; w ~ N(0, 1)\nassert: E[exp(a*w)] == exp(a^2)", False),
    ("given: w ~ N(0, std=2)\nassert: Var[w] == 4", True),
    ("given: w ~ N(1, 2)\nassert: Var[w] == 3", False),
    ("given: u ~ U(0, 1)\nassert: E[u^2] == 1/3", True),
    ("given: u ~ U(0, 1)\nassert: E[u^2] == 1/4", False),
    ("given: s ~ Rademacher(D)\nassert: E[sum(s)^2] == D", True),
    ("given: x in R^D; s ~ Rademacher(D)\nassert: E[dot(s, x)^4] == 3*sqnorm(x)^2", False),
    ("given: s ~ Rademacher(3)\nassert: P[sum(s) >= 1] == 1/2", True),
    ("given: s ~ Rademacher(2)\nassert: P[sum(s) == 0] == 1/4", False),
    ("given: q, k in R^D; w ~ N(0, I(D))\nassert: E[dot(w, q)*dot(w, k)] == dot(q, k)", True),
    ("given: q in R^D; w ~ N(0, I(D))\nassert: E[exp(dot(w, q))] == exp(sqnorm(q))", False),
    ("given: w ~ N(0, std=3*I(D))\nassert: E[sqnorm(w)] == 9*D", True),
    ("given: x[n, d], W[d, m]\nassert: x @ W has shape [n, m]", True),
    ("given: x[n, d], W[m, d]\nassert: x @ W has shape [n, m]", False),
    ("given: x[n, d], y[m, d]\nassert: x + y has shape [n, d]", False),
    ('given: x[b, d], W[h, q, d]\nassert: einsum("bd,hdq->bhq", x, W) has shape [b, h, q]', False),
    ("given: x in R^n; y in R^m\nassert: outer(x, y) has shape [n, m]", True),
    ("given: x in R^D\nassert: grad(sqnorm(x), x) == 2*x", True),
    ("given: x in R^D\nassert: grad(sqnorm(x), x) == x", False),
    ("given: x in R\nassert: grad(abs(x), x) == sign(x)", False),
    ("given: x in R\nassume: x > 0\nassert: grad(1/x, x) == -1/x^2", True),
    ("given: x in R\nassume: x > 0\nassert: grad(1/x, x) == 1/x^2", False),
    ("given: x in R\nassert: grad(2^x, x) == 2^x*log(2)", True),
    ("given: x in R\nassert: grad(2^x, x) == 2^x", False),
    ("given: x in R^2\nassume: x[1] > x[2]\nassert: argmax(x) == 2", False),
    ("sizes: N\nassert: sum(i in 1..N, i) == N*(N + 1)/2", True),
    ("sizes: N\nassert: sum(i in 1..N, i^2) == N*(N + 1)/2", False),
    ("given: x in R^3\nassert: sum(i in 1..3, i*x[i]) == x[1] + 2*x[2] + 3*x[3]", True),
    ("given: x in R^3\nassert: sum(i in 1..3, i*x[i]) == x[1] + 2*x[2]", False),
    ("given: n in 1..9\nassert: mod(n, 3) == n - 3*floor(n/3)", True),
    ("given: n in Z\nassert: mod(n^2, 4) != 2", True),
    ("given: n in Z\nassert: mod(n, 5) == n - floor(n/5)", False),
    ("assert: log2(8) == 3", True),
    ("assert: log2(8) == log(8)", False),
    ("given: x in R\nassert: tanh(x) == (exp(x) - exp(-x))/(exp(x) + exp(-x))", True),
    ("given: x in R\nassert: tanh(x) == 1 - 2/(exp(x) + 1)", False),
    ("sizes: N\nassert: N in O(N*log(N))", False),
    ("sizes: N\nassume: N >= 2\nassert: N in O(N*log(N))", True),
    ("sizes: N, D\nassert: N*log(D) in O(N)", False),
    ("sizes: N, D\nassert: min(N, D)*max(N, D) in Theta(N*D)", True),
    ("sizes: N\nassert: 4^N in O(2^N)", False),
    ("given: x in R^D\nassert: max(x) <= log(sum(exp(x)))", True),
    ("given: x in R^D\nassert: max(x) >= log(sum(exp(x)))", False),
    ("given: x in R^D\nassert: sum(x)^2 <= D*sqnorm(x)", True),
    ("given: x in R^D\nassert: sum(x)^2 <= sqnorm(x)", False),
    ("given: x in R\nassert: log(1 + exp(x)) <= relu(x) + 0.7", True),
    ("given: x in R\nassert: log(1 + exp(x)) <= relu(x) + 0.6", False),
    ("sizes: N\nassert: N^3 >= 8", False),
    ("given: p in [0, 1]; b ~ Bernoulli(p)\nassert: E[b^2] == p", True),
    ("given: p in [0, 1]; b ~ Bernoulli(p)\nassert: P[b == 0] == p", False),
    ("given: u ~ U(0, 1)\nassert: P[u^2 < 1/4] == 1/2", True),
    ("given: u ~ U(0, 1)\nassert: P[u^2 < 1/4] == 1/4", False),
    ("given: x ~ Exp(1)\nassert: E[x^3] == 6", True),
    ("given: x ~ Exp(1)\nassert: E[x^3] == 3", False),
    ("given: w ~ N(0, 1)\nassert: E[relu(w)] == 1/sqrt(2*pi)", True),
    ("given: w ~ N(0, 1)\nassert: E[relu(w)] == 2/sqrt(2*pi)", False),
    ("given: w ~ N(0, 1); x in R\nassert: P[w <= x] == normcdf(x)", True),
    ("assert: 2 < 2", False),
    ("assert: 1 <= 2", True),
    ("assert: sqrt(2) <= 1.5", True),
)


def battery() -> list[tuple[str, bool]]:
    """Claims of known truth: those above, and some of every family of known_claims."""
    random = Random(0)
    made = [family(random) for family in known_claims.FAMILIES.values() for _ in range(EACH)]
    return [*BATTERY, *((claim.text, claim.true) for claim in made)]


def lines_of(fault: Fault) -> set[int]:
    """The lines of its file that a fault changes."""
    text = (PACKAGE / "claims" / fault.file).read_text(encoding="utf-8")
    if fault.old not in text:
        raise ValueError(f"{fault.file} has no line {fault.old!r}: the fault must be planted elsewhere")
    found: set[int] = set()
    start = text.find(fault.old)
    while start >= 0:
        first = text.count("\n", 0, start) + 1
        found.update(range(first, first + fault.old.count("\n") + 1))
        start = text.find(fault.old, start + 1)
    return found


def watcher(watched: dict[str, dict[int, list[int]]], hit: set[int]) -> Callable[..., Any]:
    """A trace function that adds the faults whose lines run to `hit`."""

    def traced(frame: FrameType, event: str, _: object) -> Any:
        lines = watched.get(frame.f_code.co_filename)
        if lines is None or frame.f_code.co_name == "<module>":
            return None
        hit.update(lines.get(frame.f_lineno, ()))
        return traced

    return traced


def reached() -> dict[int, list[int]]:
    """The claims of the battery that run the line of each fault; all of them where it runs only at import."""
    claims = battery()
    watched: dict[str, dict[int, list[int]]] = {}
    for number, fault in enumerate(FAULTS):
        file = watched.setdefault(str(PACKAGE / "claims" / fault.file), {})
        for line in lines_of(fault):
            file.setdefault(line, []).append(number)
    decide(*claims[0])  # imports what every claim needs
    found: dict[int, list[int]] = {number: [] for number in range(len(FAULTS))}
    for place, claim in enumerate(claims):
        for number in _in_a_process_of_its_own(watched, claim):
            found[number].append(place)
    return {number: places or list(range(len(claims))) for number, places in found.items()}


def _in_a_process_of_its_own(watched: dict[str, dict[int, list[int]]], claim: tuple[str, bool]) -> list[int]:
    """The faults whose lines one claim runs; a fork, so that no cache of an earlier claim hides a line."""
    read, write = os.pipe()
    child = os.fork()
    if not child:
        hit: set[int] = set()
        sys.settrace(watcher(watched, hit))
        try:
            decide(*claim, budget=20.0)
        finally:
            sys.settrace(None)
            with os.fdopen(write, "w") as file:
                json.dump(sorted(hit), file)
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as file:
        text = file.read()
    os.waitpid(child, 0)
    return json.loads(text)


def decide(text: str, true: bool, budget: float = 2.0) -> Counter[str]:
    """Whether the engines alone, and with the judge, are wrong about a claim or disagree."""
    from likewise.claims.agreement import agreed
    from likewise.claims.engines import found_by_engines
    from likewise.claims.language.parser import parse

    try:
        claim = replace(parse(text), seed=1, budget=budget)
        alone = found_by_engines(claim)
        both = agreed(claim, alone)
    except Exception:
        return Counter(errors=1)
    contrary = "refuted" if true else "holds"
    return Counter(
        {
            "engines wrong": int(alone.verdict == contrary),
            "wrong": int(both.verdict == contrary),
            "disagreements": int(both.grade == "disagreement"),
        }
    )


def decided(places: list[int]) -> dict[str, int]:
    """In a process with a fault: how often claims of the battery are answered wrongly, or with a disagreement."""
    claims = battery()
    return dict(sum((decide(*claims[place]) for place in places), Counter(claims=len(places))))


def with_fault(fault: Fault | None, places: list[int]) -> dict[str, int]:
    """What claims of the battery give in a copy of the package with the fault in it."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "likewise"
        shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__", "*.html"))
        if fault is not None:
            file = copy / "claims" / fault.file
            file.write_text(file.read_text(encoding="utf-8").replace(fault.old, fault.new), encoding="utf-8")
        run = f"import json; from studies.plant_faults import decided; print(json.dumps(decided({places})))"
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([folder, str(PACKAGE.parent)]), "OMP_NUM_THREADS": "1"}
        done = subprocess.run(
            [sys.executable, "-c", run],
            env=env,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            cwd=folder,
        )
    if done.returncode:
        return {"errors": 1}
    return json.loads(done.stdout.splitlines()[-1])


def state() -> str:
    """A hash of the package and of this file: results of another state are not taken up again."""
    files = [*sorted((PACKAGE / "claims").rglob("*.py")), Path(__file__), Path(known_claims.__file__)]
    return sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:16]


class Log:
    """Results of faults by their number, one line each in a file; in memory alone without one."""

    def __init__(self, path: Path | None) -> None:
        self.path, self.state = path, state()
        self.places: dict[int, list[int]] | None = None
        self.seen: dict[int, dict[str, int]] = {}
        for line in path.read_text(encoding="utf-8").splitlines() if path and path.exists() else []:
            row = json.loads(line)
            if row["state"] != self.state:
                continue
            if "places" in row:
                self.places = {int(number): places for number, places in row["places"].items()}
            else:
                self.seen[row["fault"]] = row["seen"]

    def _write(self, row: dict[str, object]) -> None:
        if self.path:
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"state": self.state, **row}) + "\n")

    def reached(self) -> dict[int, list[int]]:
        """The claims that each fault may change."""
        if self.places is None:
            self.places = reached()
            self._write({"places": self.places})
        return self.places

    def of(self, number: int) -> dict[str, int]:
        """What a fault gives."""
        if number not in self.seen:
            self.seen[number] = with_fault(FAULTS[number], self.reached()[number])
            self._write({"fault": number, "seen": self.seen[number]})
        return self.seen[number]


def main(
    only: Annotated[int | None, typer.Option(help="Number of one fault; all without it.")] = None,
    log: Annotated[Path | None, typer.Option(help="File of results, from which an interrupted run goes on.")] = None,
) -> None:
    """Plant the faults one by one."""
    console, counts, wrong = Console(), {"reader": Counter(), "engines": Counter()}, 0
    chosen, results = list(range(len(FAULTS))) if only is None else [only], Log(log)
    for number in chosen:
        fault, seen = FAULTS[number], results.of(number)
        caught = seen.get("engines wrong", 0) > 0 and not seen.get("wrong", 0)
        kind = "WRONG VERDICT" if seen.get("wrong") else "caught by the judge" if caught else "no wrong finding"
        counts[fault.where][kind] += 1
        wrong += seen.get("wrong", 0) > 0
        console.print(f"{number:3} {fault.where:8} {kind:20} {seen} {fault.file}: {fault.old[:60]}", markup=False)
    console.print_json(json.dumps({"faults": len(chosen), **{name: dict(each) for name, each in counts.items()}}))
    raise typer.Exit(1 if wrong else 0)


if __name__ == "__main__":
    typer.run(main)
