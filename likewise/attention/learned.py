"""Positive features, landmarks among the keys, that are fitted to data and learned from softmax attention."""

import hashlib
import math
from typing import Self

import torch
from jaxtyping import Float
from torch import Generator, Tensor, nn

from likewise.attention.features import FeatureMap, Scaled
from likewise.attention.frequencies import draw_frequencies
from likewise.attention.kernels import Exponential
from likewise.attention.masks import check_tensors
from likewise.checks import require, require_count

SPREAD = 8.0  # of the squared distance to the nearest landmark: shares fall off within an eighth of it ...
NARROWEST = 0.05  # ... but not faster, or no gradient would reach a key's other landmarks
FAINTEST = -25.0  # of the logarithms of shares: keys then seldom differ by `prefix.JUMP`, and a chunk needs one scale
FLATTEST = 1e-8  # variances of queries below it, in logits, count as this much
ROUNDS = 8  # of k-means


class Learned(FeatureMap):
    """Keys are shared among F landmarks, and queries weigh landmarks; it stands for exp(scale q.k), and is > 0.

        phi(q)_r = exp(w_r.q + b_r - c.q^2),    phi(k)_r = exp(s.k) max(e^-25, softmax_r(u_r.k + a_r))

    `fit` chooses landmarks l_r among the keys of data and takes the mean query m: w_r = scale l_r, b_r = -scale m.l_r,
    s = scale m. Then phi(q).phi(k) is exp(scale q.k), but that q - m meets the landmarks nearest to k instead of k. All
    of w, b, c, s, u and a are parameters: `likewise.huggingface.distill` learns them, and any loss on the output of
    linear attention can. kv_heads=G has landmarks for every key-value head.

    >>> k = torch.tensor([[[[1.0, 0.0], [0.9, 0.1], [0.0, 2.0]]]])
    >>> q = torch.tensor([[[[1.0, 1.0], [2.0, 0.0], [0.0, 1.0]]]])
    >>> phi = Learned(2, num_features=2, scale=1.0).fit(q, k, generator=torch.Generator().manual_seed(0))
    >>> phi.kernel(q, k)[0, 0, 0], (phi.queries(q) @ phi.keys(k).mT).detach()[0, 0, 0]
    (tensor([2.7183, 2.7183, 7.3891]), tensor([2.7640, 2.6734, 7.3891]))

    Paper: attention learned by attention transfer, Hedgehog, arXiv 2402.04347. Differs: landmarks instead of softmax on
    both sides, as in Transformer-VQ, arXiv 2309.16354, but with soft shares, so all of it is learned.
    """

    exact = False
    unbiased = False
    positive = True
    logarithmic = "features"

    def __init__(
        self,
        key_dim: int,
        *,
        num_features: int = 64,
        scale: float | None = None,
        kv_heads: int = 1,
        generator: Generator | None = None,
    ) -> None:
        kernel = Exponential(scale)
        super().__init__(kernel)
        for name, count in (("key_dim", key_dim), ("num_features", num_features), ("kv_heads", kv_heads)):
            require_count("Learned", name, count)
        right = generator is None or isinstance(generator, Generator)
        require(right, "Learned", "generator", "be a torch.Generator", repr(generator))
        self.key_dim, self.dim, self.kv_heads = key_dim, num_features, kv_heads
        drawn = draw_frequencies(kv_heads, num_features, key_dim, sampler="orthogonal", generator=generator)
        weights = (drawn * math.sqrt(kernel.scale_for(key_dim))).float()
        self.query_weights, self.key_weights = nn.Parameter(weights.clone()), nn.Parameter(weights)
        self.query_biases = nn.Parameter(torch.zeros(kv_heads, num_features))
        self.key_biases = nn.Parameter(-weights.square().sum(-1) / 2)
        self.query_curves = nn.Parameter(torch.zeros(kv_heads, key_dim))
        self.key_slopes = nn.Parameter(torch.zeros(kv_heads, key_dim))
        self._named: tuple[tuple[int, ...], str] | None = None

    @torch.inference_mode(False)  # a map fitted inside of it must still pass gradients
    @torch.no_grad()
    def fit(
        self,
        q: Float[Tensor, "B H T K"],
        k: Float[Tensor, "B G S K"],
        *,
        counts: Float[Tensor, "B G S"] | None = None,
        generator: Generator | None = None,
    ) -> Self:
        """Choose landmarks by k-means of the keys, and return the map.

        Distances are (scale (k - l).(q - m))^2, the mean over queries: errors of logits. counts: how much each key
        counts, for example the attention that it gets; all alike unless given. The queries that share a key-value head
        are one sample; with kv_heads=1 all heads are. generator: draws the first landmarks.
        """
        where = "Learned.fit"
        check_tensors(where, q, k, k)
        require(k.shape[3] == self.key_dim, where, "k", f"have width key_dim = {self.key_dim}", k.shape[3])
        require(self.kv_heads in (1, k.shape[1]), where, "k", f"have kv_heads = {self.kv_heads} heads", k.shape[1])
        require(k.shape[0] * k.shape[2] > 0, where, "k", "have at least one position", 0)
        kernel = self.kernel
        assert isinstance(kernel, Exponential)
        scale = kernel.scale_for(k.shape[3])
        queries, keys = self._by_head(q), self._by_head(k)
        if counts is None:
            counts = keys.new_ones(keys.shape[:2])
        else:
            require(counts.shape == k.shape[:3], where, "counts", f"have shape {tuple(k.shape[:3])}", counts.shape)
            require(bool((counts >= 0).all()), where, "counts", "be at least 0", counts.min().item())
            counts = self._by_head(counts[..., None].to(keys.dtype)).squeeze(-1)
        stretch, shrink = _roots(queries * scale)
        landmarks, distance = _k_means(keys @ stretch, counts, self.query_weights.shape[1], generator)
        sharpness = 1 / torch.clamp(distance / SPREAD, min=NARROWEST)[:, None]
        self.key_slopes.copy_(scale * queries.mean(dim=1))
        self.query_weights.copy_(scale * landmarks @ shrink)
        self.query_biases.copy_(-(landmarks @ shrink @ self.key_slopes[:, :, None]).squeeze(-1))
        self.query_curves.zero_()
        self.key_weights.copy_(sharpness[:, :, None] * landmarks @ stretch)
        self.key_biases.copy_(-sharpness / 2 * landmarks.square().sum(-1))
        return self

    def _by_head(self, x: Float[Tensor, "B H T X"]) -> Float[Tensor, "G N X"]:
        """All rows of each key-value head."""
        return x.detach().float().transpose(0, 1).unflatten(0, (self.kv_heads, -1)).flatten(1, 3)

    def split_queries(self, x: Float[Tensor, "*B T K"]) -> Scaled:
        logs = self._project(x, self.query_weights, self.query_biases)
        return Scaled(None, logs - self._project(x.square(), self.query_curves[:, None]))

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        shares = self._project(x, self.key_weights, self.key_biases).log_softmax(dim=-1)
        return Scaled(None, shares.clamp(min=FAINTEST) + self._project(x, self.key_slopes[:, None]))

    def _project(self, x: Tensor, weights: Tensor, biases: Tensor | None = None) -> Tensor:
        """Products with the weights (G, n, K) of each row's key-value head, and biases (G, n)."""
        weights = weights.to(x.dtype)
        biases = weights.new_zeros(1, 1) if biases is None else biases.to(x.dtype)
        if self.kv_heads == 1:
            return x @ weights[0].mT + biases[0]
        grouped = x.unflatten(-3, (self.kv_heads, -1))
        return (grouped @ weights[:, None].mT + biases[:, None, None]).flatten(-4, -3)

    @property
    def projection_id(self) -> str:
        # A step asks each time; weights are read again only after they changed.
        parts = [parameter.detach() for parameter in self.parameters()]
        version = tuple(number for part in parts for number in (part.data_ptr(), part._version))
        if self._named is None or self._named[0] != version:
            data = b"".join(part.cpu().contiguous().float().numpy().tobytes() for part in parts)
            self._named = version, hashlib.sha256(data).hexdigest()[:16]
        return f"{super().projection_id}-{self._named[1]}"

    def extra_repr(self) -> str:
        return f"{self.key_dim}, features={self.dim}, kv_heads={self.kv_heads}, {self.kernel}"


def _roots(x: Float[Tensor, "G N K"]) -> tuple[Float[Tensor, "G K K"], Float[Tensor, "G K K"]]:
    """The square root of the covariance of rows, and its inverse."""
    x = (x - x.mean(dim=1, keepdim=True)).double()
    values, axes = torch.linalg.eigh(x.mT @ x / x.shape[1])
    values = values.clamp(min=FLATTEST).sqrt()[:, None]
    return ((axes * values) @ axes.mT).float(), ((axes / values) @ axes.mT).float()


def _k_means(
    x: Float[Tensor, "G N K"], counts: Float[Tensor, "G N"], number: int, generator: Generator | None
) -> tuple[Float[Tensor, "G F K"], Float[Tensor, " G"]]:
    """Centres of rows that count so much, and the mean squared distance to the nearest; begun by k-means++."""
    heads = torch.arange(len(x))
    odds, nearest, chosen = counts, None, []
    for _ in range(number):
        odds = odds + 1e-30  # rows that all lie on centres are as good as each other
        chosen.append(x[heads, torch.multinomial(odds, 1, generator=generator)[:, 0]])
        distances = (x - chosen[-1][:, None]).square().sum(-1)
        nearest = distances if nearest is None else torch.minimum(nearest, distances)
        odds = counts * nearest
    centres = torch.stack(chosen, dim=1)
    for _ in range(ROUNDS):
        owner = (centres.square().sum(-1)[:, None] - 2 * x @ centres.mT).argmin(dim=-1)
        mass = torch.zeros_like(centres[..., 0]).scatter_add_(1, owner, counts)[..., None]
        moved = torch.zeros_like(centres).scatter_add_(
            1, owner[..., None].expand(-1, -1, x.shape[2]), x * counts[..., None]
        )
        centres = torch.where(mass > 0, moved / mass.clamp(min=1e-30), centres)
    nearest = torch.cdist(x, centres).square().amin(dim=-1)
    return centres, (counts * nearest).sum(1) / counts.sum(1).clamp(min=1e-30)
