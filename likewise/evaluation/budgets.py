"""Networks trained with equal budgets, one for each row: Tables 5 and 6 of the paper, on your own data."""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import torch

from likewise.checks import require, require_count
from likewise.data import Examples
from likewise.evaluation.evaluating import Embedding, embed_subject
from likewise.evaluation.judging import judge, supported_far
from likewise.evaluation.protocols import Everyone, Listed
from likewise.evaluation.sweeps import Row, Table, row
from likewise.files import finite
from likewise.metric import CollapseError
from likewise.networks import load_network
from likewise.training import Diverged, Record, TrainingPlan, beside, fit
from likewise.training.checkpoints import checkpoint_settings

WIDTHS = (64, 128, 256, 512)
SHARES = (0.125, 0.25, 0.5, 1.0)


@runtime_checkable
class Watch(Protocol):
    """Told the part that is done and what is done; True stops the work after this step."""

    def __call__(self, done: float, doing: str, /) -> bool | None: ...


@dataclass(frozen=True)
class _Run:
    """One row to be: what it is called, on what and how it is trained."""

    group: str
    value: float
    examples: Examples
    plan: TrainingPlan
    note: str = ""


def table5(
    examples: Examples,
    test: Examples,
    plan: TrainingPlan,
    folder: Path,
    *,
    widths: Sequence[int] = WIDTHS,
    protocol: Listed | Everyone | None = None,
    far: float | None = None,
    workers: int = 0,
    watch: Watch | None = None,
) -> Table:
    """VAL at a FAR by the width of the embedding: one network for each, all trained by the plan on the same images.

    test: images of other people; the protocol's rows are rows of it. folder: keeps networks, checkpoints and finished
    rows (table5.jsonl); the same call goes on where it was stopped, to the same result.

    Paper: Schroff et al. 2015, Table 5: 86.8 +- 1.7, 87.9 +- 1.9, 87.7 +- 1.9 and 85.6 +- 2.0 at 64 to 512.
    """
    for width in widths:
        require_count("table5", "widths", width)
    runs = [_Run("dimension", width, examples, replace(plan, embedding_dim=width)) for width in widths]
    text = f"One network for each width, {plan.network}, {plan.steps:,} steps each on {len(examples):,} images."
    table = Table("Table 5: embedding dimension", text)
    return _filled(table, folder / "table5.jsonl", runs, test, protocol, far, workers, watch)


def table6(
    examples: Examples,
    test: Examples,
    plan: TrainingPlan,
    folder: Path,
    *,
    shares: Sequence[float] = SHARES,
    protocol: Listed | Everyone | None = None,
    far: float | None = None,
    workers: int = 0,
    watch: Watch | None = None,
) -> Table:
    """VAL at a FAR by the amount of data: one network for each share of the identities, all trained for as many steps.

    A smaller share is part of every larger one. The rest is as in `table5`.

    Paper: Schroff et al. 2015, Table 6: 76.3, 85.1, 85.1 and 86.2 with 2.6, 26, 52 and 260 million images.
    """
    runs = []
    for share in shares:
        require(0 < share <= 1, "table6", "shares", "be above 0 and at most 1", share)
        part = share_of(examples, share, seed=plan.seed)
        runs.append(_Run("images", len(part), part, plan, f"{len(part.identities):,} identities"))
    text = f"One network for each amount of data, {plan.network}, {plan.steps:,} steps each."
    table = Table("Table 6: training data", text)
    return _filled(table, folder / "table6.jsonl", runs, test, protocol, far, workers, watch)


def share_of(examples: Examples, share: float, *, seed: int = 0) -> Examples:
    """The images of a share of the identities, two at least; a smaller share is part of a larger one."""
    order = _shuffled(examples, seed)
    return examples.of(order[: max(2, round(share * len(order)))])


def held_out(examples: Examples, share: float, *, seed: int = 0) -> tuple[Examples, Examples]:
    """Images to train on, and those of a share of the identities, which are nobody to be trained on."""
    require(0 < share < 1, "held_out", "share", "be between 0 and 1", share)
    order = _shuffled(examples, seed)
    count = max(2, round(share * len(order)))
    require(len(order) - count >= 2, "held_out", "examples", f"have more than {count + 1} identities", len(order))
    return examples.without(order[:count]), examples.of(order[:count])


def _shuffled(examples: Examples, seed: int) -> list[str]:
    order = torch.randperm(len(examples.identities), generator=torch.Generator().manual_seed(seed))
    return [examples.identities[place] for place in order.tolist()]


def plan_of(model: Path) -> TrainingPlan:
    """The plan by which a network was trained, from the checkpoint beside it.

    Another network can then be trained like it, but for what is replaced in the plan. It is one from scratch: if this
    one had a start, no steps of the embedding layer alone are planned, and the size of images, which came with the
    start, is that of the network.
    """
    file = beside(model, "checkpoint")
    require(file.is_file(), "plan_of", "model", "have its checkpoint beside it", repr(str(model)), f"No {file.name}.")
    found = checkpoint_settings(file)
    known: dict[str, Any] = {each.name: found[each.name] for each in fields(TrainingPlan) if each.name in found}
    known["size"] = None if known["size"] is None else tuple(known["size"])
    if found["start"] is not None:
        known |= {"head_steps": 0, "size": load_network(model).preparation.size}
    return TrainingPlan(**known)


def _filled(
    table: Table,
    file: Path,
    runs: Sequence[_Run],
    test: Examples,
    protocol: Listed | Everyone | None,
    far: float | None,
    workers: int,
    watch: Watch | None,
) -> Table:
    """The table with a row for each run; finished rows are read from the file and new ones added to it."""
    where = table.title.partition(":")[0].lower().replace(" ", "")
    file.parent.mkdir(parents=True, exist_ok=True)
    for run in runs:
        shared = set(run.examples.identities) & set(test.identities)
        require(not shared, where, "test", "show nobody who is trained on", ", ".join(sorted(shared)[:3]))
    protocol = protocol or Everyone()
    far = supported_far(test.labels, protocol=protocol) if far is None else far
    table, tell = replace(table, protocol=protocol.title, far=far), watch or (lambda done, doing: None)
    known = _known(file)
    for number, run in enumerate(runs):
        key = _key(run, test, protocol, far)
        if key not in known:

            def told(record: Record, number: int = number, run: _Run = run) -> bool | None:
                done = (number + (record.step + 1) / run.plan.steps) / len(runs)
                return tell(done, f"{run.group} {run.value:g}, step {record.step + 1}, loss {record.loss:.4f}")

            out = file.with_name(f"{file.stem}-{run.value:g}-{key[:8]}.safetensors")
            found = _trained(run, out, test, protocol, far, workers, told)
            if found is None:
                return replace(table, finished=False)
            known[key] = found
            with file.open("a") as log:
                log.write(json.dumps({"key": key, **finite(asdict(found))}) + "\n")
        table = replace(table, rows=(*table.rows, known[key]))
    return table


def _trained(
    run: _Run,
    out: Path,
    test: Examples,
    protocol: Listed | Everyone,
    far: float,
    workers: int,
    told: Callable[[Record], bool | None],
) -> Row | None:
    """A row, from its checkpoint on; none if it was stopped. A run that fails has a row that says so."""
    try:
        fitted = fit(run.examples, run.plan, out, resume=True, workers=workers, watch=told)
    except (CollapseError, Diverged) as error:
        return Row(run.group, run.value, *[math.nan] * 5, note=f"failed: {error}")
    if not fitted.trained.finished:
        return None
    subject = embed_subject(Embedding(fitted.network, fitted.preparation, workers=workers), test, protocol)
    rates = judge(subject.vectors, subject.labels, protocol=subject.protocol, far=far)
    return replace(row(run.group, run.value, rates), note=run.note)


def _key(run: _Run, test: Examples, protocol: Listed | Everyone, far: float) -> str:
    """A hash of everything that decides a row."""
    judged: Any = asdict(protocol) if isinstance(protocol, Everyone) else None
    if isinstance(protocol, Listed):
        folds = protocol.folds.tolist() if isinstance(protocol.folds, torch.Tensor) else protocol.folds
        judged = [protocol.rows.tolist(), protocol.same.tolist(), folds, protocol.fold]
    facts = [asdict(run.plan), run.examples.fingerprint, test.fingerprint, judged, far]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()


def _known(file: Path) -> dict[str, Row]:
    """Finished rows by their keys; a last line that was cut off is left out."""
    found: dict[str, Row] = {}
    for line in file.read_text().splitlines() if file.is_file() else []:
        try:
            facts: dict[str, Any] = json.loads(line)
            key = facts.pop("key")
            numbers: dict[str, Any] = {name: math.nan if value is None else value for name, value in facts.items()}
            found[key] = Row(**numbers)
        except (json.JSONDecodeError, TypeError, KeyError, AttributeError):
            continue
    return found
