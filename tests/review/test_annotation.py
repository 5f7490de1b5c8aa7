"""An annotated answer shows every claim with its verdict, stands alone, and obeys nothing that stands in it."""

import re
from html.parser import HTMLParser

import pytest

from likewise.claims.documents import markdown_claims
from likewise.claims.stated import Stated
from likewise.claims.verdict import Verdict
from likewise.review import Card, annotated, corrections

ANSWER = """\
# Features

Text with *stress*.

```claim first
given: x in R
assert: x + 1 == x
```

- A list

  ```claim second
  revises: first
  given: x in R
  assert: x + 1 > x
  expect: holds
  ```

```python
print(1)
```
"""
REFUTED = Verdict(
    "first",
    "refuted",
    "exact witness",
    "x=0: 1 != 0",
    "witness",
    witness=(("x", "0"),),
    statement="given: x in R | assert: x + 1 == x",
    suggestions=("x > x + 1", "kernel: fused"),
    line=5,
)
HOLDS = Verdict("second", "holds", "proved", "linear arithmetic", "linear", revises="first", line=12)


class Page(HTMLParser):
    """Tags, attributes and text of a page; `text` holds what a reader sees."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self.text = ""
        self.ids: list[str] = []
        self._open: list[str] = []
        self.feed(html)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        self.ids += [value or "" for name, value in attrs if name == "id"]
        if tag not in ("meta", "br", "hr", "img", "link", "input"):
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag
        self.text += " " if tag in ("dt", "dd") else ""

    def handle_data(self, data: str) -> None:
        if "style" not in self._open:
            self.text += data


def page(markdown: str, *verdicts: Verdict, title: str = "answer.md") -> Page:
    return Page(annotated(markdown, markdown_claims(markdown), verdicts, title=title))


def test_each_verdict_stands_beside_its_claim() -> None:
    found = page(ANSWER, REFUTED, HOLDS)
    text = re.sub(r"\s+", " ", found.text)
    assert "Text with stress. first line 5 given:" in text
    assert "assert: x + 1 == x ✗ refuted exact witness x=0: 1 != 0 Counterexample x 0" in text
    assert "A list second line 12 revises: first" in text
    assert "✓ holds proved linear arithmetic" in text
    assert "2 claims, each executed: 1 holds, 1 refuted, 0 inconclusive." in text
    assert "print(1)" in text
    assert "Read as given: x in Rassert: x + 1 == x" in text  # on two lines


def test_what_would_help_is_in_the_language_of_claims() -> None:
    assert "It would hold with\n    assume: x > x + 1\nkernel: fused\n" in page(ANSWER, REFUTED, HOLDS).text


def test_expectations_are_told() -> None:
    assert "As expected" not in page(ANSWER, REFUTED, HOLDS).text
    expected = Verdict("first", "refuted", "exact witness", "x=0", expect="refuted")
    assert "As expected" in page(ANSWER, expected, HOLDS).text
    missed = Verdict("first", "holds", "proved", "", expect="refuted")
    assert "Not as expected: refuted" in page(ANSWER, missed, HOLDS).text


def test_a_correction_shows_what_changed() -> None:
    html = annotated(ANSWER, markdown_claims(ANSWER), [REFUTED, HOLDS])
    assert re.findall(r'<span class="(gone|new|same)">. (.*)</span>', html) == [
        ("same", "given: x in R"),
        ("same", "assert: x + 1 == x"),
        ("same", "given: x in R"),
        ("gone", "assert: x + 1 == x"),
        ("new", "assert: x + 1 &gt; x"),
    ]
    text = page(ANSWER, REFUTED, HOLDS).text
    assert "1 statement was corrected." in text
    assert "corrected" not in page(ANSWER, REFUTED, Verdict("second", "holds", "proved", "")).text


def cards(**revises: str) -> list[Card]:
    made = []
    for line, (id, before) in enumerate(revises.items(), start=1):
        by = tuple(other for other, earlier in revises.items() if earlier == id and other != id)
        made.append(Card(Stated(id, "assert: 1 == 1", line), Verdict(id, "holds", "", "", revises=before or None), by))
    return made


def ids(found: list[Card]) -> list[list[str]]:
    return [[attempt.card.stated.id for attempt in chain] for chain in corrections(found)]


def test_attempts_are_chained_from_the_first_to_the_last() -> None:
    assert ids(cards(a="", b="a", c="b", d="")) == [["a", "b", "c"]]
    assert ids(cards(b="a", a="")) == [["a", "b"]]
    assert ids(cards(a="", b="a", c="a")) == [["a", "b"], ["a", "c"]]


def test_odd_links_end() -> None:
    assert ids(cards(a="b", b="a")) == []
    assert ids(cards(a="a")) == []
    assert ids(cards(a="b", b="a", c="b")) == [["a", "b", "c"]]
    assert ids(cards(a="elsewhere")) == []
    lost = Verdict("second", "holds", "proved", "", revises="elsewhere")
    assert "Revises elsewhere (not on this page)" in page(ANSWER, REFUTED, lost).text


def test_what_has_no_fence_is_said_at_the_top() -> None:
    stated = [Stated("document", "", 1, "", "longer than 1,000,000 characters")]
    [verdict] = [Verdict("document", "malformed", "", stated[0].error, line=1)]
    assert "longer than 1,000,000 characters" in Page(annotated("text", stated, [verdict])).text


ATTACKS = [
    "<script>alert(1)</script>",
    "<img src=x onerror=alert(1)>",
    "![picture](http://example.org/x.png)",
    "![<script>alert(1)</script>](x.png)",
    "[link](javascript:alert(1))",
    "[link](data:text/html;base64,PHNjcmlwdD4=)",
    "<style>body{display:none}</style>",
    "</pre></div><iframe src=//example.org></iframe>",
    "{{ 7*7 }}{% raw %}",
    '"><svg onload=alert(1)>',
    "`</code><script>alert(1)</script>`",
    "&lt;script&gt;",
]
TAGS = (
    "html head meta title style body header main footer section div p h1 h2 span ul ol li a b em pre code br "
    "details summary dl dt dd"
)
ATTRIBUTES = {"lang", "charset", "name", "content", "http-equiv", "class", "id", "href"}


@pytest.mark.parametrize("attack", ATTACKS)
def test_nothing_in_an_answer_is_obeyed(attack: str) -> None:
    markdown = f"{attack}\n\n```claim a\n{attack}\n```\n\n```{attack.replace('`', '')}\n{attack}\n```\n"
    said = Verdict(
        "a",
        "refuted",
        attack,
        attack,
        attack,
        witness=((attack, attack),),
        statement=attack,
        suggestions=(attack,),
        numbers=((attack, attack),),
        revises=attack,
        versions=((attack, attack),),
    )
    found = page(markdown, said, title=attack)
    assert set(found.tags) <= set(TAGS.split())
    assert {name for name, _ in found.attributes} <= ATTRIBUTES
    links = [value for name, value in found.attributes if name == "href"]
    assert all(link.startswith("#line-") for link in links)
    assert found.text.count(attack) > 10  # in the claim and its verdict it is shown as it is


def test_signs_that_nobody_sees_are_written_out_in_claims_and_verdicts() -> None:
    markdown = "```claim a\nassert: 1 == 1 \u202e\x1b[31m\n```"
    found = page(markdown, Verdict("a", "refuted", "", "\u202e\x07", witness=(("\u200b", "\x9b"),)))
    for sign in "\u202e\x1b\x07\u200b\x9b":
        assert sign not in found.text
    assert r"assert: 1 == 1 \u202e\x1b[31m" in found.text


def test_the_page_stands_alone_and_fits_a_phone() -> None:
    html = annotated(ANSWER, markdown_claims(ANSWER), [REFUTED, HOLDS], title="answer.md")
    assert html.lstrip().startswith("<!doctype html>")
    assert "default-src 'none'; style-src 'unsafe-inline'" in html
    assert not re.search(r"src=|url\(|@import|<link|<script", html)
    assert "width=device-width" in html
    assert "prefers-color-scheme: dark" in html
    assert "max-width: 52rem" in html


def test_links_lead_to_claims_of_the_page() -> None:
    found = page(ANSWER, REFUTED, HOLDS)
    links = {value[1:] for name, value in found.attributes if name == "href"}
    assert links == {"line-5", "line-12", "corrections"}
    assert links <= set(found.ids)
    assert len(set(found.ids)) == len(found.ids)


def test_grades_that_occur_are_explained() -> None:
    text = page(ANSWER, REFUTED, Verdict("second", "holds", "sampled, alpha=1e-6, n=101", "")).text
    assert "a point violates the relation, in exact arithmetic" in text
    assert "sampled; wrong with at most this probability" in text
    assert "counted on the program" not in text
