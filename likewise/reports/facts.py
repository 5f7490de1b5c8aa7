"""Where and with what a report was made: what a number means little without."""

import os
import platform
from dataclasses import dataclass
from datetime import date
from importlib.metadata import version
from pathlib import Path

import likewise

CPUINFO = Path("/proc/cpuinfo")


@dataclass(frozen=True)
class Facts:
    """The date, the machine and the versions."""

    day: str
    processor: str
    cores: int
    threads: int
    system: str
    versions: tuple[tuple[str, str], ...]
    load: float | None = None  # programs that wanted to run, on average over the last minute, where that is known

    @property
    def busy(self) -> bool:
        """Whether so much else was going on that times cannot be trusted."""
        return self.load is not None and self.load > self.cores / 2


def gather_facts(packages: tuple[str, ...] = ("numpy", "scikit-learn")) -> Facts:
    """The facts of this process; `packages` are the distributions whose versions matter beside Python, torch and ours.

    >>> gather_facts(()).versions[0][0]
    'likewise'
    """
    import torch

    known = [("likewise", likewise.__version__), ("Python", platform.python_version()), ("torch", torch.__version__)]
    return Facts(
        day=date.today().isoformat(),
        processor=_processor(),
        cores=os.cpu_count() or 1,
        threads=torch.get_num_threads(),
        system=platform.system(),
        versions=(*known, *((name, version(name)) for name in packages)),
        load=os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
    )


def _processor() -> str:
    lines = CPUINFO.read_text().splitlines() if CPUINFO.exists() else []
    models = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return models[0] if models else platform.processor() or platform.machine()
