"""Which files of the package a command runs: `python -m tools.walk`, or `python -m tools.walk train digits --steps 3`.

Without arguments: the four walks of ARCHITECTURE.md. With arguments: that `likewise` command. A file counts when one of
its functions is called, in this process, a thread or a worker; what happens while a module is imported does not count.
Code of a claim's author runs isolated from this environment, and its process is not seen.
"""

import os
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "likewise"
RECORDER = Path(__file__).parent / "recorder"

CLI = ["-c", "import sys; from likewise.cli import main; main(sys.argv[1:])"]
ATTENTION = """
import torch
from likewise.attention import Elu, linear_attention

q, k, v = torch.randn(3, 1, 2, 64, 8).unbind()
linear_attention(q, k, v, features=Elu(), causal=True)
"""
CLAIM = """
from likewise.claims import check

assert check("given: x, y in R\\nassert: (x + y)^2 == x^2 + 2*x*y + y^2").verdict == "holds"
"""
CLASSIFIER = [
    *CLI,
    *shlex.split("train digits --objective classifier --network resnet14 --steps 2 --out c.safetensors"),
]
WALKS = {
    "linear attention": ["-c", ATTENTION],
    "a claim": ["-c", CLAIM],
    "train": [*CLI, *shlex.split("train digits --network resnet8 --embedding-dim 32 --steps 2")],
    "exits": [*CLI, *shlex.split("exits c.safetensors digits --held-out 0.5 --risk 0.1 --smaller resnet8 --steps 2")],
}


def executed(arguments: list[str], folder: Path) -> list[str]:
    """Files of the package, in the order in which they first run, of `python ARGUMENTS` in a folder."""
    with tempfile.NamedTemporaryFile() as out:
        path = os.pathsep.join(filter(None, [str(RECORDER), str(ROOT), os.environ.get("PYTHONPATH", "")]))
        told = {"PYTHONPATH": path, "LIKEWISE_WALK_PACKAGE": str(PACKAGE), "LIKEWISE_WALK_OUT": out.name}
        command, environment = [sys.executable, *arguments], os.environ | told
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"executed: {arguments} must end with 0; got {done.returncode}.\n{done.stderr}")
        files = Path(out.name).read_text().splitlines()
    return [str(Path(file).relative_to(ROOT)) for file in dict.fromkeys(files)]


def main(arguments: list[str]) -> None:
    """Print each walk: its name, how many files, and the files."""
    walks = {f"likewise {' '.join(arguments)}": [*CLI, *arguments]} if arguments else WALKS
    with tempfile.TemporaryDirectory() as name:
        folder = Path.cwd() if arguments else Path(name)
        for title, command in walks.items():
            if title == "exits":
                executed(CLASSIFIER, folder)
            files = executed(command, folder)
            print(f"{title}: {len(files)} files", *files, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1:])
