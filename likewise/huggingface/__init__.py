"""Linear attention in transformers' models: attention implementations by name, and a cache that does not grow."""

# ruff: noqa: E402  without the packages, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.huggingface", "torch", "transformers")

from likewise.huggingface.caching import LinearCache
from likewise.huggingface.plugging import register

__all__ = ["LinearCache", "register"]
