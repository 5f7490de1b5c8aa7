"""Semi-hard mining and the batch-all loss, ours and others': time and memory, after their answers were compared.

Run it as `python -m benchmarks.mining`, on a machine that does nothing else (about five minutes, and 8 GB for
pytorch-metric-learning); `benchmarks/peers/setup.sh` makes the peers' environment. Every form runs in a process of its
own and they take turns. Ours, the sort form and pytorch-metric-learning are first compared with every triplet by its
definition, and nothing is reported when an answer is wrong. Exit code 0: all promises are kept or not judged; 1: one
is broken, or an answer is wrong.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from torch import Tensor

from benchmarks.harness.measurement import Demand, Measurement, machine, time_ratio, write_json
from benchmarks.harness.worker import PEERS_PYTHON, RESULTS, THREADS, Worker, WorkerError
from benchmarks.mining_forms import FORMS, OURS, SORT, by_definition, sorted_rows
from benchmarks.mining_problem import BATCH_ALL, CHECKS, FACES, LOSS_SUM, MARGIN, RANDOM, SEMI_HARD, WIDTH, inputs
from benchmarks.render import mining_tables
from likewise.metric import batch_all_loss, batch_hard, semi_hard_negatives
from likewise.metric.mining import negative_shares

PML = "pytorch-metric-learning"
CHECKED, BATCH, LARGE = 160, 1800, 4096
TOLERANCE = 1e-9
ALL_ROWS = 1 << 30


def our_answers(x: Tensor, labels: Tensor) -> dict[str, tuple[Tensor, ...]]:
    """Ours, in float64, for every question that has a list or a loss for an answer."""
    answers: dict[str, tuple[Tensor, ...]] = {
        SEMI_HARD: (torch.stack(semi_hard_negatives(x, labels, margin=MARGIN), dim=-1),),
        CHECKS[3]: (torch.stack(batch_hard(x, labels), dim=-1),),
    }
    for name, reduction in ((CHECKS[4], "sum"), (CHECKS[5], "mean")):
        point = x.clone().requires_grad_()
        loss = batch_all_loss(point, labels, margin=MARGIN, reduction=reduction)
        answers[name] = loss.detach().reshape(1, 1), torch.autograd.grad(loss, point)[0]
    return answers


def wrong_answers(who: str, found: dict[str, tuple[Tensor, ...]], right: dict[str, tuple[Tensor, ...]]) -> list[str]:
    """Complaints: lists must be equal, losses and gradients close."""
    complaints = []
    for name, answer in found.items():
        for mine, truth in zip(answer, right[name], strict=True):
            if truth.is_floating_point():
                error = (mine.double() - truth).abs().max() / truth.abs().max()
                same = bool(error <= TOLERANCE)
            else:
                same = torch.equal(sorted_rows(mine), sorted_rows(truth))
            if not same:
                complaints.append(f"{who} is wrong: {name}")
    return complaints


def check(peer: Worker | None) -> list[str]:
    """Complaints about anybody's answers on a small batch."""
    x, labels = inputs(CHECKED)
    x = x.double()
    right = by_definition(x, labels)
    complaints = wrong_answers(OURS, our_answers(x, labels), right)
    complaints += wrong_answers(SORT, {SEMI_HARD: FORMS[SORT][SEMI_HARD](x, labels)}, right)
    shares = negative_shares(x, labels, margin=MARGIN)
    counts = [round(share * shares.count) for share in (shares.semi_hard, shares.hard, shares.easy)]
    if counts != [len(right[name][0]) for name in CHECKS[:3]]:
        complaints.append(f"{OURS} is wrong: shares of hard, semi-hard and easy")
    if peer is not None:
        answers = {}
        for name in CHECKS:
            peer.seconds(name, CHECKED)
            answers[name] = peer.last_rows(ALL_ROWS)
            if name not in (LOSS_SUM, CHECKS[5]):
                answers[name] = tuple(each.long() for each in answers[name])
        complaints += wrong_answers(PML, answers, right)
    return complaints


def started(name: str, python: Path) -> Worker:
    """A process for a form."""
    if name == PML:
        return Worker(str(python), "benchmarks.peers.run_metric_learning")
    return Worker(sys.executable, "benchmarks.mining_forms", name)


def measure(plan: list[tuple[str, str, int]], rounds: int, slow_rounds: int, python: Path) -> list[Measurement]:
    """Times, all forms in turn, and memory, each in a fresh process."""
    times: dict[tuple[str, str, int], list[float]] = {entry: [] for entry in plan}
    with ExitStack() as stack:
        workers = {name: stack.enter_context(started(name, python)) for name in {entry[0] for entry in plan}}
        for turn in range(rounds):
            for name, task, length in plan:
                if name != PML:
                    times[name, task, length] += workers[name].seconds(task, length, 3)
                elif turn < slow_rounds:
                    times[name, task, length] += workers[name].seconds(task, length)
    found = []
    for (name, task, length), seconds in times.items():
        with started(name, python) as worker:
            found.append(Measurement(name, length, tuple(seconds), worker.extra_bytes(task, length), task))
    return found


def demands(found: list[Measurement]) -> list[Demand]:
    """What the issue of this room promises."""
    by = {(each.form, each.task): each for each in found}
    ours, sort, peer = (by.get((name, SEMI_HARD)) for name in (OURS, SORT, PML))
    large = by[OURS, BATCH_ALL]
    assert ours is not None
    assert sort is not None
    assert ours.extra_bytes is not None
    assert large.extra_bytes is not None
    wanted = [time_ratio(f"times faster than the sort form, B = {BATCH}", 1, True, sort, ours)]
    if peer is not None:
        wanted.insert(0, time_ratio(f"times faster than {PML}, B = {BATCH}", 100, True, peer, ours))
    noise = "disturbed, try again on a quiet machine" if large.disturbed and large.best > 2 else ""
    return [
        *wanted,
        Demand(f"memory of semi-hard mining, B = {BATCH}", 200, False, ours.extra_bytes / 1e6, unit=" MB"),
        Demand(f"batch-all, both passes, B = {LARGE}", 2, False, large.best, large.median, noise, " s"),
        Demand(f"memory of batch-all, B = {LARGE}", 1000, False, large.extra_bytes / 1e6, unit=" MB"),
    ]


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of ours and the sort form, two times each.")] = 5,
    slow_rounds: Annotated[int, typer.Option(min=1, help="Rounds of pytorch-metric-learning.")] = 3,
    peers_python: Annotated[Path, typer.Option(help="Python of the peers' environment.")] = PEERS_PYTHON,
    out: Annotated[Path, typer.Option(help="Folder for the JSON.")] = RESULTS,
) -> None:
    """Measure mining against its peers; answers are checked first."""
    torch.set_num_threads(THREADS)
    console, facts = Console(soft_wrap=True), machine()
    notes = [f"Others were at work when the run began: load {facts['load']:.2g}."] if facts["load"] > 0.5 else []
    plan = [(OURS, SEMI_HARD, BATCH), (SORT, SEMI_HARD, BATCH), (OURS, RANDOM, BATCH), (OURS, BATCH_ALL, LARGE)]
    versions = [f"{OURS} and {SORT}, torch {torch.__version__}"]
    try:
        try:
            with started(PML, peers_python) as peer:
                versions.append(peer.about())
                complaints = check(peer)
            plan.append((PML, SEMI_HARD, BATCH))
        except (WorkerError, FileNotFoundError) as error:
            notes.append(f"{PML} was not measured: {str(error).strip().splitlines()[-1]}")
            complaints = check(None)
        if complaints:
            console.print("\n".join(complaints), style="red")
            raise typer.Exit(1)
        found = measure(plan, rounds, slow_rounds, peers_python)
    except WorkerError as error:
        console.print(f"[red]{error}")
        raise typer.Exit(1) from error
    wanted = demands(found)
    result: dict[str, Any] = {
        "machine": facts,
        "problem": {"E": WIDTH, "faces": FACES, "margin": MARGIN, "dtype": "float32", "checked": CHECKED},
        "versions": versions,
        "notes": notes,
        "demands": [demand.facts() for demand in wanted],
        "times": [each.facts() for each in found],
    }
    write_json(out / "mining.json", result)
    console.print(mining_tables(result), markup=False, highlight=False)
    raise typer.Exit(1 if any(demand.holds is False for demand in wanted) else 0)


if __name__ == "__main__":
    typer.run(main)
