"""Heads learn; a frozen body does not."""

from typing import Any, cast

import pytest
import torch
from torch import Tensor, nn

from likewise.exits import (
    EarlyExit,
    MaxProbability,
    fit_class_means,
    fit_neighbours,
    fit_predicted_depth,
    fit_temperatures,
    train_exits,
)
from likewise.exits.criteria import Seen
from likewise.exits.fitting import ExitLoss, best_temperature
from likewise.exits.splits import Split
from likewise.networks import resnet8
from likewise.training import Cosine
from tests.exits.problems import CLASSES, linear, rows, small
from tests.tolerance import assert_close
from tests.training.problems import batch

HEADS = ["block1", "block2"]


def images(count: int, role: str, *, seed: int = 1) -> Split:
    """Three classes: which third of the image is bright."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (count,), generator=generator)
    x = 0.5 * torch.randn(count, 1, 6, 6, generator=generator)
    for third in range(3):
        x[labels == third, :, 2 * third : 2 * third + 2] += 1
    return Split(x, labels, role)  # ty: ignore[invalid-argument-type]


def fresh() -> EarlyExit:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return EarlyExit(resnet8(channels=1, num_classes=3), heads=HEADS).eval()


def accuracy(exits: EarlyExit, data: Split) -> list[float]:
    with torch.no_grad():
        return (exits(data.inputs).argmax(2) == data.labels[:, None]).double().mean(0).tolist()


def test_a_frozen_body_answers_bit_for_bit_as_before() -> None:
    exits, data = fresh(), images(60, "train")
    before = {key: tensor.clone() for key, tensor in exits.network.state_dict().items()}
    answers = exits.network(data.inputs)
    heads = linear(exits, 1).weight.clone()
    exits.train()  # as it comes out of its own training: statistics of BatchNorm would move
    trained = train_exits(exits, data, steps=25, schedule=Cosine(peak=0.03))
    assert all(torch.equal(tensor, before[key]) for key, tensor in exits.network.state_dict().items())
    assert torch.equal(exits.network(data.inputs), answers)
    assert not exits.training
    assert all(weight.grad is None for weight in exits.network.parameters())
    assert not torch.equal(linear(exits, 1).weight, heads)
    assert trained.records[-1].loss < 0.8 * trained.records[0].loss


def test_training_jointly_teaches_all_exits() -> None:
    exits = fresh()
    train_exits(exits, images(60, "train"), steps=25, body="joint", schedule=Cosine(peak=0.03), weights=[1, 0.3, 1])
    assert min(accuracy(exits, images(200, "test", seed=2))) > 0.6


def test_the_loss_is_the_weighted_mean_of_cross_entropies() -> None:
    labels = [0, 2, 1]
    logits = torch.randn(3, 2, 3, generator=torch.Generator().manual_seed(3))
    losses = [nn.functional.cross_entropy(logits[:, exit], torch.tensor(labels)) for exit in range(2)]
    found = ExitLoss([3, 1])(logits.flatten(1), batch(labels))
    assert_close(found, (3 * losses[0] + losses[1]) / 4)


def test_a_weight_of_zero_teaches_nothing() -> None:
    exits = fresh()
    before = [linear(exits, head).weight.clone() for head in range(2)]
    train_exits(exits, images(30, "train"), steps=2, weights=[0, 1], schedule=Cosine(decay=0.0))
    assert torch.equal(linear(exits, 0).weight, before[0])
    assert not torch.equal(linear(exits, 1).weight, before[1])


def entropies(exits: EarlyExit, data: Split) -> list[float]:
    with torch.no_grad():
        logits = exits(data.inputs)
    return [nn.functional.cross_entropy(logits[:, head], data.labels).item() for head in range(len(exits.heads))]


def test_temperatures_lower_the_entropy_and_change_no_class() -> None:
    exits, data = fresh(), images(200, "selection")
    for head in range(2):
        linear(exits, head).weight.data *= 50
    before, classes = entropies(exits, data), exits(data.inputs).argmax(2)
    found = fit_temperatures(exits, data)
    assert all(temperature > 1 for temperature in found)
    assert all(now < then for now, then in zip(entropies(exits, data), before, strict=True))
    assert torch.equal(exits(data.inputs).argmax(2), classes)
    assert fit_temperatures(exits, data) == pytest.approx(found)  # it starts again at 1


def test_no_other_temperature_is_better() -> None:
    generator = torch.Generator().manual_seed(1)
    logits, labels = torch.randn(50, 4, generator=generator).double() * 5, torch.randint(4, (50,), generator=generator)
    best = best_temperature(logits, labels)
    losses = [nn.functional.cross_entropy(logits / (best * factor), labels).item() for factor in (1, 0.99, 1.01)]
    assert losses[0] < min(losses[1:])


def features(exits: EarlyExit, x: Tensor) -> list[Tensor]:
    with torch.no_grad():
        return exits.features_and_logits(x)[0]


def labelled(count: int, role: str, *, seed: int = 5) -> Split:
    return Split(rows(count, seed=seed), torch.arange(count) % CLASSES, role)  # ty: ignore[invalid-argument-type]


def test_neighbours_are_counted_one_by_one() -> None:
    exits, train = small(), labelled(40, "train")
    rule = fit_neighbours(exits, train, k=3, most=25, seed=1)
    assert len(rule.labels) == 25
    x = rows(9, seed=8)
    found, logits = exits.features_and_logits(x)
    for head in range(3):
        score = rule.score(Seen(head, head + 1, found[head].detach(), logits[:, head].detach()))
        for row in range(9):
            nearest = (rule.support[head] - found[head][row]).square().sum(1).argsort()[:3]
            share = (rule.labels[nearest] == logits[row, head].argmax()).double().mean()
            assert score[row].item() == pytest.approx(share.item())


def test_equal_distances_go_to_the_earlier_example() -> None:
    from likewise.exits import Neighbours

    rule = Neighbours((torch.zeros(4, 2),), torch.tensor([2, 1, 0, 0]), k=2)
    assert rule.nearest(Seen(0, 1, torch.ones(1, 2), torch.zeros(1, 3))).tolist() == [[2, 1]]


def test_class_means_are_means() -> None:
    exits, train = small(), labelled(23, "train")
    rule = fit_class_means(exits, train)
    for head, found in enumerate(features(exits, train.inputs)):
        for label in range(CLASSES):
            assert_close(rule.means[head][label], found[train.labels == label].mean(0))


def test_depth_is_predicted_where_it_is_linear_in_the_features() -> None:
    exits, train = small(), labelled(200, "selection")
    found = features(exits, train.inputs)
    depths = (3 * found[1][:, 0]).round().long()
    rule = fit_predicted_depth(exits, train, depths, ridge=1e-9)
    scores = rule.score(Seen(1, 2, found[1], torch.zeros(200, CLASSES)))
    assert (2 - scores - depths).abs().mean() < 0.4  # rounding alone gives 0.25
    x, y = torch.cat([found[1], torch.ones(200, 1)], dim=1).double(), depths.double()
    best = torch.linalg.lstsq(x, y[:, None]).solution[:, 0]
    assert_close(torch.cat([rule.weights[1], torch.tensor([rule.biases[1]])]).double(), best, atol=1e-6)


@pytest.mark.usefixtures("without_shape_checks")
def test_what_cannot_be_fitted_is_refused() -> None:
    exits, train = small(), labelled(23, "train")
    wrong: Any = "x"
    refusals = [
        (
            lambda: train_exits(exits, labelled(9, "test"), steps=1),
            "train_exits: data must be for train; got a split for test",
        ),
        (
            lambda: train_exits(exits, train, steps=1, weights=[1.0]),
            "train_exits: weights must be one for each of 3 exits; got 1",
        ),
        (
            lambda: train_exits(exits, train, steps=1, body=wrong),
            "train_exits: body must be one of 'frozen', 'joint'; got 'x'",
        ),
        (lambda: ExitLoss([0.0, 0.0]), "ExitLoss: weights must be 0 or more, and one above"),
        (lambda: fit_temperatures(exits, train), "fit_temperatures: data must be for selection; got a split for train"),
        (lambda: fit_neighbours(exits, train, k=24), "Neighbours: k must be at most the 23 examples; got 24"),
        (
            lambda: fit_class_means(exits, labelled(4, "train")),
            "fit_class_means: data must have examples of every class",
        ),
        (
            lambda: fit_predicted_depth(exits, train, torch.zeros(3, dtype=torch.int64)),
            "depths must be one for each of 23 examples; got 3",
        ),
        (
            lambda: fit_predicted_depth(exits, train, torch.zeros(23, dtype=torch.int64), ridge=0.0),
            "ridge must be positive; got 0.0",
        ),
    ]
    for call, message in refusals:
        with pytest.raises(ValueError, match=message.replace("(", r"\(")):
            call()


@pytest.mark.usefixtures("without_shape_checks")
def test_networks_that_cannot_be_left_are_refused() -> None:
    network, x = nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.Linear(4, 3)), torch.zeros(2, 4)
    deep = nn.Sequential(nn.Unflatten(1, (1, 1, 1, 4)), nn.Flatten(), nn.Linear(4, 3))
    images, wrong = torch.zeros(2, 1, 8, 8), cast(Any, "x")
    refusals = [
        (lambda: EarlyExit(nn.Linear(4, 3), x, heads=["a"]), "EarlyExit: network must offer segments; got Linear"),
        (lambda: EarlyExit(network, x, heads=["2"]), "EarlyExit: heads must be segments before the last: 0, 1; got 2"),
        (lambda: EarlyExit(network, x, heads=[]), r"EarlyExit: heads must be one or more, each once; got \[\]"),
        (lambda: EarlyExit(network, x, heads=["0", "0"]), "heads must be one or more, each once"),
        (
            lambda: EarlyExit(network, heads=["0"]),
            "EarlyExit: example must be a batch as the network takes it; got None",
        ),
        (
            lambda: EarlyExit(network[:2], x, heads=["0"], segments=[("a", network[1]), ("a", network[1])]),
            "have names, each once",
        ),
        (
            lambda: EarlyExit(network, x + 1, heads=["a"], segments=[("a", network[1]), ("b", nn.Linear(4, 3))]),
            "give the network's .2, 3., bit for bit; got differences up to",
        ),
        (
            lambda: EarlyExit(network, x, heads=["a"], segments=[("a", network[0]), ("b", network[1])]),
            r"bit for bit; got \(2, 4\)",
        ),
        (
            lambda: EarlyExit(nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 1)), x, heads=["0"]),
            "network must end in logits of two classes or more",
        ),
        (lambda: EarlyExit(deep, x, heads=["0"]), r"\(B, F\); got \(2, 1, 1, 1, 4\) behind 0"),
        (lambda: fresh().train().run(images, policy=fresh().never), "EarlyExit.run: exits must be in evaluation mode"),
        (lambda: fresh().run(images, policy=small().never), "policy must have a threshold for each of 2 heads; got 3"),
        (
            lambda: fresh().run(images, policy=fresh().never, compact=wrong),
            "compact must be one of 'measured', 'always', 'never'; got 'x'",
        ),
    ]
    for call, message in refusals:
        with pytest.raises(ValueError, match=message):
            call()


def test_building_changes_neither_mode_nor_chance_nor_weights() -> None:
    network = resnet8(channels=1, num_classes=3)
    network.blocks[1].eval()
    modes = [part.training for part in network.modules()]
    before, chance = {key: value.clone() for key, value in network.state_dict().items()}, torch.get_rng_state()
    EarlyExit(network, heads=HEADS, seed=3)
    assert [part.training for part in network.modules()] == modes
    assert torch.equal(torch.get_rng_state(), chance)
    assert all(torch.equal(value, before[key]) for key, value in network.state_dict().items())


def test_segments_may_be_given_by_hand() -> None:
    network = nn.Sequential(nn.Flatten(), nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 3))
    exits = EarlyExit(
        network, torch.ones(2, 4), heads=["lower"], segments=[("lower", network[:3]), ("upper", network[3])]
    )
    x = torch.randn(5, 4, generator=torch.Generator().manual_seed(1))
    assert exits.names == ("lower",)
    assert torch.equal(exits.eval().run(x, policy=exits.never).logits, network(x))
    assert MaxProbability() == MaxProbability()
