"""Classifiers as files: a residual network that gives logits, the names of its classes, and what it was trained on.

`open_classifier` also takes a function of a user's file, and opens the data with the model.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import nn

from likewise.checks import require, require_choice
from likewise.data import Examples, Preparation, find_halves, open_examples
from likewise.data.opening import Halves
from likewise.files import function_of
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


@dataclass(frozen=True, eq=False)
class Opened:
    """A classifier, and training and test examples for it.

    name: that of `build_classifier`, or None for a user's own network. trained_here: whether the file says that the
    network was trained on exactly the training half; None if nothing is said.
    """

    network: nn.Module
    name: str | None
    classes: tuple[str, ...]
    preparation: Preparation
    halves: Halves
    trained_here: bool | None = None


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


def open_classifier(model: str, data: str, *, train: str | None = None, held_out: float = 0.2) -> Opened:
    """Open a classifier and its data.

    model: a file of `save_classifier`, or file.py:function, which is run; it returns a module, or one and the
    preparation of images for it, else images are taken as they are. train: where the training examples are, if `data`
    has only test examples; otherwise `data` is split as in `likewise.data.find_halves`, into the halves that the model
    was trained by, if they are known.
    """
    if ".py:" in model:
        halves, _ = _halves(data, train, held_out, None)
        network, preparation = _own_network(model, halves.train)
        return Opened(network.eval(), None, halves.train.identities, preparation, halves)
    saved = load_classifier(model)
    halves, known = _halves(data, train, held_out, saved.trained_on)
    here = None if saved.trained_on is None else known
    return Opened(saved.network, saved.name, saved.classes, saved.preparation, halves, here)


def _own_network(text: str, examples: Examples) -> tuple[nn.Module, Preparation]:
    made = function_of(text, "open_classifier", "model")()
    rows, columns, channels = examples.first().shape
    network, preparation = made if isinstance(made, tuple) else (made, Preparation((rows, columns), channels))
    right = isinstance(network, nn.Module)
    require(right, "open_classifier", "model", "be a function that returns a torch.nn.Module", type(network).__name__)
    return network, preparation


def _halves(data: str, train: str | None, held_out: float, trained_on: str | None) -> tuple[Halves, bool]:
    """Training and test examples, and whether a model was trained on the former."""
    if train is None:
        return find_halves(data, trained_on=trained_on, held_out=held_out)
    support = open_examples(train)
    test = open_examples(data, split="test").numbered_by(support.identities)
    how = f"training examples from {train}, test examples from {data}"
    return Halves(support, test, how), support.fingerprint == trained_on
