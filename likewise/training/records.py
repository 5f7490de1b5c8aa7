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
    """The records of a file; a last line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(Record(**json.loads(line)))
        except (json.JSONDecodeError, TypeError):
            break
    return found


def records_before(path: Path, step: int) -> list[Record]:
    """The steps before `step` in a file, which need not be there."""
    return [record for record in read_records(path) if record.step < step] if path.is_file() else []


def require_records(path: Path, step: int) -> None:
    """Refuse a file in which a step before `step` is missing or damaged: what follows it would be lost."""
    found = [record.step for record in records_before(path, step)]
    whole = not path.is_file() or found == list(range(step))
    hint = "Mend it, or move it away to go on without it."
    require(whole, "resume", "log", f"have a line for each of {step} steps", f"{len(found)} good ones in {path}", hint)


def rewind(path: Path, step: int) -> list[Record]:
    """Leave in a file the steps before `step` only, and give them."""
    kept = records_before(path, step)
    write_whole(path, "".join(record.to_line() for record in kept).encode())
    return kept
