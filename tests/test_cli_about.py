"""`likewise about` says what is installed and what is in use."""

import json

import pytest

from likewise import __version__, cli
from likewise.attention.native import library


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(list(arguments))
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


def test_about_names_versions_threads_and_the_kernel(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("about", "--json") == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["likewise"] == __version__
    assert facts["attention kernel"] == library.about()
    assert run("about") == 0
    shown = capsys.readouterr().out
    assert all(f"{name} " in shown and value in shown for name, value in facts.items())


def test_about_says_why_the_kernel_is_not_in_use(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(library, "kernel", library.Kernel(None, "turned off by LIKEWISE_NATIVE=0"))
    assert run("about") == 0
    assert "not in use (turned off by LIKEWISE_NATIVE=0)" in capsys.readouterr().out
