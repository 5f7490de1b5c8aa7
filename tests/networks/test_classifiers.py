"""A classifier's file holds what its answers mean: logits, the names of classes, the preparation, its training data."""

from pathlib import Path

import pytest
import torch

from likewise.data import Preparation
from likewise.networks import build_classifier, build_network, load_classifier, load_network, save_network
from likewise.networks import save_classifier as save
from likewise.networks.weights import load_tensors, save_tensors

CLASSES = ("cat", "dog", "owl")
PREPARATION = Preparation((8, 9), 1, 0.25)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    network = build_classifier("resnet8", channels=1, num_classes=3, seed=4)
    network(torch.randn(6, 1, 8, 9, generator=torch.Generator().manual_seed(1)))  # moves the statistics of BatchNorm
    save(network, tmp_path / "model", name="resnet8", classes=CLASSES, preparation=PREPARATION, trained_on="abc")
    torch.save(network.state_dict(), tmp_path / "expected")
    return tmp_path / "model"


def test_a_loaded_classifier_is_the_saved_one(file: Path) -> None:
    found = load_classifier(file)
    assert (found.name, found.classes, found.preparation, found.trained_on) == ("resnet8", CLASSES, PREPARATION, "abc")
    assert not found.network.training
    expected = torch.load(file.with_name("expected"), weights_only=True)
    assert found.network.state_dict().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[key]) for key, tensor in found.network.state_dict().items())
    assert found.network(torch.zeros(2, 1, 8, 9)).shape == (2, 3)


def test_the_seed_alone_decides_the_first_weights() -> None:
    before = torch.get_rng_state()
    one, same, other = (
        build_classifier("resnet8", channels=1, num_classes=3, seed=seed).state_dict() for seed in (1, 1, 2)
    )
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not torch.equal(one["head.weight"], other["head.weight"])
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("what", ["weights", "classes", "trained_on"])
def test_a_changed_file_is_refused(file: Path, what: str) -> None:
    tensors, facts = load_tensors(file, kind="classifier")
    if what == "weights":
        tensors["head.bias"] += 1
    else:
        facts[what] = {"classes": ["dog", "cat", "owl"], "trained_on": "abd"}[what]
    save_tensors(file, tensors, facts)
    with pytest.raises(ValueError, match="load_classifier: path must hold the weights its hash is of"):
        load_classifier(file)


def test_an_embedder_is_no_classifier_and_a_classifier_no_embedder(file: Path, tmp_path: Path) -> None:
    options = {"channels": 1, "embedding_dim": 5}
    network = build_network("resnet8", options)
    save_network(network, tmp_path / "other", name="resnet8", options=options, preparation=PREPARATION)
    with pytest.raises(
        ValueError,
        match=r"load_classifier: path must be a classifier; got a network, .* For a network: likewise evaluate",
    ):
        load_classifier(tmp_path / "other")
    with pytest.raises(
        ValueError,
        match=r"load_network: path must be a network; got a classifier, .* For a classifier: likewise depth, likew",
    ):
        load_network(file)


def test_classes_must_be_as_many_as_logits(tmp_path: Path) -> None:
    network = build_classifier("resnet8", channels=1, num_classes=3)
    with pytest.raises(ValueError, match="save_classifier: classes must be one name for each of 3 logits; got 2"):
        save(network, tmp_path / "model", name="resnet8", classes=("a", "b"), preparation=PREPARATION)


def test_only_residual_networks_are_built() -> None:
    with pytest.raises(ValueError, match="build_classifier: name must be one of 'resnet8'"):
        build_classifier("nns2", channels=3, num_classes=3)
