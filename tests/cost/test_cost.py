"""Counts are exact, need no values, change nothing, and an operation nobody knows stops them."""

import gc
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from likewise.attention import (
    Argmax,
    Attend,
    Elu,
    Gaussian,
    Kernel,
    Linear,
    MultiHeadAttention,
    Positive,
    Quadratic,
    Softmax,
)
from likewise.cost import Cost, Uncounted, cost

N, D, M = 7, 3, 5


def empty(*shapes: tuple[int, ...]) -> list[Tensor]:
    return [torch.empty(shape, device="meta") for shape in shapes]


# A program, the shapes of its inputs, and (macs, elementwise, traffic) by hand.
BY_HAND: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]], tuple[int, int, int]]] = {
    "product": (lambda x, y: x @ y, [(2, 3), (3, 5)], (30, 0, 6 + 15 + 10)),
    "batched product": (lambda x, y: x @ y, [(7, 2, 3), (7, 3, 5)], (210, 0, 42 + 105 + 70)),
    "matrix and vector": (lambda x, y: x @ y, [(2, 3), (3,)], (6, 0, 6 + 3 + 2)),
    "dot product": (lambda x, y: x @ y, [(3,), (3,)], (3, 0, 3 + 3 + 1)),
    "linear with bias": (functional.linear, [(2, 3), (5, 3), (5,)], (30, 10, 6 + 15 + 5 + 10)),
    "product with addend": (torch.addmm, [(2, 5), (2, 3), (3, 5)], (30, 10, 10 + 6 + 15 + 10)),
    "outer product": (torch.outer, [(2,), (3,)], (0, 6, 2 + 3 + 6)),
    "convolution": (functional.conv2d, [(1, 2, 5, 5), (3, 2, 3, 3)], (27 * 2 * 9, 0, 50 + 54 + 27)),
    "convolution with bias": (functional.conv2d, [(1, 2, 5, 5), (3, 2, 3, 3), (3,)], (486, 27, 50 + 54 + 3 + 27)),
    "grouped convolution": (
        lambda x, w: functional.conv2d(x, w, groups=2),
        [(1, 2, 5, 5), (4, 1, 3, 3)],
        (36 * 9, 0, 50 + 36 + 36),
    ),
    "transposed convolution": (functional.conv_transpose2d, [(1, 2, 5, 5), (2, 3, 3, 3)], (50 * 27, 0, 50 + 54 + 147)),
    "sum": (lambda x: x.sum(0), [(2, 3)], (0, 3, 6 + 3)),
    "largest and where": (lambda x: x.max(dim=0), [(2, 3)], (0, 6, 6 + 6)),
    "addition in place": (lambda x, y: x.add_(y), [(2, 3), (3,)], (0, 6, 6 + 3 + 6)),
    "assignment": (lambda x, y: x[:, 1].copy_(y), [(7, 3), (7,)], (0, 7, 7 + 7)),
    "softmax": (lambda x: x.softmax(-1), [(2, 3)], (0, 6, 12)),
    "joining": (lambda x, y: torch.cat([x, y]), [(2,), (3,)], (0, 5, 10)),
    "square": (lambda x: x * x, [(6,)], (0, 6, 12)),
    "expanded": (lambda x: x.expand(5, 6) * 2, [(6,)], (0, 30, 6 + 30)),
    "views": (lambda x: x.T[1:, None].unflatten(0, (1, 2)).squeeze(), [(2, 3)], (0, 0, 0)),
    "views in place": (lambda x: x.detach().unsqueeze_(0).squeeze_(0), [(2, 3)], (0, 0, 0)),
    "no results": (lambda x: torch.empty_like(x), [(2, 3)], (0, 0, 0)),
    "filling": (lambda x: x.new_zeros(4, 5), [(2, 3)], (0, 20, 20)),
    "drawing": (lambda x: torch.randn_like(x), [(2, 3)], (0, 6, 6)),
    "constants of a program": (lambda x: x + torch.arange(3), [(2, 3)], (0, 3 + 6, 3 + 6 + 3 + 6)),
}


@pytest.mark.parametrize("name", BY_HAND)
def test_counts_are_those_by_hand(name: str) -> None:
    program, shapes, expected = BY_HAND[name]
    found = cost(program, *empty(*shapes))
    assert (found.macs, found.elementwise, found.traffic) == expected
    assert found.flops == 2 * found.macs
    assert found.copies == 0


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        (lambda x, i: x[i], 30 + 5 + 30),
        (lambda x, i: functional.embedding(i, x), 30 + 5 + 30),
        (lambda x, i: x.index_select(0, i), 30 + 5 + 30),
        (lambda x, i: x.gather(0, i[:, None]), 5 + 5 + 5),
        (lambda x, i: x.index_put_((i,), x.new_empty(6)), 5 + 6 + 30),
        (lambda x, i: x.index_add_(0, i, x.new_empty(5, 6)), 30 + 5 + 30 + 30),
        (lambda x, i: x.scatter_(0, i[:, None], 0.0), 5 + 5),
    ],
)
def test_choosing_reads_and_writes_only_what_is_chosen(program: Callable[..., Any], expected: int) -> None:
    table, chosen = torch.empty(1000, 6, device="meta"), torch.empty(5, dtype=torch.int64, device="meta")
    assert cost(program, table, chosen).traffic == expected


def test_layout_copies_stand_apart() -> None:
    found = cost(lambda x: x.T.contiguous() + 1, *empty((2, 3)))
    assert (found.copies, found.elementwise, found.traffic) == (12, 6, 24)
    to_double = cost(lambda x: x.double(), *empty((2, 3)))
    assert (to_double.copies, to_double.elementwise, to_double.traffic) == (0, 6, 12)


def test_fused_traffic_leaves_out_what_is_made_and_used_up_inside() -> None:
    found = cost(lambda x, y: ((x + y).exp() * 2).sum(), *empty((2, 3), (3,)))
    assert (found.traffic, found.fused_traffic) == (6 + 3 + 6 + 12 + 12 + 6 + 1, 6 + 3 + 1)
    two_results = cost(lambda x: (x.exp(), x.exp().sin()), *empty((4,)))
    assert (two_results.traffic, two_results.fused_traffic) == (24, 4 + 4 + 4 + 4)


def softmax(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return (q @ k.T).softmax(-1) @ v


def test_the_peak_is_what_is_alive_at_once() -> None:
    found = cost(softmax, *empty((N, D), (N, D), (N, M)))
    inputs = 2 * N * D + N * M
    assert [operation.live for operation in found.operations] == [
        inputs + N * N,
        inputs + 2 * N * N,
        inputs + N * N + N * M,
    ]
    assert found.peak == inputs + 2 * N * N
    assert cost(lambda x: x.T, *empty((2, 3))).peak == 6
    assert {operation.place.partition(":")[0] for operation in found.operations} == {"test_cost.py"}


def test_a_loop_reuses_its_memory_though_gradients_are_prepared() -> None:
    def doubled(x: Tensor, times: int) -> Tensor:
        for _ in range(times):
            x = x.sin()
        return x

    first, second = (cost(doubled, torch.empty(100), times) for times in (3, 50))
    assert first.peak == second.peak == 300
    assert (first.saved, second.saved) == (300, 5000)


def test_saved_is_each_storage_once() -> None:
    assert cost(softmax, *empty((N, D), (N, D), (N, M))).saved == 2 * N * D + N * M + N * N
    assert cost(lambda x: (x * x) + x.T.T * x, *empty((2, 3))).saved == 6
    assert cost(lambda x: x + 1, *empty((2, 3))).saved == 0


def test_saved_is_for_what_requires_gradients() -> None:
    x, y = torch.empty(2, 3), torch.empty(3, 5)
    assert cost(torch.matmul, x, y).saved == 6 + 15
    assert cost(torch.matmul, x.requires_grad_(), y).saved == 15
    layer = nn.Linear(3, 5)
    assert cost(layer, torch.empty(2, 3)).saved == 6
    assert cost(layer.requires_grad_(False), torch.empty(2, 3)).saved == 15


def test_a_module_is_counted_and_left_as_it_was() -> None:
    model = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    before = {name: value.clone() for name, value in model.state_dict().items()}
    found = cost(model, torch.empty(2, 3, 6, 6))
    assert (found.params, found.macs) == (4 * 27 + 4 + 8 + 144 * 2 + 2, 2 * 4 * 36 * 27 + 2 * 144 * 2)
    assert found.peak > found.params
    for name, value in model.state_dict().items():
        assert value.device.type == "cpu"
        assert torch.equal(value, before[name])
    assert all(parameter.grad is None and parameter.is_leaf for parameter in model.parameters())


def test_shared_weights_count_once() -> None:
    first, second = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
    second.weight = first.weight
    found = cost(nn.Sequential(first, second), torch.empty(2, 3))
    assert (found.params, found.macs, found.peak, found.saved) == (9, 36, 9 + 6 + 6 + 6, 6 + 6 + 9)
    assert second.weight is first.weight


def test_a_module_is_itself_again_after_a_failure() -> None:
    layer = nn.Linear(3, 3)
    with pytest.raises(RuntimeError):
        cost(layer, torch.empty(2, 4))
    assert layer.weight.device.type == "cpu"


@pytest.mark.parametrize("device", ["cpu", "meta"])
def test_values_and_places_of_tensors_do_not_matter(device: str) -> None:
    weight = torch.empty(5, 3, device=device)
    inside = torch.tensor([1.0, 2.0, 3.0])
    x = torch.empty(2, 3).requires_grad_()
    found = cost(lambda x: functional.linear(x, weight.view(5, 3)) * 2 + (inside * x).sum(), x)
    assert found == cost(lambda x, w, c: functional.linear(x, w) * 2 + (c * x).sum(), x, *empty((5, 3), (3,)))


def test_a_number_that_the_program_was_given_may_be_read() -> None:
    scale = torch.tensor(2.0)
    assert cost(lambda x: x * scale.item(), torch.empty(3)).elementwise == 3


def test_nothing_is_allocated() -> None:
    size = 10**13  # 40 terabytes
    found = cost(lambda x: torch.zeros(size) + torch.arange(size, device="cpu"), torch.empty(1))
    assert (found.elementwise, found.peak) == (3 * size, 3 * size + 1)


def test_inputs_may_be_nested_and_written_to() -> None:
    def program(pair: dict[str, list[Tensor]], times: int) -> Tensor:
        pair["x"][0].mul_(times)
        return pair["x"][0]

    found = cost(program, {"x": [torch.ones(2, 3)]}, 2)
    assert (found.elementwise, found.traffic, found.fused_traffic, found.peak) == (6, 12, 12, 6)


def test_the_user_s_inputs_stay() -> None:
    x = torch.ones(2, 3)
    cost(lambda x: x.zero_(), x)
    assert x.sum() == 6


def test_counts_do_not_depend_on_settings() -> None:
    x = torch.empty(2, 7, 16)
    layer = nn.TransformerEncoderLayer(16, 4, batch_first=True, dropout=0.0).eval()
    found = cost(layer, x)
    with torch.no_grad():
        assert cost(layer, x) == found
    deterministic = torch.are_deterministic_algorithms_enabled()
    torch.use_deterministic_algorithms(not deterministic)
    try:
        assert cost(layer, x) == found
    finally:
        torch.use_deterministic_algorithms(deterministic)
    assert gc.isenabled()
    # projections 4*16*16 and a feed-forward of 2*16*2048 for each of 14, and 2*7*16 for each pair of attention
    assert found.macs == 14 * (4 * 256 + 2 * 16 * 2048) + 2 * 7 * 7 * 16 * 2


def test_a_frozen_layer_takes_no_shortcut() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, batch_first=True).eval()
    model, tokens = nn.Sequential(nn.Embedding(5, 16), layer).eval(), torch.zeros(2, 7, dtype=torch.int64)
    macs = cost(model, tokens).macs
    assert cost(model.requires_grad_(False), tokens).macs == macs > 0


@pytest.mark.full
def test_the_first_count_of_a_process_is_like_the_second() -> None:
    code = """
import torch
from likewise.cost import cost
def features(x):
    angles = x @ x
    return torch.cat([angles.sin(), angles.cos()], -1)
def program(x):
    return features(x).T @ x
first, second = (cost(program, torch.empty(3, 3)) for _ in range(2))
assert first == second
assert [o.live for o in first.operations] == [o.live for o in second.operations]
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_settings_come_back_when_a_program_fails() -> None:
    with pytest.raises(ZeroDivisionError):
        cost(lambda x: 1 // 0, torch.empty(1))
    assert torch.backends.opt_einsum.enabled or not torch.backends.opt_einsum.is_available()
    assert gc.isenabled()


def test_a_backward_pass_inside_costs_twice_the_products() -> None:
    with torch.device("meta"):
        model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(64, 2))
        x = torch.empty(5, 3, 6, 6)
    forward = cost(model, x)

    def step(x: Tensor) -> tuple[Tensor, ...]:
        return torch.autograd.grad(model(x).sum(), [*model.parameters(), x])

    assert cost(step, x.requires_grad_()).macs == 3 * forward.macs


@pytest.mark.parametrize(
    "operation",
    [
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
    ],
)
def test_fused_attention_counts_as_its_parts_do(operation: str) -> None:
    q, k, v = empty((2, 3, 7, 8), (2, 3, 11, 8), (2, 3, 11, 8))
    fused = {
        "_scaled_dot_product_flash_attention": torch.ops.aten._scaled_dot_product_flash_attention,
        "_scaled_dot_product_efficient_attention": lambda q, k, v: (
            torch.ops.aten._scaled_dot_product_efficient_attention(q, k, v, None, False)
        ),
        "_scaled_dot_product_flash_attention_for_cpu": torch.ops.aten._scaled_dot_product_flash_attention_for_cpu,
    }[operation]
    found = cost(fused, q, k, v)
    assert any(operation in done.name for done in found.operations)
    assert (found.macs, found.elementwise) == (2 * 3 * 7 * 11 * 16, 2 * 3 * 7 * 11)


def test_attention_of_torch_counts_as_the_plain_one() -> None:
    q, k, v = empty((2, 3, 7, 8), (2, 3, 11, 8), (2, 3, 11, 13))
    assert cost(functional.scaled_dot_product_attention, q, k, v).macs == 2 * 3 * 7 * 11 * (8 + 13)


@pytest.mark.parametrize(
    "attend",
    [
        Softmax(),
        Argmax(),
        Kernel(Gaussian()),
        Linear(Elu()),
        Linear(Quadratic(4)),
        Linear(Positive(4, num_features=6, generator=torch.Generator().manual_seed(0))),
    ],
    ids=lambda attend: str(type(attend)),
)
def test_our_own_attention_can_be_counted(attend: Attend) -> None:
    layer = MultiHeadAttention(8, num_heads=2, attend=attend)
    x = torch.empty(3, 5, 8)
    found = cost(lambda x: layer(x, causal=True), x)
    assert found.params == 4 * 64
    assert found.macs > 15 * 4 * 64
    assert cost(layer, x).params == cost(layer.forward, x).params == 4 * 64


def test_products_agree_with_torch_s_own_counter() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, batch_first=True, dim_feedforward=32, dropout=0.0).to("meta")
    model = nn.Sequential(nn.Conv1d(16, 16, 3, groups=4, stride=2), nn.ConvTranspose1d(16, 5, 3, dilation=2)).to("meta")
    for program, x in ((layer, torch.empty(3, 7, 16, device="meta")), (model, torch.empty(2, 16, 9, device="meta"))):
        with FlopCounterMode(display=False) as peer:
            program(x)
        assert cost(program, x).flops == peer.get_total_flops() > 0


@pytest.mark.parametrize(
    ("program", "message"),
    [
        (torch.fft.rfft, "cost: operations must stand in a table of likewise.cost; got aten._fft_r2c.default."),
        (torch.linalg.inv, "got aten.linalg_inv_ex.default."),
        (lambda x: x[x > 0], "cost: operations must not depend on the values of tensors; got aten.index.Tensor. A"),
        (lambda x: x.sum().item(), "must not depend on the values of tensors; got aten._local_scalar_dense.default."),
    ],
)
def test_an_operation_nobody_knows_stops_the_count(program: Callable[..., Any], message: str) -> None:
    with pytest.raises(Uncounted) as stopped:
        cost(program, torch.ones(4, 4))
    assert message in str(stopped.value)


def test_an_operation_of_somebody_else_stops_the_count_whatever_its_name() -> None:
    with torch.library._scoped_library("likewise_test", "DEF") as library:
        library.define("cumsum(Tensor x) -> Tensor")
        library.impl("cumsum", lambda x: x.clone(), "CompositeExplicitAutograd")
        with pytest.raises(Uncounted, match=r"got likewise_test.cumsum.default\."):
            cost(torch.ops.likewise_test.cumsum, torch.ones(3))


def test_a_cost_reads_well() -> None:
    assert repr(cost(lambda x: x.exp(), torch.empty(3))) == (
        "Cost(params=0, macs=0, elementwise=3, traffic=6, peak=6, saved=3, fused_traffic=6, copies=0)"
    )
    with pytest.raises(AttributeError):
        cost(lambda x: x, torch.empty(3)).macs = 1  # ty: ignore[invalid-assignment]
    assert isinstance(cost(nn.Identity(), torch.empty(3)), Cost)
