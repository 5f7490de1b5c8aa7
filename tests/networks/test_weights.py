"""What is saved is what is loaded, and nothing else is."""

import os
from pathlib import Path

import pytest
import safetensors.torch
import torch

from likewise.data import Preparation
from likewise.networks import build_network, load_network, save_network
from likewise.networks.weights import load_tensors, save_tensors, weights_hash

OPTIONS = {"channels": 1, "embedding_dim": 5}
PREPARATION = Preparation((8, 9), 1, 0.25)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    network = build_network("resnet8", OPTIONS, seed=4)
    network(torch.randn(6, 1, 8, 9, generator=torch.Generator().manual_seed(1)))  # moves the statistics of BatchNorm
    save_network(network, tmp_path / "model", name="resnet8", options=OPTIONS, preparation=PREPARATION)
    torch.save(network.state_dict(), tmp_path / "expected")
    return tmp_path / "model"


def test_a_loaded_network_is_the_saved_one(file: Path) -> None:
    saved = load_network(file)
    expected = torch.load(file.with_name("expected"), weights_only=True)
    assert (saved.name, saved.options, saved.preparation) == ("resnet8", OPTIONS, PREPARATION)
    assert not saved.network.training
    assert saved.network.state_dict().keys() == expected.keys()
    assert all(torch.equal(tensor, expected[key]) for key, tensor in saved.network.state_dict().items())


def test_the_seed_alone_decides_the_first_weights() -> None:
    before = torch.get_rng_state()
    one, same, other = (build_network("resnet8", OPTIONS, seed=seed).state_dict() for seed in (1, 1, 2))
    assert all(torch.equal(one[key], same[key]) for key in one)
    assert not torch.equal(one["projection.weight"], other["projection.weight"])
    assert torch.equal(torch.get_rng_state(), before)


def test_the_hash_is_of_weights_names_and_preparation(file: Path) -> None:
    tensors, facts = load_tensors(file, kind="network")
    whole = {key: facts[key] for key in ("name", "options", "preparation")}
    found = weights_hash(tensors, whole)
    assert found == facts["hash"] == load_network(file).hash
    key = "projection.bias"
    changed = [
        weights_hash({**tensors, key: tensors[key].nextafter(torch.tensor(9.0))}, whole),
        weights_hash({**tensors, key: tensors[key].reshape(5, 1)}, whole),
        weights_hash({**tensors, key: tensors[key].double()}, whole),
        weights_hash(tensors, {**whole, "preparation": Preparation((8, 9), 1, 0.5).to_json()}),
    ]
    assert len({found, *changed}) == 5


@pytest.mark.parametrize("what", ["weights", "facts"])
def test_a_changed_file_is_refused(file: Path, what: str) -> None:
    tensors, facts = load_tensors(file, kind="network")
    if what == "weights":
        tensors["projection.bias"] += 1
    else:
        facts["preparation"]["mean"] = 0.5
    save_tensors(file, tensors, facts)
    with pytest.raises(ValueError, match="load_network: path must hold the weights its hash is of"):
        load_network(file)


@pytest.mark.parametrize("data", [b"", b"a diary", safetensors.torch.save({"x": torch.zeros(1)}), b"\x80\x04pickle."])
def test_what_is_none_of_ours_is_refused(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "model").write_bytes(data)
    with pytest.raises(ValueError, match="load_network: path must be a network that likewise wrote"):
        load_network(tmp_path / "model")


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"load_network: path .*There is no such file"):
        load_network(tmp_path / "model")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda t: t.update({"projection.bias": torch.zeros(6)}),
            r"projection.bias must have shape \(5,\); got \(6",
        ),
        (lambda t: t.update({"more": torch.zeros(6)}), r"more must have shape None; got \(6,\)"),
        (lambda t: t.pop("projection.bias"), r"path must hold all weights of resnet8; got none for"),
    ],
)
def test_weights_of_another_network_are_refused(file: Path, change, message: str) -> None:
    tensors, facts = load_tensors(file, kind="network")
    change(tensors)
    whole = {key: facts[key] for key in ("name", "options", "preparation")}
    save_tensors(file, tensors, {**facts, "hash": weights_hash(tensors, whole)})
    with pytest.raises(ValueError, match=f"load_network: {message}"):
        load_network(file)


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_weights_that_are_not_finite_are_neither_written_nor_read(file: Path, value: float) -> None:
    tensors, facts = load_tensors(file, kind="network")
    tensors["projection.bias"][1:3] = value
    whole = {key: facts[key] for key in ("name", "options", "preparation")}
    save_tensors(file, tensors, {**facts, "hash": weights_hash(tensors, whole)})
    message = r"network: projection.bias of '.*model' must be finite; got 2 of 5 that are not"
    with pytest.raises(ValueError, match=f"load_{message}"):
        load_network(file)
    network, before = build_network("resnet8", OPTIONS), file.read_bytes()
    network.load_state_dict(tensors)
    with pytest.raises(ValueError, match=f"save_{message}"):
        save_network(network, file, name="resnet8", options=OPTIONS, preparation=PREPARATION)
    assert file.read_bytes() == before


def test_a_write_that_fails_leaves_the_old_file(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = file.read_bytes()

    def fail(handle: int) -> None:
        raise OSError("the disk is full")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(OSError, match="the disk is full"):
        save_tensors(file, {"x": torch.zeros(1)}, {})
    assert file.read_bytes() == before
    assert sorted(path.name for path in file.parent.iterdir()) == ["expected", "model"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: build_network("resnet9", {}), "build_network: name must be one of 'nn1'"),
        (
            lambda: build_network("nns2", {"size": 3}),
            "build_network: options must be of nns2: embedding_dim, norm;",
        ),
        (lambda: build_network("resnet8", {"body": "nn1"}), "build_network: options must be of resnet8: channels, emb"),
    ],
)
def test_unknown_networks_are_refused(make, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
