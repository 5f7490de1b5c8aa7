"""Gather the pages of the documentation site; finish what was built and check its links. `make docs` runs both.

Pages come from docs/, the list of changes from CHANGELOG.md, and the reference of a module from its `__all__`. A link
that leaves docs/ is followed: the file is copied beside the pages.
"""

import argparse
import re
import shutil
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parent.parent
PAGES, SITE = ROOT / "build/pages", ROOT / "build/site"
SHIM = "https://unpkg.com/iframe-worker/shim"
FENCE = re.compile(r"(?P<indent>[ ]*)(?P<ticks>`{3,})(?P<language>[^`\s]*)[ ]*(?P<rest>[^`]*)")
LINK = re.compile(r"(\]\()([^)\s#:]+)((?:#[^)\s]*)?\))")


def gather() -> None:
    """Write build/pages."""
    shutil.rmtree(PAGES, ignore_errors=True)
    for source in sorted((ROOT / "docs").rglob("*.md")):
        _write(source, PAGES / source.relative_to(ROOT / "docs"))
    _write(ROOT / "CHANGELOG.md", PAGES / "changelog.md")
    for page in sorted(pages_of(tomllib.loads((ROOT / "zensical.toml").read_text())["project"]["nav"])):
        if page.startswith("api/"):
            room = f"likewise.{Path(page).stem}"
            (PAGES / page).parent.mkdir(exist_ok=True)
            (PAGES / page).write_text(f"# `{room}`\n\n::: {room}\n")


def pages_of(nav: list[dict[str, str | list]]) -> set[str]:
    """The pages of a table of contents."""
    values = [value for entry in nav for value in entry.values()]
    return {value for value in values if isinstance(value, str)}.union(
        *(pages_of(value) for value in values if not isinstance(value, str))
    )


def _write(source: Path, page: Path) -> None:
    """A page, with the files beside it that lie outside docs/."""

    def follow(link: re.Match[str]) -> str:
        target = (source.parent / link[2]).resolve()
        if target.is_relative_to(ROOT / "docs") and source.is_relative_to(ROOT / "docs"):
            return link[0]
        if target.is_relative_to(ROOT / "docs"):  # from CHANGELOG.md
            return f"{link[1]}{target.relative_to(ROOT / 'docs')}{link[3]}"
        if not target.is_relative_to(ROOT) or not target.is_file():
            raise SystemExit(f"{source.relative_to(ROOT)}: link must be to a file of the project; got {link[2]}.")
        copy = PAGES / "files" / target.relative_to(ROOT)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(target, copy)
        if copy.suffix == ".md":
            copy.write_text(titled(copy.read_text(encoding="utf-8")), encoding="utf-8")
        return f"{link[1]}{'../' * (len(page.relative_to(PAGES).parts) - 1)}{copy.relative_to(PAGES)}{link[3]}"

    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_text(titled(LINK.sub(follow, source.read_text(encoding="utf-8"))), encoding="utf-8")


def titled(text: str) -> str:
    r"""The text with the words after the language of a fence as its title: the builder shows such a fence as prose.

    >>> print(titled("```claim sum\nassert: 1 + 1 == 2\n```"))
    ```text title="claim sum"
    assert: 1 + 1 == 2
    ```
    """
    lines, ticks = [], ""
    for line in text.split("\n"):
        found = FENCE.fullmatch(line)
        if found and not ticks:
            ticks = found["ticks"]
            if found["rest"]:
                words = f"{found['language']} {found['rest'].strip()}"
                line = f'{found["indent"]}{ticks}text title="{words}"'
        elif found and found["ticks"].startswith(ticks) and not found["language"]:
            ticks = ""
        lines.append(line)
    return "\n".join(lines)


def finish(site: Path) -> None:
    """Let search work from files: what the builder would fetch for it from the network is put beside the pages."""
    (site / "assets").mkdir(exist_ok=True)
    (site / "assets/worker.js").write_text((ROOT / "tools/worker.js").read_text(encoding="utf-8"), encoding="utf-8")
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        place = "../" * (len(page.relative_to(site).parts) - 1)
        page.write_text(text.replace(SHIM, f"{place}assets/worker.js"), encoding="utf-8")


class _Links(HTMLParser):
    """The links and the anchors of a page, and what it would fetch from elsewhere."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.fetched: list[str] = []
        self.anchors: set[str] = set()
        self.fences = text.count("<p>```")
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.anchors.update(name for name in (given.get("id"), given.get("name")) if name)
        if tag == "a" and given.get("href"):
            self.links.append(given["href"] or "")
        source = given.get("src") or (given.get("href") if tag == "link" and given.get("rel") != "canonical" else None)
        if source:
            (self.fetched if urlsplit(source).netloc else self.links).append(source)


def complaints(site: Path) -> list[str]:
    """Links of a built site that lead nowhere, and what its pages would fetch from the network."""
    pages = {path: _Links(path.read_text(encoding="utf-8")) for path in sorted(site.rglob("*.html"))}
    found = []
    for path, page in pages.items():
        name = path.relative_to(site)
        if page.fences:
            found.append(f"{name}: {page.fences} fences of code are shown as prose")
        found += [f"{name}: fetches {address}" for address in page.fetched]
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or name.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            if not target.exists():
                found.append(f"{name}: {link} does not exist")
            elif parts.fragment and target in pages and unquote(parts.fragment) not in pages[target].anchors:
                found.append(f"{name}: {link} has no such heading")
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=("gather", "finish"))
    if parser.parse_args().what == "gather":
        gather()
        return
    finish(SITE)
    if wrong := complaints(SITE):
        raise SystemExit("\n".join(wrong))


if __name__ == "__main__":
    main()
