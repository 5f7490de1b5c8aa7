"""pytorch-metric-learning's miners and loss, answering benchmarks/mining.py. Runs in the peers' environment."""

from collections.abc import Callable
from importlib.metadata import version

import torch
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import TripletMarginLoss
from pytorch_metric_learning.miners import BatchHardMiner, TripletMarginMiner
from pytorch_metric_learning.reducers import AvgNonZeroReducer, SumReducer
from torch import Tensor

from benchmarks.harness.worker import Run, serve
from benchmarks.mining_problem import (
    BATCH_HARD,
    EASY_LIST,
    HARD_LIST,
    LOSS_MEAN,
    LOSS_SUM,
    MARGIN,
    SEMI_HARD,
    SEMI_HARD_LIST,
    inputs,
    with_gradient,
)


def squared() -> LpDistance:
    """Squared Euclidean distances of the rows as they are."""
    return LpDistance(normalize_embeddings=False, p=2, power=2)


def mined(miner: Callable[..., tuple[Tensor, ...]], dtype: torch.dtype) -> Run:
    """Its triplets as rows."""
    return lambda x, labels: (torch.stack(miner(x.to(dtype), labels), dim=-1),)


def lost(loss: Callable[..., Tensor]) -> Run:
    """Its loss over all triplets, and the gradient."""

    def run(x: Tensor, labels: Tensor) -> tuple[Tensor, ...]:
        x = x.double().requires_grad_()
        return with_gradient(loss(x, labels), x)

    return run


def make() -> dict[str, Run]:
    """Its semi-hard miner, which lists every semi-hard triplet, and the answers to check."""

    def margin_miner(kind: str) -> TripletMarginMiner:
        return TripletMarginMiner(margin=MARGIN, type_of_triplets=kind, distance=squared())

    def loss(reducer: object) -> TripletMarginLoss:
        return TripletMarginLoss(margin=MARGIN, distance=squared(), reducer=reducer)

    return {
        SEMI_HARD: mined(margin_miner("semihard"), torch.float32),
        SEMI_HARD_LIST: mined(margin_miner("semihard"), torch.float64),
        HARD_LIST: mined(margin_miner("hard"), torch.float64),
        EASY_LIST: mined(margin_miner("easy"), torch.float64),
        BATCH_HARD: mined(BatchHardMiner(distance=squared()), torch.float64),
        LOSS_SUM: lost(loss(SumReducer())),
        LOSS_MEAN: lost(loss(AvgNonZeroReducer())),
    }


if __name__ == "__main__":
    serve(f"pytorch-metric-learning {version('pytorch-metric-learning')}, torch {torch.__version__}", make, inputs)
