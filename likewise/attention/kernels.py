"""Similarity kernels sim(q, k): the ground truth that every feature map equals or estimates."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from likewise.attention.transforms import allows_data_dependent_branching
from likewise.checks import require_count, require_number
from likewise.similarity import products, rounded_off, squared_distances


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

    def logits(
        self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"], hidden: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*B T S"]:
        """The logarithm of the similarity up to a constant of each row, which softmax takes away; -inf where hidden."""
        logs = self.log(q, k)
        return logs if hidden is None else logs.masked_fill(hidden, -torch.inf)


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
        if allows_data_dependent_branching(usual) and usual.all():
            return logs
        whole, rest = _log_products(self.split_queries(q), self.split_keys(k))
        return torch.where(usual, logs, whole + rest)

    def logits(
        self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"], hidden: Bool[Tensor, "..."] | None = None
    ) -> Float[Tensor, "*B T S"]:
        """Where features may leave the range of float32, in float64, and each row relative to its largest logarithm."""
        if 0 in (*q.shape, *k.shape) or (
            allows_data_dependent_branching(q) and max(x.abs().amax() for x in (q, k)) < 20
        ):
            return super().logits(q, k, hidden)
        whole, rest = _log_products(self.split_queries(q.double()), self.split_keys(k.double()))
        whole, rest = (x if hidden is None else x.masked_fill(hidden, -torch.inf) for x in (whole, rest))
        return (whole - whole.amax(dim=-1, keepdim=True)) + rest


def _log_products(queries: Any, keys: Any) -> tuple[Float[Tensor, "*B T S"], Float[Tensor, "*B T S"]]:
    """log sum_f phi(q)_f phi(k)_f in two numbers, T x S of them at a time: of -1e18 + 41 one would keep no 41."""

    def logs(feature: int) -> tuple[Tensor, Tensor]:
        left, right = _feature(queries.log, feature), _feature(keys.log, feature).mT
        total = left + right
        return total, rounded_off(left, right, total)

    whole, rest = (x.detach() for x in logs(0))
    for feature in range(1, queries.width):
        log, lost = logs(feature)
        ahead = (log > whole) | ((log == whole) & (lost > rest))
        whole, rest = torch.where(ahead, log.detach(), whole), torch.where(ahead, lost, rest)
    total = torch.zeros_like(whole)
    for feature in range(queries.width):
        log, lost = logs(feature)
        weights = ((log - whole) + (lost - rest)).exp()
        weights = weights if queries.value is None else weights * _feature(queries.value, feature)
        total = total + (weights if keys.value is None else weights * _feature(keys.value, feature).mT)
    return whole, total.log() + rest


def _feature(x: Float[Tensor, "*B n F"], feature: int) -> Float[Tensor, "*B n 1"]:
    """One feature of every row; of a factor that a row's features share, that one."""
    return x if x.shape[-1] == 1 else x[..., feature, None]
