"""What a page says of a study is what the study's numbers say."""

from pathlib import Path

import pytest

from studies import real_attention as study


def test_the_page_says_what_the_numbers_say() -> None:
    saved = study.from_json((study.RESULTS / "real_attention.json").read_text(encoding="utf-8"))
    page = study.PAGE.read_text(encoding="utf-8")
    assert study.filled(page, study.render(*saved)) == page
    assert study.render(*saved) in page


def test_saved_numbers_come_back() -> None:
    text = (study.RESULTS / "real_attention.json").read_text(encoding="utf-8")
    assert study.to_json(*study.from_json(text)) == text


def test_the_picture_is_there_and_small() -> None:
    assert 1_000 < (study.RESULTS / "real_attention.png").stat().st_size < 200_000


def test_only_the_region_between_the_marks_is_written() -> None:
    page = f"before\n{study.BEGIN}\nold\n{study.END}\nafter\n"
    assert study.filled(page, "new") == page.replace("old", "new")
    assert study.filled(f"{study.BEGIN}\n{study.END}", "new") == f"{study.BEGIN}\nnew\n{study.END}"


def test_a_page_without_marks_is_refused() -> None:
    with pytest.raises(ValueError, match="filled: page must hold <!-- real attention: begin --> and then"):
        study.filled("no marks", "new")


def test_an_interrupted_picture_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    saved, _ = study.from_json((study.RESULTS / "real_attention.json").read_text(encoding="utf-8"))
    path = tmp_path / "picture.png"
    path.write_text("before")
    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        study.draw(path, saved)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]
