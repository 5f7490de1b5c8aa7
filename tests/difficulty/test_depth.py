"""Laws of prediction depth."""

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor, nn

from likewise.difficulty import labelled, prediction_depth
from likewise.difficulty.depth import iteration_learned, last_run_start, plan_depth
from likewise.difficulty.results import PredictionDepth
from likewise.difficulty.taps import Tap
from tests.difficulty import plain
from tests.difficulty.conformance import Set
from tests.difficulty.problems import CLASSES, TEST, TRAIN, examples, fitted, network

HIDDEN = ["0", "1", "2", "3"]
KS = (1, 2, 5, 8)


def depth_pair(found: PredictionDepth) -> tuple[list[int], list[int]]:
    assert found.test is not None
    return found.train.depth.tolist(), found.test.depth.tolist()


@pytest.mark.slow
@settings(max_examples=8)
@given(st.integers(0, 999), st.integers(1, 12))
def test_depth_is_that_of_the_definition(seed: int, k: int) -> None:
    model, train, test = fitted(seed % 4), examples(TRAIN, seed), examples(TEST, seed + 1)
    found = prediction_depth(model, train, test, k=k, sample=7)
    modules, support = [model[int(name)] for name in HIDDEN], Set(*train, train[1])
    expected = plain.depths(model, modules, support, train[0], k, same=True)
    assert depth_pair(found) == (expected, plain.depths(model, modules, support, test[0], k))
    assert found.layers == ("input", *HIDDEN, "softmax")
    assert len(set(expected)) > 2  # or the law says little


@pytest.mark.slow
@settings(max_examples=8)
@given(st.integers(0, 999), st.integers(0, TRAIN))
def test_short_circuit_equals_the_full_pass(seed: int, sample: int) -> None:
    model, train, test = fitted(seed % 4), examples(TRAIN, seed), examples(TEST, seed + 1)
    short = prediction_depth(model, train, test, k=5, sample=sample)
    full = prediction_depth(model, train, test, k=5, sample=TRAIN)
    assert depth_pair(short) == depth_pair(full)
    assert short.reads.short == full.reads.short < full.reads.full
    assert full.reads.short + full.reads.sample == full.reads.full
    assert short.reads.sample <= full.reads.sample


def test_the_short_circuit_asks_nobody_again_after_a_contradiction() -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    found = prediction_depth(model, train, test, k=5, sample=0)
    widths = [layer.width for layer in found.plan.layers]
    depths = torch.tensor([*depth_pair(found)[0], *depth_pair(found)[1]])
    asked = [int((depths <= place + 1).sum()) for place in range(len(widths))]  # contradicted here, or earlier
    assert found.reads.short == sum(count * width for count, width in zip(asked, widths, strict=True)) * TRAIN
    assert found.curves == {}


def test_a_sweep_over_k_equals_a_run_for_each() -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    swept = prediction_depth(model, train, test, k=5, sweep_ks=KS)
    assert swept.test is not None
    assert swept.curves["test"].ks == (5, 1, 2, 8)
    for number, k in enumerate(swept.curves["test"].ks):
        alone = prediction_depth(model, train, test, k=k)
        assert (swept.train.sweep[k].tolist(), swept.test.sweep[k].tolist()) == depth_pair(alone)
        torch.testing.assert_close(swept.curves["test"].accuracy[number], alone.curves["test"].accuracy[0])
        short = prediction_depth(model, train, test, k=5, sweep_ks=KS, sample=0)  # nobody asked but the unsettled
        assert short.train.sweep[k].tolist() == alone.train.depth.tolist()
    assert swept.test.depth is swept.test.sweep[5]


def test_curves_are_those_of_the_probes() -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    found = prediction_depth(model, train, test, k=5)
    modules = [model[int(name)] for name in HIDDEN]
    supports, rows = plain.features(model, train[0], modules), plain.features(model, test[0], modules)
    answers = torch.tensor([plain.votes(s, train[1], q, 5) for s, q in zip(supports, rows, strict=True)])
    predicted = model(test[0]).argmax(dim=1)
    curve = found.curves["test"]
    assert curve.accuracy[0].tolist() == (answers == test[1]).double().mean(dim=1).tolist()
    assert curve.agreement[0].tolist() == (answers == predicted).double().mean(dim=1).tolist()
    assert curve.rows.tolist() == list(range(TEST))


def shuffled(data: tuple[Tensor, Tensor], seed: int = 0) -> tuple[tuple[Tensor, Tensor], Tensor]:
    order = torch.randperm(len(data[1]), generator=torch.Generator().manual_seed(seed))
    return (data[0][order], data[1][order]), order


def test_order_of_queries_and_of_support_changes_nothing() -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    there, here = depth_pair(prediction_depth(model, train, test, k=5))
    (other_train, rows), (other_test, columns) = shuffled(train), shuffled(test)
    found = depth_pair(prediction_depth(model, other_train, other_test, k=5))
    assert found == ([there[row] for row in rows], [here[row] for row in columns])


def test_held_out_labels_change_nothing_but_the_accuracy() -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    one = prediction_depth(model, train, test, k=5)
    two = prediction_depth(model, train, (test[0], (test[1] + 1) % CLASSES), k=5)
    assert depth_pair(one) == depth_pair(two)
    assert one.test is not None
    assert two.test is not None
    assert one.test.accuracy != two.test.accuracy


@pytest.mark.parametrize("batch", [1, 7, TRAIN])
def test_batch_size_changes_nothing(batch: int) -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    one = prediction_depth(model, train, test, k=5)
    two = prediction_depth(model, labelled(train, batch=batch), labelled(test, batch=batch), k=5)
    assert depth_pair(one) == depth_pair(two)
    assert one.fingerprint == two.fingerprint


def test_number_of_threads_changes_nothing() -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    threads = torch.get_num_threads()
    found = []
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            found.append(depth_pair(prediction_depth(model, train, test, k=5)))
    finally:
        torch.set_num_threads(threads)
    assert found[0] == found[1]


def rotation(width: int) -> Tensor:
    drawn = torch.randn(width, width, dtype=torch.float64, generator=torch.Generator().manual_seed(width))
    return torch.linalg.qr(drawn).Q


MOVES: dict[str, Callable[[Tensor], Tensor]] = {
    "constant": lambda x: x + 100.0,
    "scale": lambda x: 0.03 * x,
    "rotation": lambda x: x @ rotation(x.shape[1]).to(x.dtype),
}


@pytest.mark.parametrize("move", MOVES)
def test_moving_the_features_of_every_layer_changes_nothing(move: str) -> None:
    model = fitted().double()
    train, test = examples(TRAIN, 5, dtype=torch.float64), examples(TEST, 6, dtype=torch.float64)
    one = prediction_depth(model, train, test, k=5, layers=HIDDEN)
    two = prediction_depth(model, train, test, k=5, layers=[Tap(name, select=MOVES[move]) for name in HIDDEN])
    assert depth_pair(one) == depth_pair(two)
    assert one.fingerprint != two.fingerprint


def test_renaming_the_classes_changes_nothing() -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    one = prediction_depth(model, train, test, k=5)
    new = torch.tensor([2, 0, 1])
    last = model[4]
    assert isinstance(last, nn.Linear)
    old = new.argsort()
    last.weight.data, last.bias.data = last.weight.data[old], last.bias.data[old]
    two = prediction_depth(model, (train[0], new[train[1]]), (test[0], new[test[1]]), k=5)
    assert depth_pair(one) == depth_pair(two)


def test_some_training_examples_may_be_asked_alone() -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    whole = prediction_depth(model, train, test, k=5)
    some = prediction_depth(model, train, test, k=5, train_rows=[3, 20, 41])
    assert some.train.rows.tolist() == [3, 20, 41]
    assert some.train.depth.tolist() == whole.train.depth[[3, 20, 41]].tolist()
    others = prediction_depth(model, train, test, k=5, train_rows=[3, 20, 42])
    assert some.fingerprint != others.fingerprint
    none = prediction_depth(model, train, test, k=5, train_rows=())
    assert len(none.train) == 0
    assert repr(none.train) == "Depths(of nothing)"
    assert list(none.curves) == ["test"]
    assert depth_pair(none)[1] == depth_pair(whole)[1]


def test_sums_over_depths_by_hand() -> None:
    model, train, test = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    found = prediction_depth(model, train, test, k=5).test
    assert found is not None
    with torch.no_grad():
        assert found.predicted.tolist() == model(test[0]).argmax(dim=1).tolist()
    for depth in range(found.probes + 1):
        here = found.depth == depth
        assert found.counts[depth] == here.sum()
        for label in range(CLASSES):
            assert found.classes_by_depth[depth, label] == (here & (test[1] == label)).sum()
        if here.any():
            assert found.accuracy_by_depth[depth] == (found.predicted == test[1])[here].double().mean()
        else:
            assert found.accuracy_by_depth[depth].isnan()
    assert found.mean(defined_only=True) <= found.mean()


def test_a_network_that_calls_a_module_twice_has_two_probes_of_it() -> None:
    class Twice(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.turn, self.head = nn.Linear(5, 5), nn.Linear(5, CLASSES)

        def forward(self, x: Tensor) -> Tensor:
            return self.head(self.turn(self.turn(x).relu()))

    found = prediction_depth(Twice().eval(), examples(TRAIN, 5), examples(TEST, 6), k=5)
    assert found.layers == ("input", "turn", "turn#2", "softmax")


@settings(max_examples=60)
@given(st.lists(st.lists(st.integers(0, 2), min_size=4, max_size=4), min_size=1, max_size=6))
def test_last_run_starts_where_the_definition_says(rows: list[list[int]]) -> None:
    matrix, reference = torch.tensor(rows), torch.tensor([0, 1, 2, 0])
    expected = [plain.depth([row[i] for row in rows], int(reference[i])) for i in range(4)]
    assert last_run_start(matrix, reference).tolist() == expected


def test_iteration_learned_by_hand() -> None:
    predictions = torch.tensor([[0, 1, 2], [0, 2, 1], [0, 1, 1]])
    assert iteration_learned(predictions).tolist() == [0, 2, 1]
    assert iteration_learned(predictions, torch.tensor([0, 0, 1])).tolist() == [0, 3, 1]
    with pytest.raises(ValueError, match=r"^iteration_learned: predictions must hold a checkpoint; got 0\.$"):
        iteration_learned(torch.zeros(0, 3, dtype=torch.int64))


def test_progress_tells_every_stage_to_its_end() -> None:
    told: dict[str, float] = {}
    shares: list[float] = []

    def progress(done: float, doing: str) -> None:
        told[doing] = done
        shares.append(done)

    prediction_depth(fitted(), examples(TRAIN, 5), examples(TEST, 6), k=5, progress=progress)
    stages = [f"{name}, {which}" for name in ("softmax", *reversed(HIDDEN), "input") for which in ("train", "test")]
    assert list(told) == ["forward pass, train", "forward pass, test", *stages]
    assert list(told.values()) == pytest.approx([(number + 1) / len(told) for number in range(len(told))])
    assert shares == sorted(shares)


def test_the_plan_is_made_before_the_work() -> None:
    arguments = fitted(), examples(TRAIN, 5), examples(TEST, 6)
    assert plan_depth(*arguments, k=5) == prediction_depth(*arguments, k=5).plan


def refused(message: str, model: nn.Module | None = None, test: Any = None, **changed: Any) -> None:
    options: dict[str, Any] = {"k": 5} | changed
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        prediction_depth(model or fitted(), examples(TRAIN, 5), test, **options)


def test_training_mode_is_refused_wherever_it_is() -> None:
    message = "prediction_depth: model must be in evaluation mode; got {} in training mode. Call model.eval()."
    refused(message.format("the model, 0, 1"), model=fitted().train())
    model = fitted()
    model[2].train()
    refused(message.format("2"), model=model)


def test_wrong_arguments_are_refused() -> None:
    most = "prediction_depth: k must be at most 60, the training examples that can be neighbours; got 61."
    refused(most, k=TRAIN)
    refused(most, sweep_ks=[TRAIN])
    refused("prediction_depth: k must be a whole number of at least 1; got 0.", k=0)
    refused("prediction_depth: sample must be a whole number of at least 0; got -1.", sample=-1)
    refused("prediction_depth: train_rows must be rows of train, 0 to 60; got 61.", train_rows=[TRAIN])
    same = "prediction_depth: test must be other data than train; got the same. "
    same += "The depth of training examples is there too, without themselves as neighbours."
    refused(same, test=examples(TRAIN, 5))
    labels = "prediction_depth: labels of {} must be from 0 to 1, the classes of the model; got 0 to 2."
    refused(labels.format("train"), model=network(classes=2))


def test_k_may_be_the_whole_support_when_no_training_example_is_asked() -> None:
    found = prediction_depth(fitted(), examples(TRAIN, 5), examples(TEST, 6), k=TRAIN, train_rows=())
    assert found.test is not None
    majority = examples(TRAIN, 5)[1].bincount().argmax()
    assert (found.test.depth == 0).tolist() == (found.test.predicted == majority).tolist()


def test_empty_sets_are_refused() -> None:
    empty = torch.zeros(0, 5), torch.zeros(0, dtype=torch.int64)
    with pytest.raises(ValueError, match=r"^prediction_depth: train must not be empty; got 0\.$"):
        prediction_depth(fitted(), empty, None)
    refused("prediction_depth: test must not be empty; got 0. Pass None if there is none.", test=empty)
