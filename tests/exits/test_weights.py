"""What is saved is what is loaded, and what is exported answers alike."""

import json
from pathlib import Path
from typing import Any

import pytest
import safetensors.torch
import torch

from likewise.data import Preparation
from likewise.exits import (
    EarlyExit,
    ExportedExits,
    MaxProbability,
    Policy,
    export_exits,
    load_exits,
    save_exits,
    train_exits,
)
from likewise.exits.running import Never
from likewise.exits.splits import Split
from likewise.networks import build_classifier, resnet8
from likewise.networks.weights import load_tensors, save_tensors, weights_hash
from tests.exits.problems import Small, rows, small
from tests.exits.rules import CRITERIA
from tests.tolerance import assert_close

OPTIONS: dict[str, Any] = {"channels": 1, "num_classes": 3}
X = torch.randn(6, 1, 8, 8, generator=torch.Generator().manual_seed(1))


def trained() -> EarlyExit:
    exits = EarlyExit(build_classifier("resnet8", **OPTIONS), heads=["block1", "block3"], grid=2)
    train_exits(exits, Split(X, torch.arange(6) % 3, "train"), steps=2, body="joint")
    exits.temperatures[1].fill_(1.7)
    return exits


def test_a_file_that_knows_no_grid_has_heads_that_see_one_mean(tmp_path: Path) -> None:
    exits = EarlyExit(build_classifier("resnet8", **OPTIONS), heads=["block1"]).eval()
    save_exits(exits, tmp_path / "file", name="resnet8", options=OPTIONS)
    tensors, facts = load_tensors(tmp_path / "file", kind="exits")
    facts = {key: value for key, value in facts.items() if key not in ("grid", "hash", "kind")}
    save_tensors(tmp_path / "old", tensors, {**facts, "kind": "exits", "hash": weights_hash(tensors, facts)})
    assert torch.equal(load_exits(tmp_path / "old").exits(X), exits(X))


def test_a_loaded_network_answers_as_the_saved_one(tmp_path: Path) -> None:
    exits, preparation = trained(), Preparation((8, 8), 1)
    policy = Policy(MaxProbability(), (0.5, float("inf")))
    found = save_exits(
        exits, tmp_path / "file", name="resnet8", options=OPTIONS, policy=policy, preparation=preparation
    )
    saved = load_exits(tmp_path / "file")
    assert torch.equal(saved.exits(X), exits(X))
    assert (saved.policy, saved.preparation, saved.hash) == (policy, preparation, found)
    assert (saved.exits.names, saved.exits.grid) == (exits.names, 2)
    assert not saved.exits.training
    weight = next(saved.exits.network.parameters())
    assert weight.is_contiguous(memory_format=torch.channels_last)
    with pytest.raises(ValueError, match="be new examples for test; got 6 of 6 that were used for train"):
        saved.exits.ledger.take("report", Split(X, torch.arange(6) % 3, "test"), roles=("test",))


@pytest.mark.parametrize("name", CRITERIA)
def test_every_criterion_comes_back(tmp_path: Path, name: str) -> None:
    exits, x = small(), rows(29)
    criterion, threshold = CRITERIA[name]
    policy = Policy(criterion, (threshold,) * 3)
    save_exits(exits, tmp_path / "file", policy=policy)
    saved = load_exits(tmp_path / "file", network=Small().double())
    assert saved.policy is not None
    one, two = exits.run(x, policy=policy, compact="always"), saved.exits.run(x, policy=saved.policy, compact="always")
    assert one.exits.tolist() == two.exits.tolist()
    assert torch.equal(one.logits, two.logits)


def test_files_that_are_not_ours_or_do_not_fit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    exits = small()
    save_exits(exits, path)
    with pytest.raises(ValueError, match=r"load_exits: network must be given; got None\. The file does not say how"):
        load_exits(path)
    network = Small().double()
    named = [*network.segments[:4], ("answers", network.last)]
    with pytest.raises(ValueError, match="load_exits: network must have the segments"):
        load_exits(path, network=network, segments=named)
    with pytest.raises(ValueError, match="save_exits: name must be one of 'resnet8'"):
        save_exits(exits, path, name="resnet9")
    tensors, facts = load_tensors(path, kind="exits")
    tensors["weights.heads.0.linear.bias"] += 1
    save_tensors(path, tensors, facts)
    with pytest.raises(ValueError, match="load_exits: path must hold the weights its hash is of"):
        load_exits(path, network=Small().double())
    safetensors.torch.save_file({"a": torch.zeros(1)}, path, {"likewise": json.dumps({"kind": "network"})})
    with pytest.raises(ValueError, match=r"load_exits: path must be exits; got a network, .* likewise evaluate"):
        load_exits(path)


@pytest.mark.usefixtures("without_shape_checks")
def test_a_network_of_other_weights_is_refused(tmp_path: Path) -> None:
    save_exits(trained(), tmp_path / "file")
    with pytest.raises(ValueError, match="load_exits: network must have the weights of the file; got"):
        load_exits(tmp_path / "file", network=resnet8(channels=1, num_classes=4))


@pytest.mark.slow
@pytest.mark.usefixtures("without_shape_checks")
def test_exported_programs_answer_as_the_network_at_any_batch(tmp_path: Path) -> None:
    exits = trained()
    scores = exits(X).softmax(2).amax(2)
    policy = Policy(MaxProbability(), (scores[:, 0].median().item(), scores[:, 1].median().item()))
    exported = export_exits(exits, X, policy=policy)
    exported.save(tmp_path / "folder")
    x = torch.cat([X, X + 0.1, X - 0.2])
    expected = exits.run(x, policy=policy, compact="always")
    assert len(set(expected.exits.tolist())) > 1
    for programs in (exported, ExportedExits.open(tmp_path / "folder")):
        found = programs.run(x)
        assert found.exits.tolist() == expected.exits.tolist()
        assert found.computed == expected.computed
        assert_close(found.logits, expected.logits)
        assert programs.run(x[:1]).exits.tolist() == expected.exits[:1].tolist()
        assert programs.run(x, compact=Never()).computed[0] == 18
    for call, message in (
        (lambda: export_exits(exits, X[:1], policy=policy), "export_exits: x must have two rows or more; got 1"),
        (lambda: export_exits(exits.train(), X, policy=policy), "export_exits: exits must be in evaluation mode"),
    ):
        with pytest.raises(ValueError, match=message):
            call()
