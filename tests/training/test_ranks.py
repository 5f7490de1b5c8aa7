"""Processes that share every batch take the steps that one process takes."""

import json
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise.data import Batch, Batches
from likewise.networks import build_network
from likewise.networks.weights import load_tensors
from likewise.training import CheckpointPolicy, Classes, Cosine, SemiHard, loop, train
from likewise.training.checkpoints import read_records
from likewise.training.loop import RankRows, Ranks
from tests.house.guards import ROOT
from tests.tolerance import assert_close
from tests.training.problems import feed, small

pytestmark = pytest.mark.full  # two processes that train take 17 s to start and to end

# If rank 0 ends with SIGABRT, "terminate called without an active exception", the system had no thread left for gloo:
# its process group then ends the process. Seen by letting the fourth pthread_create of rank 0 fail with EAGAIN.
STEPS, WORLD = 5, 2
CLOSE = 2e-5  # of weights that moved by about 0.1: sums of float32 in another order

RUN = """
import json, sys
from pathlib import Path
import torch
from torch import distributed
from tests.training import test_ranks

torch.set_num_threads(1)
where, rank, jobs = Path(sys.argv[1]), int(sys.argv[2]), json.loads(sys.argv[3])
distributed.init_process_group("gloo", init_method=f"file://{where}/meeting", rank=rank, world_size=2)
for name, (function, *rest) in jobs.items():
    (where / name).mkdir(exist_ok=True)
    getattr(test_ranks, function)(where / name, rank, *rest)
distributed.barrier()  # nobody closes a connection that the other still reads
distributed.destroy_process_group()
"""
# All that two processes are asked to do, by name: a process takes seconds to start.
JOBS: dict[str, tuple[str, ...]] = {
    "whole": ("train_in_part", "semi-hard", "0", "40"),
    "chunks": ("train_in_part", "semi-hard", "7", "40"),
    "one image": ("train_in_part", "classes", "4", "1"),
    "by chance": ("train_in_part", "by chance", "0", "40"),
    "wrong": ("begin_wrongly",),
    "stopped": ("stop_and_go_on",),  # the last, since it slows down how files are written
}


class Plain:
    """Down the gradient, so that one which is twice too long is seen."""

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.0)

    def rate(self, step: int, steps: int) -> float:
        return 0.5


class ByChance(Classes):
    """A loss that draws from torch's own generator."""

    def forward(self, embeddings: Tensor, batch: Batch) -> Tensor:
        return super().forward(embeddings, batch) * (1 + torch.rand(()))


OBJECTIVES: dict[str, Callable[[], nn.Module]] = {
    "semi-hard": lambda: SemiHard(choose="random"),
    "classes": lambda: Classes(7, 10),
    "by chance": lambda: ByChance(7, 10),
}


def shared(whole: Batches) -> Batches:
    """This process's part of a feed."""
    return replace(whole, drawn=RankRows(whole.drawn, Ranks.here()))


def weights(*modules: nn.Module) -> dict[str, Any]:
    return {name: weight.tolist() for module in modules for name, weight in module.named_parameters()}


def train_in_part(where: Path, rank: int, objective: str, chunk: str, size: str) -> None:
    """The steps of `feed`, as one of two."""
    network, goal = small(), OBJECTIVES[objective]()
    part = shared(feed(size=int(size)))
    found = train(network, goal, part, steps=STEPS, schedule=Plain(), chunk=int(chunk) or None)
    facts = [(record.loss, record.images) for record in found.records]
    (where / f"rank{rank}.json").write_text(json.dumps([facts, weights(network, goal)]))


def stop_and_go_on(where: Path, rank: int) -> None:
    """A run, and one that rank 1 ends after two steps; it goes on at once, though files are written slowly."""
    write = loop.save_checkpoint

    def slowly(*arguments: Any) -> None:
        time.sleep(0.3)
        write(*arguments)

    pytest.MonkeyPatch().setattr(loop, "save_checkpoint", slowly)
    found = []
    for stops in ([0], [2, 0]):
        for stop in stops:
            network, goal = small(dropout=0.2), OBJECTIVES["classes"]()
            run = train(
                network,
                goal,
                shared(feed()),
                steps=STEPS,
                schedule=Cosine(peak=0.01),
                keep=CheckpointPolicy(where / f"{len(stops)}.checkpoint", where / f"{len(stops)}.jsonl", every=100),
                resume=True,
                watch=lambda record, stop=stop: rank == 1 and record.step + 1 == stop,
            )
            found.append([[record.loss for record in run.records], weights(network, goal)])
    (where / f"rank{rank}.json").write_text(json.dumps(found))


def begin_wrongly(where: Path, rank: int) -> None:
    """What is refused, by name."""
    said, other = {}, small()
    with torch.no_grad():
        other.get_parameter("0.weight").mul_(1 + rank)

    class Behind:
        def since(self, step: int) -> Any:
            return shared(feed()).since(step + rank)

    cases: dict[str, tuple[nn.Module, Any]] = {
        "norms": (small(batch_norm=True), shared(feed())),
        "weights": (other, shared(feed())),
        "whole batches": (small(), feed()),
        "steps": (small(), Behind()),
    }
    for name, (network, some) in cases.items():
        try:
            train(network, OBJECTIVES["semi-hard"](), some, steps=1)
        except ValueError as error:
            said[name] = str(error)
    own = CheckpointPolicy(where / f"{rank}.checkpoint", where / f"{rank}.jsonl", every=1)  # only rank 0 writes its
    train(small(), SemiHard(), shared(feed()), steps=2, keep=own, watch=lambda record: True)
    try:
        train(small(), SemiHard(), shared(feed()), steps=2, keep=own, resume=True)
    except ValueError as error:
        said["folders"] = str(error)
    (where / f"rank{rank}.json").write_text(json.dumps(said))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where two processes have done all jobs; a crash of one shows its stack."""
    where = tmp_path_factory.mktemp("ranks")
    command = [sys.executable, "-X", "faulthandler", "-c", textwrap.dedent(RUN), str(where)]
    running = [
        subprocess.Popen([*command, str(rank), json.dumps(JOBS)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for rank in range(WORLD)
    ]
    try:
        said = [each.communicate(timeout=300)[1] for each in running]
    finally:
        for each in running:
            each.kill()
    assert [each.returncode for each in running] == [0, 0], "\n".join(said)
    return where


def both(folder: Path, name: str) -> Any:
    """What two processes wrote, which must be the same to the last digit."""
    first, second = (json.loads((folder / name / f"rank{rank}.json").read_text()) for rank in range(WORLD))
    assert first == second
    return first


@pytest.mark.parametrize("name", ["whole", "chunks", "one image"])
def test_two_processes_take_the_steps_of_one(folder: Path, name: str) -> None:
    """With a batch of one image the first process has none, and waits for the other."""
    _, objective, _, size = JOBS[name]
    network, goal = small(), OBJECTIVES[objective]()
    alone = train(network, goal, feed(size=int(size)), steps=STEPS, schedule=Plain())
    facts, found = both(folder, name)
    assert [images for _, images in facts] == [record.images for record in alone.records]
    assert [loss for loss, _ in facts] == pytest.approx([record.loss for record in alone.records], rel=1e-5)
    for module, start in ((network, small()), (goal, OBJECTIVES[objective]())):
        begun = dict(start.named_parameters())
        for name, weight in module.named_parameters():
            assert_close(torch.tensor(found[name]), weight.detach(), atol=CLOSE)
            assert (weight - begun[name]).abs().max() > 100 * CLOSE


def test_all_processes_find_the_same_loss_also_by_chance(folder: Path) -> None:
    facts, _ = both(folder, "by chance")
    assert len({loss for loss, _ in facts}) == STEPS


def test_a_stopped_run_of_two_goes_on_to_the_last_digit(folder: Path) -> None:
    whole, first, rest = both(folder, "stopped")
    assert len(first[0]) == 2
    assert rest == whole
    assert len(read_records(folder / "stopped" / "2.jsonl")) == STEPS


def test_processes_that_do_not_fit_together_are_refused(folder: Path) -> None:
    assert both(folder, "wrong") == {
        "norms": "train: network must have no BatchNorm in 2 processes; got 1. Take a network without, such as nns2.",
        "weights": "train: network must begin with the same weights in all processes; got others.",
        "whole batches": "train: feed must give each process its own part of a batch; got the same rows in all.",
        "folders": "train: resume must find the same step in all processes; got [1, 0].",
        "steps": "train: feed must be at the same step in all processes; got (0, 1).",
    }


def test_torchrun_shares_the_work_of_the_command(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    sizes = ["--steps", "2", "--identities", "3", "--faces", "2", "--random", "1", "--rate", "0.01"]
    plan = ["train", "digits", "--network", "nns2", *sizes, "--workers", "0", "--json", "--out"]

    def run(*before: str, out: str) -> tuple[dict, dict[str, Tensor]]:
        path = tmp_path / out
        command = [*before, str(folder / "likewise"), *plan, str(path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), load_tensors(path, kind="network")[0]

    alone, expected = run(out="one.safetensors")
    together, found = run(str(folder / "torchrun"), "--nproc-per-node", "2", "--no-python", out="two.safetensors")
    assert together["loss"] == pytest.approx(alone["loss"], rel=1e-4)
    assert together["steps"] == 2
    moved = apart = 0.0
    for name, weight in build_network("nns2", {"embedding_dim": 128}, seed=0).state_dict().items():
        moved += (expected[name] - weight).square().sum().item()
        apart += (found[name] - expected[name]).square().sum().item()
    assert 0 < apart < 1e-3 * moved
