"""The page in a real browser: keys, clicks, files, hostile texts, accessibility, speed. Needs Debian's chromium."""

import json
import re
import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from likewise.claims.documents import markdown_claims
from likewise.claims.verdict import Verdict
from likewise.reading.corrections import Correction
from likewise.review import Folder, Mark, MarkFile, Review, page, pages_of, review, review_of, serve_review
from likewise.review.folder import Entry
from likewise.review.marks import Points, from_markdown, import_marks
from likewise.review.rubric import rubric_of
from tests.review.payloads import ALL, LATEX, MARKDOWN, PLAIN
from tests.review.test_doubt import SECOND, TALK
from tests.review.test_reviewing import ANSWER, HOLDS, REFUTED, made

pytestmark = pytest.mark.full

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SECONDS = 1.0  # for a transcript of 100 KB to be usable


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    if CHROMIUM is None:
        pytest.skip("no chromium; install it: apt-get install chromium")
    sync = pytest.importorskip("playwright.sync_api", reason="no playwright; install it: pip install playwright")
    with sync.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield launched
        launched.close()


class Tab:
    """A tab that remembers what ran, what was asked of the network and what the policy had to stop."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        self.context = browser.new_context(**{"accept_downloads": True, "locale": "en", **options})
        self.page = self.context.new_page()
        self.events: list[str] = []
        self.page.on("dialog", lambda dialog: (self.events.append(f"dialog {dialog.message}"), dialog.dismiss()))
        self.page.on("request", lambda request: self.events.append(request.url))
        self.page.on("requestfailed", lambda request: self.events.append(f"failed {request.url} {request.failure}"))
        self.page.on("pageerror", lambda error: self.events.append(f"error {error}"))
        self.page.on("console", lambda told: self.events.append(f"{told.type} {told.text}"))
        self.page.add_init_script(
            "document.addEventListener('securitypolicyviolation',"
            " event => console.error('policy', event.violatedDirective, event.sourceFile, event.lineNumber));"
        )
        self.page.goto(address)
        self.events = [event for event in self.events if event != address]

    def press(self, *keys: str) -> None:
        for key in keys:
            self.page.keyboard.press(key)

    def shown(self, selector: str) -> str:
        return re.sub(r"\s+", " ", self.page.inner_text(selector)).strip()

    def close(self) -> None:
        self.context.close()


def written(folder: Path, found: Review, name: str = "review.html") -> str:
    path = folder / name
    path.write_text(page(found))
    return path.as_uri()


@pytest.fixture
def tab(browser: Any, tmp_path: Path) -> Iterator[Tab]:
    opened = Tab(browser, written(tmp_path, made()))
    yield opened
    assert opened.events == []
    opened.close()


def test_marks_by_keyboard_alone(tab: Tab) -> None:
    tab.press("j", "j", "y")  # the heading, then the first passage
    assert tab.shown('[data-mark-of="3"]') == "✓ right"
    tab.press("j", "j", "n")  # its code, then the claim
    assert tab.shown('[data-mark-of="5:1"]') == "✗ wrong"
    tab.press("k", "?")
    assert tab.shown('[data-mark-of="5"]') == "? unclear"
    tab.press("x")
    assert not tab.page.is_visible('[data-mark-of="5"]')
    tab.press("j", "r")
    tab.page.keyboard.type("not so")
    tab.press("Escape", "t")
    tab.page.select_option("#tag", "wrong mathematics")
    assert tab.shown('[data-mark-of="5:1"]') == "✗ wrong wrong mathematics: not so"
    words = "Marks: 1 right, 1 wrong; on 0 statements person and run differ. Of the refuted, 1 noticed, 0 by nobody."
    assert tab.shown("#mark-words") == words == made(Mark(3, 0, "right"), Mark(5, 1, "wrong")).summary.marked


def test_enter_opens_what_was_found(tab: Tab) -> None:
    tab.press("j", "j", "j")
    assert not tab.page.is_visible("#s1-read")
    tab.press("Enter")
    assert "Counterexample x = 0" in tab.shown("#s1-read")
    tab.press("Enter")
    assert not tab.page.is_visible("#s1-read")


def test_clicks_do_the_same(tab: Tab) -> None:
    tab.page.click("#s1 summary")
    assert tab.page.is_visible("#s1-read")
    tab.page.click('#marking [data-mark="right"]')
    assert tab.shown('[data-mark-of="5:1"]') == "✓ right"
    assert tab.page.get_attribute('#marking [data-mark="right"]', "aria-pressed") == "true"
    assert tab.shown("#disagreements") == (
        "Where person and run differ line 5: Marked right, but refuted: x = 0: left 1, right 0."
    )


def test_the_script_and_the_library_find_the_same_disagreements(browser: Any, tmp_path: Path) -> None:
    for marks in ([Mark(5, 0, "praise")], [Mark(14, 1, "wrong")], [Mark(5, 1, "wrong"), Mark(5, 0, "right")]):
        found = made(*marks)
        opened = Tab(browser, written(tmp_path, found))
        assert opened.page.locator("#disagreements li").count() == len(found.disagreements)
        opened.close()


def test_marks_of_a_file_are_kept_by_the_browser_and_two_tabs_agree(browser: Any, tmp_path: Path) -> None:
    address = written(tmp_path, made(Mark(14, 1, "praise")))
    first = Tab(browser, address)
    second = first.context.new_page()
    second.goto(address)
    first.press("j", "j", "n")
    until(lambda: "wrong" in (second.text_content('[data-mark-of="3"]') or ""))
    second.keyboard.press("j")
    second.keyboard.press("y")
    second.keyboard.press("r")
    second.keyboard.type("half a remark")
    first.press("?")
    until(lambda: "unclear" in (second.text_content('[data-mark-of="3"]') or ""))
    assert second.input_value("#remark") == "half a remark"
    first.press("n")
    first.page.reload()
    assert first.shown('[data-mark-of="1"]') == "✓ right"
    assert first.shown('[data-mark-of="3"]') == "✗ wrong"
    assert first.shown('[data-mark-of="14:1"]') == "★ praise"
    first.close()


def test_marks_are_saved_and_opened_as_files(tab: Tab, tmp_path: Path) -> None:
    tab.press("j", "j", "n", "r")
    tab.page.keyboard.type("a *remark* <b>")
    tab.press("Escape")
    tab.page.click("#marking summary")
    for kind in ("json", "md"):
        with tab.page.expect_download() as saved:
            tab.page.click(f'[data-export="{kind}"]')
        assert saved.value.suggested_filename == f"answer.marks.{kind}"
        saved.value.save_as(tmp_path / f"saved.{kind}")
    assert import_marks(tmp_path / "saved.json")[0].remark == "a *remark* <b>"
    assert from_markdown((tmp_path / "saved.md").read_text())[0].remark == "a *remark* <b>"
    tab.press("x")
    tab.page.set_input_files("#import", tmp_path / "saved.json")
    until(lambda: tab.shown("#told").startswith("1 of 1"))
    assert tab.shown('[data-mark-of="3"]') == "✗ wrong: a *remark* <b>"
    lines = json.dumps({"steps": [], "marks": json.loads((tmp_path / "saved.json").read_text())["marks"]})
    (tmp_path / "saved.jsonl").write_text(f"{lines}\n")
    for kind in ("md", "jsonl"):
        tab.press("Escape", "x")
        assert not tab.page.is_visible('[data-mark-of="3"]')
        tab.page.set_input_files("#import", tmp_path / f"saved.{kind}")
        until(lambda: tab.shown("#told").startswith("1 of 1"))
        assert tab.shown('[data-mark-of="3"]') == "✗ wrong: a *remark* <b>"
    (tmp_path / "odd.json").write_text('{"marks": [{"line": "<img>", "mark": "right"}, 3, null]}')
    tab.page.set_input_files("#import", tmp_path / "odd.json")
    until(lambda: tab.shown("#told").startswith("0 of 3"))


def talk() -> Review:
    """A doubt, a rubric with points, and marks."""
    rubric = rubric_of("parts: [{name: (a), points: 3, topic: sums}, {name: (b)}]")
    found = review(TALK.format(doubt="Are you sure?", second=SECOND), [], rubric, name="talk.md")
    return found.with_marks([Mark(3, 0, "wrong", "no")], [Points("(a)", 2)])


def test_the_script_keeps_what_became_of_doubts_and_points(browser: Any, tmp_path: Path) -> None:
    found = talk()
    opened = Tab(browser, written(tmp_path, found))
    assert opened.shown("#mark-words") == found.summary.marked
    assert opened.shown("#asked-words") == found.summary.asked
    opened.close()


def test_points_are_given_on_the_live_page(browser: Any, tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "talk.marks.json")
    with serve_review(talk(), file.path).running() as address:
        opened = Tab(browser, address)
        opened.page.fill('[data-part="(b)"]', "1.5")
        opened.press("Tab")
        until(lambda: [(each.part, each.points) for each in file.read_points()] == [("(b)", 1.5)])
        until(lambda: "Points: 1.5 of 3, 1 part without points." in opened.shown("#asked-words"))
        opened.close()


def test_without_a_script_the_page_is_readable(browser: Any, tmp_path: Path) -> None:
    opened = Tab(browser, written(tmp_path, made(Mark(5, 1, "right", "sure"))), java_script_enabled=False)
    assert opened.shown('[data-mark-of="5:1"]') == "✓ right: sure"
    assert not opened.page.is_visible("#marking")
    opened.page.click("#s1 summary")
    assert opened.page.is_visible("#s1-read")
    opened.close()


def test_live_marks_reach_the_file_and_the_other_tab(browser: Any, tmp_path: Path) -> None:
    file = MarkFile(tmp_path / "answer.marks.json")
    with serve_review(made(), file.path).running() as address:
        first, second = Tab(browser, address), Tab(browser, address)
        first.press("j", "j", "n")
        second.press("j", "y")
        until(lambda: [mark.key for mark in file.read()] == ["1", "3"])
        until(lambda: "wrong" in (second.page.text_content('[data-mark-of="3"]') or ""))
        first.press("p")
        until(lambda: file.read()[-1].mark == "praise")
        second.press("j", "?")  # before it has seen the praise: a conflict, unless it has polled meanwhile
        until(lambda: file.read()[-1].mark == "unclear" or "another tab" in second.shown("#told"))
        assert {event for event in first.events + second.events if event != f"{address}marks"} <= {
            "error Failed to load resource: the server responded with a status of 409 (Conflict)"
        }
        first.close()
        second.close()


def test_a_reading_is_corrected_in_place_and_other_tabs_follow(browser: Any, tmp_path: Path) -> None:
    found = review("So $1 + 1 = 3$.\n\nThen $a = b$ and $2 + 2 = 4$.\n", name="answer.md")
    readings = tmp_path / "answer.readings.yaml"
    with serve_review(found, tmp_path / "answer.marks.json", readings=readings).running() as address:
        first, second = Tab(browser, address), Tab(browser, address)
        first.press("j", "j", "n", "c")
        first.page.select_option("#correct-role", "hypothesis")
        first.page.click("[data-correct]")
        first.page.wait_for_selector('#page[data-version="1"]')
        until(lambda: first.shown("#told") == "Checked again. Changed: line 1: hypothesis (was refuted).")
        assert first.shown("#s1 .chip") == "hypothesis"
        assert first.shown('[data-mark-of="1:5"]') == "✗ wrong"
        assert first.shown("#place").startswith("Line 1, statement")  # where it was before
        assert readings.read_text() == "- {line: 1, column: 5, role: hypothesis}\n"
        assert "line 1, column 5, is a hypothesis" in first.shown("#readings")
        second.page.wait_for_selector('#page[data-version="1"]')
        second.press("c")
        second.page.fill("#correct-name", "<img src=x onerror=alert(1)>")
        second.page.fill("#correct-type", "R^^")
        second.press("Enter")
        until(lambda: second.shown("#told").startswith("not corrected: readings: type"))
        second.page.click("[data-undo]")
        second.page.wait_for_selector('#page[data-version="2"]')
        assert second.shown("#s1 .chip") == "✗ refuted"
        assert readings.read_text() == "[]\n"
        expected = (
            f"{address}marks",
            f"{address}readings",
            address,
            f"failed {address}marks",
            "error Failed to load resource",
        )
        assert [each for each in first.events + second.events if not each.startswith(expected)] == []
        first.close()
        second.close()


def until(holds: Any, seconds: float = 30.0) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it did not happen in time"
        time.sleep(0.05)


HOSTILE = len(PLAIN) + len(MARKDOWN) + 2 * len(LATEX)


def test_there_are_two_hundred_payloads() -> None:
    assert HOSTILE >= 180
    assert len(set(ALL)) >= 200


@pytest.mark.parametrize("part", range(4))
def test_nothing_hostile_runs_and_nothing_is_fetched(browser: Any, tmp_path: Path, part: int) -> None:
    payloads = ALL[part::4]
    answer = "\n\n".join(payloads) + "\n\n" + ANSWER
    stated = markdown_claims(answer)
    said = [
        Verdict(each.id, "refuted", payload, payload, payload, witness=((payload, payload),), suggestions=(payload,))
        for each, payload in zip(stated, payloads * 3, strict=False)
    ]
    bare = review_of(answer, stated, said, [], name=payloads[0])
    marks = [
        Mark(row.first, 0, "wrong", payload.replace("\r", "")[:4000], "", row.source)
        for row, payload in zip(bare.rows, payloads, strict=False)
    ]
    lost = [Mark(9_000 + place, 0, "wrong", payload[:4000], "", payload) for place, payload in enumerate(payloads)]
    corrected = tuple(Correction(name=payload, dims=(payload,)) for payload in payloads)
    path = tmp_path / "a<img src=x onerror=alert(1)>.html"
    path.write_text(page(replace(bare.with_marks([*marks, *lost]), corrections=corrected), corrects=True))
    opened = Tab(browser, path.as_uri())
    for each in opened.page.locator("details").all()[:40]:
        each.evaluate("each => { each.open = true; }")
    for _ in range(30):
        opened.press("j", "n")
    opened.page.evaluate(
        "[...document.querySelectorAll('.said a')].forEach(each => each.dispatchEvent(new Event('focus')))"
    )
    opened.page.wait_for_timeout(500)
    assert opened.events == []
    assert (
        opened.page.evaluate("document.querySelectorAll('img, iframe, object, embed, form, svg, link, base').length")
        == 0
    )
    opened.close()


def test_a_payload_that_ran_would_be_seen(browser: Any, tmp_path: Path) -> None:
    (tmp_path / "bad.html").write_text("<script>alert(1)</script><img src='http://evil.example/x.png'>")
    opened = Tab(browser, (tmp_path / "bad.html").as_uri())
    assert any(event.startswith("dialog") for event in opened.events)
    assert any("evil.example" in event for event in opened.events)
    opened.close()


def test_the_policy_stops_what_would_slip_through(browser: Any, tmp_path: Path) -> None:
    """Even a page with a hole runs no script but its own."""
    html = page(made()).replace(
        "<p>Text", "<img src='http://evil.example/x' onerror='alert(1)'><script>alert(2)</script><p>Text"
    )
    (tmp_path / "hole.html").write_text(html)
    opened = Tab(browser, (tmp_path / "hole.html").as_uri())
    assert not [event for event in opened.events if event.startswith("dialog")]
    assert any("failed http://evil.example/x csp" in event for event in opened.events)
    assert any("policy img-src" in event for event in opened.events)
    assert any("policy script-src" in event for event in opened.events)
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_axe_finds_nothing(browser: Any, tmp_path: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe; pip install axe-playwright-python"
    )
    answer = (
        ANSWER
        + "\n| a | b | c | d |\n|---|---|---|---|\n| 1 | 2 | 3 | $x$ |\n\n$$\\foo$$\n\n> quoted [x](https://a.example)\n"
    )
    found = made(
        Mark(5, 1, "right", "so", "notation"), Mark(3, 0, "unclear"), Mark(99, 0, "wrong", "old"), answer=answer
    )
    opened = Tab(browser, written(tmp_path, found), color_scheme=scheme, viewport={"width": width, "height": 900})
    opened.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    opened.press("j", "j", "y")
    violations = axe.Axe().run(opened.page).response["violations"]
    told = [
        (each["id"], each["nodes"][0]["html"][:200], each["nodes"][0]["failureSummary"][:300]) for each in violations
    ]
    assert told == []
    opened.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_doubts_points_and_folders_pass_axe_and_fit(browser: Any, tmp_path: Path, scheme: str, width: int) -> None:
    axe = pytest.importorskip(
        "axe_playwright_python.sync_playwright", reason="no axe; pip install axe-playwright-python"
    )
    hostile = PLAIN[0][:80]
    folder = Folder(hostile, (Entry("one", "sums", "a.md", talk()), Entry(hostile, "sums", "b.md", talk())))
    corrected = replace(talk(), corrections=(Correction(name=hostile, dims=()),))
    served = page(corrected, live=True, corrects=True)
    for html in (page(talk()), served, pages_of(folder)["index.html"]):
        (tmp_path / "page.html").write_text(html)
        opened = Tab(
            browser,
            (tmp_path / "page.html").as_uri(),
            color_scheme=scheme,
            viewport={"width": width, "height": 900},
        )
        opened.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
        violations = axe.Axe().run(opened.page).response["violations"]
        assert [(each["id"], each["nodes"][0]["html"][:200]) for each in violations] == []
        assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
        assert not [event for event in opened.events if event.startswith(("dialog", "http"))]
        opened.close()


@pytest.mark.parametrize("width", [320, 390, 768, 1920])
def test_nothing_is_wider_than_the_screen(browser: Any, tmp_path: Path, width: int) -> None:
    terms = " + ".join(f"x_{{{n}}}^2" for n in range(80))
    wide = f"$${terms}$$\n\nInline ${terms}$ too.\n\n- In a list ${terms}$\n\n{'w' * 300}\n\n{ANSWER}"
    found = review_of(wide, markdown_claims(wide), [REFUTED, HOLDS], name="a" * 200)
    opened = Tab(browser, written(tmp_path, found), viewport={"width": width, "height": 800})
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    opened.close()


def test_a_doubt_is_not_cut_off_on_a_phone(browser: Any, tmp_path: Path) -> None:
    formulas = "$(a + b)^2 = a^2 + 2ab + b^{n}$ for $a, b \\in \\mathbb{{R}}$"
    talk = TALK.format(doubt="Are you sure?", second=f"{SECOND} {formulas.replace('{n}', '3')}").replace(
        "3 = 36$", f"3 = 36$ {formulas.replace('{n}', '2')}"
    )
    opened = Tab(browser, written(tmp_path, review(talk, name="talk.md")), viewport={"width": 390, "height": 800})
    opened.page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true; })")
    cut = "each => each.scrollWidth - each.clientWidth"
    selector = ".doubt .table, .doubt .formula-scroll, .counts"
    lost = opened.page.evaluate(f"[...document.querySelectorAll('{selector}')].map({cut})")
    assert len(lost) > 4
    assert max(lost) <= 1, lost
    assert opened.page.locator(".before-after td >> nth=0").evaluate(
        "each => getComputedStyle(each, '::before').content"
    )
    opened.close()


def test_a_long_formula_wraps_on_a_phone(browser: Any, tmp_path: Path) -> None:
    long = (
        "\\mathbb{E}[\\exp(w^\\top x)] = \\exp(\\|x\\|^2/2), \\qquad \\mathrm{Var}(w^\\top x) = \\|x\\|^2 = 1 + 2 + 3"
    )
    opened = Tab(
        browser, written(tmp_path, review(f"$${long}$$\n\nSo ${long}$.")), viewport={"width": 390, "height": 800}
    )
    sizes = "each => [each.scrollWidth - each.clientWidth, each.clientHeight]"
    cut = opened.page.evaluate(f"[...document.querySelectorAll('.set, .wide')].map({sizes})")
    assert len(cut) == 2
    for hidden, height in cut:
        assert hidden <= 1
        assert height > 45  # two lines
    opened.close()


def test_the_passage_stays_in_sight_beside_its_open_details(browser: Any, tmp_path: Path) -> None:
    found = review("So $1 + 1 = 3$.\n\n" + "More words.\n\n" * 40, name="a.md")
    opened = Tab(browser, written(tmp_path, found), viewport={"width": 1280, "height": 300})
    opened.page.evaluate("document.querySelectorAll('.finding details').forEach(each => { each.open = true; })")
    opened.page.evaluate("document.documentElement.style.scrollBehavior = 'auto'")
    opened.page.evaluate("scrollBy(0, document.querySelector('#s1 .again').getBoundingClientRect().top - 100)")
    place = opened.page.locator("#l1 .said").bounding_box()
    assert place["y"] >= 0
    assert opened.page.locator("#s1 .chip").bounding_box()["y"] < 0
    opened.close()


def test_it_prints_what_was_found(browser: Any, tmp_path: Path) -> None:
    opened = Tab(browser, written(tmp_path, made(Mark(5, 1, "right"))))
    opened.page.emulate_media(media="print")
    assert not opened.page.is_visible("#marking")
    assert opened.page.is_visible("#s1 .gist")
    assert opened.page.is_visible('[data-mark-of="5:1"]')
    assert len(opened.page.pdf()) > 10_000
    opened.close()


STEP = """\
## Step {n}

The kernel $\\exp(q_{{{n}}}^\\top k/\\sqrt{{D}})$ is a product of two factors, so
$\\sum_{{j=1}}^N \\phi(K_j) V_j^\\top$ is formed once.

$$
\\frac{{\\phi(q)^\\top S_{{{n}}}}}{{\\phi(q)^\\top z}} = \\sum_{{i=1}}^{{{n}}} a_i v_i
$$

```claim c{n}
assert: {n} == {n} + 1
```

"""


def transcript(size: int) -> tuple[str, list[Verdict]]:
    """A long answer: prose, formulas, claims."""
    count = size // len(STEP.format(n=100))
    verdicts = [Verdict(f"c{n}", "refuted", "arithmetic", f"{n} != {n + 1}") for n in range(1, count + 1)]
    return "".join(STEP.format(n=n) for n in range(1, count + 1)), verdicts


def test_a_long_transcript_is_usable_at_once(browser: Any, tmp_path: Path) -> None:
    answer, verdicts = transcript(100_000)
    address = written(tmp_path, review_of(answer, markdown_claims(answer), verdicts, name="long.md"))
    best = float("inf")
    for _ in range(3):
        opened = Tab(browser, "about:blank")
        start = time.perf_counter()
        opened.page.goto(address)
        opened.press("j", "n")
        opened.page.wait_for_selector('[data-mark-of="1"]:not([hidden])')
        best = min(best, time.perf_counter() - start)
        frames = opened.page.evaluate(
            """() => new Promise(done => { const times = []; let at = performance.now(), n = 0;
            function frame(now) { times.push(now - at); at = now; scrollBy(0, 400);
              if (++n < 60) requestAnimationFrame(frame); else done(times.sort((a, b) => a - b)[54]); }
            requestAnimationFrame(frame); })"""
        )
        opened.close()
    (tmp_path / "told.json").write_text(json.dumps({"seconds": best, "frame": frames}))
    assert best < SECONDS * (3 if busy() else 1), (
        f"{best:.2f} s until a key was answered, 90 % of frames in {frames:.0f} ms"
    )


def busy() -> bool:
    """Whether other programs hold the cores; then a time says little."""
    import os

    return os.getloadavg()[0] > (os.cpu_count() or 1)
