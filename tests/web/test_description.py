"""Requests that schemathesis makes from the description of the API: no 5xx, and every answer is as described."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy
import pytest

from likewise.gallery import Embedder, Gallery
from tests.gallery.people import people
from tests.web.running import SECRET, running
from tests.web.test_service import mean_colour

pytestmark = pytest.mark.full
EXAMPLES = 20  # of every operation in each phase
UNTOLD = "positive_data_acceptance"  # bytes that the description allows need not be a picture: 415


def test_every_operation_answers_as_described(tmp_path: Path) -> None:
    if find_spec("schemathesis") is None:
        pytest.skip("schemathesis is not installed: make test-full installs it")
    known = people(40, 4)
    strangers = numpy.concatenate(list(people(90, seed=1).values()))
    with (
        Gallery.open(tmp_path / "a.db", Embedder(mean_colour, "v1")) as gallery,
        running(gallery, tmp_path) as port,
    ):
        for name, rows in known.items():
            gallery.enrol(name, rows)
        gallery.calibrate(known, far=0.05, strangers=strangers, fpir=0.05)
        program = Path(sys.executable).with_name("schemathesis")
        command = [program, "run", f"http://127.0.0.1:{port}/api/openapi.json", "--no-color", "--seed", "1"]
        command += ["--header", f"Authorization: Bearer {SECRET}", "--max-examples", str(EXAMPLES)]
        command += ["--checks", "all", "--exclude-checks", UNTOLD, "--generation-database", "none"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
    assert "Tested: 11" in done.stdout, done.stdout[-3000:]
