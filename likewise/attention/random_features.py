"""Random feature maps: phi(q).phi(k) estimates the Gaussian or the softmax kernel without bias."""

import hashlib
import math
from abc import abstractmethod

import torch
from jaxtyping import Float
from torch import Generator, Tensor

from likewise.attention.features import FeatureMap, Scaled
from likewise.attention.frequencies import SAMPLERS, Sampler, draw_frequencies
from likewise.attention.kernels import Exponential, Gaussian
from likewise.checks import require, require_choice, require_count
from likewise.similarity import squared_distances, wide


class RandomFeatures(FeatureMap):
    """What the random maps share: frequencies w, drawn once, kept in `state_dict`, redrawn on request only.

    kv_heads: 1 shares the frequencies between all heads; otherwise each key-value head has its own.
    sampler: "gaussian" (independent rows), "orthogonal" (blocks of K perpendicular rows, lower variance) or "simplex"
    (blocks of K rows that point away from each other, lower still for the positive maps).
    """

    exact = False
    frequencies: Tensor
    digest: Tensor
    deviation: float = 1.0  # of every coordinate of a frequency

    def __init__(
        self,
        kernel: Exponential | Gaussian,
        key_dim: int,
        rows: int,
        kv_heads: int,
        sampler: Sampler,
        generator: Generator | None,
    ) -> None:
        super().__init__(kernel)
        require_count(type(self).__name__, "key_dim", key_dim)
        require_count(type(self).__name__, "kv_heads", kv_heads)
        require_choice(type(self).__name__, "sampler", sampler, SAMPLERS)
        self.key_dim, self.rows, self.kv_heads, self.sampler = key_dim, rows, kv_heads, sampler
        self.register_buffer("frequencies", torch.zeros(kv_heads, rows, key_dim))
        self.register_buffer("digest", torch.zeros((), dtype=torch.int64))
        self._prepare()
        self._draw(generator)

    def redraw(self, generator: Generator | None = None) -> None:
        """Draw new frequencies, on request only, and only in training mode: states made before cannot be continued."""
        rule = "be in training mode to redraw its frequencies"
        require(self.training, type(self).__name__, "the map", rule, "eval mode", "Call .train() first.")
        self._draw(generator)

    def _draw(self, generator: Generator | None) -> None:
        right = generator is None or isinstance(generator, Generator)
        require(right, type(self).__name__, "generator", "be a torch.Generator", repr(generator))
        drawn = draw_frequencies(self.kv_heads, self.rows, self.key_dim or 0, sampler=self.sampler, generator=generator)
        # float32 whatever the module's dtype: what is saved and loaded again is what was drawn.
        self.frequencies = (drawn * self.deviation).float().to(self.frequencies)
        self._settle()

    def _prepare(self) -> None:
        """Make the buffers of a subclass, which a draw may need."""

    def _made_of(self) -> tuple[Tensor, ...]:
        """What tells two maps of one class and one kernel apart."""
        return (self.frequencies.float(),)

    def _settle(self) -> None:
        """Bring what follows from the frequencies, here the digest, up to date with them."""
        parts = b"".join(part.cpu().numpy().tobytes() for part in self._made_of())
        digest = int.from_bytes(hashlib.sha256(parts).digest()[:8], "big", signed=True)
        self.digest = torch.tensor(digest).to(self.digest)

    @property
    def projection_id(self) -> str:
        return f"{super().projection_id}-{int(self.digest.item()) & (2**64 - 1):016x}"

    @abstractmethod
    def log_relative_variance(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        """log(Var[phi(q).phi(k)] / kernel(q, k)^2) over the draw of independent rows (sampler "gaussian").

        The other samplers vary less. It is -inf where the estimate is exact, and does not overflow.
        """

    def scaled(self, q: Tensor, k: Tensor, factor: float) -> tuple[Tensor, Tensor]:
        """Queries and keys in the units of the theory, where w ~ N(0, I), wide enough to sum."""
        self.check_width(q)
        self.check_width(k)
        return q.to(wide(q.dtype)) * factor, k.to(wide(k.dtype)) * factor

    def project(self, x: Float[Tensor, "*B T K"], frequencies: Tensor | None = None) -> Float[Tensor, "*B T R"]:
        """w_r . x for every frequency; query heads use the frequencies of their key-value head."""
        frequencies = (self.frequencies if frequencies is None else frequencies).to(x.dtype)
        x = x.contiguous()  # how the product rounds must not depend on where x came from
        if self.kv_heads == 1:
            return torch.mm(x.flatten(0, -2), frequencies[0].mT).unflatten(0, x.shape[:-1])
        grouped = x.unflatten(-3, (self.kv_heads, -1))
        return (grouped @ frequencies[:, None].mT).flatten(-4, -3)

    def extra_repr(self) -> str:
        return f"{self.key_dim}, rows={self.rows}, kv_heads={self.kv_heads}, sampler={self.sampler!r}, {self.kernel}"


class Fourier(RandomFeatures):
    """phi(x) = R^(-1/2) [cos(w_r.x), sin(w_r.x)] with w ~ N(0, I/variance): estimates exp(-|q - k|^2/(2 variance)).

    The Gaussian of variance s^2 is the characteristic function of N(0, I/s^2), not of N(0, s^2 I). For softmax's own
    variance sqrt(K) the frequencies are therefore N(0, I/sqrt(K)).

    >>> phi = Fourier(2, num_frequencies=4096, variance=4.0, generator=torch.Generator().manual_seed(0))
    >>> q, k = torch.tensor([[2.0, 0.0]]), torch.tensor([[0.0, 0.0]])
    >>> phi.kernel(q, k).item(), (phi.queries(q) @ phi.keys(k).mT).item()  # exp(-1/2), not exp(-8)
    (0.6065..., 0.59...)

    Paper: Random Features for Large-Scale Kernel Machines (Rahimi, Recht 2007). Differs: sin/cos pairs instead of
    cos(w.x + b), which has the larger variance.

    ```claim fourier
    given: q, k in R^K; s in R; w ~ N(0, I(K)/s^2)
    assume: s > 0
    phi(x) = [cos(dot(w, x)), sin(dot(w, x))]
    assert: E[dot(phi(q), phi(k))] == exp(-sqnorm(q - k)/(2*s^2))
    ```
    """

    def __init__(
        self,
        key_dim: int,
        *,
        num_frequencies: int = 128,
        variance: float | None = None,
        kv_heads: int = 1,
        sampler: Sampler = "orthogonal",
        generator: Generator | None = None,
    ) -> None:
        kernel = Gaussian(variance)
        require_count("Fourier", "num_frequencies", num_frequencies)
        require_count("Fourier", "key_dim", key_dim)
        self.deviation = 1 / math.sqrt(kernel.variance_for(key_dim))
        super().__init__(kernel, key_dim, num_frequencies, kv_heads, sampler, generator)
        self.dim = 2 * num_frequencies

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        return Scaled(_waves(self.project(x)), None)

    def log_relative_variance(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        return of_pairs(squared_distances(*self.scaled(q, k, self.deviation)), self.rows)


class SoftmaxFourier(RandomFeatures):
    """psi(x) = exp(|x|^2/2) R^(-1/2) [cos(w_r.x), sin(w_r.x)] of x = sqrt(scale) q: estimates exp(scale q.k).

    w ~ N(0, I). The norm factor stays a logarithm beside each row, so it cannot overflow. Similarities can be negative,
    and so can denominators: prefer `Positive` or `Hyperbolic` for softmax.

    >>> phi = SoftmaxFourier(2, num_frequencies=4096, scale=1.0, generator=torch.Generator().manual_seed(0))
    >>> q, k = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    >>> phi.kernel(q, k).item(), (phi.queries(q) @ phi.keys(k).mT).item()
    (1.6487..., 1.6...)

    Paper: Random Feature Attention, arXiv 2103.02143. Differs: it prints w ~ N(0, s^2 I); the law is N(0, I/s^2).

    ```claim softmax-fourier
    given: q, k in R^K; w ~ N(0, I(K))
    phi(x) = exp(sqnorm(x)/2)*[cos(dot(w, x)), sin(dot(w, x))]
    assert: E[dot(phi(q), phi(k))] == exp(dot(q, k))
    ```
    """

    logarithmic = "rows"

    def __init__(
        self,
        key_dim: int,
        *,
        num_frequencies: int = 128,
        scale: float | None = None,
        kv_heads: int = 1,
        sampler: Sampler = "orthogonal",
        generator: Generator | None = None,
    ) -> None:
        kernel = Exponential(scale)
        require_count("SoftmaxFourier", "num_frequencies", num_frequencies)
        super().__init__(kernel, key_dim, num_frequencies, kv_heads, sampler, generator)
        self.dim = 2 * num_frequencies
        self.input_scale = math.sqrt(kernel.scale_for(key_dim))

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        x = x * self.input_scale
        return Scaled(_waves(self.project(x)), _half_square(x))

    def log_relative_variance(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        return of_pairs(squared_distances(*self.scaled(q, k, self.input_scale)), self.rows)


class Positive(RandomFeatures):
    """phi(x) = F^(-1/2) exp(w_r.x - |x|^2/2) of x = sqrt(scale) q, w ~ N(0, I): estimates exp(scale q.k), always > 0.

    >>> phi = Positive(2, num_features=4096, scale=1.0, generator=torch.Generator().manual_seed(0))
    >>> q, k = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    >>> phi.kernel(q, k).item(), (phi.queries(q) @ phi.keys(k).mT).item()
    (1.6487..., 1.6...)

    Paper: Rethinking Attention with Performers (FAVOR+), arXiv 2009.14794, lemma 1. Differs: no stabiliser and no
    epsilon in the map; linear attention works on the logarithms.

    ```claim positive
    given: q, k in R^K; w ~ N(0, I(K))
    phi(x) = exp(dot(w, x) - sqnorm(x)/2)
    assert: E[phi(q)*phi(k)] == exp(dot(q, k))
    ```

    ```claim positive-variance
    given: q, k in R^K; w ~ N(0, I(K))
    phi(x) = exp(dot(w, x) - sqnorm(x)/2)
    assert: Var[phi(q)*phi(k)] == exp(2*dot(q, k))*(exp(sqnorm(q + k)) - 1)
    ```
    """

    positive = True
    logarithmic = "features"

    def __init__(
        self,
        key_dim: int,
        *,
        num_features: int = 256,
        scale: float | None = None,
        kv_heads: int = 1,
        sampler: Sampler = "orthogonal",
        generator: Generator | None = None,
    ) -> None:
        kernel = Exponential(scale)
        require_count("Positive", "num_features", num_features)
        super().__init__(kernel, key_dim, num_features, kv_heads, sampler, generator)
        self.dim = num_features
        self.input_scale = math.sqrt(kernel.scale_for(key_dim))

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        x = x * self.input_scale
        # In place: the product is as large as all features, and nothing else holds it.
        return Scaled(None, self.project(x).sub_(_half_square(x) + math.log(self.rows) / 2))

    def log_relative_variance(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        x, y = self.scaled(q, k, self.input_scale)
        return of_exponentials(squared_distances(x, -y), self.rows)


class Hyperbolic(RandomFeatures):
    """phi(x) = F^(-1/2) [exp(w_r.x - |x|^2/2), exp(-w_r.x - |x|^2/2)], F/2 frequencies: estimates exp(scale q.k), > 0.

    Its variance is below that of `Positive` at the same width, whatever the data.

    >>> phi = Hyperbolic(2, num_features=4096, scale=1.0, generator=torch.Generator().manual_seed(0))
    >>> q, k = torch.tensor([[0.5, 0.5]]), torch.tensor([[1.0, 0.0]])
    >>> phi.kernel(q, k).item(), (phi.queries(q) @ phi.keys(k).mT).item()
    (1.6487..., 1.6...)

    Paper: FAVOR+, arXiv 2009.14794, the hyperbolic cosine form of lemma 1.

    ```claim hyperbolic
    given: q, k in R^K; w ~ N(0, I(K))
    phi(x) = [exp(dot(w, x) - sqnorm(x)/2), exp(-dot(w, x) - sqnorm(x)/2)]
    assert: E[dot(phi(q), phi(k))]/2 == exp(dot(q, k))
    ```
    """

    positive = True
    logarithmic = "features"

    def __init__(
        self,
        key_dim: int,
        *,
        num_features: int = 256,
        scale: float | None = None,
        kv_heads: int = 1,
        sampler: Sampler = "orthogonal",
        generator: Generator | None = None,
    ) -> None:
        kernel = Exponential(scale)
        require_count("Hyperbolic", "num_features", num_features, least=2)
        require(num_features % 2 == 0, "Hyperbolic", "num_features", "be even", num_features)
        super().__init__(kernel, key_dim, num_features // 2, kv_heads, sampler, generator)
        self.dim = num_features
        self.input_scale = math.sqrt(kernel.scale_for(key_dim))

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        x = x * self.input_scale
        projected, offset = self.project(x), _half_square(x) + math.log(2 * self.rows) / 2
        return Scaled(None, torch.cat([projected - offset, -projected - offset], dim=-1))

    def log_relative_variance(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        x, y = self.scaled(q, k, self.input_scale)
        return of_pairs(squared_distances(x, -y), self.rows)


def _waves(projected: Float[Tensor, "*B T R"]) -> Float[Tensor, "*B T F"]:
    """R^(-1/2) [cos, sin]."""
    return torch.cat([projected.cos(), projected.sin()], dim=-1) / math.sqrt(projected.shape[-1])


def _half_square(x: Float[Tensor, "*B T K"]) -> Float[Tensor, "*B T 1"]:
    """|x|^2 / 2 of every row."""
    return x.square().sum(-1, keepdim=True) / 2


def of_exponentials(t: Tensor, rows: int) -> Tensor:
    """log((e^t - 1) / rows): the relative variance of a mean of exponentials with E[f^2] / E[f]^2 = e^t.

    For exp(w.z) with w ~ N(0, I), z = x + y, t is |z|^2.
    """
    return t + (-torch.expm1(-t)).log() - math.log(rows)


def of_pairs(t: Tensor, rows: int) -> Tensor:
    """log(e^t (1 - e^-t)^2 / (2 rows)): the relative variance of a mean of cos(w.u) or of cosh(w.z).

    t is |u|^2 or |z|^2, with u = x - y and z = x + y; both by cos^2 = (1 + cos 2)/2.
    """
    return t + 2 * (-torch.expm1(-t)).log() - math.log(2 * rows)
