"""Which labels look wrong? Two networks, each trained on half of CIFAR-10 with one person's labels (CIFAR-10N).

Every image is a training example of one network and held out from the other, so that its depth is known in both roles.
Whether its label is wrong is known too, as CIFAR-10 itself has another. Scores are judged by the area under the ROC.
"""

import json
import subprocess
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from likewise.difficulty.consistency import quadrants
from likewise.difficulty.results import PredictionDepth
from likewise.networks import Network
from studies.classifiers import Pictures, Recipe

LABELS = "cifar10n_random_label1"
RECIPE = Recipe(epochs=16, still=True)  # labels must be learned by heart
ASKED = 2500  # images of each half
DRAWS = 300
ROOT = Path(__file__).parents[1]
PEERS, PEER = ROOT / ".peers/bin/python", ROOT / "studies/beside_cleanlab.py"


@dataclass(frozen=True)
class Suspects:
    """How well scores find wrong labels: the area under the ROC, and its interval from images drawn anew.

    noise: the share of wrong labels among the images that were asked. accuracy: of the two networks, against the true
    classes, held out; fit: against the labels they were trained with. quadrant: how many images look mislabelled, and
    how many of these are.
    """

    images: int
    noise: float
    accuracy: float
    fit: float
    quadrant: tuple[int, int]
    areas: dict[str, tuple[float, float, float]]


@dataclass(frozen=True)
class Halves:
    """Which images each network was trained on, and which of these are asked about, in order."""

    members: tuple[Int64[Tensor, "n"], Int64[Tensor, "n"]]
    asked: tuple[Int64[Tensor, "m"], Int64[Tensor, "m"]]

    @classmethod
    def deal(cls, count: int, asked: int, seed: int = 0) -> "Halves":
        """Two halves by chance."""
        order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
        halves = order[: count // 2], order[count // 2 :]
        return cls(
            (halves[0].sort().values, halves[1].sort().values),
            (halves[0][:asked].sort().values, halves[1][:asked].sort().values),
        )


Ask = Callable[[int, Pictures, Pictures, Int64[Tensor, "n"]], PredictionDepth]


def suspected(
    networks: Sequence[Network],
    pictures: Pictures,
    truth: Int64[Tensor, "N"],
    halves: Halves,
    *,
    ask: Ask,
    folder: Path,
) -> Suspects:
    """Depths in both roles, and the scores that follow from them, beside cleanlab's."""
    inside, outside, predicted, fits = _roles(pictures, halves, ask)
    rows = torch.cat(halves.asked)
    wrong = pictures.labels[rows] != truth[rows]
    other = predicted != pictures.labels[rows]
    shares = held_out_shares(networks, pictures, halves)
    scores = {
        "deeper as a training example than held out": inside - outside,
        "held out, settled early as another class": other * (1 + outside.max() - outside),
        "1 - probability of the label, held out": 1 - shares[rows, pictures.labels[rows]],
        **beside(shares, pictures.labels, rows, folder),
    }
    looks = quadrants(inside, outside).of("looks mislabelled")
    return Suspects(
        len(rows),
        wrong.double().mean().item(),
        (predicted == truth[rows]).double().mean().item(),
        fits,
        (int(looks.sum()), int((looks & wrong).sum())),
        {name: area(score, wrong) for name, score in scores.items()},
    )


def _roles(
    pictures: Pictures, halves: Halves, ask: Ask
) -> tuple[Float64[Tensor, "m"], Float64[Tensor, "m"], Int64[Tensor, "m"], float]:
    """Depth as a training example, depth held out, the class that was said held out, and how labels were learned."""
    found = {}
    for half, members in enumerate(halves.members):
        known, unknown = halves.asked[half], halves.asked[1 - half]
        found[half] = ask(half, pictures.take(members), pictures.take(unknown), torch.searchsorted(members, known))
    inside, outside = [found[half].train for half in (0, 1)], [found[half].test for half in (1, 0)]
    return (
        torch.cat([each.depth for each in inside]).double(),
        torch.cat([each.depth for each in outside if each is not None]).double(),
        torch.cat([each.predicted for each in outside if each is not None]),
        sum(each.accuracy for each in inside) / 2,
    )


def held_out_shares(networks: Sequence[Network], pictures: Pictures, halves: Halves) -> Float64[Tensor, "N C"]:
    """The softmax of every image by the network that has not seen it."""
    found = None
    for network, members in zip(networks, reversed(halves.members), strict=True):
        with torch.no_grad():
            logits = [network(pictures.take(rows).inputs) for rows in members.split(250)]
        shares = torch.cat(logits).double().softmax(1)
        found = shares.new_empty(len(pictures), shares.shape[1]) if found is None else found
        found[members] = shares
    assert found is not None
    return found


def beside(
    shares: Float64[Tensor, "N C"], labels: Int64[Tensor, "N"], rows: Int64[Tensor, "m"], folder: Path
) -> Mapping[str, Tensor]:
    """cleanlab's scores from the shares of all images; nothing if the peers' environment is not there.

    Its self confidence is the share of the label. Adjusted, a class's mean share among the images with that label is
    first taken off.
    """
    if not PEERS.exists():
        return {}
    file = folder / "cleanlab.npz"
    numpy.savez(file, labels=labels.numpy(), shares=shares.numpy())
    answer = subprocess.run([PEERS, PEER, file], check=True, capture_output=True, text=True, timeout=600).stdout
    found = json.loads(answer)
    return {
        f"cleanlab {found['version']}, {name.replace('_', ' ')}": torch.tensor(values, dtype=torch.float64)[rows]
        for name, values in found["scores"].items()
    }


def area(score: Float64[Tensor, "m"], wrong: Bool[Tensor, "m"]) -> tuple[float, float, float]:
    """The area under the ROC of a score for wrong labels, and the middle 95% over images drawn anew."""
    from sklearn.metrics import roc_auc_score  # takes seconds to load

    chance = torch.Generator().manual_seed(0)
    areas = []
    for _ in range(DRAWS):
        rows = torch.randint(len(score), (len(score),), generator=chance)
        areas.append(float(roc_auc_score(wrong[rows].numpy(), score[rows].numpy())))
    low, high = torch.tensor(areas, dtype=torch.float64).quantile(torch.tensor([0.025, 0.975]).double()).tolist()
    return float(roc_auc_score(wrong.numpy(), score.numpy())), low, high
