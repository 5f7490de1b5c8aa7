"""Attention: q, k, v -> values. Exact, by features, causal, streaming: the same function, computed differently."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.attention", "torch")

from likewise.attention.cache import KeyValueCache
from likewise.attention.comparison import compare
from likewise.attention.diagnose import diagnose
from likewise.attention.exact import argmax_attention, kernel_attention, softmax_attention
from likewise.attention.features import Elu, FeatureMap, Monomials, Quadratic, Relu, Scaled, Taylor
from likewise.attention.fitted import Fitted
from likewise.attention.heads import Argmax, Attend, Kernel, Linear, MultiHeadAttention, Softmax
from likewise.attention.kernels import Exponential, Gaussian, Polynomial, SimilarityKernel
from likewise.attention.learned import Learned
from likewise.attention.linear import DenominatorWarning, linear_attention
from likewise.attention.masks import Structure
from likewise.attention.random_features import Fourier, Hyperbolic, Positive, SoftmaxFourier
from likewise.attention.state import LinearState
from likewise.attention.torch_heads import TorchMultiheadAttention

__all__ = [
    "Argmax",
    "Attend",
    "DenominatorWarning",
    "Elu",
    "Exponential",
    "FeatureMap",
    "Fitted",
    "Fourier",
    "Gaussian",
    "Hyperbolic",
    "Kernel",
    "KeyValueCache",
    "Learned",
    "Linear",
    "LinearState",
    "Monomials",
    "MultiHeadAttention",
    "Polynomial",
    "Positive",
    "Quadratic",
    "Relu",
    "Scaled",
    "SimilarityKernel",
    "Softmax",
    "SoftmaxFourier",
    "Structure",
    "Taylor",
    "TorchMultiheadAttention",
    "argmax_attention",
    "compare",
    "diagnose",
    "kernel_attention",
    "linear_attention",
    "softmax_attention",
]
