"""Has the network collapsed: does it map all images to one point, or to a line?"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from likewise.checks import require, require_count
from likewise.metric.triplet import require_margin

NEAR_MARGIN = 0.05  # share of the margin within which a loss is stuck at it
ADVICE = "Train again with a smaller learning rate, larger batches or, if they were the hardest, semi-hard negatives."


class CollapseError(RuntimeError):
    """Training was stopped because the embeddings have collapsed; `evidence` is what was measured, last batch last."""

    def __init__(self, message: str, evidence: tuple["Collapse", ...]) -> None:
        super().__init__(message)
        self.evidence = evidence


@dataclass(frozen=True)
class Collapse:
    """What was measured of a batch, and the signs of a collapse that it shows."""

    mean_distance: float
    effective_rank: float
    active_loss: float | None
    signs: tuple[str, ...]

    @property
    def collapsed(self) -> bool:
        """Whether there is any sign."""
        return bool(self.signs)

    @property
    def message(self) -> str:
        """One sentence for people."""
        if not self.signs:
            return f"No collapse: mean squared distance {self.mean_distance:.3g}, rank {self.effective_rank:.3g}."
        return f"The embeddings have collapsed: {'; '.join(self.signs)}."


def collapse(
    embeddings: Float[Tensor, "B E"],
    *,
    margin: float = 0.2,
    active_loss: float | None = None,
    least_distance: float | None = None,
    least_rank: float = 1.05,
) -> Collapse:
    """Mean squared distance of all pairs, 2 mean |e - mean e|^2, and effective rank exp(-sum p_i ln p_i).

    p are the eigenvalues of the covariance as shares of their sum. On unit rows the distance is 2 - 2 |mean e|^2,
    about 2 when they are spread. Signs of a collapse: a mean distance below `least_distance` (half the margin unless
    given, so that most triplets cannot reach it); a mean loss of active triplets (`active_loss`) within 5 % of the
    margin while the mean distance is below the margin; a rank below `least_rank` (a batch of C identities that is
    learnt perfectly still has a rank up to C - 1: use 0 for batches of two); a number that is not finite. No
    distance of a pair is computed: time B E for the distance and B E min(B, E) for the rank.

    Paper: Schroff et al. 2015, section 3.2, warns of f(x) = 0. Roy and Vetterli 2007 define the effective rank.

    >>> found = collapse(torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]))
    >>> round(found.mean_distance, 6), round(found.effective_rank, 6), found.collapsed
    (2.0, 2.0, False)
    """
    require_margin("collapse", margin)
    least = margin / 2 if least_distance is None else least_distance
    require(len(embeddings) > 1, "collapse", "embeddings", "have at least two rows", len(embeddings))
    centred = embeddings.detach().double()
    centred = centred - centred.mean(0)
    distance = 2 * centred.square().sum(-1).mean().item()
    if not math.isfinite(distance) or (active_loss is not None and not math.isfinite(active_loss)):
        signs = (f"not finite: mean squared distance {distance}, mean active loss {active_loss}",)
        return Collapse(distance, math.nan, active_loss, signs)
    rank = _effective_rank(centred)
    signs = []
    if distance < least:
        signs.append(f"mean squared distance {distance:.3g} is below {least:.3g}")
    if active_loss is not None and abs(active_loss - margin) < NEAR_MARGIN * margin and distance < margin:
        signs.append(f"mean active loss {active_loss:.4g} is stuck at the margin {margin:g}")
    if rank < least_rank:
        signs.append(f"effective rank {rank:.3g} is below {least_rank:.3g}")
    return Collapse(distance, rank, active_loss, tuple(signs))


def _effective_rank(centred: Float[Tensor, "B E"]) -> float:
    """exp of the entropy of the shares of variance; 0 when there is none."""
    size = centred.abs().max()
    if not size > 0:
        return 0.0
    centred = centred / size  # squares of tiny numbers would vanish
    rows, width = centred.shape
    gram = centred.mT @ centred if width <= rows else centred @ centred.mT
    eigenvalues = torch.linalg.eigvalsh(gram).clamp(min=0)
    shares = eigenvalues / eigenvalues.sum()
    return torch.special.entr(shares).sum().exp().item()


class CollapseGuard:
    """Watches training and stops it when `patience` batches in a row show signs of a collapse.

    >>> guard = CollapseGuard(patience=2)
    >>> guard.check(torch.zeros(3, 2)).message
    'The embeddings have collapsed: mean squared distance 0 is below 0.1; effective rank 0 is below 1.05.'
    >>> guard.check(torch.eye(3)).collapsed, guard.streak
    (False, 0)
    """

    def __init__(
        self,
        *,
        margin: float = 0.2,
        patience: int = 20,
        least_distance: float | None = None,
        least_rank: float = 1.05,
    ) -> None:
        require_margin("CollapseGuard", margin)
        require_count("CollapseGuard", "patience", patience)
        self.margin, self.patience = margin, patience
        self.least_distance, self.least_rank = least_distance, least_rank
        self._evidence: list[Collapse] = []
        self.streak = 0

    def check(self, embeddings: Float[Tensor, "B E"], *, active_loss: float | None = None) -> Collapse:
        """What `collapse` finds in a batch; raises `CollapseError` at the end of its patience."""
        found = collapse(
            embeddings,
            margin=self.margin,
            active_loss=active_loss,
            least_distance=self.least_distance,
            least_rank=self.least_rank,
        )
        self.streak = self.streak + 1 if found.collapsed else 0
        self._evidence = [*self._evidence, found][-self.streak :] if self.streak else []
        if self.streak >= self.patience:
            message = f"{found.message[:-1]}, for {self.streak} batches in a row. {ADVICE}"
            raise CollapseError(message, tuple(self._evidence))
        return found

    def state_dict(self) -> dict[str, int]:
        """How many batches in a row showed signs: what an exact resume needs."""
        return {"streak": self.streak}

    def load_state_dict(self, state: dict[str, int]) -> None:
        """Go on where another guard was."""
        require_count("load_state_dict", "streak", state.get("streak"), least=0)
        self.streak, self._evidence = state["streak"], []
