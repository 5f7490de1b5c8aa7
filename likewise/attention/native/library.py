"""The compiled kernel, called through ctypes. It is never compiled here: hatch_build.py does that."""

import ctypes
import hashlib
import os
import struct
from pathlib import Path
from typing import NamedTuple

import torch  # first, so that the kernel shares its OpenMP threads
from torch import Tensor

FOLDER = Path(__file__).parent
FIELDS = 67  # of the kernel's `Call`
PACKED = struct.Struct(f"{FIELDS - 1}qd")
SETS = {16: "AVX-512", 8: "AVX2", 4: "portable"}


class Kernel(NamedTuple):
    """The library, or why there is none."""

    functions: ctypes.CDLL | None
    reason: str


def load() -> Kernel:
    """The kernel beside this file."""
    if os.environ.get("LIKEWISE_NATIVE") == "0":
        return Kernel(None, "turned off by LIKEWISE_NATIVE=0")
    path, source = FOLDER / "kernel.so", FOLDER / "kernel.cpp"
    if not path.exists():
        return Kernel(None, "not built: there was no C++ compiler when likewise was installed")
    try:
        functions = ctypes.CDLL(str(path))
        functions.likewise_source.restype = ctypes.c_char_p
        built_from = functions.likewise_source().decode()
    except (OSError, AttributeError) as error:
        return Kernel(None, f"not usable: {error}")
    if source.exists() and hashlib.sha256(source.read_bytes()).hexdigest()[:16] != built_from:
        return Kernel(None, "built from another version of kernel.cpp: run `python hatch_build.py`")
    assert functions.likewise_call_size() == 8 * FIELDS
    most = int(os.environ.get("LIKEWISE_LANES", "16"))
    return Kernel(functions, f"{SETS[functions.likewise_lanes(most)]}, as this processor has it")


kernel = load()


def about() -> str:
    """Whether the kernel is in use, and why."""
    return f"in use ({kernel.reason})" if kernel.functions else f"not in use ({kernel.reason})"


MATRICES = 32  # fields of the kernel's `Call` that describe matrices


def matrix(x: Tensor) -> tuple[int, int, int, int]:
    """Address and strides of (B, heads, rows, width)."""
    batch, head, row, _ = x.stride()
    return x.data_ptr(), batch, head, row


def call(name: str, fields: list[float]) -> bool:
    """One of the kernel's functions with the fields of its `Call`, all of which have 8 bytes; the last is a double.

    False if it leaves the call to torch: features of a state would leave the range of float32.
    """
    assert kernel.functions is not None
    status = getattr(kernel.functions, f"likewise_{name}")(PACKED.pack(*fields))
    if status == 1:
        raise MemoryError("linear_attention: the kernel must have memory; got none.")
    return status == 0


def threads() -> int:
    """As many as torch has."""
    return torch.get_num_threads()
