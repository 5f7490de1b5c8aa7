"""Inputs for the tests of attention, values with gradients, and what "the same function" means."""

from collections.abc import Callable, Sequence
from collections.abc import Generator as Yields
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Generator, Tensor

from likewise.attention import FeatureMap, linear_attention
from likewise.attention.native import library
from tests.attention import brute
from tests.tolerance import RELATIVE, assert_close

Attend = Callable[..., Tensor]
Inputs = tuple[Tensor, Tensor, Tensor]

SMALL = 0.4  # of q and k: signed similarities then do not sum to nearly 0, where no digit of a quotient is right


class Sizes(NamedTuple):
    """The house's letters; H = G * repeats."""

    B: int = 2
    G: int = 3
    repeats: int = 2
    T: int = 7
    S: int = 11
    K: int = 5
    V: int = 13


class Drawn:
    """The dtype of what is drawn where a test does not say: the kernel has no float64."""

    dtype = torch.float64


def seeded(seed: int) -> Generator:
    return torch.Generator().manual_seed(seed)


def draw(sizes: Sizes, generator: Generator, *, size: float = 1.0, dtype: torch.dtype | None = None) -> Inputs:
    """q, k ~ size N(0, I) and v ~ N(0, I)."""
    dtype = dtype or Drawn.dtype
    B, G, repeats, T, S, K, V = sizes
    shapes = ((B, G * repeats, T, K), (B, G, S, K), (B, G, S, V))
    q, k, v = (torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes)
    return (q * size).to(dtype), (k * size).to(dtype), v.to(dtype)


def structures(positions: int) -> dict[str, dict[str, Any]]:
    """One structure of each kind, for B = 2 and T = S positions, at least 3."""
    mask = torch.rand(2, positions, generator=seeded(1)) > 0.3
    mask[0, 0], mask[1, 0] = False, True
    ids = torch.tensor([[4] * 2 + [1] * (positions - 2), [0] * (positions - 1) + [9]])
    return {
        "bidirectional": {},
        "causal": {"causal": True},
        "masked": {"mask": mask},
        "masked causal": {"causal": True, "mask": mask},
        "packed": {"sequence_ids": ids},
        "packed causal": {"sequence_ids": ids, "causal": True},
        "prefix": {"prefix_lengths": torch.tensor([2, positions - 1]), "causal": True},
        "block": {"block_size": 2, "causal": True},
        "large block": {"block_size": 3, "causal": True},
    }


def with_gradients(attend: Attend, *inputs: Tensor, rows: slice = slice(None)) -> list[Tensor]:
    """The output of `attend` and the gradients of one fixed random combination of its `rows`."""
    leaves = [x.detach().clone().requires_grad_() for x in inputs]
    out = attend(*leaves)[:, :, rows]
    direction = torch.randn(out.shape, dtype=torch.float64, generator=seeded(0)).to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, leaves, direction)]


@contextmanager
def torch_form() -> Yields[None]:
    """Within it the compiled kernel is off."""
    found, library.kernel = library.kernel, library.Kernel(None, "turned off by a test")
    try:
        yield
    finally:
        library.kernel = found


def wild_rows(name: str, features: FeatureMap, inputs: Inputs, structure: dict[str, Any]) -> Tensor:
    """Rows, (B, H, T, 1), that add up terms more than 20 times as large as their denominator."""
    q, k, _ = inputs
    return brute.condition(brute.MAPS[name].similarity, q, k, structure, brute.frequencies(features, q)) > 20


def both(
    name: str, features: FeatureMap, inputs: Inputs, structure: dict[str, Any], chunk_size: int | None = None
) -> tuple[list[Tensor], list[Tensor]]:
    """Values and gradients of linear attention with the map MAPS[name], and those of brute force.

    Rows of a signed map whose similarities sum to nearly 0 are left out: no digit of such a quotient is right.
    """
    wild = wild_rows(name, features, inputs, structure) if name in brute.SIGNED else None

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = brute.linear(name, features, q, k, v, structure)
        return out if wild is None else out.masked_fill(wild, 0)

    return ours(features, inputs, structure, chunk_size, wild), with_gradients(plain, *inputs)


def ours(
    features: FeatureMap,
    inputs: Inputs,
    structure: dict[str, Any],
    chunk_size: int | None = None,
    wild: Tensor | None = None,
) -> list[Tensor]:
    """Values and gradients of linear attention, 0 in the `wild` rows."""

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        out = linear_attention(q, k, v, features=features, chunk_size=chunk_size, **structure)
        return out if wild is None else out.masked_fill(wild, 0)

    return with_gradients(attend, *inputs)


def assert_same(actual: Sequence[Tensor], expected: Sequence[Tensor], *, atol: float = 1e-11) -> None:
    """Equal tensor by tensor. Entries are sums of numbers of order 1, of both signs, and some cancel to nearly 0: what
    is left of these is only absolutely accurate, to 1e-11 in float64, some ten thousand roundings. In float32 to the
    accuracy of the dtype times the largest entry of all: with one key to see, the gradient of a query is exactly 0.
    """
    largest = max((other.abs().max().item() for other in expected if other.numel()), default=0.0)
    for one, other in zip(actual, expected, strict=True):
        assert_close(one, other, atol=atol if one.dtype == torch.float64 else RELATIVE[one.dtype] * largest)


def assert_same_beside_the_largest(actual: Sequence[Tensor], expected: Sequence[Tensor]) -> None:
    """Equal to the accuracy of the dtype times the largest entry: every entry is a sum of terms of that size."""
    for one, other in zip(actual, expected, strict=True):
        largest = other.abs().max().item() if other.numel() else 0.0
        assert_close(one, other, atol=RELATIVE[one.dtype] * largest)
