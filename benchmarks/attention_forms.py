"""The forms of attention that are measured, and the plain float64 form that each must agree with before it is."""

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial

import torch
from torch import Generator, Tensor
from torch.nn.functional import scaled_dot_product_attention

from benchmarks.attention_problem import FEATURES, WIDTH, inputs, projection
from benchmarks.harness.worker import Run, Worker, serve
from likewise.attention import Elu, Exponential, FeatureMap, Induced, Positive, kernel_attention, linear_attention

ELU, POSITIVE, SDPA, PERFORMER = "Elu", f"Positive({FEATURES})", "PyTorch SDPA", "performer-pytorch"
TOLERANCE = 1e-4  # of float32, as in the tests; held against the norm of the output

Reference = Callable[[Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Form:
    """A competitor: who runs it, up to which length it is worth waiting for, and what its output must be."""

    name: str
    python: str
    module: str
    longest: int
    reference: Reference

    def start(self) -> Worker:
        """A process that runs it."""
        return Worker(self.python, self.module, self.name)


def relative_error(reference: Reference, last_rows: Tensor, length: int) -> float:
    """|out - reference| / |reference| over the last rows, which causal forms compute from all keys."""
    q, k, v = (x.double() for x in inputs(length))
    q = q[:, :, -last_rows.shape[2] :]
    by_head = zip(*(x.split(1, dim=1) for x in (q, k, v)), strict=True)  # the features of one head at a time are small
    expected = torch.cat([reference(*head) for head in by_head], dim=1)
    return ((last_rows.double() - expected).norm() / expected.norm()).item()


@cache
def feature_map(name: str) -> FeatureMap:
    """The feature map of one of our forms."""
    if name == ELU:
        return Elu()
    return Positive(WIDTH, num_features=FEATURES, generator=Generator().manual_seed(0))


def induced(name: str) -> Reference:
    """Causal kernel attention with the kernel phi(q).phi(k) of one of our forms."""
    features = feature_map(name)
    return partial(kernel_attention, kernel=Induced(features.queries, features.keys), causal=True)


softmax = partial(kernel_attention, kernel=Exponential(), causal=True)


def performer(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """performer-pytorch's recipe: positive features less the largest projection, plus 1e-4; 1e-6 in the key sums."""
    frequencies = projection().double()
    hidden = torch.ones(q.shape[2], k.shape[2], dtype=torch.bool).triu(k.shape[2] - q.shape[2] + 1)

    def phi(x: Tensor, over: tuple[int, ...]) -> Tensor:
        x = x * x.shape[-1] ** -0.25
        projected = x @ frequencies.mT
        logs = projected - x.square().sum(-1, keepdim=True) / 2 - projected.amax(over, keepdim=True)
        return (logs.exp() + 1e-4) / math.sqrt(len(frequencies))

    queries, keys = phi(q, over=(-1,)), phi(k, over=(-1, -2))
    weights = (queries @ keys.mT).masked_fill(hidden, 0)
    return weights @ v / (weights.sum(-1, keepdim=True) + 1e-6 * queries.sum(-1, keepdim=True))


def forms(peers_python: str | None) -> list[Form]:
    """All competitors; the peers only where their environment is."""
    here, module = sys.executable, "benchmarks.attention_forms"
    found = [
        Form(ELU, here, module, sys.maxsize, induced(ELU)),
        Form(POSITIVE, here, module, sys.maxsize, induced(POSITIVE)),
        Form(SDPA, here, module, 32768, softmax),
    ]
    if peers_python is not None:
        found.append(Form(PERFORMER, peers_python, "benchmarks.peers.run_performer", 16384, performer))
    return found


def make(name: str) -> Run:
    """One of the forms of this environment."""
    if name == SDPA:
        return partial(scaled_dot_product_attention, is_causal=True)
    return partial(linear_attention, features=feature_map(name), causal=True)


if __name__ == "__main__":
    serve(f"{sys.argv[1]}, torch {torch.__version__}", partial(make, sys.argv[1]), inputs)
