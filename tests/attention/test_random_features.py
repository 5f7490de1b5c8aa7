"""Random feature maps: unbiased for their kernels, with the variances of the theory, and drawn only when asked."""

import copy
import functools
import math
import re
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from likewise.attention import Exponential, FeatureMap, Fitted, Fourier, Gaussian, Hyperbolic, Positive, SoftmaxFourier
from likewise.attention.frequencies import SAMPLERS, Sampler
from likewise.attention.random_features import RandomFeatures
from tests.attention.drawing import seeded
from tests.attention.maps import RANDOM, ROWS, K, build, draw
from tests.tolerance import assert_close

DRAWS = 10007

each_random_map = pytest.mark.parametrize("name", RANDOM)
each_sampler = pytest.mark.parametrize("sampler", SAMPLERS)

# Short vectors: the estimates have light tails, so that means and variances of DRAWS draws are accurate.
Q, KEYS = 0.4 * draw(2, K), 0.4 * draw(3, K)


def random_map(name: str) -> RandomFeatures:
    phi = build(name)
    assert isinstance(phi, RandomFeatures)
    return phi


@functools.cache
def many_draws(name: str, sampler: Sampler) -> RandomFeatures:
    """One map whose key-value heads are independent draws."""
    phi = ROWS[name].make(K, kv_heads=DRAWS, sampler=sampler, generator=seeded(0))
    assert isinstance(phi, RandomFeatures)
    return phi


def with_frequencies(phi: RandomFeatures, frequencies: Tensor) -> RandomFeatures:
    """The same map with frequencies of another law."""
    other = copy.deepcopy(phi)
    other.load_state_dict({**phi.state_dict(), "frequencies": frequencies})
    return other


def estimates(phi: RandomFeatures, q: Tensor, k: Tensor) -> Tensor:
    """The estimate of every draw for every pair, (DRAWS, T, S)."""
    return phi.queries(q.expand(phi.kv_heads, -1, -1)) @ phi.keys(k.expand(phi.kv_heads, -1, -1)).mT


def standard_error(samples: Tensor) -> Tensor:
    return samples.std(dim=0) / math.sqrt(len(samples))


def is_rejected(samples: Tensor, expected: Tensor) -> bool:
    """Whether some mean of the samples lies more than five standard errors from what it should be."""
    return bool(((samples.mean(dim=0) - expected).abs() > 5 * standard_error(samples)).any())


@each_random_map
@each_sampler
def test_estimates_are_unbiased(name: str, sampler: Sampler) -> None:
    phi = many_draws(name, sampler)
    samples, expected = estimates(phi, Q, KEYS), phi.kernel(Q, KEYS)
    assert phi.unbiased
    assert not is_rejected(samples, expected)
    assert (standard_error(samples) / expected).max() < 0.01


STRETCHES = {
    "variance doubled": math.sqrt(2) * torch.ones(K),
    "variance halved": math.sqrt(0.5) * torch.ones(K),
    "one coordinate doubled": torch.tensor([1.0, 1.0, 2.0, 1.0, 1.0]),
}


@each_random_map
@each_sampler
@pytest.mark.parametrize("stretch", STRETCHES)
def test_frequencies_of_another_covariance_are_rejected(name: str, sampler: Sampler, stretch: str) -> None:
    phi = many_draws(name, sampler)
    wrong = with_frequencies(phi, phi.frequencies * STRETCHES[stretch])
    assert is_rejected(estimates(wrong, Q, KEYS), phi.kernel(Q, KEYS))


@each_sampler
def test_fourier_frequencies_are_normal_with_the_inverse_of_the_variance(sampler: Sampler) -> None:
    variance, width = 4.0, 8
    q, k = torch.zeros(1, width, dtype=torch.float64), torch.zeros(1, width, dtype=torch.float64)
    k[0, :2] = math.sqrt(-variance * math.log(0.0646))
    right, wrong = (
        Fourier(width, num_frequencies=53, variance=v, kv_heads=5003, sampler=sampler, generator=seeded(0))
        for v in (variance, 1 / variance)  # N(0, I/v) of v = 1/variance is the N(0, variance I) that is often printed
    )
    expected = Gaussian(variance)(q, k)
    assert abs(expected.item() - 0.0646) < 1e-9
    assert not is_rejected(estimates(right, q, k), expected)
    assert is_rejected(estimates(wrong, q, k), expected)
    assert abs(estimates(wrong, q, k).mean().item()) < 0.0028


def scaled(name: str) -> tuple[Tensor, Tensor]:
    """All pairs x, y of the theory: the vectors for which the frequencies are N(0, I), (T, 1, K) and (1, S, K)."""
    kernel = ROWS[name].kernel
    if isinstance(kernel, Gaussian):
        factor = 1 / math.sqrt(kernel.variance_for(K))
    else:
        assert isinstance(kernel, Exponential)
        factor = math.sqrt(kernel.scale_for(K))
    return factor * Q[:, None], factor * KEYS[None]


def relative_variances_of_theory(name: str, rows: int) -> dict[str, Tensor]:
    """Of the estimate with independent rows, as the reference prints them: that of this map, and those of others."""
    x, y = scaled(name)
    z, u = (x + y).square().sum(-1), (x - y).square().sum(-1)
    softmax, gaussian = (x * y).sum(-1).exp(), (-u / 2).exp()
    of_positive = z.exp() * softmax**2 * (1 - (-z).exp()) / rows
    return {
        "Fourier": (1 - (-u).exp()) ** 2 / (2 * rows) / gaussian**2,
        "SoftmaxFourier": z.exp() / softmax**2 * (1 - (-u).exp()) ** 2 / (2 * rows) / softmax**2,
        "Positive": of_positive / softmax**2,
        "Hyperbolic": (1 - (-z).exp()) / 2 * of_positive / softmax**2,
    }


@pytest.mark.parametrize("name", ["Fourier", "SoftmaxFourier", "Positive", "Hyperbolic"])
def test_relative_variance_is_that_of_the_theory(name: str) -> None:
    phi = random_map(name)
    assert_close(phi.log_relative_variance(Q, KEYS).exp(), relative_variances_of_theory(name, phi.rows)[name])


def agrees(log_relative_variance: Tensor, phi: RandomFeatures) -> bool:
    """Whether the variance of DRAWS draws is the predicted one, pair by pair, within 15 %."""
    relative = estimates(phi, Q, KEYS) / phi.kernel(Q, KEYS)
    return bool((relative.var(dim=0) / log_relative_variance.exp() - 1).abs().max() < 0.15)


@each_random_map
def test_draws_vary_as_predicted(name: str) -> None:
    phi, predicted = many_draws(name, "gaussian"), random_map(name).log_relative_variance(Q, KEYS)
    assert agrees(predicted, phi)
    assert not agrees(predicted + math.log(1.3), phi)
    other = {"Hyperbolic": "Positive", "Positive": "Hyperbolic"}.get(name, "Positive")
    if name != "Fitted":
        assert not agrees(relative_variances_of_theory(name, phi.rows)[other].log(), phi)


@each_random_map
@each_sampler
def test_no_sampler_varies_more_than_predicted(name: str, sampler: Sampler) -> None:
    phi = many_draws(name, sampler)
    measured = (estimates(phi, Q, KEYS) / phi.kernel(Q, KEYS)).var(dim=0)
    assert (measured.log() < random_map(name).log_relative_variance(Q, KEYS) + math.log(1.15)).all()


@each_random_map
def test_relative_variance_neither_overflows_nor_misses_an_exact_estimate(name: str) -> None:
    phi, x = random_map(name), 300 * draw(7, K, dtype=torch.float32)
    far = phi.log_relative_variance(x, draw(11, K, dtype=torch.float32))
    assert far.dtype == torch.float32
    assert far.shape == (7, 11)
    assert far.isfinite().all()
    assert far.max() > math.log(torch.finfo(torch.float32).max)
    x = draw(1, K)
    if name != "Fitted":  # which is exact where its statistics are, see its own tests
        assert phi.log_relative_variance(x, x if "Fourier" in name else -x).item() == -math.inf


@each_random_map
def test_relative_variance_is_that_of_every_head(name: str) -> None:
    G, repeats = 3, 2
    phi = ROWS[name].make(K, kv_heads=G, generator=seeded(0))
    assert isinstance(phi, RandomFeatures)
    q, k = draw(2, G * repeats, 7, K), draw(2, G * repeats, 11, K)
    assert_close(phi.log_relative_variance(q, k), random_map(name).log_relative_variance(q, k))
    with pytest.raises(ValueError, match="have width key_dim = 5; got 4"):
        phi.log_relative_variance(q[..., 1:], k[..., 1:])


@each_random_map
def test_orthogonal_rows_lower_the_variance(name: str) -> None:
    independent, orthogonal = (
        estimates(many_draws(name, sampler), Q, KEYS).var(dim=0) for sampler in ("gaussian", "orthogonal")
    )
    assert (orthogonal < independent).all()


def test_a_simplex_lowers_the_variance_of_positive_features_further() -> None:
    orthogonal, simplex = (
        estimates(many_draws("Positive", sampler), Q, KEYS).var(dim=0) for sampler in ("orthogonal", "simplex")
    )
    assert (simplex < orthogonal).all()


def test_hyperbolic_varies_less_than_positive_of_the_same_width() -> None:
    positive, hyperbolic = (
        make(K, num_features=6, scale=0.3, kv_heads=DRAWS, sampler="gaussian", generator=seeded(0))
        for make in (Positive, Hyperbolic)
    )
    assert positive.dim == hyperbolic.dim
    assert (estimates(hyperbolic, Q, KEYS).var(dim=0) < estimates(positive, Q, KEYS).var(dim=0)).all()


@each_random_map
def test_estimates_come_close_with_many_features(name: str) -> None:
    option = {"Fourier": "num_frequencies", "SoftmaxFourier": "num_frequencies"}.get(name, "num_features")
    phi = ROWS[name].make(K, **{option: 100_002}, generator=seeded(0))
    estimate = phi.queries(Q) @ phi.keys(KEYS).mT
    assert (estimate / phi.kernel(Q, KEYS) - 1).abs().max() < 0.02


@each_random_map
def test_query_heads_use_the_frequencies_of_their_key_value_head(name: str) -> None:
    G, repeats, T = 3, 2, 7
    phi = ROWS[name].make(K, kv_heads=G, generator=seeded(0))
    assert isinstance(phi, RandomFeatures)
    x = draw(2, G * repeats, T, K)
    features = phi.queries(x)
    for group in range(G):
        alone = with_frequencies(random_map(name), phi.frequencies[group : group + 1])
        own = slice(group * repeats, (group + 1) * repeats)
        assert_close(features[:, own], alone.queries(x[:, own]), atol=1e-15)  # sines near 0
        assert_close(phi.keys(x[:, ::repeats])[:, group], alone.keys(x[:, group * repeats]), atol=1e-15)
    heads = phi.keys(x[:, :1].expand(-1, G, -1, -1))
    for one, other in ((0, 1), (0, 2), (1, 2)):
        assert (heads[:, one] - heads[:, other]).abs().mean() > 1e-2


@each_random_map
@pytest.mark.parametrize("shape", [(7, K), (4, 7, K), (3, 4, 7, K), (3, 0, 7, K)], ids=str)
def test_head_counts_that_are_no_multiple_of_kv_heads_are_refused(name: str, shape: tuple[int, ...]) -> None:
    phi = ROWS[name].make(K, kv_heads=3, generator=seeded(0))
    message = f"{name}: input must have a multiple of kv_heads = 3 heads at dimension -3; got {shape}."
    for features in (phi.queries, phi.keys):
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            features(draw(*shape))


@each_random_map
def test_frequencies_are_in_the_state_dict(name: str) -> None:
    phi = random_map(name)
    assert torch.equal(phi.state_dict()["frequencies"], phi.frequencies)
    assert phi.frequencies.shape == (1, phi.rows, K)
    assert not list(phi.parameters())


@each_random_map
def test_map_of_other_sizes_does_not_load(name: str) -> None:
    with pytest.raises(RuntimeError, match="size mismatch for frequencies"):
        random_map(name).load_state_dict(ROWS[name].make(K, kv_heads=3, generator=seeded(0)).state_dict())


@each_random_map
def test_generator_alone_decides_the_frequencies(name: str) -> None:
    state_of_everyone = torch.get_rng_state()
    one, same, other = build(name, seed=1), build(name, seed=1), build(name, seed=2)
    assert torch.equal(torch.get_rng_state(), state_of_everyone)
    x = draw(7, K)
    assert torch.equal(one.keys(x), same.keys(x))
    assert one.projection_id == same.projection_id
    assert (one.keys(x) - other.keys(x)).abs().mean() > 1e-2
    assert one.projection_id != other.projection_id


@each_random_map
def test_projection_id_tells_parameters_apart_when_frequencies_are_the_same(name: str) -> None:
    option = "variance" if name == "Fourier" else "scale"
    phi, other = build(name), ROWS[name].make(K, generator=seeded(0), **{option: 0.77})
    assert isinstance(phi, RandomFeatures)
    assert isinstance(other, RandomFeatures)
    if name == "Fourier":  # its frequencies are scaled by the deviation
        other.frequencies.copy_(phi.frequencies)
    assert torch.equal(phi.frequencies, other.frequencies)
    assert phi.projection_id != other.projection_id


@each_random_map
def test_redrawing_makes_the_map_of_that_generator(name: str) -> None:
    phi, identity, fresh = random_map(name), random_map(name).projection_id, build(name, seed=5)
    phi.redraw(seeded(5))
    assert torch.equal(phi.keys(draw(7, K)), fresh.keys(draw(7, K)))
    assert phi.projection_id == fresh.projection_id != identity


@each_random_map
def test_copy_keeps_its_frequencies_when_the_original_redraws(name: str) -> None:
    phi, x = random_map(name), draw(7, K)
    twin, before, identity = copy.deepcopy(phi), phi.keys(x), phi.projection_id
    phi.redraw(seeded(5))
    assert torch.equal(twin.keys(x), before)
    assert twin.projection_id == identity


@each_random_map
def test_redrawing_in_eval_mode_is_refused(name: str) -> None:
    phi = random_map(name).eval()
    before = copy.deepcopy(phi.state_dict())
    message = f"{name}: the map must be in training mode to redraw its frequencies; got eval mode. Call .train() first."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        phi.redraw(seeded(5))
    assert all(torch.equal(buffer, before[key]) for key, buffer in phi.state_dict().items())


@each_random_map
@pytest.mark.parametrize("cast", ["bfloat16", "half", "double"])
def test_casting_keeps_every_bit_of_the_frequencies(name: str, cast: str) -> None:
    phi, before = random_map(name), random_map(name).frequencies
    assert torch.equal(getattr(phi, cast)().frequencies, before.to(phi.frequencies.dtype))
    assert phi.frequencies.dtype == (torch.float64 if cast == "double" else torch.float32)


@each_random_map
def test_maps_with_equal_projection_ids_have_equal_features_whatever_was_loaded(name: str) -> None:
    double, single, x = random_map(name).double(), random_map(name), draw(7, K)
    double.redraw(seeded(5))
    single.load_state_dict(double.state_dict())
    assert torch.equal(single.keys(x), double.keys(x)) == (single.projection_id == double.projection_id)


@each_random_map
def test_state_dict_from_before_a_redraw_brings_the_map_back(name: str) -> None:
    phi, x = random_map(name), draw(7, K)
    before, features, identity = phi.state_dict(), phi.keys(x), phi.projection_id
    phi.redraw(seeded(5))
    phi.load_state_dict(before)
    assert torch.equal(phi.keys(x), features) == (phi.projection_id == identity)


@pytest.mark.parametrize("make", [Fourier, SoftmaxFourier, Positive, Hyperbolic, Fitted])
def test_half_precision_rounds_the_features_and_not_the_sums_in_them(make: Callable[..., FeatureMap]) -> None:
    phi, x = make(61, generator=seeded(0)), draw(101, 61, dtype=torch.bfloat16)
    assert_close(phi.keys(x), phi.keys(x.double()))


@pytest.mark.parametrize("name", ["SoftmaxFourier", "Positive", "Hyperbolic", "Fitted"])
def test_logarithms_stay_finite_where_features_overflow(name: str) -> None:
    phi, x = build(name), 300 * draw(7, K, dtype=torch.float32)
    log = phi.split_keys(x).log
    assert log is not None
    assert log.isfinite().all()
    assert log.abs().max() > math.log(torch.finfo(torch.float32).max)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Fourier(0), "Fourier: key_dim must be a whole number of at least 1; got 0."),
        (lambda: Positive(True), "Positive: key_dim must be a whole number of at least 1; got True."),
        (lambda: Hyperbolic(2, kv_heads=0), "Hyperbolic: kv_heads must be a whole number of at least 1; got 0."),
        (
            lambda: Fourier(2, num_frequencies=0),
            "Fourier: num_frequencies must be a whole number of at least 1; got 0.",
        ),
        (
            lambda: SoftmaxFourier(2, num_frequencies=-1),
            "SoftmaxFourier: num_frequencies must be a whole number of at least 1; got -1.",
        ),
        (lambda: Positive(2, num_features=0), "Positive: num_features must be a whole number of at least 1; got 0."),
        (
            lambda: Hyperbolic(2, num_features=1),
            "Hyperbolic: num_features must be a whole number of at least 2; got 1.",
        ),
        (lambda: Hyperbolic(2, num_features=7), "Hyperbolic: num_features must be even; got 7."),
        (lambda: Fourier(2, variance=0.0), "Gaussian: variance must be a positive number; got 0.0."),
        (lambda: SoftmaxFourier(2, scale=-1.0), "Exponential: scale must be a positive number; got -1.0."),
        (lambda: Fourier(2, variance="a"), "Gaussian: variance must be a positive number; got 'a'."),  # ty: ignore[invalid-argument-type]
        (lambda: Fourier(8, generator=3), "Fourier: generator must be a torch.Generator; got 3."),  # ty: ignore[invalid-argument-type]
        (lambda: Positive(8).redraw("a"), "Positive: generator must be a torch.Generator; got 'a'."),  # ty: ignore[invalid-argument-type]
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_maps_refuse_wrong_parameters(make: Callable[[], FeatureMap], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        make()
