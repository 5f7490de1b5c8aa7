"""The two-covariance model against densities written out, and its fit against what the fit is for."""

import re
from itertools import pairwise

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor
from torch.distributions import MultivariateNormal

from likewise.metric import two_covariance
from likewise.metric.two_covariance import TwoCovariance


def covariance(width: int, generator: torch.Generator) -> Tensor:
    root = torch.randn(width, width + 2, dtype=torch.float64, generator=generator)
    return root @ root.mT / width


def problem(seed: int, *, people: int = 11, width: int = 3) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Vectors drawn from a model, one to four for an identity; their labels; the covariances."""
    generator = torch.Generator().manual_seed(seed)
    between, within = covariance(width, generator), covariance(width, generator)
    counts = 1 + torch.arange(people) % 4
    labels = torch.arange(people).repeat_interleave(counts)
    draws = [torch.randn(rows, width, dtype=torch.float64, generator=generator) for rows in (people, len(labels))]
    roots = [torch.linalg.cholesky(part) for part in (between, within)]
    return 5 + (draws[0] @ roots[0].mT)[labels] + draws[1] @ roots[1].mT, labels, between, within


def likelihood(model: TwoCovariance, x: Tensor, labels: Tensor) -> float:
    """log p of all vectors: those of one identity are one draw from a covariance of blocks."""
    total = 0.0
    for label in labels.unique():
        rows = x[labels == label]
        blocks = torch.kron(torch.ones(len(rows), len(rows), dtype=x.dtype), model.between)
        blocks += torch.block_diag(*[model.within] * len(rows))
        total += MultivariateNormal(model.mean.repeat(len(rows)), blocks).log_prob(rows.flatten()).item()
    return total


@pytest.mark.slow
@given(seed=st.integers(0, 1000), width=st.integers(1, 4))
def test_ratios_are_ratios_of_densities(seed: int, width: int) -> None:
    x, _, between, within = problem(seed, width=width)
    model = TwoCovariance(x.mean(0), between, within)
    one, two = torch.zeros(2, dtype=torch.int64), torch.arange(2)
    pairs = [torch.stack([a, b]) for a, b in zip(x[:5], x[5:10], strict=True)]
    expected = [likelihood(model, pair, one) - likelihood(model, pair, two) for pair in pairs]
    torch.testing.assert_close(model.ratios(x[:5], x[5:10]), torch.tensor(expected, dtype=torch.float64))
    torch.testing.assert_close(model.ratios(x[5:10], x[:5]), model.ratios(x[:5], x[5:10]))


@pytest.mark.slow
@settings(max_examples=20)
@given(seed=st.integers(0, 1000))
def test_every_round_raises_the_likelihood(seed: int) -> None:
    x, labels, _, _ = problem(seed)
    found = [likelihood(two_covariance(x, labels, rounds=rounds, floor=1e-12), x, labels) for rounds in range(1, 6)]
    assert all(after >= before - 1e-9 * abs(before) for before, after in pairwise(found))


def test_many_draws_give_the_covariances_back() -> None:
    x, labels, between, within = problem(0, people=8000, width=2)
    model = two_covariance(x, labels, rounds=30)
    torch.testing.assert_close(model.between, between, rtol=0.08, atol=0.05)
    torch.testing.assert_close(model.within, within, rtol=0.08, atol=0.05)


def test_an_invertible_map_of_all_vectors_changes_nothing() -> None:
    x, labels, _, _ = problem(3, people=40)
    change = covariance(3, torch.Generator().manual_seed(4))
    models = [two_covariance(rows, labels, floor=1e-13) for rows in (x, x @ change)]
    found = [model.ratios(rows[:20], rows[20:40]) for model, rows in zip(models, (x, x @ change), strict=True)]
    torch.testing.assert_close(found[0], found[1], rtol=1e-6, atol=1e-6)


def test_labels_are_names_only() -> None:
    x, labels, _, _ = problem(5)
    torch.testing.assert_close(two_covariance(x, labels).within, two_covariance(x, 100 - 7 * labels).within)


def test_fewer_vectors_than_directions_are_no_harm() -> None:
    x = torch.randn(6, 20, generator=torch.Generator().manual_seed(0))
    model = two_covariance(x, torch.tensor([0, 0, 1, 1, 2, 3]))
    ratios = model.ratios(x[[0, 0]], x[[1, 2]])
    assert ratios.isfinite().all()
    assert ratios[0] > ratios[1]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rounds": -1}, "two_covariance: rounds must be a whole number of at least 0; got -1."),
        ({"floor": 0.0}, "two_covariance: floor must be positive; got 0.0."),
        ({"labels": torch.arange(4)}, "labels must name two identities at least, one of them twice; got [0, 1, 2, 3]."),
        ({"labels": torch.zeros(4, dtype=torch.int64)}, "labels must name two identities at least"),
    ],
)
def test_messages(change: dict, message: str) -> None:
    labels = change.pop("labels", torch.tensor([0, 0, 1, 1]))
    with pytest.raises(ValueError, match=re.escape(message)):
        two_covariance(torch.eye(4), labels, **change)


@pytest.mark.usefixtures("without_shape_checks")
def test_a_label_is_needed_for_each_vector() -> None:
    with pytest.raises(ValueError, match=re.escape("labels must have one entry for each of 4; got 3.")):
        two_covariance(torch.eye(4), torch.tensor([0, 0, 1]))


@pytest.mark.parametrize("bad", [torch.nan, -torch.inf])
def test_numbers_that_are_not_finite_are_refused(bad: float) -> None:
    x, labels = torch.eye(4), torch.tensor([0, 0, 1, 1])
    model, wrong = two_covariance(x, labels), x.clone()
    wrong[1, 2] = bad
    with pytest.raises(
        ValueError, match=re.escape("two_covariance: embeddings must be finite; got 1 rows that are not.")
    ):
        two_covariance(wrong, labels)
    with pytest.raises(ValueError, match=re.escape("TwoCovariance.ratios: second must be finite; got 1 rows that")):
        model.ratios(x, wrong)
