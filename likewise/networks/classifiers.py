"""Classifiers as files: a residual network that gives logits, the names of its classes, and what it was trained on."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from likewise.checks import require, require_choice
from likewise.data import Preparation
from likewise.networks.resnet import BODIES
from likewise.networks.segments import Network
from likewise.networks.weights import load_tensors, put_weights, require_hash, save_tensors, weights_hash


@dataclass(frozen=True)
class Classifier:
    """A network whose logit c is of `classes[c]`, how images are prepared for it, and the file's hash.

    trained_on: `Examples.fingerprint` of its training examples, where it is known, by which a report can tell whether
    it meets examples that the network has not seen.
    """

    network: Network
    name: str
    classes: tuple[str, ...]
    preparation: Preparation
    trained_on: str | None
    hash: str


def build_classifier(name: str, *, channels: int, num_classes: int, seed: int = 0) -> Network:
    """A new residual network that gives logits, by name (`resnet8`, ...); its first weights follow from the seed.

    >>> network = build_classifier("resnet8", channels=1, num_classes=7)
    >>> network(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 7])
    """
    require_choice("build_classifier", "name", name, tuple(BODIES))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        network = BODIES[name](channels=channels, num_classes=num_classes)
    return network.to(memory_format=torch.channels_last)  # ty: ignore[no-matching-overload]


def save_classifier(
    network: Network,
    path: Path | str,
    *,
    name: str,
    classes: Sequence[str],
    preparation: Preparation,
    trained_on: str | None = None,
) -> str:
    """Write a network of `build_classifier`; gives its hash. The file is whole or not there."""
    where = "save_classifier"
    require_choice(where, "name", name, tuple(BODIES))
    width = getattr(getattr(network, "head", None), "out_features", None)
    require(width == len(classes), where, "classes", f"be one name for each of {width} logits", len(classes))
    tensors = network.state_dict()
    facts = {
        "name": name,
        "classes": list(classes),
        "preparation": preparation.to_json(),
        "trained_on": trained_on,
    }
    found = weights_hash(tensors, facts)
    save_tensors(path, tensors, {"kind": "classifier", **facts, "hash": found})
    return found


def load_classifier(path: Path | str) -> Classifier:
    """Read what `save_classifier` wrote, in evaluation mode; a file that was changed, or is no classifier, is refused.

    A network that `save_network` wrote gives embeddings and no classes, so it is no classifier.
    """
    tensors, facts = load_tensors(path, kind="classifier")
    found = require_hash("load_classifier", path, tensors, facts)
    preparation = Preparation.from_json(facts["preparation"])
    network = build_classifier(facts["name"], channels=preparation.channels, num_classes=len(facts["classes"]))
    put_weights("load_classifier", network, tensors, facts["name"])
    classes = tuple(facts["classes"])
    return Classifier(network.eval(), facts["name"], classes, preparation, facts["trained_on"], found)
