"""Cited numbers: the worked example to the letter, the catalogue's rows, and points inside the rounding."""

from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.arithmetic.cited import decide, digits
from likewise.claims.arithmetic.spans import ends_of, point
from likewise.claims.language.claim import Compares
from likewise.claims.language.parser import parse
from likewise.claims.language.tree import Node
from likewise.claims.verdict import Finding, Undecided

TABLE_5 = "source: {title: FaceNet, place: Table 5, cells: {a: 87.9, b: 85.6, s: 1.9, t: 2.0}}"
TABLE_6 = "source: {title: FaceNet, place: Table 6, cells: {a: 76.3, b: 85.1, c: 85.1, d: 86.2}}"
FLOPS = "source: {title: FaceNet, cells: {most: 1.6e9, least: 500e6, nn4: 285e6}}"
NN2 = """source: {title: FaceNet, place: "Table 2, parameters in thousands", cells: {a: 9, b: 115, c: 164, d: 228,
    e: 398, f: 545, g: 595, h: 654, i: 722, j: 717, k: 1.6e3, l: 1.6e3, m: 131}}"""


def found(text: str) -> Finding:
    finding = decide(parse(text))
    assert finding is not None
    return finding


def expression(text: str) -> Node:
    relation = parse(f"source: {{cells: {{a: 1, b: 2, c: 3}}}}\nassert: {text} == 0").relation
    assert isinstance(relation, Compares)
    return relation.chain.terms[0]


def test_worked_example_prints_its_line() -> None:
    finding = found("""source: {title: FaceNet, place: Table 6, cells: {a: 85.1, b: 76.3}}
assert: (a - b)/(100 - b) == 0.60 within 0.01""")
    assert (finding.verdict, finding.grade) == ("refuted", "arithmetic")
    assert finding.detail == "0.371308 (rounding of the cells: 0.3679 to 0.3747)"
    assert finding.witness == (("a", "85.1"), ("b", "76.3"))
    assert ("source", "FaceNet, Table 6 (as cited by the author)") in finding.numbers


CATALOGUE = [
    (6, "assert: dot([1, 1, 2], [0, 3, 4]) == 11", "holds"),
    (136, f"{NN2}\nassert: a + b + c + d + e + f + g + h + i + j + k + l + m == 7500 within 1%", "inconclusive"),
    (136, f"{NN2}\nassert: a + b + c + d + e + f + g + h + i + j + k + l + m == 7500 within 2%", "holds"),
    (138, "source: {cells: {nn1: 140, nn2: 7.5}}\nassert: nn1/nn2 == 20 within 10%", "holds"),
    (139, f"{FLOPS}\nassert: most/least >= 5", "refuted"),
    (139, f"{FLOPS}\nassert: most/nn4 >= 5", "holds"),
    (140, "source: {title: FaceNet, cells: {nns1: 26}}\nassert: nns1 <= 25.557032", "inconclusive"),
    (145, "source: {cells: {nn1: 140, r: 25.6}}\nassert: nn1/r == 5.5 within 0.1", "holds"),
    (145, "source: {cells: {r: 25.6, nn2: 7.5}}\nassert: r/nn2 == 3.4 within 0.1", "holds"),
    (145, "source: {cells: {r: 4.1, nn2: 1.6}}\nassert: r/nn2 == 2.5 within 0.2", "holds"),
    (145, "source: {cells: {nn2: 7.5, r: 25.6}}\nassert: nn2/r == 1/3 within 0.05", "holds"),
    (145, "source: {cells: {nn2: 1.6, r: 4.1}}\nassert: nn2/r == 0.40 within 0.03", "holds"),
    (161, f"{TABLE_5}\nassert: (a - b)/sqrt(s^2 + t^2) >= 1.96", "refuted"),
    (163, f"{TABLE_6}\nassert: b - a == 9 within 0.5", "holds"),
    (164, f"{TABLE_6}\nassert: (b - a)/(100 - a) == 0.60 within 0.01", "refuted"),
    (164, f"{TABLE_6}\nassert: (d - a)/(100 - a) == 0.418 within 0.005", "holds"),
    (165, f"{TABLE_6}\nassert: (d - b)/log(10) == (b - a)/log(10) within 1", "refuted"),
    (168, "assert: 10E-3 == 0.001", "refuted"),
    (168, "source: {title: FaceNet, place: Table 3, cells: {far: 10E-3}}\nassert: far == 0.001", "refuted"),
    (168, "assert: 10E-3 == 1/100", "holds"),
]


@pytest.mark.parametrize(("row", "text", "verdict"), CATALOGUE)
def test_rows_of_the_catalogue_get_their_verdict(row: int, text: str, verdict: str) -> None:
    assert found(text).verdict == verdict, row


@pytest.mark.parametrize(
    ("relation", "verdict", "detail"),
    [
        ("choose(40, 2) == 780", "holds", "780 == 780"),
        ("choose(40, 2) == 781", "refuted", "780 != 781"),
        ("140/7.5 == 18.7 within 0.05", "holds", "18.6667 == 18.7 within 0.05"),
        ("140/7.5 == 18.7 within 0.01", "refuted", "18.6667 != 18.7 within 0.01"),
        ("140/7.5 == 20 within 6.6%", "refuted", "18.6667 != 20 within 6.6%"),
        ("sqrt(2) < 1.41421356237309504880168872420969807856967", "refuted", None),
        ("sqrt(2) < 1.41421356237309504880168872420969807856968", "holds", None),
        ("sqrt(9/4) == 1.5", "holds", "1.5 == 1.5"),
        ("exp(1) > log(15)", "holds", "2.71828 > 2.70805"),
        ("1 < 2 < 2", "refuted", "2 >= 2"),
        ("1 < 2 <= 2", "holds", None),
        ("mean([1, 2, 6]) == norm([0, 3])", "holds", "3 == 3"),
        ("max([1, 5, 2], 3) == 3", None, None),
        ("max([1, 5, 2]) - min(4, 3) == sqnorm([1, 1])", "holds", "2 == 2"),
        ("abs(-2) + relu(-1) == 2", "holds", None),
        ("cos(0) + sin(0) == 1", "holds", None),
        ("2^-2 == 1/4", "holds", None),
        ("64^(1/3) == 4", None, None),
        ("sqrt(2)*sqrt(2) == 2", None, None),
        ("1/0 == 1", None, None),
        ("choose(10^60, 10^59) == 1", None, None),
        ("exp(10^60) > 1", None, None),
        ("2^65 > 1", None, None),
        ("((10^60)^60)^60 > 1", None, None),
        ("(10^60)^60 > 1", "holds", "1.00000e+3600 > 1"),
        ("log(0) < 1", None, None),
        ("sqrt(-1) < 1", None, None),
    ],
)
def test_arithmetic_is_exact_and_bounded(relation: str, verdict: str | None, detail: str | None) -> None:
    claim = parse(f"assert: {relation}")
    if verdict is None:
        with pytest.raises(Undecided):
            decide(claim)
        return
    finding = found(f"assert: {relation}")
    assert finding.verdict == verdict
    assert detail is None or finding.detail == detail


def test_rounding_across_the_tolerance_is_inconclusive_with_both_numbers() -> None:
    finding = found("source: {cells: {a: 1.5}}\nassert: a == 1 within 0.5")
    assert (finding.verdict, finding.grade) == ("inconclusive", "undecided")
    assert finding.detail == "1.5 (rounding of the cells: 1.45 to 1.55; both answers are possible within it)"


def test_equality_without_tolerance_speaks_of_the_printed_numbers() -> None:
    source = "source: {cells: {a: 85.1, b: 76.3}}"
    assert found(f"{source}\nassert: a - b == 8.8").verdict == "holds"
    assert found(f"{source}\nassert: a - b == 8.85").verdict == "inconclusive"
    assert found(f"{source}\nassert: a - b == 9").verdict == "refuted"


def test_variables_and_assumptions_are_not_for_this_engine() -> None:
    assert decide(parse("given: x in R\nassert: x == x")) is None
    assert decide(parse("source: {cells: {a: 1}}\nassume: a > 2\nassert: a == 1")) is None
    assert decide(parse("given: x[2,3]\nassert: x has shape [2, 3]")) is None


EXPRESSIONS = [
    "(a - b)/(100 + b)", "a*b - b*c + c", "sqrt(a^2 + b^2 + 1)", "exp(a/10)*log(b^2 + 1)", "max(a, b, c) - min(a, c)",
    "abs(a - b)*c", "(a - b)^2*(b - c)^3", "sin(a)*cos(b) - sin(a*c)", "relu(a - c)/(1 + abs(b))",
    "mean([a, b, c])^2 - a",
    "dot([a, b], [b, c])", "(a^2 + 1)^(1/2) + (b^2 + 1)^-1", "norm([a, b, 1])",
]  # fmt: skip
parts = st.fractions(-3, 3, max_denominator=20)


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    text=st.sampled_from(EXPRESSIONS),
    centres=st.tuples(*[parts] * 3),
    radius=parts,
    steps=st.tuples(*[st.integers(-4, 4)] * 3),
)
def test_no_point_of_the_box_lies_outside_its_ends(text, centres, radius, steps) -> None:
    node, radius = expression(text), abs(radius)
    box = {name: (centre - radius, centre + radius) for name, centre in zip("abc", centres, strict=True)}
    inner = {name: centre + radius * step / 4 for name, centre, step in zip("abc", centres, steps, strict=True)}
    low, high = ends_of(node, box)
    lowest, highest = ends_of(node, point(inner))
    assert low <= highest
    assert lowest <= high


@settings(max_examples=60, deadline=None)
@given(a=parts, b=parts, c=parts, radius=st.fractions(Fraction(1, 50), Fraction(1, 2), max_denominator=50))
def test_ends_of_a_function_monotone_in_each_cell_are_reached_at_corners(a, b, c, radius) -> None:
    node = expression("(a + 4)*(b - 4)/(c + 10)")
    box = {"a": (a - radius, a + radius), "b": (b - radius, b + radius), "c": (c - radius, c + radius)}
    corners = [(x + 4) * (y - 4) / (z + 10) for x in box["a"] for y in box["b"] for z in box["c"]]
    assert ends_of(node, box) == (min(corners), max(corners))


def test_splitting_comes_close_where_a_function_turns() -> None:
    low, high = ends_of(
        expression("(a - 1)*(a - 1) + 0*b + 0*c"),
        {"a": (Fraction(0), Fraction(2)), **point({"b": Fraction(0), "c": Fraction(0)})},
    )
    assert Fraction(-1, 20) <= low <= 0
    assert 1 <= high <= Fraction(21, 20)


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [("a^2", 0, 4), ("cos(a + 2)", -1, Fraction("0.540302305868")), ("abs(a)", 0, 2), ("a^3", -1, 8)],
)
def test_ends_where_a_function_turns(text: str, low: int, high: Fraction) -> None:
    """cos falls from cos(1) to -1 at pi."""
    found_low, found_high = ends_of(expression(text), {"a": (Fraction(-1), Fraction(2))})
    assert low - Fraction(1, 20) <= found_low <= low
    assert high <= found_high <= high + Fraction(1, 20)


def test_falling_function_has_its_ends_the_other_way_round() -> None:
    low, high = ends_of(expression("cos(a)"), {"a": (Fraction(1), Fraction(2))})
    assert (digits(low, 12), digits(high, 12)) == ("-0.416146836547", "0.540302305868")


def test_digits_of_numbers_beyond_floats() -> None:
    assert digits(Fraction(10) ** 400, 3) == "1.00e+400"


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("exp(1) == 2.718281828", "2.7182818285 != 2.718281828"),
        ("1/3 == 0.33333333", "0.333333333 != 0.33333333"),
        ("exp(1) == 2.71828182845904523536", "2.7182818284590452353603 != 2.71828182845904523536"),
        ("1/3 == 0.3", "0.333333 != 0.3"),
    ],
)
def test_numbers_are_shown_with_as_many_digits_as_differ(text: str, detail: str) -> None:
    finding = decide(parse(f"assert: {text}"))
    assert finding is not None
    assert (finding.verdict, finding.detail) == ("refuted", detail)
