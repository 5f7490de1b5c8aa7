"""How early each example of a data set is settled by a model: everything that `likewise depth` reports."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float64, Int64
from torch import Tensor, nn

from likewise.checks import require
from likewise.data import Examples, Preparation, held
from likewise.data.opening import Halves
from likewise.difficulty.consistency import Consistency, Quadrants, depth_consistency, quadrants
from likewise.difficulty.depth import plan_depth, prediction_depth
from likewise.difficulty.labelled import Labelled, labelled
from likewise.difficulty.labels import LabelRanking, class_probabilities, rank_labels
from likewise.difficulty.plan import MAX_MEMORY, DepthPlan
from likewise.difficulty.results import Depths, PredictionDepth
from likewise.difficulty.traits import RankCorrelation, input_margin, input_traits, rank_correlation
from likewise.files import finite
from likewise.networks import open_classifier
from likewise.progress import Progress, parts, silent

LEARNED = 0.99  # of the training examples: a model that has learned fewer is not called converged (ours)
SUSPICIOUS = 100  # labels that the JSON lists
MARGINS = 500  # test examples whose margin is taken; it costs a backward pass for each class
MEANINGS = {
    "contrast": "standard deviation of the input's numbers",
    "rarity": "distance from the mean training example of its class",
    "overlap": "that distance over the one to the nearest mean of another class",
    "class size": "training examples of its class",
    "input margin": "distance to another class, to first order (the larger, the safer)",
}


@dataclass(frozen=True, eq=False)
class Subject:
    """A model, and the examples that it is asked about: prepared, numbered by its classes, in memory.

    trained_here: whether its file says that exactly the training half was learned from; None if nothing is said.
    """

    name: str
    model: nn.Module
    train: Examples
    test: Examples
    how: str
    preparation: Preparation
    trained_here: bool | None = None

    @property
    def sets(self) -> tuple[Labelled, Labelled]:
        """Both halves as `prediction_depth` takes them."""
        return labelled(self.train, preparation=self.preparation), labelled(self.test, preparation=self.preparation)


@dataclass(frozen=True, eq=False)
class Trait:
    """A property of test examples, and how it goes with their depth."""

    name: str
    meaning: str
    correlation: RankCorrelation


@dataclass(frozen=True, eq=False)
class Stage:
    """An unconverged model: what its depths of the same test examples are, and how they go with the converged ones."""

    name: str
    train_accuracy: float
    test: Depths
    agreement: RankCorrelation


@dataclass(frozen=True, eq=False)
class Runs:
    """The same test or training examples in several runs; `learned` and `accuracies` are those of each on its halves.

    quadrants: of examples that were held out in some runs and learned from in others, which takes folds; `items` are
    their names, `train_depth` and `heldout_depth` their means, `consensus` the class that most runs gave them when they
    were held out.
    """

    names: tuple[str, ...]
    learned: tuple[float, ...]
    accuracies: tuple[float, ...]
    train: Consistency
    heldout: Consistency
    items: tuple[str, ...] = ()
    train_depth: Float64[Tensor, "M"] | None = None
    heldout_depth: Float64[Tensor, "M"] | None = None
    consensus: Int64[Tensor, "M"] | None = None
    quadrants: Quadrants | None = None


@dataclass(frozen=True, eq=False)
class HeldOutLabels:
    """Held-out examples of all runs and the ranking of their labels; probabilities are means over these runs."""

    items: tuple[str, ...]
    labels: Int64[Tensor, "M"]
    ranking: LabelRanking

    def rows(self, most: int) -> list[dict[str, Any]]:
        """The most suspicious labels: name, label, suggested class (numbers), score, whether it is flagged."""
        ranking = self.ranking
        return [
            {"item": self.items[row], "label": int(self.labels[row]), "suggested": int(ranking.suggested[row])}
            | {"score": float(ranking.score[row]), "flagged": bool(ranking.flagged[row])}
            for row in ranking.order[:most].tolist()
        ]


@dataclass(frozen=True, eq=False)
class DepthStudy:
    """Depths of one model, with what explains them and, where others were given, how much they vary.

    labels: the labels of held-out examples, ranked by how suspicious they are.
    """

    subject: Subject
    found: PredictionDepth
    overlap: Float64[Tensor, "N"]
    traits: tuple[Trait, ...]
    labels: HeldOutLabels
    stages: tuple[Stage, ...] = ()
    runs: Runs | None = None

    @property
    def test(self) -> Depths:
        """Of the test half."""
        assert self.found.test is not None
        return self.found.test

    @property
    def settled(self) -> list[float]:
        """Which part of the test examples is settled at each probe: all probes from there on agree with the model."""
        return (self.test.counts.cumsum(0)[:-1].double() / len(self.test)).tolist()

    @property
    def probes(self) -> list[dict[str, Any]]:
        """For each probe its accuracy and agreement on test examples, and the share of them that is settled there."""
        curve = self.found.curves["test"]
        accuracies, agreements = curve.accuracy[0].tolist(), curve.agreement[0].tolist()
        names = ("probe", "accuracy", "agreement", "settled")
        lines = zip(self.found.layers, accuracies, agreements, self.settled, strict=True)
        return [dict(zip(names, line, strict=True)) for line in lines]

    @property
    def warnings(self) -> list[str]:
        """What stands between these numbers and their meaning."""
        found = []
        learned = self.found.train.accuracy
        if learned < LEARNED:
            part = f"{learned:.1%} of its training examples, less than {LEARNED:.0%}"
            found.append(f"The model is not converged: it knows {part}. Depth is defined for a converged model.")
        for name, part in zip(self.runs.names[1:], self.runs.learned[1:], strict=True) if self.runs else ():
            if part < LEARNED:
                found.append(f"{name} is not converged: it knows {part:.1%} of its training examples.")
        if self.subject.trained_here is False:
            found.append("The model's file names other training examples: it may have learned from the test half.")
        if self.subject.trained_here is None:
            found.append("What the model was trained on is not known: it may have learned from the test half.")
        if self.runs is None:
            found.append(
                "One model is one draw: depths of single examples vary from seed to seed. Give others: --again."
            )
        return found

    def to_json(self) -> dict[str, Any]:
        """Plain data; a number that is not known is None."""
        runs, test = self.runs, self.test
        facts = {
            "model": self.subject.name,
            "halves": self.subject.how,
            "train": len(self.found.train),
            "test": len(test),
            "k": self.found.k,
            "train_accuracy": self.found.train.accuracy,
            "test_accuracy": test.accuracy,
            "undefined_rate": test.undefined_rate,
            "mean_depth": test.mean(),
            "probes": self.probes,
            "depths": test.counts.tolist(),
            "accuracy_by_depth": test.accuracy_by_depth.tolist(),
            "traits": {trait.name: trait.correlation for trait in self.traits},
            "checkpoints": [
                {"name": stage.name, "train_accuracy": stage.train_accuracy, "test_accuracy": stage.test.accuracy}
                | {"mean_depth": stage.test.mean(), "undefined_rate": stage.test.undefined_rate}
                | {"rank_correlation": stage.agreement}
                for stage in self.stages
            ],
            "runs": runs and {"models": runs.names, "rank_correlation": runs.heldout.rank_correlation},
            "quadrants": runs and runs.quadrants and str(runs.quadrants),
            "flagged_labels": int(self.labels.ranking.flagged.sum()),
            "suspicious_labels": [
                row | {which: self.subject.test.identities[row[which]] for which in ("label", "suggested")}
                for row in self.labels.rows(SUSPICIOUS)
            ],
            "warnings": self.warnings,
            "fingerprint": self.found.fingerprint,
            "seconds": self.found.seconds,
        }
        return finite(facts)


@dataclass(frozen=True)
class DepthJob:
    """Everything that `run_depth_job` is asked for.

    model, again, checkpoints: as `model` in `likewise.networks.open_classifier`, which data, train and held_out are
    for, too. again, checkpoints, k, max_memory, folder: as in `study_depth`.
    """

    model: str
    data: str
    train: str | None = None
    held_out: float = 0.2
    again: Sequence[str] = ()
    checkpoints: Sequence[str] = ()
    k: int = 30
    max_memory: int = MAX_MEMORY
    folder: Path | None = None

    def subject(self, model: str) -> Subject:
        """One of the models, with the training half that is its own, if it is known, and the test half."""
        opened = open_classifier(model, self.data, train=self.train, held_out=self.held_out)
        name = Path(model).name.removesuffix(".safetensors") if opened.name else model
        parts = name, opened.network, opened.preparation, opened.halves
        return subject_of(*parts, classes=opened.classes, trained_here=opened.trained_here)


def run_depth_job(
    job: DepthJob, *, planned: Callable[[DepthPlan], object] | None = None, progress: Progress = silent
) -> DepthStudy:
    """Open models and data and find the depths. planned: told the memory and places of the work before it is done."""
    progress(0.0, "images")
    subject = job.subject(job.model)
    again = [job.subject(model) for model in job.again]
    checkpoints = [job.subject(model) for model in job.checkpoints]
    if planned:
        planned(plan_study(subject, k=job.k, max_memory=job.max_memory))
    return study_depth(
        subject,
        again=again,
        checkpoints=checkpoints,
        k=job.k,
        max_memory=job.max_memory,
        folder=job.folder,
        progress=progress,
    )


def subject_of(
    name: str,
    model: nn.Module,
    preparation: Preparation,
    halves: Halves,
    *,
    classes: Sequence[str] | None = None,
    trained_here: bool | None = None,
) -> Subject:
    """A model in evaluation mode with both halves in memory, rows x columns x channels bytes for each image.

    classes: which the logits are of, in their order; those of the training half unless given. Unreadable images are
    left out.
    """
    for which, some in (("train", halves.train), ("test", halves.test)):
        require(len(some) > 0, "depth", f"the {which} half", "have examples", 0, "Hold some out: --held-out 0.2.")
    names = tuple(classes or halves.train.identities)
    train, test = (held(some, preparation).numbered_by(names) for some in halves[:2])
    return Subject(name, model.eval(), train, test, halves.how, preparation, trained_here)


def plan_study(subject: Subject, *, k: int = 30, max_memory: int = MAX_MEMORY) -> DepthPlan:
    """Bytes, blocks and places of the work, before it is done."""
    return plan_depth(subject.model, *subject.sets, k=k, max_memory=max_memory)


def study_depth(
    subject: Subject,
    *,
    again: Sequence[Subject] = (),
    checkpoints: Sequence[Subject] = (),
    k: int = 30,
    max_memory: int = MAX_MEMORY,
    folder: Path | None = None,
    progress: Progress = silent,
) -> DepthStudy:
    """Prediction depth of a subject, what goes with it, and the same of other models.

    again: the model trained again, from other seeds or on other folds. checkpoints: the model before it had converged.
    folder: each model keeps its finished layers in a folder of its own there.
    """
    for one in checkpoints:
        same = one.test.items == subject.test.items
        require(same, "study_depth", "checkpoints", "be asked about the same test examples", one.name)

    steps = parts(progress, 1 + len(again) + len(checkpoints))

    def depths(number: int, one: Subject) -> PredictionDepth:
        place = None if folder is None else folder / f"model-{number}"
        several = f"{one.name}: " if again or checkpoints else ""
        tell: Progress = lambda done, doing: steps[number](done, several + doing)  # noqa: E731
        return prediction_depth(one.model, *one.sets, k=k, max_memory=max_memory, folder=place, progress=tell)

    found = depths(0, subject)
    others = [depths(number, one) for number, one in enumerate(again, start=1)]
    early = [depths(number, one) for number, one in enumerate(checkpoints, start=1 + len(again))]
    overlap, traits = _traits(subject, found)
    assert found.test is not None
    stages = tuple(_stage(one, each, found.test) for one, each in zip(checkpoints, early, strict=True))
    runs = _runs([subject, *again], [found, *others]) if again else None
    return DepthStudy(subject, found, overlap, traits, _labels([subject, *again]), stages, runs)


def _traits(subject: Subject, found: PredictionDepth) -> tuple[Float64[Tensor, "N"], tuple[Trait, ...]]:
    train, test = subject.sets
    values = input_traits(train, test)
    assert found.test is not None
    depth = found.test.depth.double()
    rows = torch.arange(min(MARGINS, len(test))) * len(test) // min(MARGINS, len(test))
    images = torch.stack([subject.preparation(subject.test.read(row)) for row in rows.tolist()])
    margins = input_margin(subject.model, images).double()
    traits = [Trait(name, MEANINGS[name], rank_correlation(each, depth)) for name, each in values.items()]
    traits.append(Trait("input margin", MEANINGS["input margin"], rank_correlation(margins, depth[rows])))
    return values["overlap"], tuple(traits)


def _stage(subject: Subject, found: PredictionDepth, converged: Depths) -> Stage:
    assert found.test is not None
    agreement = rank_correlation(found.test.depth.double(), converged.depth.double())
    return Stage(subject.name, found.train.accuracy, found.test, agreement)


def _labels(subjects: Sequence[Subject]) -> HeldOutLabels:
    """Rank the labels of all examples that a model held out, by the mean of the probabilities it gave them."""
    places, items = _numbered([each.test for each in subjects])
    classes = len(subjects[0].test.identities)
    sums = torch.zeros(len(items), classes, dtype=torch.float64)
    labels = torch.zeros(len(items), dtype=torch.int64)
    for each, place in zip(subjects, places, strict=True):
        probabilities = class_probabilities(each.model, each.sets[1])
        same = probabilities.shape[1] == classes
        require(
            same, "study_depth", "again", f"be models of {classes} classes", f"{each.name}, {probabilities.shape[1]}"
        )
        sums.index_add_(0, place, probabilities)
        labels[place] = each.test.labels
    return HeldOutLabels(tuple(items), labels, rank_labels(sums / sums.sum(1, keepdim=True), labels))


def _runs(subjects: Sequence[Subject], found: Sequence[PredictionDepth]) -> Runs:
    trains, train_items = _numbered([one.train for one in subjects])
    tests, test_items = _numbered([one.test for one in subjects])
    heldout_sets = [each.test for each in found if each.test is not None]
    train = depth_consistency([each.train for each in found], of=trains)
    heldout = depth_consistency(heldout_sets, of=tests)
    names = tuple(one.name for one in subjects)
    learned = tuple(each.train.accuracy for each in found)
    accuracies = tuple(each.accuracy for each in heldout_sets)
    if len({one.train.fingerprint for one in subjects}) == 1:  # no example changes sides
        return Runs(names, learned, accuracies, train, heldout)
    place = {item: row for row, item in enumerate(train_items)}
    both = [(place[item], row) for row, item in enumerate(test_items) if item in place]
    rows, out = torch.tensor(both, dtype=torch.int64).reshape(-1, 2).unbind(1)
    items = tuple(test_items[row] for row in out.tolist())
    means = train.mean[rows], heldout.mean[out]
    kinds = quadrants(*means) if items else None
    return Runs(names, learned, accuracies, train, heldout, items, *means, heldout.consensus[out], kinds)


def _numbered(sets: Sequence[Examples]) -> tuple[list[Int64[Tensor, "_"]], list[str]]:
    """For each set which rows of a common list its examples are, and the list."""
    items = list(dict.fromkeys(item for some in sets for item in some.items))
    place = {item: row for row, item in enumerate(items)}
    return [torch.tensor([place[item] for item in some.items], dtype=torch.int64) for some in sets], items
