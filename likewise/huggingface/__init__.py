"""Linear attention in transformers' models: by name, in a cache that does not grow, converted and distilled."""

# ruff: noqa: E402  without the packages, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.huggingface", "torch", "transformers")

from likewise.huggingface.caching import LinearCache
from likewise.huggingface.converting import Conversion, convert
from likewise.huggingface.distilling import Distillation, DistillSettings, distill
from likewise.huggingface.plugging import register

__all__ = ["Conversion", "DistillSettings", "Distillation", "LinearCache", "convert", "distill", "register"]
