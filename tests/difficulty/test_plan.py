"""A plan keeps to the memory it was given, and says where everything goes before anything is done."""

import math
import pathlib
import re
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.difficulty.plan import LEAST, DepthPlan, plan_layers

RESNET20 = {"input": 3072, **{f"block{n}": 16384 for n in range(4)}, **{f"block{n}": 8192 for n in range(4, 7)}}
RESNET20 |= {**{f"block{n}": 4096 for n in range(7, 10)}, "softmax": 10}


def large(max_memory: int = 4 << 30) -> DepthPlan:
    return plan_layers(RESNET20, support=50_000, train=0, test=10_000, k=30, max_memory=max_memory)


def test_the_large_case_by_hand() -> None:
    plan = large()
    assert sum(layer.width for layer in plan.layers) == 105_482
    assert sum(layer.multiply_adds for layer in plan.layers) == 10_000 * 50_000 * 105_482
    assert sum(layer.bytes for layer in plan.layers) == 60_000 * 105_482 * 4
    assert {layer.queries for layer in plan.layers} == {10_000}  # so that the support is read once
    assert plan.memory <= 4 << 30
    assert plan.disk == sum(layer.bytes for layer in plan.layers if layer.place == "disk") > 20e9
    assert [layer.place for layer in plan.layers][-1] == "memory"


@settings(max_examples=100)
@given(
    st.lists(st.integers(1, 20_000), min_size=1, max_size=8),
    st.integers(1, 60_000),
    st.integers(0, 60_000),
    st.integers(0, 10_000),
    st.integers(24, 34),
    st.sampled_from([4, 8]),
)
def test_a_plan_keeps_to_its_memory_or_is_refused(
    widths: list[int], support: int, train: int, test: int, power: int, number: int
) -> None:
    named = {f"layer{place}": width for place, width in enumerate(widths)}
    try:
        plan = plan_layers(
            named, support=support, train=min(train, support), test=test, k=30, number=number, max_memory=1 << power
        )
    except ValueError:
        assert power < 30  # from there on blocks of 64 always fit
        return
    held = sum(layer.bytes for layer in plan.layers if layer.place == "memory")
    assert all(held + layer.working <= 1 << power for layer in plan.layers)
    assert plan.memory == held + max(layer.working for layer in plan.layers)
    assert all(layer.queries >= 1 and 1 <= layer.support <= max(1, support) for layer in plan.layers)
    on_disk = [layer.width for layer in plan.layers if layer.place == "disk"]
    in_memory = [layer.width for layer in plan.layers if layer.place == "memory"]
    assert not on_disk or not in_memory or min(on_disk) >= max(in_memory)


def test_less_memory_means_smaller_blocks() -> None:
    blocks = [layer.queries * layer.support for layer in (large(1 << power).layers[1] for power in (33, 32, 30, 28))]
    assert blocks == sorted(blocks, reverse=True)
    assert blocks[0] > blocks[-1]


def test_too_little_memory_is_refused_with_what_is_needed() -> None:
    with pytest.raises(ValueError, match=r"plan_layers: max_memory must be at least [\d,]+ bytes for 'wide'") as caught:
        plan_layers({"wide": 10**6}, support=10**4, train=0, test=10, k=3, max_memory=10**6)
    need = int(re.findall(r"at least ([\d,]+)", str(caught.value))[0].replace(",", ""))
    plan = plan_layers({"wide": 10**6}, support=10**4, train=0, test=10, k=3, max_memory=need)
    assert plan.layers[0].support <= LEAST
    with pytest.raises(ValueError, match="max_memory must be a whole number of at least 1; got 0"):
        plan_layers({"wide": 1}, support=1, train=0, test=1, k=1, max_memory=0)


def test_a_plan_is_printed_as_a_table() -> None:
    lines = str(large()).splitlines()
    assert lines[0].startswith("10,000 queries against 50,000 training examples, at most ")
    assert lines[1].startswith("input      3,072 wide  737.3 MB in memory ")
    assert lines[2].startswith("block0    16,384 wide    3.9 GB on disk ")
    assert len(lines) == 1 + len(RESNET20)
    assert "on disk" in lines[0]


MEASURED = """
import pathlib, sys, torch
from benchmarks.harness.memory import extra_bytes
from likewise.difficulty.activations import OnDisk
from likewise.difficulty.plan import _working
from likewise.similarity import nearest
torch.set_num_threads(1)
K, N, M = 2048, 512, 6000
path = pathlib.Path(sys.argv[1])
with path.open("wb") as file:
    for seed in range(6):
        rows = torch.randn(M // 6, K, generator=torch.Generator().manual_seed(seed))
        file.write(rows.numpy().tobytes())
y = OnDisk(path, (M, K), torch.float32)
nearest(y[:3], y[:100], k=3)  # what the first call loads is no array
print(extra_bytes(lambda: nearest(y[torch.arange(N)], y, k=30, support=4096)), _working(K, N, 4096, 30, 4))
"""


@pytest.mark.slow
@pytest.mark.skipif(not pathlib.Path("/proc/self/clear_refs").exists(), reason="only Linux says what was resident")
def test_the_work_takes_no_more_memory_than_planned(tmp_path: pathlib.Path) -> None:
    command = [sys.executable, "-c", MEASURED, str(tmp_path / "rows")]
    least = math.inf
    for _ in range(6):  # pages of the file count too, as many as the system maps: the least of several
        done = subprocess.run(
            command, capture_output=True, text=True, check=True, cwd=pathlib.Path(__file__).parents[2]
        )
        taken, planned = map(int, done.stdout.split())
        least = min(least, taken)
        if least < planned:
            break
    assert planned / 2 < least < planned + (16 << 20)  # some megabytes are the library's own
