"""linear_attention is brute force, in values and in gradients, whatever the map, the shapes and the chunks."""

import math
import warnings
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.attention import (
    DenominatorWarning,
    Elu,
    FeatureMap,
    Fourier,
    Positive,
    Relu,
    Scaled,
    linear_attention,
)
from likewise.attention.linear import recurrent_attention
from tests.attention import brute
from tests.attention.drawing import SMALL, Sizes, assert_same, both, draw, ours, seeded, wild_rows, with_gradients
from tests.tolerance import assert_close

PRIMES = st.sampled_from([1, 2, 3, 5, 7, 11, 13])
SHAPES = st.builds(Sizes, *[st.sampled_from([1, 2, 3])] * 3, PRIMES, PRIMES, PRIMES, PRIMES)
DIRECTIONS = pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])
BOTH_FORMS = pytest.mark.usefixtures("both_forms")
EVERY_MAP = pytest.mark.parametrize("name", brute.MAPS)


@EVERY_MAP
@DIRECTIONS
def test_few_rows_are_too_wild_to_compare(name: str, causal: bool) -> None:
    features = brute.MAPS[name].make(5, 3, seeded(3))
    wild = wild_rows(name, features, draw(Sizes(), seeded(4), size=SMALL), {"causal": causal})
    assert wild.double().mean() < (0.1 if name in brute.SIGNED else 1e-9)


@BOTH_FORMS
@EVERY_MAP
def test_linear_is_the_plain_recurrence(name: str) -> None:
    sizes = Sizes()._replace(S=Sizes().T)
    inputs = draw(sizes, seeded(6), size=SMALL)
    features = brute.MAPS[name].make(sizes.K, 1, seeded(5))
    plain = recurrent_attention(*inputs, features=features)
    fast = linear_attention(*inputs, features=features, causal=True)
    seen = plain.isfinite()  # a ReLU may leave nothing to divide by: 0 in the fast form
    assert_close(fast[seen], plain[seen])
    assert seen.double().mean() > 0.9


@BOTH_FORMS
@pytest.mark.slow
@EVERY_MAP
@settings(max_examples=12)
@given(
    causal=st.booleans(),
    sizes=SHAPES,
    chunk_size=st.sampled_from([1, 2, 7, None]),
    own_frequencies=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_linear_is_brute_force_for_any_shape(
    name: str, causal: bool, sizes: Sizes, chunk_size: int | None, own_frequencies: bool, seed: int
) -> None:
    generator = seeded(seed)
    features = brute.MAPS[name].make(sizes.K, sizes.G if own_frequencies else 1, generator)
    inputs = draw(sizes, generator, size=SMALL)
    assert_same(*both(name, features, inputs, {"causal": causal}, chunk_size))


@BOTH_FORMS
@EVERY_MAP
@pytest.mark.parametrize(("groups", "causal"), [(6, True), (3, False), (1, True)])
def test_linear_is_brute_force_for_grouped_heads(name: str, causal: bool, groups: int) -> None:
    generator = seeded(groups)
    sizes = Sizes(G=groups, repeats=6 // groups)
    features = brute.MAPS[name].make(sizes.K, groups, generator)
    assert_same(*both(name, features, draw(sizes, generator, size=SMALL), {"causal": causal}, 3))


@BOTH_FORMS
@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "causal"),
    [
        ("Elu", True),
        ("Quadratic", True),
        ("SoftmaxFourier", True),
        ("Positive", True),
        ("Relu", False),
        ("Positive", False),
    ],
)
def test_linear_is_brute_force_beyond_every_default_chunk(name: str, causal: bool) -> None:
    generator = seeded(5)
    sizes = Sizes(B=1, G=1, repeats=2, T=547, S=563, K=3, V=2)
    features = brute.MAPS[name].make(sizes.K, 1, generator)
    assert_same(*both(name, features, draw(sizes, generator, size=SMALL), {"causal": causal}))


@EVERY_MAP
def test_the_chunk_size_does_not_matter(name: str) -> None:
    generator = seeded(7)
    features = brute.MAPS[name].make(5, 1, generator)
    inputs = draw(Sizes(T=19, S=23), generator, size=SMALL)
    wild = wild_rows(name, features, inputs, {"causal": True})
    whole, expected = both(name, features, inputs, {"causal": True}, 1000)
    assert_same(whole, expected)
    for chunk_size in (1, 2, 7, 22, 23, None):
        assert_same(ours(features, inputs, {"causal": True}, chunk_size, wild), whole)


def test_the_worked_causal_numbers_come_out() -> None:
    q = torch.tensor([[1.0, 0.0], [1.0, 1.0]], dtype=torch.float64).view(1, 1, 2, 2)
    k = torch.tensor([[1.0, 2.0], [3.0, 1.0]], dtype=torch.float64).view(1, 1, 2, 2)
    v = torch.tensor([[1.0], [3.0]], dtype=torch.float64).view(1, 1, 2, 1)
    out = linear_attention(q, k, v, features=Relu(), causal=True)
    assert_close(out.flatten(), torch.tensor([1.0, 15 / 7], dtype=torch.float64))


def test_a_denominator_of_exactly_zero_gives_zero_with_gradient_zero() -> None:
    q = torch.tensor([[-1.0, 2.0], [1.0, 1.0]], dtype=torch.float64).view(1, 1, 2, 2)
    k = torch.tensor([[3.0, -1.0], [5.0, -2.0]], dtype=torch.float64).view(1, 1, 2, 2)
    v = torch.tensor([[7.0], [11.0]], dtype=torch.float64).view(1, 1, 2, 1)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(q, k, v, features=Relu())

    out, _, _, _ = with_gradients(attend, q, k, v)
    assert_close(out.flatten(), torch.tensor([0.0, (3 * 7 + 5 * 11) / 8], dtype=torch.float64))
    for gradient in with_gradients(attend, q, k, v, rows=slice(0, 1))[1:]:
        assert torch.equal(gradient, torch.zeros_like(gradient))


def test_a_negative_denominator_is_left_alone() -> None:
    features = Fourier(1, num_frequencies=1, variance=1.0, generator=seeded(0))
    features.frequencies.fill_(1.0)  # the similarity is cos(q - k)
    q = torch.zeros(1, 1, 1, 1, dtype=torch.float64)
    k = torch.tensor([math.pi, 2.0], dtype=torch.float64).view(1, 1, 2, 1)
    v = torch.tensor([3.0, 5.0], dtype=torch.float64).view(1, 1, 2, 1)
    expected = (-3 + 5 * math.cos(2)) / (-1 + math.cos(2))
    out = linear_attention(q, k, v, features=features)
    assert_close(out.flatten(), torch.tensor([expected], dtype=torch.float64))


def signed_pair() -> tuple[Tensor, Tensor, Tensor]:
    """Two keys whose similarities with the query are 1 and -0.999."""
    q = torch.tensor([1.0, 0.0]).view(1, 1, 1, 2)
    return q, torch.tensor([[1.0, 0.0], [-0.999, 0.0]]).view(1, 1, 2, 2), torch.tensor([[1.0], [-1.0]]).view(1, 1, 2, 1)


class Identity(FeatureMap):
    """phi(x) = x, whose similarities q.k have both signs."""

    def split_keys(self, x: Tensor) -> Scaled:
        return Scaled(x, None)


@pytest.mark.parametrize("causal", [True, False])
def test_a_denominator_near_zero_is_warned_of_once(causal: bool) -> None:
    features = Identity()
    words = r"^linear_attention: a denominator of Identity came near zero: an output is 2e\+03, the largest value 1\."
    with pytest.warns(DenominatorWarning, match=words):
        linear_attention(*signed_pair(), features=features, causal=causal)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        linear_attention(*signed_pair(), features=features, causal=causal)


def test_averages_of_values_are_not_warned_of() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        q, k, v = signed_pair()
        linear_attention(q, k.abs(), v, features=Identity())
        linear_attention(q, k, v[..., :0], features=Identity())
        for features in (Elu(), Relu(), Positive(2, num_features=3, generator=seeded(0))):
            linear_attention(q, k, v, features=features)


BOTH_WAYS = [{"causal": True}, {}]
WINDOWED = [{"causal": True, "exact_within": 5}, {"exact_within": 5}]  # an exact map needs no window, so it has none


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "options"),
    [
        (name, options)
        for name, row in brute.MAPS.items()
        for options in BOTH_WAYS + ([] if row.make(5, 3, seeded(3)).exact else WINDOWED)
    ],
)
def test_vmap_equals_a_loop(name: str, options: dict[str, Any]) -> None:
    features = brute.MAPS[name].make(5, 3, seeded(3))
    shapes = (2, 2, 6, 19, 5), (2, 2, 3, 19, 5), (2, 2, 3, 19, 7)
    inputs = [torch.rand(shape, dtype=torch.float64, generator=seeded(i)) for i, shape in enumerate(shapes)]

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(q, k, v, features=features, **options).square().sum()

    found = torch.func.vmap(torch.func.grad(loss, argnums=(0, 1, 2)))(*inputs)
    for row in range(2):
        expected = torch.func.grad(loss, argnums=(0, 1, 2))(*(x[row] for x in inputs))
        for one, other in zip(found, expected, strict=True):
            assert_close(one[row], other, atol=1e-9 * other.abs().max().item())
    queries = torch.func.vmap(lambda q: loss(q, inputs[1][0], inputs[2][0]))(inputs[0])
    assert_close(queries[1], loss(inputs[0][1], inputs[1][0], inputs[2][0]))
