"""How the tests of states make them, feed them and look into them."""

from collections.abc import Sequence

import pytest
import torch
from torch import Tensor

from likewise.attention import FeatureMap, LinearState
from tests.attention import brute
from tests.attention.drawing import SMALL, Inputs, Sizes, draw, seeded

SIZES = Sizes(B=2, G=3, repeats=5, T=13, S=13, K=7, V=11)
NAMES = [name for name in brute.MAPS if "," not in name]  # a map with other parameters is no other path through a state
KINDS = ["Elu", "SoftmaxFourier", "Positive"]  # features kept as they are, times a row's exponential, as logarithms

# An exact map may keep keys and values; one of both signs has no positive denominator. Others share a path with these.
PATHS = [*KINDS, "Quadratic", "Fourier"]
EVERY_KIND = pytest.mark.parametrize("name", KINDS)
EVERY_MAP = pytest.mark.parametrize(
    "name", [name if name in PATHS else pytest.param(name, marks=pytest.mark.full) for name in NAMES]
)


def sequence(
    length: int = SIZES.T,
    *,
    heads: tuple[int, int] = (SIZES.G, SIZES.repeats),
    size: float = SMALL,
    seed: int = 0,
    dtype: torch.dtype | None = None,
) -> Inputs:
    """q, k, v for so many key-value heads and query heads of each.

    Queries and keys share a direction: where a row sees one key only and is nearly perpendicular to it, the gradient of
    the quotient (q.k)^2 v / (q.k)^2 is a difference of two huge numbers.
    """
    sizes = SIZES._replace(G=heads[0], repeats=heads[1], T=length, S=length)
    q, k, v = draw(sizes, seeded(seed), size=size, dtype=dtype)
    return q + size, k + size, v


def make(name: str, *, kv_heads: int = SIZES.G, seed: int = 1) -> FeatureMap:
    """The map MAPS[name] for keys of SIZES, every key-value head with frequencies of its own."""
    return brute.MAPS[name].make(SIZES.K, kv_heads, seeded(seed))


def start(features: FeatureMap, lag: int = 0, *, kv_heads: int = SIZES.G, batch: int = SIZES.B) -> LinearState:
    return LinearState.empty(features, batch=batch, kv_heads=kv_heads, value_dim=SIZES.V, lag=lag)


def at(inputs: Sequence[Tensor], first: int, stop: int | None = None) -> list[Tensor]:
    """The positions from first to stop of each."""
    return [x[:, :, first:stop] for x in inputs]


def joined(*parts: Sequence[Tensor]) -> list[Tensor]:
    """The positions of the first, then those of the next."""
    return [torch.cat(pieces, dim=2) for pieces in zip(*parts, strict=True)]


def fed(
    state: LinearState, inputs: Sequence[Tensor], sizes: Sequence[int], mask: Tensor | None = None
) -> tuple[Tensor, LinearState]:
    """The outputs of `inputs` given in pieces of these sizes and then the rest, one position by `step`."""
    outputs, first = [], 0
    for size in [*sizes, inputs[0].shape[2] - sum(sizes)]:
        piece, seen = at(inputs, first, first + size), None if mask is None else mask[:, first : first + size]
        out, state = (state.step if size == 1 else state.prefill)(*piece, mask=seen)
        outputs.append(out)
        first += size
    return torch.cat(outputs, dim=2), state


def after(state: LinearState, inputs: Sequence[Tensor]) -> LinearState:
    """The state after these positions, given at once."""
    return state.prefill(inputs[0], inputs[1], inputs[2])[1]


def tensors(state: LinearState) -> list[Tensor]:
    """Everything a state holds."""
    if state.memory is None:
        return []
    parts = (state.memory.folded, state.memory.whole, state.memory.recent)
    return [x for part in parts if part is not None for x in part if x is not None]


def assert_bitwise(one: LinearState, other: LinearState) -> None:
    """All the two hold is equal to the last bit."""
    facts = [(s.length, s.lag, s.exact_within, s.batch, s.kv_heads, s.value_dim, s.projection_id) for s in (one, other)]
    assert facts[0] == facts[1]
    for a, b in zip(tensors(one), tensors(other), strict=True):
        assert a.dtype == b.dtype
        assert torch.equal(a, b)


def assert_same_future(one: LinearState, other: LinearState, inputs: Sequence[Tensor]) -> None:
    """Whatever comes next, by step or at once, the two answer alike to the last bit."""
    assert one.length == other.length
    for sizes in ([1, 1], []):
        (out, end), (out_other, end_other) = fed(one, inputs, sizes), fed(other, inputs, sizes)
        assert torch.equal(out, out_other)
        last = at(inputs, 0, 1)
        assert torch.equal(end.step(*last)[0], end_other.step(*last)[0])
