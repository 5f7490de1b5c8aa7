"""Embedding images with NN4 and with facenet-pytorch's network: multiply-adds a second, after answers were checked.

Run it as `python -m benchmarks.embedding`, on a machine that does nothing else (two minutes);
`benchmarks/peers/setup.sh` makes the peers' environment. The two networks differ in size, so what is compared is how
many of its own multiply-adds each does in a second: ours at the batch that it chooses by itself, the peer's at the best
of several, in its own layout and in ours. Both run in processes of their own and take turns. Exit code 0: the promise
is kept or not judged; 1: it is broken, or an answer is wrong.
"""

import sys
from contextlib import ExitStack
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console

from benchmarks.embedding_forms import SIDE, network
from benchmarks.embedding_problem import AS_MADE, BATCHES, COUNT, LAST
from benchmarks.harness.measurement import Demand, Measurement, machine, write_json
from benchmarks.harness.worker import PEERS_PYTHON, RESULTS, THREADS, Worker, WorkerError
from benchmarks.render import embedding_tables
from likewise.data import Preparation
from likewise.training.embedding import images_at_once

OURS, PEER = "NN4, likewise", "InceptionResnetV1, facenet-pytorch"
CHECKED, ALL_ROWS, TOLERANCE = 8, 1 << 30, 1e-5


def wrong_answers(ours: Worker, peer: Worker | None) -> list[str]:
    """Complaints: ours must be what the plain network says, theirs must have length 1."""
    complaints = []
    ours.seconds(LAST, CHECKED)
    (fast,) = ours.last_rows(ALL_ROWS)
    ours.seconds(AS_MADE, CHECKED)
    (plain,) = ours.last_rows(ALL_ROWS)
    if not torch.allclose(fast, plain, atol=TOLERANCE):
        complaints.append(f"{OURS} is wrong by {(fast - plain).abs().max():.2g}")
    if peer is not None:
        peer.seconds(AS_MADE, CHECKED)
        (vectors,) = peer.last_rows(ALL_ROWS)
        if not torch.allclose(vectors.norm(dim=1), torch.ones(CHECKED, dtype=torch.float64), atol=TOLERANCE):
            complaints.append(f"{PEER} is wrong: its vectors are not of length 1")
    return complaints


def counted(worker: Worker) -> int:
    """Multiply-adds of one image."""
    worker.seconds(COUNT, 1)
    return round(float(worker.last_rows(1)[0]))


def measure(workers: dict[str, Worker], rounds: int) -> list[Measurement]:
    """Times of every network, layout and batch, in turn."""
    plan = [(name, task, batch) for batch in BATCHES for name in workers for task in (AS_MADE, LAST)]
    times: dict[tuple[str, str, int], list[float]] = {entry: [] for entry in plan}
    for _ in range(rounds):
        for name, task, batch in plan:
            times[name, task, batch] += workers[name].seconds(task, batch, 3)
    return [Measurement(name, batch, tuple(found), task=task) for (name, task, batch), found in times.items()]


def demands(found: list[Measurement], macs: dict[str, int], chosen: int) -> list[Demand]:
    """Ours at the batch that it chooses by itself; the peer at its best batch, in either layout."""

    def rate(each: Measurement, seconds: float) -> float:
        return macs[each.form] * each.length / seconds

    ours = next(each for each in found if (each.form, each.task, each.length) == (OURS, LAST, chosen))
    wanted = []
    for task in (AS_MADE, LAST):
        theirs = [each for each in found if each.form == PEER and each.task == task]
        if not theirs:
            continue
        best = max(theirs, key=lambda each: rate(each, each.best))
        by_best, by_median = (
            rate(ours, mine) / rate(best, its) for mine, its in ((ours.best, best.best), (ours.median, best.median))
        )
        noise = "disturbed, try again on a quiet machine" if ours.disturbed or best.disturbed else ""
        promise = f"times the multiply-adds a second of {PEER}, {task}"
        wanted.append(Demand(promise, 1, True, by_best, by_median, noise))
    return wanted


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds of two times each.")] = 5,
    peers_python: Annotated[Path, typer.Option(help="Python of the peers' environment.")] = PEERS_PYTHON,
    out: Annotated[Path, typer.Option(help="Folder for the JSON.")] = RESULTS,
) -> None:
    """Measure embedding against its peer; answers are checked first."""
    torch.set_num_threads(THREADS)
    console, facts = Console(soft_wrap=True), machine()
    notes = [f"Others were at work when the run began: load {facts['load']:.2g}."] if facts["load"] > 0.5 else []
    chosen = images_at_once(network(), Preparation((SIDE, SIDE)))
    with ExitStack() as stack:
        workers = {OURS: stack.enter_context(Worker(sys.executable, "benchmarks.embedding_forms"))}
        versions = [workers[OURS].about()]
        try:
            peer = stack.enter_context(Worker(str(peers_python), "benchmarks.peers.run_facenet_pytorch"))
            versions.append(peer.about())
            workers[PEER] = peer
        except (WorkerError, FileNotFoundError) as error:
            notes.append(f"{PEER} was not measured: {str(error).strip().splitlines()[-1]}")
        complaints = wrong_answers(workers[OURS], workers.get(PEER))
        if complaints:
            console.print("\n".join(complaints), style="red")
            raise typer.Exit(1)
        macs = {name: counted(worker) for name, worker in workers.items()}
        found = measure(workers, rounds)
    wanted = demands(found, macs, chosen)
    result: dict[str, Any] = {
        "machine": facts,
        "macs": macs,
        "chosen": chosen,
        "versions": versions,
        "notes": notes,
        "demands": [demand.facts() for demand in wanted],
        "times": [each.facts() for each in found],
    }
    write_json(out / "embedding.json", result)
    console.print(embedding_tables(result), markup=False, highlight=False)
    raise typer.Exit(1 if any(demand.holds is False for demand in wanted) else 0)


if __name__ == "__main__":
    typer.run(main)
