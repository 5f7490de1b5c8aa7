"""What is known of each step, as lines of JSON."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.metric import negative_shares
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


def measured(
    embeddings: Float[Tensor, "B E"], labels: Int64[Tensor, "B"], *, margin: float
) -> tuple[float, float, float, float, float]:
    """Shares of hard, semi-hard and easy triplets, mean distance, effective rank."""
    shares = negative_shares(embeddings, labels, margin=margin)
    return shares.hard, shares.semi_hard, shares.easy, mean_distance(embeddings), effective_rank(embeddings)


def mean_distance(embeddings: Float[Tensor, "B E"]) -> float:
    """The mean of |e_i - e_j|^2 over all i and j: 2 (mean |e|^2 - |mean e|^2).

    >>> mean_distance(torch.tensor([[0.0], [2.0]]))
    2.0
    """
    wide = embeddings.double()
    return float(2 * (wide.square().sum(1).mean() - wide.mean(0).square().sum())) if len(wide) else 0.0


def effective_rank(embeddings: Float[Tensor, "B E"]) -> float:
    """exp(-sum p ln p) for p the eigenvalues of the covariance, divided by their sum; 0 when nothing varies.

    >>> round(effective_rank(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])), 6)
    2.0
    """
    if len(embeddings) < 2:
        return 0.0
    centred = embeddings.double() - embeddings.double().mean(0)
    gram = centred @ centred.mT if len(centred) < centred.shape[1] else centred.mT @ centred
    values = torch.linalg.eigvalsh(gram).clamp(min=0)
    if values.sum() <= 0:
        return 0.0
    shares = values / values.sum()
    return float(torch.special.entr(shares).sum().exp())


def read_records(path: Path) -> list[Record]:
    """The records of a file; a last line that was cut off is left out."""
    found = []
    for line in path.read_text().splitlines():
        try:
            found.append(Record(**json.loads(line)))
        except (json.JSONDecodeError, TypeError):
            break
    return found


def rewind(path: Path, step: int) -> list[Record]:
    """Leave in a file the steps before `step` only, and give them."""
    kept = [record for record in read_records(path) if record.step < step] if path.is_file() else []
    write_whole(path, "".join(record.to_line() for record in kept).encode())
    return kept
