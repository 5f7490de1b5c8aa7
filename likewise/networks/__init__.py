"""Images or tokens to embeddings, with named segments; attention is a part that can be looked at and replaced."""

from likewise.networks.attends import Captured, Recorder, attentions, capture, with_attends
from likewise.networks.language import ByteModel
from likewise.networks.segments import Network
from likewise.networks.transformer import Block
from likewise.networks.vit import VisionTransformer, vit

__all__ = [
    "Block",
    "ByteModel",
    "Captured",
    "Network",
    "Recorder",
    "VisionTransformer",
    "attentions",
    "capture",
    "vit",
    "with_attends",
]
