"""Exact forms of expressions: ratios of polynomials (python-flint) over atoms, with the relations of the atoms.

An atom is a name, pi, i, exp(m/60), a twelfth root, log|p|, a factorial, or a function of which nothing is known. Sums
and products of roots, exponentials, logarithms, sines and cosines become polynomials in atoms, so an identity is a
polynomial that is 0 after the relations are applied. That is a proof. The converse is not: other values may be equal.

Names are real. Every rewriting holds wherever both sides are defined; log(p) of a polynomial stands for log|p|.
"""

import re
import time
from collections.abc import Callable
from fractions import Fraction
from math import comb
from typing import Any

from likewise.grading.arithmetic import (
    BITS,
    CONTEXT,
    GENERATORS,
    ONE,
    PARTS,
    Arithmetic,
    Poly,
    Ratio,
    Unclear,
    rational,
)
from likewise.grading.parsing import bare
from likewise.reading.expressions import Node


class Forms(Arithmetic):
    """Exact forms of trees."""

    def form(self, node: Node) -> Ratio:
        """The exact form of a tree."""
        if time.thread_time() > self.until:
            raise Unclear("the exact form took too long")
        node = bare(node)
        method = getattr(self, f"_{KINDS.get(node.kind, node.kind)}", None)
        if method is None:
            raise Unclear(f"{node.kind} has no exact form")
        return method(node)

    def _number(self, node: Node) -> Ratio:
        if len(node.text) > BITS // 4:
            raise Unclear("a number that is too large")
        return self.constant(Fraction(node.text))

    def _name(self, node: Node) -> Ratio:
        match node.text:
            case "pi":
                return self.opaque("pi")
            case "e" if "e" not in self.bound:
                return self.exp(self.constant(1))
            case "i" if "i" not in self.bound:
                return self.imaginary()
            case "infty":
                raise Unclear("infinity inside an expression")
        if node.text in self.bound:
            return self.opaque("bound", self.bound[node.text])
        return self.opaque("name", node.text)

    def _index(self, node: Node) -> Ratio:
        return self.opaque("index", node.text, tuple(map(self.form, node.parts)))

    def _add(self, node: Node) -> Ratio:
        one, other = map(self.form, node.parts)
        return self.add(one, other if node.kind == "+" else self.negative(other))

    def _neg(self, node: Node) -> Ratio:
        return self.negative(self.form(node.parts[0]))

    def _product(self, node: Node) -> Ratio:
        if "⊙" in node.joined:
            raise Unclear("an elementwise product")
        found = self.form(node.parts[0])
        for part in node.parts[1:]:
            found = self.times(found, self.form(part))
        return found

    def _divide(self, node: Node) -> Ratio:
        one, other = map(self.form, node.parts)
        return self.over(one, other)

    def _percent(self, node: Node) -> Ratio:
        return self.times(self.form(node.parts[0]), self.constant(Fraction(1, 100)))

    def _degrees(self, node: Node) -> Ratio:
        return self.times(self.form(node.parts[0]), self.times(self.opaque("pi"), self.constant(Fraction(1, 180))))

    def _power(self, node: Node) -> Ratio:
        return self.power(self.form(node.parts[0]), self.form(node.parts[1]))

    def _root(self, node: Node) -> Ratio:
        return self.power(self.form(node.parts[0]), self.over(self.constant(1), self.form(node.parts[1])))

    def _abs(self, node: Node) -> Ratio:
        return self.absolute(self.form(node.parts[0]))

    def _factorial(self, node: Node) -> Ratio:
        return self.factorial(self.form(node.parts[0]))

    def _choose(self, node: Node) -> Ratio:
        above, below = map(self.form, node.parts)
        return self.choose(above, below)

    def _floor(self, node: Node) -> Ratio:
        value = self.form(node.parts[0])
        fixed = rational(value)
        if fixed is not None:
            return self.constant(fixed.__floor__() if node.kind == "floor" else fixed.__ceil__())
        if self.is_whole(value):
            return value
        if (found := self._whole_quotient(value, up=node.kind == "ceil")) is not None:
            return found
        return self.rounded(value) if node.kind == "floor" else self.negative(self.rounded(self.negative(value)))

    def _call(self, node: Node) -> Ratio:
        name = node.text
        if name in ("max", "min") and len(node.parts) > 1:
            return self._extreme(node)
        if name == "conjugate":
            return self.conjugate(self.form(node.parts[0]))
        if name == "remainder":
            return self._remainder(*map(self.form, node.parts))
        if name in ("gcd", "lcm"):
            return self._common(node)
        if name in ("E", "Var", "Cov") and len(node.parts) == 1 + (name == "Cov") and _random_names(node):
            return self._moments(node)
        if re.fullmatch(r"Pr?(_given_\d)?", name) and (events := _events(node)):
            return self._probability(name, events)
        values = tuple(map(self.form, node.parts))
        if len(values) == 1 and name in SINGLE:
            return SINGLE[name](self, values[0])
        if name == "log":
            return self._logarithm(values[0])
        if name == "lg":
            return self.over(self.log(values[0]), self.opaque("log_base", "lg"))
        if name == "log_base":
            return self.over(self.log(values[0]), self.log(values[1]))
        if name in ("norm", "det", "tr"):
            raise Unclear(f"{name} of what is no matrix")
        return self.opaque("call", name, values)

    def _moments(self, node: Node) -> Ratio:
        """E is linear; Var[u] = E[u^2] - E[u]^2; Cov[u, v] = E[uv] - E[u] E[v]. Capital letters are random."""
        names = _random_names(node)
        values = list(map(self.form, node.parts))
        places = {
            place for place, atom in enumerate(self.atoms) if atom.kind in ("name", "index") and atom.text in names
        }
        if node.text == "E":
            return self._mean(values[0], places)
        one, other = values[0], values[-1]
        product = self.times(self._mean(one, places), self._mean(other, places))
        return self.add(self._mean(self.times(one, other), places), self.negative(product))

    def _mean(self, value: Ratio, random: set[int]) -> Ratio:
        def moves(atom: int) -> bool:
            mean = self.atoms[atom].kind == "call" and self.atoms[atom].text == "E"
            return not mean and any(self._depends(atom, place) for place in random)

        if any(degree and moves(atom) for atom, degree in enumerate(value.bottom.degrees())):
            return self.opaque("call", "E", (value,))
        found = self.constant(0)
        for exponents, coefficient in value.top.terms():
            inside = tuple(power if power and moves(atom) else 0 for atom, power in enumerate(exponents))
            outside = tuple(power - moved for power, moved in zip(exponents, inside, strict=True))
            mean = self.opaque("call", "E", (Ratio(self.term(1, inside), ONE),)) if any(inside) else self.constant(1)
            found = self.add(found, self.times(mean, Ratio(self.term(coefficient, outside), ONE)))
        return self.over(found, Ratio(value.bottom, ONE))

    def _probability(self, name: str, events: list[str]) -> Ratio:
        """P(A | B) = P(A, B)/P(B); the order of events does not matter."""

        def joint(names: list[str]) -> Ratio:
            inside = tuple(self.opaque("name", each) for each in sorted({*names}))
            return self.opaque("call", "P", inside)

        _, _, given = name.partition("_given_")
        return self.over(joint(events), joint(events[-int(given) :])) if given else joint(events)

    def _logarithm(self, value: Ratio) -> Ratio:
        if self.base == "e":
            return self.log(value)
        base = self.log(self.constant(int(self.base))) if self.base else self.opaque("log_base")
        return self.over(self.log(value), base)

    def _extreme(self, node: Node) -> Ratio:
        values = list(map(self.form, node.parts))
        fixed = [rational(value) for value in values]
        if all(value is not None for value in fixed):
            return self.constant((max if node.text == "max" else min)(value for value in fixed if value is not None))
        if len(values) != 2:
            raise Unclear(f"{node.text} of several")
        half, (one, other) = self.constant(Fraction(1, 2)), values
        gap = self.absolute(self.add(one, self.negative(other)))
        gap = gap if node.text == "max" else self.negative(gap)
        return self.times(half, self.add(self.add(one, other), gap))

    def _remainder(self, value: Ratio, modulus: Ratio) -> Ratio:
        """value mod modulus for integers, from 0 to modulus - 1."""
        one, other = rational(value), rational(modulus)
        if one is None or other is None or one.denominator != 1 or other.denominator != 1 or other <= 0:
            raise Unclear("a remainder that is not of known integers")
        return self.constant(one % other)

    def _common(self, node: Node) -> Ratio:
        from math import gcd, lcm

        fixed = [rational(self.form(part)) for part in node.parts]
        if any(value is None or value.denominator != 1 for value in fixed):
            return self.opaque("call", node.text, tuple(map(self.form, node.parts)))
        return self.constant(
            (gcd if node.text == "gcd" else lcm)(*(int(value) for value in fixed if value is not None))
        )

    def _sum(self, node: Node) -> Ratio:
        index, first, last, body = _ordered(node).parts
        if bare(last) == Node("name", text="infty"):
            return self._series(node)
        low, high = self.form(first), self.form(last)
        start, stop = rational(low), rational(high)
        if start is not None and stop is not None:
            if stop - start > 300 or start.denominator != 1:
                raise Unclear("a sum of many terms")
            found = self.constant(int(node.kind == "prod"))
            for step in range(int(start), int(stop) + 1):
                term = self.form(put(body, index.text, step))
                found = self.times(found, term) if node.kind == "prod" else self.add(found, term)
            return found
        if start == 0 and node.kind == "sum" and (found := self._binomial(index.text, high, body)) is not None:
            return found
        if start is not None and start != 1 and start.denominator == 1:  # from 1: x_{k+1} from 0 is x_k
            body = _moved(body, index.text, int(start) - 1)
            low, high, start = self.constant(1), self.add(high, self.constant(1 - start)), Fraction(1)
        inside, place = self._inside(index.text, body)
        if node.kind == "sum":
            return self._summed(inside, place, low, high)
        if not self.uses(inside.top, place) and not self.uses(inside.bottom, place):
            return self.power(inside, self.add(high, self.add(self.constant(1), self.negative(low))))
        if inside == Ratio(GENERATORS[place], ONE) and start == 1:
            return self.factorial(high)
        return self._multiplied(inside, place, low, high)

    def _binomial(self, index: str, high: Ratio, body: Node) -> Ratio | None:
        """The sum of choose(n, k) c r^k over k from 0 to n: c (1 + r)^n; None if the summand is another."""
        body = bare(body)
        factors = list(map(bare, body.parts)) if body.kind == "product" and "⊙" not in body.joined else [body]
        chosen = [each for each in factors if each.kind == "choose" and bare(each.parts[1]).text == index]
        if len(chosen) != 1 or index in chosen[0].parts[0].names or not self.same(self.form(chosen[0].parts[0]), high):
            return None
        factors.remove(chosen[0])
        one = Node("number", text="1")
        inside, place = self._inside(index, Node("product", (one, *factors), joined=("",) * len(factors)))
        sides = [self._geometric(poly, place) if len(poly) == 1 else None for poly in (inside.top, inside.bottom)]
        above, below = sides
        if above is None or below is None or self.uses(above[1], place) or self.uses(below[1], place):
            return None
        base = self.add(self.constant(1), self.over(above[0], below[0]))
        return None if base.top == 0 else self.times(self.ratio(above[1], below[1]), self.power(base, high))

    def _multiplied(self, inside: Ratio, place: int, low: Ratio, high: Ratio) -> Ratio:
        """A product over an index: a product of exponentials is the exponential of a sum."""
        if len(inside.top) != 1 or len(inside.bottom) != 1:
            return self.opaque("prod", "", (low, high, inside))
        steps = self.add(high, self.add(self.constant(1), self.negative(low)))
        found = self.constant(1)
        for poly, side in ((inside.top, 1), (inside.bottom, -1)):
            fixed = self.constant(_fraction_of(poly.leading_coefficient()))
            for other, raised in enumerate(poly.monoms()[0]):
                if not raised:
                    continue
                if not self._depends(other, place):
                    fixed = self.times(fixed, Ratio(GENERATORS[other] ** raised, ONE))
                    continue
                if self.atoms[other].kind == "exp":
                    exponent = self.times(self.atoms[other].inside[0], self.constant(Fraction(int(raised), PARTS)))
                    once = self.exp(self._summed(exponent, place, low, high))
                else:
                    inner = Ratio(GENERATORS[other], ONE)
                    plain = inner == Ratio(GENERATORS[place], ONE) and rational(low) == 1
                    product = self.factorial(high) if plain else self.opaque("prod", "", (low, high, inner))
                    once = self.whole_power(product, int(raised))
                found = self.times(found, once if side > 0 else self.over(self.constant(1), once))
            if rational(fixed) != 1:
                power = self.power(fixed, steps)
                found = self.times(found, power if side > 0 else self.over(self.constant(1), power))
        return found

    def _series(self, node: Node) -> Ratio:
        """The limit of a geometric series with a known ratio below 1; other series have no form."""
        index, first, _, body = node.parts
        start = rational(self.form(first))
        inside, place = self._inside(index.text, body)
        below = self._geometric(inside.bottom, place) if len(inside.bottom) == 1 else None
        if node.kind == "prod" or start is None or below is None:
            raise Unclear("infinity inside an expression")
        found = self.constant(0)
        for exponents, coefficient in inside.top.terms():
            above = None if exponents[place] else self._geometric(self.term(coefficient, exponents), place)
            ratio = above and rational(self.over(above[0], below[0]))
            if above is None or ratio is None or not 0 < abs(ratio) < 1:
                raise Unclear("a series that is not geometric")
            once = self.times(self.power(self.constant(ratio), self.constant(start)), Ratio(above[1], ONE))
            found = self.add(found, self.over(once, self.constant(1 - ratio)))
        return self.over(found, Ratio(below[1], ONE))

    def _summed(self, inside: Ratio, place: int, low: Ratio, high: Ratio) -> Ratio:
        """A sum over an index: powers of the index by Bernoulli's formula, a geometric series, or atoms."""
        below = self._geometric(inside.bottom, place) if len(inside.bottom) == 1 else None
        if below is None and self.uses(inside.bottom, place):
            return self.opaque("sum", "", (low, high, inside))
        step, bottom = below or (self.constant(1), inside.bottom)
        found = self.constant(0)
        for exponents, coefficient in inside.top.terms():
            power = int(exponents[place])
            rest = self.term(coefficient, (*exponents[:place], 0, *exponents[place + 1 :]))
            above = self._geometric(rest, place)
            ratio = None if above is None else self.over(above[0], step)
            if power <= 10 and not self.uses(rest, place) and ratio == self.constant(1):
                before = self._powers(self.add(low, self.constant(-1)), power)
                total = self.add(self._powers(high, power), self.negative(before))
            elif power == 0 and above is not None and ratio is not None and ratio != self.constant(1):
                rest = above[1]
                after = self.power(ratio, self.add(high, self.constant(1)))
                gap = self.add(after, self.negative(self.power(ratio, low)))
                total = self.over(gap, self.add(ratio, self.constant(-1)))
            else:
                moves = tuple(each if self._depends(other, place) else 0 for other, each in enumerate(exponents))
                stays = tuple(each - moved for each, moved in zip(exponents, moves, strict=True))
                whole = self.over(
                    Ratio(self.term(1, moves), ONE), self.over(Ratio(inside.bottom, ONE), Ratio(bottom, ONE))
                )
                total = self.opaque("sum", "", (low, high, whole))
                rest = self.term(coefficient, stays)
            found = self.add(found, self.times(total, Ratio(rest, ONE)))
        return self.over(found, Ratio(bottom, ONE))

    def _geometric(self, term: Poly, place: int) -> tuple[Ratio, Poly] | None:
        """(r, c) if the term is c * r^index."""
        step, rest = self.constant(1), term
        exponents = term.monoms()[0]
        for other, atom in enumerate(self.atoms):
            if not exponents[other] or not self._depends(other, place):
                continue
            if atom.kind == "exp" and atom.inside[0].bottom == ONE and atom.inside[0].top.degrees()[place] == 1:
                once = Ratio(atom.inside[0].top / GENERATORS[place], ONE)
                step = self.times(
                    step, self.exp(self.times(once, self.constant(Fraction(int(exponents[other]), PARTS))))
                )
            elif atom.kind == "sign" and atom.inside[0].top == GENERATORS[place]:
                step = self.negative(step)
            else:
                return None
            rest = rest / GENERATORS[other] ** exponents[other]
        return step, rest

    def _powers(self, high: Ratio, power: int) -> Ratio:
        """The sum of j^power for j from 1 to high (and 1 from 1, for power 0), by Bernoulli's formula."""
        found = self.constant(0)
        for step in range(power + 1):
            factor = _bernoulli(step) * comb(power + 1, step) / (power + 1) * (-1) ** step
            if factor:
                found = self.add(found, self.times(self.constant(factor), self.whole_power(high, power + 1 - step)))
        return found

    def _sum_over(self, node: Node) -> Ratio:
        index, body = _ordered(node).parts
        outside = self.constant(1)
        inner = bare(body)
        if node.kind == inner.kind == "sum_over":  # sum_i sum_j a_i b_j = sum_i a_i (sum_j b_j)
            inside_of, free_of = _divided(inner.parts[1], inner.parts[0].text)
            body = Node("product", (free_of, Node("sum_over", (inner.parts[0], inside_of))), joined=("",))
        if node.kind == "sum_over":
            body, free = _divided(body, index.text)
            outside = self.form(free)
        inside, place = self._inside(index.text, body)
        if node.kind == "prod_over" or self.uses(inside.bottom, place):
            return self.times(outside, self.opaque(node.kind, "", (inside,)))
        found = self.constant(0)
        for (
            exponents,
            coefficient,
        ) in inside.top.terms():  # linear: what does not depend on the index goes before the sum
            moves = [power if self._depends(other, place) else 0 for other, power in enumerate(exponents)]
            stays = [power - moved for power, moved in zip(exponents, moves, strict=True)]
            summand = self.opaque(node.kind, "", (Ratio(CONTEXT.term(coeff=1, exp_vec=tuple(moves)), ONE),))
            factor = self.ratio(CONTEXT.term(coeff=coefficient, exp_vec=tuple(stays)), inside.bottom)
            found = self.add(found, self.times(factor, summand))
        return self.times(outside, found)

    def _inside(self, index: str, body: Node) -> tuple[Ratio, int]:
        """The form of a summand, and the place of its index.

        The label of an index is the depth of the sums below it, so a sum has one form wherever it stands.
        """
        before = self.bound
        self.bound = {**before, index: str(_depth(body))}
        try:
            return self.form(body), self.atom("bound", self.bound[index])
        finally:
            self.bound = before


SINGLE: dict[str, Callable[[Forms, Ratio], Ratio]] = {
    "exp": Forms.exp,
    "ln": Forms.log,
    "sqrt": lambda forms, value: forms.root(value, Fraction(1, 2)),
    "sin": lambda forms, value: forms._sine(value, False)[0],
    "cos": lambda forms, value: forms._sine(value, False)[1],
    "sinh": lambda forms, value: forms._sine(value, True)[0],
    "cosh": lambda forms, value: forms._sine(value, True)[1],
    "sigmoid": Forms._sigmoid,
    "relu": Forms._relu,
}


for _name in ("tan", "cot", "sec", "csc", "tanh"):
    SINGLE[_name] = lambda forms, value, name=_name: forms._ratio_of_sines(value, name)


for _name in ("arcsin", "arccos", "arctan"):
    SINGLE[_name] = lambda forms, value, name=_name: forms._arc(value, name)


KINDS = {"+": "add", "-": "add", "/": "divide", "^": "power", "%": "percent", "!": "factorial", "ceil": "floor"}


KINDS |= {"prod": "sum", "prod_over": "sum_over"}


def put(node: Node, name: str, value: int) -> Node:
    """The tree with a number in place of a name."""
    if node.kind == "name" and node.text == name:
        text = Node("number", text=str(abs(value)))
        return text if value >= 0 else Node("neg", (text,))
    if node.kind in ("sum", "prod", "sum_over", "prod_over") and node.parts[0].text == name:
        return node
    return Node(node.kind, tuple(put(part, name, value) for part in node.parts), node.text, node.joined)


def _fraction_of(value: Any) -> Fraction:
    return Fraction(int(value.numerator), int(value.denominator))


def _moved(node: Node, name: str, by: int) -> Node:
    """The tree with name + by in place of a name."""
    if node.kind == "name" and node.text == name:
        return Node("+" if by > 0 else "-", (node, Node("number", text=str(abs(by)))))
    if node.kind in ("sum", "prod", "sum_over", "prod_over") and node.parts[0].text == name:
        return Node(node.kind, (node.parts[0], *(_moved(part, name, by) for part in node.parts[1:-1]), node.parts[-1]))
    return Node(node.kind, tuple(_moved(part, name, by) for part in node.parts), node.text, node.joined)


def _ordered(node: Node) -> Node:
    """Sums of a sum with their indices in the order in which the innermost term uses them; their bounds are free."""
    nest = [node]
    while (inner := bare(nest[-1].parts[-1])).kind == node.kind:
        nest.append(inner)
    indices = [each.parts[0].text for each in nest]
    bounds = {name for each in nest for part in each.parts[1:-1] for name in part.names}
    if len(nest) == 1 or len({*indices}) < len(nest) or bounds & {*indices}:
        return node
    used = [part.text for part in nest[-1].parts[-1].walk() if part.kind == "name"]
    found = nest[-1].parts[-1]
    for each in sorted(nest, key=lambda each: used.index(each.parts[0].text) if each.parts[0].text in used else -1)[
        ::-1
    ]:
        found = Node(node.kind, (*each.parts[:-1], found))
    return found


def _depth(node: Node) -> int:
    """How deeply sums and products over an index are nested."""
    inner = max(map(_depth, node.parts), default=0)
    return inner + (node.kind in ("sum", "prod", "sum_over", "prod_over"))


def _random_names(node: Node) -> set[str]:
    """Capital letters, which are random variables under E, Var and Cov."""
    return {
        part.text
        for part in node.walk()
        if part.kind in ("name", "index") and re.fullmatch(r"[A-HJ-Z](_\w+)?", part.text)
    } - {"E"}


def _events(node: Node) -> list[str]:
    """The events A, B of P(A, B), P(A | B) or of P of an intersection; nothing if an argument is something else."""
    parts = [bare(part) for part in node.parts]
    while any(part.kind == "meet" for part in parts):
        parts = [bare(each) for part in parts for each in (part.parts if part.kind == "meet" else (part,))]
    names = [part.text for part in parts]
    return names if all(part.kind == "name" and re.fullmatch(r"[A-Z](_\w+)?", part.text) for part in parts) else []


def _divided(node: Node, index: str) -> tuple[Node, Node]:
    """The factors of a summand with the index, and those without it."""
    node = bare(node)
    one = Node("number", text="1")
    if index not in node.names:
        return one, node
    match node.kind:
        case "product" if "⊙" not in node.joined:
            pairs = [_divided(part, index) for part in node.parts]
            inside, outside = (
                Node("product", tuple(each), joined=("",) * (len(pairs) - 1)) for each in zip(*pairs, strict=True)
            )
            return inside, outside
        case "/":
            above, below = (_divided(part, index) for part in node.parts)
            return Node("/", (above[0], below[0])), Node("/", (above[1], below[1]))
        case "neg":
            inside, outside = _divided(node.parts[0], index)
            return inside, Node("neg", (outside,))
    return node, one


def _bernoulli(order: int) -> Fraction:
    """B_order with B_1 = -1/2."""
    found = []
    for step in range(order + 1):
        found.append(
            Fraction(int(step == 0))
            - sum((comb(step, j) * found[j] / (step - j + 1) for j in range(step)), Fraction(0))
        )
    return found[order]
