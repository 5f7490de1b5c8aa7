"""A file is whole or as it was, and JSON is finite."""

import json
from pathlib import Path

import pytest

from likewise.files import finite, json_hash, require_place, write_whole


def test_text_and_bytes_are_written(tmp_path: Path) -> None:
    path = write_whole(tmp_path / "a.txt", "Größe")
    assert path.read_text(encoding="utf-8") == "Größe"
    assert write_whole(str(path), b"\0\xff").read_bytes() == b"\0\xff"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("step", ["replace", "open"])
def test_a_write_that_is_interrupted_leaves_the_file_as_it_was(
    step: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*arguments: object) -> None:
        raise KeyboardInterrupt

    path = write_whole(tmp_path / "a.txt", "before")
    monkeypatch.setattr(Path, step, interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "after")
    monkeypatch.undo()
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_on_the_disk_before_it_takes_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A power cut must not leave the name with nothing behind it."""
    order: list[str] = []
    replace = Path.replace
    monkeypatch.setattr("os.fsync", lambda descriptor: order.append("fsync"))
    monkeypatch.setattr(Path, "replace", lambda self, target: (order.append("replace"), replace(self, target))[1])
    write_whole(tmp_path / "a.txt", "text")
    assert order == ["fsync", "replace"]


def test_finite_data_is_what_strict_json_takes() -> None:
    data = {"a": [1.0, float("inf")], "b": {"c": (float("nan"), "x", None, True)}}
    assert json.dumps(finite(data), allow_nan=False) == '{"a": [1.0, null], "b": {"c": [null, "x", null, true]}}'


def test_the_hash_is_of_the_data() -> None:
    assert json_hash({"a": 1, "b": [2]}) == json_hash({"b": [2], "a": 1})
    assert json_hash({"a": 1}) != json_hash({"a": 2})


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    require_place("save", tmp_path / "a.txt")
    with pytest.raises(ValueError, match=r"^save: path must be a file; got the folder "):
        require_place("save", tmp_path)
    with pytest.raises(ValueError, match=r"^save: path must be in a folder that exists; got "):
        require_place("save", tmp_path / "missing" / "a.txt")
