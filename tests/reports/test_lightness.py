"""Pages only render: what they show is given to them."""

import subprocess
import sys

RENDERING = {"reports", "page", "text", "files", "stats", "progress", "checks"}


def loaded_rooms(*modules: str) -> set[str]:
    """The rooms that a fresh interpreter has loaded after importing modules."""
    code = f"import sys\nimport {', '.join(modules)}\nprint(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return {name.split(".")[1] for name in done.stdout.split() if name.startswith("likewise.")}


def test_pages_load_no_room_that_measures() -> None:
    assert loaded_rooms("likewise.reports") <= RENDERING


def test_a_room_that_measures_is_found() -> None:
    assert loaded_rooms("likewise.reports", "likewise.attention") - RENDERING >= {"attention"}
