"""The forms of attention that are measured, and the plain float64 form that each must agree with before it is."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

import torch
from torch import Generator, Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.attention_problem import (
    FEATURES,
    HEADS,
    TASKS,
    WIDTH,
    Attend,
    Task,
    inputs,
    outputs,
    outputs_and_gradients,
    projection,
    runs,
)
from benchmarks.harness.worker import Worker, serve
from likewise.attention import Elu, Exponential, FeatureMap, Positive, Quadratic, kernel_attention, linear_attention
from likewise.attention.kernels import Induced

NEAR = 128  # exact_within
ELU, POSITIVE, QUADRATIC = "Elu", f"Positive({FEATURES})", "Quadratic"
POSITIVE_NEAR = f"{POSITIVE}, exact within {NEAR}"
SDPA, PERFORMER, FAST = "PyTorch SDPA", "performer-pytorch", "pytorch-fast-transformers"
ELU_BF16, POSITIVE_BF16 = f"{ELU}, bfloat16", f"{POSITIVE}, bfloat16"
ELU_ONE, ELU_REPEATED = f"{ELU}, one key-value head", f"{ELU}, one key-value head repeated"
PRODUCT, PRODUCT_SIZE = "matrix product", 2048  # the machine's own rate, in the same run
TOLERANCE, BF16_TOLERANCE = 1e-4, 1e-2  # as in the tests; held against the norm of the output or of a gradient

Reference = Callable[[bool], Attend]  # from whether it is causal; queries are the last rows


@dataclass(frozen=True)
class Form:
    """A competitor: who runs it, up to which length each task is worth waiting for, and what its output must be.

    special: measured at the length of the promises only.
    """

    name: str
    reference: Reference
    longest: dict[Task, int] = field(default_factory=lambda: dict.fromkeys(TASKS, sys.maxsize))
    python: str = sys.executable
    module: str = "benchmarks.attention_forms"
    tolerance: float = TOLERANCE
    special: bool = False

    def start(self) -> Worker:
        """A process that runs it."""
        return Worker(self.python, self.module, self.name)


def expected_rows(attend: Attend, tensors: tuple[Tensor, ...], task: Task, rows: int) -> tuple[Tensor, ...]:
    """The last rows of the output in float64 and, backward, of the gradients of q, k and v that these rows determine.

    Of a causal form the last rows depend on all keys, and the gradients of the last keys and values on these rows
    alone. Both ways the latter depend on all rows: they are left out unless all are asked for.
    """
    q, k, v, gradient = (x.double() for x in tensors)
    groups = k.shape[1]
    q, gradient = (x[:, :, -rows:] for x in (q, gradient))
    run = outputs_and_gradients if task.backward else outputs
    # One key-value head at a time: its features are small.
    by_group = zip(*(x.chunk(groups, dim=1) for x in (q, k, v, gradient)), strict=True)
    found = [torch.cat(parts, dim=1) for parts in zip(*(run(attend, *group) for group in by_group), strict=True)]
    determined = len(found) if task.causal or rows >= k.shape[2] else 2
    return tuple(x[:, :, -rows:] for x in found[:determined])


def relative_error(found: tuple[Tensor, ...], expected: tuple[Tensor, ...]) -> float:
    """The largest |found - expected| / |expected| of an output and its gradients; NaN where one of them is."""
    pairs = zip(found, expected, strict=False)  # what is not determined by the rows that are asked for is not compared
    return torch.stack([(one.double() - other).norm() / other.norm() for one, other in pairs]).max().item()


@cache
def feature_map(name: str) -> FeatureMap:
    """The feature map of one of our forms."""
    if name.startswith(ELU):
        return Elu()
    if name == QUADRATIC:
        return Quadratic(WIDTH)
    return Positive(WIDTH, num_features=FEATURES, generator=Generator().manual_seed(0))


def induced(name: str) -> Reference:
    """Kernel attention with the kernel phi(q).phi(k) of one of our forms."""
    features = feature_map(name)
    kernel = features.kernel if name == QUADRATIC else Induced(features.queries, features.keys)
    return lambda causal: partial(kernel_attention, kernel=kernel, causal=causal)


def softmax(causal: bool) -> Attend:
    """Exact attention."""
    return partial(kernel_attention, kernel=Exponential(), causal=causal)


def exact_near(causal: bool) -> Attend:
    """Pairs less than NEAR positions apart by the kernel itself, the others by features."""
    features = feature_map(POSITIVE)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        distance = _distance(q, k)
        weights = torch.where(distance.abs() < NEAR, features.kernel(q, k), features.queries(q) @ features.keys(k).mT)
        weights = weights.masked_fill(distance < 0, 0) if causal else weights
        return weights @ v / weights.sum(-1, keepdim=True)

    return attend


def performer(causal: bool) -> Attend:
    """performer-pytorch's recipe: positive features less the largest projection, plus 1e-4; 1e-6 in causal key sums."""
    frequencies = projection().double()

    def phi(x: Tensor, over: tuple[int, ...]) -> Tensor:
        x = x * x.shape[-1] ** -0.25
        projected = x @ frequencies.mT
        logs = projected - x.square().sum(-1, keepdim=True) / 2 - projected.amax(over, keepdim=True).detach()
        return (logs.exp() + 1e-4) / math.sqrt(len(frequencies))

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        queries, keys = phi(q, over=(-1,)), phi(k, over=(-1, -2))
        weights = queries @ keys.mT
        weights = weights.masked_fill(_distance(q, k) < 0, 0) if causal else weights
        added = 1e-6 * queries.sum(-1, keepdim=True) if causal else 0
        return weights @ v / (weights.sum(-1, keepdim=True) + added)

    return attend


def _distance(q: Tensor, k: Tensor) -> Tensor:
    """How far after a key a query stands."""
    rows, positions = q.shape[2], k.shape[2]
    return torch.arange(positions - rows, positions)[:, None] - torch.arange(positions)


def up_to(causal: int, causal_backward: int, both_ways: int, both_ways_backward: int) -> dict[Task, int]:
    """The longest length of every task."""
    return dict(zip(TASKS, (causal, causal_backward, both_ways, both_ways_backward), strict=True))


def forms(peers: dict[str, str]) -> list[Form]:
    """All competitors; `peers` are the Pythons that have them, by name."""
    found = [
        Form(ELU, induced(ELU)),
        # Both ways autograd keeps all features, and with a window all near pairs: gigabytes beyond these lengths.
        Form(POSITIVE, induced(POSITIVE), up_to(65536, 65536, 65536, 16384)),
        Form(POSITIVE_NEAR, exact_near, up_to(65536, 65536, 65536, 4096)),
        Form(QUADRATIC, induced(QUADRATIC), up_to(16384, 4096, 16384, 4096)),
        Form(SDPA, softmax, up_to(32768, 16384, 16384, 16384)),
        Form(ELU_BF16, induced(ELU), up_to(16384, 0, 0, 0), tolerance=BF16_TOLERANCE, special=True),
        Form(POSITIVE_BF16, induced(POSITIVE), up_to(16384, 0, 0, 0), tolerance=BF16_TOLERANCE, special=True),
        Form(ELU_ONE, induced(ELU), up_to(16384, 16384, 0, 0), special=True),
        Form(ELU_REPEATED, induced(ELU), up_to(16384, 16384, 0, 0), special=True),
    ]
    # performer-pytorch's causal form keeps F x V numbers for every position, backward several times over: 1 MiB each.
    theirs = {
        PERFORMER: (performer, up_to(16384, 1024, 65536, 16384), "benchmarks.peers.run_performer"),
        FAST: (induced(ELU), up_to(16384, 16384, 65536, 65536), "benchmarks.peers.run_fast_transformers"),
    }
    for name, python in peers.items():
        reference, longest, module = theirs[name]
        found.append(Form(name, reference, longest, python, module))
    return found


def make(name: str, causal: bool) -> Attend:
    """One of the forms of this environment."""
    if name == SDPA:
        return partial(scaled_dot_product_attention, is_causal=causal)
    near = NEAR if name == POSITIVE_NEAR else None
    attend = partial(linear_attention, features=feature_map(name), causal=causal, exact_within=near)
    if name == ELU_REPEATED:
        return lambda q, k, v: attend(q, *(x.repeat_interleave(HEADS, dim=1) for x in (k, v)))
    return attend


def inputs_of(name: str) -> Callable[[int], tuple[Tensor, ...]]:
    """What a form is given."""

    def given(length: int) -> tuple[Tensor, ...]:
        q, k, v, gradient = inputs(length)
        if name in (ELU_ONE, ELU_REPEATED):
            k, v = k[:, :1].contiguous(), v[:, :1].contiguous()
        dtype = torch.bfloat16 if name in (ELU_BF16, POSITIVE_BF16) else torch.float32
        return tuple(x.to(dtype) for x in (q, k, v, gradient))

    return given


def serve_form(name: str) -> None:
    """Answer for one of the forms of this environment, or for the matrix product."""
    about = f"{name}, torch {torch.__version__}"
    if name == PRODUCT:
        product: Any = {PRODUCT: lambda a, b: (a @ b,)}
        serve(about, lambda: product, lambda size: tuple(torch.randn(2, size, size)))
    else:
        serve(about, lambda: runs(partial(make, name)), inputs_of(name))


if __name__ == "__main__":
    serve_form(sys.argv[1])
