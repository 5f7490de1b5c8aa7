"""A list of pairs is read line by line, and a wrong line is named."""

from pathlib import Path

import pytest

from likewise.data.lfw import Pair
from likewise.data.pair_lists import read_pairs
from tests.data.drawing import face


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    for number, name in enumerate("abcd"):
        (tmp_path / f"{name}.jpg").write_bytes(face(number))
    (tmp_path / "in" / "e f.jpg").write_bytes(face(7))
    return tmp_path


def written(folder: Path, text: str) -> Path:
    (folder / "pairs.tsv").write_text(text)
    return folder / "pairs.tsv"


def test_pairs_join_images_to_people(folder: Path) -> None:
    text = "# mine\n\nb.jpg\tc.jpg\t1\na.jpg\t./b.jpg\t1\nd.jpg\ta.jpg\t0\nd.jpg\tin/e f.jpg\t0\n"
    found = read_pairs(written(folder, text))
    assert found.pairs[1:3] == (Pair("a.jpg", "b.jpg", True), Pair("d.jpg", "a.jpg", False))
    assert found.folds is None
    some = found.examples
    assert some.items == ("b.jpg", "c.jpg", "a.jpg", "d.jpg", "in/e f.jpg")
    names = [some.identities[label] for label in some.labels.tolist()]
    assert names == ["b.jpg", "b.jpg", "b.jpg", "d.jpg", "in/e f.jpg"]
    assert some.read(4).shape == (20, 30, 3)


def test_folds_may_stand_behind(folder: Path) -> None:
    assert read_pairs(written(folder, "a.jpg\tb.jpg\t1\t2\nc.jpg\tb.jpg\t0\t10\n")).folds == (2, 10)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a.jpg\tb.jpg\t1\na.jpg b.jpg 0\n", "line 2: the line must be two image paths and 1 or 0, and perhaps a fold"),
        ("a.jpg\tb.jpg\tyes\n", "line 1: the line must be two image paths and 1 or 0"),
        ("a.jpg\tb.jpg\t1\tx\n", "line 1: fold must be a whole number; got 'x'"),
        ("\na.jpg\tz.jpg\t1\n", "line 2: path must be a file; got 'z.jpg'"),
        ("a.jpg\t../b.jpg\t1\n", "line 1: path must be in the folder of the list; got '../b.jpg'"),
        ("a.jpg\t/b.jpg\t1\n", "line 1: path must be in the folder of the list; got '/b.jpg'"),
        ("a.jpg\t./a.jpg\t0\n", "line 1: the line must name two images"),
        ("a.jpg\tb.jpg\t1\t1\nc.jpg\tb.jpg\t0\n", "line 2: fold must be given on every line or on none"),
        (
            "a.jpg\tb.jpg\t1\na.jpg\tc.jpg\t0\nb.jpg\tc.jpg\t1\n",
            "line 2: the pair must not contradict the others, by which they show one person; got 'a.jpg' and 'c.jpg'",
        ),
    ],
)
def test_a_wrong_line_is_named(folder: Path, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=r"^read_pairs, line \d+: ") as error:
        read_pairs(written(folder, text))
    assert message in str(error.value)


def test_a_link_that_leads_out_is_refused(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    outside = tmp_path_factory.mktemp("outside") / "x.jpg"
    outside.write_bytes(face(1))
    (folder / "x.jpg").symlink_to(outside)
    with pytest.raises(ValueError, match=r"line 1: path must be in the folder of the list; got 'x.jpg'"):
        read_pairs(written(folder, "a.jpg\tx.jpg\t1\n"))


def test_what_is_no_list_is_refused(folder: Path) -> None:
    for path, message in (
        (folder / "none.tsv", "path must be a text file of pairs"),
        (written(folder, "# nothing\n"), "path must hold at least one pair"),
        (folder / "a.jpg", "It is not UTF-8"),
    ):
        with pytest.raises(ValueError, match=message):
            read_pairs(path)
