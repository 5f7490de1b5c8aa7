"""Processes that share every batch take the steps that one process takes."""

import json
import subprocess
import sys
import textwrap
from collections.abc import Iterable
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from likewise.networks.weights import load_tensors
from likewise.training import Classes, Cosine, Keep, Ranks, SemiHard, read_records, train
from likewise.training.ranks import Part
from tests.house.guards import ROOT
from tests.tolerance import assert_close
from tests.training.problems import feed, small

STEPS, WORLD = 5, 2
OBJECTIVES = {
    "semi-hard": lambda: SemiHard(choose="random"),
    "linear": lambda: Classes(7, 10),
    "classes": lambda: Classes(7, 10),
}

RUN = """
import sys
from pathlib import Path
import torch
from torch import distributed
from tests.training.test_ranks import trained_in_part

torch.set_num_threads(1)
where, rank, *rest = sys.argv[1:]
distributed.init_process_group("gloo", init_method=f"file://{where}/meeting", rank=int(rank), world_size=2)
trained_in_part(Path(where), int(rank), *rest)
distributed.destroy_process_group()
"""


class Plain:
    """Down the gradient, so that one which is twice too long is seen."""

    def optimiser(self, parameters: Iterable[nn.Parameter]) -> torch.optim.Optimizer:
        return torch.optim.SGD(parameters, lr=0.0)

    def rate(self, step: int, steps: int) -> float:
        return 0.5


def trained_in_part(
    where: Path, rank: int, objective: str, chunk: str, stop: str, resume: str, size: str = "40"
) -> None:
    """What each process does; rank 1 asks for the end of the run, rank 0 writes."""
    whole = feed(size=int(size))
    part = type(whole)(whole.examples, whole.preparation, Part(whole.drawn, Ranks.here()), whole.augmentation, seed=3)
    network, goal = small(dropout=0.2 if objective == "classes" else 0.0), OBJECTIVES[objective]()
    found = train(
        network,
        goal,
        part,
        steps=STEPS,
        schedule=Cosine(peak=0.01) if objective == "classes" else Plain(),
        chunk=int(chunk) or None,
        keep=Keep(where / "run.checkpoint", where / "run.jsonl", every=100),
        resume=bool(int(resume)),
        watch=lambda record: rank == 1 and record.step + 1 == int(stop),
    )
    weights = {name: tensor.tolist() for name, tensor in [*network.named_parameters(), *goal.named_parameters()]}
    losses = [record.loss for record in found.records]
    images = [record.images for record in found.records]
    (where / f"rank{rank}.json").write_text(json.dumps([losses, images, weights]))


def processes(where: Path, *arguments: object) -> list[list]:
    where.mkdir(exist_ok=True)
    (where / "meeting").unlink(missing_ok=True)
    command = [sys.executable, "-c", textwrap.dedent(RUN), str(where)]
    running = [
        subprocess.Popen([*command, str(rank), *map(str, arguments)], cwd=ROOT, stderr=subprocess.PIPE, text=True)
        for rank in range(WORLD)
    ]
    said = [each.communicate(timeout=120)[1] for each in running]
    assert [each.returncode for each in running] == [0, 0], "\n".join(said)
    return [json.loads((where / f"rank{rank}.json").read_text()) for rank in range(WORLD)]


@pytest.mark.parametrize("chunk", [0, 7])
def test_two_processes_take_the_steps_of_one(tmp_path: Path, chunk: int) -> None:
    network = small()
    alone = train(network, OBJECTIVES["semi-hard"](), feed(), steps=STEPS, schedule=Plain())
    both = processes(tmp_path, "semi-hard", chunk, 0, 0)
    assert both[0] == both[1]  # to the last digit, or they would drift apart
    losses, images, weights = both[0]
    assert images == [record.images for record in alone.records]
    assert losses == pytest.approx([record.loss for record in alone.records], rel=1e-4)
    assert losses[0] != losses[-1]
    for name, weight in network.named_parameters():
        assert_close(torch.tensor(weights[name]), weight.detach(), atol=2e-4)


def test_a_process_without_images_waits_for_the_others(tmp_path: Path) -> None:
    network, goal = small(), OBJECTIVES["linear"]()
    alone = train(network, goal, feed(size=1), steps=STEPS, schedule=Plain())
    both = processes(tmp_path, "linear", 4, 0, 0, 1)
    assert both[0] == both[1]
    assert both[0][0] == pytest.approx([record.loss for record in alone.records], rel=1e-4)
    for name, weight in [*network.named_parameters(), *goal.named_parameters()]:
        assert_close(torch.tensor(both[0][2][name]), weight.detach(), atol=2e-4)


def test_a_stopped_run_of_two_goes_on_to_the_last_digit(tmp_path: Path) -> None:
    whole = processes(tmp_path / "whole", "classes", 0, 0, 0)
    first = processes(tmp_path / "parts", "classes", 0, 2, 0)
    assert [len(losses) for losses, _, _ in first] == [2, 2]
    assert processes(tmp_path / "parts", "classes", 0, 0, 1) == whole
    assert len(read_records(tmp_path / "parts/run.jsonl")) == STEPS


def test_torchrun_shares_the_work_of_the_command(tmp_path: Path) -> None:
    folder = Path(sys.executable).parent
    sizes = ["--steps", "2", "--identities", "3", "--faces", "2", "--random", "1"]
    plan = ["train", "digits", "--network", "nns2", *sizes, "--workers", "0", "--json", "--out"]

    def run(*before: str, out: str) -> tuple[dict, dict[str, Tensor]]:
        path = tmp_path / out
        command = [*before, str(folder / "likewise"), *plan, str(path)]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=180)
        assert done.returncode == 0, done.stderr
        return json.loads(done.stdout), load_tensors(path, kind="network")[0]

    alone, weights = run(out="one.safetensors")
    together, shared = run(str(folder / "torchrun"), "--nproc-per-node", "2", "--no-python", out="two.safetensors")
    assert together["loss"] == pytest.approx(alone["loss"], rel=1e-4)
    assert together["steps"] == 2
    for name, weight in weights.items():
        assert_close(shared[name], weight, atol=1e-3)


def test_batch_norm_is_refused() -> None:
    with pytest.raises(ValueError, match=r"network must have no BatchNorm in 2 processes; got 1\."):
        Ranks(0, 2).check(small(batch_norm=True))
    Ranks(0, 2).check(small())
    Ranks().check(small(batch_norm=True))
