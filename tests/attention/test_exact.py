"""The exact forms are brute force in values and gradients, and give the numbers worked out by hand."""

import math
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.attention import Exponential, Polynomial, argmax_attention, kernel_attention, softmax_attention
from likewise.similarity import ratio
from tests.attention import brute
from tests.attention.drawing import SMALL, Inputs, Sizes, assert_same, draw, seeded, structures, with_gradients
from tests.tolerance import assert_close

PRIMES = st.sampled_from([1, 2, 3, 5, 7, 11, 13])
SHAPES = st.builds(Sizes, *[st.sampled_from([1, 2, 3])] * 3, PRIMES, PRIMES, PRIMES, PRIMES)
DIRECTIONS = pytest.mark.parametrize("causal", [False, True], ids=["bidirectional", "causal"])


def worked_example() -> Inputs:
    """One query, four keys with scores 3, 11, 5, 2, and their values."""
    q = [[1.0, 1.0, 2.0]]
    k = [[1.0, 2.0, 0.0], [0.0, 3.0, 4.0], [5.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    v = [[2.0, 0.0, 1.0], [1.0, 4.0, 3.0], [0.0, -1.0, 4.0], [1.0, 0.0, -1.0]]
    q, k, v = (torch.tensor(x, dtype=torch.float64)[None, None] for x in (q, k, v))
    return q, k, v


def test_argmax_gives_the_worked_value() -> None:
    out = argmax_attention(*worked_example())
    assert torch.equal(out.flatten(), torch.tensor([1.0, 4.0, 3.0], dtype=torch.float64))


@pytest.mark.parametrize(
    ("scale", "rounded"), [(1.0, (0.99786, 3.98581, 3.00131)), (3**-0.5, (0.97952, 3.79162, 2.98989))]
)
def test_softmax_gives_the_worked_values(scale: float, rounded: tuple[float, ...]) -> None:
    weights = [math.exp(scale * score) for score in (3, 11, 5, 2)]
    columns = zip((2, 0, 1), (1, 4, 3), (0, -1, 4), (1, 0, -1), strict=True)
    expected = [sum(w * x for w, x in zip(weights, column, strict=True)) / sum(weights) for column in columns]
    assert tuple(round(x, 5) for x in expected) == rounded
    for out in (
        softmax_attention(*worked_example(), scale=scale),
        kernel_attention(*worked_example(), kernel=Exponential(scale)),
    ):
        assert_close(out.flatten(), torch.tensor(expected, dtype=torch.float64))


def test_the_default_scale_is_one_over_the_root_of_the_width() -> None:
    inputs = worked_example()
    assert_close(softmax_attention(*inputs), softmax_attention(*inputs, scale=3**-0.5))
    assert_close(kernel_attention(*inputs, kernel=Exponential()), softmax_attention(*inputs))


def test_the_quadratic_kernel_gives_the_worked_values() -> None:
    out = kernel_attention(*worked_example(), kernel=Polynomial(degree=2, constant=1.0))
    assert_close(out.flatten(), torch.tensor([185, 540, 583], dtype=torch.float64) / 205)


@pytest.mark.parametrize("name", brute.KERNELS)
@settings(max_examples=12)
@given(causal=st.booleans(), sizes=SHAPES, seed=st.integers(0, 2**32))
def test_kernel_attention_is_brute_force_for_any_shape(name: str, causal: bool, sizes: Sizes, seed: int) -> None:
    kernel, similarity = brute.KERNELS[name]
    inputs, structure = draw(sizes, seeded(seed), size=SMALL), {"causal": causal}
    # As for linear attention, rows of polynomials that sum to nearly 0 are left out.
    wild = brute.condition(similarity, *inputs[:2], structure, brute.frequencies(None, inputs[0])) > 20
    ours = with_gradients(lambda *x: kernel_attention(*x, kernel=kernel, causal=causal).masked_fill(wild, 0), *inputs)
    plain = with_gradients(lambda *x: brute.kernel(similarity, *x, structure).masked_fill(wild, 0), *inputs)
    assert_same(ours, plain)


@pytest.mark.parametrize("scale", [None, 0.3, 2.0])
@DIRECTIONS
@settings(max_examples=15)
@given(sizes=SHAPES, seed=st.integers(0, 2**32))
def test_softmax_is_the_exponential_kernel_and_brute_force(
    scale: float | None, causal: bool, sizes: Sizes, seed: int
) -> None:
    inputs = draw(sizes, seeded(seed))
    softmax = with_gradients(partial(softmax_attention, causal=causal, scale=scale), *inputs)
    kernel = with_gradients(partial(kernel_attention, causal=causal, kernel=Exponential(scale)), *inputs)
    plain = with_gradients(lambda *x: brute.kernel(brute.exponential(scale), *x, {"causal": causal}), *inputs)
    assert_same(softmax, plain)
    assert_same(kernel, plain)


@pytest.mark.parametrize("kind", structures(3))
@pytest.mark.parametrize("groups", [6, 3, 1])
def test_softmax_is_brute_force_under_every_structure(kind: str, groups: int) -> None:
    structure = structures(11)[kind]
    inputs = draw(Sizes(G=groups, repeats=6 // groups, T=11), seeded(groups))
    plain = with_gradients(lambda *x: brute.kernel(brute.exponential(None), *x, structure), *inputs)
    assert_same(with_gradients(partial(softmax_attention, **structure), *inputs), plain)
    assert_same(with_gradients(partial(kernel_attention, kernel=Exponential(), **structure), *inputs), plain)


@pytest.mark.parametrize("shape", [(2, 6, 7, 11), (1, 6, 7, 1), (2, 1, 1, 11), (1, 1, 7, 11), (1, 1, 1, 1)])
@pytest.mark.parametrize("groups", [6, 3])
@DIRECTIONS
def test_a_mask_of_pairs_may_broadcast(shape: tuple[int, ...], groups: int, causal: bool) -> None:
    inputs = draw(Sizes(G=groups, repeats=6 // groups), seeded(29))
    mask = torch.rand(shape, generator=seeded(31)) > 0.4
    structure = {"causal": causal, "mask": mask}
    plain = with_gradients(lambda *x: brute.kernel(brute.exponential(None), *x, structure), *inputs)
    assert_same(with_gradients(partial(softmax_attention, **structure), *inputs), plain)
    assert_same(with_gradients(partial(kernel_attention, kernel=Exponential(), **structure), *inputs), plain)


def test_causal_is_lower_right() -> None:
    q, k = torch.zeros(1, 1, 2, 1), torch.zeros(1, 1, 3, 1)
    v = torch.tensor([1.0, 10.0, 100.0]).view(1, 1, 3, 1)
    assert_close(softmax_attention(q, k, v, causal=True).flatten(), torch.tensor([5.5, 37.0]))
    assert_close(softmax_attention(k, q, v[:, :, 1:], causal=True).flatten(), torch.tensor([0.0, 10.0, 55.0]))


@pytest.mark.parametrize("dropout", [0.1, 0.5, 0.9])
@DIRECTIONS
def test_dropout_drops_its_share_and_keeps_the_mean(dropout: float, causal: bool) -> None:
    T = 307
    q, v = torch.zeros(1, 1, T, 3), torch.eye(T)[None, None]  # equal weights, and outputs that are the weights
    with torch.random.fork_rng():
        torch.manual_seed(37)
        out = softmax_attention(q, q, v, dropout=dropout, causal=causal)[0, 0]
    whole = softmax_attention(q, q, v, causal=causal)[0, 0]
    seen = whole > 0
    kept = out[seen] != 0
    deviation = math.sqrt(dropout * (1 - dropout) / kept.numel())
    assert abs(kept.double().mean().item() - (1 - dropout)) < 5 * deviation
    assert_close(out[seen][kept], whole[seen][kept] / (1 - dropout))
    assert (out[~seen] == 0).all()


def test_dropout_of_zero_drops_nothing() -> None:
    inputs = draw(Sizes(), seeded(41))
    assert torch.equal(softmax_attention(*inputs, dropout=0.0), softmax_attention(*inputs))


@pytest.mark.parametrize("kind", structures(3))
@pytest.mark.parametrize("groups", [6, 3, 1])
def test_argmax_picks_the_best_visible_key(kind: str, groups: int) -> None:
    structure = structures(11)[kind]
    q, k, v = draw(Sizes(G=groups, repeats=6 // groups, T=11), seeded(43))
    seen = brute.allowed(q, k, structure)
    out = argmax_attention(q, k, v, **structure)
    scores = brute.dots(q, k.repeat_interleave(6 // groups, dim=1))
    for b, h, i in torch.cartesian_prod(torch.arange(2), torch.arange(6), torch.arange(11)).tolist():
        visible = [j for j in range(11) if seen[b, h, i, j]]
        best = max(visible, key=lambda j: scores[b, h, i, j].item(), default=None)
        expected = torch.zeros(13).double() if best is None else v[b, h // (6 // groups), best]
        assert torch.equal(out[b, h, i], expected)


def test_ties_go_to_the_lowest_index() -> None:
    q, v = torch.ones(1, 1, 5, 1), torch.arange(7.0).view(1, 1, 7, 1)
    k = torch.tensor([0.0, 2.0, 1.0, 2.0, 2.0, 3.0, 3.0]).view(1, 1, 7, 1)
    assert argmax_attention(q, k, v, causal=True).flatten().tolist() == [1.0, 1.0, 1.0, 5.0, 5.0]
    assert argmax_attention(q, torch.zeros_like(k), v).flatten().tolist() == [0.0] * 5


@DIRECTIONS
def test_argmax_teaches_values_only(causal: bool) -> None:
    q, k, v = draw(Sizes(), seeded(47))
    _, grad_q, grad_k, grad_v = with_gradients(partial(argmax_attention, causal=causal), q, k, v)
    assert torch.equal(grad_q, torch.zeros_like(q))
    assert torch.equal(grad_k, torch.zeros_like(k))
    # The output is a matrix of zeros and ones times v: the gradient is its transpose times what comes in.
    choice = argmax_attention(q, k, torch.eye(11, dtype=torch.float64).expand(2, 3, 11, 11), causal=causal)
    expected = with_gradients(lambda v: choice @ v.repeat_interleave(2, dim=1), v)[1]
    assert_same([grad_v], [expected])


@pytest.mark.parametrize("learned", ["q", "k", "v", "qk", "qv", "kv"])
@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_argmax_never_refuses_a_backward(learned: str, dtype: torch.dtype) -> None:
    leaves = dict(zip("qkv", draw(Sizes(), seeded(53), dtype=dtype), strict=True))
    for name in learned:
        leaves[name].requires_grad_()
    argmax_attention(*leaves.values()).sum().backward()
    for name, x in leaves.items():
        grad = x.grad
        if name not in learned:
            assert grad is None
        else:
            assert grad is not None
            assert (grad != 0).any() == (name == "v")


def test_argmax_of_nothing_learned_needs_no_graph() -> None:
    assert not argmax_attention(*draw(Sizes(), seeded(59))).requires_grad


@DIRECTIONS
@pytest.mark.parametrize("T", [7, 11])
def test_double_backward_through_a_fused_kernel_raises(T: int, causal: bool) -> None:
    leaves = [x.requires_grad_() for x in draw(Sizes(T=T, K=13), seeded(61))]
    out = softmax_attention(*leaves, causal=causal)
    (grad,) = torch.autograd.grad(out.square().sum(), leaves[0], create_graph=True)
    with pytest.raises(RuntimeError, match=r"derivative for aten::.* is not implemented"):
        grad.sum().backward()


def test_a_ratio_over_zero_is_zero_with_gradient_zero() -> None:
    """Weights of both signs can cancel while their values do not."""
    numerator = torch.tensor([[3.0, -5.0], [3.0, -5.0]], requires_grad=True)
    denominator = torch.tensor([[0.0], [2.0]], requires_grad=True)
    out = ratio(numerator, denominator)
    assert out.tolist() == [[0.0, 0.0], [1.5, -2.5]]
    out.sum().backward()
    assert numerator.grad is not None
    assert denominator.grad is not None
    assert numerator.grad.tolist() == [[0.0, 0.0], [0.5, 0.5]]
    assert denominator.grad.tolist() == [[0.0], [0.5]]
