"""A job is everything that `likewise train` asks for, in one call."""

from pathlib import Path

import pytest

from likewise.data import digits
from likewise.networks import load_network
from likewise.training import Interrupted, Job, Plan, run_job

SMALL = {"network": "resnet8", "embedding_dim": 6, "identities": 3, "faces": 3, "random": 2, "workers": 0}


def job(folder: Path, **more: object) -> Job:
    return Job("digits", folder / "m.safetensors", **{**SMALL, "steps": 3, **more})  # ty: ignore[invalid-argument-type]


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


def test_what_is_not_given_follows_from_the_data() -> None:
    some, place = digits(), Path("m.safetensors")
    assert Job("digits", place).plan(some) == Plan()
    assert Job("digits", place, epochs=2.0, random=0).plan(some).steps == round(2 * 1797 / 300)
    assert Job("digits", place, epochs=1e-9).plan(some).steps == 1
