"""`likewise about`: what is installed, and what of it is in use."""

import json
import platform
from importlib.metadata import PackageNotFoundError, version

import likewise
from likewise.cli.terminal import Json, examples

ABOUT_EXAMPLES = examples("likewise about", "likewise about --json")
PACKAGES = ("torch", "numpy", "safetensors", "scikit-learn", "jinja2", "mcp", "python-flint", "z3-solver")


def about(as_json: Json = False) -> None:
    """Show versions, threads, and whether linear attention's compiled kernel is in use and why."""
    facts = {"likewise": likewise.__version__, "python": platform.python_version(), "platform": platform.platform()}
    facts |= {name: found for name in PACKAGES if (found := _version(name))}
    facts |= _of_torch()
    if as_json:
        print(json.dumps(facts))
        return
    width = max(map(len, facts))
    for name, value in facts.items():
        print(f"{name:<{width}}  {value}")


def _version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _of_torch() -> dict[str, str]:
    """Threads and kernel, which need torch."""
    try:
        import torch
    except ModuleNotFoundError:
        missing = "not in use (torch is not installed: pip install 'likewise[torch]')"
        return {"threads": "0", "attention kernel": missing}
    from likewise.attention.native import library

    return {"threads": str(torch.get_num_threads()), "attention kernel": library.about()}
