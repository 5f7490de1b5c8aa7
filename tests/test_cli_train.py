"""`likewise train` writes a network, a log and a picture; Ctrl-C leaves what is needed to go on."""

import importlib
import json
import os
import signal
from pathlib import Path
from xml.etree import ElementTree

import numpy
import pytest
import torch

from likewise import cli
from likewise.data import digits, open_halves
from likewise.networks import load_classifier, load_network
from likewise.training import AdaGrad, Cosine, Harmonic, TrainingPlan, embed_examples, fit
from likewise.training.checkpoints import checkpoint_settings, read_records
from tests.data.drawing import archive, face, people

door = importlib.import_module("likewise.cli.train")  # in its room the name is the verb
SMALL = ["--network", "resnet8", "--embedding-dim", "6", "--identities", "3", "--faces", "3", "--random", "2"]


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["train", *arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


@pytest.fixture
def faces(tmp_path: Path) -> Path:
    root = people(tmp_path / "faces", {"Ann": 4, "Bo": 3, "Cy": 1, "Di": 3})
    (root / "Bo" / "notes.txt").write_text("a diary")
    return root


def base(folder: Path, *more: str) -> list[str]:
    return [*SMALL, "--size", "8x9", "--workers", "0", "--out", str(folder / "m.safetensors"), *more]


def test_a_folder_becomes_a_network(faces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(faces), *base(tmp_path, "--steps", "3", "--json")) == 0
    shown = json.loads(capsys.readouterr().out)
    saved = load_network(tmp_path / "m.safetensors")
    assert (saved.name, saved.preparation.size, saved.network.embedding_dim) == ("resnet8", (8, 9), 6)
    assert shown["hash"] == saved.hash
    assert (shown["steps"], shown["finished"], shown["images"], shown["identities"]) == (3, True, 11, 4)
    assert shown["skipped"] == [{"item": "Bo/notes.txt", "why": "no picture in a known format"}]
    records = read_records(tmp_path / "m.jsonl")
    assert [record.step for record in records] == [0, 1, 2]
    assert records[-1].loss == shown["loss"]
    picture = ElementTree.parse(tmp_path / "m.svg").getroot()
    assert picture.tag == "{http://www.w3.org/2000/svg}svg"
    assert len(list(picture.iter("{http://www.w3.org/2000/svg}polyline"))) == 5


def test_skipped_files_are_listed_at_the_end(faces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    damaged = faces / "Ann" / "Ann_0002.jpg"
    damaged.write_bytes(damaged.read_bytes()[:700])
    assert run(str(faces), *base(tmp_path, "--steps", "4", "--objective", "classes", "--schedule", "adagrad")) == 0
    listed = (tmp_path / "m.skipped.txt").read_text().splitlines()
    assert [line.partition("\t")[0] for line in listed] == ["Bo/notes.txt", "Ann/Ann_0002.jpg"]
    shown = capsys.readouterr().out
    assert "Skipped 2 files" in shown
    assert "  Bo/notes.txt: no picture in a known format\n" in shown


def pressing(moment: str, number: signal.Signals = signal.SIGINT) -> type:
    """A progress bar at which somebody presses Ctrl-C, or sends a signal, when it says something."""
    bar = door.progress_bar

    class Pressing:
        def __init__(self, *, shown: bool) -> None:
            self.bar = bar(shown=shown)

        def __enter__(self):
            progress = self.bar.__enter__()

            def press(done: float, doing: str) -> None:
                progress(done, doing)
                if doing.startswith(moment):
                    os.kill(os.getpid(), number)

            return press

        def __exit__(self, *error: object) -> None:
            self.bar.__exit__(None, None, None)

    return Pressing


def test_ctrl_c_leaves_a_checkpoint_and_resume_ends_alike(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "whole").mkdir()
    assert run(str(faces), *base(tmp_path / "whole", "--steps", "5")) == 0
    before = signal.getsignal(signal.SIGINT)
    with monkeypatch.context() as patched:
        patched.setattr(door, "progress_bar", pressing("step 2,"))
        assert run(str(faces), *base(tmp_path, "--steps", "5")) == 130
    assert signal.getsignal(signal.SIGINT) == before
    shown = capsys.readouterr()
    assert "stopping after this step" in shown.err
    assert "Stopped after step 2 of 5; the same command with --resume goes on." in shown.out
    assert checkpoint_settings(tmp_path / "m.checkpoint")["step"] == 2
    assert not (tmp_path / "m.safetensors").exists()
    assert run(str(faces), *base(tmp_path, "--steps", "5", "--resume")) == 0
    assert load_network(tmp_path / "m.safetensors").hash == load_network(tmp_path / "whole" / "m.safetensors").hash
    losses = [[r.loss for r in read_records(place / "m.jsonl")] for place in (tmp_path, tmp_path / "whole")]
    assert losses[0] == losses[1]


def test_another_plan_does_not_resume(faces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(faces), *base(tmp_path, "--steps", "2")) == 0
    assert run(str(faces), *base(tmp_path, "--steps", "3", "--resume")) == 2
    assert "resume: steps must be that of the checkpoint, 2; got 3" in capsys.readouterr().err


@pytest.mark.slow
def test_harmony_with_a_network_or_with_its_vectors(faces: Path, tmp_path: Path) -> None:
    (tmp_path / "old").mkdir()
    assert run(str(faces), *base(tmp_path / "old", "--steps", "1", "--seed", "5")) == 0
    old = tmp_path / "old" / "m.safetensors"
    assert run(str(faces), *base(tmp_path, "--steps", "2", "--harmonic-with", str(old))) == 0
    by_network = [record.loss for record in read_records(tmp_path / "m.jsonl")]
    vectors = torch.nn.functional.normalize(torch.randn(5, 6, generator=torch.Generator().manual_seed(1)))
    names = ["Ann", "Ann", "Bo", "Eve", "Di"]
    numpy.savez(tmp_path / "old.npz", vectors=vectors.numpy(), names=numpy.array(names))
    again = base(tmp_path, "--steps", "2", "--overwrite")
    assert run(str(faces), *again, "--harmonic-with", str(tmp_path / "old.npz")) == 0
    by_vectors = [record.loss for record in read_records(tmp_path / "m.jsonl")]
    assert run(str(faces), *again) == 0
    alone = [record.loss for record in read_records(tmp_path / "m.jsonl")]
    assert len({by_network[0], by_vectors[0], alone[0]}) == 3


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likewise.metric.FewImpostorsWarning")
def test_an_upgrade_is_compared_with_its_control(
    faces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    others = people(tmp_path / "others", {"Ann": 3, "Eli": 5, "Flo": 4, "Gus": 4})
    for name, dim, seed in (("v1", "6", "5"), ("v2", "9", "6")):
        made = ["--steps", "1", "--seed", seed, "--embedding-dim", dim, "--out", str(tmp_path / f"{name}.safetensors")]
        assert run(str(faces), *base(tmp_path), *made) == 0
    capsys.readouterr()
    upgrade = ["--harmonic-with", str(tmp_path / "v1.safetensors"), "--start", str(tmp_path / "v2.safetensors")]
    batch = ["--identities", "3", "--faces", "3", "--random", "2", "--workers", "0", "--seed", "7"]
    new = [*upgrade, *batch, "--compare", str(others), "--far", "0.8", "--out", str(tmp_path / "new.safetensors")]
    assert run(str(faces), *new, "--steps", "5", "--json") == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["steps"] == 7  # a quarter more, of the embedding layer alone
    assert load_network(tmp_path / "new.safetensors").network.embedding_dim == 6
    assert load_network(tmp_path / "new.control.safetensors").hash != shown["hash"]
    versions = shown["versions"]
    assert versions["far"] == 0.8
    assert versions["pairs"] > 3
    assert ["different pairs are fewer than 30 / far" in text for text in versions["warnings"]] == [True]
    assert versions["price"] == versions["control"]["val"] - versions["new"]["val"]
    assert set(versions["control_mixed"]) == set(versions["old"]) >= {"val", "accuracy", "val_kept", "far_kept"}
    assert run(str(faces), *new, "--steps", "5", "--resume") == 0  # nothing is left to do but to compare
    lines = capsys.readouterr().out.splitlines()
    assert f"warning: {versions['warnings'][0]}" in lines
    for name, key in (("v2-v2", "new"), ("v2-v1", "mixed"), ("v1-v1", "old"), ("control: v2-v1", "control_mixed")):
        [line] = [line for line in lines if line.startswith(f"{name}  ")]
        assert line.split(name)[1].split()[:2] == [str(versions[key]["pairs"]), f"{versions[key]['val']:.4f}"]
        assert line.endswith(f"{versions[key]['val_kept']:.4f}, {versions[key]['far_kept']:.4f}")
    assert run(str(faces), *new, "--steps", "5", "--resume", "--far", "0.5") == 2
    assert "compare_versions: far must be at least 3 / 4 different pairs; got 0.5." in capsys.readouterr().err


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::likewise.metric.FewImpostorsWarning")
def test_ctrl_c_in_the_control_can_be_resumed(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    others = people(tmp_path / "others", {"Eli": 6, "Flo": 6})
    assert run(str(faces), *base(tmp_path, "--steps", "1")) == 0
    old = (tmp_path / "m.safetensors").rename(tmp_path / "v1.safetensors")
    (tmp_path / "m.checkpoint").unlink()
    again = ["--harmonic-with", str(old), "--compare", str(others), "--far", "0.8", "--steps", "3", "--seed", "2"]
    with monkeypatch.context() as patched:
        patched.setattr(door, "progress_bar", pressing("step 1,"))
        assert run(str(faces), *base(tmp_path, *again)) == 130
    assert not (tmp_path / "m.control.jsonl").exists()
    with monkeypatch.context() as patched:
        patched.setattr(door, "progress_bar", pressing("control, step 2,"))
        assert run(str(faces), *base(tmp_path, *again, "--resume")) == 130
    shown = capsys.readouterr()
    assert "Stopped in the control; the same command with --resume goes on." in shown.err
    assert "v2-v1" not in shown.out
    assert checkpoint_settings(tmp_path / "m.control.checkpoint")["step"] == 2
    with monkeypatch.context() as patched:
        patched.setattr(door, "progress_bar", pressing("comparing"))
        assert run(str(faces), *base(tmp_path, *again, "--resume")) == 130
    assert "v2-v1" not in capsys.readouterr().out
    assert run(str(faces), *base(tmp_path, *again, "--resume")) == 0
    assert "v2-v1" in capsys.readouterr().out


def test_the_end_says_how_well_it_does(faces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(faces), *base(tmp_path, "--steps", "1")) == 0
    assert "11 images of 4 identities, 1 steps\nNothing was held out to measure VAL on; --held-out 0.2" in (
        capsys.readouterr().out
    )
    assert run(str(faces), *base(tmp_path, "--steps", "1", "--people", "2", "--overwrite")) == 0
    assert "VAL was not measured: too few pairs in 4 images of 2 identities that it was not trained on (the" in (
        capsys.readouterr().out
    )
    assert run("digits", *base(tmp_path, "--steps", "1", "--people", "7", "--size", "8x8", "--overwrite")) == 0
    assert "% at FAR 0.001 on 533 images of 3 classes that it was not trained on" in capsys.readouterr().out


def test_the_first_identities_can_be_trained_on(
    faces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(faces), *base(tmp_path, "--steps", "1", "--people", "2", "--json")) == 0
    shown = json.loads(capsys.readouterr().out)
    assert (shown["images"], shown["identities"]) == (7, 2)
    assert run(str(faces), *base(tmp_path, "--people", "5", "--overwrite")) == 2
    assert "people must be at most the 4 identities of the data; got 5" in capsys.readouterr().err


def test_people_of_lfw_can_be_left_out(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    members = {f"{name}/{name}_{n:04d}.jpg": face(n) for name in ("Ann", "Bo", "Cy") for n in (1, 2)}
    lists = {
        "people.txt": "2\n2\nAnn\t2\nBo\t2\n1\nCy\t2\n",
        "peopleDevTrain.txt": "2\nAnn\t2\nCy\t2\n",
        "peopleDevTest.txt": "0\n",
        "pairs.txt": "1\t0\n",
        "pairsDevTrain.txt": "0\n",
        "pairsDevTest.txt": "0\n",
    }
    faces = archive(tmp_path / "lfw.tar", {**members, **{name: text.encode() for name, text in lists.items()}})
    for choice, images in (("without-fold-2", 4), ("view1", 4), ("all", 6)):
        assert run(str(faces), *base(tmp_path, "--steps", "1", "--people", choice, "--json", "--overwrite")) == 0
        assert json.loads(capsys.readouterr().out)["images"] == images
    assert run(str(faces), *base(tmp_path, "--people", "without-fold-3", "--overwrite")) == 2
    assert "people must be all, view1 or without-fold-1" in capsys.readouterr().err


def test_epochs_are_times_through_the_images(faces: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(str(faces), *base(tmp_path, "--epochs", "3", "--json")) == 0
    assert json.loads(capsys.readouterr().out)["steps"] == 3  # 11 images, 11 in a batch


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--epochs", "1", "--steps", "2"], "epochs must not be given with steps"),
        (["--size", "8"], "--size must be ROWSxCOLUMNS, such as 64x48; got '8'"),
        (["--people", "view1"], "people must be all or a number for data that is not LFW"),
        (["--out", "nowhere/m.safetensors"], "out must be in a folder that exists"),
        (["--network", "resnet9"], "name must be one of"),
        (["--network", "nns2", "--size", "8x8"], r"fit: size must be that of nns2, (140, 116); got (8, 8)"),
        (["--rate", "-1"], "TrainingPlan: rate must be a positive number; got -1.0"),
        (["--network", "resnet8", "--chunk", "2"], "network must have no BatchNorm in training"),
        (["--compare", "digits"], "compare must go with harmonic_with; got digits"),
        (["--head-steps", "2"], "fit: head_steps must be 0 without a start; got 2"),
        (["--start", "none.safetensors"], "load_network: path must be a network that likewise wrote"),
        (["--harmonic-with", "none.safetensors"], "load_network: path must be a network that likewise wrote"),
    ],
)
def test_wrong_usage_is_one_line(
    faces: Path, tmp_path: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(str(faces), "--workers", "0", "--out", str(tmp_path / "m.safetensors"), *arguments) == 2
    shown = capsys.readouterr().err
    assert message in shown
    assert shown.count("\n") == 1


def test_a_classifier_knows_its_classes_and_what_it_has_not_seen(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "m.safetensors"
    small = ["--network", "resnet8", "--identities", "4", "--faces", "4", "--random", "0", "--workers", "0"]
    assert (
        run("digits", *small, "--objective", "classifier", "--steps", "3", "--snapshots", "1,2", "--out", str(out)) == 0
    )
    shown = capsys.readouterr().out
    assert "Trained on 1,438 images of 10 classes, 3 steps\naccuracy  " in shown
    assert "% on 359 images that it was not trained on (20% of every class held out, by the hash" in shown
    halves, found = open_halves("digits", held_out=0.2), load_classifier(out)
    assert found.classes == tuple("0123456789")
    assert found.trained_on == halves.train.fingerprint
    assert found.preparation.size == (8, 8)
    losses = [record.loss for record in read_records(tmp_path / "m.jsonl")]
    assert abs(losses[0] - 2.3) < 1.5  # log 10 and what a random network adds
    early = [load_classifier(tmp_path / f"m.step-{step}.safetensors") for step in (1, 2)]
    assert len({each.hash for each in (*early, found)}) == 3
    assert early[0].trained_on == found.trained_on
    capsys.readouterr()
    assert run("digits", *small, "--objective", "classifier", "--snapshots", "a", "--out", str(out)) == 2
    assert "--snapshots must be numbers of steps such as 20,100; got 'a'" in capsys.readouterr().err


def test_a_classifier_has_no_vectors_to_keep() -> None:
    old = Harmonic(torch.zeros(1, 6), torch.tensor([0]))
    with pytest.raises(ValueError, match="fit: harmonic must be left out for a classifier"):
        fit(digits(), TrainingPlan(network="resnet8", objective="classifier"), Path("m.safetensors"), harmonic=old)


def test_networks_without_norms_learn_more_slowly() -> None:
    peaks = [
        max(TrainingPlan(network=name).to_schedule().rate(step, 9) for step in range(9)) for name in ("nns2", "resnet8")
    ]
    assert peaks == [1e-4, 1e-3]
    assert TrainingPlan(rate=0.5).to_schedule() == Cosine(peak=0.5)
    assert TrainingPlan(rate=0.5, schedule="adagrad").to_schedule() == AdaGrad(start=0.5)
    assert TrainingPlan(schedule="adagrad").to_schedule() == AdaGrad(start=5e-4)
    assert TrainingPlan(schedule="adagrad", network="resnet8").to_schedule() == AdaGrad()


def test_a_collapse_or_a_divergence_exits_1(
    faces: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from likewise.metric import CollapseError
    from likewise.training import Diverged, fitting

    for error in (Diverged("the loss is nan"), CollapseError("collapsed", ())):

        def fail(*arguments: object, error: Exception = error, **options: object) -> None:
            raise error

        monkeypatch.setattr(fitting, "train", fail)
        assert run(str(faces), *base(tmp_path)) == 1
        assert capsys.readouterr().err == f"likewise: {error}\n"


def test_embeddings_are_the_networks_outputs_in_evaluation_mode(faces: Path, tmp_path: Path) -> None:
    assert run("digits", *SMALL, "--workers", "0", "--steps", "1", "--out", str(tmp_path / "m.safetensors")) == 0
    saved, some = load_network(tmp_path / "m.safetensors"), digits().take(range(11))
    assert saved.preparation.channels == 1
    parts: list[float] = []
    found = embed_examples(
        saved.network.train(), saved.preparation, some, size=4, progress=lambda done, _: parts.append(done)
    )
    assert saved.network.training
    assert parts == [1 / 3, 2 / 3, 1.0]
    with torch.no_grad():
        images = torch.stack([saved.preparation(some.read(row)) for row in range(11)])
        torch.testing.assert_close(found.vectors, saved.network.eval()(images))
    assert torch.equal(found.labels, some.labels)
    assert found.rows.tolist() == list(range(11))
