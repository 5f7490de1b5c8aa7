"""performer-pytorch's attention, answering benchmarks/attention_speed.py. Runs in the peers' environment."""

from importlib.metadata import version

import torch
from performer_pytorch import FastAttention  # ty: ignore[import-not-found] -- installed in the peers' environment only

from benchmarks.attention_problem import FEATURES, WIDTH, Attend, inputs, projection, runs
from benchmarks.harness.worker import serve


def make(causal: bool) -> Attend:
    """As a model uses it on a CPU: without the compiled product it takes `causal_linear_attention_noncuda`."""
    attention = FastAttention(WIDTH, nb_features=FEATURES, causal=causal)
    attention.projection_matrix.copy_(projection())
    return attention


if __name__ == "__main__":
    serve(f"performer-pytorch {version('performer-pytorch')}, torch {torch.__version__}", lambda: runs(make), inputs)
