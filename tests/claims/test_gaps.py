"""Orders with differences of sizes of which one is assumed to be larger, of roots and of remainders."""

from collections.abc import Iterator

import pytest

from likewise.claims.engines import decide
from likewise.claims.growth.gaps import along
from likewise.claims.language.claim import Bounded
from likewise.claims.language.parser import parse
from tests.claims import plain

ROWS = """
T N, D | N > D | N in O(N^2 - D^2)
T N, D | N >= 2*D | N in O(N - D)
T N, D | N >= D | N^2 - D^2 in Theta((N - D)*(N + D))
T N, D | D < N | N - D in O(N^2 - N*D)
T N, D, M | N > D; D > M | N - M in Omega((N - D) + (D - M))
T N, D | N > D + 3 | N - D - 2 in Omega(1)
T N | | (N + 1)^2 - N^2 in Theta(N)
T N | | sqrt(N + 1) - sqrt(N) in O(1/sqrt(N))
T N | | sqrt(N^2 + N) - N in O(1)
T N, D | | sqrt(N + D) - sqrt(N) in O(D/sqrt(N))
T N, D | | mod(N, D) in O(min(N, D))
T N, D | | mod(N, D)^2 in O(N*D)
F N, D | N > D | N in O(N - D)
F N, D | N > D | N^2 in O(N^2 - D^2)
F N, D | N >= D | N in O(N^2 - D^2)
F N, D | D < N | N*D in O(N^2 - N*D)
F N, D | N > D + 3 | N in O(N - D - 2)
F N | | sqrt(N + 1) - sqrt(N) in O(1/N)
F N | | N^0.01 in O(1 + log(N))
"""
CLAIMS = [(row[0] == "T", *map(str.strip, row[2:].split("|"))) for row in ROWS.strip().splitlines()]


@pytest.mark.parametrize(("true", "names", "assumed", "relation"), CLAIMS)
def test_differences_are_decided(true: bool, names: str, assumed: str, relation: str) -> None:
    found = decide(plain.claim(names.split(", "), relation, assumed))  # ty: ignore[invalid-argument-type]
    assert found.verdict == ("holds" if true else "refuted")
    assert true or found.witness


def rays(names: str, assumed: str, relation: str) -> Iterator[tuple[dict, Bounded]]:
    claim = plain.claim(names.split(", "), relation, assumed)  # ty: ignore[invalid-argument-type]
    assert isinstance(claim.relation, Bounded)
    parts = {name: along(text) for name, text in decide(claim).witness}
    for t in (10**3, 10**6, 10**9):
        yield {name: sum(c * t**n for n, c in (ray or {}).items()) for name, ray in parts.items()}, claim.relation


@pytest.mark.parametrize(("names", "assumed", "relation"), [row[1:] for row in CLAIMS if not row[0] and row[2]])
def test_a_ray_satisfies_the_assumption_and_its_ratio_grows(names: str, assumed: str, relation: str) -> None:
    ratios = []
    for point, bounded in rays(names, assumed, relation):
        assert plain.satisfied(assumed, point)
        below = plain.value(str(bounded.bound), point)
        ratios.append(abs(plain.value(str(bounded.quantity), point)) / abs(below) if below else float("inf"))
    assert ratios == sorted(ratios)
    assert ratios[-1] > 100 * ratios[0] or ratios[-1] == float("inf")


@pytest.mark.parametrize("text", ["", "x", "2*t^a", "t-1", "-1"])
def test_what_is_no_ray_is_none(text: str) -> None:
    assert along(text) is None


@pytest.mark.parametrize("body", ["mod(10^N, 9) == 1", "mod(factorial(N), N) == 0", "floor(exp(exp(N))) >= 1"])
def test_floors_of_huge_numbers_end_no_worker(body: str) -> None:
    assert decide(parse(f"sizes: N\nassert: {body}")).verdict != "refuted"
