"""Multiply-adds by likewise.cost beside those of torch.utils.flop_counter and fvcore: who agrees, who does not.

Run it as `python -m benchmarks.cost_peers`; it takes half a minute. Ours must be the numbers by hand, or nothing is
written. `benchmarks/peers/setup.sh` makes the environment in which fvcore answers; without it that column is missing.
"""

import json
import subprocess
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

from benchmarks.cost_problem import PROBLEMS
from benchmarks.harness.measurement import write_json
from benchmarks.harness.worker import PEERS_PYTHON, RESULTS, ROOT
from likewise.cost import cost

PATH = RESULTS / "cost_peers.json"
COUNTERS = {
    "likewise": "`likewise.cost`",
    "torch_meta": "`flop_counter` / 2, meta tensors",
    "torch_cpu": "`flop_counter` / 2, on the CPU",
    "fvcore": "fvcore",
}


def by_torch(module: nn.Module, inputs: tuple[Tensor, ...], device: str) -> int:
    """As people call it: in evaluation, without gradients."""
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        module.to(device)(*(x.to(device) for x in inputs))
    return counter.get_total_flops() // 2


def measure() -> dict[str, Any]:
    """Every program by every counter."""
    fvcore: dict[str, Any] = {"version": None, "counts": {}}
    if PEERS_PYTHON.exists():
        command = [str(PEERS_PYTHON), "-W", "ignore", "-m", "benchmarks.peers.run_fvcore"]
        fvcore = json.loads(subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout)
    rows = []
    for name, make in PROBLEMS.items():
        module, inputs, by_hand = make()
        ours = cost(module, *inputs).macs
        if ours != by_hand:
            raise SystemExit(f"{name}: {ours} multiply-adds, by hand {by_hand}; nothing is written.")
        peer = fvcore["counts"].get(name)
        cpu, meta = by_torch(module, inputs, "cpu"), by_torch(module, inputs, "meta")
        rows.append({"program": name, "likewise": ours, "torch_meta": meta, "torch_cpu": cpu, "fvcore": peer})
    return {"torch": torch.__version__.partition("+")[0], "fvcore": fvcore["version"], "rows": rows}


def table(facts: dict[str, Any]) -> str:
    """Markdown; what differs from ours is in bold."""
    lines = ["| multiply-adds | " + " | ".join(COUNTERS.values()) + " |", "|---|" + "---:|" * len(COUNTERS)]
    for row in facts["rows"]:
        cells = [_cell(row[counter], row["likewise"]) for counter in COUNTERS]
        lines.append(f"| {row['program']} | {' | '.join(cells)} |")
    return "\n".join([*lines, "", f"torch {facts['torch']}, fvcore {facts['fvcore']}."])


def _cell(count: int | str | None, ours: int) -> str:
    if not isinstance(count, int):
        return f"**{count}**" if count else "—"
    return f"{count:,}" if count == ours else f"**{count:,}**"


def main() -> None:
    facts = measure()
    write_json(PATH, facts)
    print(table(facts))


if __name__ == "__main__":
    main()
