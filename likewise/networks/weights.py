"""Networks as files: safetensors only, with the name, the options and the preparation of images that belong to them.

A file can hold tensors and text and nothing that runs. What is loaded is checked against a hash of weights and
preparation, which is also how a template says by which network it was made.
"""

import hashlib
import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import safetensors
import safetensors.torch
import torch
from torch import Tensor

from likewise.checks import refuse, require, require_choice
from likewise.data import Preparation
from likewise.data.examples import Origin
from likewise.files import write_whole
from likewise.networks.facenet import nn1, nn2, nn3, nn4, nns1, nns2
from likewise.networks.resnet import BODIES, embedder
from likewise.networks.segments import Network, require_finite

KEY = "likewise"  # in the metadata of every file of ours
USES = {  # what to do with a file of another kind
    "network": "likewise evaluate",
    "classifier": "likewise depth, likewise exits",
    "checkpoint": "likewise train --resume",
}
BUILDERS: dict[str, Callable[..., Network]] = {
    **{builder.__name__: builder for builder in (nn1, nn2, nn3, nn4, nns1, nns2)},
    **{body: partial(embedder, body) for body in BODIES},
}


@dataclass(frozen=True)
class Saved:
    """A network from a file, ready to embed, and all that makes its embeddings what they are.

    trained_on: its training images, where they are known, also those of a network that training began with.
    """

    network: Network
    name: str
    options: dict[str, Any]
    preparation: Preparation
    hash: str
    trained_on: tuple[Origin, ...] = ()


def build_network(name: str, options: Mapping[str, Any], *, seed: int = 0) -> Network:
    """A new network that embeds, by name (`nns2`, `resnet8`, ...); its first weights follow from the seed.

    They lie channels last, which a CPU convolves faster.

    >>> build_network("resnet8", {"channels": 1, "embedding_dim": 7}).embedding_dim
    7
    """
    require_choice("build_network", "name", name, tuple(BUILDERS))
    known = [option for option in inspect.signature(BUILDERS[name]).parameters if option != "body"]
    for option in options:
        require(option in known, "build_network", "options", f"be of {name}: {', '.join(known)}", repr(option))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = BUILDERS[name](**options)
    return network.to(memory_format=torch.channels_last)  # ty: ignore[no-matching-overload]


def save_network(
    network: Network,
    path: Path | str,
    *,
    name: str,
    options: Mapping[str, Any],
    preparation: Preparation,
    trained_on: Sequence[Origin] = (),
) -> str:
    """Write a network of `build_network`; gives its hash. The file is whole or not there: it is renamed into place."""
    require_choice("save_network", "name", name, tuple(BUILDERS))
    tensors = network.state_dict()
    require_finite("save_network", tensors, f" of {str(path)!r}")
    facts: dict[str, Any] = {"name": name, "options": dict(options), "preparation": preparation.to_json()}
    if trained_on:
        facts["trained_on"] = [origin._asdict() for origin in trained_on]
    found = weights_hash(tensors, facts)
    save_tensors(path, tensors, {"kind": "network", **facts, "hash": found})
    return found


def load_network(path: Path | str) -> Saved:
    """Read what `save_network` wrote, in evaluation mode; a file that was changed, or is none of ours, is refused.

    So is one with a weight that is not finite, which would be judged as if it were sound.
    """
    tensors, facts = load_tensors(path, kind="network")
    found = require_hash("load_network", path, tensors, facts)
    require_finite("load_network", tensors, f" of {str(path)!r}")
    network = build_network(facts["name"], facts["options"])
    put_weights("load_network", network, tensors, facts["name"])
    preparation = Preparation.from_json(facts["preparation"])
    trained_on = tuple(Origin(**origin) for origin in facts.get("trained_on", ()))
    return Saved(network.eval(), facts["name"], facts["options"], preparation, found, trained_on)


def name_in_file(path: Path | str) -> str | None:
    """The network's name from the header of a file, which alone is read; None if it is no file of ours."""
    try:
        with safetensors.safe_open(path, "pt") as file:
            return json.loads((file.metadata() or {}).get(KEY, "{}")).get("name")
    except (OSError, ValueError, safetensors.SafetensorError):
        return None


def require_hash(where: str, path: Path | str, tensors: Mapping[str, Tensor], facts: dict[str, Any]) -> str:
    """The hash that a file has of itself, taken out of its facts with its kind; a file that was changed is refused."""
    found = facts.pop("hash", "")
    facts.pop("kind")
    same = weights_hash(tensors, facts) == found
    require(same, where, "path", "hold the weights its hash is of", repr(str(path)), "The file was changed.")
    return found


def put_weights(where: str, network: Network, tensors: Mapping[str, Tensor], name: str) -> None:
    """Put weights into a network; those of another one are refused."""
    shapes = {key: tuple(tensor.shape) for key, tensor in network.state_dict().items()}
    for key, tensor in tensors.items():
        fits = shapes.get(key) == tuple(tensor.shape)
        require(fits, where, key, f"have shape {shapes.get(key)}", tuple(tensor.shape))
    missing = sorted(shapes.keys() - tensors.keys())
    require(not missing, where, "path", f"hold all weights of {name}", f"none for {missing[:3]}")
    network.load_state_dict(tensors)


def weights_hash(tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> str:
    """SHA-256 of the facts and of every tensor: name, type, shape, bytes."""
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode())
    for key in sorted(tensors):
        tensor = tensors[key].detach().cpu().contiguous()
        digest.update(f"{key} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def save_tensors(path: Path | str, tensors: Mapping[str, Tensor], facts: Mapping[str, Any]) -> None:
    """Tensors and facts in one safetensors file, which is there as a whole or not at all."""
    plain = {key: tensor.detach().cpu().contiguous().clone() for key, tensor in tensors.items()}
    data = safetensors.torch.save(plain, {KEY: json.dumps(facts, sort_keys=True)})
    write_whole(path, data)


def load_tensors(path: Path | str, *, kind: str) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Tensors and facts of a file of one kind."""
    named = kind if kind.endswith("s") else f"a {kind}"
    rule = f"be {named} that likewise wrote"
    require(Path(path).is_file(), f"load_{kind}", "path", rule, repr(str(path)), "There is no such file.")
    try:
        with safetensors.safe_open(path, "pt") as file:
            facts = json.loads((file.metadata() or {}).get(KEY, "{}"))
            tensors = {key: file.get_tensor(key) for key in file.keys()}  # noqa: SIM118
    except (safetensors.SafetensorError, json.JSONDecodeError) as error:
        refuse(f"load_{kind}", "path", rule, repr(str(path)), str(error))
    found = facts.get("kind")
    if found in USES and found != kind:
        refuse(f"load_{kind}", "path", f"be {named}", f"a {found}, {str(path)!r}", f"For a {found}: {USES[found]}.")
    require(found == kind, f"load_{kind}", "path", rule, repr(str(path)))
    return tensors, facts
