"""Errors of the output by feature width, on drawn data and on digits."""

import pytest
import torch

from likewise.attention import Positive, linear_attention, softmax_attention
from likewise.tour import approximation
from likewise.tour.approximation import (
    Approximation,
    AttentionSample,
    errors_by_width,
    gaussian_problem,
    measure_approximation,
)


@pytest.fixture(scope="module")
def result() -> Approximation:
    return measure_approximation(widths=(8, 256), draws=3, length=64)


def generator() -> torch.Generator:
    return torch.Generator().manual_seed(3)


def test_the_mean_gets_its_relative_squared_error() -> None:
    problem = gaussian_problem(0.5, 1, 23, generator(), key_dim=5)
    target = softmax_attention(problem.q, problem.k, problem.v)
    mean = problem.v.mean(2, keepdim=True)
    expected = ((mean - target).square().sum() / target.square().sum()).item()
    assert errors_by_width(problem, (14,), generator()).mean.error == pytest.approx(expected, rel=1e-5)


def test_a_map_gets_the_error_of_its_own_output(monkeypatch: pytest.MonkeyPatch) -> None:
    problem = gaussian_problem(0.5, 1, 23, generator(), key_dim=5)
    target = softmax_attention(problem.q, problem.k, problem.v)
    features = Positive(5, num_features=14, generator=generator())
    out = linear_attention(problem.q, problem.k, problem.v, features=features)
    expected = ((out - target).square().sum() / target.square().sum()).item()
    monkeypatch.setattr(approximation, "RANDOM_MAPS", {"Positive": lambda *sizes: features})
    [point] = errors_by_width(problem, (14,), generator()).random
    assert point.error == pytest.approx(expected, rel=1e-5)


def test_logits_are_as_sharp_as_they_say(result: Approximation) -> None:
    assert [problem.logit_sd for problem in result.problems] == pytest.approx([0.25, 0.5, 1.0, 1.0], rel=0.05)


def test_width_helps_where_attention_is_flat(result: Approximation) -> None:
    flat, *_, digits = result.problems
    for problem in (flat, digits):
        for name in ("SoftmaxFourier", "Positive", "Hyperbolic"):
            narrow, wide = problem.curve(name)
            assert wide.error < narrow.error / 2


def test_taylor_beats_the_mean_of_the_values(result: Approximation) -> None:
    for problem in result.problems:
        taylor = next(point for point in problem.fixed if point.map == "Taylor")
        assert taylor.error < problem.mean.error / 3


def test_every_map_is_there(result: Approximation) -> None:
    fixed = {"Elu": 32, "Relu": 32, "Quadratic": 561, "Taylor": 561}
    for problem in result.problems[:3]:
        assert {point.map: point.width for point in problem.fixed} == fixed
        assert {point.map for point in problem.widest} == {"Fourier", "SoftmaxFourier", "Positive", "Hyperbolic"}
        assert [point.width for point in problem.widest] == [256] * 4


def test_attention_reads_digits(result: Approximation) -> None:
    digits = result.problems[-1]
    assert (digits.queries, digits.keys, digits.key_dim) == (64, 256, 64)
    assert digits.softmax_accuracy is not None
    assert digits.softmax_accuracy > 0.8
    assert digits.mean.accuracy is not None
    assert digits.mean.accuracy < 0.3


def test_readings_are_the_votes(result: Approximation) -> None:
    readings = result.readings
    assert len(readings.images) == len(readings.labels) == 10
    assert all(len(image) == 64 and min(image) >= 0 and max(image) <= 1 for image in readings.images)
    softmax, *_ = readings.readings
    right = sum(answer == label for answer, label in zip(softmax.answers, readings.labels, strict=True))
    assert right >= 8


@pytest.mark.slow
def test_the_same_seed_gives_the_same_errors(result: Approximation) -> None:
    assert measure_approximation(widths=(8, 256), draws=3, length=64) == result
    assert measure_approximation(widths=(8, 256), draws=3, length=64, seed=1) != result


def test_a_constant_value_leaves_no_error_for_positive_maps() -> None:
    q, k = torch.randn(2, 1, 1, 11, 5, generator=generator())
    problem = AttentionSample("constant", 2, q, k, torch.ones(1, 1, 11, 3))
    result = errors_by_width(problem, (14,), generator())
    assert result.mean.error == pytest.approx(0.0, abs=1e-10)
    assert max(point.error for point in result.fixed if point.map in ("Elu", "Taylor")) < 1e-10


def test_wrong_widths_are_named() -> None:
    with pytest.raises(ValueError, match=r"measure_approximation: widths must be 2 or more; got \(1, 8\)"):
        measure_approximation(widths=(1, 8))
