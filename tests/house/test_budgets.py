"""Files, functions and signatures stay short enough to read."""

from pathlib import Path

import pytest

from tests.house import guards


@pytest.mark.parametrize("path", guards.sources(), ids=guards.module_name)
def test_source_keeps_the_budgets(path: Path) -> None:
    assert guards.over_budget(str(path.relative_to(guards.ROOT)), path.read_text()) == []


def test_exemptions_name_what_exists() -> None:
    for exemption in guards.EXEMPT:
        file, _, function = exemption.partition(":")
        assert f"def {function}" in (guards.ROOT / file).read_text()


LONG_FILE = "x = 1\n" * (guards.FILE_LINES + 1)
LONG_FUNCTION = "def f():\n" + "    x = 1\n" * guards.FUNCTION_LINES
MANY_OPTIONS = "def f(q, a=1, *, " + ", ".join(f"o{i}=0" for i in range(guards.OPTIONS)) + "): pass"


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (LONG_FILE, "has 401 lines"),
        (LONG_FUNCTION, "has 61 lines"),
        (MANY_OPTIONS, "has 9 options"),
        ("class A:\n    def f(self, **rest): pass", "takes **rest"),
        ("def f():\n    print(1)", "prints"),
    ],
)
def test_a_broken_budget_is_found(text: str, complaint: str) -> None:
    [found] = guards.over_budget("likewise/room.py", text)
    assert complaint in found


@pytest.mark.parametrize(
    "text",
    [
        LONG_FILE.removesuffix("x = 1\n"),
        LONG_FUNCTION.removesuffix("    x = 1\n"),
        MANY_OPTIONS.replace("a=1", "a"),
        "def f(*rest):\n    return rest",
    ],
)
def test_the_budget_itself_may_be_spent(text: str) -> None:
    assert guards.over_budget("likewise/room.py", text) == []


def test_a_door_may_print() -> None:
    assert guards.over_budget("likewise/cli/attention.py", "print(1)") == []


@pytest.mark.parametrize("path", guards.texts(), ids=lambda path: str(path.relative_to(guards.ROOT)))
def test_text_has_no_loose_ends(path: Path) -> None:
    assert guards.loose_ends(path.name, path.read_text()) == []


@pytest.mark.parametrize(
    "line", ["# TO" + "DO later", "open('" + "/home" + "/me/x')", "see " + "/tmp" + "/x", "FIX" + "ME"]
)
def test_a_loose_end_is_found(line: str) -> None:
    assert len(guards.loose_ends("file", line)) == 1


def test_relative_paths_are_no_loose_ends() -> None:
    assert guards.loose_ends("file", "../shared/data, docs/tmp/x, a/home/b") == []
