"""Everything that the next step depends on, in one file that is there as a whole or not at all."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from likewise.checks import require
from likewise.networks.weights import load_tensors, save_tensors


def save_checkpoint(
    path: Path,
    network: nn.Module,
    objective: nn.Module,
    optimiser: torch.optim.Optimizer,
    step: int,
    settings: Mapping,
    seen: Mapping,
) -> None:
    """Weights, what the objective learned, the optimiser's memory, chance, what was seen on the way, and the step."""
    tensors = {f"network.{key}": tensor for key, tensor in network.state_dict().items()}
    tensors |= {f"objective.{key}": tensor for key, tensor in objective.state_dict().items()}
    for number, state in optimiser.state_dict()["state"].items():
        tensors |= {f"optimiser.{number}.{key}": torch.as_tensor(value) for key, value in state.items()}
    tensors["chance"] = torch.get_rng_state()
    save_tensors(path, tensors, {"kind": "checkpoint", "step": step, "settings": dict(settings), **seen})


def load_checkpoint(
    path: Path, network: nn.Module, objective: nn.Module, optimiser: torch.optim.Optimizer, settings: Mapping
) -> tuple[int, dict[str, Any], list[list[str]]]:
    """Put back what `save_checkpoint` wrote; gives the step that comes next, what the guard has seen, and which files
    were skipped. Other settings are refused.
    """
    tensors, facts = load_tensors(path, kind="checkpoint")
    for name, value in settings.items():
        stored = facts["settings"].get(name)
        require(stored == value, "resume", name, f"be that of the checkpoint, {stored!r}", repr(value))
    network.load_state_dict(part(tensors, "network."))
    objective.load_state_dict(part(tensors, "objective."))
    states: dict[int, dict[str, Tensor]] = {}
    for key, tensor in part(tensors, "optimiser.").items():
        number, _, name = key.partition(".")
        states.setdefault(int(number), {})[name] = tensor
    optimiser.load_state_dict({**optimiser.state_dict(), "state": states})
    torch.set_rng_state(tensors["chance"])
    return int(facts["step"]), facts["watched"], facts.get("skipped", [])  # older files have no such list


def checkpoint_settings(path: Path) -> dict[str, Any]:
    """The settings with which a checkpoint was written, and the step that comes."""
    _, facts = load_tensors(path, kind="checkpoint")
    return {**facts["settings"], "step": facts["step"]}


def part(tensors: Mapping[str, Tensor], prefix: str) -> dict[str, Tensor]:
    """The tensors of one owner, under the names it has for them."""
    return {key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)}
