"""Every source follows the house's rules; a rule that finds something names the file and the line."""

import pytest

from tests.house import guards


def test_sources_have_plain_signatures() -> None:
    found = [
        complaint
        for path in guards.sources()
        for complaint in guards.odd_signatures(str(path.relative_to(guards.ROOT)), path.read_text())
    ]
    assert found == []


def test_texts_have_no_loose_ends() -> None:
    found = [
        complaint
        for path in guards.texts()
        for complaint in guards.loose_ends(str(path.relative_to(guards.ROOT)), path.read_text())
    ]
    assert found == []


def test_sources_decide_by_fields_not_by_words() -> None:
    found = [
        complaint
        for path in guards.sources()
        for complaint in guards.decisions_on_words(str(path.relative_to(guards.ROOT)), path.read_text())
    ]
    assert found == []


@pytest.mark.parametrize(
    "line",
    [
        "if 'deadline' in verdict.detail: f()",
        "if 'deadline' not in str(error): f()",
        "late = found.reason.startswith('over')",
        "late = re.search('over', outcome.why)",
    ],
)
def test_a_decision_on_words_is_found(line: str) -> None:
    text = f"try:\n    f()\nexcept ValueError as error:\n    {line}"
    assert guards.decisions_on_words("file.py", text) == ["file.py:4 decides by printed words; give the result a field"]


@pytest.mark.parametrize("line", ["if verdict.grade == 'late': f()", "if '/' in str(node): f()", "print(found.detail)"])
def test_a_decision_on_a_field_is_left_alone(line: str) -> None:
    assert guards.decisions_on_words("file.py", line) == []


def test_exemptions_name_what_exists() -> None:
    for exemption in guards.EXEMPT:
        file, _, function = exemption.partition(":")
        assert f"def {function}" in (guards.ROOT / file).read_text()


MANY_OPTIONS = "def f(q, a=1, *, " + ", ".join(f"o{i}=0" for i in range(guards.OPTIONS)) + "): pass"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (MANY_OPTIONS, "f has 9 options"),
        ("class A:\n    def f(self, **rest): pass", "f takes **rest"),
        ("def f():\n    print(1)", "room.py:2 prints"),
    ],
)
def test_an_odd_signature_is_found(text: str, complaint: str) -> None:
    [found] = guards.odd_signatures("likewise/room.py", text)
    assert complaint in found


@pytest.mark.parametrize("text", [MANY_OPTIONS.replace("a=1", "a"), "def f(*rest):\n    return rest"])
def test_a_plain_signature_is_left_alone(text: str) -> None:
    assert guards.odd_signatures("likewise/room.py", text) == []


def test_a_door_may_print() -> None:
    assert guards.odd_signatures("likewise/cli/attention.py", "print(1)") == []


@pytest.mark.parametrize(
    "line", ["# TO" + "DO later", "open('" + "/home" + "/me/x')", "see " + "/tmp" + "/x", "FIX" + "ME"]
)
def test_a_loose_end_is_found(line: str) -> None:
    assert len(guards.loose_ends("file", line)) == 1


def test_relative_paths_are_no_loose_ends() -> None:
    assert guards.loose_ends("file", "../shared/data, docs/tmp/x, a/home/b") == []
