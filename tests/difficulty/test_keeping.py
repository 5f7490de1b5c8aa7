"""Activations on disk give what activations in memory give, and interrupted work goes on where it stopped."""

import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise.difficulty import depth, plan, prediction_depth
from likewise.difficulty.activations import OnDisk
from likewise.difficulty.depth import plan_depth
from likewise.difficulty.results import PredictionDepth
from likewise.difficulty.taps import Tap
from tests.difficulty.problems import TEST, TRAIN, examples, fitted

DATA = examples(TRAIN, 5), examples(TEST, 6)
LITTLE = 28_000  # bytes: too few for the wider layers


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of 64 rows would hold everything."""
    monkeypatch.setattr(plan, "LEAST", 4)


def run(folder: Path | None = None, max_memory: int = LITTLE, **options: Any) -> PredictionDepth:
    return prediction_depth(fitted(), *DATA, k=3, folder=folder, max_memory=max_memory, **options)


def answers(found: PredictionDepth) -> Any:
    assert found.test is not None
    curves = {which: curve.accuracy.tolist() for which, curve in found.curves.items()}
    return found.train.depth.tolist(), found.test.depth.tolist(), curves, found.reads, found.fingerprint


def test_disk_and_small_blocks_change_nothing(tmp_path: Path) -> None:
    plenty, little = run(max_memory=1 << 30), run(tmp_path)
    assert plenty.plan.disk == 0 < little.plan.disk
    assert {layer.place for layer in little.plan.layers} == {"memory", "disk"}
    assert min(layer.queries for layer in little.plan.layers) < TEST
    assert answers(plenty) == answers(little)


def test_rows_on_disk_are_the_rows(tmp_path: Path) -> None:
    rows = torch.randn(301, 7, generator=torch.Generator().manual_seed(0))
    for dtype in (torch.float32, torch.float64):
        path = tmp_path / "rows"
        path.write_bytes(rows.to(dtype).numpy().tobytes())
        stored = OnDisk(path, (301, 7), dtype)
        for index in (slice(0, 301), slice(3, 9), slice(299, 400), slice(5, 5), slice(None, 2)):
            assert torch.equal(stored[index], rows.to(dtype)[index])
        chosen = torch.randint(301, (613,), generator=torch.Generator().manual_seed(1))
        assert torch.equal(stored[chosen], rows.to(dtype)[chosen])
        assert stored[chosen[:0]].shape == (0, 7)


class Stop(Exception):
    """Ctrl-C, say."""


def stopping(stage: str) -> Any:
    def progress(done: float, what: str) -> None:
        if what == stage:
            raise Stop

    return progress


@pytest.mark.slow
@pytest.mark.parametrize(
    ("stage", "max_memory"),
    [("forward pass, test", LITTLE), ("2, train", LITTLE), ("input, test", LITTLE), ("2, train", 1 << 30)],
)
def test_interrupted_work_goes_on(tmp_path: Path, stage: str, max_memory: int) -> None:
    whole = run(max_memory=max_memory)
    with pytest.raises(Stop):
        run(tmp_path, max_memory, progress=stopping(stage))
    told: list[str] = []
    again = run(tmp_path, max_memory, progress=lambda done, what: told.append(what))
    assert answers(again) == answers(whole)
    order = [f"{name}, train" for name in reversed(whole.layers)]
    done = order[: order.index(stage.replace("test", "train"))] if stage.split(",")[0] in whole.layers else []
    assert not set(done) & set(told)  # finished layers are not asked again
    if max_memory == 1 << 30 and done:
        assert "forward pass, train" in told  # their activations were nowhere else


@pytest.mark.slow
def test_activations_that_are_all_on_disk_spare_the_forward_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = depth.plan_layers

    def all_on_disk(*arguments: Any, **options: Any) -> Any:
        made = planned(*arguments, **options)
        return replace(made, layers=tuple(replace(each, place="disk") for each in made.layers))

    whole = run()
    monkeypatch.setattr(depth, "plan_layers", all_on_disk)
    with pytest.raises(Stop):
        run(tmp_path, progress=stopping("2, test"))
    told: list[str] = []
    again = run(tmp_path, progress=lambda done, what: told.append(what))
    assert answers(again) == answers(whole)
    assert not [what for what in told if what.startswith("forward")]


def test_finished_work_is_read_and_its_activations_are_gone(tmp_path: Path) -> None:
    first = run(tmp_path)
    assert not list(tmp_path.glob("*.activations"))
    told: list[str] = []
    second = run(tmp_path, progress=lambda done, what: told.append(what))
    assert answers(first) == answers(second)
    assert not [what for what in told if not what.startswith("forward")]


def test_a_folder_of_other_work_is_refused_and_left_alone(tmp_path: Path) -> None:
    run(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    changed = fitted()
    next(changed.parameters()).data[0, 0] += 1
    other_data = examples(TRAIN, 7), DATA[1]
    cases: list[tuple[Any, dict[str, Any]]] = [
        ((changed, *DATA), {}),
        ((fitted(), *other_data), {}),
        ((fitted(), *DATA), {"k": 4}),
        ((fitted(), *DATA), {"train_rows": [1]}),
        ((fitted(), *DATA), {"layers": ["0"]}),
        ((fitted(), *DATA), {"layers": [Tap(name, select=torch.relu) for name in "0123"]}),
    ]
    for arguments, changes in cases:
        options: dict[str, Any] = {"k": 3, "folder": tmp_path} | changes
        with pytest.raises(ValueError, match=r"prediction_depth: folder must hold the run .*take another folder"):
            prediction_depth(*arguments, **options)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_selectors_that_differ_in_their_code_are_told_apart() -> None:
    marks = {
        prediction_depth(fitted(), *DATA, k=3, layers=[Tap("0", select=select)]).fingerprint
        for select in (lambda x: x + 1, lambda x: x + 2, lambda x: x.relu(), torch.relu)
    }
    assert len(marks) == 4


def test_nothing_is_left_behind_without_a_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(depth.tempfile, "tempdir", str(tmp_path))
    seen: list[int] = []
    run(progress=lambda done, what: seen.append(len(list(tmp_path.glob("*/*.activations")))))
    assert max(seen) > 0
    with pytest.raises(Stop):
        run(progress=stopping("1, train"))
    assert list(tmp_path.iterdir()) == []


def test_hooks_are_gone_when_the_work_is_interrupted() -> None:
    model = fitted()
    with pytest.raises(Stop):
        prediction_depth(model, *DATA, k=3, progress=stopping("forward pass, train"))
    assert not any(module._forward_hooks or module._forward_pre_hooks for module in model.modules())


class Fickle(nn.Module):
    """Runs another layer when the batch is large."""

    def __init__(self) -> None:
        super().__init__()
        self.one, self.head = nn.Linear(5, 4), nn.Linear(4, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.one(x) if len(x) == 1 else self.one(self.one(x)[:, :1].expand(-1, 5)))


class Sequenced(nn.Module):
    """Puts the examples second, as some transformers do."""

    def __init__(self) -> None:
        super().__init__()
        self.turn, self.head = nn.Identity(), nn.Linear(5, 3)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.turn(x[None].expand(2, -1, -1)).mean(0))


@pytest.mark.parametrize("model", [Fickle(), Sequenced()])
def test_a_model_whose_layers_depend_on_the_batch_is_refused(model: nn.Module) -> None:
    with pytest.raises(ValueError, match=re.escape("capture: model must give, for 61 inputs, input 61 x 5")):
        prediction_depth(model.eval(), *DATA, k=3)


def test_activations_that_are_not_finite_are_refused() -> None:
    model = fitted()
    x = DATA[0][0].clone()
    x[4, 0] = math.nan
    with pytest.raises(ValueError, match=r"^capture: activations of 'input' must be finite; got others\.$"):
        prediction_depth(model, (x, DATA[0][1]), None, k=3)


def test_planning_runs_one_example_only() -> None:
    counted: list[int] = []

    class Counting(nn.Linear):
        def forward(self, input: Tensor) -> Tensor:
            counted.append(len(input))
            return super().forward(input)

    plan_depth(nn.Sequential(Counting(5, 3)).eval(), *DATA, k=3)
    assert counted == [1]
