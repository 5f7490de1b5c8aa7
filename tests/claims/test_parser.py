"""What is written is what is read: every claim prints back to itself, and what is no claim says why."""

from contextlib import suppress
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from likewise.claims.language.claim import Cell, Claim, Compares, Size
from likewise.claims.language.limits import SOURCE
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unbounded, Unparsed
from likewise.claims.language.tree import (
    Binary,
    Call,
    Chain,
    Join,
    Matrix,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    Transpose,
    children,
)
from tests.claims.trees import chains, nodes

RESERVED = "is reserved: E, Var and P are moments, O, Omega and Theta are orders"
HEADER = "given: x, y in R\nsizes: D, N\n"


def read(text: str) -> Node:
    """The expression on the left of `== 0`."""
    relation = parse(f"{HEADER}assert: {text} == 0").relation
    assert isinstance(relation, Compares)
    return relation.chain.terms[0]


def number(value: int) -> Number:
    return Number(Fraction(value))


def nested(node: Node, inside: bool = False) -> bool:
    average = isinstance(node, Moment | Probability)
    return (average and inside) or any(nested(child, inside or average) for child in children(node))


@pytest.mark.slow
@given(chains(nodes))
@settings(max_examples=400, deadline=None)
def test_a_chain_reads_as_it_prints(chain: Chain) -> None:
    assume(not any(map(nested, chain.terms)))
    assert parse(f"{HEADER}assert: {chain}").relation == Compares(chain)


@pytest.mark.parametrize(
    "relation",
    [
        "dot(x, y)^2 == 0 within 0.01",
        "x == y within 1%",
        "cost in Theta(N*(D + 1))",
        "traffic == 2*N*D",
        "params == 140000000 within 1%",
        "N*D + N in O(N*D)",
        "cost(attention.softmax) <= 2*cost(attention.kernel)",
        'einsum("bd,dk->bk", x, y) has shape [N, 2*D]',
        "run(demo.forward, x, y) succeeds",
        "run(demo.forward) raises ValueError",
        "run(demo.forward, x) == 0.5 within 0.001",
        "run(demo.forward, x) raises",
    ],
)
def test_every_relation_reads_as_it_prints(relation: str) -> None:
    assert str(parse(f"{HEADER}assert: {relation}").relation) == relation


def test_powers_bind_to_the_right_and_above_the_sign() -> None:
    x = Name("x")
    assert read("-x^2") == Negative(Binary("^", x, number(2)))
    assert read("x^y^2") == Binary("^", x, Binary("^", Name("y"), number(2)))
    assert read("x ** -2") == Binary("^", x, Negative(number(2)))
    assert read("x - y - 1") == Binary("-", Binary("-", x, Name("y")), number(1))
    assert read("x*y'/2") == Binary("/", Binary("*", x, Transpose(Name("y"))), number(2))
    assert read("+x") == x


@pytest.mark.parametrize(
    ("text", "value"), [("85.1", Fraction(851, 10)), ("10E-3", Fraction(1, 100)), ("1.6e9", Fraction(1_600_000_000))]
)
def test_numbers_are_exact(text: str, value: Fraction) -> None:
    assert read(text) == Number(value)


def test_definitions_are_put_in_and_printed_as_written() -> None:
    claim = parse("given: q in R^D\na = 2\nphi(x) = [1, a*x]\nassert: sum(phi(q)) == 0")
    body = Join((number(1), Binary("*", number(2), Name("q"))))
    assert claim.relation == Compares(Chain((Call("sum", (body,)), number(0)), ("==",)))
    assert claim.statement == "given: q in R^D | a = 2 | phi(x) = [1, a*x] | assert: sum(phi(q)) == 0"


def test_a_parameter_hides_a_variable_and_arguments_are_not_captured() -> None:
    claim = parse("given: x, y in R\nf(x, y) = x - y\nassert: f(y, x) == 0")
    assert claim.relation == Compares(Chain((Binary("-", Name("y"), Name("x")), number(0)), ("==",)))


def test_sizes_are_those_of_dims_in_order_of_appearance() -> None:
    claim = parse("given: x[b, d], W[h, q, d]; w ~ N(0, I(m))\nassert: sum(x) == sum(ones(k, b))")
    assert [size.name for size in claim.sizes] == ["b", "d", "h", "q", "k", "m"]


def test_a_size_may_be_an_equation() -> None:
    claim = parse("of: attention.mqa_step\nsizes: h, k, d = h*k\nassert: traffic in O(d^2)")
    assert claim.sizes[2] == Size("d", Binary("*", Name("h"), Name("k")))


def test_law_and_set_names_stay_usable_as_sizes() -> None:
    claim = parse("given: q in R^N; R in R; U ~ N(0, 1)\nsizes: P, O\nassert: P*O*R*N*U in O(P)")
    assert {size.name for size in claim.sizes} == {"N", "P", "O"}


def test_every_set_law_and_field_reads_as_it_prints() -> None:
    text = (
        "given: a in {1, -2.5}; b in -1..4; c in [0, 1]; d in Z; e in R^(N, 2*D) row; f ~ N(a, std=2*I(D));"
        " g ~ U(0, 1); h ~ Rademacher(D) | kernel: fused | assert: a == b"
    )
    claim = parse(text.replace(" | ", "\n"))
    assert claim.statement == text


def test_fields_arrive() -> None:
    claim = parse(
        "unit: flop\nlayout: columns\nmemory: streamed\nalpha: 1e-3\nbudget: 2.5s\npoints: 3\nseed: 7\nrow: 95\n"
        "bounded: [-1, 0.5]\nexpect: refuted\nrevises: first\nwho: nobody: at all\nnoticed: no\nnote: x\nassert: 1 == 2"
    )
    wanted = Claim(
        "claim",
        claim.relation,
        unit="flop",
        layout="columns",
        memory="streamed",
        alpha=Fraction(1, 1000),
        budget=2.5,
        points=3,
        seed=7,
        row=95,
        bounded=(Fraction(-1), Fraction(1, 2)),
        expect="refuted",
        revises="first",
        who="nobody: at all",
        noticed="no",
        note="x",
        written="1 == 2",
        given_fields=claim.given_fields,
    )
    assert claim == wanted
    assert claim.given_fields >= {"unit", "layout", "memory", "alpha", "expect"}


def test_cells_remember_how_they_were_rounded() -> None:
    claim = parse('source: {title: "FaceNet, v3", place: Table 6, cells: {a: 85.1, b: -1.6e9}}\nassert: a > b')
    assert claim.source is not None
    assert (claim.source.title, claim.source.place) == ("FaceNet, v3", "Table 6")
    assert dict(claim.source.cells) == {"a": Cell(Fraction(851, 10), 1), "b": Cell(Fraction(-1_600_000_000), -8)}
    assert dict(claim.source.cells)["a"].half_unit == Fraction(1, 20)


def test_an_indented_line_goes_on_and_comments_end() -> None:
    claim = parse("  given: x in R   # a number\n\n  # nothing\n  assert: x +\n     x == 2*x")
    assert claim.statement == "given: x in R | assert: x + x == 2*x"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("assert: sin_softmax(q, k) > 0", "unknown name sin_softmax (nothing assumed); did you mean softmax?"),
        ("given: q in R\nassert: q == kk", "unknown name kk (nothing assumed)"),
        ("assert: 2x == 1", "expected a comparison, got 'x'"),
        ("assert: (1 == 1", "expected ')', got '=='"),
        ("assert: 1 + == 2", "expected an expression, got '=='"),
        ("assert: 1", "expected a comparison, got the end of the line"),
        ("assert: 1 == 1 1", "expected the end of the line, got '1'"),
        ("assert: x.__class__ == 1", "expected a comparison, got '.'"),
        ("assert: 'a' == 1", 'expected an expression, got "\'"'),
        ("assert: 1 == $", "unexpected '$'"),
        ("given: x in R\nassert: \u0445 == 1", "unexpected '\u0445'"),
        ('assert: sum("ab") == 1', "sum: a string stands first in einsum and nowhere else"),
        ("assert: dot(1) == 1", "dot takes 2 arguments, got 1"),
        ("f(x) = x\nassert: f(1, 2) == 1", "f takes 1 arguments, got 2"),
        ("f(x) = f(x)\nassert: f(1) == 1", "unknown name f (nothing assumed)"),
        ("dot(x) = x\nassert: 1 == 1", "dot is defined already"),
        ("given: x in R; x in R\nassert: x == x", "x has two meanings"),
        ("given: D in R; x in R^D\nassert: D == 1", "the dims of x are made of sizes"),
        ("sizes: d = d + 1\nassert: d == 1", "the size d is given by an equation over other sizes"),
        ("given: x in Q\nassert: x == x", "expected a set, got 'Q'"),
        ("given: x ~ Law(0, 1)\nassert: x == x", "unknown law Law; there are N, U, Rademacher, Exp and Bernoulli"),
        ("given: x in [1, 0]\nassert: x == x", "an empty set, from 1 to 0"),
        ("given: x in 0.5..2\nassert: x == x", "a range goes from one whole number to another"),
        ("expect: maybe\nassert: 1 == 1", "expect is one of holds, refuted, inconclusive, malformed; got 'maybe'"),
        ("colour: red\nassert: 1 == 1", "unknown field 'colour'"),
        ("assert: 1 == 1\nassert: 1 == 2", "assert is given twice"),
        ("unit: mac\nunit: flop\nassert: 1 == 1", "unit is given twice"),
        ("given: x in R", "there is no assert:"),
        ("assert: cost in P(N)", "expected O, Omega or Theta, got 'P'"),
        ("assert: run(a.b) shines", "expected succeeds, raises or a comparison, got 'shines'"),
        ("alpha: 2\nassert: 1 == 1", "alpha is between 0 and 1"),
        ("budget: 0s\nassert: 1 == 1", "a budget is above 0 and at most 600 s"),
        ("points: 0\nassert: 1 == 1", "expected a whole number from 1 to 1000"),
        ("bounded: [1, 1]\nassert: 1 == 1", "bounded: the first number must be below the second"),
        ("assert: 1 == 1 within -1", "a tolerance below zero"),
        ("assert: 1 <= 1 within 1", "within belongs to one =="),
        ("assert: 1 == 1 == 1 within 1", "within belongs to one =="),
        ("of: a.b\nassert: cost <= 1 within 1%", "within belongs to one =="),
        ("assert: [1, [2, 3]] == 1", "brackets inside brackets are the rows of a matrix: all parts, or none"),
        ("given: E[2]\nassert: E[1] == 0", f"E {RESERVED}"),
        ("given: P in R\nassert: P == 0", f"P {RESERVED}"),
        ("f(Var) = Var\nassert: f(1) == 1", f"Var {RESERVED}"),
        ("Theta = 1\nassert: 1 == 1", f"Theta {RESERVED}"),
        ("source: {cells: {O: 1}}\nassert: O == 1", f"O {RESERVED}"),
        ("source: {cells: {a: b}}\nassert: 1 == 1", "the cell a is no number: b"),
        ("source: {cells: {a: 1, a: 2}}\nassert: 1 == 1", "a source names each entry once; got 'a'"),
        ("source: {title: x\nassert: 1 == 1", "a source needs '}' here; got 'its end'"),
        ("source: {author: x}\nassert: 1 == 1", "a source has title, place and cells, and nothing else"),
        ("source: title\nassert: 1 == 1", "a source needs '{' here; got 'title'"),
        (f"assert: {'9' * 65} > 1", "a number of more than 64 digits"),
        ("assert: 1e999999 > 0", "an exponent beyond 64: 1e999999"),
        (f"assert: {'(' * 3000}", "deeper than 50 levels"),
        (f"assert: {'-' * 3000}1 == 1", "deeper than 50 levels"),
        (f"given: x in R\nassert: x{chr(39) * 3000} == 1", "deeper than 50 levels"),
        (f"assert: {'1+' * 1500}1 == 1", "deeper than 50 levels"),
        ("assert: 1 == 1" + " " * SOURCE, f"longer than {SOURCE} characters"),
    ],
)
def test_what_is_no_claim_says_why(text: str, reason: str) -> None:
    with pytest.raises(Unparsed) as refusal:
        parse(text)
    assert str(refusal.value) == reason


@pytest.mark.parametrize(
    ("text", "place", "nearest"),
    [
        ("givn: q in R\nassert: q == q", (1, 1), "given"),
        ("Given: q in R\nassert: q == q", (1, 1), "given"),
        ("assert: 2x == 1", (1, 10), ""),
        ("assert:    1 == $", (1, 17), ""),
        ("given: q in R^D\n  \n# comment\nassert: dott(q, q) == 1", (4, 9), "dot"),
        ("  given: q in R\n  assert: q\n     == 2*qs", (3, 11), "q"),
        ("who: dott\nassert: dott(1) == 1", (2, 9), "dot"),
        ("phi(x) = x*x\nassert: phi(2) == x", (2, 19), ""),
        ("phi(x) = sqrtt(x)\nassert: phi(2) == 1", (1, 10), "sqrt"),
        ("expect: refutd\nassert: 1 == 1", (1, 9), "refuted"),
        ("given: s ~ Rademachr(3)\nassert: s == s", (1, 12), "Rademacher"),
        ("assert: 1 == 1\nalpha: 2", (2, 8), ""),
        ("given: scale in R\nassert: scal == 1", (2, 9), "scale"),
        ("note: nothing is asserted", (1, 1), ""),
        ("", (1, 1), ""),
    ],
)
def test_what_is_no_claim_says_where_and_what_was_meant(text: str, place: tuple[int, int], nearest: str) -> None:
    with pytest.raises(Unparsed) as refusal:
        parse(text)
    assert (refusal.value.place, refusal.value.nearest) == (place, nearest)


@pytest.mark.parametrize(
    ("law", "reason"),
    [
        ("N(0, std=-2)", "the standard deviation of w is below zero: -2"),
        ("N(0, std=-sqrt(4))", "the standard deviation of w is below zero: -sqrt(4)"),
        ("N(0, std=-pi)", "the standard deviation of w is below zero: -pi"),
        ("N(0, log(1/2))", "the variance of w is below zero: log(1/2)"),
        ("N(0, 3 - 2^2)", "the variance of w is below zero: 3 - 2^2"),
        ("Bernoulli(pi/3)", "the probability of w is not from 0 to 1: pi/3"),
        ("N(0, 1 - sqrt(2))", "the variance of w is below zero: 1 - sqrt(2)"),
        ("N(0, -exp(-3))", "the variance of w is below zero: -exp(-3)"),
        ("U(sqrt(2), 7/5)", "w has an empty range, from sqrt(2) to 7/5"),
        ("N(0, std=1 - 3)", "the standard deviation of w is below zero: 1 - 3"),
        ("N(0, -1/2)", "the variance of w is below zero: -1/2"),
        ("N(0, s)\ns = -2", "the variance of w is below zero: -2"),
        ("N(0, -2*I(D))", "the variance of w is below zero: -2*I(D)"),
        ("U(1, 0)", "w has an empty range, from 1 to 0"),
    ],
)
def test_a_law_that_nothing_follows_is_no_claim(law: str, reason: str) -> None:
    with pytest.raises(Unparsed) as refusal:
        parse(f"given: w ~ {law}\nassert: E[w] == 0")
    assert (str(refusal.value), refusal.value.place) == (reason, (1, 8))


def test_a_law_of_one_point_is_a_claim() -> None:
    assert parse("given: w ~ N(0, std=0); u ~ U(1, 1)\nassert: E[w] == 0").variables


@pytest.mark.parametrize("text", [f"assert: {'9' * 65} > 1", "assert: 1e99 > 0", f"assert: {'-' * 3000}1 == 1"])
def test_what_is_too_large_is_not_called_malformed(text: str) -> None:
    with pytest.raises(Unbounded):
        parse(text)


def test_definitions_cannot_explode() -> None:
    doubling = [f"f{i}(x) = f{i - 1}(x)*f{i - 1}(x)" for i in range(1, 60)]
    with pytest.raises(Unparsed, match="more than 2000 parts"):
        parse("\n".join(["f0(x) = x*x", *doubling, "assert: f59(2) > 0"]))
    deeper = [f"f{i}(x) = -f{i - 1}(x)" for i in range(1, 90)]
    with pytest.raises(Unparsed, match="deeper than 50 levels"):
        parse("\n".join(["f0(x) = -x", *deeper, "assert: f89(2) > 0"]))


@pytest.mark.slow
@given(st.text(alphabet=st.sampled_from("givenassert:xRND^()[]{}~=<>+-*/@.,;'\"#%0123456789E \n"), max_size=200))
@settings(max_examples=500, deadline=None)
def test_any_text_is_a_claim_or_says_why(text: str) -> None:
    with suppress(Unparsed):
        assert parse(text).statement


@pytest.mark.parametrize(
    ("definitions", "use", "meaning"),
    [
        ("f(a) = a + y\ng(y) = 2*f(y)", "g(3)", "2*(3 + y)"),
        ("f(a) = a*y\ng(y) = f(1)", "g(x)", "1*y"),
        ("c = x + y\nf(x) = c + x", "f(7)", "x + y + 7"),
        ("f(x) = x - y\ng(x, y) = f(y) - x", "g(y, x)", "x - y - y"),
        ("f(x) = x^y\ng(y) = f(f(y))", "g(2)", "(2^y)^y"),
        ("k(y) = sum([x, y])\nh(x, y) = k(x)*y", "h(5, 6)", "sum([x, 5])*6"),
    ],
)
def test_a_parameter_never_captures_a_name_of_another_body(definitions: str, use: str, meaning: str) -> None:
    given = f"given: x, y in R\n{definitions}\nassert: "
    assert str(parse(f"{given}{use} == 0").relation) == str(parse(f"{given}{meaning} == 0").relation)


def test_a_vector_that_a_definition_gives_is_joined_and_brackets_in_brackets_are_rows() -> None:
    joined = parse("given: x in R^D\nphi(x) = [1, x]\nassert: [phi(x), phi(2*x)] == 0").relation
    assert str(joined) == "[1, x, 1, 2*x] == 0"
    relation = parse("assert: [[1, 2], [3, 4]] == 0").relation
    assert isinstance(relation, Compares)
    assert relation.chain.terms[0] == Matrix((Join((number(1), number(2))), Join((number(3), number(4)))))


@pytest.mark.parametrize("relation", ["E[u*E[u]] == 1/4", "P[u < E[u]] == 1/2", "Var[f(u)] == 0", "E[P[u < 1]] == 1"])
def test_averages_do_not_stand_inside_one_another(relation: str) -> None:
    with pytest.raises(Unparsed, match="inside one another"):
        parse(f"given: u ~ U(0, 1)\nf(x) = E[x]\nassert: {relation}")


def test_ends_of_sets_and_tolerances_may_be_fractions() -> None:
    claim = parse("given: x in [-1/3, 2/3]; n in {1/2, -3/2}\nassert: x == n within 1/7")
    assert [str(variable.kind) for variable in claim.variables] == ["[-1/3, 2/3]", "{0.5, -1.5}"]
    assert "within 1/7" in str(claim.relation)
    with pytest.raises(Unparsed, match="not 0"):
        parse("given: x in [0, 1/0]\nassert: x == 0")
