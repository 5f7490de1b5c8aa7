"""What goes wrong around `likewise train` is said in one line, and nothing is lost by it."""

import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy
import pytest
import torch
from PIL import Image

from likewise.data import Examples, Unreadable, open_examples
from likewise.training import CheckpointPolicy, SemiHard, TrainingJob, train
from likewise.training.checkpoints import read_records, run_lock
from likewise.training.fitting import unfinished
from tests.data.drawing import face, people
from tests.house.guards import ROOT
from tests.test_cli_train import SMALL, base, door, pressing, run
from tests.training.problems import feed, small


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return people(tmp_path / "people", {"Ann": 4, "Bo": 3, "Cy": 3})


def left_by(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("m.*"))}


@pytest.mark.parametrize("network", ["resnet8", "nns2"])
def test_a_first_image_that_is_damaged_is_skipped(network: str, root: Path, tmp_path: Path) -> None:
    first = root / "Ann" / "Ann_0001.jpg"
    first.write_bytes(first.read_bytes()[:700])
    small = ["--network", network, *SMALL[2:], "--workers", "0", "--out", str(tmp_path / "m.safetensors")]
    assert run(str(root), *small, "--steps", "2") == 0
    assert (tmp_path / "m.skipped.txt").read_text().startswith("Ann/Ann_0001.jpg\t")


def test_images_of_which_none_can_be_read_are_refused(root: Path) -> None:
    some = open_examples(root)
    for path in root.glob("*/*.jpg"):
        path.write_bytes(path.read_bytes()[:700])
    with pytest.raises(Unreadable):
        some.read(0)
    with pytest.raises(ValueError, match=r"^Examples.first: examples must have an image that can be read; got none of"):
        some.first()
    assert isinstance(some, Examples)


def test_large_images_are_not_taken_as_they_are(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Image.fromarray(numpy.zeros((3000, 2000, 3), numpy.uint8)).save(root / "Ann" / "Ann_0000.png")
    out = ["--workers", "0", "--out", str(tmp_path / "m.safetensors"), "--steps", "1"]
    assert run(str(root), *SMALL, *out) == 2
    message = "fit: size must be given where images are larger than 256 x 256; got 3000 x 2000."
    assert capsys.readouterr().err == f"likewise: {message}\n"
    assert run(str(root), *SMALL, *out, "--size", "8x9") == 0


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--chunk", "2"], "must have no BatchNorm in training"),
        (["--margin", "-1"], "TrainingPlan: margin must be a positive number; got -1.0"),
        (["--margin", "nan"], "TrainingPlan: margin must be a positive number; got nan"),
        (["--far", "7"], "far must be between 0 and 1; got 7.0"),
        (["--snapshots", "2,9"], "fit: snapshots must be of the 3 steps; got 9"),
        (["--people", "1"], "fit: examples must have two identities, for there to be negatives; got 1"),
        (["--people", "1", "--objective", "classes"], "fit: examples must have two classes to tell apart; got 1"),
        (["--people", "1", "--objective", "classifier"], "fit: examples must have two classes to tell apart; got 1"),
    ],
)
def test_what_is_refused_loses_nothing_of_the_run_before(
    root: Path, tmp_path: Path, wrong: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(root), *base(tmp_path, "--steps", "3")) == 0
    before = left_by(tmp_path)
    assert {"m.checkpoint", "m.jsonl", "m.safetensors", "m.svg"} <= set(before)
    assert run(str(root), *base(tmp_path, "--steps", "3", "--overwrite", *wrong)) == 2
    assert message in capsys.readouterr().err
    assert left_by(tmp_path) == before


def test_an_interrupted_run_is_not_overwritten(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(door, "progress_bar", pressing("step 2,"))
        assert run(str(root), *base(tmp_path, "--steps", "4")) == 130
    before = left_by(tmp_path)
    assert unfinished(tmp_path / "m.safetensors") == f"step 2 of 4 in {tmp_path / 'm.checkpoint'}"
    capsys.readouterr()
    assert run(str(root), *base(tmp_path, "--steps", "4")) == 2
    shown = capsys.readouterr().err
    assert "train: out must have no interrupted run beside it; got step 2 of 4 in" in shown
    assert "Go on with --resume, or begin anew with --overwrite." in shown
    assert left_by(tmp_path) == before
    assert run(str(root), *base(tmp_path, "--steps", "4", "--resume")) == 0
    assert unfinished(tmp_path / "m.safetensors") is None


def test_a_finished_run_is_overwritten_only_if_asked(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(root), *base(tmp_path, "--steps", "1")) == 0
    before = left_by(tmp_path)
    assert run(str(root), *base(tmp_path, "--steps", "1", "--seed", "1")) == 2
    message = (
        f"train: out must not be that of another run; got {str(tmp_path / 'm.safetensors')!r}. Choose another name"
    )
    assert message in capsys.readouterr().err
    assert left_by(tmp_path) == before
    (tmp_path / "m.safetensors").unlink()
    assert run(str(root), *base(tmp_path, "--steps", "1")) == 2  # its checkpoint is of use, too
    assert "m.checkpoint'. Choose another name, or replace it with --overwrite." in capsys.readouterr().err
    assert run(str(root), *base(tmp_path, "--steps", "1", "--seed", "1", "--overwrite")) == 0
    assert left_by(tmp_path)["m.safetensors"] != before["m.safetensors"]


def test_names_say_data_network_and_objective(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(str(root), *SMALL, "--size", "8x9", "--workers", "0", "--steps", "1", "--json") == 0
    assert json.loads(capsys.readouterr().out)["network"] == f"{root.name}-resnet8-triplet.safetensors"
    assert (tmp_path / f"{root.name}-resnet8-triplet.jsonl").is_file()
    assert TrainingJob("digits", start=Path("old/v2.safetensors"), harmonic_with=Path("v1.npz")).place.name == (
        "digits-v2-harmonic.safetensors"
    )


HOLDING = """
    import sys, time
    from pathlib import Path
    from likewise.training.checkpoints import run_lock
    with run_lock(Path(sys.argv[1])):
        print("held", flush=True)
        time.sleep(60)
"""


@pytest.mark.filterwarnings("default:train. process")
def test_two_runs_do_not_share_a_place(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    lock = tmp_path / "m.lock"
    command = [sys.executable, "-c", textwrap.dedent(HOLDING), str(lock)]
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"held\n"
        assert run(str(root), *base(tmp_path, "--steps", "1", "--overwrite")) == 2
        host = socket.gethostname()
        message = f"train: out must not be in use by another run; got process {other.pid} on {host}. If that run is"
        assert message in capsys.readouterr().err
        assert left_by(tmp_path).keys() == {"m.lock"}
        other.kill()
    part = tmp_path / f"m.checkpoint.{other.pid}.part"
    ours, others = tmp_path / f".m.other.{os.getpid()}.part", tmp_path / f"n.checkpoint.{other.pid}.part"
    for file in (part, ours, others):
        file.write_bytes(b"half a file")
    assert run(str(root), *base(tmp_path, "--steps", "1")) == 0
    assert f"process {other.pid} ended without removing its lock, {lock}; the lock is taken over" in (
        capsys.readouterr().err
    )
    assert (part.exists(), ours.exists(), others.exists(), lock.exists()) == (False, True, True, False)


def test_a_lock_of_another_host_is_not_taken_over(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "m.lock").write_text('{"pid": 1, "host": "elsewhere"}')
    assert run(str(root), *base(tmp_path, "--steps", "1")) == 2
    message = f"got process 1 on elsewhere. If that run is gone, remove {tmp_path / 'm.lock'}."
    assert message in capsys.readouterr().err
    with pytest.raises(ValueError, match="process 1 on elsewhere"), run_lock(tmp_path / "m.lock"):
        pytest.fail("it was held")
    (tmp_path / "m.lock").write_text("")  # of a run that was killed as it began
    assert run(str(root), *base(tmp_path, "--steps", "1")) == 0


def test_sigterm_leaves_a_checkpoint_as_ctrl_c_does(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = signal.getsignal(signal.SIGTERM)
    with monkeypatch.context() as patched:
        patched.setattr(door, "progress_bar", pressing("step 2,", signal.SIGTERM))
        assert run(str(root), *base(tmp_path, "--steps", "4")) == 143
    assert "likewise: stopping after this step\n" in capsys.readouterr().err
    assert signal.getsignal(signal.SIGTERM) == before
    assert unfinished(tmp_path / "m.safetensors") == f"step 2 of 4 in {tmp_path / 'm.checkpoint'}"
    assert not (tmp_path / "m.lock").exists()


def test_a_folder_is_no_place_for_a_network(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(root), *SMALL, "--out", str(tmp_path)) == 2
    assert "train: out must be a file" in capsys.readouterr().err


def test_a_resumed_run_knows_what_was_skipped_before(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("Ann/Ann_0002.jpg", "Bo/Bo_0002.jpg", "Cy/Cy_0002.jpg"):
        (root / name).write_bytes((root / name).read_bytes()[:700])
    options = base(tmp_path, "--steps", "6", "--objective", "classes")
    with monkeypatch.context() as patched:
        patched.setattr(door, "progress_bar", pressing("step 5,"))
        assert run(str(root), *options) == 130
    listed = (tmp_path / "m.skipped.txt").read_text()
    assert len(listed.splitlines()) == 3
    assert run(str(root), *options, "--resume") == 0
    assert (tmp_path / "m.skipped.txt").read_text() == listed


def test_names_that_are_not_text_can_be_skipped(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    name = b"caf\xe9.jpg"
    (root / "Ann" / os.fsdecode(name)).write_bytes(b"no image")
    assert run(str(root), *base(tmp_path, "--steps", "1")) == 0
    assert b"Ann/" + name + b"\t" in (tmp_path / "m.skipped.txt").read_bytes()
    assert "  Ann/caf?.jpg: " in capsys.readouterr().out


def test_a_log_with_a_damaged_line_is_not_cut_off(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(root), *base(tmp_path, "--steps", "5")) == 0
    log = tmp_path / "m.jsonl"
    lines = log.read_text().splitlines(keepends=True)
    log.write_text("".join([*lines[:2], "{damaged\n", *lines[3:]]))
    before = left_by(tmp_path)
    assert run(str(root), *base(tmp_path, "--steps", "5", "--resume")) == 2
    message = f"resume: log must have a line for each of 5 steps; got 2 good ones in {log}. Mend it, or move it away"
    assert message in capsys.readouterr().err
    assert left_by(tmp_path) == before
    log.unlink()
    for _ in range(2):  # it is not missed, now or later
        assert run(str(root), *base(tmp_path, "--steps", "5", "--resume")) == 0


def test_a_log_may_begin_later_than_its_run(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for moment in ("step 2,", "step 4,"):
        with monkeypatch.context() as patched:
            patched.setattr(door, "progress_bar", pressing(moment))
            assert run(str(root), *base(tmp_path, "--steps", "6", "--resume")) == 130
        if moment == "step 2,":
            (tmp_path / "m.jsonl").unlink()
    assert run(str(root), *base(tmp_path, "--steps", "6", "--resume")) == 0
    assert [record.step for record in read_records(tmp_path / "m.jsonl")] == [2, 3, 4, 5]


def test_what_another_run_or_a_first_part_has_left_is_told_apart(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "m.safetensors"
    assert run(str(root), *base(tmp_path, "--steps", "1")) == 0
    out.rename(tmp_path / "v2.safetensors")
    again = ["--start", str(tmp_path / "v2.safetensors"), "--head-steps", "2", "--steps", "2"]
    with monkeypatch.context() as patched:
        patched.setattr(door, "progress_bar", pressing("step 2,"))
        assert run(str(root), *base(tmp_path, *again, "--overwrite")) == 130
    assert unfinished(out) == f"step 2 of 2 in {tmp_path / 'm.head.checkpoint'}"
    assert run(str(root), *base(tmp_path, *again, "--resume")) == 0
    assert unfinished(out) is None
    train(small(), SemiHard(), feed(), steps=1, keep=CheckpointPolicy(tmp_path / "m.checkpoint", tmp_path / "m.jsonl"))
    assert unfinished(out) is None


def test_a_network_that_diverges_is_told_so(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(root), *base(tmp_path, "--steps", "2", "--rate", "1e10")) == 1
    assert "are not finite" in capsys.readouterr().err
    assert not (tmp_path / "m.safetensors").exists()


def test_a_run_whose_rates_have_changed_does_not_resume(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ["--network", "nns2", *SMALL[2:], "--workers", "0", "--schedule", "adagrad", "--steps", "1"]
    assert run(str(root), *options, "--out", str(tmp_path / "m.safetensors")) == 0
    before = left_by(tmp_path)
    monkeypatch.setattr("likewise.training.fitting.UNNORMED_START", 0.05)
    assert run(str(root), *options, "--out", str(tmp_path / "m.safetensors"), "--resume") == 2
    assert "resume: rates must be that of the checkpoint, 'AdaGrad(start=0.0005" in capsys.readouterr().err
    assert left_by(tmp_path) == before


def test_harmony_is_of_triplets(root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(root), *base(tmp_path, "--steps", "1")) == 0
    old = (tmp_path / "m.safetensors").rename(tmp_path / "v1.safetensors")
    assert run(str(root), *base(tmp_path, "--harmonic-with", str(old), "--objective", "classes", "--overwrite")) == 2
    message = "fit: objective must be triplet in harmony with another network; got classes."
    assert message in capsys.readouterr().err


def test_vectors_that_cannot_be_compared_are_refused_before_training(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = people(tmp_path / "others", {"Eli": 4, "Flo": 4})
    vectors = torch.nn.functional.normalize(torch.ones(3, 6), dim=1).numpy()
    numpy.savez(tmp_path / "old.npz", vectors=vectors, names=numpy.array(["Ann", "Bo", "Cy"]))
    new = ["--harmonic-with", str(tmp_path / "old.npz"), "--compare", str(others), "--steps", "2"]
    assert run(str(root), *base(tmp_path, *new)) == 2
    assert "StoredVectors: names must be of identities in" in capsys.readouterr().err
    assert left_by(tmp_path) == {}
    names = numpy.array(["Ann", "Eli", "Flo"])
    numpy.savez(tmp_path / "old.npz", vectors=vectors, names=names)
    assert run(str(root), *base(tmp_path, *new)) == 2
    assert "draw_pairs: labels must give pairs of both kinds in one split" in capsys.readouterr().err
    assert left_by(tmp_path) == {}


def test_a_far_that_cannot_be_shown_is_refused_before_training(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = people(tmp_path / "others", {f"p{number}": 3 for number in range(20)})
    assert run(str(root), *base(tmp_path, "--steps", "1")) == 0
    old = (tmp_path / "m.safetensors").rename(tmp_path / "v1.safetensors")
    before = left_by(tmp_path)
    new = ["--harmonic-with", str(old), "--compare", str(others), "--steps", "2", "--overwrite"]
    assert run(str(root), *base(tmp_path, *new)) == 2
    assert "compare_versions: far must be at least 3 / 60 different pairs; got 0.001." in capsys.readouterr().err
    assert left_by(tmp_path) == before


@pytest.mark.slow
def test_a_run_that_collapses_leaves_its_log_its_curve_and_the_checkpoint_before(
    root: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in root.glob("*/*.jpg"):
        path.write_bytes(face(0))  # all the same: nothing to tell apart
    options = ["--network", "nns2", *SMALL[2:], "--workers", "0", "--no-augment", "--every", "5", "--steps", "40"]
    assert run(str(root), *options, "--out", str(tmp_path / "m.safetensors")) == 1
    shown = capsys.readouterr().err
    assert "The embeddings have collapsed: " in shown
    assert "for 20 batches in a row. Train again with a smaller learning rate" in shown
    assert [record.step for record in read_records(tmp_path / "m.jsonl")] == list(range(20))
    assert "<svg" in (tmp_path / "m.svg").read_text()
    assert not (tmp_path / "m.checkpoint").exists()  # there was no step without signs of it
