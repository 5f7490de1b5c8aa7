"""Margins: exact for linear models, scale as distances do, and agree with what a search along the gradient finds."""

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from likewise.difficulty.traits import input_margin, output_margin
from tests.difficulty.problems import examples, fitted
from tests.tolerance import assert_close

N, C, K = 7, 4, 5


def draw(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, dtype=torch.float64, generator=torch.Generator().manual_seed(seed))


def linear(weight: Tensor, bias: Tensor) -> nn.Linear:
    model = nn.Linear(weight.shape[1], weight.shape[0]).double().eval()
    model.load_state_dict({"weight": weight, "bias": bias})
    return model


@settings(max_examples=30)
@given(st.integers(0, 999), st.integers(1, N))
def test_of_a_linear_model_it_is_the_distance_to_the_nearest_other_class(seed: int, batch: int) -> None:
    weight, bias, x = draw(C, K, seed=seed), draw(C, seed=seed + 1), draw(N, K, seed=seed + 2)
    found = input_margin(linear(weight, bias), x, batch=batch)
    logits = x @ weight.mT + bias
    for row, predicted in enumerate(logits.argmax(dim=1).tolist()):
        others = [j for j in range(C) if j != predicted]
        gaps = [(logits[row, predicted] - logits[row, j]) / (weight[predicted] - weight[j]).norm() for j in others]
        assert_close(found[row], torch.stack(gaps).min())


def test_stepping_by_the_margin_reaches_the_boundary() -> None:
    model, x = fitted().double(), examples(N, 3)[0].double()
    for row in range(N):
        margin = input_margin(model, x[row : row + 1])[0]
        tiny = x[row : row + 1].clone().requires_grad_()
        logits = model(tiny)
        first, second = logits[0].topk(2).indices
        (slope,) = torch.autograd.grad(logits[0, first] - logits[0, second], tiny)
        assert margin <= (logits[0, first] - logits[0, second]).detach() / slope.norm() + 1e-12


def test_it_scales_with_the_input_and_not_with_the_logits() -> None:
    weight, bias, x = draw(C, K), draw(C, seed=1), draw(N, K, seed=2)
    plain = input_margin(linear(weight, bias), x)
    assert_close(input_margin(linear(3 * weight, 3 * bias), x), plain)
    assert_close(input_margin(linear(weight / 3, bias), 3 * x), 3 * plain)


def test_the_edges() -> None:
    same = linear(torch.zeros(C, K).double(), torch.tensor([1.0, 0.0, 0.0, 0.0]).double())
    assert input_margin(same, draw(N, K)).tolist() == [math.inf] * N
    tie = linear(torch.eye(2).double(), torch.zeros(2).double())
    assert input_margin(tie, torch.ones(1, 2).double()).tolist() == [0.0]
    twins = linear(torch.zeros(C, K).double(), torch.zeros(C).double())
    assert input_margin(twins, draw(N, K)).tolist() == [0.0] * N  # 0 over 0: on every boundary
    assert input_margin(tie, torch.ones(0, 2).double()).shape == (0,)


def test_the_model_is_left_without_gradients() -> None:
    model = fitted()
    input_margin(model, examples(N, 3)[0])
    assert all(weight.grad is None for weight in model.parameters())


def test_output_margin_is_the_gap_of_the_two_largest() -> None:
    logits = draw(N, C)
    ordered = logits.sort(dim=1).values
    assert torch.equal(output_margin(logits), ordered[:, -1] - ordered[:, -2])


def test_wrong_models_are_refused() -> None:
    with pytest.raises(ValueError, match="input_margin: model must be in evaluation mode"):
        input_margin(fitted().train(), examples(N, 3)[0])
    with pytest.raises(ValueError, match="input_margin: model must have two classes or more; got 1"):
        input_margin(nn.Linear(K, 1).eval(), torch.zeros(N, K))
    with pytest.raises(ValueError, match="output_margin: logits must be of two classes or more; got 1"):
        output_margin(torch.zeros(N, 1))
    with pytest.raises(ValueError, match="input_margin: batch must be a whole number of at least 1; got 0"):
        input_margin(fitted(), examples(N, 3)[0], batch=0)
