"""The page: whole, self-contained, true to the results, and written at once or not at all."""

import importlib
import json
import re
from dataclasses import fields, replace
from html import escape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from likewise import checks
from likewise.files import write_whole
from likewise.reports.charts import Axis, Mark, Panel, Rule, Trace, draw, draw_alone
from likewise.tour.agreement import Check
from likewise.tour.combinations import BASELINE
from likewise.tour.figures import image_figure
from likewise.tour.real_attention import Subject
from likewise.tour.statements import review_example
from likewise.tour.tour import Tour, render_tour, write_tour
from tests.tour.stored import PATH, SMALL, encoded, measured_tour, shape, stored_tour

SECTIONS = ["identities", "approximation", "scaling", "decoding", "real", "embeddings", "digit_depths", "statements"]
VOID = {"meta", "br", "hr", "img", "input", "link"}


class Reader(HTMLParser):
    """Notes what is wrong with a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.complaints: list[str] = []
        self.ids: list[str] = []
        self.links: list[str] = []
        self.tags: set[str] = set()
        self.feed(text)
        self.close()
        self.complaints += [f"<{tag}> is never closed" for tag in self.open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        if tag not in VOID:
            self.open.append(tag)
        for name, value in attrs:
            value = value or ""
            if name == "id":
                self.ids.append(value)
            if name in ("href", "src", "xlink:href", "srcset", "action", "data", "poster"):
                self.links.append(value)
            if name.startswith("on") or "//" in value or ("url(" in value and "url(#" not in value):
                self.complaints.append(f"<{tag} {name}={value!r}> reaches out")

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.complaints.append(f"</{tag}> closes nothing")


@pytest.fixture(scope="module")
def tour() -> Tour:
    return stored_tour()


@pytest.fixture(scope="module")
def text(tour: Tour) -> str:
    return render_tour(tour)


def test_false_statements_stand_in_words_beside_their_claims(tour: Tour, text: str) -> None:
    [table] = re.findall(r"False, and noticed by nobody</h3>\s*(.*?)</table>", text, flags=re.DOTALL)
    rows = table.split("<tr>")[2:]
    assert len(rows) == len(tour.statements.unnoticed) > 0
    for row, html in zip(tour.statements.unnoticed, rows, strict=True):
        said = tour.statements.words[row.number]
        assert len(said) > 20
        assert escape(said) in html.replace("&#39;", "&#x27;").replace("&#34;", "&quot;")
        assert html.index('class="words"') < html.index("<code>")


@pytest.mark.full
def test_a_measured_tour_is_made_like_the_stored_one_and_shown(tour: Tour) -> None:
    seen: list[float] = []
    measured = measured_tour(lambda done, doing: seen.append(done))
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)
    assert set(measured.took) == set(SECTIONS)
    stale = "results changed: run `python -m tests.tour.stored`"
    assert {name for name, each in _shapes(measured).items() if each != _shapes(tour)[name]} == set(), stale
    assert Reader(render_tour(measured)).complaints == []


def _shapes(tour: Tour) -> dict[str, Any]:
    return {each.name: shape(encoded(getattr(tour, each.name))) for each in fields(tour)}


def test_what_is_stored_comes_back(tour: Tour) -> None:
    assert json.loads(PATH.read_text(encoding="utf-8")) == encoded(tour)


def test_tags_are_balanced_and_ids_unique(text: str) -> None:
    reader = Reader(text)
    assert reader.complaints == []
    assert len(reader.ids) == len(set(reader.ids))


@pytest.mark.parametrize("bad", ["<p>", "<p></b>", "<img src='//x.org/y'>", "<p onclick='x'></p>"])
def test_a_bad_page_is_found(bad: str) -> None:
    assert Reader(bad).complaints


def test_nothing_comes_from_elsewhere(text: str) -> None:
    reader = Reader(text)
    assert not reader.tags & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    assert {link for link in reader.links if not link.startswith("#")} == set()
    assert re.search(r"https?:|@import|@font-face|url\((?!#)", text) is None
    assert "prefers-color-scheme: dark" in text


def test_the_contents_lead_to_every_section(text: str) -> None:
    reader = Reader(text)
    assert reader.links == [f"#{section}" for section in SECTIONS]
    assert {link.removeprefix("#") for link in reader.links} <= set(reader.ids)


def test_every_section_says_how_it_was_made(text: str, tour: Tour) -> None:
    sections = re.findall(r"<section id=.*?</section>", text, flags=re.DOTALL)
    assert len(sections) == len(SECTIONS)
    for section in sections:
        assert section.count("What to take away") == section.count('class="lede"') == 1
        assert "<dt>Measured</dt>" in section
        assert "<dt>Seed</dt><dd>3</dd>" in section
        assert "torch" in section.partition("<dt>With</dt>")[2]
        [(module, call)] = re.findall(r"from likewise\.tour\.(\w+) import (\w+);", section)
        assert callable(getattr(importlib.import_module(f"likewise.tour.{module}"), call))
        if "<figure>" in section:
            assert section.count("<svg") >= section.count("<figure>") == section.count("<figcaption>")
    assert text.count("<figure>") == 9
    assert set(tour.took) == set(SECTIONS)


def test_every_verdict_is_shown(text: str, tour: Tour) -> None:
    attempts = [attempt.card.verdict.verdict for attempt in tour.statements.attempts]
    assert attempts == ["refuted", "refuted", "holds"]
    assert text.count("✓ holds") == len(tour.identities.maps) + len(tour.identities.checks) + 2 + attempts.count(
        "holds"
    )
    assert text.count("✗ refuted") == attempts.count("refuted")
    assert 'class="alarm"' not in text


def test_a_refuted_statement_is_shown_and_announced(tour: Tour) -> None:
    wrong = Check("2 + 2 = 5", "by counting", residual=1.0, bound=1e-9)
    text = render_tour(replace(tour, identities=replace(tour.identities, checks=(wrong,))))
    attempts = [attempt.card.verdict.verdict for attempt in tour.statements.attempts]
    assert text.count("✗ refuted") == 1 + attempts.count("refuted")
    assert re.search(r"1 of \d+ comparisons failed", text)
    assert "came out as stated" not in text


def test_the_statements_of_the_catalogue_are_counted_and_listed(text: str, tour: Tour) -> None:
    said = tour.statements
    assert said.totals["decided"] == len(said.rows) == len({row.number for row in said.rows}) > 10
    assert f"{said.totals['unnoticed']} of the false ones were noticed by nobody" in text
    assert said.unnoticed
    for row in said.rows:
        assert text.count(f'<td class="n" data-column="row">{row.number}</td>') >= 1 + (row in said.unnoticed)


@pytest.mark.parametrize(("factor", "part", "reached"), [(1e-9, 1.01, 2), (1e9, 1.03, 0)])
def test_the_aims_of_real_attention_are_judged_by_the_numbers(
    tour: Tour, factor: float, part: float, reached: int
) -> None:
    def scaled(subject: Subject) -> Subject:
        outcomes = tuple(
            each
            if each.map == BASELINE and not each.within
            else replace(each, errors=tuple(factor * error for error in each.errors), score=part * subject.softmax)
            for each in subject.outcomes
        )
        return replace(subject, outcomes=outcomes)

    real = replace(tour.real, text=scaled(tour.real.text), images=scaled(tour.real.images))
    text = render_tour(replace(tour, real=real))
    section = text.partition('<section id="real">')[2]
    assert section.count("✓ reached") == reached
    assert f"{tour.real.text.softmax:.3f}" in section
    assert f"costs {100 * (part - 1):.1f}%" in section
    assert Reader(text).complaints == []


@pytest.mark.parametrize("val", [0.999, 0.001])
def test_whether_training_helped_is_judged_by_the_numbers(tour: Tour, val: float) -> None:
    pixels, before, after = tour.embeddings.judged
    made = replace(tour.embeddings, judged=(pixels, before, replace(after, val=val)))
    text = render_tour(replace(tour, embeddings=made))
    section = text.partition('<section id="embeddings">')[2]
    assert ("carries over to the three others" in section) == (val > 0.5)
    assert ("Training did not help" in section) == (val < 0.5)
    assert section.count('class="query"') == len(made.neighbours) == 6
    assert Reader(text).complaints == []


def test_a_form_that_was_wrong_is_announced(tour: Tour) -> None:
    lines = tuple(replace(line, error=1.0, samples=()) if "Elu" in line.name else line for line in tour.scaling.lines)
    decoders = tuple(
        replace(each, error=1.0, steps=()) if "Elu" in each.name else each for each in tour.decoding.decoders
    )
    scaling, decoding = replace(tour.scaling, lines=lines), replace(tour.decoding, decoders=decoders)
    text = render_tour(replace(tour, scaling=scaling, decoding=decoding))
    assert text.count("gave a wrong output") == 2
    assert Reader(text).complaints == []


@pytest.mark.parametrize("kept", [(0, 0, 0, 0), (0, 2, 2, 2), (2, 0, 1, 2), (1, 2, 0, 2), (2, 1, 0, 0), (1, 1, 2, 0)])
def test_a_tour_that_ran_out_of_time_is_shown_too(tour: Tour, kept: tuple[int, ...]) -> None:
    lines = tuple(replace(line, samples=line.samples[:n]) for line, n in zip(tour.scaling.lines, kept, strict=True))
    decoders = tuple(replace(d, steps=d.steps[:n]) for d, n in zip(tour.decoding.decoders, kept, strict=False))
    scaling, decoding = replace(tour.scaling, lines=lines), replace(tour.decoding, decoders=decoders)
    assert Reader(render_tour(replace(tour, scaling=scaling, decoding=decoding))).complaints == []


@pytest.mark.parametrize(("load", "warnings"), [(None, 0), (0.2, 0), (3.0, 3)])
def test_a_busy_machine_is_confessed(tour: Tour, load: float | None, warnings: int) -> None:
    text = render_tour(replace(tour, facts=replace(tour.facts, cores=2, load=load)))
    assert text.count("The machine was busy.") == warnings


def test_everything_is_escaped(tour: Tour) -> None:
    evil = Check("<script>alert(1)</script>", '"><img src=x>', residual=0.0, bound=0.0)
    facts = replace(tour.facts, processor="<b>chip</b>")
    text = render_tour(replace(tour, facts=facts, identities=replace(tour.identities, checks=(evil,))))
    assert "&lt;script&gt;alert(1)" in text
    assert "&lt;b&gt;chip" in text
    assert Reader(text).complaints == []
    assert not Reader(text).tags & {"script", "img"}


def test_the_tour_is_written_where_it_was_asked_for(
    tour: Tour, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("likewise.tour.tour.take_tour", lambda progress, *, plan: tour)
    path = tmp_path / "page.html"
    assert write_tour(path) == path
    reviewed = tmp_path / "page-review.html"
    assert path.read_text(encoding="utf-8") == render_tour(tour, reviewed=reviewed.name)
    assert '<a href="page-review.html">the review</a>' in path.read_text(encoding="utf-8")
    assert sorted(tmp_path.iterdir()) == [reviewed, path]
    assert "4 are refuted" in reviewed.read_text(encoding="utf-8")


def test_the_reviewed_answer_repeats_the_known_mistakes() -> None:
    found = review_example()
    wrong = {each.id for each in found.statements if each.refuted}
    assert wrong == {"law", "short-map", "cost", "sign-lost"}
    assert [each.line for each in found.disagreements] == [29]
    assert found.lost == ()
    assert (found.summary.whole.noticed, found.summary.whole.unnoticed) == (2, 2)


@pytest.mark.slow
def test_an_interrupted_tour_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    def interrupt(done: float, doing: str) -> None:
        if done > 0:
            raise KeyboardInterrupt

    path = tmp_path / "page.html"
    path.write_text("before")
    with pytest.raises(KeyboardInterrupt):
        write_tour(path, interrupt, plan=SMALL)
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interrupted_write_leaves_the_file_as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(self: Path, target: Path) -> None:
        raise KeyboardInterrupt

    path = write_whole(tmp_path / "page.html", "before")
    monkeypatch.setattr(Path, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_whole(path, "after")
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_wrong_place_is_named_before_any_work(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="write_tour: path must be a file; got the folder"):
        write_tour(tmp_path)
    with pytest.raises(ValueError, match="write_tour: path must be in a folder that exists; got "):
        write_tour(tmp_path / "missing" / "page.html")


@pytest.mark.parametrize("package", ["jinja2", "sklearn"])
def test_a_missing_package_is_named_before_any_work(
    package: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = checks.find_spec
    monkeypatch.setattr(checks, "find_spec", lambda name: None if name == package else find(name))
    with pytest.raises(
        checks.MissingPackage, match=r"^write_tour: .* Try: pip install 'likewise\[report\]'$"
    ) as caught:
        write_tour(tmp_path / "page.html")
    assert caught.value.name == package


def test_a_chart_puts_values_where_they_belong() -> None:
    x, y = Axis("T", 1.0, 100.0, ((1.0, "one"),)), Axis("", 1.0, 10.0, ((10.0, "ten"),))
    trace = Trace("elu", ((1.0, 1.0), (10.0, 10.0), (100.0, 1000.0)), hints=("a", "b", "c"))
    svg = draw_alone(
        (Panel("p", x, y, (trace,), (Rule("r", 5.0, "half"),), (Mark("m", 10.0, 5.0, "here"),)),), name="n", label="l"
    )
    circles = [(float(cx), float(cy)) for cx, cy in re.findall(r'<circle cx="([\d.]+)" cy="([\d.]+)" r="3"', svg)]
    (left, bottom), (middle, top) = circles
    assert middle - left == pytest.approx((720 - 52 - 14) / 2)
    assert bottom - top == pytest.approx(300 - 30 - 44)
    assert svg.count("<path") == 1  # the value beyond the scale
    assert re.findall(r"<title>(\w)</title>", svg) == ["a", "b", "c"]
    assert Reader(svg).complaints == []


def test_arrow_heads_do_not_cover_each_other() -> None:
    axis = Axis("", 1.0, 10.0, ())
    far = tuple(Trace(name, ((5.0, 1000.0),)) for name in ("a", "b", "c"))
    svg = draw_alone((Panel("", axis, axis, far),), name="n", label="l")
    assert len(set(re.findall(r'<path d="M([\d.]+)', svg))) == 3


def test_an_image_has_its_ink_where_it_belongs() -> None:
    assert re.findall(r'x="(\d)" y="(\d)" fill-opacity="([\d.]+)"', image_figure((0.0, 1.0, 0.5, 0.0), "a 1")) == [
        ("1", "0", "1.00"),
        ("0", "1", "0.50"),
    ]


def test_a_chart_needs_a_panel() -> None:
    with pytest.raises(ValueError, match="draw: panels must hold at least one; got none"):
        draw((), name="n", label="l")
