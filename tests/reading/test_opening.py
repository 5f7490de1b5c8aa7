"""Files, folders and conversations: who speaks, what a person corrects, and what statements say about each other."""

import json
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from likewise.cli import app
from likewise.reading import check_answer, read_answer
from likewise.reading.corrections import corrections
from likewise.reading.opening import conversations, files_of, opened, spoken

USER, ASSISTANT = "Is $1 + 1 = 3$?", "So $1 + 1 = 2$, and $3 \\cdot 3 = 8$."


def node(parent: str, role: str, said: str) -> dict[str, Any]:
    return {
        "parent": parent,
        "message": {"author": {"role": role}, "content": {"content_type": "text", "parts": [said]}},
    }


BRANCHES = {
    "root": {"message": None, "parent": None},
    "ask": node("root", "user", USER),
    "tool": node("ask", "tool", "$1 = 2$"),
    "other": node("ask", "assistant", "$9 = 10$"),
    "said": node("tool", "assistant", ASSISTANT),
}
PARTS = [{"type": "text", "text": ASSISTANT}]
EXPORTS: dict[str, Any] = {
    "chatgpt": [{"title": "one", "mapping": BRANCHES, "current_node": "said"}],
    "claude": {"chat_messages": [{"sender": "human", "text": USER}, {"sender": "assistant", "content": PARTS}]},
    "messages": [
        {"role": "system", "content": "$1 = 2$"},
        {"role": "user", "content": USER},
        {"role": "assistant", "content": PARTS},
    ],
    "object": {"messages": [{"role": "user", "content": USER}, {"role": "assistant", "content": ASSISTANT}]},
}


@pytest.mark.parametrize("name", EXPORTS)
def test_every_export_gives_the_same_conversation(name: str) -> None:
    assert list(conversations(json.dumps(EXPORTS[name]))) == [[("user", USER), ("assistant", ASSISTANT)]]


def test_the_assistant_of_a_conversation_is_judged_and_the_user_is_not(tmp_path: Path) -> None:
    path = tmp_path / "talk.json"
    path.write_text(json.dumps(EXPORTS["chatgpt"] * 2), encoding="utf-8")
    first, second = opened(path, path.read_text(encoding="utf-8"))
    assert (first.name, second.name) == (f"{path}#1", f"{path}#2")
    found = check_answer(first.text, turns=first.turns).statements
    assert [(each.speaker, each.verdict, each.line) for each in found] == [
        ("user", None, 1),
        ("assistant", "holds", 3),
        ("assistant", "refuted", 3),
    ]


@pytest.mark.parametrize(
    "headings", [("User:", "Assistant:"), ("You said:", "ChatGPT said:"), ("**Human:**", "**Claude:**")]
)
def test_headings_name_the_speakers(tmp_path: Path, headings: tuple[str, str]) -> None:
    text = f"{headings[0]}\n{USER}\n{headings[1]}\n{ASSISTANT}\n"
    (only,) = opened(tmp_path / "talk.md", text)
    assert [each.speaker for each in only.read().statements] == ["user", "assistant", "assistant"]


@pytest.mark.parametrize("text", ["{", "[]", "{}", "[1, 2]", '{"mapping": {"a": {"parent": "a"}}}', "[" * 100_000])
def test_what_is_no_conversation_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(ValueError, match="check: talk must"):
        list(conversations(text, "talk"))


def test_a_folder_ends_with_totals_of_files_and_speakers(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("So $2 + 2 = 5$.", encoding="utf-8")
    (tmp_path / "b.json").write_text(json.dumps(EXPORTS["claude"]), encoding="utf-8")
    (tmp_path / ".hidden.md").write_text("So $2 + 2 = 6$.", encoding="utf-8")
    assert [path.name for path in files_of(tmp_path)] == ["a.md", "b.json"]
    ran = CliRunner().invoke(app, ["check", str(tmp_path)])
    assert ran.exit_code == 1
    assert "2 answers: 4 formulas, 4 statements, 3 claims, 3 decided, 2 refuted" in ran.output
    assert "assistant: 2 statements, 2 claims, 2 decided, 1 refuted" in ran.output


def test_a_correction_says_what_a_name_is_and_survives_a_second_run(tmp_path: Path) -> None:
    path = tmp_path / "answer.md"
    text = "Then\n$$\\|x - y\\|^2 = \\|x\\|^2 + \\|y\\|^2 - 2 x y$$"
    assert read_answer(text).statements[0].refusal == "a product of two columns"
    path.with_name("answer.readings.yaml").write_text("- {name: x, type: R}\n- {name: y, type: R}\n", encoding="utf-8")
    for _ in range(2):
        (only,) = opened(path, text)
        found = check_answer(only.text, corrections=only.corrections).statements[0]
        assert found.verdict == "holds"
        assert any("as corrected" in each for each in found.bindings)


def test_a_correction_changes_the_role_of_a_line() -> None:
    text = "So $2 + 2 = 5$.\nAnd $1 + 1 = 3$."
    found = check_answer(text, corrections=corrections("- {line: 1, role: hypothesis}")).statements
    assert [each.verdict for each in found] == [None, "refuted"]


UNDER_CONDITIONS = [
    "Let $x \\in \\mathbb{R}$.\n\nFor $x > 0$ we have $\\sqrt{x^2} = x$.",
    "Let $q, k \\in \\mathbb{R}^D$.\n\nIf $\\|q\\| = 1$ and $\\|k\\| = 1$ then $\\|q - k\\|^2 = 2 - 2 q^T k$.",
]


@pytest.mark.parametrize("role", ["assertion", "definition", "requirement"])
@pytest.mark.parametrize("text", UNDER_CONDITIONS)
def test_a_role_for_a_line_leaves_its_conditions(text: str, role: str) -> None:
    found = check_answer(text, corrections=corrections(f"- {{line: 3, role: {role}}}")).statements
    assert {each.role for each in found[1:-1]} == {"condition"}
    assert found[-1].role == role
    assert all(each.verdict != "refuted" for each in found)
    assert role == "definition" or found[-1].verdict == "holds"


@pytest.mark.parametrize("role", ["assertion", "hypothesis", "question"])
@pytest.mark.parametrize("text", UNDER_CONDITIONS)
def test_nothing_is_refuted_because_a_person_says_that_a_condition_is_none(text: str, role: str) -> None:
    column = next(each.column for each in read_answer(text).statements if each.role == "condition")
    found = check_answer(text, corrections=corrections(f"- {{line: 3, column: {column}, role: {role}}}")).statements
    assert [each.role for each in found if (each.line, each.column) == (3, column)] == [role]
    assert found[-1].verdict == "inconclusive"
    assert "conditions that may be meant" in found[-1].detail


def test_a_role_for_a_column_is_for_that_formula() -> None:
    text = "Let $a, b \\in \\mathbb{R}$.\n\nHere $b = a + 1$ and $b^2 = a^2 + 2a + 1$, and $b = 2$."
    column = read_answer(text).statements[1].column
    for where in (f"column: {column}, ", ""):  # for the line, too, only what can define something is a definition
        marks = corrections(f"- {{line: 3, {where}role: definition}}\n")
        found = check_answer(text.replace(", and $b = 2$", ""), corrections=marks).statements[1:]
        assert [(each.role, each.verdict) for each in found] == [("definition", None), ("assertion", "holds")]
    both = f"- {{line: 3, column: {column}, role: question}}\n- {{line: 3, role: hypothesis}}"
    found = check_answer(text, corrections=corrections(both)).statements[1:]
    assert [each.role for each in found] == ["question", "hypothesis", "hypothesis"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("a: 1", "be a list"),
        ("- {line: 1}", "correct a role"),
        ("- {line: 1, role: joke}", "be one of"),
        ("- {names: x}", "have the fields"),
        ("- {name: x, type: Q}", "be R, R"),
        ("- {line: 1, column: -1, role: question}", "be a column"),
        ("- {line: 1, column: 2, program: x}", "be a column"),
    ],
)
def test_a_wrong_correction_says_what_it_must_be(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        corrections(text)


def test_a_statement_that_contradicts_an_earlier_one_names_its_line() -> None:
    text = "Define $f(q, k) = (q^T k)^2$.\n\nThen $f(q, k) = (q^T k + 1)^2$."
    assert check_answer(text).statements[-1].findings == ("contradicts line 1",)


def test_a_box_that_differs_from_its_derivation_contradicts_it() -> None:
    text = "We get $x = 12 + 1 = 13$.\n\n$$\\boxed{x = 14}$$"
    assert check_answer(text).statements[-1].findings == ("contradicts line 1",)
    assert check_answer(text.replace("14", "13")).statements[-1].findings == ()


def test_a_step_after_a_wrong_one_says_what_it_follows_from() -> None:
    text = "\\[ \\begin{aligned} (1+2)^2 &= 10 \\\\ &= 5 + 5 \\end{aligned} \\]"
    found = check_answer(text).statements
    assert [each.verdict for each in found] == ["refuted", "holds"]
    assert found[1].findings == ("follows from line 1, which is refuted",)


def test_lettered_parts_without_an_answer_are_named() -> None:
    talk = [
        ("user", "(a) What is $1+1$?\n(b) And $2+2$?\n(c) Why?"),
        ("assistant", "(a) $1+1=2$\n\n(b)\n\n(c) Because."),
    ]
    text, turns = spoken(talk)
    parts = read_answer(text, turns=turns).parts
    assert [(part.label, bool(part.answered)) for part in parts] == [("a", True), ("b", False), ("c", True)]
