"""The files of a run: a checkpoint to go on from, and a log with one line of JSON for each step."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from likewise.checks import require
from likewise.networks.weights import load_tensors, require_hash, save_tensors, weights_hash, write_whole


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
    write_whole(path, "".join(record.to_line() for record in kept).encode())
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
