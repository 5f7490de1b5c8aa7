"""torch.compile(fullgraph=True) gives what eager gives, forward and backward, with a backend that needs no compiler."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise.attention import (
    Elu,
    Exponential,
    Gaussian,
    Polynomial,
    Positive,
    SoftmaxFourier,
    kernel_attention,
    linear_attention,
    softmax_attention,
)
from tests.attention.drawing import SMALL, Sizes, assert_same, draw, seeded, structures, torch_form, with_gradients

pytestmark = pytest.mark.usefixtures("without_shape_checks")

Attend = Callable[..., Tensor]
EXACT: dict[str, Attend] = {
    "softmax": softmax_attention,
    **{
        type(kernel).__name__: partial(kernel_attention, kernel=kernel)
        for kernel in (Exponential(), Gaussian(), Polynomial())
    },
}
LINEAR: dict[str, Attend] = {
    "plain": partial(linear_attention, features=Elu()),
    "log": partial(linear_attention, features=Positive(5, num_features=7, generator=seeded(1))),
    "log and value": partial(linear_attention, features=SoftmaxFourier(5, num_frequencies=7, generator=seeded(2))),
}
FORMS = EXACT | LINEAR
T = 19  # longer than a compiled chunk


def assert_compiles(attend: Attend, sizes: Sizes, structure: dict[str, Any]) -> None:
    compiled = torch.compile(partial(attend, **structure), fullgraph=True, backend="aot_eager")
    inputs = draw(sizes, seeded(3), size=SMALL)
    assert_same(with_gradients(compiled, *inputs), with_gradients(partial(attend, **structure), *inputs))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "causal"),
    [
        pytest.param(name, causal, marks=[] if (name, causal) == ("plain", True) else pytest.mark.full)
        for name in FORMS
        for causal in (False, True)
    ],
)
def test_compiled_is_eager(name: str, causal: bool) -> None:
    assert_compiles(FORMS[name], Sizes(T=T, S=T), {"causal": causal})


@pytest.mark.full
@pytest.mark.parametrize("name", ["softmax", "Polynomial", "plain"])
def test_compiled_is_eager_with_other_lengths_and_padding(name: str) -> None:
    mask = torch.rand(2, T + 4, generator=seeded(5)) > 0.3
    assert_compiles(FORMS[name], Sizes(T=T, S=T + 4), {"causal": True, "mask": mask})


@pytest.mark.full
@pytest.mark.parametrize("name", ["softmax", "plain"])
@pytest.mark.parametrize("kind", ["prefix", "block"])
def test_compiled_is_eager_under_structure(name: str, kind: str) -> None:
    assert_compiles(FORMS[name], Sizes(T=T, S=T), structures(T)[kind])


@pytest.mark.full
def test_compiled_keys_that_jump_beside_padding_are_eager() -> None:
    q, k, v = draw(Sizes(T=T, S=T), seeded(7), dtype=torch.float32)
    k = k * torch.linspace(50, 0.1, T)[:, None]
    attend = partial(LINEAR["log"], causal=True, mask=torch.rand(2, T, generator=seeded(11)) > 0.3)
    compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
    # Eager works in one chunk of rows, compiled in several: their roundings differ, relative to values of order 1.
    assert_same(with_gradients(compiled, q, k, v), with_gradients(attend, q, k, v), atol=1e-4)


def test_packed_sequences_are_refused_where_they_cannot_be_looked_at() -> None:
    x, ids = torch.ones(1, 1, 4, 3), torch.tensor([[0, 0, 1, 1]])

    def packed(x: Tensor) -> Tensor:
        return linear_attention(x, x, x, features=Elu(), sequence_ids=ids)

    with torch_form(), pytest.raises(Exception, match="sequence_ids must be looked at, so not be compiled"):
        torch.compile(packed, fullgraph=True, backend="eager")(x)
