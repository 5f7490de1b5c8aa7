"""Easy and hard examples: where a network settles them, and what it saves to answer the easy ones early."""

import time
from dataclasses import dataclass, replace

import torch

from likewise.data import Preparation, digits
from likewise.exits import split_examples
from likewise.exits.splits import Split, Splits
from likewise.exits.study import ExitPlan, ExitStudy, study_exits, train_classifier
from likewise.networks import build_classifier
from likewise.progress import Progress, part, silent

WHOLE, SMALLER = "resnet14", "resnet8"
TOUR = ExitPlan(risk=0.05, steps=200, batch=64, joint=True, queries=300, repeats=3)
SHOWN = 7  # examples of each kind


@dataclass(frozen=True)
class Shown:
    """A digit: ink from 0 to 1, what it is, what the network says, and from which probe on its neighbours agree."""

    pixels: tuple[float, ...]
    label: int
    said: int
    depth: int


@dataclass(frozen=True, eq=False)
class DigitDepths:
    """A study of early exit on digits, the easiest and the hardest of the test digits, and the seconds of training."""

    study: ExitStudy
    easiest: tuple[Shown, ...]
    hardest: tuple[Shown, ...]
    training_seconds: float
    whole: str = WHOLE
    smaller: str = SMALLER

    @property
    def seed(self) -> int:
        """Of everything that is drawn."""
        return self.study.plan.seed


@dataclass(frozen=True)
class DigitsPlan:
    """How long the networks learn, and what the study does."""

    study: ExitPlan = TOUR
    examples: int | None = None  # all of them


def measure_digit_depths(*, plan: DigitsPlan | None = None, seed: int = 0, progress: Progress = silent) -> DigitDepths:
    """Train a small residual network on digits, find where it settles them, and let it leave early."""
    plan = plan or DigitsPlan()
    study = replace(plan.study, seed=seed)
    parts = deal(plan.examples, seed=seed)
    network, other = (build_classifier(name, channels=1, num_classes=10, seed=seed) for name in (WHOLE, SMALLER))
    started = time.perf_counter()
    train_classifier(network, parts, plan=study, name=WHOLE, progress=part(progress, 0.0, 0.25))
    seconds = time.perf_counter() - started
    found = study_exits(network, parts, plan=study, smaller={SMALLER: other}, progress=part(progress, 0.25, 1.0))
    easiest, hardest = galleries(found, parts)
    progress(1.0, "early exit")
    return DigitDepths(found, easiest, hardest, seconds)


def deal(count: int | None, *, seed: int) -> Splits:
    """scikit-learn's digits: four tenths to train, one to select, three to calibrate, two to test."""
    examples = digits()
    whole = Split.read(examples.take(range(count or len(examples))), Preparation((8, 8), 1), role="train")
    return split_examples(whole.inputs, whole.labels, selection=0.1, calibration=0.3, test=0.2, seed=seed)


def galleries(study: ExitStudy, parts: Splits) -> tuple[tuple[Shown, ...], tuple[Shown, ...]]:
    """Test digits of least and of greatest depth; of equal ones those that the network is surest, or least sure, of."""
    depth_groups = study.prepared.depth_groups
    assert depth_groups is not None
    depths, said = depth_groups.test.depth, depth_groups.test.predicted
    with torch.no_grad():
        sure = study.prepared.exits.network(parts.test.inputs).softmax(1).amax(1).double()
    order = (depths - sure).argsort()

    def shown(row: int) -> Shown:
        ink = (parts.test.inputs[row].flatten() + 1) / 2
        return Shown(tuple(ink.tolist()), int(parts.test.labels[row]), int(said[row]), int(depths[row]))

    return tuple(map(shown, order[:SHOWN].tolist())), tuple(map(shown, order.flip(0)[:SHOWN].tolist()))
