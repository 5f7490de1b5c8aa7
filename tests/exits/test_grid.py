"""Heads with a grid see where in an image something is."""

import pytest
import torch

from likewise.exits import EarlyExit
from likewise.exits.early import pooled
from likewise.networks import resnet8


def test_parts_are_means_row_by_row() -> None:
    x = torch.arange(32.0).reshape(1, 2, 4, 4)
    by_hand = [x[0, c, r : r + 2, s : s + 2].mean() for c in (0, 1) for r in (0, 2) for s in (0, 2)]
    assert pooled(x, 2).tolist() == [[each.item() for each in by_hand]]
    assert torch.equal(pooled(x, 1), x.mean((2, 3)))
    assert torch.equal(pooled(x, 4), x.flatten(1))


def test_tokens_and_rows_have_no_grid() -> None:
    tokens = torch.arange(12.0).reshape(1, 3, 4)
    assert torch.equal(pooled(tokens, 4), tokens.mean(1))
    assert torch.equal(pooled(tokens[:, 0], 4), tokens[:, 0])


def test_two_images_with_equal_means_are_told_apart() -> None:
    image = torch.zeros(2, 1, 8, 8)
    image[0, :, :4], image[1, :, 4:] = 1.0, 1.0
    network = torch.nn.Sequential(torch.nn.Identity(), torch.nn.Flatten(), torch.nn.Linear(64, 2)).eval()
    blind, seeing = (EarlyExit(network, image, heads=["0"], grid=grid).eval() for grid in (1, 4))
    assert torch.equal(*blind(image)[:, 0])
    assert not torch.equal(*seeing(image)[:, 0])


def test_a_grid_is_no_finer_than_the_image() -> None:
    exits = EarlyExit(resnet8(channels=1, num_classes=3), torch.zeros(2, 1, 8, 8), heads=["block1", "block3"], grid=5)
    widths = [weight.shape[1] for name, weight in exits.heads.named_parameters() if name.endswith("weight")]
    assert widths == [16 * 25, 64 * 4]  # 8 x 8 and 2 x 2 pixels
    assert exits.eval()(torch.zeros(3, 1, 8, 8)).shape == (3, 3, 3)


def test_no_parts_are_refused() -> None:
    with pytest.raises(ValueError, match=r"EarlyExit: grid must be a whole number of at least 1; got 0\."):
        EarlyExit(resnet8(channels=1, num_classes=3), heads=["block1"], grid=0)
