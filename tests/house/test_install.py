"""Installed without torch, likewise checks claims, and what needs torch says so."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.house import guards

pytestmark = pytest.mark.full

MOST = 110  # megabytes on disk, without the two engines
ENGINES = ("flint", "python_flint", "z3")  # about 86 megabytes more
PAGE = """
```claim square
given: x, y in R
assert: (x + y)^2 == x^2 + 2*x*y + y^2
```

```claim wrong
given: x in R
assert: x^2 >= x
expect: refuted
```
"""
COUNTED = """
```claim counted
of: attention.softmax
sizes: N, D, M
unit: mac
assert: cost == N^2*D + N^2*M
```
"""


@pytest.fixture(scope="module")
def empty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An environment that holds the wheel and what the wheel asks for."""
    folder = tmp_path_factory.mktemp("install")
    tool = Path(sys.executable).parent / "uv"
    if not tool.exists():
        pytest.skip("uv makes the environment, and it is not installed beside Python")
    links = {"UV_FIND_LINKS": ",".join(os.environ.get("PIP_FIND_LINKS", "").split())}
    index = {"UV_DEFAULT_INDEX": os.environ["PIP_INDEX_URL"]} if "PIP_INDEX_URL" in os.environ else {}

    def uv(*arguments: str) -> None:
        settings = {**os.environ, **links, **index, "VIRTUAL_ENV": str(folder / "venv")}
        done = subprocess.run([tool, *arguments], env=settings, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr

    uv("build", "--wheel", "--no-build-isolation", "--python", sys.executable, "-o", str(folder), str(guards.ROOT))
    [wheel] = folder.glob("*.whl")
    uv("venv", "--python", sys.executable, str(folder / "venv"))
    uv("pip", "install", "--constraint", str(guards.ROOT / "constraints.txt"), str(wheel))
    (folder / "page.md").write_text(PAGE)
    (folder / "counted.md").write_text(COUNTED)
    return folder


def run(empty: Path, *command: str) -> subprocess.CompletedProcess[str]:
    program = shutil.which(command[0], path=str(empty / "venv" / "bin"))
    assert program is not None
    return subprocess.run([program, *command[1:]], cwd=empty, capture_output=True, text=True)


def test_torch_is_not_there(empty: Path) -> None:
    assert "No module named 'torch'" in run(empty, "python", "-c", "import torch").stderr


def test_the_command_checks_a_claim(empty: Path) -> None:
    done = run(empty, "likewise", "check", "page.md")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.search(r"^holds  square .*\[proved\]$", done.stdout, re.MULTILINE)
    assert re.search(r"^refuted  wrong .*\(expected\)$", done.stdout, re.MULTILINE)


def test_the_library_checks_a_claim(empty: Path) -> None:
    code = "from likewise.claims import check; print(check('given: x in R\\nassert: x^2 + 1 >= 2*x').verdict)"
    assert run(empty, "python", "-c", code).stdout == "holds\n"


def test_a_claim_that_needs_torch_says_so(empty: Path) -> None:
    done = run(empty, "likewise", "check", "counted.md")
    assert done.returncode == 3
    assert "this claim: torch must be installed" in done.stdout
    assert "Try: pip install 'likewise[torch]'" in done.stdout


@pytest.mark.parametrize(
    "command",
    [
        ["attention"],
        ["cost", "mqa_step", "--b", "1", "--n", "2", "--h", "1", "--k", "2", "--d", "2"],
        ["train", "digits"],
        ["evaluate", "m.safetensors", "digits"],
        ["depth", "m.safetensors", "digits"],
        ["exits", "m.safetensors", "digits"],
    ],
    ids=lambda command: command[0],
)
def test_a_method_says_what_it_needs(empty: Path, command: list[str]) -> None:
    done = run(empty, "likewise", *command)
    assert (done.returncode, done.stdout) == (1, "")
    [line] = done.stderr.splitlines()
    assert line == (
        f"likewise: {command[0]}: torch must be installed; got no such package. Try: pip install 'likewise[torch]'"
    )


def test_help_needs_no_torch(empty: Path) -> None:
    assert run(empty, "likewise", "train", "--help").returncode == 0


def test_it_is_small(empty: Path) -> None:
    [packages] = (empty / "venv" / "lib").glob("python*/site-packages")
    sizes = {
        folder.name: sum(file.stat().st_size for file in folder.rglob("*") if file.is_file())
        for folder in packages.iterdir()
        if folder.is_dir()
    }
    rest = sum(size for name, size in sizes.items() if not name.startswith(ENGINES))
    assert rest < MOST * 1e6, sorted(sizes.items(), key=lambda item: -item[1])[:9]
