"""Two halves share no example, count the same identities, and are the same wherever they are made."""

from pathlib import Path

import numpy
import pytest

from likewise.data import find_halves, open_examples, open_halves
from tests.data.drawing import people

COUNTS = {"Ann": 10, "Bo": 5, "Cy": 1, "Di": 2}


@pytest.mark.parametrize("held_out", [0.0, 0.2, 0.5, 0.99])
def test_every_class_gives_its_part_and_keeps_an_example(tmp_path: Path, held_out: float) -> None:
    root = people(tmp_path / "set", COUNTS, size=(4, 4))
    train, test, how = open_halves(root, held_out=held_out)
    assert train.identities == test.identities == tuple(COUNTS)
    assert test.labels.bincount(minlength=4).tolist() == [min(round(held_out * n), n - 1) for n in COUNTS.values()]
    assert sorted(train.items + test.items) == sorted(open_examples(root).items)
    assert how == f"{held_out:.0%} of every class held out, by the hash of their names"
    assert all(test.items[row].startswith(test.identities[label]) for row, label in enumerate(test.labels.tolist()))


def test_folds_hold_out_different_examples(tmp_path: Path) -> None:
    root = people(tmp_path / "set", {"Ann": 10, "Bo": 5}, size=(4, 4))
    folds = [open_halves(root, held_out=0.2, fold=fold) for fold in range(5)]
    assert sorted(item for fold in folds for item in fold.test.items) == sorted(open_examples(root).items)
    assert len({fold.train.fingerprint for fold in folds}) == 5
    assert folds[2].how.endswith(", fold 2")
    for fold in folds:
        found, known = find_halves(root, trained_on=fold.train.fingerprint, held_out=0.2)
        assert (found.test.items, known) == (fold.test.items, True)
    for unknown in (None, "abc"):
        found, known = find_halves(root, trained_on=unknown, held_out=0.2)
        assert (found.test.items, known) == (folds[0].test.items, False)


def test_a_new_example_moves_no_other_class(tmp_path: Path) -> None:
    before = open_halves(people(tmp_path / "one", COUNTS, size=(4, 4)), held_out=0.4)
    after = open_halves(people(tmp_path / "two", {**COUNTS, "Bo": 9}, size=(4, 4)), held_out=0.4)
    for name in ("Ann", "Di"):
        assert before.test.of([name]).items == after.test.of([name]).items


def test_a_data_set_with_halves_keeps_them(tmp_path: Path) -> None:
    def write(stem: str, labels: list[int]) -> None:
        images = numpy.zeros((len(labels), 2, 2), numpy.uint8)
        for kind, values in (("images-idx3", images), ("labels-idx1", numpy.array(labels, numpy.uint8))):
            head = bytes([0, 0, 8, values.ndim]) + b"".join(size.to_bytes(4, "big") for size in values.shape)
            (tmp_path / f"{stem}-{kind}-ubyte").write_bytes(head + values.tobytes())

    write("train", [0, 1, 2, 2])
    write("t10k", [2, 1])
    train, test, how = open_halves(tmp_path)
    assert train.labels.tolist() == [0, 1, 2, 2]
    assert test.labels.tolist() == [2, 1]
    assert test.identities == ("0", "1", "2")
    assert how == "the halves of the data set"
    with pytest.raises(ValueError, match=r"open_halves: fold must be 0 for data that has its own halves; got 1"):
        open_halves(tmp_path, fold=1)


def test_wrong_parts_and_unknown_names_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"open_halves: held_out must be from 0 to below 1; got 1.0"):
        open_halves("digits", held_out=1.0)
    some = open_examples(people(tmp_path / "set", COUNTS, size=(4, 4)))
    with pytest.raises(ValueError, match=r"numbered_by: identities must hold those of set; got none for Cy, Di"):
        some.numbered_by(["Bo", "Ann"])
    assert some.take([0, 10]).numbered_by(["Bo", "Ann"]).labels.tolist() == [1, 0]
