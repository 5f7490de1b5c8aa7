"""The documentation site has every page and every public module, and its links are checked."""

import tomllib
from pathlib import Path

import pytest

from tests.house import guards
from tests.house.test_names import NAMES
from tools import site

NAV = site.pages_of(tomllib.loads((guards.ROOT / "zensical.toml").read_text())["project"]["nav"])


def test_every_page_and_every_public_module_is_in_the_contents() -> None:
    folder = guards.ROOT / "docs"
    pages = {str(page.relative_to(folder)) for page in folder.rglob("*.md")}
    assert pages == {page for page in NAV if not page.startswith("api/")} - {"changelog.md"}
    rooms = {f"api/{room.removeprefix('likewise.')}.md" for room in NAMES}
    assert rooms - NAV == set()


def test_pages_are_gathered_with_the_files_that_they_link_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(site, "PAGES", tmp_path)
    site.gather()
    assert {str(page.relative_to(tmp_path)) for page in tmp_path.rglob("*.md")} >= NAV
    assert "](files/likewise/claims/format.md)" in (tmp_path / "claims.md").read_text()
    assert (tmp_path / "files/likewise/claims/format.md").exists()


def test_a_claim_is_a_block_of_code_on_the_site(tmp_path: Path) -> None:
    inside = "````text\n```claim a\n```\n````"
    assert site.titled(f"```claim a\nx\n```\n{inside}\n```python\ny\n```") == (
        f'```text title="claim a"\nx\n```\n{inside}\n```python\ny\n```'
    )
    (tmp_path / "a.html").write_text("<p>```claim a x```</p>")
    assert site.complaints(tmp_path) == ["a.html: 1 fences of code are shown as prose"]


def test_search_from_files_fetches_nothing(tmp_path: Path) -> None:
    (tmp_path / "api").mkdir()
    for name in ("a.html", "api/b.html"):
        (tmp_path / name).write_text(f'<script src="{site.SHIM}"></script>')
    assert len(site.complaints(tmp_path)) == 2
    site.finish(tmp_path)
    assert site.complaints(tmp_path) == []
    assert "../assets/worker.js" in (tmp_path / "api/b.html").read_text()
    assert "window.Worker" in (tmp_path / "assets/worker.js").read_text()


def test_links_that_lead_nowhere_and_what_is_fetched_are_found(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text(
        '<h1 id="top"></h1><a href="b.html#there">b</a><a href="#top">top</a><a href="https://example.org">out</a>'
        '<script src="https://example.org/x.js"></script><img src="gone.png">'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#top">a</a><a href="c.html">c</a>')
    assert site.complaints(tmp_path) == [
        "a.html: fetches https://example.org/x.js",
        "a.html: b.html#there has no such heading",
        "a.html: gone.png does not exist",
        "b.html: c.html does not exist",
    ]
