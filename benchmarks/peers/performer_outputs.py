"""performer-pytorch's outputs for benchmarks/attention_error.py, from file to file. Runs in the peers' environment.

Asked: a list of (q, k, v) and a list of widths. Answered: for each of the former, both ways and causal, for each width,
the output. Every head has frequencies of its own, drawn as the package draws them.
"""

import sys

import torch
from performer_pytorch import FastAttention  # ty: ignore[import-not-found] -- installed in the peers' environment only
from torch import Tensor


def by_head(q: Tensor, k: Tensor, v: Tensor, width: int, causal: bool) -> Tensor:
    """The outputs of all heads."""
    heads = zip(*(x.split(1, dim=1) for x in (q, k, v)), strict=True)
    return torch.cat([FastAttention(q.shape[3], nb_features=width, causal=causal)(*head) for head in heads], dim=1)


if __name__ == "__main__":
    asked, answered = sys.argv[1:]
    torch.manual_seed(0)
    torch.set_num_threads(1)
    problems, widths = torch.load(asked)
    with torch.inference_mode():
        answer = [
            [[by_head(*problem, width, causal) for width in widths] for causal in (False, True)] for problem in problems
        ]
    torch.save(answer, answered)
