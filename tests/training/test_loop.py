"""A run that was interrupted ends where one that was not does, to the last digit."""

import itertools
import json
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from likewise.data import Preparation
from likewise.training import AdaGrad, CheckpointPolicy, Classes, Cosine, Diverged, Record, Schedule, SemiHard, train
from likewise.training.checkpoints import checkpoint_settings, read_records
from likewise.training.loop import Trained
from likewise.training.objectives import Logits
from tests.house.guards import ROOT
from tests.training.problems import batch, feed, small

STEPS = 7


def keep(folder: Path, *, every: int = 2) -> CheckpointPolicy:
    return CheckpointPolicy(folder / "run.checkpoint", folder / "run.jsonl", every, {"size": (8, 8), "data": "digits"})


def losses(trained: Trained) -> list[float]:
    return [record.loss for record in trained.records]


def weights(network: nn.Module) -> list[Tensor]:
    return [tensor.clone() for tensor in network.state_dict().values()]


CASES = {
    "cosine": (lambda: SemiHard(choose="random"), Cosine(peak=0.01), None),
    "adagrad": (lambda: SemiHard(), AdaGrad(), 16),
    "classes": (lambda: Classes(7, 10), Cosine(peak=0.01), 7),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("stop", [0, 2, 5])
def test_a_stopped_run_goes_on_to_the_last_digit(tmp_path: Path, case: str, stop: int) -> None:
    make, schedule, chunk = CASES[case]
    whole, objective = small(dropout=0.3), make()
    expected = train(whole, objective, feed(), steps=STEPS, schedule=schedule, chunk=chunk)
    assert expected.finished
    assert len(set(losses(expected))) == STEPS
    network, other = small(dropout=0.3), make()
    first = train(
        network,
        other,
        feed(),
        steps=STEPS,
        schedule=schedule,
        chunk=chunk,
        keep=keep(tmp_path),
        watch=lambda record: record.step == stop,
    )
    assert (first.finished, len(first.records)) == (False, stop + 1)
    again, fresh = small(dropout=0.3), make()
    nn.init.zeros_(next(again.parameters()))
    rest = train(
        again, fresh, feed(workers=1), steps=STEPS, schedule=schedule, chunk=chunk, keep=keep(tmp_path), resume=True
    )
    assert rest.finished
    assert losses(rest) == losses(expected)
    same = [replace(record, seconds=0.0) for record in expected.records]
    assert [replace(record, seconds=0.0) for record in read_records(tmp_path / "run.jsonl")] == same
    assert all(map(torch.equal, weights(again) + weights(fresh), weights(whole) + weights(objective)))


KILLED = """
    import os, signal, sys
    from pathlib import Path
    import torch
    torch.set_num_threads(1)
    from likewise.training import CheckpointPolicy, Cosine, SemiHard, train
    from tests.training.problems import feed, small

    def watch(record):
        if record.step == 4:
            os.kill(os.getpid(), signal.SIGKILL)

    folder = Path(sys.argv[1])
    kept = CheckpointPolicy(folder / "run.checkpoint", folder / "run.jsonl", 2, {"size": (8, 8), "data": "digits"})
    train(small(), SemiHard(), feed(), steps=7, schedule=Cosine(peak=0.01), keep=kept, watch=watch)
"""


@pytest.fixture
def one_thread() -> Iterator[None]:
    """As in the run that is killed: more threads add in another order."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.mark.full
@pytest.mark.usefixtures("one_thread")
def test_a_killed_run_goes_on_from_its_last_checkpoint(tmp_path: Path) -> None:
    code = textwrap.dedent(KILLED)
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], cwd=ROOT, capture_output=True)
    assert done.returncode == -9, done.stderr.decode()
    assert checkpoint_settings(tmp_path / "run.checkpoint")["step"] == 4
    assert len(read_records(tmp_path / "run.jsonl")) == 5
    expected = train(small(), SemiHard(), feed(), steps=STEPS, schedule=Cosine(peak=0.01))
    rest = train(small(), SemiHard(), feed(), steps=STEPS, schedule=Cosine(peak=0.01), keep=keep(tmp_path), resume=True)
    assert losses(rest) == losses(expected)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run.checkpoint", "run.jsonl"]


def test_other_settings_do_not_resume(tmp_path: Path) -> None:
    train(small(), SemiHard(), feed(), steps=2, keep=keep(tmp_path))
    other = replace(keep(tmp_path), settings={"size": (8, 8), "data": "faces"})
    with pytest.raises(ValueError, match="resume: data must be that of the checkpoint, 'digits'; got 'faces'"):
        train(small(), SemiHard(), feed(), steps=2, keep=other, resume=True)


def test_a_checkpoint_with_a_flipped_bit_does_not_resume(tmp_path: Path) -> None:
    train(small(), SemiHard(), feed(), steps=2, keep=keep(tmp_path))
    file = tmp_path / "run.checkpoint"
    whole = file.read_bytes()
    for place in (len(whole) - 1, len(whole) // 2, whole.index(b"step") + 7):
        file.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        with pytest.raises(ValueError, match=r"^load_checkpoint: path must (hold the weights its hash is of|be a)"):
            train(small(), SemiHard(), feed(), steps=2, keep=keep(tmp_path), resume=True)
    file.write_bytes(whole)
    assert train(small(), SemiHard(), feed(), steps=2, keep=keep(tmp_path), resume=True).finished


def test_without_a_checkpoint_resume_starts(tmp_path: Path) -> None:
    started = train(small(), SemiHard(), feed(), steps=2, keep=keep(tmp_path), resume=True)
    assert losses(started) == losses(train(small(), SemiHard(), feed(), steps=2))


@pytest.mark.slow
def test_training_lowers_the_loss_and_leaves_the_callers_chance_alone() -> None:
    before = torch.get_rng_state()
    network, records = small(dropout=0.1), []
    trained = train(
        network, Classes(7, 10), feed(), steps=40, schedule=Cosine(peak=0.02), watch=lambda r: records.append(r)
    )
    assert sum(losses(trained)[-5:]) < 0.7 * sum(losses(trained)[:5])
    assert tuple(records) == trained.records
    assert torch.equal(torch.get_rng_state(), before)
    measures = [record.measures for record in records]
    assert all(record.images == 40 for record in records)
    assert all(set(each) == {"accuracy", "mean_distance", "effective_rank"} for each in measures)
    assert all(0 < each["mean_distance"] < 4 and 1 < each["effective_rank"] <= 7 for each in measures)
    first, last = ([each["accuracy"] for each in part] for part in (measures[:5], measures[-5:]))
    assert sum(last) > sum(first) + 1


def test_an_objective_measures_what_it_is_about(monkeypatch: pytest.MonkeyPatch) -> None:
    [record] = train(small(), SemiHard(), feed(), steps=1).records
    shares = [record.measures[name] for name in ("hard", "semi_hard", "easy")]
    assert abs(sum(shares) - 1) < 1e-9
    assert 0 < record.measures["mean_distance"] < 4
    monkeypatch.setattr("likewise.training.objectives.negative_shares", None)  # a classifier mines nothing
    [record] = train(nn.Sequential(small(), nn.Linear(7, 10)), Logits(), feed(), steps=1).records
    assert set(record.measures) == {"accuracy"}

    class Own(nn.Module):
        def forward(self, embeddings: Tensor, batch: object) -> Tensor:
            return embeddings.square().sum()

    [record] = train(small(), Own(), feed(), steps=1).records
    assert record.measures == {}


def test_a_loss_that_is_no_number_stops_before_it_is_learned(tmp_path: Path) -> None:
    class Broken(nn.Module):
        def forward(self, embeddings: Tensor, batch: object) -> Tensor:
            return embeddings.sum() * float("nan")

    network = small()
    with pytest.raises(Diverged, match=r"train: the loss of step 0 is nan. Lower the learning rate."):
        train(network, Broken(), feed(), steps=2, keep=keep(tmp_path))
    assert all(map(torch.equal, weights(network), weights(small())))


@pytest.mark.parametrize("value", [torch.nan, torch.inf, 1e20])
def test_embeddings_that_are_no_numbers_stop_before_they_are_mined(value: float) -> None:
    class Broken(nn.Module):
        def forward(self, images: Tensor) -> Tensor:
            return images.flatten(1)[:, :4] * value

    network = nn.Sequential(small(), Broken())
    with pytest.raises(Diverged, match=r"train: embeddings of step 0 are not finite, or too long to measure. Lower"):
        train(network, SemiHard(), feed(), steps=2)


def test_weights_that_are_no_numbers_are_not_kept(tmp_path: Path) -> None:
    network = small(batch_norm=True)

    def spoil(record: Record) -> None:
        if record.step == 1:
            network.state_dict()["1.running_var"].fill_(torch.inf)  # which training never reads

    with pytest.raises(Diverged, match=r"train: weights after step 2 are not finite. Lower the learning rate."):
        train(network, SemiHard(), feed(), steps=3, keep=keep(tmp_path, every=1), watch=spoil)
    assert checkpoint_settings(tmp_path / "run.checkpoint")["step"] == 2


@pytest.mark.parametrize("chunk", [None, 16])
def test_bytes_are_made_numbers_a_chunk_at_a_time(chunk: int | None) -> None:
    sizes: list[int] = []

    class Counting(Preparation):
        def numbers(self, pixels: Tensor) -> Tensor:
            sizes.append(len(pixels))
            return super().numbers(pixels)

    expected = train(small(), SemiHard(), feed(), steps=3, chunk=chunk)
    as_bytes = replace(feed(), preparation=Counting((8, 8), channels=1), as_bytes=True)
    found = train(small(), SemiHard(), as_bytes, steps=3, chunk=chunk)
    assert losses(found) == losses(expected)
    assert max(sizes) == (chunk or 40)


def test_a_log_that_was_cut_off_is_read_to_its_last_whole_line(tmp_path: Path) -> None:
    train(small(), SemiHard(), feed(), steps=3, keep=keep(tmp_path))
    log = tmp_path / "run.jsonl"
    assert [json.loads(line)["step"] for line in log.read_text().splitlines()] == [0, 1, 2]
    log.write_text(log.read_text()[:-20])
    assert [record.step for record in read_records(log)] == [0, 1]


def test_a_batch_without_readable_images_changes_nothing() -> None:
    class Feed:
        def since(self, step: int):
            return iter([batch([])])

    network = small()
    [record] = train(network, SemiHard(), Feed(), steps=1, schedule=Cosine(decay=0.0)).records
    assert (record.loss, record.images, record.measures["effective_rank"]) == (0.0, 0, 0.0)
    assert all(map(torch.equal, weights(network), weights(small())))


@pytest.mark.parametrize(("schedule", "kind"), [(Cosine(), torch.optim.AdamW), (AdaGrad(), torch.optim.Adagrad)])
def test_schedules_make_their_optimiser_and_never_rise_above_the_start(schedule: Schedule, kind: type) -> None:
    assert isinstance(schedule.optimiser(small().parameters()), kind)
    rates = [schedule.rate(step, 100) for step in range(100)]
    assert min(rates) > 0
    assert rates[-1] < 0.11 * max(rates)
    assert all(later <= earlier for earlier, later in itertools.pairwise(rates[10:]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Cosine(peak=0.0), "Cosine: peak must be a positive number; got 0.0"),
        (lambda: Cosine(warmup=1.0), "Cosine: warmup must be a part of the steps, from 0 to below 1; got 1.0"),
        (lambda: AdaGrad(start=-1.0), "AdaGrad: start must be positive; got -1.0"),
        (lambda: AdaGrad(last=2.0), "AdaGrad: last must be a part of the steps, from 0 to 1; got 2.0"),
        (
            lambda: CheckpointPolicy(Path(), Path(), 0),
            "CheckpointPolicy: every must be a whole number of at least 1; got 0",
        ),
        (lambda: train(small(), SemiHard(), feed(), steps=0), "train: steps must be a whole number of at least 1"),
    ],
)
def test_wrong_arguments_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


def test_records_are_lines() -> None:
    record = Record(3, 0.1, 1e-3, 40, 0.25, {"hard": 0.1, "mean_distance": 1.9})
    assert Record.from_line(record.to_line()) == record
