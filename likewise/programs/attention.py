"""Attention as the coursework writes it: plain programs whose costs claims speak of.

Letters: N positions, D the width of q and k, M of v, R random directions; for one step of decoding b sequences, n
positions in the cache, h heads with queries and keys of width k and values of width v, d the width of the model. torch
is imported by what runs, not by who lists.
"""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from likewise.claims.registry import program, register, register_counter

if TYPE_CHECKING:
    from torch import Tensor


def softmax(q: "Tensor", k: "Tensor", v: "Tensor") -> "Tensor":
    """softmax(q k' / sqrt(D)) v, with all N x N weights."""
    return (q @ k.T / q.shape[-1] ** 0.5).softmax(dim=-1) @ v


def softmax_online(q: "Tensor", k: "Tensor", v: "Tensor") -> "Tensor":
    """The same, one key at a time: the sums are kept relative to the largest logit so far.

    Paper: Online normalizer calculation for softmax, arXiv 1805.02867, algorithm 3.
    """
    largest = q.new_full((len(q),), -float("inf"))
    total = q.new_zeros(len(q))
    out = q.new_zeros(len(q), v.shape[1])
    for key, value in zip(k, v, strict=True):
        logits = q @ key / q.shape[-1] ** 0.5
        larger = largest.maximum(logits)
        shrink = (largest - larger).exp()
        weights = (logits - larger).exp()
        total = total * shrink + weights
        out = out * shrink[:, None] + weights[:, None] * value
        largest = larger
    return out / total[:, None]


def causal_softmax(q: "Tensor", k: "Tensor", v: "Tensor") -> "Tensor":
    """softmax(q k' / sqrt(D)) v where position i sees positions 1 to i: all N x N weights, later ones masked."""
    later = q.new_ones(len(q), len(k)).triu(diagonal=1)
    scores = q @ k.T / q.shape[-1] ** 0.5
    return scores.masked_fill(later == 1, -float("inf")).softmax(dim=-1) @ v


def causal_softmax_streamed(q: "Tensor", k: "Tensor", v: "Tensor") -> "Tensor":
    """The same, one query at a time, with the weights of the positions that it sees."""
    import torch

    rows = []
    for position, query in enumerate(q, start=1):
        weights = (k[:position] @ query / q.shape[-1] ** 0.5).softmax(dim=0)
        rows.append(weights @ v[:position])
    return torch.stack(rows)


def kernel(q: "Tensor", k: "Tensor", v: "Tensor") -> "Tensor":
    """Attention with sim(q, k) = (q.k + 1)^2, with all N x N similarities."""
    similarities = (q @ k.T + 1) ** 2
    return similarities @ v / similarities.sum(dim=-1, keepdim=True)


def kernel_streamed(q: "Tensor", k: "Tensor", v: "Tensor") -> "Tensor":
    """The same, one key at a time."""
    total = q.new_zeros(len(q))
    out = q.new_zeros(len(q), v.shape[1])
    for key, value in zip(k, v, strict=True):
        similarities = (q @ key + 1) ** 2
        total = total + similarities
        out = out + similarities[:, None] * value
    return out / total[:, None]


def products(x: "Tensor") -> "Tensor":
    """vec(x x'), whose products are (x.y)^2; D^2 wide."""
    return (x[..., :, None] * x[..., None, :]).flatten(-2)


def quadratic_map(x: "Tensor") -> "Tensor":
    """[1, sqrt(2) x, vec(x x')], whose products are (x.y + 1)^2; 1 + D + D^2 wide."""
    import torch

    return torch.cat([x.new_ones(*x.shape[:-1], 1), 2**0.5 * x, products(x)], dim=-1)


def quadratic_map_short(x: "Tensor") -> "Tensor":
    """[1, sqrt(2) x, x * x], which lacks the products of different coordinates; 1 + 2 D wide."""
    import torch

    return torch.cat([x.new_ones(*x.shape[:-1], 1), 2**0.5 * x, x * x], dim=-1)


def quadratic(q: "Tensor", k: "Tensor", v: "Tensor") -> "Tensor":
    """What `kernel` computes, through features: phi(q) (phi(k)' v) over phi(q) sum phi(k)."""
    return from_features(quadratic_map(q), quadratic_map(k), v)


def quadratic_streamed(q: "Tensor", k: "Tensor", v: "Tensor") -> "Tensor":
    """The same, with the features of one position at a time."""
    width = 1 + q.shape[1] + q.shape[1] ** 2
    return streamed((quadratic_map(row) for row in q), (quadratic_map(row) for row in k), v, width)


def random_map(x: "Tensor", w: "Tensor") -> "Tensor":
    """[sin(W x), cos(W x)], 2 R wide; their products are sums of cos(w.(x - y))."""
    import torch

    angles = x @ w.T
    return torch.cat([angles.sin(), angles.cos()], dim=-1)


def softmax_map(x: "Tensor", w: "Tensor") -> "Tensor":
    """psi(x) = exp(|x|^2 / (2 sqrt(D))) phi(x), with phi = [sin(W x), cos(W x)] / sqrt(R).

    The mean of psi(q).psi(k) is exp(q.k / sqrt(D)) for rows of W from N(0, I / sqrt(D)).
    """
    norms = (x * x).sum(dim=-1, keepdim=True)
    return random_map(x, w) * ((norms / (2 * x.shape[-1] ** 0.5)).exp() / len(w) ** 0.5)


def random_features(q: "Tensor", k: "Tensor", v: "Tensor", w: "Tensor") -> "Tensor":
    """Softmax attention through random Fourier features."""
    return from_features(softmax_map(q, w), softmax_map(k, w), v)


def random_features_streamed(q: "Tensor", k: "Tensor", v: "Tensor", w: "Tensor") -> "Tensor":
    """The same, with the features of one position at a time."""
    return streamed((softmax_map(row, w) for row in q), (softmax_map(row, w) for row in k), v, 2 * len(w))


def causal(q: "Tensor", k: "Tensor", v: "Tensor", w: "Tensor") -> "Tensor":
    """A position sees itself and what came before: prefix sums of phi(k)' v and of phi(k), all N of them kept."""
    fq, fk = softmax_map(q, w), softmax_map(k, w)
    states = (fk[:, :, None] * v[:, None, :]).cumsum(dim=0)
    normals = fk.cumsum(dim=0)
    return (fq[:, None, :] @ states)[:, 0] / (fq * normals).sum(dim=-1, keepdim=True)


def causal_streamed(q: "Tensor", k: "Tensor", v: "Tensor", w: "Tensor") -> "Tensor":
    """The same, with one state that grows from position to position."""
    import torch

    state = v.new_zeros(2 * len(w), v.shape[1])
    normal = v.new_zeros(2 * len(w))
    rows = []
    for query, key, value in zip(q, k, v, strict=True):
        fq, fk = softmax_map(query, w), softmax_map(key, w)
        state = state + fk[:, None] * value
        normal = normal + fk
        rows.append(read_state(fq, state, normal))
    return torch.stack(rows)


def from_features(fq: "Tensor", fk: "Tensor", v: "Tensor") -> "Tensor":
    """fq (fk' v) over fq sum(fk), with the features of all positions."""
    return fq @ (fk.T @ v) / (fq @ fk.sum(dim=0))[:, None]


def streamed(queries: Iterable["Tensor"], keys: Iterable["Tensor"], v: "Tensor", width: int) -> "Tensor":
    """The same from features that come one at a time."""
    import torch

    state = v.new_zeros(width, v.shape[1])
    normal = v.new_zeros(width)
    for fk, value in zip(keys, v, strict=True):
        state = state + fk[:, None] * value
        normal = normal + fk
    return torch.stack([read_state(fq, state, normal) for fq in queries])


def read_state(fq: "Tensor", state: "Tensor", normal: "Tensor") -> "Tensor":
    """One query: phi(q) S / (phi(q) . Z)."""
    return fq @ state / (fq @ normal)


def project(x: "Tensor", w: "Tensor") -> "Tensor":
    """x W', the projection on the random directions alone."""
    return x @ w.T


def scale_features(features: "Tensor", factor: "Tensor") -> "Tensor":
    """The features of one vector times its norm factor."""
    return features * factor


def draw_directions(like: "Tensor") -> "Tensor":
    """R draws of w in R^D."""
    return like.new_empty(like.shape).normal_()


def mha_step(
    x: "Tensor", keys: "Tensor", values: "Tensor", wq: "Tensor", wk: "Tensor", wv: "Tensor", wo: "Tensor"
) -> tuple["Tensor", "Tensor", "Tensor"]:
    """One token, every head with keys and values of its own: the output, and the key and value for the cache.

    Paper: Fast Transformer Decoding, arXiv 1911.02150, section 2.4. Differs: logits are divided by sqrt(k), which the
    paper leaves to the projections; the token sees the n cached positions, and putting its own key and value there is
    left to who owns the cache.
    """
    import torch

    q = torch.einsum("bd,hdk->bhk", x, wq)
    key = torch.einsum("bd,hdk->bhk", x, wk)
    value = torch.einsum("bd,hdv->bhv", x, wv)
    weights = (torch.einsum("bhk,bhnk->bhn", q, keys) / q.shape[-1] ** 0.5).softmax(dim=-1)
    out = torch.einsum("bhn,bhnv->bhv", weights, values)
    return torch.einsum("bhv,hdv->bd", out, wo), key, value


def mqa_step(
    x: "Tensor", keys: "Tensor", values: "Tensor", wq: "Tensor", wk: "Tensor", wv: "Tensor", wo: "Tensor"
) -> tuple["Tensor", "Tensor", "Tensor"]:
    """One token, all heads with the same keys and values: the output, and the key and value for the cache.

    Paper: Fast Transformer Decoding, arXiv 1911.02150, section 3. Differs: as `mha_step` does.
    """
    import torch

    q = torch.einsum("bd,hdk->bhk", x, wq)
    key = torch.einsum("bd,dk->bk", x, wk)
    value = torch.einsum("bd,dv->bv", x, wv)
    weights = (torch.einsum("bhk,bnk->bhn", q, keys) / q.shape[-1] ** 0.5).softmax(dim=-1)
    out = torch.einsum("bhn,bnv->bhv", weights, values)
    return torch.einsum("bhv,hdv->bd", out, wo), key, value


def empty(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    """Tensors of these shapes and nothing in them: no memory is taken."""
    import torch

    return tuple(torch.empty(shape, device="meta") for shape in shapes)


def _qkv(N: int, D: int, M: int) -> tuple[Any, ...]:
    return empty((N, D), (N, D), (N, M))


def _qkvw(N: int, D: int, M: int, R: int) -> tuple[Any, ...]:
    return empty((N, D), (N, D), (N, M), (R, D))


def _mha_step(b: int, n: int, h: int, k: int, v: int, d: int) -> tuple[Any, ...]:
    return empty((b, d), (b, h, n, k), (b, h, n, v), (h, d, k), (h, d, k), (h, d, v), (h, d, v))


def _mqa_step(b: int, n: int, h: int, k: int, v: int, d: int) -> tuple[Any, ...]:
    return empty((b, d), (b, n, k), (b, n, v), (h, d, k), (d, k), (d, v), (h, d, v))


def _width(name: str) -> Callable[[int], int]:
    """How wide the result of a map is, found by running it."""

    def count(D: int) -> int:
        function, *inputs = program(name).make()(N=1, D=D)
        return function(*inputs).shape[-1]

    return count


def _random_features(R: int) -> int:
    function, *inputs = program("attention.random_map").make()(N=1, D=1, R=R)
    return function(*inputs).shape[-1]


def _quadratic_features(D: int) -> int:
    """Of our own map, which has every product of two coordinates once."""
    import torch

    from likewise.attention import Quadratic

    return Quadratic(D).queries(torch.zeros(1, 1, 1, D)).shape[-1]


def _cache(name: str) -> Callable[..., int]:
    """Elements of the keys and values that a step reads."""

    def count(b: int, n: int, h: int, k: int, v: int) -> int:
        _, _, keys, values, *_ = program(name).make()(b=b, n=n, h=h, k=k, v=v, d=h * k)
        return keys.numel() + values.numel()

    return count


def register_attention() -> None:
    """Give the programs of this file, and counts of their parts, names that claims can use."""
    register("attention.softmax", softmax, _qkv, {"streamed": softmax_online})
    register("attention.softmax_online", softmax_online, _qkv, {"streamed": softmax_online})
    register("attention.causal_softmax", causal_softmax, _qkv, {"streamed": causal_softmax_streamed})
    register("attention.kernel", kernel, _qkv, {"streamed": kernel_streamed})
    register("attention.quadratic", quadratic, _qkv, {"streamed": quadratic_streamed})
    register("attention.random_features", random_features, _qkvw, {"streamed": random_features_streamed})
    register("attention.causal", causal, _qkvw, {"streamed": causal_streamed})
    register("attention.mha_step", mha_step, _mha_step)
    register("attention.mqa_step", mqa_step, _mqa_step)

    # Parts of these, of which claims speak alone.
    register("attention.project", project, lambda N, D, R: empty((N, D), (R, D)))
    register("attention.random_map", random_map, lambda N, D, R: empty((N, D), (R, D)))
    register("attention.softmax_map", softmax_map, lambda N, D, R: empty((N, D), (R, D)))
    register("attention.scale_features", scale_features, lambda R: empty((2 * R,), ()))
    register("attention.draw_directions", draw_directions, lambda D, R: empty((R, D)))
    register("attention.read_state", read_state, lambda M, R: empty((2 * R,), (2 * R, M), (2 * R,)))
    register("attention.products", products, lambda N, D: empty((N, D)))
    register("attention.quadratic_map", quadratic_map, lambda N, D: empty((N, D)))
    register("attention.quadratic_map_short", quadratic_map_short, lambda N, D: empty((N, D)))

    register_counter("attention.quadratic_features", _quadratic_features)
    register_counter("attention.product_features", _width("attention.products"))
    register_counter("attention.ordered_quadratic_features", _width("attention.quadratic_map"))
    register_counter("attention.short_quadratic_features", _width("attention.quadratic_map_short"))
    register_counter("attention.fourier_features", _random_features)
    register_counter("attention.mha_cache", _cache("attention.mha_step"))
    register_counter("attention.mqa_cache", _cache("attention.mqa_step"))
