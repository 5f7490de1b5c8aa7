"""Networks with exits as files: safetensors only, with the policy and the examples that were used for what."""

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from likewise.checks import require, require_choice
from likewise.data import Preparation
from likewise.exits.criteria import (
    At,
    ClassMeans,
    Combined,
    Criterion,
    Entropy,
    Margin,
    MaxProbability,
    Neighbours,
    Patience,
    Policy,
    PredictedDepth,
)
from likewise.exits.early import EarlyExit, Segment
from likewise.networks.resnet import BODIES
from likewise.networks.weights import load_tensors, save_tensors, weights_hash

KINDS: dict[str, type[Criterion]] = {
    kind.__name__: kind
    for kind in (
        At,
        ClassMeans,
        Combined,
        Entropy,
        Margin,
        MaxProbability,
        Neighbours,
        Patience,
        PredictedDepth,
    )
}


class SavedExits(NamedTuple):
    """What `load_exits` found."""

    exits: EarlyExit
    policy: Policy | None
    preparation: Preparation | None
    hash: str


def save_exits(
    exits: EarlyExit,
    path: Path | str,
    *,
    name: str | None = None,
    options: Mapping[str, Any] | None = None,
    policy: Policy | None = None,
    preparation: Preparation | None = None,
) -> str:
    """Write network, heads, temperatures, ledger and, if given, policy and preparation; gives the hash of all.

    name, options: of the residual network (`resnet20`, {"num_classes": 10, ...}), so that it can be built again;
    without them the file can be loaded only into a network that is there.
    """
    if name is not None:
        require_choice("save_exits", "name", name, tuple(BODIES))
    tensors = {f"weights.{key}": tensor for key, tensor in exits.state_dict().items()}
    tensors |= {f"ledger.{role}": ids for role, ids in exits.ledger.used.items()}
    facts = {
        "name": name,
        "options": dict(options or {}),
        "segments": [segment for segment, _ in exits.chain],
        "heads": list(exits.names),
        "grid": exits.grid,
        "shape": list(exits.example.shape),
        "dtype": str(exits.example.dtype).removeprefix("torch."),
        "policy": None if policy is None else policy_facts(policy, tensors),
        "preparation": None if preparation is None else preparation.to_json(),
    }
    found = weights_hash(tensors, facts)
    save_tensors(path, tensors, {"kind": "exits", **facts, "hash": found})
    return found


def load_exits(
    path: Path | str, *, network: nn.Module | None = None, segments: Sequence[tuple[str, Segment]] | None = None
) -> SavedExits:
    """Read what `save_exits` wrote, in evaluation mode; a file that was changed, or is none of ours, is refused.

    network, segments: into which the weights are put, where the file does not say how to build it.
    """
    tensors, facts = load_tensors(path, kind="exits")
    found = facts.pop("hash", None)
    facts.pop("kind")
    same = weights_hash(tensors, facts) == found
    require(same, "load_exits", "path", "hold the weights its hash is of", repr(str(path)), "The file was changed.")
    dtype = getattr(torch, facts["dtype"])
    if network is None:
        hint = "The file does not say how to build it."
        require(facts["name"] is not None, "load_exits", "network", "be given", None, hint)
        network = BODIES[facts["name"]](**facts["options"]).to(dtype)
        network.to(memory_format=torch.channels_last)  # ty: ignore[no-matching-overload]
    example = torch.zeros(facts["shape"], dtype=dtype)
    exits = EarlyExit(network, example, heads=facts["heads"], grid=facts.get("grid", 1), segments=segments)
    names = [name for name, _ in exits.chain]
    require(names == facts["segments"], "load_exits", "network", f"have the segments {facts['segments']}", names)
    weights = {key.removeprefix("weights."): t for key, t in tensors.items() if key.startswith("weights.")}
    shapes = {key: tuple(tensor.shape) for key, tensor in exits.state_dict().items()}
    stored = {key: tuple(tensor.shape) for key, tensor in weights.items()}
    wrong = sorted(set(shapes.items()) ^ set(stored.items()))
    require(not wrong, "load_exits", "network", "have the weights of the file", [key for key, _ in wrong[:3]])
    exits.load_state_dict(weights)
    exits.ledger.used = {key.removeprefix("ledger."): t for key, t in tensors.items() if key.startswith("ledger.")}
    policy = None if facts["policy"] is None else policy_of(facts["policy"], tensors)
    preparation = None if facts["preparation"] is None else Preparation.from_json(facts["preparation"])
    return SavedExits(exits.eval(), policy, preparation, found)


def policy_facts(policy: Policy, tensors: dict[str, Tensor]) -> dict[str, Any]:
    """As JSON has it; tensors are put under names of their own."""
    thresholds = [repr(float(threshold)) for threshold in policy.thresholds]  # JSON has no infinity
    return {"criterion": _plain(policy.criterion, "criterion", tensors), "thresholds": thresholds}


def policy_of(facts: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> Policy:
    """What `policy_facts` gave."""
    criterion = _value(facts["criterion"], tensors)
    return Policy(criterion, tuple(map(float, facts["thresholds"])))


def _plain(value: Any, key: str, tensors: dict[str, Tensor]) -> Any:
    """A criterion, or what it holds: numbers, tensors, tuples of them, other criteria."""
    if isinstance(value, Criterion):
        fields = dataclasses.fields(value)
        held = {field.name: _plain(getattr(value, field.name), f"{key}.{field.name}", tensors) for field in fields}
        return {"kind": type(value).__name__, "held": held}
    if isinstance(value, Tensor):
        tensors[key] = value
        return {"tensor": key}
    if isinstance(value, tuple):
        return [_plain(each, f"{key}.{number}", tensors) for number, each in enumerate(value)]
    return value


def _value(plain: Any, tensors: Mapping[str, Tensor]) -> Any:
    if isinstance(plain, list):
        return tuple(_value(each, tensors) for each in plain)
    if isinstance(plain, dict) and "tensor" in plain:
        return tensors[plain["tensor"]]
    if isinstance(plain, dict):
        require_choice("load_exits", "criterion", plain["kind"], tuple(KINDS))
        return KINDS[plain["kind"]](**{name: _value(each, tensors) for name, each in plain["held"].items()})
    return plain
