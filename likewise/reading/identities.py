"""Which equations between names say something for all values, and which are to be solved."""

import math
from collections import Counter
from fractions import Fraction

from likewise.reading.expressions import Node, number, rewritten, value


def expands(left: Node, right: Node) -> bool:
    """`(a - b)^3 = a^3 - 3a^2 b + ..`: a product of sums in several letters beside a sum of terms of its degree.

    Nobody solves such an equation; it says how the product expands, for all letters.
    """
    terms = _terms(right)
    whole = _degree(left)
    sums = any(part.kind in ("+", "-") for part in left.walk())
    return (
        left.kind in ("^", "product")
        and sums
        and len(left.names) >= 2
        and left.names == right.names
        and len(terms) >= 3
        and not any(part.kind in ("+", "-", "/") for term in terms for part in term.walk())
        and whole is not None
        and {_degree(term) for term in terms} == {whole}
    )


def factors(left: Node, right: Node) -> bool:
    """`x^2 - 5x + 6 = (x - 2)(x - 3)`: a sum of powers beside a product of sums that has its degree."""
    for whole, product in ((left, right), (right, left)):
        sums = [part for part in product.parts if _bare(part).kind in ("+", "-")] if product.kind == "product" else []
        if product.kind == "^" and _bare(product.parts[0]).kind in ("+", "-"):
            sums = [product, product]
        terms = _terms(whole)
        if (
            len(sums) >= 2
            and len(terms) >= 2
            and whole.names == product.names
            and not any(part.kind in ("+", "-", "/") for term in terms for part in term.walk())
            and None not in (highest := [_highest(term) for term in terms])
            and max(each or 0 for each in highest) == _highest(product)
            and (len(whole.names) == 1 or len(set(highest)) == 1)
            and (len(terms) >= 3 or (len(whole.names) >= 2 and product.kind == "product"))
        ):
            return True
    return False


def alike(left: Node, right: Node) -> bool:
    """`N R M + N R M = 2 N R M`: sums of multiples of one product of names."""
    terms = [*_terms(left), *_terms(right)]
    if len(terms) < 3 or not left.names or left.names != right.names:
        return False
    kinds = [_powers(term) for term in terms]
    return None not in kinds and len({tuple(sorted(kind.items())) for kind in kinds if kind is not None}) == 1


def turned(left: Node, right: Node) -> bool:
    """`cos(a - b) = cos a cos b + ..`: sines and cosines of a sum beside those of its terms."""
    parts = [part for side in (left, right) for part in side.walk()]
    called = [part for part in parts if part.kind == "call"]
    names = left.names - {"sin", "cos"}
    if any(part.text not in ("sin", "cos") for part in called) or names != right.names - {"sin", "cos"}:
        return False
    arguments = [_bare(part.parts[0]).kind in ("+", "-") for part in called]
    return len(names) >= 2 and True in arguments and False in arguments


def skeleton(node: Node) -> Node:
    """A side without its numbers: where both are alike, as for two distances, they are set equal and not rewritten."""
    sums = node.kind in ("+", "-")
    parts = tuple(skeleton(part) for part in node.parts if part.kind != "number")
    return Node("+" if sums else node.kind, parts, "" if node.kind == "number" else node.text)


def _bare(node: Node) -> Node:
    while node.kind == "group":
        node = node.parts[0]
    return node


def _highest(node: Node) -> int | None:
    """The degree of a polynomial."""
    parts = [_highest(part) for part in node.parts]
    match node.kind:
        case "number":
            return 0
        case "name":
            return 1
        case "group" | "neg":
            return parts[0]
        case "+" | "-" if None not in parts:
            return max(part or 0 for part in parts)
        case "product" if None not in parts:
            return sum(part or 0 for part in parts)
        case "^" if parts[0] is not None and node.parts[1].text.isdigit() and node.parts[1].kind == "number":
            return parts[0] * int(node.parts[1].text)
    return None


def _powers(node: Node) -> Counter[str] | None:
    """How often each name is a factor of a product."""
    match node.kind:
        case "number":
            return Counter()
        case "name":
            return Counter([node.text])
        case "group" | "neg":
            return _powers(node.parts[0])
        case "product":
            found: Counter[str] = Counter()
            for part in node.parts:
                if (inside := _powers(part)) is None:
                    return None
                found += inside
            return found
        case "^" if node.parts[1].kind == "number" and node.parts[1].text.isdigit():
            inside = _powers(node.parts[0])
            return (
                None if inside is None else Counter({name: n * int(node.parts[1].text) for name, n in inside.items()})
            )
    return None


def _terms(node: Node) -> list[Node]:
    if node.kind in ("+", "-"):
        return [*_terms(node.parts[0]), *_terms(node.parts[1])]
    return _terms(node.parts[0]) if node.kind in ("neg", "group") else [node]


def _degree(node: Node) -> int | None:
    """The degree of a homogeneous polynomial, if a side is one."""
    parts = [_degree(part) for part in node.parts]
    match node.kind:
        case "number":
            return 0
        case "name":
            return 1
        case "group" | "neg":
            return parts[0]
        case "+" | "-":
            return parts[0] if parts[0] == parts[1] else None
        case "product" if None not in parts:
            return sum(part for part in parts if part is not None)
        case "^" if parts[0] is not None and node.parts[1].text.isdigit() and node.parts[1].kind == "number":
            return parts[0] * int(node.parts[1].text)
    return None


POINTS = (Fraction(7, 5), Fraction(11, 3), Fraction(13, 7), Fraction(17, 9), Fraction(23, 11), Fraction(29, 13))


def differ(left: Node, right: Node) -> bool:
    """Whether two sides of numbers differ at a point: an equation to be solved, not an identity."""
    names = sorted({part.text for side in (left, right) for part in side.walk() if part.kind == "name"})
    if len(names) > len(POINTS):
        return True  # a word that was cut into letters, or an equation between many quantities
    points = {name: number(str(point)) for name, point in zip(names, POINTS, strict=False)}
    put = [
        rewritten(side, lambda part: points.get(part.text) if part.kind == "name" else None) for side in (left, right)
    ]
    one, other = map(value, put)
    if one is not None and other is not None:
        return one != other
    try:
        one_, other_ = map(_float, put)
    except (ValueError, ZeroDivisionError, OverflowError, TypeError):
        return False
    return abs(one_ - other_) > 1e-6 * max(1.0, abs(one_), abs(other_))


def _float(node: Node) -> float:
    """A rough value, to tell an equation from an identity; never for a verdict."""
    if (exact := value(node)) is not None:
        return float(exact)
    parts = [_float(part) for part in node.parts]
    match node.kind:
        case "+":
            return parts[0] + parts[1]
        case "-":
            return parts[0] - parts[1]
        case "neg":
            return -parts[0]
        case "product":
            return math.prod(parts)
        case "/":
            return parts[0] / parts[1]
        case "^":
            found = parts[0] ** parts[1]
            return found if isinstance(found, float) else math.nan
        case "group":
            return parts[0]
        case "floor" | "ceil":
            return float(math.floor(parts[0]) if node.kind == "floor" else math.ceil(parts[0]))
        case "call" if node.text in ("exp", "log", "sin", "cos", "tan", "sqrt", "tanh") and len(parts) == 1:
            return float(getattr(math, node.text)(parts[0]))
    raise ValueError(node.kind)
