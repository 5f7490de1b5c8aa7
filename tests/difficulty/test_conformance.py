"""Planted depths come out exactly; every defect that was seen in other programs gets some of them wrong."""

from collections.abc import Callable, Sequence

import pytest
import torch
from torch import Tensor, nn

from likewise.difficulty import Taps, prediction_depth
from tests.difficulty import plain
from tests.difficulty.conformance import (
    ANCHORS,
    CLASSES,
    LAYERS,
    PROBES,
    Conforming,
    K,
    Set,
    held_out_set,
    training_set,
)

TRAIN, TEST = training_set(), held_out_set()


def modules(model: nn.Module) -> list[nn.Module]:
    return [model.get_submodule(name) for name in LAYERS]


@pytest.mark.parametrize("seed", [0, 3, 7])
def test_planted_depths_are_found(seed: int) -> None:
    train, test = training_set(seed), held_out_set(seed + 1)
    found = prediction_depth(Conforming().eval(), train.pair, test.pair, k=K, layers=LAYERS)
    assert found.layers == ("input", *LAYERS, "softmax")
    assert found.test is not None
    assert found.test.depth.tolist() == test.depths.tolist()
    assert found.test.undefined.tolist() == (test.depths == PROBES).tolist()
    assert found.test.undefined_rate == 8 / 72
    is_planted = train.depths >= 0
    assert found.train.depth[is_planted].tolist() == train.depths[is_planted].tolist()


def test_planted_depths_are_found_behind_a_large_offset() -> None:
    model = Conforming(offset=4096.0).eval()
    found = prediction_depth(model, TRAIN.pair, TEST.pair, k=K, layers=[*LAYERS[:-1], "lifted"])
    assert found.test is not None
    assert found.test.depth.tolist() == TEST.depths.tolist()


def test_the_definition_gives_the_planted_depths_too() -> None:
    model = Conforming().eval()
    assert plain.depths(model, modules(model), TRAIN, TEST.inputs, K) == TEST.depths.tolist()


def right_order() -> tuple[nn.Module, list[nn.Module]]:
    model = Conforming().eval()
    return model, modules(model)


def registration_order() -> tuple[nn.Module, list[nn.Module]]:
    model = Conforming().eval()
    return model, [module for name, module in model.named_children() if name in LAYERS]


def lifted() -> tuple[nn.Module, list[nn.Module]]:
    model = Conforming(offset=4096.0).eval()
    return model, [*modules(model)[:-1], model.get_submodule("lifted")]


def first_run(answers: Sequence[int], reference: int) -> int:
    return next((place for place, answer in enumerate(answers) if answer == reference), len(answers))


def farthest(support: Tensor, query: Tensor) -> list[int]:
    return plain.order(support, query)[::-1]


def uncentred(support: Tensor, query: Tensor) -> list[int]:
    squared = support.square().sum(-1) + query.square().sum() - 2 * support @ query
    return squared.sort(stable=True).indices.tolist()


def wrong(
    *,
    probes: Callable[[], tuple[nn.Module, list[nn.Module]]] = right_order,
    order: Callable[[Tensor, Tensor], list[int]] = plain.order,
    support: Callable[[Tensor], Tensor] = lambda rows: rows,
    fitted: Set = TRAIN,
    reference: str = "network",
    start: Callable[[Sequence[int], int], int] = plain.depth,
    first_probe: int = 0,
) -> float:
    """The part of the planted depths that a program gets wrong."""
    model, listed = probes()
    supports, rows = (plain.features(model, each.inputs, listed)[first_probe:] for each in (fitted, TEST))
    labels = support(fitted.labels)
    columns = [
        [plain.vote(labels[order(support(whole), query)[:K]].tolist()) for query in queries]
        for whole, queries in zip(supports, rows, strict=True)
    ]
    with torch.no_grad():
        references = {"network": model(TEST.inputs).argmax(dim=1).tolist(), "label": TEST.labels.tolist()}
    references["last probe"] = columns[-1]
    found = [start([column[i] for column in columns], references[reference][i]) for i in range(len(TEST.depths))]
    return (torch.tensor(found) != TEST.depths).double().mean().item()


def test_a_program_without_defect_gets_nothing_wrong() -> None:
    assert wrong() == wrong(probes=lifted) == 0


DEFECTS: dict[str, Callable[[], float]] = {
    "farthest neighbours": lambda: wrong(order=farthest),
    "labels as reference": lambda: wrong(reference="label"),
    "last probe as reference": lambda: wrong(reference="last probe"),
    "no input probe": lambda: wrong(first_probe=1),
    "first batch as support": lambda: wrong(support=lambda rows: rows[:ANCHORS]),
    "probes fitted on the scored set": lambda: wrong(fitted=TEST),
    "first instead of last run": lambda: wrong(start=first_run),
    "order of registration": lambda: wrong(probes=registration_order),
    "uncentred single precision": lambda: wrong(probes=lifted, order=uncentred),
}


@pytest.mark.parametrize("defect", DEFECTS)
def test_a_defect_is_exposed(defect: str) -> None:
    assert DEFECTS[defect]() > 0.05


# Defects that need data of their own: an example among its neighbours, and weights of votes.


def depth_of(train: tuple[Tensor, Tensor], x: Tensor, k: int) -> list[int]:
    """Depth of training examples, or of x, in a network of one layer: probes are the input and the softmax."""
    layer = nn.Linear(2, 2, bias=False)
    nn.init.eye_(layer.weight)
    model = nn.Sequential(layer).eval()
    test = None if x is train[0] else (x, torch.zeros(len(x), dtype=torch.int64))
    found = prediction_depth(model, train, test, k=k)
    return (found.train if found.test is None else found.test).depth.tolist()


def test_an_example_is_not_its_own_neighbour() -> None:
    """Others by distance are of class 1, 0, 1: with itself, of class 0, two of three are of class 0."""
    x = torch.tensor([[1.0, 0.0], [1.1, 0.0], [1.2, 0.0], [1.3, 0.0], [5.0, 0.0], [5.1, 0.0], [5.2, 0.0], [5.3, 0.0]])
    labels = torch.tensor([0, 1, 0, 1, 0, 0, 0, 0])
    found = depth_of((x, labels), x, 3)
    assert plain.vote(labels[plain.order(x, x[0])[:3]].tolist()) == 0
    assert plain.vote(labels[plain.order(x, x[0], own=0)[:3]].tolist()) == 1
    assert found[0] == 2  # the network says 0, both probes 1


def test_duplicates_with_other_labels_are_not_taken_for_the_example_itself() -> None:
    """Dropping the nearest would drop row 0 for both twins; row 1 then keeps its own label, 1."""
    x = torch.tensor([[1.0, 0.0], [1.0, 0.0], [5.0, 0.0], [5.5, 0.0]])
    labels = torch.tensor([0, 1, 0, 0])
    drop_nearest = [plain.vote(labels[plain.order(x, x[row])[1:2]].tolist()) for row in (0, 1)]
    assert drop_nearest == [1, 1]
    assert depth_of((x, labels), x, 1)[:2] == [2, 0]  # the network says 0; the twin of row 1 too


def test_far_neighbours_count_as_much_as_near_ones_and_no_more() -> None:
    """Two neighbours near by, of class 0, and three at twice the distance: the plain majority is class 1."""
    x = torch.tensor([[1.0, 0.1], [1.0, -0.1], [1.2, 0.0], [0.8, 0.0], [1.0, 0.2], [9.0, 0.0], [9.1, 0.0], [9.2, 0.0]])
    labels = torch.tensor([0, 0, 1, 1, 1, 0, 0, 0])
    query = torch.tensor([[1.0, 0.0]])
    near = plain.order(x, query[0])[:5]
    distances = (x[near] - query).norm(dim=1)
    shares = torch.zeros(2).index_add(0, labels[near], 1 / distances)
    assert shares.argmax() == 0  # weighted by 1 / distance
    found = prediction_depth(nn.Sequential(nn.Linear(2, 2)).eval(), (x, labels), (query, torch.tensor([0])), k=5)
    assert found.test is not None
    assert found.curves["test"].agreement[0, 0] == (found.test.predicted[0] == 1)


def test_one_farther_neighbour_does_not_outweigh_two_near_ones() -> None:
    x = torch.tensor([[1.0, 0.1], [1.0, -0.1], [6.0, 0.0], [9.0, 0.0], [9.0, 0.0]])
    labels = torch.tensor([0, 0, 1, 1, 1])
    near = plain.order(x, torch.tensor([1.0, 0.0]))[:3]
    distances = (x[near] - torch.tensor([1.0, 0.0])).norm(dim=1)
    assert torch.zeros(2).index_add(0, labels[near], distances.exp()).argmax() == 1  # weighted by exp(+distance)
    assert depth_of((x, labels), torch.tensor([[1.0, 0.0]]), 3) == [0]


class InPlace(nn.Sequential):
    """A linear layer whose output the next layer overwrites."""

    def __init__(self) -> None:
        super().__init__(nn.Linear(CLASSES, CLASSES), nn.ReLU(inplace=True), nn.Linear(CLASSES, CLASSES))


def test_an_overwritten_output_is_still_the_layers_own() -> None:
    model, x = InPlace().eval(), torch.randn(7, CLASSES, generator=torch.Generator().manual_seed(0))
    kept: list[Tensor] = []
    handle = model[0].register_forward_hook(lambda _module, _inputs, out: kept.append(out))
    with Taps(model) as taps, torch.no_grad():
        model(x)
    handle.remove()
    first = model[0](x).detach()
    assert not torch.allclose(kept[0], first)  # what a hook that only remembers would have
    torch.testing.assert_close(taps.features["0"], first)
    torch.testing.assert_close(taps.features["1"], first.relu())
