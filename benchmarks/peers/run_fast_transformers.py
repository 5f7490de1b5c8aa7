"""pytorch-fast-transformers' attention, answering benchmarks/attention_speed.py. Runs in the peers' environment."""

from importlib.metadata import version

import torch
from fast_transformers.attention import causal_linear_attention, linear_attention  # ty: ignore[import-not-found]
from fast_transformers.masking import FullMask, LengthMask, TriangularCausalMask  # ty: ignore[import-not-found]
from torch import Tensor

from benchmarks.attention_problem import WIDTH, Attend, inputs, runs
from benchmarks.harness.worker import serve


def make(causal: bool) -> Attend:
    """Its linear attention with its own default, elu + 1."""
    if causal:
        attention = causal_linear_attention.CausalLinearAttention(WIDTH)
    else:
        attention = linear_attention.LinearAttention(WIDTH)

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        length = q.shape[2]
        mask = TriangularCausalMask(length) if causal else FullMask(1, 1)
        whole = LengthMask(torch.tensor([length]))
        return attention(*(x.transpose(1, 2) for x in (q, k, v)), mask, whole, whole).transpose(1, 2)

    return attend


def in_its_layout(length: int) -> tuple[Tensor, ...]:
    """The same numbers, in memory as (B, T, H, K): it need not pay for a layout that is not its own."""
    return tuple(x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs(length))


if __name__ == "__main__":
    name = f"pytorch-fast-transformers {version('pytorch-fast-transformers')}, torch {torch.__version__}"
    serve(name, lambda: runs(make), in_its_layout)
