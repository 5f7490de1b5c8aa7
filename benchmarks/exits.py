"""What early exit costs when nobody leaves, and what shrinking batches gains when many do.

Run it as `python -m benchmarks.exits` on a machine that does nothing else (about a minute). A ResNet-20 of images of
28x28 with three heads answers by itself, under a policy that never exits, and under one by which a third of those who
come to a head leave there: with batches that shrink where measured times say so, always, and never. All take turns.
Answers are compared first: a policy that never exits must give the network's logits bit for bit, and shrinking must
change no exit. Exit code 0: the promise is kept or not judged; 1: it is broken, or an answer is wrong.
"""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import torch
import typer
from rich.console import Console
from rich.table import Table
from torch import Tensor

from benchmarks.harness.measurement import Demand, Measurement, machine, time_ratio, write_json
from benchmarks.harness.worker import RESULTS, THREADS
from likewise.exits import EarlyExit, MaxProbability, Policy
from likewise.networks import resnet20

HEADS = ("block3", "block5", "block7")
SIZES = (1, 32, 256)
NETWORK, NEVER = "network", "never exits"
MEASURED, ALWAYS, CARRIED = "shrinks if it pays", "shrinks always", "carries all"
OVERHEAD = 1.02
LEAVE = 1 / 3


def problem(seed: int = 0) -> tuple[EarlyExit, Tensor]:
    """An untrained ResNet-20 with heads, and images of noise; times do not depend on what it has learned."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = resnet20(channels=1, num_classes=10)
    exits = EarlyExit(network, heads=HEADS, seed=seed).eval()
    return exits, torch.randn(max(SIZES), 1, 28, 28, generator=torch.Generator().manual_seed(seed))


def leaving(exits: EarlyExit, x: Tensor) -> Policy:
    """Thresholds by which a third of those who come to a head leave there."""
    with torch.no_grad():
        scores = exits(x).softmax(2).amax(2).double()
    inside, thresholds = torch.ones(len(x), dtype=torch.bool), []
    for head in range(len(exits.heads)):
        thresholds.append(scores[inside, head].quantile(1 - LEAVE).item())
        inside &= scores[:, head] < thresholds[-1]
    return Policy(MaxProbability(), tuple(thresholds))


def contestants(exits: EarlyExit, policy: Policy) -> dict[str, Callable[[Tensor], Any]]:
    """Everybody by name."""
    return {
        NETWORK: exits.network,
        NEVER: lambda x: exits.run(x, policy=exits.never),
        MEASURED: lambda x: exits.run(x, policy=policy),
        ALWAYS: lambda x: exits.run(x, policy=policy, compact="always"),
        CARRIED: lambda x: exits.run(x, policy=policy, compact="never"),
    }


def check(exits: EarlyExit, policy: Policy, x: Tensor) -> list[str]:
    """Complaints about answers."""
    complaints = []
    with torch.no_grad():
        if not torch.equal(exits.run(x, policy=exits.never).logits, exits.network(x)):
            complaints.append("a policy that never exits is not the network")
    always, never = (exits.run(x, policy=policy, compact=how) for how in ("always", "never"))
    if not torch.equal(always.exits, never.exits):
        complaints.append("shrinking changes exits")
    if len(always.exits.unique()) != len(exits.heads) + 1:
        complaints.append("nobody leaves at some exit")
    return complaints


def measure(exits: EarlyExit, policy: Policy, x: Tensor, *, rounds: int) -> list[Measurement]:
    """Seconds per batch, everybody in turn; the first round warms up, and measures what shrinking goes by."""
    everybody = contestants(exits, policy)
    times: dict[tuple[str, int], list[float]] = {(name, size): [] for size in SIZES for name in everybody}
    with torch.no_grad():
        for turn in range(rounds + 1):
            for (name, size), seconds in times.items():
                started = time.perf_counter()
                everybody[name](x[:size])
                seconds += [time.perf_counter() - started] if turn else []
    return [Measurement(name, size, tuple(seconds)) for (name, size), seconds in times.items()]


def demands(found: list[Measurement]) -> list[Demand]:
    """What the issue of this room promises."""
    by = {(each.form, each.length): each for each in found}
    return [
        time_ratio(f"never exits / network, batch {size}", OVERHEAD, False, by[NEVER, size], by[NETWORK, size])
        for size in SIZES
    ]


def main(
    rounds: Annotated[int, typer.Option(min=1, help="Rounds in which everybody answers each batch once.")] = 60,
    out: Annotated[Path, typer.Option(help="Folder for the JSON.")] = RESULTS,
) -> None:
    """Measure the cost of exits that nobody takes, and the gain of batches that shrink."""
    torch.set_num_threads(THREADS)
    console, facts = Console(soft_wrap=True), machine()
    exits, x = problem()
    policy = leaving(exits, x)
    complaints = check(exits, policy, x)
    if complaints:
        console.print("\n".join(complaints), style="red")
        raise typer.Exit(1)
    found = measure(exits, policy, x, rounds=rounds)
    wanted = demands(found)
    table = Table("form", *(f"batch {size}, ms" for size in SIZES))
    for name in contestants(exits, policy):
        cells = [each for each in found if each.form == name]
        table.add_row(name, *(f"{1e3 * each.best:.3f} ({1e3 * each.median:.3f})" for each in cells))
    console.print(table)
    for demand in wanted:
        verdict = {True: "kept", False: "broken", None: demand.note}[demand.holds]
        console.print(f"{demand.promise}: {demand.measured:.4f}, by median {demand.by_median:.4f}: {verdict}")
    result = {
        "machine": facts,
        "problem": {"network": "resnet20", "image": [1, 28, 28], "heads": HEADS, "leave": LEAVE, "dtype": "float32"},
        "demands": [demand.facts() for demand in wanted],
        "times": [each.facts() for each in found],
    }
    write_json(out / "exits.json", result)
    raise typer.Exit(1 if any(demand.holds is False for demand in wanted) else 0)


if __name__ == "__main__":
    typer.run(main)
