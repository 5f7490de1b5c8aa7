"""The compiled kernel: the numbers of the torch form for every size, layout and thread, and no hang after a fork."""

import multiprocessing
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.autograd import forward_ad

from likewise.attention import (
    Elu,
    FeatureMap,
    Fitted,
    Hyperbolic,
    LinearState,
    Positive,
    Relu,
    linear,
    linear_attention,
    state,
)
from likewise.attention.native import library, ops
from tests.attention.drawing import Sizes, draw, seeded, torch_form, with_gradients
from tests.tolerance import assert_close

pytestmark = pytest.mark.skipif(library.kernel.functions is None, reason=f"the kernel is {library.about()}")
MAPS = {
    "Elu": lambda K, G: Elu(),
    "Relu": lambda K, G: Relu(),
    "Positive": lambda K, G: Positive(K, num_features=19, generator=seeded(1)),
    "Positive per head": lambda K, G: Positive(K, num_features=16, kv_heads=G, generator=seeded(2)),
    "Hyperbolic": lambda K, G: Hyperbolic(K, num_features=22, generator=seeded(3)),
    "Fitted": lambda K, G: Fitted(K, num_features=24, kv_heads=G, generator=seeded(4)),
}
RANDOM = [name for name in MAPS if name not in ("Elu", "Relu")]
SHAPES = {
    "one position": Sizes(2, 3, 1, 1, 1, 5, 13),
    "two chunks": Sizes(2, 1, 3, 70, 70, 5, 13),
    "whole vectors": Sizes(1, 2, 2, 131, 131, 16, 32),
    "keys before": Sizes(1, 2, 1, 9, 90, 7, 3),
}
LANES = (4, 8, 16)


def instruction_sets() -> Iterator[int]:
    """Switch to every instruction set that this machine has, one after the other."""
    functions = library.kernel.functions
    assert functions is not None
    try:
        for lanes in LANES:
            if functions.likewise_lanes(lanes) == lanes:
                yield lanes
    finally:
        functions.likewise_lanes(16)


@pytest.fixture(params=LANES)
def lanes(request: pytest.FixtureRequest) -> Iterator[int]:
    """Every instruction set that this machine has."""
    functions = library.kernel.functions
    assert functions is not None
    if functions.likewise_lanes(request.param) != request.param:
        pytest.skip(f"this machine has no vectors of {request.param} floats")
    yield request.param
    functions.likewise_lanes(16)


def inputs_of(name: str, sizes: Sizes, *, dtype: torch.dtype = torch.float32) -> tuple[FeatureMap, list[Tensor]]:
    q, k, v = draw(sizes, seeded(7), dtype=dtype)
    features = MAPS[name](sizes.K, sizes.G)
    if isinstance(features, Fitted):
        features.fit(q.float(), k.float())
    return features, [q, k, v] if name != "Relu" else [q + 1, k + 1, v]


def compare(features: FeatureMap, inputs: list[Tensor], **options: Any) -> None:
    """Values and gradients of the kernel, in every instruction set, and of the torch form, which is given float64."""
    with torch_form():
        wide = [x.double() for x in inputs]
        theirs = with_gradients(lambda *x: linear_attention(*x, features=features, **options), *wide)
    for _ in instruction_sets():
        ours = with_gradients(lambda *x: linear_attention(*x, features=features, **options), *inputs)
        for one, other in zip(ours, theirs, strict=True):
            assert_close(one, other.to(one.dtype), atol=3e-5 * max(other.abs().max().item(), 0.1))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", MAPS)
def test_the_kernel_has_the_numbers_of_the_torch_form(name: str, shape: str, causal: bool) -> None:
    sizes = SHAPES[shape]
    features, inputs = inputs_of(name, sizes)
    compare(features, inputs, causal=causal)
    seen = torch.rand(sizes.B, sizes.S, generator=seeded(5)) > 0.3
    compare(features, inputs, causal=causal, mask=seen)


@pytest.mark.parametrize("within", [1, 7, 64, 65, 300])
@pytest.mark.parametrize("shape", [*SHAPES, "keys and queries before"])
@pytest.mark.parametrize("name", RANDOM)
def test_exact_near_pairs_have_the_numbers_of_the_torch_form(name: str, shape: str, within: int) -> None:
    sizes = SHAPES.get(shape, Sizes(2, 4, 2, 150, 230, 8, 5))
    features, inputs = inputs_of(name, sizes)
    seen = torch.rand(sizes.B, sizes.S, generator=seeded(5)) > 0.3
    compare(features, inputs, causal=True, exact_within=within, mask=seen)
    if sizes.T == sizes.S:
        compare(features, inputs, causal=False, exact_within=within)


def test_the_kernel_is_what_computes_exact_near_pairs(monkeypatch: pytest.MonkeyPatch) -> None:
    features, inputs = inputs_of("Positive", SHAPES["two chunks"])
    monkeypatch.setattr(linear, "_attend_in_torch", None)
    for causal in (True, False):
        linear_attention(*inputs, features=features, causal=causal, exact_within=9)
    monkeypatch.setattr(state, "attend_causally", None)
    empty = LinearState.empty(features, batch=2, kv_heads=1, value_dim=13, exact_within=9)
    after = empty.prefill(inputs[0][:, :1], *inputs[1:])[1]
    after.step(inputs[0][:, :1, :1], *(x[:, :, :1] for x in inputs[1:]))


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("name", ["Elu", "Positive", "Relu"])
def test_packed_sequences_have_the_numbers_of_the_torch_form(name: str, causal: bool) -> None:
    features, inputs = inputs_of(name, Sizes(2, 2, 2, 150, 163, 5, 13))
    ids = (torch.rand(2, 163, generator=seeded(9)) > 0.96).long().cumsum(1)
    compare(features, inputs, causal=causal, sequence_ids=ids)
    compare(features, inputs, causal=causal, sequence_ids=ids, mask=torch.rand(2, 163, generator=seeded(3)) > 0.3)


@pytest.mark.parametrize("causal", [True, False])
@pytest.mark.parametrize("within", [None, 40])
@pytest.mark.parametrize("name", MAPS)
def test_bfloat16_is_summed_in_float32(name: str, within: int | None, causal: bool, lanes: int) -> None:
    features, inputs = inputs_of(name, Sizes(1, 4, 2, 300, 300, 8, 16), dtype=torch.bfloat16)
    attend = partial(linear_attention, features=features, causal=causal, exact_within=within)
    ours, theirs = with_gradients(attend, *inputs), with_gradients(attend, *(x.float() for x in inputs))
    for one, other in zip(ours, theirs, strict=True):
        assert one.dtype == torch.bfloat16
        assert ((one.float() - other).norm() / other.norm()).item() < 1e-2


@pytest.mark.parametrize("level", [-46.0, -46.5, -55.0, -4000.0])
@pytest.mark.parametrize("causal", [True, False])
def test_elu_far_below_zero_is_right_in_values_and_gradients(level: float, causal: bool) -> None:
    q, k, v = draw(Sizes(1, 2, 2, 133, 133, 5, 3), seeded(2), dtype=torch.float32)
    compare(Elu(), [q + level, k + level, v], causal=causal)
    compare(Elu(), [q, k + level, v], causal=causal)
    ramp = torch.linspace(max(level, -100.0), 0, 133)[:, None]
    compare(Elu(), [q, k + ramp, v], causal=causal)
    compare(Elu(), [q + level, k + ramp.flip(0), v], causal=causal)


@pytest.mark.parametrize("within", [None, 17])
@pytest.mark.parametrize("name", MAPS)
def test_not_a_bit_of_an_output_depends_on_later_keys_and_values(name: str, within: int | None, lanes: int) -> None:
    features, (q, k, v) = inputs_of(name, Sizes(1, 2, 1, 200, 200, 8, 16))
    attend = partial(linear_attention, features=features, causal=True, exact_within=within)
    out = attend(q, k, v)
    for place in (1, 63, 64, 130, 199):
        for factor in (0.0, -50.0, 300.0):
            k2, v2 = k.clone(), v.clone()
            k2[:, :, place:] *= factor
            v2[:, :, place:] = 7 * factor
            changed = attend(q, k2, v2)
            assert torch.equal(changed[:, :, :place], out[:, :, :place])


@pytest.mark.parametrize("name", ["Elu", "Positive"])
def test_strided_and_unaligned_inputs_are_read_where_they_lie(name: str, lanes: int) -> None:
    features, inputs = inputs_of(name, Sizes(2, 4, 2, 70, 70, 16, 16))
    expected = with_gradients(lambda *x: linear_attention(*x, features=features, causal=True), *inputs)
    heads_last = [x.transpose(1, 2).contiguous().transpose(1, 2) for x in inputs]
    unaligned = [torch.cat([torch.zeros(1), x.flatten()])[1:].view(x.shape) for x in inputs]
    width_first = [x.mT.contiguous().mT for x in inputs]
    for views in (heads_last, unaligned, width_first):
        leaves = [x.detach().requires_grad_() for x in views]
        out = linear_attention(*leaves, features=features, causal=True)
        direction = torch.randn(out.shape, dtype=torch.float64, generator=seeded(0)).float()
        found = (out, *torch.autograd.grad(out, leaves, direction.transpose(1, 2).contiguous().transpose(1, 2)))
        assert all(torch.equal(one, other) for one, other in zip(found, expected, strict=True))


@pytest.mark.parametrize("within", [None, 1, 7, 64, 300])
@pytest.mark.parametrize("name", MAPS)
def test_prefill_and_steps_have_the_numbers_of_one_call(name: str, within: int | None, lanes: int) -> None:
    features, (q, k, v) = inputs_of(name, Sizes(2, 2, 2, 90, 90, 5, 13))
    seen = torch.rand(2, 90, generator=seeded(8)) > 0.2
    expected = linear_attention(q, k, v, features=features, causal=True, mask=seen, exact_within=within)
    after, outs = LinearState.empty(features, batch=2, kv_heads=2, value_dim=13, exact_within=within), []
    with torch.no_grad():
        for start, stop in ((0, 1), (1, 2), (2, 70), (70, 88), (88, 89), (89, 90)):
            part = (x[:, :, start:stop] for x in (q, k, v))
            out, after = after.prefill(*part, mask=seen[:, start:stop])
            outs.append(out)
    assert_close(torch.cat(outs, dim=2), expected, atol=1e-5)


def test_states_go_from_the_kernel_to_the_torch_form_and_back() -> None:
    for name in MAPS:
        features, (q, k, v) = inputs_of(name, Sizes(1, 2, 2, 40, 40, 5, 13))
        expected = linear_attention(q, k, v, features=features, causal=True)
        with torch.no_grad():
            _, state = LinearState.empty(features, kv_heads=2, value_dim=13).prefill(
                q[:, :, :15], k[:, :, :15], v[:, :, :15]
            )
            with torch_form():
                _, state = state.prefill(q[:, :, 15:30], k[:, :, 15:30], v[:, :, 15:30])
            out, _ = state.prefill(q[:, :, 30:], k[:, :, 30:], v[:, :, 30:])
        assert_close(out, expected[:, :, 30:], atol=1e-5)


def test_one_head_on_several_threads_has_the_numbers_of_one() -> None:
    before = torch.get_num_threads()
    try:
        for name in ("Elu", "Positive", "Relu"):
            features, (q, k, v) = inputs_of(name, Sizes(1, 1, 1, 2100, 2100, 5, 13))
            for causal in (True, False):
                for cross in ((q, k, v), (q[:, :, 7:], k, v)):
                    torch.set_num_threads(1)
                    alone = linear_attention(*cross, features=features, causal=causal)
                    for threads in (2, 3):
                        torch.set_num_threads(threads)
                        assert_close(linear_attention(*cross, features=features, causal=causal), alone, atol=1e-5)
            torch.set_num_threads(4)
            shared = [q.repeat(1, 3, 1, 1)[:, :, :150], k[:, :, :150], v[:, :, :150]]
            compare(features, shared, causal=True)
    finally:
        torch.set_num_threads(before)


def test_several_python_threads_at_once_do_not_disturb_each_other() -> None:
    features, inputs = inputs_of("Elu", Sizes(1, 4, 2, 300, 300, 16, 16))
    expected, found = linear_attention(*inputs, features=features, causal=True), []

    def work() -> None:
        found.extend(
            torch.equal(linear_attention(*inputs, features=features, causal=True), expected) for _ in range(20)
        )

    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert found == [True] * 80


def _after_fork(queue: "multiprocessing.Queue[bool]", inputs: list[Tensor], expected: Tensor) -> None:
    queue.put(torch.equal(linear_attention(*inputs, features=Elu(), causal=True), expected))


def test_a_fork_after_use_does_not_hang() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        inputs = inputs_of("Elu", Sizes(1, 2, 1, 300, 300, 8, 8))[1]  # so few that torch itself uses one thread
        expected = linear_attention(*inputs, features=Elu(), causal=True)
        context = multiprocessing.get_context("fork")
        queue: multiprocessing.Queue[bool] = context.Queue()
        child = context.Process(target=_after_fork, args=(queue, inputs, expected))
        child.start()
        assert queue.get(timeout=60)
        child.join(60)
        assert child.exitcode == 0
    finally:
        torch.set_num_threads(before)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated")  # by torch's own forward mode
def test_forward_mode_and_vmap_are_noticed_before_the_kernel() -> None:
    features, (q, k, v) = inputs_of("Elu", Sizes(2, 2, 1, 9, 9, 5, 3))
    with forward_ad.dual_level():
        out = linear_attention(forward_ad.make_dual(q, q), k, v, features=features, causal=True)
        primal, tangent = forward_ad.unpack_dual(out)
    assert_close(primal, linear_attention(q, k, v, features=features, causal=True), atol=1e-6)
    assert tangent.abs().max() > 0
    each = torch.func.vmap(lambda q: linear_attention(q, k, v, features=features, causal=True))(torch.stack([q, q + 1]))
    assert_close(each[1], linear_attention(q + 1, k, v, features=features, causal=True), atol=1e-6)


def test_a_subclass_that_maps_otherwise_is_asked() -> None:
    class Doubled(Elu):
        def split_keys(self, x: Tensor) -> ops.Scaled:
            return super().split_keys(2 * x)

    q, k, v = draw(Sizes(1, 1, 1, 9, 9, 5, 3), seeded(1), dtype=torch.float32)
    assert not ops.covers(Doubled(), q, k, v)
    expected = linear_attention(2 * q, 2 * k, v, features=Elu(), causal=True)
    assert_close(linear_attention(q, k, v, features=Doubled(), causal=True), expected, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "within", "causal"),
    [("Elu", None, True), ("Positive", None, True), ("Positive", 3, True), ("Positive", 3, False)],
)
def test_gradients_of_gradients_come_from_the_torch_form(name: str, within: int | None, causal: bool) -> None:
    features, inputs = inputs_of(name, Sizes(1, 2, 1, 9, 9, 5, 3))
    leaves = [x.requires_grad_() for x in inputs]

    def second() -> tuple[Tensor, ...]:
        out = linear_attention(*leaves, features=features, causal=causal, exact_within=within)
        first = torch.autograd.grad(out.square().sum(), leaves, create_graph=True)
        return torch.autograd.grad(torch.stack([x.square().sum() for x in first]).sum(), leaves)

    ours = second()
    with torch_form():
        theirs = second()
    for one, other in zip(ours, theirs, strict=True):
        assert_close(one, other, atol=1e-4 * other.abs().max().item())


def test_new_frequencies_are_noticed() -> None:
    features, (q, k, v) = inputs_of("Positive", Sizes(1, 1, 1, 9, 9, 5, 3))
    before = linear_attention(q, k, v, features=features, causal=True)
    assert isinstance(features, Positive)
    features.redraw(seeded(99))
    after = linear_attention(q, k, v, features=features, causal=True)
    with torch_form():
        expected = linear_attention(q, k, v, features=features, causal=True)
    assert not torch.allclose(before, after)
    assert_close(after, expected, atol=1e-5)


def test_a_library_of_another_source_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = library.FOLDER
    for name in ("kernel.so", "kernel.cpp"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    monkeypatch.setattr(library, "FOLDER", tmp_path)
    assert library.load().functions is not None
    with open(tmp_path / "kernel.cpp", "a") as file:
        file.write("\n")
    assert library.load().reason == "built from another version of kernel.cpp: run `python hatch_build.py`"
    broken = tmp_path / "broken"  # elsewhere: what is loaded stays so, and is mapped
    broken.mkdir()
    monkeypatch.setattr(library, "FOLDER", broken)
    assert library.load().reason.startswith("not built")
    (broken / "kernel.so").write_bytes(b"no library")
    assert library.load().reason.startswith("not usable: ")


def test_the_environment_turns_it_off(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_NATIVE", "0")
    monkeypatch.setattr(library, "kernel", library.load())
    assert library.about() == "not in use (turned off by LIKEWISE_NATIVE=0)"
    assert not ops.covers(Elu(), *draw(Sizes(), seeded(1), dtype=torch.float32))
