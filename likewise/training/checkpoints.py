"""The files of a run: a checkpoint to go on from, a log with one line of JSON for each step, and a lock."""

import json
import os
import re
import socket
import warnings
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, NoReturn, Self

import torch
from torch import Tensor, nn

from likewise.checks import refuse, require
from likewise.files import write_whole
from likewise.networks.weights import load_tensors, require_hash, save_tensors, weights_hash


@dataclass(frozen=True)
class Record:
    """One step: its loss, learning rate, number of images and seconds, and what the objective measured before it.

    measures: by name, as `likewise.training.Measuring.measure` gives them. In the log they stand beside the others.

    >>> Record(0, 0.5, 1e-3, 40, 0.25, {"accuracy": 0.75}).to_line().strip()
    '{"step": 0, "loss": 0.5, "rate": 0.001, "images": 40, "seconds": 0.25, "accuracy": 0.75}'
    """

    step: int
    loss: float
    rate: float
    images: int
    seconds: float
    measures: Mapping[str, float] = field(default_factory=dict)

    def to_line(self) -> str:
        """One line of JSON; numbers to the last digit."""
        own = {name: value for name, value in vars(self).items() if name != "measures"}
        return json.dumps({**own, **self.measures}) + "\n"

    @classmethod
    def from_line(cls, line: str) -> Self:
        """The record of one line; a damaged line raises ValueError, KeyError or TypeError."""
        values = json.loads(line)
        own = [values.pop(name) for name in ("step", "loss", "rate", "images", "seconds")]
        return cls(*own, {name: float(value) for name, value in values.items()})


def read_records(path: Path) -> list[Record]:
    """The records of a log up to a line that is damaged, such as a last one that was cut off."""
    return _read(path)[0]


def _read(path: Path) -> tuple[list[Record], int]:
    """The records before a damaged line, and how many lines are left from there on."""
    records: list[Record] = []
    lines = path.read_text(errors="replace").splitlines()
    for line in lines:
        try:
            records.append(Record.from_line(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            break
    return records, len(lines) - len(records)


def records_before(path: Path, step: int) -> list[Record]:
    """The records of the steps before `step` in a log, which need not be there."""
    return [record for record in read_records(path) if record.step < step] if path.is_file() else []


def require_records(path: Path, step: int) -> None:
    """Refuse a log in which a step up to `step` is missing or damaged, for what follows it would be lost.

    A log that begins later than the run, or is not there, is not refused: it was moved away.
    """
    records, left = _read(path) if path.is_file() else ([], 0)
    steps = [record.step for record in records if record.step < step]
    whole = steps == list(range(steps[0], step)) if steps else left < 2
    hint = "Mend it, or move it away to go on without it."
    require(whole, "resume", "log", f"have a line for each of {step} steps", f"{len(steps)} good ones in {path}", hint)


def rewind(path: Path, step: int) -> list[Record]:
    """Cut a log to the steps before `step`, and return them."""
    kept = records_before(path, step)
    write_whole(path, "".join(record.to_line() for record in kept))
    return kept


def save_checkpoint(
    path: Path,
    network: nn.Module,
    objective: nn.Module,
    optimiser: torch.optim.Optimizer,
    step: int,
    settings: Mapping,
    seen: Mapping,
) -> None:
    """Write model, objective and optimiser state, RNG state, what was seen so far and the step, with their hash."""
    tensors = {f"network.{key}": tensor for key, tensor in network.state_dict().items()}
    tensors |= {f"objective.{key}": tensor for key, tensor in objective.state_dict().items()}
    for number, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{key}": torch.as_tensor(value) for key, value in state.items()}
    tensors["chance"] = torch.get_rng_state()
    facts = {"step": step, "settings": dict(settings), **seen}
    save_tensors(path, tensors, {"kind": "checkpoint", **facts, "hash": weights_hash(tensors, facts)})


def load_checkpoint(
    path: Path, network: nn.Module, objective: nn.Module, optimiser: torch.optim.Optimizer, settings: Mapping
) -> tuple[int, dict[str, Any], list[list[str]]]:
    """Restore what `save_checkpoint` wrote; return the next step, the guard's state and the files that were skipped.

    Other settings are refused, and so is a file that was changed.
    """
    tensors, facts = _read_checkpoint(path)
    for name, value in settings.items():
        stored = facts["settings"].get(name)
        require(stored == value, "resume", name, f"be that of the checkpoint, {stored!r}", repr(value))
    network.load_state_dict(part(tensors, "network."))
    objective.load_state_dict(part(tensors, "objective."))
    states: dict[int, dict[str, Tensor]] = {}
    for key, tensor in part(tensors, "optimiser.").items():
        number, _, name = key.partition(".")
        states.setdefault(int(number), {})[name] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": states})
    torch.set_rng_state(tensors["chance"])
    return int(facts["step"]), facts["watched"], facts["skipped"]


def checkpoint_settings(path: Path) -> dict[str, Any]:
    """The settings with which a checkpoint was written, and the next step."""
    _, facts = _read_checkpoint(path)
    return {**facts["settings"], "step": facts["step"]}


def _read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    tensors, facts = load_tensors(path, kind="checkpoint")
    require_hash("load_checkpoint", path, tensors, facts)
    return tensors, facts


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors of one owner, under the names it has for them."""
    return {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}


@contextmanager
def run_lock(file: Path) -> Generator[None]:
    """Hold the lock of a run: a file that names the process and the host, removed at the end.

    It is refused while another process holds it. The lock of a process of this host that has ended is taken over, with
    a warning.
    """
    with _locked(file) as handle:
        owner = _owner(file)
        if owner and owner[1] != socket.gethostname():
            _refuse_lock(file, owner)
        if owner:
            text = f"train: process {owner[0]} ended without removing its lock, {file}; the lock is taken over."
            warnings.warn(text, stacklevel=3)
        handle.truncate(0)
        handle.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        handle.flush()
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def require_unlocked(file: Path) -> None:
    """Refuse if another process holds the lock of a run, or one of another host did."""
    if file.is_file():
        with _locked(file):
            owner = _owner(file)
        if owner and owner[1] != socket.gethostname():
            _refuse_lock(file, owner)


def _locked(file: Path) -> IO[str]:
    """The open lock file, locked by the system until it is closed, also by the end of the process."""
    while True:
        handle = file.open("a+")
        try:
            _flock(handle)
        except BlockingIOError:
            handle.close()
            _refuse_lock(file, _owner(file))
        if file.is_file() and os.path.samestat(os.fstat(handle.fileno()), file.stat()):
            return handle
        handle.close()  # its owner removed it after it was opened here


def _flock(handle: IO[str]) -> None:
    try:
        import fcntl
    except ImportError:  # Windows: the file alone is the lock
        return
    fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _owner(file: Path) -> tuple[int, str] | None:
    """Process and host that a lock file names; None of an empty or damaged one."""
    try:
        found = json.loads(file.read_text())
        return int(found["pid"]), str(found["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _refuse_lock(file: Path, owner: tuple[int, str] | None) -> NoReturn:
    got = f"process {owner[0]} on {owner[1]}" if owner else "another process"
    refuse("train", "out", "not be in use by another run", got, f"If that run is gone, remove {file}.")


def remove_dead_parts(out: Path) -> None:
    """Remove the .part files that runs to `out` left when they were killed while writing."""
    name = re.compile(rf"\.?{re.escape(out.stem)}\..*\.(\d+)\.part")
    for path in out.parent.glob("*.part"):
        found = name.fullmatch(path.name)
        if found and not _alive(int(found[1])):
            path.unlink(missing_ok=True)


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it runs, as another user
        return True
    return True
