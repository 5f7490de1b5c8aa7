"""Images or tokens to embeddings, with named segments; attention is a part that can be looked at and replaced."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.networks", "torch")

from likewise.networks.attends import capture, with_attends
from likewise.networks.classifiers import (
    Classifier,
    build_classifier,
    load_classifier,
    open_classifier,
    save_classifier,
)
from likewise.networks.facenet import nn1, nn2, nn3, nn4, nns1, nns2
from likewise.networks.inference import for_inference
from likewise.networks.language import ByteModel
from likewise.networks.resnet import Embedder, resnet8, resnet14, resnet20, resnet32, resnet50, resnet56
from likewise.networks.segments import Network
from likewise.networks.transformer import Block
from likewise.networks.vit import vit
from likewise.networks.weights import Saved, build_network, load_network, save_network

__all__ = [
    "Block",
    "ByteModel",
    "Classifier",
    "Embedder",
    "Network",
    "Saved",
    "build_classifier",
    "build_network",
    "capture",
    "for_inference",
    "load_classifier",
    "load_network",
    "nn1",
    "nn2",
    "nn3",
    "nn4",
    "nns1",
    "nns2",
    "open_classifier",
    "resnet8",
    "resnet14",
    "resnet20",
    "resnet32",
    "resnet50",
    "resnet56",
    "save_classifier",
    "save_network",
    "vit",
    "with_attends",
]
