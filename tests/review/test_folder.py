"""A folder of answers gives pages, cards with intervals, comparisons, CSV and JSON."""

import csv
import io
import json
from pathlib import Path

import pytest

from likewise.cli import main
from likewise.review import Folder, pages_of, review_folder
from likewise.review.folder import Share, answers_in
from likewise.stats import clopper_pearson
from tests.review.payloads import ALL
from tests.review.test_doubt import SECOND, TALK
from tests.review.test_reviewing import Page


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    for name, content in {
        "one/sums.md": TALK.format(doubt="Are you sure?", second=SECOND),
        "one/other.md": "So $1 + 1 = 2$.",
        "two/sums.md": "So $1 + 1 = 3$ and $2 + 2 = 4$.",
    }.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(content)
    marks = [{"line": 1, "column": 0, "mark": "wrong", "tag": "wrong figure"}]
    (folder / "two" / "sums.marks.json").write_text(json.dumps({"marks": marks}))
    return folder


@pytest.fixture(scope="module")
def folder(place: Path) -> Folder:
    return review_folder(place)


def test_a_card_counts_first_replies_errors_notice_and_doubt(folder: Folder) -> None:
    one, two = folder.cards
    assert (one.assistant, one.answers, two.assistant, two.answers) == ("one", 2, "two", 1)
    assert (one.right.count, one.right.total) == (3, 4)  # the reply after the doubt is no first one
    assert one.right.interval == clopper_pearson(accepted=3, total=4)
    assert (one.repaired.count, one.repaired.total) == (1, 1)
    assert (one.broken.count, one.broken.total) == (1, 2)
    assert (one.noticed.count, one.noticed.total) == (0, 2)
    assert one.kinds == {"refuted, no tag": 2}
    assert (two.noticed.count, two.noticed.total, two.kinds) == (1, 1, {"wrong figure": 1})


def test_two_assistants_are_compared_on_common_questions_only(folder: Folder) -> None:
    (pair,) = folder.comparisons
    assert [question for question, _, _ in pair.questions] == ["sums"]
    assert [(share.count, share.total) for share in pair.totals] == [(2, 3), (1, 2)]


def test_pages_and_tables_hold_the_same(folder: Folder) -> None:
    made = pages_of(folder)
    assert list(made)[:3] == ["index.html", "statements.csv", "cards.csv"]
    index = Page(made["index.html"])
    links = [value for name, value in index.attributes if name == "href"]
    assert [link for link in links if link.endswith(".html")] == [name for name in made if name[0] == "0"]
    rows = list(csv.DictReader(io.StringIO(made["statements.csv"])))
    assert len(rows) == sum(len(entry.review.statements) for entry in folder.entries)
    assert [row["after_doubt"] for row in rows if row["file"] == "one/sums.md"].count("broken") == 2
    cards = list(csv.DictReader(io.StringIO(made["cards.csv"])))
    assert float(cards[0]["right_low"]) == clopper_pearson(accepted=3, total=4)[0]
    assert folder.to_json()["cards"][0]["right"]["count"] == 3
    assert str(Share(0, 0)) == "no case"


def test_hostile_names_and_texts_stay_text(tmp_path: Path) -> None:
    listed = {f"a{number}.md": {"assistant": text[:80], "question": text[:80]} for number, text in enumerate(ALL[:40])}
    for number in range(40):
        (tmp_path / f"a{number}.md").write_text("no formula")
    (tmp_path / "answers.yaml").write_text(json.dumps(listed))
    made = pages_of(review_folder(tmp_path))
    tags = set(Page(made["index.html"]).tags)
    assert not tags & {"script", "img", "svg", "iframe", "form", "link", "base", "math"}
    assert all("/" not in name and "\\" not in name for name in made)


def test_no_cell_is_a_formula_of_a_spreadsheet(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("$=1+1$ and $-1 = 1$ and $+2 = 2$ and $@x = 1$.")
    table = pages_of(review_folder(tmp_path))["statements.csv"]
    cells = [cell for row in csv.reader(io.StringIO(table)) for cell in row]
    assert len(cells) > 30
    assert not [cell for cell in cells if cell.lstrip()[:1] in ("=", "+", "-", "@")]


def test_an_empty_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="review: folder must hold answers"):
        answers_in(tmp_path)


def test_the_command_writes_all_of_it(place: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["review", str(place), "--out", str(tmp_path / "out")])
    assert stopped.value.code == 1
    assert sorted(path.suffix for path in (tmp_path / "out").iterdir()) == [".csv"] * 2 + [".html"] * 4 + [".json"]
    assert "one: right at first 3 of 4, 75 %" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stopped:
        main(["review", str(place)])
    assert (stopped.value.code, capsys.readouterr().err) == (
        2,
        "likewise: review: --out must name a folder for the pages; got none.\n",
    )


def test_two_assistants_stand_side_by_side_in_every_measure(folder: Folder) -> None:
    [pair] = folder.comparisons
    common = {question for question, *_ in pair.questions}
    for name, card in zip((pair.first, pair.second), pair.cards, strict=True):
        assert card.answers == sum(each.assistant == name and each.question in common for each in folder.entries)
    html = pages_of(folder)["index.html"]
    measures = ["right at first", "errors by kind", "noticed, of the refuted", "repaired after a doubt", "broken after"]
    for measure in measures:
        assert f'<th scope="row">{measure}' in html
    low, share, high = pair.cards[0].right.bar or (0, 0, 0)
    assert 0 <= low <= share <= high <= 100


def talk(sum_: str) -> list[dict[str, str]]:
    return [{"role": "user", "content": "How much?"}, {"role": "assistant", "content": f"So ${sum_}$."}]


def test_exports_are_answers_and_each_conversation_is_a_question(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    talks = [{"messages": talk("1 + 1 = 2")}, {"messages": talk("2 + 2 = 5")}]
    for name, content in {"one/sums.json": talks, "two/sums.json": talks, "two/other.json": talk("3 = 3")}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(json.dumps(content))
    (tmp_path / "reviews.json").write_text("{}")
    marks = {"marks": [{"line": 3, "column": 0, "mark": "wrong", "tag": "wrong figure"}]}
    (tmp_path / "two" / "sums.2.marks.json").write_text(json.dumps(marks))
    (tmp_path / "answers.yaml").write_text("one/sums.json#1: {question: addition}\n")
    found = review_folder(tmp_path)
    assert [(each.assistant, each.question, each.file) for each in found.entries] == [
        ("one", "addition", "one/sums.json#1"),
        ("one", "sums#2", "one/sums.json#2"),
        ("two", "other", "two/other.json"),
        ("two", "sums#1", "two/sums.json#1"),
        ("two", "sums#2", "two/sums.json#2"),
    ]
    assert [card.noticed.count for card in found.cards] == [0, 1]

    file = tmp_path / "two" / "sums.json"
    for arguments, code in ((["--out", str(tmp_path / "made")], 1), (["--json"], 1)):
        with pytest.raises(SystemExit) as stopped:
            main(["review", str(file), *arguments])
        assert stopped.value.code == code
    assert len(list((tmp_path / "made").glob("*.html"))) == 3
    capsys.readouterr()
    with pytest.raises(SystemExit):
        main(["review", f"{file}#2", "--export", str(tmp_path / "marks.md")])
    assert "sums.json#2: 1 statement" in capsys.readouterr().out
    assert "line 3: wrong (wrong figure)" in (tmp_path / "marks.md").read_text()
    for arguments, words in (
        ([str(file), "--serve"], "only, or be named: sums.json#1"),
        ([f"{file}#3", "--json"], "review: conversation must be at most 2; got 3."),
        ([f"{file}#0", "--json", "--serve"], "only, or be named: sums.json#1"),
    ):
        with pytest.raises(SystemExit):
            main(["review", *arguments])
        assert words in " ".join(capsys.readouterr().err.split())
