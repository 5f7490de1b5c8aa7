"""Every feature map keeps the contract of the table; the explicit maps equal their kernels."""

import copy
import io
import math
import re
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from likewise.attention import Elu, FeatureMap, Monomials, Polynomial, Quadratic, Relu, Taylor
from likewise.attention.features import Scaled
from likewise.attention.kernels import Induced, PositiveInduced
from tests.attention.maps import ROWS, K, build, draw
from tests.tolerance import assert_close

B, H, T, S = 2, 3, 7, 11

each_map = pytest.mark.parametrize("name", ROWS)


@each_map
def test_features_are_as_wide_as_dim_says(name: str) -> None:
    phi, x = build(name), draw(B, H, T, K)
    assert phi.dim == ROWS[name].dim
    assert phi.queries(x).shape == phi.keys(x).shape == (B, H, T, phi.dim or K)


@each_map
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16], ids=str)
def test_features_have_the_dtype_of_the_input(name: str, dtype: torch.dtype) -> None:
    phi, x = build(name), draw(T, K, dtype=dtype)
    for features in (phi.queries, phi.keys):
        assert features(x).dtype == dtype
        assert_close(features(x), features(x.double()).to(dtype))


@each_map
def test_map_names_its_kernel(name: str) -> None:
    phi, expected = build(name), ROWS[name].kernel
    kernel = phi.kernel
    if expected is None:
        assert isinstance(kernel, PositiveInduced if phi.positive else Induced)
        assert (kernel.queries, kernel.keys) == (phi.queries, phi.keys)
    else:
        assert kernel == expected


@each_map
def test_exact_says_whether_features_equal_the_kernel(name: str) -> None:
    phi, q, k = build(name), draw(B, H, T, K), draw(B, H, S, K)
    estimate, similarity = phi.queries(q) @ phi.keys(k).mT, phi.kernel(q, k)
    assert phi.exact == ROWS[name].exact
    if phi.exact:
        assert phi.unbiased
        assert_close(estimate, similarity, atol=1e-12)  # similarities that cancel to nearly 0
    else:
        assert (estimate / similarity - 1).abs().max() > 1e-3


@each_map
def test_positive_says_whether_every_similarity_is_above_0(name: str) -> None:
    phi, directions = build(name), nn.functional.normalize(draw(101, K), dim=-1)
    q = torch.cat([directions, 4 * directions])
    opposite = phi.queries(q) @ phi.keys(-q).mT  # the least similar pairs; (q.k + 1)^2 is 0 at q.k = -1
    assert phi.positive == ROWS[name].positive
    if phi.positive:
        assert (opposite > 0).all()
        assert (phi.queries(q) @ phi.keys(draw(S, K)).mT > 0).all()
    else:
        assert opposite.min() < 1e-12


@each_map
def test_split_features_multiply_to_the_plain_ones(name: str) -> None:
    phi, x = build(name), draw(B, H, S, K)
    for split, plain in ((phi.split_keys(x), phi.keys(x)), (phi.split_queries(x), phi.queries(x))):
        one, zero = torch.ones_like(plain), torch.zeros_like(plain)
        value = one if split.value is None else split.value
        log = zero if split.log is None else split.log
        assert_close(value * log.exp(), plain)
        assert split.width == plain.shape[-1]
        assert log.shape in (plain.shape, (*plain.shape[:-1], 1))


def test_split_features_are_as_wide_as_their_widest_part() -> None:
    wide, narrow = torch.full((2, 3), 2.0), torch.zeros(2, 1)
    for split in (Scaled(wide, narrow), Scaled(None, wide), Scaled(wide, None), Scaled(narrow, wide)):
        assert split.width == 3
    assert torch.equal(Scaled(wide, narrow + math.log(3.0)).plain(), torch.full((2, 3), 6.0))


@each_map
def test_features_of_a_row_depend_on_that_row_alone(name: str) -> None:
    phi, x = build(name), draw(B, T, K)
    other = torch.cat([x[:, :3], 100 * x[:, 3:]], dim=1)
    for features in (phi.queries, phi.keys):
        assert torch.equal(features(other)[:, :3], features(x)[:, :3])
        assert_close(features(x[1, 2:3]), features(x)[1, 2:3])


@each_map
@pytest.mark.parametrize("shape", [(0, K), (1, K), (B, 0, K), (0, H, T, K)], ids=str)
def test_sizes_0_and_1_work(name: str, shape: tuple[int, ...]) -> None:
    phi = build(name)
    assert phi.queries(draw(*shape)).shape == phi.keys(draw(*shape)).shape == (*shape[:-1], phi.dim or K)


@pytest.mark.slow
@each_map
def test_gradients_are_those_of_the_features(name: str) -> None:
    phi, x = build(name), draw(3, K).requires_grad_()
    for features in (phi.queries, phi.keys):
        assert torch.autograd.gradcheck(features, x)
        assert torch.autograd.gradgradcheck(features, x, fast_mode=True)


@each_map
def test_saved_map_loads_into_the_same_map(name: str) -> None:
    phi, other, x = build(name, seed=1), build(name, seed=2), draw(T, K)
    file = io.BytesIO()
    torch.save(phi.state_dict(), file)
    file.seek(0)
    other.load_state_dict(torch.load(file, weights_only=True))
    assert torch.equal(other.queries(x), phi.queries(x))
    assert torch.equal(other.keys(x), phi.keys(x))
    assert other.projection_id == phi.projection_id


@pytest.mark.parametrize("name", [name for name, row in ROWS.items() if row.exact])
def test_explicit_map_has_nothing_to_save_or_train(name: str) -> None:
    phi = build(name)
    assert not phi.state_dict()
    assert not list(phi.parameters())


@each_map
@pytest.mark.parametrize("training", [True, False], ids=["train", "eval"])
def test_use_changes_nothing(name: str, training: bool) -> None:
    phi, x = build(name).train(training), draw(T, K)
    before, identity, features = copy.deepcopy(phi.state_dict()), phi.projection_id, phi.keys(x)
    phi.queries(draw(S, K))
    assert torch.equal(phi.keys(x), features)
    assert phi.projection_id == identity
    assert phi.state_dict().keys() == before.keys()
    assert all(torch.equal(buffer, before[key]) for key, buffer in phi.state_dict().items())


class Model(nn.Module):
    """A map as part of something larger, which is what people cast."""

    def __init__(self, phi: FeatureMap) -> None:
        super().__init__()
        self.phi, self.head = phi, nn.Linear(2, 3)


CASTS: dict[str, Callable[[nn.Module], nn.Module]] = {
    "bfloat16": lambda module: module.bfloat16(),
    "half": lambda module: module.half(),
    "double": lambda module: module.double(),
    "to": lambda module: module.to(torch.bfloat16),
    "there and back": lambda module: module.bfloat16().float(),
}


@each_map
@pytest.mark.parametrize("cast", CASTS)
def test_casting_a_model_leaves_its_map_alone(name: str, cast: str) -> None:
    phi, x = build(name), draw(T, K)
    features, identity = phi.keys(x), phi.projection_id
    model = Model(phi)
    CASTS[cast](model)
    assert model.head.weight.dtype == {"double": torch.float64, "there and back": torch.float32}.get(
        cast, torch.float16 if cast == "half" else torch.bfloat16
    )
    assert torch.equal(phi.keys(x), features)
    assert phi.projection_id == identity


@each_map
def test_copy_is_the_same_map(name: str) -> None:
    phi, x = build(name), draw(T, K)
    twin = copy.deepcopy(phi)
    assert torch.equal(twin.keys(x), phi.keys(x))
    assert twin.projection_id == phi.projection_id
    buffers = {buffer.data_ptr() for buffer in phi.buffers()}
    assert not buffers & {buffer.data_ptr() for buffer in twin.buffers()}


def test_different_maps_have_different_projection_ids() -> None:
    maps = [build(name) for name in ROWS]
    maps += [Quadratic(K, constant=2.0), Quadratic(K + 1), Monomials(K, degree=2), Taylor(K), Taylor(K, scale=0.7)]
    assert len({phi.projection_id for phi in maps}) == len(maps)


@each_map
def test_input_of_another_width_is_refused(name: str) -> None:
    phi = build(name)
    if phi.key_dim is None:
        assert phi.keys(draw(T, K + 2)).shape == (T, K + 2)
        return
    message = f"{name}: input must have width key_dim = 5; got 7."
    for features in (phi.queries, phi.keys):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            features(draw(T, K + 2))


def test_elu_and_relu_by_hand() -> None:
    x = torch.tensor([[-math.log(2.0), 0.0, 2.0]], dtype=torch.float64)
    assert_close(Elu().keys(x), torch.tensor([[0.5, 1.0, 3.0]], dtype=torch.float64))
    assert torch.equal(Relu().keys(x), torch.tensor([[0.0, 0.0, 2.0]], dtype=torch.float64))
    assert_close(Elu().kernel(x, x), torch.tensor([[0.25 + 1 + 9]], dtype=torch.float64))
    assert torch.equal(Relu().kernel(x, x), torch.tensor([[4.0]], dtype=torch.float64))


def test_elu_in_bfloat16_keeps_its_small_values() -> None:
    x = torch.tensor([[-8.0, -6.0]], dtype=torch.bfloat16)
    expected = torch.tensor([[3.3546e-4, 2.4788e-3]])
    for features in (Elu().keys(x), Elu().split_keys(x).plain()):
        assert (features.float() / expected - 1).abs().max() < 2**-8  # half a step between bfloat16 numbers
    cancelled = nn.functional.elu(x) + 1  # the formula as printed
    assert (cancelled.float() / expected - 1).abs().min() > 0.5


@pytest.mark.parametrize(("dtype", "x"), [(torch.float32, -20.0), (torch.float64, -50.0)], ids=str)
def test_elu_keeps_small_values_in_every_dtype(dtype: torch.dtype, x: float) -> None:
    assert_close(Elu().keys(torch.full((1, 1), x, dtype=dtype)), torch.full((1, 1), math.exp(x), dtype=dtype))


def test_elu_has_gradient_1_at_0_and_beyond_however_large() -> None:
    x = torch.tensor([[0.0, 1.0, 1000.0]], requires_grad=True)
    [gradient] = torch.autograd.grad(Elu().keys(x).sum(), x)
    assert torch.equal(gradient, torch.ones(1, 3))


batches = st.sampled_from([(), (2,), (2, 3)])
sizes = st.integers(min_value=1, max_value=5)


def law(phi: FeatureMap, q: Tensor, k: Tensor, expected: Tensor) -> None:
    # Features of size |x|^degree cancel where q.k + constant is near 0: rounding is relative to the largest product.
    largest = (phi.queries(q).norm(dim=-1)[..., :, None] * phi.keys(k).norm(dim=-1)[..., None, :]).max()
    assert_close(phi.queries(q) @ phi.keys(k).mT, expected, atol=1e-14 * largest.item())


@settings(max_examples=50)
@given(batches, sizes, sizes, sizes, st.integers(1, 4), st.sampled_from([0.0, 0.25, 1.0, 3.0]), st.integers(0, 99))
def test_monomials_equal_the_polynomial_kernel(
    batch: tuple[int, ...], queries: int, keys: int, width: int, degree: int, constant: float, seed: int
) -> None:
    q, k = draw(*batch, queries, width, seed=seed), draw(*batch, keys, width, seed=seed + 1)
    phi = Monomials(width, degree=degree, constant=constant)
    law(phi, q, k, ((q[..., :, None, :] * k[..., None, :, :]).sum(-1) + constant) ** degree)
    assert phi.kernel == Polynomial(degree, constant)
    monomials_up_to_degree, of_full_degree = math.comb(width + degree, degree), math.comb(width + degree - 1, degree)
    assert phi.dim == (monomials_up_to_degree if constant else of_full_degree)


@settings(max_examples=25)
@given(batches, sizes, sizes, sizes, st.sampled_from([0.0, 0.25, 1.0, 3.0]), st.integers(0, 99))
def test_quadratic_equals_its_kernel(
    batch: tuple[int, ...], queries: int, keys: int, width: int, constant: float, seed: int
) -> None:
    q, k = draw(*batch, queries, width, seed=seed), draw(*batch, keys, width, seed=seed + 1)
    law(Quadratic(width, constant=constant), q, k, ((q[..., :, None, :] * k[..., None, :, :]).sum(-1) + constant) ** 2)


@settings(max_examples=25)
@given(batches, sizes, sizes, sizes, st.sampled_from([None, 0.25, 1.0, 3.0]), st.integers(0, 99))
def test_taylor_equals_the_series_to_second_order(
    batch: tuple[int, ...], queries: int, keys: int, width: int, scale: float | None, seed: int
) -> None:
    q, k = draw(*batch, queries, width, seed=seed), draw(*batch, keys, width, seed=seed + 1)
    s = (q[..., :, None, :] * k[..., None, :, :]).sum(-1) * (1 / math.sqrt(width) if scale is None else scale)
    law(Taylor(width, scale=scale), q, k, 1 + s + s**2 / 2)


@pytest.mark.parametrize(("key_dim", "width"), [(1, 3), (2, 6), (16, 153), (32, 561), (64, 2145)])
def test_symmetric_maps_have_the_width_of_the_reference(key_dim: int, width: int) -> None:
    assert Quadratic(key_dim).dim == Taylor(key_dim).dim == Monomials(key_dim, degree=2).dim == width
    assert Quadratic(key_dim, constant=0.0).dim == width - 1 - key_dim


PAIRS = torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64)


def similarity_by_hand(features: Callable[[Tensor], Tensor]) -> list[float]:
    """Of (1, 1) with itself and with (1, -1); (q.k + 1)^2 is 9 and 1."""
    similarity = features(PAIRS[:1]) @ features(PAIRS).mT
    return [round(value, 9) for value in similarity[0].tolist()]


def test_quadratic_by_hand() -> None:
    assert similarity_by_hand(Quadratic(2).keys) == [9.0, 1.0]


def test_map_without_mixed_products_is_told_from_the_quadratic_one() -> None:
    wrong = similarity_by_hand(lambda x: torch.cat([torch.ones_like(x[:, :1]), math.sqrt(2) * x, x * x], dim=-1))
    assert wrong == [7.0, 3.0]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Quadratic(0), "Quadratic: key_dim must be a whole number of at least 1; got 0."),
        (lambda: Quadratic(True), "Quadratic: key_dim must be a whole number of at least 1; got True."),
        (lambda: Quadratic(2, constant=-1.0), "Polynomial: constant must be at least 0; got -1.0."),
        (lambda: Monomials(-1, degree=3), "Monomials: key_dim must be a whole number of at least 1; got -1."),
        (lambda: Monomials(2, degree=0), "Polynomial: degree must be a whole number of at least 1; got 0."),
        (
            lambda: Elu(32),  # ty: ignore[invalid-argument-type]
            "Elu: kernel must be a kernel such as Exponential(); got 32. The width is that of the input: Elu().",
        ),
        (
            lambda: Relu("x"),  # ty: ignore[invalid-argument-type]
            "Relu: kernel must be a kernel such as Exponential(); got 'x'.",
        ),
        (lambda: Taylor(0), "Taylor: key_dim must be a whole number of at least 1; got 0."),
        (lambda: Taylor(2, scale=0.0), "Truncated: scale must be a positive number; got 0.0."),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_maps_refuse_wrong_parameters(make: Callable[[], FeatureMap], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
