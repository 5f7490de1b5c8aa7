"""The tool that counts which files of the package a command runs."""

from pathlib import Path

import pytest

from tools.walk import ATTENTION, CLAIM, executed

CALL = "from likewise.checks import require; require(True, 'here', 'x', 'be', 1)"


@pytest.mark.parametrize(
    "code",
    [
        CALL,
        f"import threading\ndef work():\n    {CALL}\none = threading.Thread(target=work)\none.start()\none.join()",
        f"import subprocess, sys; subprocess.run([sys.executable, '-c', {CALL!r}], check=True)",
        f"import os\nif os.fork():\n    os.wait()\nelse:\n    {CALL}\n    os._exit(0)",
    ],
    ids=["here", "thread", "worker", "fork"],
)
def test_a_file_whose_function_runs_is_counted(code: str, tmp_path: Path) -> None:
    assert executed(["-c", code], tmp_path) == ["likewise/checks.py"]


def test_an_import_is_not_counted(tmp_path: Path) -> None:
    assert executed(["-c", "import likewise.polynomial, likewise.claims"], tmp_path) == []


def test_a_command_that_fails_is_no_walk(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"must end with 0; got 1\.(?s:.*)ZeroDivisionError"):
        executed(["-c", "1 / 0"], tmp_path)


@pytest.mark.slow
def test_a_forward_pass_in_torch_crosses_at_most_8_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LIKEWISE_NATIVE", "0")
    files = executed(["-c", ATTENTION], tmp_path)
    assert "likewise/attention/chunked.py" in files
    assert len(files) <= 8, files


@pytest.mark.slow
def test_an_identity_crosses_at_most_28_files(tmp_path: Path) -> None:
    files = executed(["-c", CLAIM], tmp_path)
    assert "likewise/claims/judge/point.py" in files
    assert len(files) <= 28, files
