"""Similarity kernels sim(q, k): the ground truth that every feature map equals or estimates."""

import functools
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.attention.transforms import can_look
from likewise.checks import require_count, require_number
from likewise.similarity import products, squared_distances


class SimilarityKernel(ABC):
    """A function of two vectors, applied to all pairs of rows: `kernel(q, k)` is (..., T, S).

    `positive` says that every similarity is > 0; such a kernel also has `log(q, k)`, which does not overflow.
    """

    positive: ClassVar[bool] = False

    @abstractmethod
    def __call__(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        """The similarity of every row of q with every row of k."""

    def log(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        """The logarithm of the similarity, for positive kernels."""
        raise NotImplementedError(f"{type(self).__name__} is not positive everywhere, so it has no logarithm")

    def logits(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        """The logarithm of the similarity up to a constant of each row, which softmax takes away."""
        return self.log(q, k)


@dataclass(frozen=True)
class Exponential(SimilarityKernel):
    """exp(scale q.k), the kernel of softmax attention; scale is 1/sqrt(K) unless given.

    >>> Exponential(scale=1.0).log(torch.tensor([[1.0, 1.0, 2.0]]), torch.tensor([[1.0, 2.0, 0.0], [0.0, 3.0, 4.0]]))
    tensor([[ 3., 11.]])
    """

    scale: float | None = None
    positive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.scale is not None:
            require_number("Exponential", "scale", self.scale)

    def scale_for(self, key_dim: int) -> float:
        """The factor in front of q.k for keys of this width."""
        return 1 / math.sqrt(max(key_dim, 1)) if self.scale is None else self.scale

    def __call__(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        return self.log(q, k).exp()

    def log(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        return products(q * self.scale_for(q.shape[-1]), k)


@dataclass(frozen=True)
class Gaussian(SimilarityKernel):
    """exp(-|q - k|^2 / (2 variance)); variance is sqrt(K) unless given: softmax's kernel without the norms.

    >>> Gaussian(variance=2.0).log(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0], [1.0, 2.0]]))
    tensor([[-2., -0.]])

    ```claim softmax-is-gaussian-times-norms
    given: q, k in R^K
    gauss = exp(-sqnorm(q - k)/(2*sqrt(K)))
    factor(x) = exp(sqnorm(x)/(2*sqrt(K)))
    assert: exp(dot(q, k)/sqrt(K)) == gauss*factor(q)*factor(k)
    ```
    """

    variance: float | None = None
    positive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.variance is not None:
            require_number("Gaussian", "variance", self.variance)

    def variance_for(self, key_dim: int) -> float:
        """The squared width of the bell for keys of this width."""
        return math.sqrt(max(key_dim, 1)) if self.variance is None else self.variance

    def __call__(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        return self.log(q, k).exp()

    def log(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        return squared_distances(q, k) / (-2 * self.variance_for(q.shape[-1]))


@dataclass(frozen=True)
class Polynomial(SimilarityKernel):
    """(q.k + constant)^degree. It can be 0, and for odd degrees negative, so it has no logarithm.

    >>> Polynomial(degree=2, constant=1.0)(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0], [1.0, -1.0]]))
    tensor([[9., 1.]])
    """

    degree: int = 2
    constant: float = 1.0

    def __post_init__(self) -> None:
        require_count("Polynomial", "degree", self.degree)
        # A negative constant gives a kernel that is no inner product of features.
        require_number("Polynomial", "constant", self.constant, least=0)

    def __call__(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        return (products(q, k) + self.constant) ** self.degree


@dataclass(frozen=True)
class Truncated(SimilarityKernel):
    """1 + s + s^2/2 with s = scale q.k: the exponential's Taylor series cut after the second order; at least 1/2.

    >>> Truncated(scale=1.0)(torch.tensor([[1.0, 1.0]]), torch.tensor([[1.0, 1.0], [1.0, -2.0]]))
    tensor([[5.0000, 0.5000]])
    """

    scale: float | None = None
    positive: ClassVar[bool] = True

    def __post_init__(self) -> None:
        if self.scale is not None:
            require_number("Truncated", "scale", self.scale)

    def __call__(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        s = Exponential(self.scale).log(q, k)
        return (1 + (1 + s).square()) / 2  # = 1 + s + s^2/2, as a sum of squares: positive however it is rounded

    def log(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        s = Exponential(self.scale).log(q, k)
        return 2 * torch.hypot(torch.ones_like(s), 1 + s).log() - math.log(2)


@dataclass(frozen=True)
class Induced(SimilarityKernel):
    """phi(q).phi(k): the kernel of a feature map that has no older name for it (Elu, Relu)."""

    queries: Callable[[Tensor], Tensor]
    keys: Callable[[Tensor], Tensor]

    def __call__(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        return products(self.queries(q), self.keys(k))


@dataclass(frozen=True)
class PositiveInduced(SimilarityKernel):
    """phi(q).phi(k) of positive features given with logarithms (Elu): `log` neither underflows nor overflows."""

    queries: Callable[[Tensor], Tensor]
    keys: Callable[[Tensor], Tensor]
    split_queries: Callable[[Tensor], Any]  # of FeatureMap: features as value and logarithm
    split_keys: Callable[[Tensor], Any]
    positive: ClassVar[bool] = True

    def __call__(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        return products(self.queries(q), self.keys(k))

    def log(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        pairs = self(q, k)
        usual = (pairs > 1e-20) & (pairs < 1e20)  # the others may have lost terms: sum their logarithms instead
        logs = pairs.masked_fill(~usual, 1).log()
        if can_look(usual) and usual.all():
            return logs
        return torch.where(usual, logs, _log_products(self.split_queries(q).logs(), self.split_keys(k).logs()))

    def logits(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        """Where features may leave the range of float32, in float64, and each row relative to its largest feature."""
        if can_look(q) and max(x.abs().amax() for x in (q, k)) < 20:
            return self.log(q, k)
        log_q, log_k = self.split_queries(q.double()).logs(), self.split_keys(k.double()).logs()
        log_q = log_q - log_q.detach().amax(dim=-1, keepdim=True)
        log_k = log_k - log_k.detach().amax(dim=(-2, -1), keepdim=True)
        return _log_products(log_q, log_k)


def _log_products(log_q: Float[Tensor, "*B T F"], log_k: Float[Tensor, "*B S F"]) -> Float[Tensor, "*B T S"]:
    """log sum_f exp(log_q + log_k), T x S numbers at a time."""
    pairs = [log_q[..., :, None, feature] + log_k[..., None, :, feature] for feature in range(log_q.shape[-1])]
    largest = functools.reduce(torch.maximum, (each.detach() for each in pairs))
    return functools.reduce(torch.add, ((each - largest).exp() for each in pairs)).log() + largest
