"""What is known of each step, as lines of JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from likewise.checks import require
from likewise.networks.weights import write_whole


@dataclass(frozen=True)
class Record:
    """One step. Hard, semi-hard and easy are shares of all triplets of its batch, whatever it is trained for.

    mean_distance: the squared distance of two embeddings by chance, about 2 when they are spread and 0 when they have
    collapsed. effective_rank: in how many directions they vary. Both, and the shares, are of before the step.
    """

    step: int
    loss: float
    rate: float
    images: int
    hard: float
    semi_hard: float
    easy: float
    mean_distance: float
    effective_rank: float
    seconds: float

    def to_line(self) -> str:
        """One line of JSON; numbers to the last digit."""
        return json.dumps(asdict(self)) + "\n"


def read_records(path: Path) -> list[Record]:
    """The records of a file up to a line that is damaged, such as a last one that was cut off."""
    return _read(path)[0]


def _read(path: Path) -> tuple[list[Record], int]:
    """The records before a damaged line, and how many lines are left from there on."""
    found: list[Record] = []
    lines = path.read_text(errors="replace").splitlines()
    for line in lines:
        try:
            found.append(Record(**json.loads(line)))
        except (json.JSONDecodeError, TypeError):
            break
    return found, len(lines) - len(found)


def records_before(path: Path, step: int) -> list[Record]:
    """The steps before `step` in a file, which need not be there."""
    return [record for record in read_records(path) if record.step < step] if path.is_file() else []


def require_records(path: Path, step: int) -> None:
    """Refuse a file in which a step up to `step` is missing or damaged, for what follows it would be lost.

    A file that begins later than the run, or is not there, is not refused: it was moved away.
    """
    records, left = _read(path) if path.is_file() else ([], 0)
    found = [record.step for record in records if record.step < step]
    whole = found == list(range(found[0], step)) if found else left < 2
    hint = "Mend it, or move it away to go on without it."
    require(whole, "resume", "log", f"have a line for each of {step} steps", f"{len(found)} good ones in {path}", hint)


def rewind(path: Path, step: int) -> list[Record]:
    """Leave in a file the steps before `step` only, and give them."""
    kept = records_before(path, step)
    write_whole(path, "".join(record.to_line() for record in kept).encode())
    return kept
