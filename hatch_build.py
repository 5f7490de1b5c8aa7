"""Build hook: compiles the kernel of linear attention into the package, if there is a C++ compiler.

A wheel without it is as complete, only slower. Run as a script it builds the kernel in place: `make setup` does.
LIKEWISE_NATIVE=0 leaves it out; CXX names another compiler.
"""

import hashlib
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ImportError:  # as a script, where there is no hatchling
    BuildHookInterface = object

FOLDER = Path(__file__).parent / "likewise" / "attention" / "native"
SOURCE, LIBRARY = FOLDER / "kernel.cpp", FOLDER / "kernel.so"
WIDE = {
    8: ["-mavx2", "-mfma"],
    16: ["-mavx512f", "-mavx512bw", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma"],
}


def build() -> str:
    """Compile the kernel into the package: whole or not at all. Returns why there is none, or ''."""
    LIBRARY.unlink(missing_ok=True)
    if os.environ.get("LIKEWISE_NATIVE") == "0":
        return "LIKEWISE_NATIVE=0"
    named = os.environ.get("CXX")
    compiler = named or shutil.which("g++") or shutil.which("clang++") or shutil.which("c++")
    if not compiler or sys.platform == "win32":
        return "there is no C++ compiler"
    reason = ""
    for openmp in (["-fopenmp"], []):  # without OpenMP the kernel has one thread
        try:
            with tempfile.TemporaryDirectory(dir=FOLDER) as folder:
                compile_into(Path(folder) / "kernel.so", [*compiler.split(), *openmp])
                (Path(folder) / "kernel.so").replace(LIBRARY)
            return ""
        except OSError as error:
            return f"{compiler} could not be run: {error}"
        except subprocess.CalledProcessError as error:
            reason = f"{compiler} failed: {error.stderr.strip()[-2000:]}"
    return reason


def compile_into(library: Path, compiler: list[str]) -> None:
    """Compile the source once for every instruction set, and once for the choice between them."""
    wide = WIDE if platform.machine().lower() in ("x86_64", "amd64") else {}
    command = [*compiler, "-std=c++17", "-O3", "-fPIC", "-fvisibility=default"]
    objects = []
    for lanes, flags in {4: [], **wide}.items():
        objects.append(str(library.with_name(f"lanes{lanes}.o")))
        run([*command, *flags, f"-DLANES={lanes}", "-c", str(SOURCE), "-o", objects[-1]])
    chosen = ["-DWIDE"] if wide else []
    run([*command, *chosen, f'-DSOURCE="{digest()}"', "-shared", str(SOURCE), *objects, "-o", str(library)])


def digest() -> str:
    """Tells two versions of the source apart: a library that was built from another one is not used."""
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()[:16]


def run(command: list[str]) -> None:
    """Run a compiler, which says nothing unless it fails."""
    subprocess.run(command, check=True, capture_output=True, text=True)


class KernelHook(BuildHookInterface):
    """Adds the kernel to a wheel; an editable install has it in its tree."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a wheel with a kernel is one for this platform, but for any Python: it is called through ctypes."""
        reason = build()
        if reason:
            self.app.display_warning(f"likewise is built without its kernel, and slower: {reason}")
            return
        name = sysconfig.get_platform().replace("-", "_").replace(".", "_")
        build_data["pure_python"] = False
        build_data["tag"] = f"py3-none-{name}"
        build_data["artifacts"].append("likewise/attention/native/kernel.so")


if __name__ == "__main__":
    problem = build()
    if problem:
        sys.exit(f"likewise works without its kernel, but slower: {problem}")
