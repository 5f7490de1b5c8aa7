from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.claims.growth.orders import decide, primitive
from likewise.claims.growth.powers import magnitude
from likewise.claims.language.parser import parse
from likewise.claims.language.tree import Binary, Name
from likewise.claims.verdict import Finding, Undecided
from tests.claims.plain import box, claim, satisfied, value

MONOMIAL = st.builds(
    lambda factor, powers: "*".join(
        [str(factor), *(f"{name}^{e}" for name, e in zip("NDM", powers, strict=True) if e)]
    ),
    st.integers(1, 3),
    st.tuples(*[st.integers(0, 2)] * 3),
)
SUM = st.lists(MONOMIAL, min_size=1, max_size=3).map(" + ".join)
CONES = ["", "D <= N", "M <= D^2; D <= N", "N*D == M", "N <= D + M", "D == 5"]


def decided(text: str) -> Finding:
    found = decide(parse(text))
    assert found is not None
    return found


def verdict(relation: str, cone: str = "") -> str:
    found = decide(claim("NDM", relation, cone))
    assert found is not None
    return found.verdict


def ratio_grows(f: str, g: str, ray: dict[str, str], cone: str) -> bool:
    """f/g along the ray at t = 2^10, 2^20, 2^40, which must also lie in the cone."""
    ratios = []
    for t in (2**10, 2**20, 2**40):
        sizes = dict.fromkeys("NDM", 1) | {name: int(value(text, {"t": t})) for name, text in ray.items()}
        assert satisfied(cone, sizes)
        ratios.append(value(f, sizes) / value(g, sizes))
    return ratios[1] > 100 * ratios[0] and ratios[2] > 100 * ratios[1]


@pytest.mark.slow
@settings(max_examples=50)
@given(SUM, SUM, st.sampled_from(CONES))
def test_bound_that_holds_is_met_at_all_small_sizes_and_one_that_fails_grows_along_its_ray(f, g, cone):
    found = decide(claim("NDM", f"{f} in O({g})", cone))
    assert found is not None
    if found.verdict == "refuted":
        assert ratio_grows(f, g, dict(found.witness), cone)
    else:
        # every monomial is at most a product of bounds with weights of sum 1, so the factor is what the cone adds
        factor = value(f, {"N": 1, "D": 1, "M": 1}) * (5**6 if "5" in cone else 2**6 if "+" in cone else 1)
        for sizes in box("NDM", 6):
            assert not satisfied(cone, sizes) or value(f, sizes) <= factor * value(g, sizes)


@pytest.mark.slow
@settings(max_examples=50)
@given(SUM, SUM, st.sampled_from(CONES))
def test_omega_is_o_the_other_way_round_and_theta_is_both(f, g, cone):
    verdicts = [
        verdict(relation, cone)
        for relation in (f"{f} in Omega({g})", f"{g} in O({f})", f"{f} in O({g})", f"{f} in Theta({g})")
    ]
    assert verdicts[0] == verdicts[1]
    assert (verdicts[3] == "holds") == (verdicts[1] == verdicts[2] == "holds")


@settings(max_examples=50)
@given(SUM, SUM)
def test_suggested_assumption_makes_the_bound_hold(f, g):
    found = decide(claim("NDM", f"{f} in O({g})"))
    assert found is not None
    for suggestion in found.suggestions:
        assert verdict(f"{f} in O({g})", suggestion.replace(", ", "; ")) == "holds"


@pytest.mark.slow
@settings(max_examples=50)
@given(SUM, SUM, SUM)
def test_minimum_is_bounded_by_what_bounds_either_and_bounds_only_what_both_do(f, g, h):
    def holds(relation):
        return verdict(relation) == "holds"

    both = holds(f"{f} in O({g})"), holds(f"{f} in O({h})")
    assert holds(f"{f} in O(min({g}, {h}))") == all(both)
    assert holds(f"{f} in O(max({g}, {h}))") >= any(both)
    if holds(f"{g} in O({f})") or holds(f"{h} in O({f})"):
        assert holds(f"min({g}, {h}) in O({f})")


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("sizes: N, D\nassert: N*D in O(N^2 + D^2)", "term by term: N*D <= (N^2)^(1/2)*(D^2)^(1/2)"),
        ("sizes: N, D\nassert: N*sqrt(D) in O(N*D)", "term by term: N*D^(1/2) <= N*D"),
        ("sizes: N, D\nassume: 4*N <= D; D <= 5*N\nassert: D^2 in O(N*D)", "term by term: D^2 <= N*D"),
        ("sizes: n, D = 64\nassert: n*D in O(n)", "term by term"),
        ("sizes: N, D, M\nassume: N*D == M\nassert: M in O(N*D)", "term by term: M <= N*D"),
        ("sizes: N, D, M\nassume: N*D == M\nassert: N*D in O(M)", "term by term: N*D <= M"),
        ("sizes: N, D, M\nassume: N >= max(D, M)\nassert: D*M in O(N^2)", "term by term: D*M <= N^2"),
        ("sizes: N, D, M\nassert: N/(D + M) in O(N/D)", "linear program in the logarithms of the sizes"),
        ("sizes: N\nassume: N >= 2\nassert: N*(N - 1) in Omega(N^2)", "term by term"),
    ],
)
def test_bound_that_holds_says_why(text, detail):
    found = decided(text)
    assert (found.verdict, found.grade, found.detail) == ("holds", "proved", detail)


@pytest.mark.parametrize(
    ("text", "detail"),
    [
        ("sizes: N, D\nassert: N*D^3 in O(N^2*D)", "N*D^3 escapes along D=t (ratio ~ t^2); holds assuming D^2 <= N"),
        (
            "sizes: N, D\nassert: N*sqrt(D) in O(N)",
            "N*D^(1/2) escapes along D=t (ratio ~ t^(1/2)); holds assuming D <= 1",
        ),
        ("sizes: N, D\nassume: N >= 3*D; N <= 4*D\nassert: N*D in O(N)", "N*D escapes along N=3*t, D=t (ratio ~ t)"),
        (
            "sizes: N, D, M\nassume: N <= D + M\nassert: N^2 in O(N*D)",
            "N^2 escapes along N=M=t (ratio ~ t); holds assuming N <= D",
        ),
        (
            "sizes: N, D, M\nassert: N*D + N*M in O(N + N^2)",
            "N*D escapes along D=t (ratio ~ t); holds assuming D <= N, M <= N",
        ),
        ("sizes: N\nassert: N^2 in Omega(N^3)", "N^3 of the bound escapes along N=t (ratio ~ t)"),
        ("sizes: N\nassert: N*(N - 1) in Omega(N^2)", "N=1: N^2 - N = 0"),
        ("sizes: N, D\nassert: N^2 in O(N^2*D - N^2 + 1)", "N^2 escapes along N=t (ratio ~ t^2)"),
        ("sizes: d, h, k = d/h\nassert: d in O(k)", "d escapes along d=h=t, k=1 (ratio ~ t); holds assuming h <= 1"),
        ("sizes: N, M\nassert: N^2 - N*M + M in O(N)", "N^2 escapes along N=t (ratio ~ t)"),
        ("sizes: h, k, d = h + k\nassert: d in O(h)", "d escapes along k=t, d=t + 1, h=1 (ratio ~ t)"),
    ],
)
def test_bound_that_fails_shows_its_ray(text, detail):
    found = decided(text)
    assert (found.verdict, found.grade, found.detail) == ("refuted", "exact witness", detail)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("sizes: N\nassert: N*log(N) in O(N^2)", "log is not taken"),
        ("sizes: N\nassert: exp(N) in O(N)", "exp is not taken"),
        ("sizes: N, D\nassert: N in O(N^2 - N*D + D)", "negative terms"),
        ("sizes: N, D\nassert: N - max(N, D) in O(N)", "a difference next to a maximum"),
        ("sizes: N, D\nassume: log(N) <= D\nassert: N in O(D)", "the assumption log"),
        ("sizes: N\nassert: (N + 1)^65 in O(N)", "exponent beyond 64"),
        ("sizes: a, b, c, d, e, f\nassert: (a + b + c + d + e + f)^12 in O(a)", "more than 500 terms"),
        ("sizes: N\nassert: N^N in O(N)", "an exponent that is not a number"),
    ],
)
def test_what_is_no_matter_of_powers_is_undecided(text, reason):
    with pytest.raises(Undecided, match=reason):
        decide(parse(text))


def test_order_where_no_sizes_are_allowed_is_undecided():
    for assumption in ("N <= -64", "N + D < 0"):
        with pytest.raises(Undecided, match="nothing satisfies the assumptions"):
            decide(parse(f"sizes: N, D\nassume: {assumption}\nassert: D in O(N)"))


def test_assumption_that_is_no_matter_of_powers_does_not_stop_a_proof():
    assert decided("sizes: N, D\nassume: log(N) <= D\nassert: N in O(N*D)").verdict == "holds"


def test_terms_that_cancel_do_not_escape():
    assert decided("sizes: h, k, d = h*k\nassert: d^2 - h*k*d + d in O(d)").verdict == "holds"


@pytest.mark.parametrize(
    ("relation", "verdict"),
    [
        ("N - N in O(1)", "holds"),
        ("N - N in Omega(1)", "refuted"),
        ("N in O(N - N)", "refuted"),
        ("0 in O(0)", "holds"),
    ],
)
def test_nothing_bounds_nothing_but_itself(relation, verdict):
    assert decided(f"sizes: N\nassert: {relation}").verdict == verdict


def test_other_relations_are_not_for_this_engine():
    assert decide(parse("sizes: N\nassert: N >= 1")) is None
    assert decide(parse("of: attention.softmax\nsizes: N, D, M\nassert: cost in O(N^2*D)")) is None


def test_primitive_cancels_and_reduces():
    both = [next(iter(magnitude(node, "NDM").sums[0])) for node in (_product("N", "D", "D"), _product("N", "M", "M"))]
    assert primitive(*both) == ((("D", Fraction(1)),), (("M", Fraction(1)),))


def _product(*factors):
    product = Name(factors[0])
    for factor in factors[1:]:
        product = Binary("*", product, Name(factor))
    return product
