"""Embedding many images: how many at a time changes nothing but the time."""

import numpy
import pytest
import torch
from torch import Tensor, nn

from likewise.data import Preparation
from likewise.data.examples import Stored, examples
from likewise.networks import Network, build_network
from likewise.training import embed_examples
from likewise.training.embedding import MOST, USUAL, images_at_once


class Odd(Network):
    """A network with an operation that nobody has counted."""

    embedding_dim = 4

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(16, 4)

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        return [("all", self)]

    def forward(self, x: Tensor) -> Tensor:
        return torch.linalg.qr(self.layer(x.flatten(1))).R


@pytest.mark.parametrize(
    ("name", "size", "expected"),
    [("resnet8", (8, 8), MOST), ("resnet14", (64, 64), 64), ("nns2", (140, 116), 32), ("nn2", (224, 224), 2)],
)
def test_small_images_go_many_at_a_time_and_large_ones_few(name: str, size: tuple[int, int], expected: int) -> None:
    network = build_network(name, {}).train()
    assert images_at_once(network, Preparation(size)) == expected
    assert network.training


def test_a_network_that_cannot_be_counted_gets_the_usual_number() -> None:
    assert images_at_once(Odd(), Preparation((4, 4), channels=1)) == USUAL


@pytest.mark.parametrize("size", [1, 3, None])
def test_the_number_changes_no_more_than_rounding(size: int | None) -> None:
    pixels = numpy.random.default_rng(0).integers(0, 256, (7, 8, 8, 3), dtype=numpy.uint8)
    some = examples("noise", Stored(pixels), [str(row) for row in range(7)], list("aabbccc"))
    network, preparation = build_network("resnet8", {"embedding_dim": 5}).eval(), Preparation((8, 8))
    expected = network(torch.stack([preparation(some.read(row)) for row in range(7)]))
    found = embed_examples(network, preparation, some, size=size)
    torch.testing.assert_close(found.vectors, expected)
    assert found.rows.tolist() == list(range(7))
