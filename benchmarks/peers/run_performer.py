"""performer-pytorch's causal attention, answering benchmarks/attention.py. Runs in the peers' environment."""

from importlib.metadata import version

import torch
from performer_pytorch import FastAttention  # ty: ignore[import-not-found] -- installed in the peers' environment only

from benchmarks.attention_problem import FEATURES, WIDTH, inputs, projection
from benchmarks.harness.worker import Run, serve


def make() -> Run:
    """As a model uses it on a CPU: without the compiled product it takes `causal_linear_attention_noncuda`."""
    attention = FastAttention(WIDTH, nb_features=FEATURES, causal=True)
    attention.projection_matrix.copy_(projection())
    return attention


if __name__ == "__main__":
    serve(f"performer-pytorch {version('performer-pytorch')}, torch {torch.__version__}", make, inputs)
