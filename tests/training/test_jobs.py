"""A job is everything that `likewise train` asks for, in one call."""

from pathlib import Path

import PIL.Image
import pytest
import torch

from likewise.data import digits, open_halves
from likewise.metric import all_pairs
from likewise.networks import load_network
from likewise.training import Interrupted, TrainingJob, TrainingPlan, embed_examples, run_job
from likewise.training.jobs import HeldOut, held_out_identities, measure

SMALL = {"network": "resnet8", "embedding_dim": 6, "identities": 3, "faces": 3, "random": 2, "workers": 0}


def job(folder: Path, **more: object) -> TrainingJob:
    return TrainingJob("digits", folder / "m.safetensors", **{**SMALL, "steps": 3, **more})  # ty: ignore[invalid-argument-type]


def test_a_job_tells_how_far_it_is_and_gives_what_it_wrote(tmp_path: Path) -> None:
    told: list[tuple[float, str]] = []
    result = run_job(job(tmp_path), progress=lambda done, doing: told.append((done, doing)))
    assert [done for done, _ in told] == [pytest.approx(step / 3) for step in (1, 2, 3)]
    assert told[-1][1] == f"step 3, loss {result.records[-1].loss:.4f}"
    assert result.finished
    assert load_network(tmp_path / "m.safetensors").hash == result.fitted.hash == result.to_json()["hash"]
    assert (result.control, result.versions, result.skipped) == (None, None, ())


def test_an_interrupted_job_goes_on(tmp_path: Path) -> None:
    (tmp_path / "whole").mkdir()
    expected = run_job(job(tmp_path / "whole"))
    calls = iter([False, True])
    stopped = run_job(job(tmp_path), interrupted=lambda: next(calls))
    assert (stopped.finished, len(stopped.records), stopped.fitted.hash) == (False, 2, None)
    assert run_job(job(tmp_path, resume=True)).fitted.hash == expected.fitted.hash


def test_a_job_can_be_interrupted_before_its_first_step(tmp_path: Path) -> None:
    old = run_job(job(tmp_path, steps=1)).job.place.rename(tmp_path / "v1.safetensors")
    with pytest.raises(Interrupted, match=r"^train: interrupted while vectors of v1 were made; the same job"):
        run_job(job(tmp_path, harmonic_with=old, resume=True), interrupted=lambda: True)


def test_a_classifier_is_measured_on_the_images_it_has_not_seen(tmp_path: Path) -> None:
    result = run_job(job(tmp_path, objective="classifier", steps=9))
    halves, network = open_halves("digits", held_out=0.2), result.fitted.network
    images = result.fitted.preparation.numbers(
        torch.stack([torch.from_numpy(halves.test.read(row)) for row in range(len(halves.test))])
    )
    with torch.no_grad():
        right = network(images).argmax(1) == halves.test.labels
    held_out = result.held_out
    assert held_out is not None
    assert (held_out.images, held_out.identities, held_out.val) == (len(halves.test), 10, None)
    assert abs((held_out.accuracy or 0.0) - right.double().mean().item()) < 2 / len(halves.test)  # folded norms round
    assert result.examples.fingerprint == halves.train.fingerprint
    assert result.to_json()["held_out"]["accuracy"] == held_out.accuracy


def test_embeddings_are_measured_on_identities_they_have_not_seen(tmp_path: Path) -> None:
    result = run_job(job(tmp_path, held_out=0.3))
    names = held_out_identities(digits().identities, 0.3)
    assert set(result.examples.identities) == set(digits().identities) - set(names)
    others = digits().of(names)
    found = embed_examples(result.fitted.network, result.fitted.preparation, others)
    expected = all_pairs(found.vectors, found.labels, far=1e-3).val
    assert result.held_out == HeldOut("30% of the identities", len(others), 3, val=expected, far=1e-3)
    folds = [set(held_out_identities(digits().identities, 0.3, fold)) for fold in range(3)]
    assert len(set.union(*folds)) == 9
    with pytest.raises(ValueError, match=r"^train: held_out must leave two identities or more of 10 on each side"):
        run_job(job(tmp_path, held_out=0.1, overwrite=True))


def test_what_people_leave_out_is_held_out(tmp_path: Path) -> None:
    parts = job(tmp_path, people="7").open()
    assert parts.held_out is not None
    assert (parts.train.identities, parts.held_out.identities) == (tuple("0123456"), tuple("789"))
    assert job(tmp_path).open().held_out is None
    assert job(tmp_path, objective="classifier", held_out=0.0).open().held_out is None
    few = digits().take([0, 1, 2])
    result = run_job(job(tmp_path, steps=1))
    assert measure(result.fitted, few, "three", classifier=False) == HeldOut("three", 3, 3)


def test_what_is_not_given_follows_from_the_data() -> None:
    some, place = digits(), Path("m.safetensors")
    assert TrainingJob("digits", place).plan(some) == TrainingPlan()
    assert TrainingJob("digits", place, epochs=2.0, random=0).plan(some).steps == round(2 * 1797 / 300)
    assert TrainingJob("digits", place, epochs=1e-9).plan(some).steps == 1


def test_a_tenth_of_many_identities_is_held_out_unless_all_are_wanted(tmp_path: Path) -> None:
    folders = []
    for person in range(20):
        folders.append(tmp_path / "faces" / f"person{person:02}")
        folders[-1].mkdir(parents=True)
        for face in range(2):
            PIL.Image.new("RGB", (12, 12), (10 * person, 90 * face, 40)).save(folders[-1] / f"{face}.png")
    data = str(tmp_path / "faces")
    parts = TrainingJob(data).open()
    assert parts.held_out is not None
    assert (len(parts.train.identities), len(parts.held_out.identities)) == (18, 2)
    assert (set(parts.train.identities) & set(parts.held_out.identities), parts.how) == (set(), "10% of the identities")
    assert TrainingJob(data, held_out=0.0).open().held_out is None
    (tmp_path / "fewer").mkdir()
    for folder in folders[:19]:
        folder.rename(tmp_path / "fewer" / folder.name)
    assert TrainingJob(str(tmp_path / "fewer")).open().held_out is None
