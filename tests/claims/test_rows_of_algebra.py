"""Rows of the catalogue that normal forms, witnesses, signs and intervals decide, with the catalogue's verdict."""

import pytest

from likewise.claims.algebra import identities, intervals, witnesses
from likewise.claims.language.parser import parse
from likewise.claims.verdict import Finding

QK = "given: q, k in R^D"
GAUSS = "exp(-sqnorm(q - k)/(2*sqrt(D)))"
TRIPLET = "given: ap, an, a in R\nassume: a > 0; ap < an; an < ap + a"

HOLDS = {
    "21": "given: s in R^n\nassert: sum(softmax(s)) == 1",
    "35": "sizes: b, n, h, k\nassert: 2*b*n*h*k == h*(2*b*n*k)",
    "44 as it should be": "sizes: b, h, n, k, d = h*k\nassert: b*h*n*k == b*n*d",
    "44 assuming": "sizes: b, h, n, k, d = h*k\nassume: n == d\nassert: b*h*n*k == b*n^2",
    "45": "given: s in R^n\nassume: s > 0\nassert: sum(s) != 0",
    "49": "given: f, g in R^M\nassume: f >= 0; g >= 0\nassert: dot(f, g) >= 0",
    "53 assuming": f"{QK}; c in R\nassume: c == 0\nassert: (dot(q, k) + c)^2 == dot(q, k)^2",
    "54": f"{QK}; c in R\nassume: c == 1\nassert: (dot(q, k) + c)^2 == (dot(q, k) + 1)^2",
    "55": f"{QK}\nphi(x) = [x*x, sqrt(2)*pairs(x)]\nassert: dot(phi(q), phi(k)) == dot(q, k)^2",
    "58 vec": f"{QK}\nphi(x) = vec(outer(x, x))\nassert: dot(phi(q), phi(k)) == dot(q, k)^2",
    "58 tr": f"{QK}\nassert: tr(outer(q, q) @ outer(k, k)) == dot(q, k)^2",
    "59": f"{QK}\nphi(x) = [1, sqrt(2)*x, sqrt(2)*pairs(x), x*x]\nassert: dot(phi(q), phi(k)) == (dot(q, k) + 1)^2",
    "59 dim": "given: x in R^D\n"
    "assert: dim([1, sqrt(2)*x, sqrt(2)*pairs(x), x*x]) == 1 + D + D*(D + 1)/2 == choose(D + 2, 2)",
    "62": "given: fq, fk in R^M col; v in R^D col\nassert: fq' @ (fk @ v') == dot(fq, fk)*v'",
    "64": "given: fq, fk in R^M col; v in R^D row\nassert: fq' @ (fk @ v) == dot(fq, fk)*v",
    "69": "given: fq, fk in R^M row; v in R^D row\nassert: fq @ fk' @ v == dot(fq, fk)*v",
    "87": f"{QK}\nassert: exp(dot(q, k)/sqrt(D)) == {GAUSS}*exp(sqnorm(q)/(2*sqrt(D)))*exp(sqnorm(k)/(2*sqrt(D)))",
    "91 as intended": f"{QK}\nassert: exp(dot(q, k)/sqrt(D)) == {GAUSS}*exp((sqnorm(q) + sqnorm(k))/(2*sqrt(D)))",
    "93": f"{QK}\nr = 2*sqrt(D)\n"
    "assert: exp(dot(q, k)/sqrt(D)) == exp(-sqnorm(q)/r)*exp(-sqnorm(k)/r)*exp(sqnorm(q + k)/r)",
    "94 symmetric": f"{QK}\nassert: exp(dot(q, k)) == exp(dot(k, q))",
    "118": "given: f, g1, g2 in R^M; v1, v2 in R^D\n"
    "assert: (dot(f, g1)*v1 + dot(f, g2)*v2)/(dot(f, g1) + dot(f, g2))"
    " == f @ (outer(g1, v1) + outer(g2, v2))/dot(f, g1 + g2)",
    "123": "given: g1, g2, g3 in R^M; v1, v2, v3 in R^D\n"
    "S2 = outer(g1, v1) + outer(g2, v2)\nassert: outer(g3, v3) + outer(g2, v2) + outer(g1, v1) == S2 + outer(g3, v3)",
    "123 in one call": "sizes: N = 3\ngiven: G[N,M], V[N,D]\n"
    'assert: einsum("jm,jd->md", G, V) == outer(G[1], V[1]) + outer(G[2], V[2]) + outer(G[3], V[3])',
    "126 ordered": "given: x in R^D\nassert: dim(vec(outer(x, x))) == D^2",
    "146": "given: a, p, n in R^D; m in R\nassume: sqnorm(a - p) + m <= sqnorm(a - n)\n"
    "assert: relu(sqnorm(a - p) - sqnorm(a - n) + m) == 0",
    "150": f"{TRIPLET}\nassert: 0 < max(ap - an + a, 0) < a",
    "152": f"{TRIPLET}\nassert: an < ap + a",
    "154": f"{TRIPLET}\nassert: max(ap - an + a, 0) < a",
    "156 constant": "given: f in R^E; a in R\nassume: a > 0\nassert: max(sqnorm(f - f) - sqnorm(f - f) + a, 0) == a",
    "180": "given: p, c in R^L; m in R\nassume: p >= 0; c <= m\nassert: dot(p, m - c) >= 0",
    "185": "given: a, b in R\nassert: exp(a)*exp(b) == exp(a + b)",
}  # fmt: skip

REFUTED = {
    "44": ("sizes: b, h, n, k, d = h*k\nassert: b*h*n*k == b*n^2", "b=1 h=1 n=1 k=2: 2 != 1; holds assuming n == d"),
    "46": ("given: s in R^n\nassume: sum(s) != 0\nassert: s > 0", "n=1 s=(-1): (-1) <= 0"),
    "47": ("given: s in R^n\nassume: max(s) > 0\nassert: sum(s) != 0", "n=2 s=(1,-1): sum(s) = 0; true for n=1"),
    "48": ("given: s in R^n\nassume: max(s) > 0\nassert: sum(s) > 0", "n=2 s=(1,-1): 0 <= 0; true for n=1"),
    "50": (
        "given: f, g in R^M\nassume: f >= 0; g >= 0; f != 0; g != 0\nassert: dot(f, g) > 0",
        "M=2 f=(1,0) g=(0,1): 0 <= 0",
    ),
    "51": (f"{QK}\nassert: (dot(q, k) + 1)^2 > 0", "D=1 q=(1) k=(-1): 0 <= 0"),
    "53": (f"{QK}; c in R\nassert: (dot(q, k) + c)^2 == dot(q, k)^2", "c=1 q=(0) k=(0): 1 != 0; holds assuming c == 0"),
    "56": (
        f"{QK}\nphi(x) = [x*x, pairs(x)]\nassert: dot(phi(q), phi(k)) == dot(q, k)^2",
        "D=2 q=(1,1) k=(1,1): 3 != 4; true for D=1",
    ),
    "57": (f"{QK}\nassert: dot(q*q, k*k) == dot(q, k)^2", "D=2 q=(1,1) k=(1,1): 2 != 4; true for D=1"),
    "60": (
        f"{QK}\nphi(x) = [1, sqrt(2)*x, x*x]\nassert: dot(phi(q), phi(k)) == (dot(q, k) + 1)^2",
        "D=2 q=(1,1) k=(1,1): 7 != 9; true for D=1",
    ),
    "89": (
        f"{QK}\nassert: {GAUSS} == exp((-sqnorm(q) - 2*dot(q, k) + sqnorm(k))/(2*sqrt(D)))",
        "D=1 q=(0) k=(1): exp(-1/2) = 0.606531 != exp(1/2) = 1.64872",
    ),
    "90 middle": (
        f"{QK}\nr = 2*sqrt(D)\nassert: {GAUSS} == exp(-(sqnorm(q) + sqnorm(k))/r)*exp(-2*dot(q, k)/r)",
        "D=1 q=(1) k=(1): 1 != exp(-2) = 0.135335",
    ),
    "90 last": (
        f"{QK}\nassert: {GAUSS} == exp(-2*dot(q, k)/(2*sqrt(D)))*exp(dot(q, k)/sqrt(D))",
        "D=1 q=(1) k=(0): exp(-1/2) = 0.606531 != 1",
    ),
    "91": (
        f"{QK}\nassert: exp(dot(q, k)/sqrt(D)) == {GAUSS}*exp(sqnorm(q) + sqnorm(k))/(2*sqrt(D))",
        "D=1 q=(0) k=(0): 1 != 0.5",
    ),
    "92": (
        f"given: q, k, p, l in R^D\n"
        f"assert: exp(dot(q, k)/sqrt(D))/{GAUSS} == exp(dot(p, l)/sqrt(D))/exp(-sqnorm(p - l)/(2*sqrt(D)))",
        "D=1 q=(1) k=(0) p=(0) l=(0): exp(1/2) = 1.64872 != 1",
    ),
    "94 shift": (
        "given: q, k, c in R^D\nassert: exp(dot(q + c, k + c)) == exp(dot(q, k))",
        "D=1 q=(0) k=(0) c=(1): exp(1) = 2.71828 != 1; holds assuming c == 0",
    ),
    "119": (
        "given: f, g1, g2 in R^M; v1, v2 in R^D\n"
        "assert: f @ outer(g1, v1)/dot(f, g1) == f @ (outer(g1, v1) + outer(g2, v2))/dot(f, g1 + g2)",
        "M=1 D=1 f=(1) g1=(1) g2=(1) v1=(1) v2=(0): (1) != (0.5)",
    ),
    "126": ("given: x in R^D\nassert: dim([1, x, pairs(x), x*x]) == D^2", "D=1 x=(0): 3 != 1"),
    "151": (f"{TRIPLET}\nassert: an < ap", "ap=0 an=1 a=2: 1 >= 0"),
    "153": (f"{TRIPLET}\nassert: max(ap - an + a, 0) == 0", "ap=0 an=1 a=2: 1 != 0"),
    "156": ("given: f in R^E\nassume: sqnorm(f) == 1\nassert: f == 0", "E=1 f=(1): (1) != 0"),
    "161": ("assert: (87.9 - 85.6)/sqrt(1.9^2 + 2.0^2) > 1.96", "23*sqrt(761)/761 = 0.833749 <= 1.96"),
    "165": ("assert: 85.1 - 76.3 == 86.2 - 85.1", "8.8 != 1.1"),
}  # fmt: skip


def decided(text: str) -> Finding:
    """What the engines of this part say, without the others."""
    found = (engine.decide(parse(text)) for engine in (identities, witnesses, intervals))
    return next(finding for finding in found if finding is not None)


@pytest.mark.parametrize("row", HOLDS)
def test_a_row_that_holds_is_proved(row: str) -> None:
    found = decided(HOLDS[row])
    assert (found.verdict, found.grade) == ("holds", "proved"), found


@pytest.mark.parametrize("row", REFUTED)
def test_a_row_that_is_false_is_refuted_by_its_smallest_witness(row: str) -> None:
    text, detail = REFUTED[row]
    found = decided(text)
    assert (found.verdict, found.grade) == ("refuted", "exact witness"), found
    assert detail in found.detail
