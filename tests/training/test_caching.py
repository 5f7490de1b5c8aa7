"""Chunks give the gradient of the whole batch."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from likewise.networks import build_network
from likewise.training import SemiHard
from likewise.training.caching import backward_in_chunks
from tests.tolerance import assert_close
from tests.training.problems import batch, small

LABELS = [0, 1, 0, 2, 1, 0, 2, 2, 1, 0, 3]


def gradients(network: torch.nn.Module) -> list[Tensor]:
    return [weight.grad.clone() for weight in network.parameters() if weight.grad is not None]


@given(st.integers(1, 13))
def test_chunks_give_the_gradient_of_the_whole_batch(chunk: int) -> None:
    some, objective = batch(LABELS), SemiHard(margin=1.5)
    images = some.images.double()
    whole = small(dtype=torch.float64)
    embeddings = whole(images)
    loss = objective(embeddings, some)
    loss.backward()
    assert loss > 0
    network = small(dtype=torch.float64)
    found, shown = backward_in_chunks(network, images, lambda e: objective(e, some), chunk=chunk)
    assert_close(found, loss.detach())
    assert_close(shown, embeddings.detach())
    assert len(gradients(network)) == len(gradients(whole)) == 4
    for ours, theirs in zip(gradients(network), gradients(whole), strict=True):
        assert_close(ours, theirs, atol=1e-12)


def test_chance_is_drawn_alike_in_both_passes_and_goes_on_after() -> None:
    some, objective = batch(LABELS), SemiHard(margin=1.5)
    masks: list[Tensor] = []
    network = small(dropout=0.5, dtype=torch.float64)
    network[4].register_forward_hook(lambda _module, _inputs, out: masks.append((out == 0).detach()))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        backward_in_chunks(network, some.images.double(), lambda e: objective(e, some), chunk=4)
        after = torch.get_rng_state()
        torch.manual_seed(1)
        for part in some.images.double().split(4):
            network(part)
        assert torch.equal(after, torch.get_rng_state())
    assert all(torch.equal(masks[place], masks[place + 3]) for place in range(3))
    assert not torch.equal(masks[0], masks[1])


def test_a_batch_with_nothing_to_learn_has_gradient_zero() -> None:
    some, network = batch([0, 1, 2]), small()
    loss, _ = backward_in_chunks(network, some.images, lambda e: SemiHard()(e, some), chunk=2)
    assert float(loss) == 0
    assert all(not gradient.any() for gradient in gradients(network))


def test_batch_norm_in_training_is_refused() -> None:
    some, network = batch(LABELS), small(batch_norm=True)
    with pytest.raises(ValueError, match="backward_in_chunks: network must have no BatchNorm in training; got 1"):
        backward_in_chunks(network, some.images, torch.sum, chunk=2)
    backward_in_chunks(network.eval(), some.images, torch.sum, chunk=2)
    with pytest.raises(ValueError, match="backward_in_chunks: chunk must be a whole number of at least 1; got 0"):
        backward_in_chunks(small(), some.images, torch.sum, chunk=0)


def test_a_network_of_the_paper_can_be_trained_in_chunks() -> None:
    network = build_network("nns2", {"embedding_dim": 16})
    images = torch.randn(3, 3, 140, 116, generator=torch.Generator().manual_seed(1))
    loss, embeddings = backward_in_chunks(network, images, lambda e: e[0] @ e[1], chunk=2)
    assert_close(loss, embeddings[0] @ embeddings[1])
    assert all(gradient.isfinite().all() for gradient in gradients(network))
