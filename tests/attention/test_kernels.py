"""Kernels: hand values, logarithms that do not overflow, and the identities between them."""

import math
import re
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.attention import Elu, Exponential, Gaussian, Polynomial, Relu
from likewise.attention.kernels import Induced, SimilarityKernel, Truncated
from tests.attention.maps import draw
from tests.tolerance import assert_close

B, H, T, S, K = 2, 3, 7, 11, 5

KERNELS: dict[str, SimilarityKernel] = {
    "Exponential": Exponential(),
    "Exponential(0.3)": Exponential(0.3),
    "Gaussian": Gaussian(),
    "Gaussian(3.0)": Gaussian(3.0),
    "Polynomial": Polynomial(),
    "Polynomial(3, 0.7)": Polynomial(3, 0.7),
    "Polynomial(2, 0.0)": Polynomial(2, 0.0),
    "Truncated": Truncated(),
    "Truncated(0.6)": Truncated(0.6),
    "Induced": Relu().kernel,
    "PositiveInduced": Elu().kernel,
}
POSITIVE = [
    "Exponential",
    "Exponential(0.3)",
    "Gaussian",
    "Gaussian(3.0)",
    "Truncated",
    "Truncated(0.6)",
    "PositiveInduced",
]

each_kernel = pytest.mark.parametrize("name", KERNELS)
each_positive_kernel = pytest.mark.parametrize("name", POSITIVE)


def column(*values: float) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)[:, None]


QUERY = torch.tensor([[1.0, 1.0, 2.0]], dtype=torch.float64)
KEYS = torch.tensor([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 0.0], [0.0, 0.0, 1.0]], dtype=torch.float64)
SCORES = [3, 11, 5, 2]
SQUARED_DISTANCES = [5, 9, 21, 3]


BY_HAND: dict[str, tuple[SimilarityKernel, list[float]]] = {
    "Exponential": (Exponential(), [math.exp(s / math.sqrt(3)) for s in SCORES]),
    "Exponential(1.0)": (Exponential(1.0), [math.exp(s) for s in SCORES]),
    "Gaussian": (Gaussian(), [math.exp(-d / (2 * math.sqrt(3))) for d in SQUARED_DISTANCES]),
    "Gaussian(2.0)": (Gaussian(2.0), [math.exp(-d / 4) for d in SQUARED_DISTANCES]),
    "Polynomial": (Polynomial(), [16, 144, 36, 9]),
    "Polynomial(3, 0.0)": (Polynomial(degree=3, constant=0.0), [27, 1331, 125, 8]),
    "Truncated": (Truncated(), [1 + s / math.sqrt(3) + s**2 / 6 for s in SCORES]),
    "Truncated(1.0)": (Truncated(1.0), [8.5, 72.5, 18.5, 5]),
    "of elu": (Elu().kernel, [4 + 6 + 3, 2 + 8 + 15, 12 + 2 + 3, 2 + 2 + 6]),
    "of two maps": (Induced(queries=lambda q: q + 1, keys=lambda k: 2 * k), [12, 36, 20, 6]),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_values_by_hand(name: str) -> None:
    kernel, expected = BY_HAND[name]
    assert_close(kernel(QUERY, KEYS), torch.tensor([expected], dtype=torch.float64))


@each_kernel
def test_kernel_is_a_function_of_one_query_and_one_key(name: str) -> None:
    kernel, q, k = KERNELS[name], draw(B, H, T, K), draw(B, H, S, K)
    similarity = kernel(q, k)
    assert similarity.shape == (B, H, T, S)
    for b, h, t, s in [(0, 0, 0, 0), (1, 2, 6, 10), (0, 1, 3, 5)]:
        alone = kernel(q[b, h, t : t + 1], k[b, h, s : s + 1])
        assert_close(similarity[b, h, t, s], alone[0, 0], atol=1e-12)  # products that cancel


@each_kernel
@pytest.mark.parametrize(("queries", "keys"), [(0, S), (T, 0), (0, 0), (1, 1)])
def test_sizes_0_and_1_work(name: str, queries: int, keys: int) -> None:
    assert KERNELS[name](draw(B, queries, K), draw(B, keys, K)).shape == (B, queries, keys)


@each_kernel
def test_gradients_are_those_of_the_similarity(name: str) -> None:
    inputs = draw(2, K).requires_grad_(), draw(3, K).requires_grad_()
    assert torch.autograd.gradcheck(KERNELS[name], inputs)
    if KERNELS[name].positive:
        assert torch.autograd.gradcheck(KERNELS[name].log, inputs)


def test_positive_kernels_are_the_ones_that_say_so() -> None:
    assert [name for name, kernel in KERNELS.items() if kernel.positive] == POSITIVE


@each_positive_kernel
def test_logarithm_is_that_of_the_similarity(name: str) -> None:
    kernel, q, k = KERNELS[name], draw(B, T, K), draw(B, S, K)
    similarity = kernel(q, k)
    assert (similarity > 0).all()
    assert_close(kernel.log(q, k), similarity.log(), atol=1e-12)  # similarities near 1


@pytest.mark.parametrize("name", [name for name in KERNELS if name not in POSITIVE])
def test_kernel_that_can_be_0_or_negative_has_no_logarithm(name: str) -> None:
    kernel, q = KERNELS[name], torch.nn.functional.normalize(draw(T, K), dim=-1)
    zero_or_negative = torch.cat([kernel(q, -q), kernel(q, -0.7 * q), kernel(q - q, -q)]).min()
    assert zero_or_negative < 1e-12
    message = f"{type(kernel).__name__} is not positive everywhere, so it has no logarithm"
    with pytest.raises(NotImplementedError, match=f"^{re.escape(message)}$"):
        kernel.log(q, q)


LOGARITHMS: dict[str, tuple[SimilarityKernel, Callable[[float], float]]] = {
    "Exponential": (Exponential(1.0), lambda s: s),
    "Gaussian": (Gaussian(2.0), lambda s: -((s - 1) ** 2) / 4),
    "Truncated": (Truncated(1.0), lambda s: 2 * math.log(s) - math.log(2.0)),  # of s^2/2; 1 + s no longer counts
}


@pytest.mark.parametrize("name", LOGARITHMS)
@pytest.mark.parametrize("s", [1e12, 1e18])
def test_logarithm_is_right_where_the_similarity_overflows_or_underflows(name: str, s: float) -> None:
    kernel, logarithm = LOGARITHMS[name]
    q, k = torch.tensor([[s]], dtype=torch.float32), torch.ones(1, 1)
    assert_close(kernel.log(q, k), torch.tensor([[logarithm(s)]]))


@pytest.mark.parametrize(("dtype", "s"), [(torch.float16, 300.0), (torch.float32, 1e20)], ids=str)
def test_logarithm_of_the_truncated_series_is_right_where_the_series_overflows(dtype: torch.dtype, s: float) -> None:
    q, k = torch.tensor([[s], [-s]], dtype=dtype), torch.ones(1, 1, dtype=dtype)
    assert_close(Truncated(1.0).log(q, k), column(2 * math.log(s) - math.log(2.0)).expand(2, 1).to(dtype))


@settings(max_examples=25)
@given(
    st.sampled_from([(), (2,), (2, 3)]), st.integers(1, 7), st.integers(1, 7), st.integers(1, 13), st.integers(0, 99)
)
def test_softmax_kernel_is_the_gaussian_times_the_norms(
    batch: tuple[int, ...], queries: int, keys: int, width: int, seed: int
) -> None:
    q, k = draw(*batch, queries, width, seed=seed), draw(*batch, keys, width, seed=seed + 1)
    norms = [(x.square().sum(-1) / (2 * math.sqrt(width))).exp() for x in (q, k)]
    assert_close(Exponential()(q, k), norms[0][..., :, None] * Gaussian()(q, k) * norms[1][..., None, :])


@settings(max_examples=25)
@given(st.integers(1, 7), st.integers(1, 7), st.integers(1, 13), st.integers(0, 99))
def test_gaussian_is_symmetric_and_does_not_see_a_common_shift(queries: int, keys: int, width: int, seed: int) -> None:
    q, k, shift = draw(queries, width, seed=seed), draw(keys, width, seed=seed + 1), draw(width, seed=seed + 2)
    kernel = Gaussian(3.0)
    assert_close(kernel(q, k), kernel(k, q).mT)
    assert_close(kernel(q + shift, k + shift), kernel(q, k))
    assert (kernel(q, q).diagonal() - 1).abs().max() < 1e-12


def test_gaussian_tells_near_duplicates_apart_under_a_large_common_offset() -> None:
    offset = 4096.0
    q = torch.tensor([[offset, offset]], dtype=torch.float32)
    k = torch.tensor([[offset + 0.25, offset], [offset + 0.5, offset - 0.5], [offset, offset]], dtype=torch.float32)
    expected = torch.tensor([[-0.0625 / 0.2, -0.5 / 0.2, 0.0]])
    assert_close(Gaussian(0.1).log(q, k), expected, atol=1e-6)  # the pair at distance 0


def test_polynomial_is_0_where_the_product_is_minus_its_constant() -> None:
    q, k = torch.tensor([[1.0, 1.0]]), torch.tensor([[-1.0, 0.0], [-2.0, 0.0]])
    assert torch.equal(Polynomial(degree=2)(q, k), torch.tensor([[0.0, 1.0]]))
    assert torch.equal(Polynomial(degree=3)(q, k), torch.tensor([[0.0, -1.0]]))


def test_truncated_series_is_the_exponential_to_second_order_and_at_least_a_half() -> None:
    s = torch.linspace(-3, 3, 101, dtype=torch.float64)[:, None]
    truncated = Truncated(1.0)(s, column(1.0))
    assert ((truncated - s.exp()).abs() <= s.abs() ** 3 / 6 * s.abs().exp() + 1e-15).all()
    assert truncated.min() >= 0.5
    assert Truncated(1.0)(column(-1.0), column(1.0)).item() == 0.5


@pytest.mark.parametrize("key_dim", [1, 4, 64])
def test_scale_and_variance_default_to_those_of_softmax_attention(key_dim: int) -> None:
    assert Exponential().scale_for(key_dim) == 1 / math.sqrt(key_dim)
    assert Gaussian().variance_for(key_dim) == math.sqrt(key_dim)
    assert Exponential(0.3).scale_for(key_dim) == 0.3
    assert Gaussian(3.0).variance_for(key_dim) == 3.0


def test_kernels_with_the_same_parameters_are_equal() -> None:
    assert Gaussian(3.0) == Gaussian(3.0) != Gaussian(2.0)
    assert Exponential(0.6) != Truncated(0.6)
    assert len({Polynomial(2, 1.0), Polynomial(), Polynomial(3)}) == 2


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Exponential(0.0), "Exponential: scale must be a positive number; got 0.0."),
        (lambda: Exponential(math.nan), "Exponential: scale must be a positive number; got nan."),
        (lambda: Gaussian(-2.0), "Gaussian: variance must be a positive number; got -2.0."),
        (lambda: Truncated(-1.0), "Truncated: scale must be a positive number; got -1.0."),
        (lambda: Polynomial(0), "Polynomial: degree must be a whole number of at least 1; got 0."),
        (lambda: Polynomial(2, -0.5), "Polynomial: constant must be at least 0; got -0.5."),
        (lambda: Exponential("a"), "Exponential: scale must be a positive number; got 'a'."),  # ty: ignore[invalid-argument-type]
        (lambda: Gaussian([2.0]), "Gaussian: variance must be a positive number; got [2.0]."),  # ty: ignore[invalid-argument-type]
        (lambda: Truncated("1"), "Truncated: scale must be a positive number; got '1'."),  # ty: ignore[invalid-argument-type]
        (lambda: Polynomial("x"), "Polynomial: degree must be a whole number of at least 1; got 'x'."),  # ty: ignore[invalid-argument-type]
        (lambda: Polynomial(2, None), "Polynomial: constant must be at least 0; got None."),  # ty: ignore[invalid-argument-type]
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_kernels_refuse_wrong_parameters(make: Callable[[], SimilarityKernel], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()


@pytest.mark.usefixtures("without_shape_checks")
@each_kernel
@pytest.mark.parametrize(("query_width", "key_width"), [(3, 5), (1, 5), (5, 1)])
def test_kernels_refuse_keys_of_another_width(name: str, query_width: int, key_width: int) -> None:
    message = re.escape(f"y must have the width of x, {query_width}; got {key_width}.")
    with pytest.raises(ValueError, match=f"^(squared_distances|products): {message}$"):
        KERNELS[name](draw(T, query_width), draw(S, key_width))
