"""Programs that claims may name compute what likewise.attention computes, and cost what the reference says."""

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.attention import (
    Polynomial,
    Quadratic,
    SoftmaxFourier,
    kernel_attention,
    linear_attention,
    softmax_attention,
)
from likewise.claims.registry import Program, program, programs, register, register_counter
from likewise.cost import break_even, cost, cost_polynomial
from tests.house.test_lightness import heavy_imports
from tests.tolerance import assert_close

N, D, M, R = 7, 3, 5, 11


def drawn(*shapes: tuple[int, ...]) -> list[Tensor]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator, dtype=torch.float64) for shape in shapes]


def run(name: str, memory: Any, *inputs: Tensor) -> Tensor:
    sizes = dict(zip("NDMR", (N, D, M, R), strict=True))
    function, *_ = program(name).make(memory)(**{size: sizes[size] for size in program(name).sizes})
    return function(*inputs)


BOTH = pytest.mark.parametrize("memory", ["materialised", "streamed"])


@BOTH
@pytest.mark.parametrize("name", ["attention.softmax", "attention.softmax_online", "attention.causal_softmax"])
def test_softmax_is_ours(name: str, memory: str) -> None:
    q, k, v = drawn((N, D), (N, D), (N, M))
    for queries in (q, 300 * q):  # exp(300) overflows where nothing is kept relative to the largest
        ours = softmax_attention(queries[None, None], k[None, None], v[None, None], causal="causal" in name)[0, 0]
        assert_close(run(name, memory, queries, k, v), ours)


@BOTH
@pytest.mark.parametrize("name", ["attention.kernel", "attention.quadratic"])
def test_quadratic_attention_is_ours(name: str, memory: str) -> None:
    q, k, v = drawn((N, D), (N, D), (N, M))
    heads = [x[None, None] for x in (q, k, v)]
    exact = kernel_attention(*heads, kernel=Polynomial(degree=2, constant=1.0))[0, 0]
    assert_close(run(name, memory, q, k, v), exact)
    assert_close(linear_attention(*heads, features=Quadratic(D))[0, 0], exact)


@BOTH
@pytest.mark.parametrize(("name", "causal"), [("attention.random_features", False), ("attention.causal", True)])
def test_random_features_are_ours(name: str, causal: bool, memory: str) -> None:
    features = SoftmaxFourier(D, num_frequencies=R, generator=torch.Generator().manual_seed(1)).double()
    [w] = [buffer for buffer in features.buffers() if buffer.shape[-2:] == (R, D)]
    q, k, v = drawn((N, D), (N, D), (N, M))
    ours = linear_attention(q[None, None], k[None, None], v[None, None], features=features, causal=causal)[0, 0]
    directions = w.reshape(R, D) * D**-0.25  # ours are drawn from N(0, I) and meet scaled vectors
    assert_close(run(name, memory, q, k, v, directions), ours)


@pytest.mark.parametrize("name", ["attention.mha_step", "attention.mqa_step"])
def test_a_step_is_ours(name: str) -> None:
    b, n, h, k, v, d = 2, 3, 5, 7, 13, 11
    step, *like = program(name).make()(b=b, n=n, h=h, k=k, v=v, d=d)
    x, keys, values, wq, wk, wv, wo = drawn(*(tuple(tensor.shape) for tensor in like))
    y, key, value = step(x, keys, values, wq, wk, wv, wo)
    q = torch.einsum("bd,hdk->bhk", x, wq)[:, :, None]
    heads = [cache if cache.dim() == 4 else cache[:, None] for cache in (keys, values)]
    out = softmax_attention(q, *heads)[:, :, 0]
    assert_close(y, torch.einsum("bhv,hdv->bd", out, wo))
    assert (key.shape, value.shape) == (keys.select(-2, 0).shape, values.select(-2, 0).shape)
    assert_close(key, torch.einsum("bd,...dk->b...k", x, wk))
    assert_close(value, torch.einsum("bd,...dv->b...v", x, wv))


# What the reference prints of each, word for word.
REFERENCE = {
    ("attention.random_features", "materialised"): {
        "macs": "4*N*M*R + 2*N*D*R + 2*N*R",
        "elementwise": "12*N*R + 2*N*D + N*M + 8*N + 2*R",
        "runs": "16+4 runs",
    },
    ("attention.softmax", "materialised"): {
        "macs": "N^2*D + N^2*M",
        "elementwise": "2*N^2",
        "peak": "max(2*N^2 + 2*N*D + N*M, N^2 + 2*N*D + 2*N*M)",
        "runs": "12+4 runs",
    },
    ("attention.softmax_online", "materialised"): {"peak": "5*N*M + 2*N*D + 6*N", "runs": "12+4 runs"},
    ("attention.softmax", "streamed"): {"peak": "5*N*M + 2*N*D + 6*N"},
    # 2ND^2M + 2NDM + 2NM for phi(k)'v and phi(q) times it, ND^2 + ND + N for phi(q) times the sum of phi(k)
    ("attention.quadratic", "materialised"): {"macs": "2*N*D^2*M + N*D^2 + 2*N*D*M + 2*N*M + N*D + N"},
    ("attention.mqa_step", "materialised"): {
        "macs": "b*n*h*k + b*n*h*v + b*h*k*d + b*h*v*d + b*k*d + b*v*d",
        "elementwise": "2*b*n*h",
        "traffic": "6*b*n*h + 3*h*k*d + 3*h*v*d + 2*b*h*k + 2*b*h*v + b*n*k + b*n*v + 4*b*d + b*k + b*v + k*d + v*d",
        "copies": "2*h*k*d + 2*h*v*d",
        "fused_traffic": "b*n*k + b*n*v + h*k*d + h*v*d + 4*b*d + b*k + b*v + k*d + v*d",
        "runs": "64+4 runs",
    },
    ("attention.mha_step", "materialised"): {"macs": "2*b*h*k*d + 2*b*h*v*d + b*n*h*k + b*n*h*v"},
    # half of the pairs, where a program meets only those
    ("attention.causal_softmax", "materialised"): {"macs": "N^2*D + N^2*M", "elementwise": "6*N^2"},
    ("attention.causal_softmax", "streamed"): {
        "macs": "1/2*N^2*D + 1/2*N^2*M + 1/2*N*D + 1/2*N*M",
        "elementwise": "N^2 + N*M + N",
    },
}


@pytest.mark.parametrize(("name", "memory"), REFERENCE)
def test_costs_are_those_of_the_reference(name: str, memory: Any) -> None:
    growth = cost_polynomial(program(name).make(memory), program(name).sizes)
    for quantity, text in REFERENCE[name, memory].items():
        assert (growth.runs if quantity == "runs" else growth.text(quantity)) == text


@pytest.mark.parametrize(
    ("name", "params", "macs"),
    [
        ("facenet.nn1", 140025664, 1605944064),
        ("facenet.nn2", 7456304, 1596530688),
        ("facenet.nn3", 7456304, 814620672),
        ("facenet.nn4", 6607888, 284741632),
        ("facenet.nns1", 26288232, 221658848),
        ("facenet.nns2", 4342304, 19696512),
        ("resnet50.v1", 25557032, 3857973248),
        ("resnet50.v1_5", 25557032, 4089184256),
    ],
)
def test_networks_cost_what_their_tables_say(name: str, params: int, macs: int) -> None:
    network, image = program(name).make()()
    found = cost(network, image)
    assert not network.training
    assert (found.params, found.macs) == (params, macs)


def test_random_features_win_from_three_times_as_many_positions() -> None:
    growths = [
        cost_polynomial(program(f"attention.{name}").make(), program(f"attention.{name}").sizes, quantities=["macs"])
        for name in ("random_features", "softmax")
    ]
    sizes = {"D": 64, "M": 64, "R": 100}  # R (4M + 2D + 2) / (D + M) = 301.56
    assert str(break_even(growths[0].macs, growths[1].macs, over="N", at=sizes)) == "a costs less from N=302 on"


@given(st.integers(1, 5), st.integers(1, 5))
def test_triplets_are_those_of_a_search(identities: int, images: int) -> None:
    labels = [label for label in range(identities) for _ in range(images)]
    search = sum(
        a != p and labels[a] == labels[p] != labels[n]
        for a in range(len(labels))
        for p in range(len(labels))
        for n in range(len(labels))
    )
    P, K = identities, images
    assert counted("facenet.triplets", P=P, K=K) == search == P * K * (K - 1) * (P * K - K)


def counted(name: str, **sizes: int) -> int:
    count = program(name).count
    assert count is not None
    return count(**sizes)


@pytest.mark.parametrize("width", [1, 2, 5])
def test_features_are_counted(width: int) -> None:
    assert counted("attention.quadratic_features", D=width) == math.comb(width + 2, 2)
    assert counted("attention.product_features", D=width) == width**2
    assert counted("attention.ordered_quadratic_features", D=width) == 1 + width + width**2
    assert counted("attention.short_quadratic_features", D=width) == 1 + 2 * width
    assert counted("attention.fourier_features", R=width) == 2 * width


def test_a_shared_cache_is_smaller_by_the_number_of_heads() -> None:
    sizes = {"b": 2, "n": 3, "h": 5, "k": 7, "v": 11}
    shared = counted("attention.mqa_cache", **sizes)
    assert counted("attention.mha_cache", **sizes) == 5 * shared == 5 * 2 * 3 * (7 + 11)


def test_layers_of_nn1_are_rows_or_those_with_weights() -> None:
    assert (counted("facenet.nn1_rows"), counted("facenet.nn1_layers")) == (22, 14)


def test_listing_programs_imports_nothing_heavy() -> None:
    listing = (
        "from likewise.claims.registry import programs; assert [(p.sizes, p.variants) for p in programs().values()]"
    )
    assert heavy_imports(listing) == set()


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> dict[str, Program]:
    """What a test registers is gone after it."""
    own = dict(programs())
    monkeypatch.setattr("likewise.claims.registry._programs", own)
    return own


def test_a_registered_program_is_counted_by_its_name(registry: dict[str, Program]) -> None:
    register("demo.gram", lambda x: x @ x.T, lambda n, d: (torch.empty(n, d),), {"streamed": lambda x: x})
    assert program("demo.gram") is registry["demo.gram"]
    assert (program("demo.gram").sizes, program("demo.gram").variants) == (("n", "d"), ("materialised", "streamed"))
    assert cost_polynomial(program("demo.gram").make(), "nd").text("macs") == "n^2*d"
    assert cost_polynomial(program("demo.gram").make("streamed"), "nd").text("macs") == "0"
    register_counter("demo.pairs", lambda n: n * (n - 1) // 2)
    assert counted("demo.pairs", n=5) == 10


@pytest.mark.parametrize(
    ("refused", "message"),
    [
        (
            lambda: program("attention.sofmax"),
            "program: name must be registered; got 'attention.sofmax'. There are att",
        ),
        (
            lambda: program("attention.mqa_step").make("streamed"),
            "program: memory must be materialised for attention.mqa_step; got 'streamed'.",
        ),
        (
            lambda: program("facenet.triplets").make(),
            "program: facenet.triplets must be a program; got a counter. Ask for its count.",
        ),
        (
            lambda: register("attention.softmax", lambda x: x, lambda n: ()),
            "register: name must be new; got 'attention.softmax'.",
        ),
        (
            lambda: register("demo.fast", lambda x: x, lambda n: (), {"fast": lambda x: x}),
            "register: variants must be one of 'materialised', 'streamed'; got 'fast'.",
        ),
    ],
)
def test_refusals_name_the_rule(refused: Callable[[], Any], message: str, registry: dict[str, Program]) -> None:
    with pytest.raises(ValueError, match="must") as stopped:
        refused()
    assert str(stopped.value).startswith(message)
