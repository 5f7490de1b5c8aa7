"""The page of the service in a real browser, at a desk and on a phone. Needs Debian's chromium."""

import contextlib
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import numpy
import pytest
from PIL import Image
from playwright.sync_api import Page, expect, sync_playwright

from likewise.gallery import Embedder, Gallery
from tests.gallery.people import people
from tests.web.running import SECRET, running
from tests.web.test_service import mean_colour

pytestmark = pytest.mark.full
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SIZES = {"desk": (1280, 900), "phone": (390, 844)}


def png(shade: int) -> bytes:
    file = io.BytesIO()
    Image.new("RGB", (64, 64), (shade, 40, 250 - shade)).save(file, "PNG")
    return file.getvalue()


@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    if CHROMIUM is None:
        pytest.skip("no chromium; install it: apt-get install chromium")
    with sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


@pytest.mark.parametrize("size", SIZES)
def test_everything_is_done_on_the_page(size: str, browser, tmp_path: Path) -> None:
    rows = people(30, 4)
    with contextlib.ExitStack() as stack:
        gallery = stack.enter_context(Gallery.open(tmp_path / "people.db", Embedder(mean_colour, "v1")))
        for name in list(rows)[:20]:
            gallery.enrol(name, rows[name][:3])
        hostile = "<img src=x onerror=alert(1)>" + "long " * 30
        gallery.enrol(hostile.strip(), rows["person 25"][:1])
        gallery.calibrate(rows, far=0.01, strangers=numpy.random.default_rng(1).normal(size=(100, 13)), fpir=0.05)
        port = stack.enter_context(running(gallery, tmp_path))
        width, height = SIZES[size]
        page = browser.new_page(viewport={"width": width, "height": height}, has_touch=size == "phone")
        stack.callback(page.close)
        errors: list[str] = []
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("console", lambda message: errors.append(message.text) if message.type == "error" else None)
        page.on("dialog", lambda dialog: errors.append("a dialog"))
        page.goto(f"http://127.0.0.1:{port}/{SECRET}/")
        expect(page.locator("#about")).to_contain_text("21 identities, 61 templates")
        expect(page.locator("#models")).to_contain_text("v1")
        expect(page.locator("#thresholds figure")).to_have_count(2)

        files = [{"name": f"{n}.png", "mimeType": "image/png", "buffer": png(n)} for n in (10, 12, 200)]
        page.set_input_files("#enrol input[type=file]", files)
        page.click("#enrol button")
        expect(page.locator("#enrol .status")).to_contain_text("3 templates enrolled")
        probe = {"name": "3.json", "mimeType": "application/json", "buffer": vectors(rows["person 3"][3:])}
        bad = {"name": "bad.png", "mimeType": "image/png", "buffer": b"no picture"}
        page.set_input_files("#identify input[type=file]", [files[0], probe, bad])
        page.click("#identify button")
        expect(page.locator("#answers > li")).to_have_count(2)
        expect(page.locator("#answers")).to_contain_text("person 3")
        expect(page.locator("#answers")).to_contain_text("false accept at most about 1 in")
        expect(page.locator("#identify .status")).to_contain_text("bad.png: no picture in a known format")
        errors[:] = [each for each in errors if "415" not in each]  # the browser notes the refusal

        clusters(page)
        keep(page, size)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        heights = page.evaluate("[...document.querySelectorAll('button, form input')].map(each => each.offsetHeight)")
        assert [each for each in heights if 0 < each < 40] == []
        strokes = page.evaluate("[...document.querySelectorAll('svg *')].map(each => getComputedStyle(each).stroke)")
        assert len({each for each in strokes if each != "none"}) >= 2  # axes, and the curves

        row = page.locator("#names li", has_text="Ann Lee")
        row.locator("button").click()
        row.locator("button").click()
        expect(page.locator("#people .status")).to_contain_text("Ann Lee: 2 templates erased")
        expect(page.locator("#names li", has_text="Ann Lee")).to_have_count(0)
        assert "Ann Lee" not in gallery
        assert errors == []


def vectors(rows: numpy.ndarray) -> bytes:
    return json.dumps({"vectors": rows.tolist()}).encode()


def clusters(page: Page) -> None:
    """Group, name the two similar pictures, merge two groups and split one."""
    page.fill("#clusters input[name=threshold]", "0.3")
    page.click("#clusters form button")
    groups = page.locator("#groups > li")
    expect(groups.first).to_be_visible()
    before = groups.count()
    unnamed = page.locator("#groups > li", has_text="unnamed").filter(has_text="2 templates").first
    unnamed.locator("input[aria-label^=Name]").fill("Ann Lee")
    unnamed.get_by_role("button", name="Name").click()
    expect(page.locator("#names")).to_contain_text("Ann Lee")
    picks = page.locator("#groups .pick input")
    expect(page.locator("#merge")).to_be_disabled()
    picks.nth(0).check()
    picks.nth(1).check()
    page.click("#merge")
    expect(groups).to_have_count(before - 1)
    expect(groups.first).to_contain_text("6 templates")
    last = groups.nth(1)
    last.locator(".chips input").first.check()
    last.get_by_role("button", name="Split off chosen").click()
    expect(groups).to_have_count(before)


def keep(page: Page, size: str) -> None:
    """Pictures of the page for people, where they are asked for."""
    if folder := os.environ.get("LIKEWISE_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/service-{size}.png", full_page=True)
