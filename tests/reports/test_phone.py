"""Pages in a browser at the width of a phone: nothing is wider than the screen, and no caption is cut off."""

import html
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import torch

from likewise import cli
from likewise.tour.learning import Text
from likewise.tour.tour import render_tour, take_tour
from tests.tour.test_tour import SMALL

BROWSER = shutil.which("chromium") or shutil.which("google-chrome") or ""

pytestmark = [pytest.mark.full, pytest.mark.skipif(not BROWSER, reason="needs a browser: chromium is not installed")]

PHONE, DESK = 390, 1280
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--allow-file-access-from-files",
    "--hide-scrollbars",
    "--virtual-time-budget=20000",
    "--window-size=1400,2000",
    "--dump-dom",
)
# A frame has the width that is asked for; a window of the browser may not be so narrow.
FRAME = """<!doctype html>
<iframe id=page src="{page}" width={width} height=2000 style="border:0"></iframe>
<pre id=out></pre>
<script>
document.getElementById("page").onload = event => {{
  const page = event.target.contentDocument, wrong = [];
  const said = each => each.textContent.slice(0, 60);
  for (const each of page.querySelectorAll("details")) each.open = true;
  for (const each of page.body.querySelectorAll("*")) {{
    const box = each.getBoundingClientRect();
    if (box.width && (box.right > {width} + 1 || box.left < -1))
      wrong.push(`${{each.tagName}} ${{each.getAttribute("class")}} to ${{box.right}}: ${{said(each)}}`);
  }}
  for (const each of page.querySelectorAll("caption, figcaption, .table, pre"))
    if (each.scrollWidth > each.clientWidth + 1) wrong.push(`${{each.tagName}} cut: ${{said(each)}}`);
  const shown = [...page.querySelectorAll(".chart")].map(each => [...each.children].filter(
    svg => svg.getBoundingClientRect().width).map(svg => svg.getAttribute("class")).join());
  document.getElementById("out").textContent = JSON.stringify({{wrong, shown}});
}};
</script>"""


def look(page: Path, width: int) -> dict[str, list[str]]:
    """What is wrong with a page at a width, and which picture of every chart is shown."""
    frame = page.with_name("frame.html")
    frame.write_text(FRAME.format(page=page.name, width=width), encoding="utf-8")
    profile = page.with_name("profile")
    done = subprocess.run(
        [BROWSER, *FLAGS, f"--user-data-dir={profile}", frame.as_uri()], capture_output=True, text=True, timeout=120
    )
    found = re.search(r'<pre id="out">(.+?)</pre>', done.stdout, re.DOTALL)
    assert found is not None, done.stderr[-500:]
    return json.loads(html.unescape(found[1]))


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tour, and what exits, depth and evaluate write about small networks on digits."""
    folder = tmp_path_factory.mktemp("pages")
    classifier, embedder = folder / "c.safetensors", folder / "m.safetensors"
    held, few = ["--held-out", "0.5"], ["--risk", "0.1", "--steps", "20"]
    small = ["--network", "resnet8", "--workers", "0"]
    for words in (
        ["train", "digits", *small, "--objective", "classifier", *held, "--steps", "40", "--out", classifier],
        ["exits", classifier, "digits", *held, *few, "--smaller", "resnet14", "--out", folder / "exits.html"],
        ["depth", classifier, "digits", *held, "--k", "10", "--out", folder / "depth.html"],
        ["train", "digits", *small, "--steps", "20", "--out", embedder],
        ["evaluate", embedder, "digits", "--workers", "0", "--table", "4", "--out", folder / "evaluate.html"],
    ):
        with pytest.raises(SystemExit) as stopped:
            cli.main(list(map(str, words)))
        assert stopped.value.code == 0, words
    text = Text(torch.arange(97) % 83, torch.arange(53) % 83, files=7)
    with pytest.MonkeyPatch.context() as patch:  # the library's own text takes seconds to read
        patch.setattr("likewise.tour.real_attention.library_text", lambda: text)
        (folder / "tour.html").write_text(render_tour(take_tour(plan=SMALL)), encoding="utf-8")
    return folder


@pytest.mark.parametrize("name", ["tour", "exits", "depth", "evaluate"])
@pytest.mark.parametrize(("width", "picture"), [(PHONE, "narrow"), (DESK, "wide")])
def test_nothing_is_wider_than_the_screen(pages: Path, name: str, width: int, picture: str) -> None:
    found = look(pages / f"{name}.html", width)
    assert found["wrong"] == []
    assert set(found["shown"]) == {picture}


def test_a_page_that_is_too_wide_is_seen(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(
        '<body><p style="width: 500px">x</p><table><caption style="width: 9px; overflow: hidden">long</caption>'
    )
    assert len(look(page, PHONE)["wrong"]) == 2
