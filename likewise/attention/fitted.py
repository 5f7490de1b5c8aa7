"""Positive random features that are fitted to data once, and then never look at it again."""

import math
from collections.abc import Mapping
from typing import Any, Self

import torch
from jaxtyping import Bool, Float
from torch import Generator, Tensor

from likewise.attention.features import Scaled
from likewise.attention.frequencies import Sampler
from likewise.attention.kernels import Exponential
from likewise.attention.masks import check_key_mask, check_tensors
from likewise.attention.random_features import RandomFeatures, of_exponentials
from likewise.checks import require, require_count
from likewise.similarity import squared_distances

CONSTANT = 1e-12  # of its mean square: a coordinate that varies less has no variance, only rounding


class Fitted(RandomFeatures):
    """Positive features whose variance is lowered by statistics of queries and keys: estimates exp(scale q.k), > 0.

    Of x = sqrt(scale) q and y = sqrt(scale) k the means are taken away and the coordinates balanced, x' = psi (x - mx)
    and y' = (y - my)/psi, which is exact: x.y = x'.y' + mx.(y - my) + (x - mx).my + mx.my. The last three terms are
    weights of keys and of queries, and a constant. For x'.y', with w ~ N(0, I) and a symmetric A <= 0,

        f(x') = F^(-1/2) D exp(w'Aw + w'Bx' - |x'|^2/2),    B = (I - 4A)^(1/2),    D = det(I - 4A)^(1/4).

    `fit` chooses means, psi and A, keeps them as buffers and folds them into the frequencies, so that a call costs what
    `Positive` costs. Before `fit` the map is that of `Positive`. kv_heads=G has statistics for every key-value head.

    >>> phi = Fitted(2, num_features=4096, scale=1.0, generator=torch.Generator().manual_seed(0))
    >>> q, k = torch.tensor([[[[2.5, 0.5], [1.5, 0.5]]]]), torch.tensor([[[[1.0, 0.0], [1.0, 1.0]]]])
    >>> phi.kernel(q, k)[0, 0, 0], (phi.queries(q) @ phi.keys(k).mT)[0, 0, 0]
    (tensor([12.1825, 20.0855]), tensor([ 9.0..., 10.3...]))
    >>> (phi.fit(q, k).queries(q) @ phi.keys(k).mT)[0, 0, 0]
    tensor([12.3..., 19.6...])

    Paper: FAVOR#, arXiv 2302.00787 (SDERF). Differs: centred and balanced first; w in the data's axes, not
    in those of A: the same law, free of the signs of eigenvectors.
    """

    positive = True
    logarithmic = "features"
    query_mean: Tensor
    key_mean: Tensor
    balance: Tensor
    widening: Tensor
    query_frequencies: Tensor
    key_frequencies: Tensor
    query_terms: Tensor
    key_terms: Tensor
    offsets: Tensor

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
        require_count("Fitted", "num_features", num_features)
        require_count("Fitted", "key_dim", key_dim)
        self.input_scale = math.sqrt(kernel.scale_for(key_dim))
        super().__init__(kernel, key_dim, num_features, kv_heads, sampler, generator)
        self.dim = num_features

    def _prepare(self) -> None:
        # Statistics are float64 and saved; what is folded from them and from the frequencies is not.
        heads, width = self.kv_heads, self.key_dim or 0
        zeros = torch.zeros(heads, width, dtype=torch.float64)
        self.register_buffer("query_mean", zeros)
        self.register_buffer("key_mean", zeros.clone())
        self.register_buffer("balance", torch.ones_like(zeros))  # psi
        self.register_buffer("widening", torch.eye(width, dtype=torch.float64).repeat(heads, 1, 1))  # B
        for name in ("query_frequencies", "key_frequencies", "query_terms", "key_terms", "offsets"):
            self.register_buffer(name, None, persistent=False)

    @torch.inference_mode(False)  # a map fitted inside of it must still pass gradients
    @torch.no_grad()
    def fit(
        self,
        q: Float[Tensor, "B H T K"],
        k: Float[Tensor, "B G S K"],
        *,
        mask: Bool[Tensor, "B S"] | None = None,
    ) -> Self:
        """Choose means, balance and A from queries and keys as `linear_attention` takes them, and return the map.

        A has the axes of M = E[x'x''] + E[y'y''] and, where M has the eigenvalue l, the eigenvalue
        a = (1 - 2l - sqrt((2l + 1)^2 + 8l))/16 <= 0, which minimises the mean of log E[f(x')^2 f(y')^2].

        The query heads of a key-value head are one sample; with kv_heads=1 all heads are. mask: False for padding,
        which is left out of the keys and, when T = S, of the queries. States made before cannot be continued.
        """
        where = "Fitted.fit"
        check_tensors(where, q, k, k)
        check_key_mask(where, mask, (k.shape[0], k.shape[2]), q.device)
        require(k.shape[3] == self.key_dim, where, "k", f"have width key_dim = {self.key_dim}", k.shape[3])
        heads = self.kv_heads in (1, k.shape[1])
        require(heads, where, "k", f"have kv_heads = {self.kv_heads} heads", k.shape[1])
        x, query_mean, query_squares = self._centred(where, "q", q, mask if q.shape[2] == k.shape[2] else None)
        y, key_mean, key_squares = self._centred(where, "k", k, mask)
        vary = (query_squares > 0) & (key_squares > 0)
        balance = torch.where(vary, key_squares / query_squares, 1.0) ** 0.25
        moment = _second_moment(x * balance[:, None]) + _second_moment(y / balance[:, None])
        widening = _widening(moment * self.input_scale**2)
        device = self.frequencies.device
        self.query_mean, self.key_mean = query_mean.to(device), key_mean.to(device)
        self.balance, self.widening = balance.to(device), widening.to(device)
        self._settle()
        return self

    def _centred(self, where: str, name: str, x: Tensor, seen: Tensor | None) -> tuple[Tensor, Tensor, Tensor]:
        """The rows that count, without their mean, (G, N, K); their means and mean squares, (G, K)."""
        rows = x.transpose(1, 2)
        rows = rows.flatten(0, 1) if seen is None else rows[seen]
        require(len(rows) > 0, where, name, "have at least one position that is not masked", 0)
        rows = rows.double().unflatten(1, (self.kv_heads, -1)).transpose(0, 1).flatten(1, 2)
        mean, size = rows.mean(dim=1), rows.square().mean(dim=1)
        require(bool(size.isfinite().all()), where, name, "have a finite mean square", "inf or nan")
        rows = rows - mean[:, None]
        squares = rows.square().mean(dim=1)
        return rows, mean, squares.masked_fill(squares <= CONSTANT * size, 0)

    def _made_of(self) -> tuple[Tensor, ...]:
        return (*super()._made_of(), self.query_mean, self.key_mean, self.balance, self.widening)

    def _settle(self) -> None:
        super()._settle()
        self._fold()

    def _load_from_state_dict(
        self,
        state_dict: Mapping[str, Any],
        prefix: str,
        local_metadata: dict[str, Any],
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        super()._load_from_state_dict(
            state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs
        )
        self._fold()

    def _fold(self) -> None:
        """Work the statistics into frequencies and into terms that are linear and quadratic in q - mean or k - mean."""
        scale, w = self.input_scale**2, self.frequencies.double()
        widened = w @ self.widening
        stretch = self.balance * self.input_scale
        squeeze = self.input_scale / self.balance
        self.query_frequencies, self.key_frequencies = widened * stretch[:, None], widened * squeeze[:, None]
        self.query_terms = torch.stack([self.query_mean, scale * self.key_mean, stretch.square() / 2])
        self.key_terms = torch.stack([self.key_mean, scale * self.query_mean, squeeze.square() / 2])
        # w'Aw = (|w|^2 - |Bw|^2)/4; queries and keys have half of every constant each.
        damping = (w.square().sum(-1) - widened.square().sum(-1)) / 4
        constant = torch.linalg.slogdet(self.widening).logabsdet - math.log(self.rows)
        constant = constant + scale * (self.query_mean * self.key_mean).sum(-1)
        self.offsets = damping + constant[:, None] / 2

    def split_queries(self, x: Float[Tensor, "*B T K"]) -> Scaled:
        return self._split(x, self.query_terms, self.query_frequencies)

    def split_keys(self, x: Float[Tensor, "*B S K"]) -> Scaled:
        return self._split(x, self.key_terms, self.key_frequencies)

    def _split(self, x: Tensor, terms: Tensor, frequencies: Tensor) -> Scaled:
        mean, slope, curve = self._per_head(terms, x)
        x = x - mean
        row = (x * (slope - curve * x)).sum(-1, keepdim=True)
        # In place: the product is as large as all features, and nothing else holds it.
        return Scaled(None, self.project(x, frequencies).add_(self._per_head(self.offsets, x)).add_(row))

    def _per_head(self, statistic: Float[Tensor, "*terms G X"], x: Float[Tensor, "*B T K"]) -> Tensor:
        """What every row of x has for its key-value head, in the dtype of x."""
        statistic = statistic.to(x.dtype)
        if self.kv_heads == 1:
            return statistic.squeeze(-2)
        return statistic.repeat_interleave(x.shape[-3] // self.kv_heads, dim=-2).unsqueeze(-2)

    def log_relative_variance(self, q: Float[Tensor, "*B T K"], k: Float[Tensor, "*B S K"]) -> Float[Tensor, "*B T S"]:
        # E[f(x')^2 f(y')^2] = exp(2 x'.y' + z'(I - 8A)^-1 z) det(I - 4A) / det(I - 8A)^(1/2) with z = x' + y'.
        widths, axes = torch.linalg.eigh(self.widening)
        wider, widest = widths.square(), 2 * widths.square() - 1  # the eigenvalues of I - 4A and I - 8A
        along = (axes * widest.rsqrt()[:, None]).mT * self.input_scale
        x, y = self.scaled(q, k, 1.0)
        x = self.project(x - self._per_head(self.query_mean, x), along * self.balance[:, None])
        y = self.project(y - self._per_head(self.key_mean, y), along / self.balance[:, None])
        excess = (wider.log() - widest.log() / 2).sum(-1, keepdim=True)
        return of_exponentials(squared_distances(x, -y) + self._per_head(excess, x), self.rows)


def _second_moment(x: Float[Tensor, "G N K"]) -> Float[Tensor, "G K K"]:
    return x.mT @ x / x.shape[1]


def _widening(moment: Float[Tensor, "G K K"]) -> Float[Tensor, "G K K"]:
    """B = (I - 4A)^(1/2) of the A that is best for rows x', y' with E[x'x''] + E[y'y''] = moment.

    >>> _widening(torch.eye(1, dtype=torch.float64)[None])  # a = (1 - 2 - sqrt(9 + 8))/16
    tensor([[[1.5102]]], dtype=torch.float64)
    """
    values, axes = torch.linalg.eigh(moment)
    values = values.clamp(min=0)  # they are, but for rounding
    a = (1 - 2 * values - ((2 * values + 1).square() + 8 * values).sqrt()) / 16
    return (axes * (1 - 4 * a).sqrt()[:, None]) @ axes.mT
