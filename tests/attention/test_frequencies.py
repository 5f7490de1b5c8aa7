"""Frequencies are N(0, I) row by row; blocks are rotated axes or a rotated simplex, with norms of their own."""

import math
import re
from collections.abc import Callable

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.attention.frequencies import SAMPLERS, Sampler, draw_frequencies, haar
from tests.attention.drawing import seeded
from tests.tolerance import assert_close

DRAWS = 20011
K = 5

each_sampler = pytest.mark.parametrize("sampler", SAMPLERS)
in_blocks = pytest.mark.parametrize("sampler", ["orthogonal", "simplex"])


def draws(rows: int, sampler: Sampler) -> Tensor:
    """DRAWS independent sets of frequencies, (DRAWS, R, K)."""
    return draw_frequencies(DRAWS, rows, K, sampler=sampler, generator=seeded(0))


def gaussian(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=seeded(seed))


def mean_is(samples: Tensor, expected: Tensor | float) -> bool:
    """Whether every mean over the first axis lies within five standard errors of what it should be."""
    standard_error = samples.std(dim=0) / math.sqrt(len(samples))
    return bool(((samples.mean(dim=0) - expected).abs() <= 5 * standard_error).all())


def follows(sample: Tensor, distribution: Callable[[Tensor], Tensor]) -> bool:
    """Kolmogorov and Smirnov's test, at a level of 0.00005: some hundred of them must not fail by chance."""
    levels = torch.arange(1, len(sample) + 1, dtype=sample.dtype) / len(sample)
    distance = (distribution(sample.sort().values) - levels).abs().max().item()
    return distance <= 2.3 / math.sqrt(len(sample))


def chi_of(width: int) -> Callable[[Tensor], Tensor]:
    """The distribution of the norm of N(0, I) in this width."""
    return lambda norms: torch.special.gammainc(torch.tensor(width / 2, dtype=norms.dtype), norms.square() / 2)


@each_sampler
@pytest.mark.parametrize(("heads", "rows", "width"), [(1, 1, 1), (3, 2, 5), (2, 5, 5), (2, 13, 5), (3, 7, 1)])
def test_frequencies_have_the_size_asked_for(sampler: Sampler, heads: int, rows: int, width: int) -> None:
    w = draw_frequencies(heads, rows, width, sampler=sampler, generator=seeded(0))
    assert w.shape == (heads, rows, width)
    assert w.dtype == torch.float64
    assert len(w.flatten().unique()) == w.numel()


@each_sampler
def test_every_row_is_standard_normal(sampler: Sampler) -> None:
    w = draws(7, sampler)  # one whole block and a cut one
    assert mean_is(w, 0.0)
    assert mean_is(w[..., :, None] * w[..., None, :], torch.eye(K, dtype=w.dtype))
    for row in range(7):
        assert follows(w[:, row].norm(dim=-1), chi_of(K))
        for coordinate in range(K):
            assert follows(w[:, row, coordinate], torch.special.ndtr)


def test_rows_of_another_size_or_shape_are_not_taken_for_standard_normal() -> None:
    w = draws(1, "gaussian")[:, 0]
    assert not follows(1.1 * w[:, 0], torch.special.ndtr)
    assert not follows(1.1 * w.norm(dim=-1), chi_of(K))
    assert not follows(w.norm(dim=-1), chi_of(K - 1))
    assert not mean_is((1.1 * w)[..., :, None] * (1.1 * w)[..., None, :], torch.eye(K, dtype=w.dtype))
    all_of_norm_sqrt_k = math.sqrt(K) * torch.nn.functional.normalize(w, dim=-1)
    assert not follows(all_of_norm_sqrt_k[:, 0], torch.special.ndtr)


@settings(max_examples=25)
@given(st.integers(1, 3), st.integers(1, 17), st.integers(1, 7), st.integers(0, 99))
def test_rows_of_a_block_are_perpendicular(heads: int, rows: int, width: int, seed: int) -> None:
    w = draw_frequencies(heads, rows, width, sampler="orthogonal", generator=seeded(seed))
    for block in w.split(width, dim=1):
        gram = block @ block.mT
        assert (gram - torch.diag_embed(gram.diagonal(dim1=-2, dim2=-1))).abs().max() < 1e-12


@settings(max_examples=25)
@given(st.integers(1, 3), st.integers(1, 17), st.integers(2, 7), st.integers(0, 99))
def test_rows_of_a_block_are_corners_of_a_regular_simplex(heads: int, rows: int, width: int, seed: int) -> None:
    w = draw_frequencies(heads, rows, width, sampler="simplex", generator=seeded(seed))
    for block in torch.nn.functional.normalize(w, dim=-1).split(width, dim=1):
        size = block.shape[1]
        expected = torch.eye(size, dtype=w.dtype) * (1 + 1 / (width - 1)) - 1 / (width - 1)
        assert_close(block @ block.mT, expected.expand(heads, size, size))
        if size == width:
            assert block.sum(dim=1).abs().max() < 1e-12


def test_simplex_of_one_row_has_either_sign() -> None:
    w = draw_frequencies(1, DRAWS, 1, sampler="simplex", generator=seeded(0))[0]
    assert w.isfinite().all()
    assert follows(w[:, 0], torch.special.ndtr)


@in_blocks
def test_rows_of_different_blocks_and_heads_are_independent(sampler: Sampler) -> None:
    w = draws(7, sampler)
    first, last = w[:, :K], w[:, K:]
    between_blocks = first[:, :, None] @ last[:, None].mT
    assert mean_is(between_blocks, 0.0)
    assert mean_is(between_blocks.square(), float(K))  # |w|^2 |w'|^2 cos^2 = K K / K; 0 within a block
    between_heads = w[:-1] @ w[1:].mT
    assert mean_is(between_heads, 0.0)
    assert mean_is(between_heads.square(), float(K))


def test_gaussian_rows_are_independent_of_each_other() -> None:
    w = draws(3, "gaussian")
    assert mean_is((w[:, 0] * w[:, 1]).sum(-1).square(), float(K))


def correlated(norms: Tensor, directions: Tensor) -> bool:
    """Whether the norm of some row says something about the size of some coordinate of its direction."""
    norms, sizes = norms - norms.mean(dim=0), directions.square() - directions.square().mean(dim=0)
    return not mean_is(norms[..., None] * sizes, 0.0)


@in_blocks
def test_norms_are_independent_of_directions_and_of_each_other(sampler: Sampler) -> None:
    w = draws(K, sampler)
    norms = w.norm(dim=-1)
    assert not correlated(norms, torch.nn.functional.normalize(w, dim=-1))
    centred = norms - norms.mean(dim=0)
    for one, other in [(0, 1), (1, 4), (2, 3)]:
        assert mean_is(centred[:, one] * centred[:, other], 0.0)


def test_norms_of_the_rows_that_went_into_the_rotation_are_told_apart() -> None:
    block = gaussian(DRAWS, K, K)
    assert correlated(block.norm(dim=-1), haar(block))


@settings(max_examples=25)
@given(st.integers(1, 7), st.integers(0, 99))
def test_haar_is_the_rotation_of_the_unique_triangular_factorisation(width: int, seed: int) -> None:
    matrix = gaussian(3, width, width, seed=seed)
    rotation = haar(matrix)
    identity = torch.eye(width, dtype=torch.float64).expand_as(matrix)
    assert_close(rotation @ rotation.mT, identity, atol=1e-12)  # zeros beside the diagonal
    triangular = rotation.mT @ matrix
    assert (triangular.diagonal(dim1=-2, dim2=-1) > 0).all()
    assert triangular.tril(-1).abs().max() < 1e-12


def turns_along(rotation_of: Callable[[Tensor], Tensor]) -> bool:
    """Whether turning the Gaussian matrices turns the rotations alike: then no direction is preferred."""
    matrix = gaussian(17, K, K)
    turn = torch.linalg.qr(gaussian(K, K, seed=1)).Q
    return bool((rotation_of(turn @ matrix) - turn @ rotation_of(matrix)).abs().max() < 1e-9)


def is_uniform(rotations: Tensor) -> bool:
    """Whether entries have the first two moments of uniform rotations: mean 0, mean square 1/K, uncorrelated."""
    entries = rotations.flatten(1)
    second = torch.eye(entries.shape[1], dtype=entries.dtype) / rotations.shape[-1]
    return mean_is(entries, 0.0) and mean_is(entries[:, :, None] * entries[:, None, :], second)


def test_haar_prefers_no_direction() -> None:
    assert turns_along(haar)
    assert is_uniform(haar(gaussian(DRAWS, 3, 3)))


def uncorrected(matrix: Tensor) -> Tensor:
    return torch.linalg.qr(matrix).Q


def test_qr_without_its_signs_prefers_a_direction() -> None:
    rotations = uncorrected(gaussian(DRAWS, 3, 3))
    assert (rotations[:, 0, 0] < 0).all()
    assert not turns_along(uncorrected)
    assert not is_uniform(rotations)


def one_sided_estimates(rotation_of: Callable[[Tensor], Tensor], x: Tensor, y: Tensor) -> Tensor:
    """exp(w.(x + y) - |x|^2/2 - |y|^2/2), averaged over a block of rows: E = exp(x.y) if rows are N(0, I)."""
    width = len(x)
    norms = gaussian(DRAWS, width, width, seed=1).norm(dim=-1, keepdim=True)
    w = rotation_of(gaussian(DRAWS, width, width)) * norms
    return (w @ (x + y) - (x @ x + y @ y) / 2).exp().mean(dim=-1)


def test_haar_leaves_exponential_features_unbiased_where_qr_alone_does_not() -> None:
    x = torch.full((4,), 0.4, dtype=torch.float64)
    y = torch.full((4,), 0.5, dtype=torch.float64)
    expected = (x @ y).exp()
    assert mean_is(one_sided_estimates(haar, x, y), expected)
    biased = one_sided_estimates(uncorrected, x, y)
    assert not mean_is(biased, expected)
    assert (biased.mean() / expected).item() < 0.8


def test_haar_of_a_singular_matrix_is_a_rotation_all_the_same() -> None:
    rotation = haar(torch.zeros(2, 3, 3, dtype=torch.float64))
    assert_close(rotation @ rotation.mT, torch.eye(3, dtype=torch.float64).expand(2, 3, 3))


@each_sampler
def test_generator_alone_decides_the_frequencies(sampler: Sampler) -> None:
    def drawn(seed: int) -> Tensor:
        return draw_frequencies(2, 7, K, sampler=sampler, generator=seeded(seed))

    state_of_everyone = torch.get_rng_state()
    assert torch.equal(drawn(1), drawn(1))
    assert (drawn(1) - drawn(2)).abs().min() > 0
    assert torch.equal(torch.get_rng_state(), state_of_everyone)


@pytest.mark.usefixtures("without_shape_checks")
def test_unknown_sampler_is_refused() -> None:
    message = "draw_frequencies: sampler must be one of 'gaussian', 'orthogonal', 'simplex'; got 'orthogonl'."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        draw_frequencies(1, 2, 3, sampler="orthogonl", generator=seeded(0))  # ty: ignore[invalid-argument-type]


def test_no_rows_are_refused() -> None:
    message = "draw_frequencies: rows must be a whole number of at least 1; got 0."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        draw_frequencies(1, 0, 3, sampler="gaussian", generator=seeded(0))
