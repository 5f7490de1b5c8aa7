"""Residual networks: the totals of the paper and of the reference, the blocks by their equations."""

import re
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Generator, Tensor, nn

from likewise.networks import Network, resnet8, resnet14, resnet20, resnet32, resnet50, resnet56
from likewise.networks.resnet import Residual, Subsample, basic, bottleneck
from tests.networks.counting import count, totals
from tests.tolerance import assert_close

B, C, Y, X, CLASSES = 2, 3, 13, 11, 7

# A network and its n: 6n + 2 layers.
SMALL: dict[str, tuple[Callable[..., Network], int]] = {
    "resnet8": (resnet8, 1),
    "resnet14": (resnet14, 2),
    "resnet20": (resnet20, 3),
    "resnet32": (resnet32, 5),
    "resnet56": (resnet56, 9),
}
EVERY = pytest.mark.parametrize("name", SMALL)

# With 10 classes at 32x32: parameters, multiply-adds with biases, without.
SMALL_TOTALS = {
    "resnet8": (75_290, 12_239_498, 12_239_488),
    "resnet14": (172_506, 26_395_274, 26_395_264),
    "resnet20": (269_722, 40_551_050, 40_551_040),
    "resnet32": (464_154, 68_862_602, 68_862_592),
    "resnet56": (853_018, 125_485_706, 125_485_696),
}

# The first block of each width at 224x224, and the others: output, multiply-adds. v1 strides in the first 1x1.
BOTTLENECKS = {
    "v1": {
        1: ((256, 56, 56), (64 * 64 + 64 * 64 * 9 + 2 * 64 * 256) * 56**2),
        2: ((256, 56, 56), (256 * 64 + 64 * 64 * 9 + 64 * 256) * 56**2),
        4: ((512, 28, 28), (256 * 128 + 128 * 128 * 9 + 128 * 512 + 256 * 512) * 28**2),
        5: ((512, 28, 28), (512 * 128 + 128 * 128 * 9 + 128 * 512) * 28**2),
        8: ((1024, 14, 14), (512 * 256 + 256 * 256 * 9 + 256 * 1024 + 512 * 1024) * 14**2),
        14: ((2048, 7, 7), (1024 * 512 + 512 * 512 * 9 + 512 * 2048 + 1024 * 2048) * 7**2),
        16: ((2048, 7, 7), (2048 * 512 + 512 * 512 * 9 + 512 * 2048) * 7**2),
    },
}
# v1.5 strides in the 3x3, so the first 1x1 of a strided block sees four times the pixels.
BOTTLENECKS["v1_5"] = BOTTLENECKS["v1"] | {
    block: (BOTTLENECKS["v1"][block][0], BOTTLENECKS["v1"][block][1] + 3 * width * (width // 2) * side**2)
    for block, width, side in ((4, 256, 28), (8, 512, 14), (14, 1024, 7))
}


def images(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=Generator().manual_seed(0), dtype=torch.float64)


def convolutions(module: nn.Module) -> list[nn.Conv2d]:
    return [part for part in module.modules() if isinstance(part, nn.Conv2d)]


def misspelt(word: str) -> Any:
    return word


def by_hand(n: int, classes: int) -> tuple[int, int, int]:
    """Section 4.2, summed: the stem, 2n convolutions of each width, the head; shortcuts have no parameters."""
    params, macs = 3 * 16 * 9 + 2 * 16, 3 * 16 * 9 * 32**2
    for width_in, width, side in ((16, 16, 32), (16, 32, 16), (32, 64, 8)):
        weights = 9 * width * (width_in + (2 * n - 1) * width)
        params += weights + 2 * n * 2 * width
        macs += weights * side**2
    macs += 64 * classes
    return params + 65 * classes, macs + classes, macs


@EVERY
def test_small_networks_have_the_totals_of_section_4_2(name: str) -> None:
    make, n = SMALL[name]
    found = totals(count(lambda: make(num_classes=10), 3, 32, 32))
    assert found == by_hand(n, 10) == SMALL_TOTALS[name]


def test_the_papers_table_6_prints_our_parameters() -> None:
    printed = {"resnet20": "0.27", "resnet32": "0.46", "resnet56": "0.85"}
    assert {name: f"{SMALL_TOTALS[name][0] / 1e6:.2f}" for name in printed} == printed


@EVERY
def test_a_network_has_as_many_layers_as_its_name_says(name: str) -> None:
    with torch.device("meta"):
        model = SMALL[name][0](num_classes=10)
    layers = [module for module in model.modules() if isinstance(module, nn.Conv2d | nn.Linear)]
    assert len(layers) == int(name.removeprefix("resnet"))


@pytest.mark.parametrize(("version", "macs"), [("v1", 3_857_973_248), ("v1_5", 4_089_184_256)])
def test_resnet50_has_the_references_totals(version: Any, macs: int) -> None:
    counts = count(lambda: resnet50(version=version, num_classes=1000), 3, 224, 224)
    assert totals(counts) == (25_557_032, macs + 1000, macs)
    assert counts["stem"][:3] == ((64, 56, 56), 9_408 + 128, 9_408 * 112**2)
    assert counts["head"] == ((1000,), 2_049_000, 2_048_000, 1000)
    for block, expected in BOTTLENECKS[version].items():
        assert (counts[f"block{block}"].shape, counts[f"block{block}"].macs) == expected


@pytest.mark.parametrize("classes", [None, CLASSES])
@EVERY
def test_segments_compose_to_the_network(name: str, classes: int | None) -> None:
    make, n = SMALL[name]
    model, x = make(num_classes=classes).double().eval(), images(B, C, Y, X)
    with torch.no_grad():
        expected = model(x)
        for segment_name, segment in model.segments:
            x = segment(x)
            if segment_name == "embedding":
                assert x.shape == (B, model.embedding_dim) == (B, 64)
    assert_close(x, expected)
    assert expected.shape == (B, classes or 64)
    blocks = [f"block{i + 1}" for i in range(3 * n)]
    assert [s for s, _ in model.segments] == ["stem", *blocks, "embedding", *(["head"] if classes else [])]
    held = [id(weight) for _, segment in model.segments for weight in segment.parameters()]
    assert held == [id(weight) for weight in model.parameters()]


def test_resnet50_without_classes_gives_embeddings() -> None:
    with torch.device("meta"):
        model = resnet50()
        assert model(torch.zeros(B, C, 97, 64)).shape == (B, model.embedding_dim) == (B, 2048)


def test_only_the_place_of_the_stride_tells_the_versions_apart() -> None:
    with torch.device("meta"):
        models = [resnet50(version="v1"), resnet50(version="v1_5")]
    first, second = ({key: value.shape for key, value in model.state_dict().items()} for model in models)
    assert first == second
    assert [conv.stride[0] for conv in convolutions(bottleneck(8, 4, 2, "v1").branch)] == [2, 1, 1]
    assert [conv.stride[0] for conv in convolutions(bottleneck(8, 4, 2, "v1_5").branch)] == [1, 2, 1]


def test_a_block_is_its_equation() -> None:
    block, x = basic(5, 7).double().eval(), images(B, 5, Y, X)
    conv1, conv2 = convolutions(block.branch)
    scale = (1 + 1e-5) ** -0.5  # of a BatchNorm that has seen nothing
    inner = nn.functional.conv2d(x, conv1.weight, stride=2, padding=1).mul(scale).relu()
    outer = nn.functional.conv2d(inner, conv2.weight, padding=1).mul(scale)
    outer[:, :5] += x[:, :, ::2, ::2]
    assert_close(block(x), outer.relu(), atol=1e-9)  # sums of both signs


def test_a_shortcut_has_parameters_only_where_a_bottleneck_changes_shape() -> None:
    assert isinstance(basic(5, 5).shortcut, nn.Identity)
    assert isinstance(basic(5, 7).shortcut, Subsample)
    assert isinstance(bottleneck(8, 2, 1, "v1").shortcut, nn.Identity)
    for block in (bottleneck(7, 2, 1, "v1"), bottleneck(8, 2, 2, "v1")):
        [conv] = convolutions(block.shortcut)
        assert (conv.out_channels, conv.kernel_size) == (8, (1, 1))
        assert any(isinstance(module, nn.BatchNorm2d) for module in block.shortcut.modules())


def test_the_gradient_of_a_block_is_right() -> None:
    block = basic(2, 3).double().eval()
    assert torch.autograd.gradcheck(block, images(1, 2, 5, 4).requires_grad_())


def test_blocks_fit_one_another() -> None:
    blocks = [block for _, block in resnet14().segments if isinstance(block, Residual)]
    firsts = [convolutions(block.branch)[0] for block in blocks]
    widths = [(conv.in_channels, conv.out_channels) for conv in firsts]
    assert all(before[1] == after[0] for before, after in pairwise(widths))
    assert [width for _, width in widths] == [16, 16, 32, 32, 64, 64]


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: resnet8()(images(B, 1, Y, X)), "resnet8: x must have shape (B, 3, Y, X); got (2, 1, 13, 11)."),
        (lambda: resnet8()(images(C, Y, X)), "resnet8: x must have shape (B, 3, Y, X); got (3, 13, 11)."),
        (lambda: resnet8()(images(B, C, 0, X)), "resnet8: x must have shape (B, 3, Y, X); got (2, 3, 0, 11)."),
        (lambda: resnet14(channels=0), "resnet14: channels must be a whole number of at least 1; got 0."),
        (lambda: resnet20(num_classes=0), "resnet20: num_classes must be a whole number of at least 1; got 0."),
        (lambda: resnet50(version=misspelt("v2")), "resnet50: version must be one of 'v1', 'v1_5'; got 'v2'."),
        (lambda: resnet50(channels=0), "resnet50: channels must be a whole number of at least 1; got 0."),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
