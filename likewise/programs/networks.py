"""Networks as programs of one image, on the meta device; torch is imported when one is made.

FaceNet's six, ResNet-50, and those for images of 32 by 32: the residual networks of section 4.2 and a transformer.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from likewise.claims.registry import Make, program, register_counter, register_made
from likewise.programs.attention import empty

SMALL, CLASSES = 32, 10  # of CIFAR-10


@dataclass(frozen=True)
class Segment:
    """A named part of a network: the shape that it gives for one image, and what it costs."""

    name: str
    shape: tuple[int, ...]
    params: int
    macs: int
    elementwise: int
    traffic: int


def segments(name: str) -> tuple[Segment, ...]:
    """The segments of a network that is registered by that name, first to last; empty for any other program.

    >>> [part.macs for part in segments("facenet.nns2")][:2]  # 7x7 to 12 channels of 70 x 58 pixels, then pooling
    [7161840, 0]
    """
    network, *inputs = program(name).make()()
    found = []
    for part_name, part in getattr(network, "segments", ()):
        from likewise.cost import cost

        counted = cost(part, *inputs)
        inputs = [part(*inputs)]
        shape = tuple(inputs[0].shape[1:])
        found.append(Segment(part_name, shape, counted.params, counted.macs, counted.elementwise, counted.traffic))
    return tuple(found)


def _facenet(name: str) -> Make:
    def make() -> tuple[Any, ...]:
        import torch

        from likewise import networks

        builders = {
            "nn1": networks.nn1,
            "nn2": networks.nn2,
            "nn3": networks.nn3,
            "nn4": networks.nn4,
            "nns1": networks.nns1,
            "nns2": networks.nns2,
        }
        with torch.device("meta"):
            network = builders[name]().eval()
        return network, *empty((1, 3, *network.size))

    return make


def _resnet50(version: Literal["v1", "v1_5"]) -> Make:
    def make() -> tuple[Any, ...]:
        import torch

        from likewise.networks import resnet50

        with torch.device("meta"):
            network = resnet50(version=version, num_classes=1000).eval()
        return network, *empty((1, 3, 224, 224))

    return make


def _small(name: str) -> Make:
    def make() -> tuple[Any, ...]:
        import torch

        from likewise import networks

        residual = {
            "resnet8": networks.resnet8,
            "resnet14": networks.resnet14,
            "resnet20": networks.resnet20,
            "resnet32": networks.resnet32,
            "resnet56": networks.resnet56,
        }
        with torch.device("meta"):
            if name == "vit":
                network = networks.vit(SMALL, patch_size=4, num_classes=CLASSES)
            else:
                network = residual[name](num_classes=CLASSES)
        return network.eval(), *empty((1, 3, SMALL, SMALL))

    return make


def _triplets(P: int, K: int) -> int:
    """Anchor, positive and negative of a batch of P identities with K images each: counted, anchor by anchor."""
    labels = [identity for identity in range(P) for _ in range(K)]
    same = [labels.count(label) for label in labels]
    return sum((positives - 1) * (len(labels) - positives) for positives in same)


def _layers(weighted: bool) -> Callable[[], int]:
    """Rows of FaceNet's Table 1 with its last, L2; or those of them that have weights."""

    def count() -> int:
        network, _ = program("facenet.nn1").make()()
        return sum(not weighted or any(True for _ in part.parameters()) for _, part in network.segments)

    return count


def register_networks() -> None:
    """Give the networks, and counts of them, names that claims can use."""
    for name in ("nn1", "nn2", "nn3", "nn4", "nns1", "nns2"):
        register_made(f"facenet.{name}", _facenet(name))
    for version in ("v1", "v1_5"):
        register_made(f"resnet50.{version}", _resnet50(version))
    for name in ("resnet8", "resnet14", "resnet20", "resnet32", "resnet56", "vit"):
        register_made(f"cifar.{name}", _small(name))
    register_counter("facenet.triplets", _triplets)
    register_counter("facenet.nn1_rows", _layers(weighted=False))
    register_counter("facenet.nn1_layers", _layers(weighted=True))
