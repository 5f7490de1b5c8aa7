"""A run that starts from a network: its embedding layer alone, then all of it, stopped anywhere and resumed exactly."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from likewise.data import Preparation, digits
from likewise.networks import Saved, build_network, load_network, save_network
from likewise.networks.segments import embedding_layer
from likewise.training import Cosine, FitResult, SemiHard, TrainingPlan, beside, fit, train
from likewise.training.checkpoints import read_records
from likewise.training.fitting import Later, joined, layer_alone
from likewise.training.loop import Trained
from tests.training.problems import feed

SOME = digits().take(range(90))
PLAN = TrainingPlan(
    network="resnet8", embedding_dim=6, steps=4, head_steps=3, identities=5, faces=3, random=2, seed=7, rate=0.02
)


def weights(network: nn.Module) -> dict[str, Tensor]:
    return {key: tensor.clone() for key, tensor in network.state_dict().items()}


@pytest.fixture(scope="module")
def start(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    """A network that is trained a little, wider than the plan's."""
    path = tmp_path_factory.mktemp("start") / "v2.safetensors"
    fit(SOME, replace(PLAN, steps=2, head_steps=0, embedding_dim=9, seed=1), path)
    return load_network(path)


def test_one_layer_learns_and_nothing_else_changes() -> None:
    network = build_network("resnet8", {"channels": 1, "embedding_dim": 7})
    before = weights(network)
    with layer_alone(network) as alone:
        train(alone, SemiHard(margin=1.0), feed(), steps=3, schedule=Cosine(peak=0.01))
    after = weights(network)
    assert {key for key in after if not torch.equal(after[key], before[key])} == {
        "projection.weight",
        "projection.bias",
    }
    assert all(weight.requires_grad for weight in network.parameters())
    train(network, SemiHard(margin=1.0), feed(), steps=1, schedule=Cosine(peak=0.01))
    assert not torch.equal(weights(network)["body.stem.0.weight"], before["body.stem.0.weight"])
    assert not torch.equal(weights(network)["body.stem.1.running_mean"], before["body.stem.1.running_mean"])


def test_all_layers_learn_again_after_an_error() -> None:
    network = build_network("resnet8", {"channels": 1, "embedding_dim": 7})
    with pytest.raises(KeyboardInterrupt), layer_alone(network):
        raise KeyboardInterrupt
    assert all(weight.requires_grad for weight in network.parameters())


@pytest.mark.parametrize("name", ["resnet8", "nns2"])
def test_the_embedding_layer_is_the_last_with_weights(name: str) -> None:
    network = build_network(name, {"embedding_dim": 5})
    layer = embedding_layer(network)
    assert layer.out_features == 5
    assert layer.weight is [weight for weight in network.parameters() if weight.dim() > 1][-1]


def test_a_network_without_a_linear_segment_is_refused() -> None:
    from likewise.networks import resnet8

    with pytest.raises(ValueError, match="embedding_layer: network must have a linear segment; got"):
        embedding_layer(resnet8())


def test_a_run_starts_from_the_networks_weights_but_for_a_new_embedding_layer(start: Saved, tmp_path: Path) -> None:
    seen: list[int] = []
    fitted = fit(
        SOME, PLAN, tmp_path / "m.safetensors", start=start, watch=lambda record: bool(seen.append(record.step))
    )
    assert seen == [record.step for record in fitted.trained.records] == list(range(7))
    assert load_network(tmp_path / "m.safetensors").network.embedding_dim == 6
    assert [record.step for record in read_records(tmp_path / "m.head.jsonl")] == [0, 1, 2]
    assert [record.step for record in read_records(tmp_path / "m.jsonl")] == [0, 1, 2, 3]
    # What is frozen is seen where the head alone has learned.
    stopped = fit(SOME, PLAN, tmp_path / "h.safetensors", start=start, watch=lambda record: record.step == 1)
    assert not stopped.trained.finished
    for key, tensor in start.network.state_dict().items():
        if not key.startswith("projection"):
            assert torch.equal(stopped.network.state_dict()[key], tensor), key


def test_without_head_steps_the_whole_network_is_taken_over(start: Saved, tmp_path: Path) -> None:
    plan = replace(PLAN, embedding_dim=9, head_steps=0, steps=1, rate=1e-12)
    fitted = fit(SOME, plan, tmp_path / "m.safetensors", start=start)
    torch.testing.assert_close(embedding_layer(fitted.network).weight, embedding_layer(start.network).weight)


@pytest.mark.slow
@pytest.mark.parametrize("stop", [0, 1, 2, 3, 5])
def test_a_run_stopped_in_either_part_goes_on_to_the_last_digit(start: Saved, tmp_path: Path, stop: int) -> None:
    def run(name: str, *, resume: bool = False, stop: int | None = None) -> FitResult:
        out = tmp_path / f"{name}.safetensors"
        watch = None if stop is None else lambda record: record.step == stop
        return fit(SOME, PLAN, out, start=start, resume=resume, every=2, watch=watch)

    whole = run("whole")
    assert len({record.loss for record in whole.trained.records}) == 7
    first = run("part", stop=stop)
    assert (first.trained.finished, len(first.trained.records)) == (False, stop + 1)
    rest = run("part", resume=True)
    assert [record.loss for record in rest.trained.records] == [record.loss for record in whole.trained.records]
    assert rest.hash == whole.hash
    assert run("part", resume=True).hash == whole.hash  # there is nothing left to do


def test_another_start_does_not_resume(start: Saved, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    fit(SOME, PLAN, out, start=start, watch=lambda record: True)
    other = replace(start, hash="another")
    with pytest.raises(ValueError, match="resume: start must be that of the checkpoint"):
        fit(SOME, PLAN, out, start=other, resume=True)


def test_a_new_run_leaves_no_old_checkpoint_to_resume(start: Saved, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    fit(SOME, PLAN, out, start=start)

    def fail(record: object) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fit(SOME, PLAN, out, start=start, watch=fail)
    assert not beside(out, "checkpoint").exists()
    assert not beside(out, "head.checkpoint").exists()


def test_batches_go_on_where_the_first_part_ended() -> None:
    early, late = feed().since(2), Later(feed(), 2).since(0)
    for _ in range(2):
        one, other = next(early), next(late)
        assert one.step == other.step
        assert torch.equal(one.images, other.images)


def test_two_parts_are_joined_in_order(start: Saved, tmp_path: Path) -> None:
    records = fit(SOME, replace(PLAN, head_steps=0), tmp_path / "m.safetensors").trained.records
    both = joined(Trained(records[:1], True), Trained(records[:2], False), 1)
    assert [record.step for record in both.records] == [0, 1, 2]
    assert not both.finished


def test_a_start_that_does_not_fit_is_refused(start: Saved, tmp_path: Path) -> None:
    out = tmp_path / "m.safetensors"
    cases = [
        (replace(PLAN, network="resnet14"), start, "fit: network must be that of the start, resnet8; got resnet14"),
        (
            replace(PLAN, head_steps=0),
            start,
            "fit: embedding_dim must be that of the start, 9, unless head_steps; got 6",
        ),
        (replace(PLAN, size=(9, 9)), start, r"fit: size must be that of resnet8, \(8, 8\); got \(9, 9\)"),
        (PLAN, None, "fit: head_steps must be 0 without a start; got 3"),
    ]
    for plan, given, message in cases:
        with pytest.raises(ValueError, match=message):
            fit(SOME, plan, out, start=given)
    with pytest.raises(ValueError, match="TrainingPlan: head_steps must be a whole number of at least 0; got -1"):
        replace(PLAN, head_steps=-1)


def test_images_are_prepared_as_for_the_start(start: Saved, tmp_path: Path) -> None:
    path = tmp_path / "other.safetensors"
    preparation = Preparation((10, 11), channels=1, mean=0.25)
    save_network(start.network, path, name=start.name, options=start.options, preparation=preparation)
    plan = replace(PLAN, steps=1, head_steps=1)
    assert fit(SOME, plan, tmp_path / "m.safetensors", start=load_network(path)).preparation == preparation
