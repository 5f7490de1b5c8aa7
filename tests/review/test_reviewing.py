"""A review compares what was run with what a person marked, and its page shows all of it and obeys none of it."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser

import pytest

from likewise.claims.documents import markdown_claims
from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict
from likewise.review import Mark, Review, page, review, review_of, text
from likewise.review.corrections import Card, corrections
from likewise.review.gist import gist
from likewise.review.reviewing import Link, Statement, export_marks, totals
from tests.review.payloads import ALL

ANSWER = """\
# Features

Text with *stress* and $x^2$.

```claim first
who: model A
noticed: nobody
given: x in R
assert: x + 1 == x
```

- A list

  ```claim second
  revises: first
  who: model B
  given: x in R
  assert: x + 1 > x
  ```

```python
print(1)
```
"""
REFUTED = Verdict(
    "first",
    "refuted",
    "exact witness",
    "x=0: x + 1 = 1 != 0; exact value x + 1; true for x=2",
    "witness",
    witness=(("x", "0"),),
    statement="given: x in R | assert: x + 1 == x",
    suggestions=("x == 2", "kernel: fused"),
    line=5,
    exact="x + 1",
)
HOLDS = Verdict("second", "holds", "proved", "linear arithmetic", "linear", revises="first", line=14)


def made(*marks: Mark, first: Verdict = REFUTED, second: Verdict = HOLDS, answer: str = ANSWER) -> Review:
    return review_of(answer, markdown_claims(answer), [first, second], marks, name="answer.md")


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
        self.text += " " if tag in ("dt", "dd", "p") else ""

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self._open):
            self.text += data


def shown(found: Review) -> str:
    return re.sub(r"\s+", " ", Page(page(found)).text)


def test_an_answer_is_checked_and_compared() -> None:
    found = review(
        "```claim sum\nassert: 1 + 1 == 3\n```\n\n```claim one\nassert: 1 == 1\n```\n", [Mark(1, 1, "right")]
    )
    assert [each.status.label for each in found.statements] == ["refuted", "holds, arithmetic"]
    assert [each.words for each in found.disagreements] == ["Marked right, but refuted: left 2, right 3."]
    assert found.summary.whole.first_error == 1


def test_person_and_run_differ_where_one_says_right_and_the_other_wrong() -> None:
    def differ(*marks: Mark) -> list[int]:
        return [each.line for each in made(*marks).disagreements]

    assert differ(Mark(5, 1, "right")) == [5]
    assert differ(Mark(5, 1, "praise")) == [5]
    assert differ(Mark(5, 1, "wrong")) == []
    assert differ(Mark(5, 1, "unclear")) == []
    assert differ(Mark(14, 1, "wrong")) == [14]
    assert differ(Mark(14, 1, "right")) == []
    assert differ(Mark(5, 0, "right")) == [5]  # of the passage around it
    assert differ(Mark(5, 0, "right"), Mark(5, 1, "wrong")) == []  # its own mark counts
    assert differ(Mark(12, 0, "wrong")) == []  # a passage may be wrong otherwise
    open_ = Verdict("first", "inconclusive", "undecided", "")
    assert made(Mark(5, 1, "right"), first=open_).disagreements == ()


def test_noticed_is_what_somebody_marked_or_a_label_says() -> None:
    assert made().summary.whole.unnoticed == 1
    assert made(Mark(5, 1, "wrong")).summary.whole.noticed == 1
    assert made(Mark(5, 0, "wrong")).summary.whole.noticed == 1
    assert made(Mark(5, 1, "right")).summary.whole.noticed == 0
    labelled = ANSWER.replace("noticed: nobody", "noticed: two readers")
    assert made(answer=labelled).summary.whole.noticed == 1


def test_the_summary_counts_and_says_it_in_words() -> None:
    found = made(Mark(5, 1, "right"), Mark(3, 0, "praise"))
    assert found.summary.words == (
        "answer.md: 2 statements, 2 understood, 2 decided. 1 holds, 1 is refuted, the first on line 5. "
        "Marks: 1 right, 1 praise; on 1 statement person and run differ. Of the refuted, 0 noticed, 1 by nobody."
    )
    assert found.summary.authors["model A"].refuted == 1
    assert found.summary.authors["model B"].refuted == 0
    assert review("no claims").summary.words == "answer: nothing in it could be checked."


def test_totals_of_any_claims_count_by_author() -> None:
    counted = totals(markdown_claims(ANSWER), [REFUTED, HOLDS])
    assert (counted["statements"], counted["refuted"], counted["unnoticed"]) == (2, 1, 1)
    assert {who: counts["refuted"] for who, counts in counted["who"].items()} == {"model A": 1, "model B": 0}


def test_json_is_plain_and_has_labels() -> None:
    data = json.loads(json.dumps(made(Mark(5, 1, "right", "no", "notation")).to_json()))
    assert data["schema"] == 1
    assert [each["who"] for each in data["statements"]] == ["model A", "model B"]
    assert [each["noticed"] for each in data["statements"]] == ["nobody", ""]
    assert data["statements"][0]["verdict"]["witness"] == {"x": "0"}
    assert data["marks"][0]["tag"] == "notation"
    assert data["disagreements"][0]["line"] == 5
    assert data["summary"]["who"]["model A"]["unnoticed"] == 1


def test_no_two_statuses_look_alike_without_colour() -> None:
    grades = [("holds", each) for each in ("proved", "counted", "arithmetic", "sampled, alpha=1e-6", "run")]
    grades += [("refuted", "exact witness"), ("malformed", "")]
    grades += [("inconclusive", each) for each in ("searched", "undecided", "late", "disagreement")]
    found = [Statement(1, 1, "x", claim="x", verdict=Verdict("a", name, grade, "")) for name, grade in grades]  # ty: ignore[invalid-argument-type]
    found += [Statement(1, 1, "x", reason="no"), Statement(1, 1, "x", links=(Link("contradicts", 7),))]
    found += [Statement(1, 1, "x", links=(Link("follows", 3),))]
    labels = [each.status.label for each in found]
    assert len(set(labels)) == len(labels)
    weak = [each.status.sign for each in found if each.status.name in ("sampled", "searched", "undecided", "unread")]
    assert "\N{CHECK MARK}" not in weak
    assert "contradicts line 7" in labels
    assert "no counterexample found" in labels


def test_text_for_a_terminal_has_every_statement() -> None:
    lines = text(made(Mark(5, 1, "right"))).splitlines()
    assert lines[0] == "5:1  ✗ refuted  first  x = 0: left 1, right 0. True: x + 1 >= x.  (✓ marked right)"
    assert lines[1].startswith("14:1  ✓ proved  second")
    assert lines[2] == "differs, line 5: Marked right, but refuted: x = 0: left 1, right 0."


def test_each_verdict_stands_beside_its_passage() -> None:
    words = shown(made())
    assert (
        "1✗ refuted first x = 0: left 1, right 0. True: x+1≥x. True if x=2 or kernel: fused. "
        "Nearest true statement x + 1 >= x Exact value x+1 Counterexample x = 0 Worked out x+1 = 1x = 0 True if"
        in words
    )
    assert "2✓ proved second linear arithmetic" in words
    assert "likewise check - <<'END' ```claim first who: model A noticed: nobody given: x in R" in words
    assert "by witness" in words
    assert "a point violates the relation, in exact arithmetic" in words


def test_marks_are_on_the_page_without_a_script() -> None:
    words = shown(made(Mark(5, 1, "right", "sure?\nyes", "notation"), Mark(3, 0, "wrong"), Mark(99, 0, "wrong", "old")))
    assert "✓ right notation: sure?yes" in words
    assert "Where person and run differ line 5: Marked right, but refuted" in words
    assert "Marks whose passage was changed line 99 then: ✗ wrong: old" in words


def test_expectations_are_told() -> None:
    expected = Verdict("first", "refuted", "exact witness", "x=0", expect="refuted")
    assert "Expected refuted, as found" in shown(made(first=expected))
    missed = Verdict("first", "holds", "proved", "", expect="refuted")
    assert "Expected refuted, not as found" in shown(made(first=missed))


def test_a_correction_shows_what_changed() -> None:
    html = page(made())
    assert ("gone", "assert: x + 1 == x") in re.findall(r'<span class="(gone|new|same)">. (.*)</span>', html)
    assert ("new", "assert: x + 1 &gt; x") in re.findall(r'<span class="(gone|new|same)">. (.*)</span>', html)
    assert "How statements were corrected" not in page(made(second=Verdict("second", "holds", "proved", "")))


def cards(**revises: str) -> list[Card]:
    built = []
    for line, (id, before) in enumerate(revises.items(), start=1):
        by = tuple(other for other, earlier in revises.items() if earlier == id and other != id)
        built.append(
            Card(ClaimSource(id, "assert: 1 == 1", line), Verdict(id, "holds", "", "", revises=before or None), by)
        )
    return built


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


def test_what_has_no_passage_is_said_at_the_top() -> None:
    stated = [ClaimSource("document", "", 1, "", "longer than 1,000,000 characters")]
    verdict = Verdict("document", "malformed", "", stated[0].error, line=1)
    assert "longer than 1,000,000 characters" in shown(review_of("", stated, [verdict]))


def test_the_page_stands_alone_and_fits_a_phone() -> None:
    html = page(made())
    assert html.lstrip().startswith("<!doctype html>")
    assert not re.search(r"\bsrc=|url\(|@import|<link", html)
    assert "width=device-width" in html
    assert "prefers-color-scheme: dark" in html
    assert "@media print" in html


def test_the_policy_lets_only_the_style_and_the_script_of_the_page_work() -> None:
    html = page(made())
    [policy] = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', html)
    assert "unsafe" not in policy
    for name, content in (
        ("style-src", html.partition("<style>")[2].partition("</style>")[0]),
        ("script-src", html.rpartition("<script>")[2].partition("</script>")[0]),
    ):
        digest = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert policy.startswith("default-src 'none'; ")
    assert "connect-src" not in policy
    assert "connect-src 'self'" in page(made(), live=True)


def test_links_lead_to_places_of_the_page() -> None:
    found = Page(page(made(Mark(5, 1, "right"))))
    links = {value[1:] for name, value in found.attributes if name == "href"}
    assert {"s1", "answer", "l5"} <= links
    assert links <= set(found.ids)
    assert len(set(found.ids)) == len(found.ids)


TAGS = """
html head meta title style body header nav main footer section div p h1 h2 h3 span ul ol li a b i em pre code br hr
script details summary dl dt dd button label select option textarea input kbd table thead tbody tr th td small math
mrow mi mn mo mtext msup msub strong blockquote s
"""


@pytest.mark.parametrize("payload", ALL[::12], ids=range(len(ALL[::12])))
def test_nothing_in_answers_verdicts_names_and_marks_is_obeyed(payload: str) -> None:
    said = Verdict(
        "a",
        "refuted",
        payload,
        payload,
        payload,
        witness=((payload, payload),),
        suggestions=(payload,),
        numbers=((payload, payload),),
        revises=payload,
        versions=((payload, payload),),
    )
    statement = Statement(
        1, 1, payload, payload, payload, payload, verdict=said, links=(Link(payload, 1, payload),), id="a"
    )
    bare = review_of("text", [], [], [], name=payload)
    whole = Review(payload, "text", bare.turns, (statement,), rows=bare.rows)
    marks = [Mark(1, 0, "wrong", payload[:4000], "", ""), Mark(7, 0, "wrong", payload[:4000], "", payload)]
    html = page(whole.with_marks(marks))
    found = Page(html)
    assert set(found.tags) <= set(TAGS.split())
    assert not [name for name, _ in found.attributes if name.startswith("on") or name in ("style", "src", "srcdoc")]
    assert all(value.startswith("#") for name, value in found.attributes if name == "href")
    assert html.count("<script") == 2
    assert html.count("</script") == 2


def test_marks_are_exported_in_three_forms() -> None:
    found = made(Mark(5, 1, "right", "so"), Mark(3, 0, "wrong"))
    assert "### line 5, column 1: right" in export_marks(found, ".md")
    assert len(json.loads(export_marks(found, ".json"))["marks"]) == 2
    [line] = export_marks(found, ".jsonl").splitlines()
    record = json.loads(line)
    assert record["steps"][1] == "Text with *stress* and $x^2$."
    assert record["label"] == 1
    with pytest.raises(ValueError, match="marks: file must be one of"):
        export_marks(found, ".txt")


CHAIN = """\
Let $a, b \\in \\mathbb{R}$.

$$
\\begin{aligned}
(a - b)^2 &= a^2 - 2ab + b^2 \\\\
&= a^2 + 2ab + b^2
\\end{aligned}
$$
"""


def test_a_display_with_a_refuted_step_shows_its_chip_too() -> None:
    shown = page(review(CHAIN, name="chain.md"))
    display = shown[shown.index('class="formula-display"') :]
    beside = display[: display.index('<div class="beside">')]
    assert re.findall(r'class="ref s-(\w+)"', beside) == ["exact", "refuted"]


def test_what_is_refuted_is_listed_with_its_formula() -> None:
    shown = page(review("So $1 + 1 = 3$, as was said.", name="short.md"))
    listed = shown[shown.index('id="wrong-title"') : shown.index("</nav>")]
    assert 'alttext="1 + 1 = 3"' in listed
    assert "left 2, right 3." in listed


def test_a_verdict_without_engine_and_versions_ends_its_sentence() -> None:
    shown = page(review("So $1 + 1 = 3$, as was said.", name="short.md"))
    decided = re.sub(r"<[^>]*>", "", shown[shown.index("<dt>Decided") :].partition("</dd>")[0])
    assert not decided.rstrip().endswith("with")
    assert "0 ns" not in decided
    assert "<dt>left</dt>" not in shown  # the sentence above has both sides


def test_a_passage_belongs_to_one_speaker() -> None:
    talk = "**User:** Is $1 + 1 = 3$ so?\n**Assistant:** You are right.\nYes.\n\n**User:**\n\n**Assistant:** Fine.\n"
    found = review(talk, name="talk.md")
    assert [(row.first, row.source.split(":**")[0]) for row in found.rows] == [
        (1, "**User"),
        (2, "**Assistant"),
        (5, "**User"),
        (7, "**Assistant"),
    ]
    shown = page(found)
    spoken = [each.partition("</section>")[0] for each in shown.split('<section class="turn')[1:]]
    assert "You are right." in spoken[1]
    assert "Is " not in spoken[1]
    assert len(spoken) == 3, "a turn without words is not shown"
    assert "<span>line 1</span>" in shown


def test_the_counterexample_of_an_earlier_line_is_put_in_numbers() -> None:
    detail = "D=3 q=(1,1,1): 10 != 16 (needed in line 836)"
    found = gist(Verdict("a", "refuted", "exact witness", detail))
    assert found is not None
    assert found.words == "D = 3, q = (1, 1, 1): left 10, right 16 (needed in line 836)."


def test_a_stacked_table_names_its_columns_without_their_chips() -> None:
    table = "| a | b | c | so $1 + 1 = 2$ |\n|---|---|---|---|\n| 1 | 2 | 3 | 4 |\n"
    assert 'data-column="so 1+1=2"' in page(review(table, name="a.md"))


@pytest.mark.parametrize(
    "names", [("# User", "# Assistant"), ("**User**", "**Claude**"), ("## You said", "## ChatGPT said:")]
)
def test_headings_without_a_colon_name_speakers_and_are_not_shown_twice(names: tuple[str, str]) -> None:
    user, assistant = names
    found = review(f"{user}\n\nIs it so?\n\n{assistant}\n\nYes, $1 + 1 = 2$.\n", name="talk.md")
    assert [(turn.speaker, turn.first) for turn in found.turns] == [("user", 1), ("assistant", 5)]
    words = shown(found)
    assert words.count(user.strip("#* ")) == 0
    assert words.count(assistant.strip("#* :")) == 0


def test_a_section_called_like_a_speaker_is_no_turn() -> None:
    assert len(review("# Model\n\nWords.\n\n# User\n\nMore.\n").turns) == 1


def test_taking_something_back_at_once_makes_no_empty_turn() -> None:
    talk = "User:\nAre you sure?\n\nAssistant:\n\nYou are right, I made an error: $1 + 1 = 2$.\n"
    assert [(turn.speaker, turn.first) for turn in review(talk).turns] == [("user", 1), ("assistant", 4)]
    after = talk.replace("Assistant:\n", "Assistant:\nSo $2 + 2 = 5$.\n")
    assert [turn.first for turn in review(after).turns] == [1, 4, 7]
