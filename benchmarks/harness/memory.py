"""How much memory a call needs beyond what is there before it: the peak that the operating system saw."""

import resource
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

STATUS = Path("/proc/self/status")
CLEAR = Path("/proc/self/clear_refs")


def extra_bytes(call: Callable[[], object]) -> int:
    """Bytes by which a call raises the peak of resident memory, its result included.

    Only true in a fresh process: what earlier calls freed but kept would hide what this one needs.
    """
    with suppress(OSError):  # elsewhere than on Linux the peak cannot be reset; it then stands at the inputs, or higher
        CLEAR.write_text("5")
    before = peak_bytes()
    result = call()
    after = peak_bytes()
    del result
    return after - before


def peak_bytes() -> int:
    """The largest resident memory of this process, since the last reset where there is one."""
    if STATUS.exists():
        fields = dict(line.split(":", 1) for line in STATUS.read_text().splitlines())
        return int(fields["VmHWM"].removesuffix("kB")) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024
