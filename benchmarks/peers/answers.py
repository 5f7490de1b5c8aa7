"""pytorch-metric-learning's answers for two small batches, for tests/metric/test_metric_learning.py to be held against.

Runs in the peers' environment, from the root: `.peers/bin/python -m benchmarks.peers.answers FILE`. The batches are
written with the answers, so that the test depends on no generator; no distance of theirs lies near another, nor near
another and the margin, so that no rounding decides what a triplet is.
"""

import json
import sys
from importlib.metadata import version
from pathlib import Path

import torch
from torch import Tensor

from benchmarks.mining_problem import CHECKS, MARGIN
from benchmarks.peers.run_metric_learning import make

WIDTH = 5
SIZES = ((1, 2, 3, 4, 6), (5, 1, 7, 3, 8))  # images of each identity: 16 and 24 rows
APART = 1e-6  # what two distances differ by at least, with the margin and without


def batch(sizes: tuple[int, ...], seed: int) -> tuple[Tensor, Tensor]:
    """Embeddings about a centre for each identity, in no order."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.cat([torch.full((size,), name) for name, size in enumerate(sizes)])
    labels = labels[torch.randperm(len(labels), generator=generator)]
    centres, x = (torch.randn(len(rows), WIDTH, generator=generator, dtype=torch.float64) for rows in (sizes, labels))
    return 0.4 * (centres[labels] + x), labels


def clear(x: Tensor) -> bool:
    """Whether no rounding can decide an answer."""
    d = (x[:, None] - x).square().sum(-1)
    for row, distances in enumerate(d):
        others = torch.cat([distances[:row], distances[row + 1 :]])
        gaps = (others[:, None] - others).fill_diagonal_(torch.inf)
        if min(gaps.abs().min(), (gaps - MARGIN).abs().min()) < APART:
            return False
    return True


def answered(sizes: tuple[int, ...]) -> dict[str, object]:
    """The first batch that is clear, and what its miners and losses say of it."""
    seed = next(seed for seed in range(1000) if clear(batch(sizes, seed)[0]))
    x, labels = batch(sizes, seed)
    runs = make()
    answers = {name: [answer.tolist() for answer in runs[name](x, labels)] for name in CHECKS}
    return {"margin": MARGIN, "embeddings": x.tolist(), "labels": labels.tolist(), "answers": answers}


if __name__ == "__main__":
    made = {
        "by": f"pytorch-metric-learning {version('pytorch-metric-learning')}",
        "batches": list(map(answered, SIZES)),
    }
    Path(sys.argv[1]).write_text(json.dumps(made, separators=(",", ":")) + "\n")
