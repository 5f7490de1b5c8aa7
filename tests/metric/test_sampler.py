"""Batches are P identities with K faces and random ones beside them, the same wherever a run goes on."""

from itertools import chain

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils.data import DataLoader

from likewise.metric import IdentitySampler

labels_of_data = st.lists(st.integers(0, 6), min_size=2, max_size=40).filter(lambda them: len(set(them)) < len(them))
sizes = st.tuples(st.integers(1, 4), st.integers(2, 5), st.integers(0, 6))


def sampler(labels: list[int], size: tuple[int, int, int], *, seed: int = 0, rank: int = 0, world: int = 1):
    identities, faces, random = size
    return IdentitySampler(
        torch.tensor(labels), identities=identities, faces=faces, random=random, seed=seed, rank=rank, world=world
    )


@given(labels_of_data, sizes, st.integers(0, 99))
def test_a_batch_is_identities_with_faces_and_random_ones(
    labels: list[int], size: tuple[int, int, int], seed: int
) -> None:
    identities, faces, random = size
    eligible = {label for label in labels if labels.count(label) > 1}
    seen = set()
    for batch in sampler(labels, size, seed=seed):
        people = list(dict.fromkeys(labels[row] for row in batch))[: min(identities, len(eligible))]
        balanced = sum(min(faces, labels.count(person)) for person in people)
        assert set(people) <= eligible
        for person in people:
            mine = [row for row in batch[:balanced] if labels[row] == person]
            assert len(mine) == min(faces, labels.count(person))
        assert len(batch) == balanced + min(random, len(labels) - balanced)
        assert len(set(batch)) == len(batch)
        seen |= set(people)
    assert seen == eligible


@given(labels_of_data, sizes, st.integers(0, 99), st.integers(0, 9))
def test_going_on_anywhere_gives_the_rest(labels: list[int], size: tuple[int, int, int], seed: int, stop: int) -> None:
    whole = sampler(labels, size, seed=seed)
    everything = list(chain(*(whole for _ in range(3))))
    first, again = sampler(labels, size, seed=seed), sampler(labels, size, seed=seed)
    stop = min(stop, len(everything) - 1)
    drawn = []
    while len(drawn) < stop:
        drawn += [batch for _, batch in zip(range(stop - len(drawn)), first, strict=False)]
    again.load_state_dict(first.state_dict())
    assert drawn == everything[:stop]
    assert list(again) == everything[stop : (stop // len(whole) + 1) * len(whole)]


@given(labels_of_data, sizes, st.integers(1, 5))
def test_ranks_together_give_the_batch(labels: list[int], size: tuple[int, int, int], world: int) -> None:
    ranks = [list(sampler(labels, size, rank=rank, world=world)) for rank in range(world)]
    for batch, *parts in zip(sampler(labels, size), *ranks, strict=True):
        assert list(chain(*parts)) == batch
        assert max(map(len, parts)) - min(map(len, parts)) <= 1


def test_epochs_and_seeds_differ_and_repeat() -> None:
    labels = [row // 5 for row in range(100)]
    one = sampler(labels, (4, 3, 5))
    first, second = list(one), list(one)
    assert first != second
    assert one.epoch == 2
    assert list(sampler(labels, (4, 3, 5))) == first
    assert list(sampler(labels, (4, 3, 5), seed=1)) != first


def test_random_faces_are_a_fair_draw_from_the_rest() -> None:
    labels = [0] * 4 + [1] + [2] + [3] + [4]
    counts = torch.zeros(8)
    one = sampler(labels, (1, 2, 3))
    for _ in range(600):
        (batch,) = one
        counts[batch] += 1
    # Of four faces two are taken, the other two and the four strangers share three places: 1/2 + 1/2 1/2, and 1/2.
    expected = torch.tensor([450.0] * 4 + [300.0] * 4)
    assert ((counts - expected).abs() < 5 * 600**0.5 / 2).all()


@pytest.mark.parametrize("workers", [0, 1])
def test_it_feeds_a_data_loader_and_resumes_behind_its_workers(workers: int) -> None:
    labels = [row // 5 for row in range(100)]
    one, again = sampler(labels, (4, 3, 5)), sampler(labels, (4, 3, 5))
    expected = list(sampler(labels, (4, 3, 5)))
    loader = DataLoader(torch.arange(100), batch_sampler=one, num_workers=workers)  # ty: ignore[invalid-argument-type]
    used = [batch.tolist() for batch, _ in zip(loader, range(2), strict=False)]
    again.load_state_dict(one.state_dict(used=2))
    assert used + list(again) == expected


def test_all_batches_used_is_the_next_epoch() -> None:
    one = sampler([0, 0, 1, 1], (1, 2, 0))
    list(one)
    assert one.state_dict(used=2) == one.state_dict()
    assert (one.state_dict(used=1)["epoch"], one.state_dict(used=1)["batch"]) == (0, 1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"identities": 0}, "identities must be a whole number of at least 1; got 0."),
        ({"faces": 1}, "faces must be a whole number of at least 2; got 1."),
        ({"random": -1}, "random must be a whole number of at least 0; got -1."),
        ({"seed": -1}, "seed must be a whole number of at least 0; got -1."),
        ({"world": 0}, "world must be a whole number of at least 1; got 0."),
        ({"rank": -1}, "rank must be a whole number of at least 0; got -1."),
        ({"rank": 2, "world": 2}, "rank must be less than world, 2; got 2."),
    ],
)
def test_wrong_options_are_refused(options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^IdentitySampler: {message}$"):
        IdentitySampler(torch.tensor([0, 0]), **options)


def test_labels_without_a_pair_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^IdentitySampler: labels must have an identity with at least two rows; got"):
        IdentitySampler(torch.arange(3))


def test_a_foreign_or_impossible_state_is_refused() -> None:
    one, other = sampler([0, 0, 1, 1], (1, 2, 0)), sampler([0, 0, 1, 1, 1], (1, 2, 0))
    with pytest.raises(ValueError, match="load_state_dict: labels must be this sampler's, "):
        one.load_state_dict(other.state_dict())
    with pytest.raises(ValueError, match="load_state_dict: seed must be this sampler's, 0; got None"):
        one.load_state_dict({**one.state_dict(), "seed": None})
    with pytest.raises(ValueError, match="load_state_dict: batch must be from 0 to 1; got 2"):
        one.load_state_dict({**one.state_dict(), "batch": 2})
    with pytest.raises(ValueError, match="load_state_dict: epoch must be a whole number of at least 0; got None"):
        one.load_state_dict({**one.state_dict(), "epoch": None})
    with pytest.raises(ValueError, match="state_dict: used must be at most the 0 batches drawn; got 1"):
        one.state_dict(used=1)
    with pytest.raises(ValueError, match="rows: batch must be from 0 to 1; got 2"):
        one.rows(epoch=0, batch=2)
