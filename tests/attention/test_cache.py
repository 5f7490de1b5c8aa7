"""A key-value cache is a value: it holds what was appended to it, whatever later happens to its descendants."""

import math
import re

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from likewise.attention import KeyValueCache
from tests.attention.drawing import seeded

B, G, K, V = 2, 3, 5, 7
Pair = tuple[Tensor, Tensor]


def rows(length: int, seed: int = 0) -> Pair:
    generator = seeded(seed)
    shapes = (B, G, length, K), (B, G, length, V)
    k, v = (torch.randn(shape, dtype=torch.float64, generator=generator) for shape in shapes)
    return k, v


def masks(length: int, seed: int = 0) -> Tensor:
    return torch.rand(B, length, generator=seeded(seed)) > 0.5


def assert_holds(cache: KeyValueCache, keys: Tensor, values: Tensor) -> None:
    assert cache.length == keys.shape[2]
    assert torch.equal(cache.keys, keys)
    assert torch.equal(cache.values, values)


@pytest.mark.slow
@settings(max_examples=60)
@given(moves=st.lists(st.integers(-5, 4), max_size=12))
def test_a_cache_holds_what_was_appended_and_not_taken_back(moves: list[int]) -> None:
    cache, keys, values = KeyValueCache.empty().append(*rows(0)), *rows(0)
    history = [(cache, keys, values)]
    for seed, move in enumerate(moves):
        if move > 0:
            k, v = rows(move, seed)
            cache, keys, values = cache.append(k, v), torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)
        else:
            back = min(-move, cache.length)
            cache, keys, values = (
                cache.rollback(back),
                keys[:, :, : cache.length - back],
                values[:, :, : cache.length - back],
            )
        history.append((cache, keys, values))
    for past in history:  # all of them at the end, so that no append may have written into an older cache
        assert_holds(*past)


@settings(max_examples=60)
@given(steps=st.lists(st.tuples(st.integers(0, 20), st.integers(0, 3)), max_size=10))
def test_descendants_of_one_cache_do_not_see_each_other(steps: list[tuple[int, int]]) -> None:
    family = [(KeyValueCache.empty().append(*rows(2)), *rows(2))]
    for seed, (parent, length) in enumerate(steps):
        cache, keys, values = family[parent % len(family)]
        k, v = rows(length, seed + 1)
        with torch.no_grad():
            longer = cache.append(k, v)
        family.append((longer, torch.cat([keys, k], dim=2), torch.cat([values, v], dim=2)))
    for member in family:
        assert_holds(*member)


@torch.no_grad()
def test_only_the_second_descendant_copies() -> None:
    parent = KeyValueCache.empty().append(*rows(2)).append(*rows(1))
    first, second = parent.append(*rows(1, 1)), parent.append(*rows(1, 2))
    assert first.storage is parent.storage
    assert second.storage is not parent.storage
    assert torch.equal(first.keys[:, :, 3:], rows(1, 1)[0])
    assert torch.equal(second.keys[:, :, 3:], rows(1, 2)[0])


@torch.no_grad()
def test_appending_after_a_rollback_leaves_the_longer_cache_alone() -> None:
    longer = KeyValueCache.empty().append(*rows(3)).append(*rows(4, 1))
    other = longer.rollback(4).append(*rows(4, 2))
    assert torch.equal(longer.keys, torch.cat([rows(3)[0], rows(4, 1)[0]], dim=2))
    assert torch.equal(other.keys, torch.cat([rows(3)[0], rows(4, 2)[0]], dim=2))


def test_a_cache_does_not_change_when_its_inputs_do() -> None:
    inputs = [*rows(2), masks(2)]
    cache = KeyValueCache.empty().append(inputs[0], inputs[1], inputs[2])
    for x in inputs:
        x.zero_()
    assert_holds(cache, *rows(2))
    assert cache.mask is not None
    assert torch.equal(cache.mask, masks(2))


@pytest.mark.usefixtures("without_shape_checks")
def test_the_first_keys_and_values_must_fit_together() -> None:
    k, v = rows(2)
    with pytest.raises(
        ValueError, match=r"^KeyValueCache\.append: v must have the batch and heads of k, \(2, 3\); got"
    ):
        KeyValueCache.empty().append(k, v[:, 1:])
    with pytest.raises(ValueError, match=r"^KeyValueCache\.append: k must have 4 dimensions "):
        KeyValueCache.empty().append(k[0], v)


@torch.no_grad()
def test_growth_is_amortised() -> None:
    length, caches = 300, [KeyValueCache.empty()]
    for _ in range(length):
        caches.append(caches[-1].append(*rows(1)))
    storages = {id(cache.storage): cache.storage for cache in caches if cache.storage is not None}
    assert len(storages) <= math.log2(length) + 2
    assert sum(storage.keys.shape[2] for storage in storages.values()) <= 4 * length


def test_what_a_backward_pass_needs_is_left_alone() -> None:
    with torch.no_grad():
        cache = KeyValueCache.empty().append(*rows(2)).append(*rows(1))  # the storage has room
    q = torch.ones_like(cache.keys, requires_grad=True)
    total = (q * cache.keys).sum()
    cache.append(*rows(1, 1))
    total.backward()
    assert q.grad is not None
    assert torch.equal(q.grad, cache.keys)


def test_a_cache_of_inference_mode_is_continued_outside_it() -> None:
    with torch.inference_mode():
        cache = KeyValueCache.empty().append(*rows(2)).append(*rows(1, 1))
    with torch.no_grad():
        longer = cache.append(*rows(1, 2))
    assert torch.equal(longer.keys, torch.cat([rows(2)[0], rows(1, 1)[0], rows(1, 2)[0]], dim=2))


def test_bytes_are_those_of_the_positions() -> None:
    cache = KeyValueCache.empty()
    assert cache.nbytes == 0
    for length in range(1, 6):
        cache = cache.append(*rows(1))
        assert cache.nbytes == length * 8 * B * G * (K + V)
    assert cache.rollback(3).nbytes == 2 * 8 * B * G * (K + V)


@pytest.mark.parametrize("sizes", [[3, 1, 1], [1, 0, 4], [5]])
def test_gradients_reach_every_appended_row(sizes: list[int]) -> None:
    pieces = [[x.requires_grad_() for x in rows(size, seed)] for seed, size in enumerate(sizes)]
    cache = KeyValueCache.empty()
    for k, v in pieces:
        cache = cache.append(k, v)
    weights = rows(5, 9)
    for index, held in enumerate((cache.keys, cache.values)):
        gradients = torch.autograd.grad(held, [piece[index] for piece in pieces], weights[index])
        assert torch.equal(torch.cat(gradients, dim=2), weights[index])


def test_gradients_may_begin_and_end_anywhere() -> None:
    with torch.no_grad():
        prompt = KeyValueCache.empty().append(*rows(2)).append(*rows(1))
    k, v = (x.requires_grad_() for x in rows(2, 1))
    learned = prompt.append(k, v)
    with torch.no_grad():
        later = learned.append(*rows(1, 2)).append(*rows(1, 3))
    assert not prompt.keys.requires_grad
    assert not later.keys.requires_grad
    (learned.keys.sum() + 2 * learned.values.sum()).backward()
    assert k.grad is not None
    assert v.grad is not None
    assert (k.grad == 1).all()
    assert (v.grad == 2).all()
    assert torch.equal(later.keys[:, :, :5], learned.keys)


def test_masks_are_appended_like_keys() -> None:
    first, last = masks(4), masks(2, 1)
    cache = KeyValueCache.empty().append(*rows(3))
    assert cache.mask is None
    yes = torch.ones(B, 3, dtype=torch.bool)
    masked = cache.append(*rows(4), first).append(*rows(1)).append(*rows(2), last)
    expected = torch.cat([yes, first, yes[:, :1], last], dim=1)
    assert masked.mask is not None
    assert torch.equal(masked.mask, expected)
    back = masked.rollback(3)
    assert back.mask is not None
    assert torch.equal(back.mask, expected[:, :-3])
    other = back.append(*rows(3), masks(3, 2)).mask
    assert other is not None
    assert torch.equal(other, torch.cat([expected[:, :-3], masks(3, 2)], dim=1))
    assert torch.equal(masked.mask, expected)
    assert cache.mask is None


def test_a_mask_may_come_first() -> None:
    cache = KeyValueCache.empty().append(*rows(4), masks(4)).append(*rows(1))
    assert cache.mask is not None
    assert torch.equal(cache.mask, torch.cat([masks(4), torch.ones(B, 1, dtype=torch.bool)], dim=1))


@pytest.mark.usefixtures("without_shape_checks")
def test_what_a_cache_does_not_take_is_refused() -> None:
    k, v = rows(2)
    cache = KeyValueCache.empty().append(k, v)
    rule = "have the cache's batch, heads, width and dtype"
    ours = {"k": f"({B}, {G}, {K}, torch.float64)", "v": f"({B}, {G}, {V}, torch.float64)"}
    refusals = {
        f"KeyValueCache.append: k must {rule} {ours['k']}; got (1, 3, 5, torch.float64).": lambda: cache.append(
            k[:1], v
        ),
        f"KeyValueCache.append: k must {rule} {ours['k']}; got (2, 2, 5, torch.float64).": lambda: cache.append(
            k[:, 1:], v
        ),
        f"KeyValueCache.append: k must {rule} {ours['k']}; got (2, 3, 5, torch.float32).": lambda: cache.append(
            k.float(), v
        ),
        f"KeyValueCache.append: v must {rule} {ours['v']}; got (2, 3, 6, torch.float64).": lambda: cache.append(
            k, v[..., 1:]
        ),
        "KeyValueCache.rollback: positions must be at most the length, 2; got 3.": lambda: cache.rollback(3),
        "KeyValueCache.rollback: positions must be a whole number of at least 0; got -1.": lambda: cache.rollback(-1),
        "KeyValueCache: the cache must hold a position; got an empty one.": lambda: KeyValueCache.empty().keys,
    }
    for message, use in refusals.items():
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            use()


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    "cache", [KeyValueCache.empty(), KeyValueCache.empty().append(*rows(2))], ids=["first", "later"]
)
def test_values_and_masks_of_other_positions_are_refused(cache: KeyValueCache) -> None:
    (k, v), yes = rows(4), torch.ones(B, 1, dtype=torch.bool)
    with pytest.raises(ValueError, match=r"^KeyValueCache\.append: v must have the positions of k, 4; got 1\.$"):
        cache.append(k, v[:, :, :1])
    with pytest.raises(
        ValueError, match=r"^KeyValueCache\.append: mask must have shape \(B, S\) = \(2, 4\); got \(2, 1\)\.$"
    ):
        cache.append(k, v, yes)


def test_selected_rows_are_those_of_the_batch_and_grow_on_their_own() -> None:
    cache, chosen = KeyValueCache.empty().append(*rows(4), masks(4)), torch.tensor([1, 0, 1])
    selected = cache.rollback(1).select(chosen)
    assert_holds(selected, *(x[chosen, :, :3] for x in rows(4)))
    assert selected.mask is not None
    assert torch.equal(selected.mask, masks(4)[chosen, :3])
    later = selected.append(*(x[chosen] for x in rows(2, seed=1)))
    assert (later.length, cache.length) == (5, 4)
    assert KeyValueCache.empty().select(chosen).length == 0
