"""Similarity in deep learning. Import the room you need: `from likewise.attention import linear_attention`."""

__version__ = "0.1.0"
