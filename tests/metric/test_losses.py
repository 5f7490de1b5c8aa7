"""Losses are sums over triplets, and their gradients are the gradients of those sums."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.metric import Triplets, batch_all_loss, semi_hard_negatives, triplet_loss
from tests.metric.brute import all_triplets, batch_all, batches, exact_distances
from tests.tolerance import assert_close

MARGIN = 0.3


def listed(labels: Tensor) -> Triplets:
    return Triplets(*torch.tensor(all_triplets(labels.tolist()), dtype=torch.int64).reshape(-1, 3).T)


@pytest.mark.slow
@given(batches(), st.sampled_from(["sum", "mean"]))
def test_batch_all_is_the_sum_over_the_list(batch: tuple[Tensor, Tensor], reduction: str) -> None:
    x, labels = batch
    x.requires_grad_()
    expected, active = batch_all(x, labels, MARGIN)
    expected = expected / max(active, 1) if reduction == "mean" else expected
    (gradient,) = torch.autograd.grad(expected, x)
    loss = batch_all_loss(x, labels, margin=MARGIN, reduction=reduction)  # ty: ignore[invalid-argument-type]
    assert_close(loss, expected.detach(), atol=1e-12)
    assert_close(torch.autograd.grad(loss, x)[0], gradient, atol=1e-12)


@pytest.mark.slow
@given(batches(), st.sampled_from(["sum", "mean"]))
def test_triplet_loss_over_the_list_is_batch_all(batch: tuple[Tensor, Tensor], reduction: str) -> None:
    x, labels = batch
    x.requires_grad_()
    loss = triplet_loss(x, listed(labels), margin=MARGIN, reduction=reduction)  # ty: ignore[invalid-argument-type]
    other = batch_all_loss(x, labels, margin=MARGIN, reduction=reduction)  # ty: ignore[invalid-argument-type]
    assert_close(loss, other.detach(), atol=1e-12)
    assert_close(torch.autograd.grad(loss, x)[0], torch.autograd.grad(other, x)[0], atol=1e-12)


@pytest.mark.slow
def test_gradients_and_second_derivatives_by_differences() -> None:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(7, 3, generator=generator, dtype=torch.float64, requires_grad=True)
    labels = torch.tensor([0, 0, 0, 1, 1, 2, 2])
    triplets = semi_hard_negatives(x, labels, margin=2.0)
    assert len(triplets.anchor)
    for loss in (lambda x: triplet_loss(x, triplets, margin=2.0), lambda x: batch_all_loss(x, labels, margin=2.0)):
        assert torch.autograd.gradcheck(loss, x)
        assert torch.autograd.gradgradcheck(loss, x)


def test_the_loss_of_near_duplicates_keeps_its_digits() -> None:
    x = torch.full((3, 128), 0.088388347)
    x[1, 5] += 1e-5
    x[2, 5] += 3e-5
    d = exact_distances(x)
    assert 0 < d[0][1] < d[0][2] < 1e-8
    loss = triplet_loss(x, Triplets(*torch.tensor([[0], [2], [1]])), margin=1e-12)
    assert_close(loss, torch.tensor(d[0][2] - d[0][1] + 1e-12, dtype=torch.float64))


def test_a_margin_that_is_met_exactly_counts_nothing() -> None:
    # Anchor 0: 1 - 4 + 3 = 0. Anchor 1: 1 - 1 + 3 = 3, and its gradient is that of (b - a)^2 - (b - c)^2.
    x = torch.tensor([[0.0], [1.0], [2.0]], dtype=torch.float64, requires_grad=True)
    loss = batch_all_loss(x, torch.tensor([0, 0, 1]), margin=3.0)
    assert loss.item() == 3.0
    assert torch.autograd.grad(loss, x)[0].tolist() == [[-2.0], [4.0], [-2.0]]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_half_precision_embeddings_are_summed_wide(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(3)
    x = torch.nn.functional.normalize(torch.randn(40, 16, generator=generator), dim=-1).to(dtype).requires_grad_()
    labels = torch.arange(40) // 4
    loss = batch_all_loss(x, labels)
    exact = batch_all_loss(x.detach().double(), labels)
    assert loss.dtype == torch.float32
    assert_close(loss, exact.float())
    assert torch.autograd.grad(loss, x)[0].dtype == dtype


def test_no_triplets_is_zero_with_gradient_zero() -> None:
    for count in (0, 1, 3):
        x = torch.ones(count, 2, requires_grad=True)
        labels = torch.arange(count)
        for loss in (batch_all_loss(x, labels), triplet_loss(x, listed(labels), reduction="mean")):
            assert loss.item() == 0.0
            assert not torch.autograd.grad(loss, x)[0].any()
