"""Leaving early changes when an answer is given, never which example it is about."""

from typing import Literal

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.exits import EarlyExit, MaxProbability, Patience, Policy
from likewise.exits.criteria import Seen
from likewise.exits.running import Always, Never, Outcome, Timings, gathered
from likewise.networks import resnet8, vit
from tests.exits.problems import CLASSES, HEADS, linear, rows, small
from tests.exits.rules import CRITERIA
from tests.tolerance import assert_close

Compact = Literal["always", "never", "measured"]


def by_definition(exits: EarlyExit, policy: Policy, x: Tensor) -> tuple[list[int], Tensor]:
    """One example at a time, all heads first, then the rule."""
    found, answers = [], []
    with torch.no_grad():
        for row in x:
            features, logits = exits.features_and_logits(row[None])
            state = torch.zeros(1, policy.criterion.width)
            exit = len(HEADS)
            for head in range(len(HEADS)):
                seen = Seen(head, exits.places[head] + 1, features[head], logits[:, head])
                score, state = policy.criterion.step(seen, state)
                if score.item() >= policy.thresholds[head]:
                    exit = head
                    break
            found.append(exit)
            answers.append(logits[0, exit])
    return found, torch.stack(answers)


@pytest.mark.slow
@pytest.mark.parametrize("compact", ["always", "never"])
@pytest.mark.parametrize("name", CRITERIA)
def test_a_batch_answers_as_its_examples_do_one_by_one(name: str, compact: Compact) -> None:
    exits, x = small(), rows(23)
    criterion, threshold = CRITERIA[name]
    policy = Policy(criterion, (threshold,) * 3)
    found = exits.run(x, policy=policy, compact=compact)
    expected, logits = by_definition(exits, policy, x)
    assert found.exits.tolist() == expected
    assert len(set(expected)) > 1  # or nothing was tested
    assert_close(found.logits, logits)


@pytest.mark.slow
@given(st.permutations(range(11)), st.lists(st.sampled_from([0.0, 0.5, 0.8, 2.0]), min_size=3, max_size=3))
def test_the_order_of_a_batch_does_not_matter(order: list[int], thresholds: list[float]) -> None:
    exits, x, policy = small(), rows(11), Policy(MaxProbability(), tuple(thresholds))
    plain, shuffled = exits.run(x, policy=policy, compact=Always()), exits.run(x[order], policy=policy, compact=Never())
    assert shuffled.exits.tolist() == plain.exits[order].tolist()
    assert_close(shuffled.logits, plain.logits[order])


@pytest.mark.parametrize("name", CRITERIA)
@pytest.mark.parametrize("compact", ["always", "measured"])
def test_an_unreachable_threshold_is_the_network_bit_for_bit(name: str, compact: Compact) -> None:
    exits, x = small(), rows(13)
    found = exits.run(x, policy=Policy(CRITERIA[name][0], (float("inf"),) * 3), compact=compact)
    assert torch.equal(found.logits, exits.network(x))
    assert found.exits.tolist() == [3] * 13
    assert found.computed == found.wanted == (13,) * 5
    if name != "predicted depth":  # whose scores have no highest
        assert found.asked == (0, 0, 0)


@pytest.mark.parametrize(
    ("network", "x", "heads"),
    [
        (resnet8(channels=1, num_classes=3), torch.ones(5, 1, 8, 8), ("stem", "block2", "embedding")),
        (vit(8, patch_size=4, channels=1, num_classes=3), torch.ones(5, 1, 8, 8), ("patches", "block1", "embedding")),
        (torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 4)), torch.ones(5, 1, 8, 8), ("0",)),
    ],
    ids=["resnet", "vit", "sequential"],
)
def test_networks_never_left_are_themselves_bit_for_bit(
    network: torch.nn.Module, x: Tensor, heads: tuple[str, ...]
) -> None:
    x = x * torch.arange(5.0)[:, None, None, None]
    exits = EarlyExit(network, x, heads=heads).eval()
    with torch.no_grad():
        assert torch.equal(exits.run(x, policy=exits.never).logits, network(x))
        assert torch.equal(exits(x)[:, -1], network(x))
        assert exits.run(x, policy=Policy(MaxProbability(), (0.0,) * len(heads))).exits.tolist() == [0] * 5


def test_rows_that_have_left_are_not_computed() -> None:
    exits, x = small(), rows(40)
    policy = Policy(MaxProbability(), (0.8, 0.8, 0.8))
    found = exits.run(x, policy=policy, compact="always")
    gone = found.exits.bincount(minlength=4).cumsum(0).tolist()
    left = [40, *(40 - count for count in gone[:3])]
    assert 0 < left[3] < left[2] < left[1] < 40
    assert found.computed == found.wanted == (*left, left[3])
    assert found.asked == tuple(left[:3])
    carried = exits.run(x, policy=policy, compact="never")
    assert carried.computed == (40,) * 5
    assert carried.wanted == found.wanted
    assert carried.exits.tolist() == found.exits.tolist()


def test_a_segment_counts_the_rows_it_is_given() -> None:
    exits, x, given_rows = small(), rows(40), []
    name, segment = exits.chain[2]
    counting = name, lambda x: given_rows.append(len(x)) or segment(x)
    exits.chain = (*exits.chain[:2], counting, *exits.chain[3:])
    found = exits.run(x, policy=Policy(MaxProbability(), (0.8,) * 3), compact="always")
    assert given_rows == [found.computed[2]]
    assert found.computed[2] < 40


def test_when_all_have_left_nothing_more_is_run() -> None:
    found = small().run(rows(6), policy=Policy(MaxProbability(), (2.0, 0.0, 0.0)), compact="never")
    assert found.computed == (6, 6, 0, 0, 0)
    assert found.asked == (0, 6, 0)  # the first head can let nobody go


def test_a_head_that_lets_nobody_go_runs_only_if_it_is_remembered() -> None:
    exits, x = small(), rows(6)
    assert exits.run(x, policy=Policy(MaxProbability(), (2.0, 0.5, 2.0)), compact="always").asked == (0, 6, 0)
    assert exits.run(x, policy=Policy(Patience(), (9.0, 2.0, 9.0)), compact="always").asked == (6, 6, 0)


@pytest.mark.parametrize("count", [0, 1])
def test_an_empty_batch_and_a_single_example(count: int) -> None:
    exits = small()
    found = exits.run(rows(count), policy=Policy(MaxProbability(), (0.5,) * 3))
    assert found.logits.shape == (count, CLASSES)
    assert found.exits.shape == (count,)


def table(*, copy: float) -> Timings:
    """A millisecond per row and segment, and `copy` per row copied."""
    segments = ((0.0, 0.1),) * 5
    return Timings("cpu", 1, (*HEADS, "fourth", "logits"), (0, 100), segments, ((0.0, 100 * copy),) * 5)


def test_a_batch_shrinks_where_that_pays_and_only_there() -> None:
    cheap, dear = table(copy=0.0), table(copy=0.01)
    assert cheap.rest(0, 10) == pytest.approx(0.04)  # four segments of 10 ms
    assert cheap.pays(0, 10, 9)
    assert not dear.pays(0, 10, 9)  # saves 4 ms, copies for 90
    assert dear.pays(0, 40, 10)  # saves 120 ms, copies for 100
    assert not dear.pays(2, 40, 10)  # saves 60 ms
    exits, x, policy = small(), rows(40), Policy(MaxProbability(), (0.8,) * 3)
    assert exits.run(x, policy=policy, compact=cheap).computed == exits.run(x, policy=policy, compact="always").computed
    assert exits.run(x, policy=policy, compact=table(copy=9.0)).computed == (40,) * 5


def test_times_are_measured_once_and_can_be_printed() -> None:
    exits, x = small(), rows(12)
    found = exits.timings(x)
    assert exits.timings(x + 1) is found
    assert exits.timings(rows(40)) is not found
    assert found.sizes == (1, 2, 4, 8, 12)
    assert all(0 < seconds < 1 for times in (*found.segments, *found.copies) for seconds in times)
    lines = str(found).splitlines()
    assert [line.split()[0] for line in lines[1:]] == ["rows", *HEADS, "fourth", "logits"]


def test_a_wrong_head_gives_a_known_accuracy() -> None:
    # The first head always says class 0 and is sure of it; so all leave there, and as many are right as are of class 0.
    exits, x = small(), rows(50)
    head = linear(exits, 0)
    head.weight.data.zero_()
    head.bias.data = torch.tensor([50.0, 0, 0, 0, 0], dtype=torch.float64)
    labels = exits.network(x).argmax(1)
    found = exits.run(x, policy=Policy(MaxProbability(), (0.9,) * 3))
    assert (found.classes == labels).double().mean() == (labels == 0).double().mean()
    assert exits.run(x, policy=exits.never).classes.tolist() == labels.tolist()


def test_no_score_is_above_the_highest() -> None:
    exits, x = small(), rows(50)
    for criterion, _ in CRITERIA.values():
        features, logits = exits.features_and_logits(x)
        state = torch.zeros(50, criterion.width)
        for head in range(3):
            score, state = criterion.step(Seen(head, head + 1, features[head], logits[:, head]), state)
            assert score.max() <= criterion.highest(head)


def test_an_answer_that_is_no_number_does_not_leave() -> None:
    exits, x = small(), rows(4)
    linear(exits, 0).bias.data[0] = float("nan")
    found: Outcome = exits.run(x, policy=Policy(MaxProbability(), (0.0, 2.0, 2.0)))
    assert found.exits.tolist() == [3] * 4


def test_rows_that_go_on_keep_their_memory_format() -> None:
    images = torch.randn(6, 4, 3, 3, generator=torch.Generator().manual_seed(0)).to(memory_format=torch.channels_last)
    kept = gathered(images, torch.tensor([1, 4]))
    assert kept.is_contiguous(memory_format=torch.channels_last)
    assert torch.equal(kept, torch.stack([images[1], images[4]]))
