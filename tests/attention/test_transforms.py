"""Operators in place reach no input, no output and no state; transforms, tangents and autocast are noticed."""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad, gradcheck, gradgradcheck

from likewise.attention import Elu, FeatureMap, LinearState, Positive, Scaled, kernel_attention, linear_attention
from likewise.attention.transforms import can_write
from tests.attention.drawing import SMALL, Inputs, Sizes, draw, seeded
from tests.attention.maps import ROWS
from tests.tolerance import assert_close

LONG = 1100  # two pieces, a chunk and a bit
EVERY_MAP = pytest.mark.parametrize("name", ROWS)
DTYPES = pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
# PyTorch's own, when forward-mode differentiation is first used.
TANGENTS = pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")


def long(dtype: torch.dtype = torch.float32) -> Inputs:
    return draw(Sizes(G=1, T=LONG, S=LONG), seeded(1), size=SMALL, dtype=dtype)


def positive(key_dim: int = 5) -> Positive:
    return Positive(key_dim, num_features=7, generator=seeded(2))


class Identity(FeatureMap):
    """Features that are the input itself, as value or as logarithm: whoever writes to them writes to q or k."""

    def __init__(self, *, logarithmic: bool) -> None:
        super().__init__()
        self.logarithmic = "features" if logarithmic else "no"

    def split_keys(self, x: Tensor) -> Scaled:
        return Scaled(x, None) if self.logarithmic == "no" else Scaled(None, x)


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(
    "features",
    [Identity(logarithmic=False), Identity(logarithmic=True), Elu(), positive()],
    ids=["value", "log", "Elu", "Positive"],
)
@pytest.mark.filterwarnings("ignore::likewise.attention.DenominatorWarning")
def test_inputs_are_not_written_to(features: FeatureMap, causal: bool) -> None:
    inputs = long()
    before = [x.clone() for x in inputs]
    linear_attention(*inputs, features=features, causal=causal)
    assert all(torch.equal(one, other) for one, other in zip(inputs, before, strict=True))


@pytest.mark.parametrize("features", [Elu(), positive()], ids=["Elu", "Positive"])
@pytest.mark.parametrize("length", [1, 70, LONG])
def test_a_state_that_was_continued_is_what_it_was(features: FeatureMap, length: int) -> None:
    q, k, v = (x[:, :, :length] for x in long())
    _, state = LinearState.empty(features, batch=2, kv_heads=1, value_dim=13).prefill(q, k, v)
    once, _ = state.prefill(q, k, v)
    state.prefill(-q, -k, -v)
    again, _ = state.prefill(q, k, v)
    assert torch.equal(once, again)


@TANGENTS
def test_what_is_recorded_or_transformed_is_never_written_over() -> None:
    x, leaf = torch.ones(3), torch.ones(3, requires_grad=True)
    seen: list[bool] = []

    def look(y: Tensor) -> Tensor:
        seen.append(can_write(y))
        return y.sum()

    torch.func.grad(look)(x)
    torch.func.vmap(look)(x[None])
    torch.func.jvp(look, (x,), (x,))
    with forward_ad.dual_level():
        look(forward_ad.make_dual(x, x))
    look(x.to("meta"))
    look(leaf)
    assert seen == [False] * 6
    with torch.no_grad():
        assert can_write(leaf)
    assert can_write(x)


@pytest.mark.parametrize("features", [Elu(), positive()], ids=["Elu", "Positive"])
@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("recorded", [False, True])
@TANGENTS
def test_tangents_are_those_of_finite_differences(features: FeatureMap, which: int, recorded: bool) -> None:
    inputs = draw(Sizes(G=1, T=150, S=150), seeded(5), size=SMALL)
    direction = torch.randn(inputs[which].shape, dtype=torch.float64, generator=seeded(6))

    def attend(x: Tensor) -> Tensor:
        changed = [x if number == which else other for number, other in enumerate(inputs)]
        return linear_attention(*changed, features=features, causal=True)

    step, here = 1e-6, inputs[which]
    expected = (attend(here + step * direction) - attend(here - step * direction)) / (2 * step)
    with forward_ad.dual_level():
        x = here.clone().requires_grad_(recorded)
        tangent = forward_ad.unpack_dual(attend(forward_ad.make_dual(x, direction))).tangent
    assert tangent is not None
    assert_close(tangent, expected, atol=1e-8)
    transformed = torch.func.jvp(attend, (here,), (direction,))[1]
    assert_close(transformed, tangent, atol=1e-11)


@pytest.mark.parametrize("features", [Elu(), positive()], ids=["Elu", "Positive"])
@pytest.mark.parametrize("causal", [False, True])
def test_autocast_does_not_touch_the_sums(features: FeatureMap, causal: bool) -> None:
    inputs = long()
    expected = linear_attention(*inputs, features=features, causal=causal)
    with torch.autocast("cpu", torch.bfloat16):
        assert torch.equal(linear_attention(*inputs, features=features, causal=causal), expected)


@pytest.mark.parametrize("features", [Elu(), positive()], ids=["Elu", "Positive"])
@pytest.mark.parametrize("exact_within", [None, 40])
def test_autocast_does_not_touch_the_gradients_of_a_causal_scan(features: FeatureMap, exact_within: int | None) -> None:
    inputs = [x.requires_grad_() for x in long()]

    def gradients() -> tuple[Tensor, ...]:
        out = linear_attention(*inputs, features=features, causal=True, exact_within=exact_within)
        return torch.autograd.grad(out.square().sum(), inputs)

    expected = gradients()
    with torch.autocast("cpu", torch.bfloat16):
        found = gradients()
    for one, other in zip(found, expected, strict=True):
        assert_close(one, other, atol=1e-5)


def states(features: FeatureMap, path: Path, *, lag: int, exact_within: int | None) -> list[LinearState]:
    """What can become of a state."""
    q, k, v = long()
    sizes = {"batch": q.shape[0], "kv_heads": k.shape[1], "value_dim": v.shape[3]}
    empty = LinearState.empty(features, **sizes, lag=lag, exact_within=exact_within)
    first = empty.prefill(q, k, v)[1]
    first.save(path)
    return [first, first.rollback(lag), first.merge(first), LinearState.load(path, features)]


@pytest.mark.parametrize("features", [Elu(), positive()], ids=["Elu", "Positive"])
@pytest.mark.parametrize(("lag", "exact_within"), [(0, 40), (8, None), (8, 40)])
def test_autocast_does_not_touch_a_state(
    tmp_path: Path, features: FeatureMap, lag: int, exact_within: int | None
) -> None:
    expected = states(features, tmp_path / "state", lag=lag, exact_within=exact_within)
    with torch.autocast("cpu", torch.bfloat16):
        found = states(features, tmp_path / "state", lag=lag, exact_within=exact_within)
        for one, other in zip(found, expected, strict=True):
            outputs = [state.step(*(x[:, :, :1] for x in long()))[0] for state in (one, other)]
            assert torch.equal(*outputs)


def test_the_derivative_of_elu_is_its_own_and_1_at_0() -> None:
    x = torch.tensor([-30.0, -2.0, -1e-3, 0.0, 1e-3, 2.0], dtype=torch.float64, requires_grad=True)
    (slope,) = torch.autograd.grad(Elu().keys(x[None]).sum(), x)
    assert_close(slope, x.detach().clamp(max=0).exp())
    smooth = torch.tensor([[-2.0, -0.1, 0.1, 2.0]], dtype=torch.float64, requires_grad=True)
    assert gradcheck(Elu().keys, smooth)
    assert gradgradcheck(Elu().keys, smooth)


class Squared(Elu):
    def split_keys(self, x: Tensor) -> Scaled:
        value, log = super().split_keys(x)
        assert value is not None
        return Scaled(value.square(), log)


@pytest.mark.parametrize("causal", [True, False])
def test_a_map_made_from_another_is_asked_itself(causal: bool) -> None:
    q, k, v = (x.double() for x in torch.randn(3, 1, 2, 70, 4, generator=seeded(2)))
    features = Squared()
    assert_close(
        linear_attention(q, k, v, features=features, causal=causal),
        kernel_attention(q, k, v, kernel=features.kernel, causal=causal),
    )
