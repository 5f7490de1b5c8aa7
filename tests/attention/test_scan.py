"""The hand-written backward pass gives the plain loop's gradients, keeps little, and steps aside where it must."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise.attention import Elu, FeatureMap, Positive, Scaled, linear_attention, prefix
from likewise.attention.chunked import CausalOptions, GroupedQKV, attend_causally
from likewise.attention.linear import wants_scan
from likewise.attention.scan import scan
from tests.attention import brute
from tests.attention.drawing import seeded
from tests.tolerance import assert_close

B, H, G, T, K, V = 2, 6, 3, 37, 5, 7
EVERY_MAP = pytest.mark.parametrize("name", brute.MAPS)
MASKS = pytest.mark.parametrize("masked", [False, True])


def draw(size: float = 1.0, dtype: torch.dtype = torch.float64, length: int = T) -> list[Tensor]:
    shapes = ((B, H, length, K), (B, G, length, K), (B, G, length, V))
    drawn = [torch.randn(shape, dtype=torch.float64, generator=seeded(i)) for i, shape in enumerate(shapes)]
    drawn = [drawn[0] * size, drawn[1] * size, drawn[2]]
    return [x.to(dtype).requires_grad_() for x in drawn]


def mask_of(length: int) -> Tensor:
    mask = torch.rand(B, length, generator=seeded(5)) > 0.3
    mask[1, :9] = False
    return mask


def gradients(out: Tensor, inputs: list[Tensor]) -> list[Tensor]:
    weights = torch.randn(out.shape, dtype=torch.float64, generator=seeded(7)).to(out.dtype)
    return [out.detach(), *torch.autograd.grad(out, inputs, weights)]


def both(
    features: FeatureMap, inputs: list[Tensor], mask: Tensor | None, chunk: int
) -> tuple[list[Tensor], list[Tensor]]:
    """Output and gradients of the scan and of the plain loop."""
    problem = GroupedQKV.fold(features, inputs[0], inputs[1], inputs[2], mask)
    assert wants_scan(problem)
    form = CausalOptions.features(problem, chunk)
    ours = gradients(scan(problem, form), inputs)
    return ours, gradients(attend_causally(problem, None, form)[0], inputs)


def assert_gradients_agree(ours: list[Tensor], plain: list[Tensor], bound: float = 1e-9) -> None:
    for one, other in zip(ours, plain, strict=True):
        assert_close(one, other, atol=bound * other.abs().max().item())  # entries that cancel are judged by the largest


@EVERY_MAP
@MASKS
@pytest.mark.parametrize("chunk", [1, 8, 64])
def test_the_scan_has_the_gradients_of_the_plain_loop(name: str, masked: bool, chunk: int) -> None:
    features = brute.MAPS[name].make(K, G, seeded(3))
    assert_gradients_agree(*both(features, draw(0.5), mask_of(T) if masked else None, chunk))


@pytest.mark.parametrize("name", ["Elu", "Positive"])
def test_the_scan_agrees_over_many_pieces(name: str) -> None:
    features = brute.MAPS[name].make(K, G, seeded(3))
    assert_gradients_agree(*both(features, draw(0.5, length=601), mask_of(601), 64))


@pytest.mark.parametrize("name", brute.LOGARITHMIC)
def test_jumps_have_the_gradients_of_the_plain_loop(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    features = brute.MAPS[name].make(K, G, seeded(3))
    expected = both(features, draw(0.5), None, 8)[1]
    monkeypatch.setitem(prefix.JUMP, torch.float64, 0.1)
    assert_gradients_agree(both(features, draw(0.5), None, 8)[0], expected)


def test_extreme_logits_have_finite_gradients() -> None:
    features = Positive(K, num_features=16, generator=seeded(2))
    ours, _ = both(features, draw(6.0, torch.float32), None, 8)
    exact, _ = both(features, draw(6.0), None, 8)
    for one, other in zip(ours, exact, strict=True):
        assert_close(one, other.float(), atol=1e-3 * other.abs().max().item())  # logs of size 100 keep five digits


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_gradients_are_near(dtype: torch.dtype) -> None:
    inputs = draw(0.5, dtype)
    ours, _ = both(Elu(), inputs, None, 8)
    exact, _ = both(Elu(), [x.detach().double().requires_grad_() for x in inputs], None, 8)
    for one, other in zip(ours, exact, strict=True):
        assert_close(one, other, atol=2e-3 * other.square().mean().sqrt().item())  # the kept output is rounded too


@pytest.mark.slow
def test_the_scan_passes_gradcheck_twice() -> None:
    features = Positive(3, num_features=4, generator=seeded(2))
    inputs = [torch.randn(1, 2, 5, 3, dtype=torch.float64, generator=seeded(i)).requires_grad_() for i in range(3)]

    def attend(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(q, k, v, features=features, causal=True, chunk_size=2)

    assert torch.autograd.gradcheck(attend, inputs)
    assert torch.autograd.gradgradcheck(attend, inputs, fast_mode=True)


@pytest.mark.parametrize("wanted", [(True, False, False), (False, True, False), (False, False, True)])
def test_gradients_of_one_input_alone(wanted: tuple[bool, ...]) -> None:
    inputs = [x.detach().requires_grad_(one) for x, one in zip(draw(0.5), wanted, strict=True)]
    out = linear_attention(*inputs, features=Elu(), causal=True, chunk_size=8)
    alone = torch.autograd.grad(out.square().sum(), [x for x in inputs if x.requires_grad])
    every = draw(0.5)
    out = linear_attention(*every, features=Elu(), causal=True, chunk_size=8)
    expected = torch.autograd.grad(out.square().sum(), [x for x, one in zip(every, wanted, strict=True) if one])
    assert_gradients_agree(list(alone), list(expected))


def test_little_is_kept_for_the_backward_pass() -> None:
    length, width = 2048, 64
    q, k, v = (torch.randn(1, 2, length, width, generator=seeded(i)).requires_grad_() for i in range(3))
    kept: dict[int, int] = {}

    def pack(x: Tensor) -> Tensor:
        kept[x.data_ptr()] = x.nbytes
        return x

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda x: x):
        linear_attention(q, k, v, features=Positive(width, num_features=128, generator=seeded(4)), causal=True)
    inputs = 3 * q.nbytes
    assert sum(kept.values()) < 1.7 * inputs  # q, k, v, the output, and a prefix of 128 x 65 for every 256 positions


class Learned(FeatureMap):
    """exp(a x) with a learned a."""

    positive = True
    logarithmic = "features"

    def __init__(self) -> None:
        super().__init__()
        self.a = nn.Parameter(torch.tensor(0.7, dtype=torch.float64))

    def split_keys(self, x: Tensor) -> Scaled:
        return Scaled(None, self.a * x)


def test_a_learned_map_gets_its_gradient() -> None:
    features, (q, k, v) = Learned(), draw(0.5)
    assert not wants_scan(GroupedQKV.fold(features, q, k, v, None))
    linear_attention(q, k, v, features=features, causal=True, chunk_size=8).square().sum().backward()
    grad, step = features.a.grad, 1e-6
    assert grad is not None

    def total(a: float) -> float:
        with torch.no_grad():
            features.a.fill_(a)
            return linear_attention(q, k, v, features=features, causal=True, chunk_size=8).square().sum().item()

    assert abs((total(0.7 + step) - total(0.7 - step)) / (2 * step) - grad.item()) < 1e-6 * abs(grad.item()) + 1e-6


@pytest.mark.parametrize(
    "features", [Elu(), Positive(K, num_features=16, generator=seeded(2))], ids=["Elu", "Positive"]
)
def test_the_gradient_transform_agrees_with_autograd(features: FeatureMap) -> None:
    inputs = draw(0.5)

    def loss(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return linear_attention(q, k, v, features=features, causal=True, chunk_size=8).square().sum()

    expected = torch.autograd.grad(loss(*inputs), inputs)
    found: Any = torch.func.grad(loss, argnums=(0, 1, 2))(*(x.detach() for x in inputs))
    assert_gradients_agree(list(found), list(expected))
