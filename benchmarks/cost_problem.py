"""What everybody counts: modules, their inputs, and their multiply-adds by hand. Needs only torch and likewise."""

from collections.abc import Callable
from typing import Any

from torch import Tensor, empty, nn
from torch.nn import functional

from likewise.networks import nn2, resnet50
from likewise.programs import attention as attention_programs

HEADS, LENGTH, WIDTH = 8, 256, 64
PAIRS = HEADS * LENGTH * LENGTH * WIDTH * 2
N, D, M, R = 1024, 64, 64, 128
BATCH, CACHE, KEY = 8, 1024, 64
MODEL = HEADS * KEY


class Function(nn.Module):
    """A function as a module, which is what counters take."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> Any:
        return self.function(*inputs)


def _heads(function: Callable[..., Any]) -> tuple[nn.Module, tuple[Tensor, ...], int]:
    return Function(function), tuple(empty(1, HEADS, LENGTH, WIDTH) for _ in range(3)), PAIRS


def _layer() -> tuple[nn.Module, tuple[Tensor, ...], int]:
    layer = nn.MultiheadAttention(HEADS * WIDTH, HEADS, batch_first=True).eval()
    x = empty(1, LENGTH, HEADS * WIDTH)
    return layer, (x, x, x), PAIRS + LENGTH * 4 * (HEADS * WIDTH) ** 2


def _random_features() -> tuple[nn.Module, tuple[Tensor, ...], int]:
    inputs = empty(N, D), empty(N, D), empty(N, M), empty(R, D)
    return Function(attention_programs.random_features), inputs, 4 * N * M * R + 2 * N * D * R + 2 * N * R


def _mqa_step() -> tuple[nn.Module, tuple[Tensor, ...], int]:
    shapes = [(BATCH, MODEL), *[(BATCH, CACHE, KEY)] * 2, (HEADS, MODEL, KEY), *[(MODEL, KEY)] * 2, (HEADS, MODEL, KEY)]
    macs = 2 * BATCH * (HEADS * KEY * MODEL + CACHE * HEADS * KEY + KEY * MODEL)
    return Function(attention_programs.mqa_step), tuple(map(empty, shapes)), macs


PROBLEMS: dict[str, Callable[[], tuple[nn.Module, tuple[Tensor, ...], int]]] = {
    "NN2": lambda: (nn2().eval(), (empty(1, 3, 224, 224),), 1_596_530_688),
    "ResNet-50 v1.5": lambda: (
        resnet50(version="v1_5", num_classes=1000).eval(),
        (empty(1, 3, 224, 224),),
        4_089_184_256,
    ),
    "attention, two products": lambda: _heads(lambda q, k, v: (q @ k.mT).softmax(-1) @ v),
    "attention, one call": lambda: _heads(functional.scaled_dot_product_attention),
    "multi-head layer": _layer,
    "random features": _random_features,
    "multi-query step": _mqa_step,
}
