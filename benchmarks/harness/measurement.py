"""What was measured, where, and what is demanded of it."""

import json
import math
import os
import platform
from dataclasses import asdict, dataclass
from datetime import date
from pathlib import Path
from statistics import median
from typing import Any

import torch

ENOUGH = 3  # times, from which one can see whether they scatter
SCATTER = 1.5  # times whose median is further above the least than this were disturbed, and nothing follows from them
BFLOAT16 = ("avx512_bf16", "amx_bf16")
CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Measurement:
    """Repeated times of one form at one length, and the memory it needs beyond its inputs, where that was measured."""

    form: str
    length: int
    seconds: tuple[float, ...]
    extra_bytes: int | None = None
    task: str = ""

    @property
    def best(self) -> float:
        """The least time: what the work costs when nobody disturbs it."""
        return min(self.seconds)

    @property
    def median(self) -> float:
        """The time in the middle."""
        return median(self.seconds)

    @property
    def disturbed(self) -> bool:
        """Whether too few or too different times were measured to judge by."""
        return len(self.seconds) < ENOUGH or self.median > SCATTER * self.best

    def facts(self) -> dict[str, Any]:
        """For JSON: the times summed up."""
        times = {"best_seconds": self.best, "median_seconds": self.median, "runs": len(self.seconds)}
        what = {"task": self.task} if self.task else {}
        return {**what, "form": self.form, "length": self.length, **times, "extra_bytes": self.extra_bytes}


@dataclass(frozen=True)
class Demand:
    """A number that is promised, and what was measured of it. A note says why it cannot be judged."""

    promise: str
    bound: float
    at_least: bool
    measured: float | None
    by_median: float | None = None
    note: str = ""
    unit: str = "x"

    @property
    def holds(self) -> bool | None:
        """Whether the promise is kept; None when it was not measured where it was made."""
        if self.measured is None or self.note:
            return None
        return self.measured >= self.bound if self.at_least else self.measured <= self.bound

    def facts(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "holds": self.holds}


def time_ratio(promise: str, bound: float, at_least: bool, over: Measurement, under: Measurement) -> Demand:
    """The demand on a quotient of two times; by the least, and beside it by the median."""
    by_best, by_median = over.best / under.best, over.median / under.median
    noise = "disturbed, try again on a quiet machine" if over.disturbed or under.disturbed else ""
    return Demand(promise, bound, at_least, by_best, by_median, noise)


def machine() -> dict[str, Any]:
    """Where and when: what a number means little without."""
    return {
        "date": date.today().isoformat(),
        "cpu": _first_line("model name") or platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
        "load": os.getloadavg()[0],
        "threads": torch.get_num_threads(),
        "bfloat16_unit": any(unit in _first_line("flags").split() for unit in BFLOAT16),
        "system": platform.system(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def write_json(path: Path, facts: dict[str, Any]) -> None:
    """Write facts, numbers to five digits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(_rounded(facts), indent=1) + "\n")


def _first_line(name: str) -> str:
    """What the first processor says of itself under a name, where there is such a file."""
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(name)), "")


def _rounded(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return float(f"{value:.5g}") if isinstance(value, float) and math.isfinite(value) else value
