"""Segments and heads as programs that need none of our code, and the scheduler that runs them on the host.

A folder holds `segment_0.pt2`, `segment_1.pt2`, ... and `head_0.pt2`, ..., written by torch.export with any number of
rows, and `policy.safetensors`, which says behind which segment each head stands, what its threshold is, and by which
criterion it is reached. To run them elsewhere:

    x = inputs; inside = all rows; state = zeros
    for each segment i:
        x = segment_i(x)
        if a head h stands behind it and may let somebody go:
            features, logits = head_h(x)
            score, state = criterion(features, logits, state)
            rows of `inside` with score >= threshold_h: answer = their logits; they leave
            stop if nobody is left; drop the rows that have left where that pays
    rows still inside: answer = x

Control flow stays on the host: one graph for all would need branches of equal shapes, and batches could not shrink.
"""

from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from likewise.checks import require
from likewise.exits.criteria import Policy
from likewise.exits.early import EarlyExit, Segment
from likewise.exits.running import Always, Compaction, Outcome, run_exits
from likewise.exits.weights import policy_facts, policy_of
from likewise.networks.weights import load_tensors, save_tensors

POLICY = "policy.safetensors"


@dataclass(frozen=True, eq=False)
class ExportedExits:
    """Exported segments and heads with a policy. `run` is the scheduler of `EarlyExit.run`, on these programs."""

    segments: tuple[ExportedProgram, ...]
    heads: tuple[ExportedProgram, ...]
    places: tuple[int, ...]
    policy: Policy

    def run(self, x: Tensor, *, compact: Compaction | None = None) -> Outcome:
        """Answer a batch; rows that have left are dropped always, unless told otherwise."""
        with torch.no_grad():
            return run_exits(
                x,
                segments=self._modules[0],
                heads=self._modules[1],
                places=self.places,
                policy=self.policy,
                compaction=Always() if compact is None else compact,
            )

    @cached_property
    def _modules(self) -> tuple[list[nn.Module], list[nn.Module]]:
        return [program.module() for program in self.segments], [program.module() for program in self.heads]

    def save(self, folder: Path | str) -> None:
        """Write the programs and the policy to a folder."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        for kind, programs in (("segment", self.segments), ("head", self.heads)):
            for number, program in enumerate(programs):
                torch.export.save(program, folder / f"{kind}_{number}.pt2")
        tensors = {"places": torch.tensor(self.places)}
        facts = {"kind": "exported exits", "policy": policy_facts(self.policy, tensors), "segments": len(self.segments)}
        save_tensors(folder / POLICY, tensors, facts)

    @classmethod
    def open(cls, folder: Path | str) -> "ExportedExits":
        """Read what `save` wrote."""
        tensors, facts = load_tensors(Path(folder) / POLICY, kind="exported exits")
        places = tuple(tensors["places"].tolist())
        segments, heads = (
            tuple(torch.export.load(Path(folder) / f"{kind}_{number}.pt2") for number in range(count))
            for kind, count in (("segment", facts["segments"]), ("head", len(places)))
        )
        return cls(segments, heads, places, policy_of(facts["policy"], tensors))


def export_exits(exits: EarlyExit, x: Tensor, *, policy: Policy) -> ExportedExits:
    """Export every segment and head on a batch like x, for any number of rows.

    x: two rows or more, as one row would fix the number.
    """
    require(len(x) > 1, "export_exits", "x", "have two rows or more", len(x))
    require(not exits.training, "export_exits", "exits", "be in evaluation mode", "training mode")
    at = dict(zip(exits.places, exits.heads, strict=True))
    segments, heads = [], []
    with torch.no_grad():
        for number, segment in enumerate(exits.segments):
            segments.append(_exported(segment, x))
            x = segment(x)
            if number in at:
                heads.append(_exported(at[number], x))
    return ExportedExits(tuple(segments), tuple(heads), exits.places, policy)


class _Called(nn.Module):
    """A function as a module."""

    def __init__(self, call: Segment) -> None:
        super().__init__()
        self.call = call

    def forward(self, x: Tensor) -> Tensor:
        return self.call(x)


def _exported(part: Segment, x: Tensor) -> ExportedProgram:
    module = part if isinstance(part, nn.Module) else _Called(part)
    program = torch.export.export(module, (x,), dynamic_shapes=({0: Dim("rows")},))
    for name, weight in program.state_dict.items():  # torch.export.save is made for one memory format only
        plain = weight.detach().contiguous()
        program.state_dict[name] = nn.Parameter(plain) if isinstance(weight, nn.Parameter) else plain
    return program
