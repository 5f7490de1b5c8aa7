"""FaceNet's networks and ResNet-50 as programs of one image, on the meta device; nothing loads before one is made."""

from collections.abc import Callable
from typing import Any, Literal

from likewise.claims.registry import Make, program, register_counter, register_made
from likewise.programs.attention import empty


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
    register_counter("facenet.triplets", _triplets)
    register_counter("facenet.nn1_rows", _layers(weighted=False))
    register_counter("facenet.nn1_layers", _layers(weighted=True))
