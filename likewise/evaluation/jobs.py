"""A whole evaluation in one call: open network, images and pairs, judge them, make the tables that are asked for."""

import os
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

from likewise.checks import require
from likewise.data import Examples, open_examples
from likewise.data.lfw import lfw_protocol
from likewise.data.opening import is_lfw
from likewise.data.pair_lists import read_pairs
from likewise.evaluation.budgets import held_out, plan_of, table5, table6
from likewise.evaluation.evaluating import evaluate
from likewise.evaluation.protocols import Everyone, Listed, lfw_pairs, own_pairs
from likewise.evaluation.results import Evaluation
from likewise.evaluation.sweeps import Table, robustness, table3, table4
from likewise.metric import FewImpostorsWarning
from likewise.networks import Saved, load_network
from likewise.progress import Progress, parts, silent
from likewise.training import beside

LISTS = (".txt", ".tsv")
TRAINING = {5, 6}  # tables that train networks


@dataclass(frozen=True)
class EvaluationJob:
    """Everything that `run_evaluation_job` is asked for.

    model: a file of `likewise.networks.save_network`. data: as in `likewise.data.open_examples`, whose `split` this is,
    or a list of pairs. protocol: LFW's pairs, those of a list, or all pairs; by the data unless given. view, fold: of
    LFW. folds: of a list. splits: of all pairs. far, mirror, clusters, worst: as in `evaluate`. tables: of the paper, 3
    to 6. others: networks beside the model in Table 3. robustness: a table of changed images. runs, steps, held_out:
    for Tables 5 and 6, the folder that keeps their networks (MODEL.runs unless given), the steps of training (those of
    the model unless given), and the share of identities that is judged. workers: processes that read images, at most 2
    unless given.
    """

    model: Path
    data: str
    protocol: Literal["lfw", "pairs", "folders"] | None = None
    split: Literal["train", "test"] = "test"
    view: Literal[1, 2] = 2
    fold: int | None = None
    folds: int | None = None
    splits: int = 5
    far: float | None = None
    mirror: bool = False
    clusters: bool = False
    worst: int = 12
    tables: Sequence[int] = ()
    others: Sequence[Path] = ()
    robustness: bool = False
    runs: Path | None = None
    steps: int | None = None
    held_out: float = 0.2
    seed: int = 0
    workers: int | None = None

    def __post_init__(self) -> None:
        numbers = self.numbers
        require({*numbers} <= {3, 4, 5, 6}, "evaluate", "--table", "be 3, 4, 5 or 6", ", ".join(map(str, numbers)))
        hint = "Name other networks with --beside."
        alone = 3 not in numbers or bool(self.others)
        require(alone, "evaluate", "--table", "not be 3 for one network", 3, hint)

    @property
    def numbers(self) -> list[int]:
        """The tables of the paper, in order; other networks alone ask for Table 3."""
        return sorted({*self.tables, *([3] if self.others else [])})

    @property
    def trains(self) -> bool:
        """Whether networks are trained, which takes long and can be interrupted."""
        return bool(TRAINING & {*self.numbers})

    @property
    def judges(self) -> bool:
        """Whether the model itself is judged: tables that train do not need it."""
        return not self.numbers or bool({*self.numbers} - TRAINING) or self.robustness

    @property
    def processes(self) -> int:
        """Processes that read images."""
        return min(2, os.cpu_count() or 1) if self.workers is None else self.workers

    def open(self) -> tuple[Examples, Listed | Everyone]:
        """The images, and which pairs of them are judged."""
        place = Path(self.data)
        lfw = place.exists() and (place.suffix == ".tar" or (place.is_dir() and is_lfw(place)))
        listed = place.is_file() and place.suffix in LISTS
        protocol = self.protocol or ("lfw" if lfw else "pairs" if listed else "folders")
        for option, value, owner in (("--fold", self.fold, "lfw"), ("--folds", self.folds, "pairs")):
            require(value is None or protocol == owner, "evaluate", option, f"be for --protocol {owner}", value)
        if protocol == "pairs":
            found = read_pairs(self.data)
            return found.examples, own_pairs(found, folds=self.folds)
        examples = open_examples(self.data, split=self.split)
        if protocol == "folders":
            return examples, Everyone(self.splits, self.seed)
        require(lfw, "evaluate", "--protocol", "not be lfw for data that is not LFW", repr(self.data))
        return examples, lfw_pairs(examples, lfw_protocol(self.data), view=self.view, fold=self.fold)


@dataclass(frozen=True, eq=False)
class EvaluationResult:
    """What a job has found. examples, evaluation: None if only tables that train were asked for."""

    job: EvaluationJob
    saved: Saved
    examples: Examples | None
    evaluation: Evaluation | None
    tables: tuple[Table, ...]

    @property
    def finished(self) -> bool:
        """False if a table was interrupted; the same job goes on."""
        return all(table.finished for table in self.tables)

    @property
    def title(self) -> str:
        """The network and the data."""
        return f"{self.job.model.name} on {self.examples.title if self.examples else Path(self.job.data).name}"

    @property
    def warnings(self) -> tuple[str, ...]:
        """What limits the rates."""
        return self.evaluation.warnings if self.evaluation else ()

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        found = self.evaluation.to_json() if self.evaluation else {}
        tables = [table.to_json() for table in self.tables]
        return {"network": str(self.job.model), "hash": self.saved.hash, **found, "tables": tables}


def run_evaluation_job(
    job: EvaluationJob, *, progress: Progress = silent, interrupted: Callable[[], bool] | None = None
) -> EvaluationResult:
    """Judge a network as the job says.

    interrupted: asked after every step of a table that trains; True ends it, and the same job goes on.
    """
    saved = load_network(job.model)
    others = {path: load_network(path) for path in job.others}
    stages = iter(parts(progress, job.judges + len(job.numbers) + job.robustness))
    examples, evaluation, tables = None, None, []
    if job.judges:
        examples, protocol = job.open()
        network, workers = (saved.network, saved.preparation, examples), job.processes
        with warnings.catch_warnings(action="ignore", category=FewImpostorsWarning):  # the result holds the warning
            evaluation = evaluate(
                *network,
                protocol=protocol,
                far=job.far,
                mirror=job.mirror,
                clusters=job.clusters,
                worst=job.worst,
                workers=workers,
                trained_on=saved.trained_on,
                progress=next(stages),
            )
            same: dict[str, Any] = {
                "protocol": protocol,
                "far": evaluation.rates.far,
                "mirror": job.mirror,
                "workers": workers,
            }
            if 3 in job.numbers:
                named = {_named(path, each, examples): each for path, each in {job.model: saved, **others}.items()}
                pairs = {name: (each.network, each.preparation) for name, each in named.items()}
                tables.append(table3(pairs, examples, **same, progress=next(stages)))
            if 4 in job.numbers:
                tables.append(table4(*network, **same, progress=next(stages)))
            if job.robustness:
                tables.append(robustness(*network, **same, progress=next(stages)))
    for number in sorted(TRAINING & {*job.numbers}):
        if all(table.finished for table in tables):
            tables.append(_trained(number, job, next(stages), interrupted))
    return EvaluationResult(job, saved, examples, evaluation, tuple(tables))


def _named(path: Path, saved: Saved, examples: Examples) -> str:
    """The name of a network in Table 3."""
    seen = examples.shared(saved.trained_on)
    which = "these" if seen == len(examples) else f"{seen:,} of these"
    return f"{path.name}, trained on {which} images" if seen else path.name


def _trained(number: int, job: EvaluationJob, progress: Progress, interrupted: Callable[[], bool] | None) -> Table:
    """Table 5 or 6: networks like the model, trained on some identities of the data and judged on others."""
    plan = plan_of(job.model)
    plan = plan if job.steps is None else replace(plan, steps=job.steps)
    examples = open_examples(job.data)
    if Path(job.data).exists() and is_lfw(Path(job.data)):
        lists = lfw_protocol(job.data)
        train, test = examples.of(lists.train_people), examples.of(lists.test_people)
    else:
        train, test = held_out(examples, job.held_out, seed=job.seed)

    def watch(done: float, doing: str) -> bool:
        progress(done, doing)
        return bool(interrupted and interrupted())

    make = table5 if number == 5 else table6
    folder = beside(job.model, "runs") if job.runs is None else job.runs
    protocol = Everyone(job.splits, job.seed)
    return make(train, test, plan, folder, protocol=protocol, far=job.far, workers=job.processes, watch=watch)
