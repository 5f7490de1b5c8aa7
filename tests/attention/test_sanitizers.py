"""The kernel under the address and the undefined-behaviour sanitizer, over thousands of random calls from C++."""

import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from hatch_build import WIDE

ROOT = Path(__file__).parents[2]
SOURCE, DRIVER = ROOT / "likewise/attention/native/kernel.cpp", Path(__file__).with_name("native_driver.cpp")
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined", "-fno-omit-frame-pointer"]


@pytest.mark.full
def test_no_call_reads_or_writes_what_is_not_its_own(tmp_path: Path) -> None:
    """All memory of the kernel's own begins as NaN: output that depends on what nobody wrote is not finite."""
    compiler = shutil.which("g++")
    if compiler is None or platform.machine() != "x86_64":
        pytest.skip("sanitizers are tried with g++ on x86-64")
    command = [compiler, "-std=c++17", "-O1", "-fopenmp", "-DPOISON", *SANITIZERS]
    compiling = []
    for lanes, flags in {4: [], **WIDE}.items():
        target = ["-c", str(SOURCE), "-o", str(tmp_path / f"lanes{lanes}.o")]
        compiling.append(subprocess.Popen([*command, *flags, f"-DLANES={lanes}", *target]))
    assert [process.wait() for process in compiling] == [0] * len(compiling)
    objects = [str(tmp_path / f"lanes{lanes}.o") for lanes in (4, *WIDE)]
    program = str(tmp_path / "driver")
    subprocess.run([*command, "-DWIDE", '-DSOURCE="tests"', str(DRIVER), *objects, "-o", program], check=True)
    ran = subprocess.run(
        [program, "600"], capture_output=True, text=True, env={**os.environ, "OMP_WAIT_POLICY": "passive"}
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert ran.stdout.endswith(" 0 wrong\n")
