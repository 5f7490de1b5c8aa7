"""The verbs of a gallery: from images to answers, in text, JSON and a page."""

import json
from pathlib import Path

import numpy
import pytest
from PIL import Image

from likewise.cli import main

MODEL = """
def embed(images):
    return [image.astype(float).ravel() - 127.5 for image in images]
"""


def run(*arguments: object) -> int:
    with pytest.raises(SystemExit) as left:
        main([str(each) for each in arguments])
    return int(left.value.code or 0)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Faces of 8 people, of 120 others, and probes; a model in a file."""
    monkeypatch.chdir(tmp_path)
    draw = numpy.random.default_rng(0)
    for group, count, each in (("faces", 8, 3), ("others", 120, 1)):
        for number in range(count):
            place = tmp_path / group / f"{group} {number}"
            place.mkdir(parents=True)
            face = draw.integers(0, 256, (6, 6, 3))
            for picture in range(each):
                pixels = (face + draw.integers(-9, 10, face.shape)).clip(0, 255).astype(numpy.uint8)
                Image.fromarray(pixels).save(place / f"{picture}.png")
    (tmp_path / "inbox").mkdir()
    (tmp_path / "faces" / "faces 3" / "2.png").rename(tmp_path / "inbox" / "three.png")
    (tmp_path / "others" / "others 7" / "0.png").rename(tmp_path / "inbox" / "stranger.png")
    (tmp_path / "faces" / "faces 1" / "diary.jpg").write_text("a diary")
    (tmp_path / "mine.py").write_text(MODEL)
    return tmp_path


def test_from_images_to_answers(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = ("--model", "mine.py:embed")
    assert run("embed", "faces", *model, "--out", "v.npz") == 0
    assert "23 vectors of 8 identities in v.npz" in capsys.readouterr().out
    assert run("enrol", "people.db", "faces", *model) == 0
    shown = capsys.readouterr().out
    assert "Enrolled 8 identities with 23 templates" in shown
    assert "skipped faces 1/diary.jpg: no picture in a known format" in shown
    assert run("enrol", "people.db", "faces", *model, "--json") == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["schema"], found["already"], found["in_gallery"]) == (1, 8, [8, 23])
    assert run("verify", "people.db", "faces 3", "inbox/three.png", *model) == 0
    assert "faces 3: undecided. Squared distance" in capsys.readouterr().out
    assert run("calibrate", "people.db", *model, "--far", "0.05", "--json") == 0
    assert json.loads(capsys.readouterr().out)["verify"]["people"] == 8
    place = ("--strangers", "others", "--fpir", "0.05", "--out", "cal.html")
    assert run("calibrate", "people.db", *model, *place) == 0
    shown = capsys.readouterr().out
    assert "from 119 strangers and 23 templates" in shown
    assert "verify: threshold" in shown
    page = (folder / "cal.html").read_text()
    assert "Identification threshold" in page
    assert "<svg" in page
    assert run("identify", "people.db", "inbox", *model, "--out", "a.html") == 0
    shown = capsys.readouterr().out
    assert "three.png" in shown
    page = (folder / "a.html").read_text()
    assert page.count("data:image/jpeg;base64,") >= 8  # probes and enrolled images
    assert "1 probes known, 1 unknown" in page
    assert run("identify", "people.db", "inbox", *model, "--json", "--top", "2") == 0
    answers = {Path(each["source"]).name: each for each in json.loads(capsys.readouterr().out)["answers"]}
    assert (answers["three.png"]["outcome"], answers["three.png"]["identity"]) == ("known", "faces 3")
    assert (answers["stranger.png"]["outcome"], len(answers["stranger.png"]["candidates"])) == ("unknown", 2)
    assert run("verify", "people.db", "faces 3", "inbox/three.png", *model, "--json") == 0
    assert json.loads(capsys.readouterr().out)["same"] is True
    assert run("forget", "people.db", "faces 3") == 0
    shown = capsys.readouterr().out
    assert "faces 3: 2 templates erased." in shown
    assert "0 templates found" in shown
    assert run("forget", "people.db", "faces 3") == 2
    assert "identity must be in the gallery; got 'faces 3'" in capsys.readouterr().err


def test_vectors_are_enrolled_and_a_model_is_upgraded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "better.py").write_text(MODEL)
    assert run("enrol", "people.db", "faces", "--model", "mine.py:embed") == 0
    names = ("--model", "better.py:embed", "--old", "mine.py:embed")
    assert run("upgrade", "people.db", "faces", *names, "--far", "0.2", "--images", "faces") == 0
    shown = capsys.readouterr().out
    assert "Compatible: the gallery takes the new model" in shown
    assert "0 identities still have templates of the old model" in shown
    assert run("identify", "people.db", "inbox", "--model", "better.py:embed", "--json") == 0
    assert len(json.loads(capsys.readouterr().out)["answers"]) == 2
    assert run("embed", "faces", "--model", "mine.py:embed", "--out", "v.npz", "--json") == 0
    assert json.loads(capsys.readouterr().out)["templates"] == 23
    assert run("enrol", "codes.db", "v.npz", "--codes", "--json") == 0
    assert json.loads(capsys.readouterr().out)["added"]["templates"] == 23


def test_strangers_are_counted_before_they_are_embedded(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "never.py").write_text("def embed(images):\n    raise SystemExit('embedded')\n")
    assert run("enrol", "people.db", "faces", "--model", "mine.py:embed") == 0
    assert run("calibrate", "people.db", "--strangers", "others", "--model", "never.py:embed", "--fpir", "0.02") == 2
    said = "calibrate: strangers must be at least 3 / fpir, 150; got 119. 119 show a rate of 0.025 at least."
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("identify", "none.db", "inbox"), "gallery must be a file of likewise enrol; got 'none.db'"),
        (("enrol", "mine.py", "faces", "--model", "mine.py:embed"), "url must be an SQLite database; got 'mine.py'"),
        (("enrol", "a.db", "faces", "--model", "mine.py:other"), "model must name a function of mine.py; got 'other'"),
        (("enrol", "a.db", "nowhere"), "data must be"),
    ],
)
@pytest.mark.usefixtures("folder")
def test_wrong_usage_is_one_line(arguments: tuple[str, ...], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(*arguments) == 2
    error = capsys.readouterr().err.strip()
    assert message in error
    assert "\n" not in error
