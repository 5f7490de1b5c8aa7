"""Every differentiable path against finite differences, twice, and that of keys that jump above all before them."""

from collections.abc import Callable
from functools import partial

import pytest
import torch
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from likewise.attention import (
    Elu,
    Positive,
    SoftmaxFourier,
    kernel_attention,
    linear_attention,
    prefix,
    softmax_attention,
)
from tests.attention import brute
from tests.attention.drawing import (
    SMALL,
    Inputs,
    Sizes,
    assert_same,
    assert_same_beside_the_largest,
    both,
    draw,
    ours,
    seeded,
    structures,
    wild_rows,
)

Attend = Callable[..., Tensor]
MAPS = {
    "plain": Elu(),
    "log": Positive(2, num_features=3, generator=seeded(2)),
    "log and value": SoftmaxFourier(2, num_frequencies=3, generator=seeded(3)),
}
LINEAR = {name: partial(linear_attention, features=features, chunk_size=2) for name, features in MAPS.items()}
EXACT = {
    "softmax": softmax_attention,
    **{name: partial(kernel_attention, kernel=kernel) for name, (kernel, _) in brute.KERNELS.items()},
}
EVERY_PATH = [
    *[pytest.param(form, kind, id=f"{name}, {kind}") for name, form in LINEAR.items() for kind in structures(3)],
    *[pytest.param(form, kind, id=f"{name}, {kind}") for name, form in EXACT.items() for kind in ("causal", "masked")],
]


def tiny(attend: Attend, kind: str, length: int) -> tuple[Callable[..., Tensor], tuple[Tensor, ...]]:
    """A function of q, k, v small enough for finite differences, and where to take them."""
    inputs = draw(Sizes(G=1, repeats=1, T=length, S=length, K=2, V=1), seeded(19), size=SMALL)
    return partial(attend, **structures(length)[kind]), tuple(x.requires_grad_() for x in inputs)


@pytest.mark.slow
@pytest.mark.parametrize(("attend", "kind"), EVERY_PATH)
def test_gradients_are_those_of_finite_differences(attend: Attend, kind: str) -> None:
    # A random projection of the Jacobian; all of it is compared with brute force in the other tests.
    assert gradcheck(*tiny(attend, kind, 5), fast_mode=True)


@pytest.mark.full
@pytest.mark.parametrize(("attend", "kind"), EVERY_PATH)
def test_double_backward_works(attend: Attend, kind: str) -> None:
    assert gradgradcheck(*tiny(attend, kind, 3), fast_mode=True)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["log", "log and value"])
@pytest.mark.parametrize("kind", ["causal", "masked causal", "packed"])
def test_gradients_through_jumps_are_those_of_finite_differences(
    name: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(prefix.JUMP, torch.float64, 0.01)
    assert gradcheck(*tiny(LINEAR[name], kind, 5), fast_mode=True)
    assert gradgradcheck(*tiny(LINEAR[name], kind, 3), fast_mode=True)


# Keys that exceed what was seen before them by more than prefix.JUMP are exponentiated pair by pair.

LOG_MAPS = pytest.mark.parametrize("name", [name for name in brute.LOGARITHMIC if "," not in name])


def jumping(name: str, sizes: Sizes, dtype: torch.dtype) -> Inputs:
    """Inputs whose keys come down from 60 to order 1, so that the logs w.k - |k|^2/2 jump up by hundreds.

    SoftmaxFourier's log is +|k|^2/2: its keys rise to 30.
    """
    q, k, v = draw(sizes, seeded(13), size=SMALL)
    far = 60 * torch.linspace(1, 0, sizes.S, dtype=torch.float64)[:, None] ** 3
    far = far.flip(0) / 2 if name == "SoftmaxFourier" else far
    k = k + far * k.sign()
    return q.to(dtype), k.to(dtype), v.to(dtype)


@LOG_MAPS
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
@pytest.mark.parametrize("chunk_size", [2, 7, None])
@pytest.mark.parametrize("block_size", [None, 3])
def test_keys_that_jump_are_right(
    name: str, dtype: torch.dtype, chunk_size: int | None, block_size: int | None
) -> None:
    features = brute.MAPS[name].make(5, 1, seeded(11))
    inputs = jumping(name, Sizes(G=1, T=17, S=19), dtype)
    log = features.split_keys(inputs[1]).log
    assert log is not None
    assert (log - log[:, :, :1]).amax() > prefix.JUMP[dtype]  # otherwise this tests nothing
    actual, expected = both(name, features, inputs, {"causal": True, "block_size": block_size}, chunk_size)
    assert_same_beside_the_largest(actual, expected)


@pytest.mark.slow
@LOG_MAPS
@pytest.mark.parametrize("chunk_size", [5, None])
@pytest.mark.parametrize("kind", ["causal", "masked causal", "packed", "packed causal", "block"])
def test_the_path_for_jumps_equals_the_ordinary_path(
    name: str, chunk_size: int | None, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    features = brute.MAPS[name].make(5, 1, seeded(17))
    inputs, structure = draw(Sizes(T=11), seeded(23), size=SMALL), structures(11)[kind]
    ordinary, expected = both(name, features, inputs, structure, chunk_size)
    monkeypatch.setitem(prefix.JUMP, torch.float64, 0.01)
    wild = wild_rows(name, features, inputs, structure)
    careful = ours(features, inputs, structure, chunk_size, wild)
    assert_same(ordinary, expected)
    assert_same(careful, expected)
    assert not all(torch.equal(one, other) for one, other in zip(careful, ordinary, strict=True))
