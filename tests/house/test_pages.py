"""What the pages show is run."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import guards

PAGES = sorted([*guards.ROOT.glob("*.md"), *guards.ROOT.glob("docs/**/*.md")])
TARGETS = set(re.findall(r"^([a-z-]+):", (guards.ROOT / "Makefile").read_text(), flags=re.MULTILINE))


def verbs() -> set[str]:
    from likewise.cli import app

    commands = {command.name or getattr(command.callback, "__name__", "") for command in app.registered_commands}
    return commands | {group.name or "" for group in app.registered_groups}


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_code_blocks_run(page: Path) -> None:
    assert guards.failing_blocks(page.name, page.read_text()) == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page: Path) -> None:
    assert guards.undefined_commands(page.read_text(), TARGETS, verbs()) == []


def test_files_that_the_architecture_names_exist() -> None:
    page = (guards.ROOT / "ARCHITECTURE.md").read_text()
    named = set(re.findall(r"\b(?:likewise|tests|tools)/[\w/]+(?:\.\w+)?", page))
    assert len(named) > 30
    assert [name for name in sorted(named) if not (guards.ROOT / name).exists()] == []


def test_the_readme_has_an_example_and_the_two_commands() -> None:
    readme = (guards.ROOT / "README.md").read_text()
    assert guards.python_blocks(readme)
    assert "make tour" in readme
    assert "make test" in readme


@pytest.mark.slow
def test_the_answer_of_the_readme_is_checked_as_shown(tmp_path: Path) -> None:
    readme = (guards.ROOT / "README.md").read_text(encoding="utf-8")
    (commands,) = [block for block in guards.shell_blocks(readme) if "likewise check answer.md" in block]
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    run = subprocess.run(
        ["sh", "-c", commands], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
    )
    assert run.returncode == 1, run.stderr
    assert f"```text\n{run.stdout}```" in readme


@pytest.mark.full
def test_the_commands_of_the_readme_run_one_after_the_other(tmp_path: Path) -> None:
    """All but the installation, which runs this test."""
    blocks = guards.shell_blocks((guards.ROOT / "README.md").read_text(encoding="utf-8"))
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    commands = [block for block in blocks if not block.startswith("pip install")]
    assert len(commands) >= 5
    for block in commands:
        done = subprocess.run(
            ["sh", "-e", "-c", block], cwd=tmp_path, env=os.environ | {"PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == ("answer.md" in block), f"{block}\n{done.stdout[-500:]}\n{done.stderr[-500:]}"


def test_a_failing_block_is_found() -> None:
    page = "```python\nx = 1\n```\ntext\n```python\nassert x == 2\n```\n```python\n>>> x\n3\n```\n"
    raised, differs = guards.failing_blocks("page", page)
    assert "AssertionError" in raised
    assert "Expected:\n    3" in differs


def test_blocks_share_their_names() -> None:
    page = "```python\n>>> x = 1\n>>> x\n1\n```\n```python\ny = x + 1\n```\n```python\n>>> y\n2\n```\n"
    assert guards.failing_blocks("page", page) == []


def test_an_unknown_command_is_found() -> None:
    page = "```sh\nmake tour\nmake coffee\nlikewise dance --now\n```\n"
    assert guards.undefined_commands(page, {"tour"}, {"tour"}) == [
        "make coffee: there is no coffee",
        "likewise dance --now: there is no dance",
    ]
