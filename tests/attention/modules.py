"""How the tests of heads make their modules: every form of attention, and parameters from a generator."""

from collections.abc import Callable

import torch
from torch import Tensor

from likewise.attention import Argmax, Gaussian, Kernel, Linear, MultiHeadAttention, Polynomial, Softmax
from likewise.attention.heads import Attend
from tests.attention.drawing import Drawn, seeded
from tests.attention.states import NAMES, SIZES, make

B, G, R, T, K, V = SIZES.B, SIZES.G, SIZES.repeats, SIZES.T, SIZES.K, SIZES.V
H = G * R
DIM = H * K  # of the model; the joined values are H * V wide

# Frequencies, where there are any, are shared by the heads: modules with different key-value heads then compare.
ATTENDS: dict[str, Callable[[], Attend]] = {
    "Softmax": Softmax,
    "Argmax": Argmax,
    "Gaussian": lambda: Kernel(Gaussian()),
    "Polynomial": lambda: Kernel(Polynomial()),
    **{name: lambda name=name: Linear(make(name, kv_heads=1)) for name in NAMES},
}


def build(
    attend: str = "Softmax", *, kv_heads: int = G, value_width: int = V, bias: bool = False
) -> MultiHeadAttention:
    """A module of SIZES in Drawn.dtype; its parameters are small, so that signed similarities stay well away from 0."""
    made = MultiHeadAttention(
        DIM, num_heads=H, num_kv_heads=kv_heads, value_dim=H * value_width, attend=ATTENDS[attend](), bias=bias
    )
    return drawn(made.to(Drawn.dtype))


def drawn(module: MultiHeadAttention, seed: int = 7) -> MultiHeadAttention:
    """The module with parameters of its own from a generator."""
    generator = seeded(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            normal = torch.randn(parameter.shape, dtype=torch.float64, generator=generator)
            parameter.copy_(normal / parameter.shape[-1] ** 0.5)
        module.w_q.weight.mul_(0.4)
        module.w_k.weight.mul_(0.4)
    return module


def tokens(length: int = T, *, seed: int = 0, batch: int = B, width: int = DIM) -> Tensor:
    """Inputs (B, T, D) in Drawn.dtype."""
    return torch.randn(batch, length, width, dtype=torch.float64, generator=seeded(seed)).to(Drawn.dtype)


def parameter_gradients(module: MultiHeadAttention, out: Tensor) -> list[Tensor]:
    """Of a fixed random combination of the outputs."""
    direction = torch.randn(out.shape, dtype=torch.float64, generator=seeded(99)).to(out.dtype)
    return list(torch.autograd.grad(out, list(module.parameters()), direction))


def by_head(module: MultiHeadAttention) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """W_q (H, K, D), W_k (G, K, D), W_v (G, V, D) and W_o (D, H, V)."""
    heads, groups = module.num_heads, module.num_kv_heads
    inward = [
        w.weight.unflatten(0, (count, -1))
        for w, count in ((module.w_q, heads), (module.w_k, groups), (module.w_v, groups))
    ]
    return inward[0], inward[1], inward[2], module.w_o.weight.unflatten(1, (heads, -1))
