"""The six networks of FaceNet: every row of every table, and the parts that are easily wrong."""

import re
from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any, Literal

import pytest
import torch
from torch import Generator, Tensor, nn

from likewise.networks import Network, nn1, nn2, nn3, nn4, nns1, nns2
from likewise.networks.facenet import NN2, LargerOfTwo, Mix, Row, build
from likewise.networks.inception import Branches, Inception, L2Pool, ResponseNorm
from likewise.networks.segments import UnitLength
from tests.networks.counting import Count, count, totals
from tests.networks.facenet_tables import PRINTED, ROWS, TOTALS
from tests.tolerance import assert_close

SIZES: dict[str, tuple[Callable[..., Network], tuple[int, int]]] = {
    "nn1": (nn1, (220, 220)),
    "nn2": (nn2, (224, 224)),
    "nn3": (nn3, (160, 160)),
    "nn4": (nn4, (96, 96)),
    "nns1": (nns1, (165, 165)),
    "nns2": (nns2, (140, 116)),
}
EVERY = pytest.mark.parametrize("name", SIZES)
# Light enough for real numbers.
LIGHT = pytest.mark.parametrize("name", ["nn4", "nns2"])

TABLES = pytest.mark.parametrize("name", PRINTED)


@cache
def counted(name: str) -> dict[str, Count]:
    make, size = SIZES[name]
    return count(make, 3, *size)


def rounds_to(value: int, printed: str) -> bool:
    """Whether value, rounded to the printed number of digits, is what is printed."""
    digits, unit = printed[:-1], {"K": 1_000, "M": 1_000_000}[printed[-1]]
    return f"{value / unit:.{len(digits.partition('.')[2])}f}" == digits


def drawn(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=Generator().manual_seed(0), dtype=torch.float64)


@pytest.mark.parametrize("name", ROWS)
def test_every_row_has_the_shape_parameters_and_multiply_adds_of_its_table(name: str) -> None:
    assert {row: (c.shape, c.params, c.macs + c.biases) for row, c in counted(name).items()} == ROWS[name]


@EVERY
def test_the_totals_are_the_references(name: str) -> None:
    assert totals(counted(name)) == TOTALS[name]


def test_nn3_is_nn2_on_smaller_images() -> None:
    assert [(row, c.params) for row, c in counted("nn3").items()] == [(r, c.params) for r, c in counted("nn2").items()]
    assert counted("nn3")["inception5b"].shape == (1024, 5, 5)


@TABLES
def test_the_printed_flops_are_multiply_adds_with_biases(name: str) -> None:
    rows = counted(name)
    wrong = [
        row for row, (_, flops) in PRINTED[name].items() if not rounds_to(rows[row].macs + rows[row].biases, flops)
    ]
    assert wrong == []


@TABLES
def test_without_biases_some_printed_flops_would_be_wrong(name: str) -> None:
    rows = counted(name)
    wrong = [row for row, (_, flops) in PRINTED[name].items() if not rounds_to(rows[row].macs, flops)]
    assert wrong == {"nn1": ["conv1", "conv2a", "conv3"], "nn2": ["conv1", "inception3b", "inception4d"]}[name]


@TABLES
def test_the_printed_parameters_are_ours_but_for_4a_which_the_paper_rounds_down(name: str) -> None:
    rows = counted(name)
    wrong = [row for row, (params, _) in PRINTED[name].items() if not rounds_to(rows[row].params, params)]
    assert wrong == {"nn1": [], "nn2": ["inception4a"]}[name]


def without_5x5(*rows: str) -> tuple[Row, ...]:
    """NN2's table, with the 5x5 branch left out of the named blocks."""
    return tuple(
        row._replace(branches=row.branches._replace(five_reduce=0, five=0))
        if isinstance(row, Mix) and row.name.removeprefix("inception") in rows
        else row
        for row in NN2
    )


FOURS = ["4a", "4b", "4c", "4d", "4e"]


@pytest.mark.parametrize(
    ("rows", "params", "millions"),
    [
        ([], 7_456_304, "293.9M"),
        (["5a", "5b"], 6_943_952, "289.5M"),
        (["4e", "5a", "5b"], 6_607_888, "285.3M"),
        ([*FOURS, "5a", "5b"], 6_179_472, "271.1M"),
        (["3a", "3b", "3c", *FOURS, "5a", "5b"], 5_965_728, "252.5M"),
    ],
)
def test_of_the_readings_of_nn4_only_ours_meets_both_printed_figures(
    rows: list[str], params: int, millions: str
) -> None:
    table = without_5x5(*rows)
    found, macs, _ = totals(count(lambda: build("nn4", table, (96, 96), embedding_dim=128, norm="lrn"), 3, 96, 96))
    assert found == params
    assert rounds_to(macs, millions)
    ours = rows == ["4e", "5a", "5b"]
    assert (rounds_to(macs, "285M") and rounds_to(found, "6.6M")) == ours


def test_the_reconstructions_are_within_two_percent_of_the_printed_totals() -> None:
    for name, printed in {"nns1": (26e6, 220e6), "nns2": (4.3e6, 20e6)}.items():
        assert all(abs(ours / paper - 1) < 0.02 for ours, paper in zip(TOTALS[name], printed, strict=False))


@EVERY
def test_batch_norm_replaces_lrn_and_follows_every_convolution(name: str) -> None:
    make, size = SIZES[name]
    with torch.device("meta"):
        plain, batch = make(), make(norm="batch")
    assert [n for n, _ in batch.segments] == [n for n, _ in plain.segments if not n.startswith("rnorm")]
    assert not any(isinstance(module, nn.BatchNorm2d) for module in plain.modules())
    assert not any(isinstance(module, ResponseNorm) for module in batch.modules())
    modules = list(batch.modules())
    for module, after in pairwise(modules):
        assert isinstance(after, nn.BatchNorm2d) == isinstance(module, nn.Conv2d)
    if name == "nn2":
        assert totals(count(lambda: make(norm="batch"), 3, *size))[0] == 7_472_144  # OpenFace's nn2


@EVERY
@pytest.mark.parametrize("embedding_dim", [64, 128])
def test_embeddings_are_as_wide_as_asked(name: str, embedding_dim: int) -> None:
    make, size = SIZES[name]
    with torch.device("meta"):
        model = make(embedding_dim=embedding_dim)
        out = model(torch.zeros(2, 3, *size))
    assert model.embedding_dim == embedding_dim
    assert out.shape == (2, embedding_dim)
    held = [id(weight) for _, segment in model.segments for weight in segment.parameters()]
    assert held == [id(weight) for weight in model.parameters()]


@LIGHT
@pytest.mark.parametrize("norm", ["lrn", "batch"])
def test_embeddings_have_length_one_and_segments_compose(name: str, norm: str) -> None:
    make, size = SIZES[name]
    model = make(norm=norm).double().eval()
    x = drawn(3, 3, *size)
    with torch.no_grad():
        expected = model(x)
        for _, segment in model.segments:
            x = segment(x)
    assert_close(x, expected)
    assert_close(expected.norm(dim=1), torch.ones(3, dtype=torch.float64))


@LIGHT
def test_a_new_network_tells_images_apart_and_learns_in_every_layer(name: str) -> None:
    make, size = SIZES[name]
    with torch.random.fork_rng():
        torch.manual_seed(0)
        model = make()
    out = model(drawn(2, 3, *size).float())
    assert (out[0] - out[1]).norm() > 0.02  # 0.06 and 0.12; 0.0006 and 0.009 if layers start as torch starts them
    out[:, 0].sum().backward()
    for key, weight in model.named_parameters():
        assert weight.grad is not None, key
        assert weight.grad.isfinite().all(), key
        assert weight.grad.abs().max() > 1e-6, key


@LIGHT
def test_a_black_image_has_finite_gradients(name: str) -> None:
    make, size = SIZES[name]
    model, x = make(), torch.zeros(1, 3, *size, requires_grad=True)
    out = model(x)
    assert (out == 0).all()  # all biases start at 0
    out.sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert all(weight.grad is not None and weight.grad.abs().max() < 1e3 for weight in model.parameters())


def plain_l2_pool(x: Tensor, stride: int) -> Tensor:
    """Window by window."""
    rows, columns = x.shape[2:]
    padded = nn.functional.pad(x, (1, 1, 1, 1))
    out = [
        [padded[:, :, i : i + 3, j : j + 3].flatten(2).norm(dim=2) for j in range(0, columns, stride)]
        for i in range(0, rows, stride)
    ]
    return torch.stack([torch.stack(row, dim=-1) for row in out], dim=-2)


@pytest.mark.parametrize("stride", [1, 2])
@pytest.mark.parametrize("size", [(1, 1), (5, 7), (6, 4)])
def test_l2_pooling_is_the_root_of_the_sum_of_squares(size: tuple[int, int], stride: int) -> None:
    x = drawn(2, 3, *size)
    assert_close(L2Pool(stride)(x), plain_l2_pool(x, stride))


@pytest.mark.parametrize("stride", [1, 2])
def test_l2_pooling_has_the_right_gradient(stride: int) -> None:
    x = drawn(1, 2, 5, 4).requires_grad_()
    assert torch.autograd.gradcheck(L2Pool(stride), x)


def test_the_gradient_of_l2_pooling_at_zero_is_the_shortest_subgradient() -> None:
    x = torch.zeros(1, 1, 7, 7, dtype=torch.float64)
    x[..., 5, 5] = 2.0
    x.requires_grad_()
    out = L2Pool()(x)
    assert out[..., :4, :].eq(0).all()
    out.sum().backward()
    expected = torch.zeros_like(x)
    expected[..., 5, 5] = 9.0  # 1 from each window that holds it
    assert x.grad is not None
    assert torch.equal(x.grad, expected)


@pytest.mark.parametrize("size", [1e-25, 1e-20, 1e-8])
def test_the_gradient_of_l2_pooling_near_zero_is_never_longer_than_one_for_each_window(size: float) -> None:
    x = torch.full((1, 1, 3, 3), size).requires_grad_()
    L2Pool()(x).sum().backward()
    assert x.grad is not None
    assert x.grad.isfinite().all()
    assert x.grad.abs().max() <= 9.0


def test_local_response_normalisation_has_openfaces_constants() -> None:
    norms = [module for module in nns2().modules() if isinstance(module, ResponseNorm)]
    assert len(norms) == 2
    x = 30 * drawn(2, 11, 3, 5)
    expected = torch.empty_like(x)
    for channel in range(11):
        window = x[:, max(channel - 2, 0) : channel + 3]
        expected[:, channel] = x[:, channel] / (1 + 1e-4 / 5 * window.square().sum(1)) ** 0.75
    for norm in norms:
        assert_close(norm(x), expected)
        assert_close(norm(x), nn.LocalResponseNorm(5, alpha=1e-4, beta=0.75, k=1.0)(x))


def test_the_gradient_of_local_response_normalisation() -> None:
    x = (30 * drawn(2, 7, 3, 2)).double().requires_grad_()
    assert torch.autograd.gradcheck(ResponseNorm(alpha=0.1), x)


def test_maxout_is_the_larger_of_two_linear_layers() -> None:
    layer, x = nn.Linear(5, 2 * 7).double(), drawn(3, 5)
    first, second = (x @ layer.weight[i::2].T + layer.bias[i::2] for i in range(2))
    assert_close(LargerOfTwo()(layer(x)), torch.maximum(first, second), atol=1e-12)  # sums of both signs


def test_unit_length_has_the_right_gradient() -> None:
    assert torch.autograd.gradcheck(UnitLength(), drawn(3, 5).requires_grad_())


@pytest.mark.parametrize("pool", ["max", "l2"])
def test_an_inception_block_is_its_branches_side_by_side(pool: Literal["max", "l2"]) -> None:
    block = Inception(5, Branches(2, 3, 7, 11, 13, pool, 17)).double()
    x = drawn(2, 5, 6, 4)
    pooled = plain_l2_pool(x, 1) if pool == "l2" else nn.functional.max_pool2d(x, 3, 1, 1)
    parts: list[Any] = [block.branches[name] for name in ("1x1", "3x3", "5x5", "pool")]
    one, three, five, last = parts
    expected = torch.cat([one(x), three[1](three[0](x)), five[1](five[0](x)), last[1](pooled)], dim=1)
    assert block.width == expected.shape[1] == 2 + 7 + 13 + 17
    assert_close(block(x), expected, atol=1e-12)  # sums of both signs
    assert [three[1][0].kernel_size, five[1][0].kernel_size] == [(3, 3), (5, 5)]


@pytest.mark.parametrize("pool", ["max", "l2"])
def test_a_block_with_a_stride_halves_the_image_and_passes_on_what_it_pools(pool: Literal["max", "l2"]) -> None:
    block = Inception(5, Branches(0, 3, 7, 11, 13, pool, 0, 2)).double()
    x = drawn(2, 5, 7, 4)
    out = block(x)
    assert out.shape == (2, 7 + 13 + 5, 4, 2)
    pooled = plain_l2_pool(x, 2) if pool == "l2" else nn.functional.max_pool2d(x, 3, 2, 1)
    assert_close(out[:, 7 + 13 :], pooled)


def misspelt(word: str) -> Any:
    return word


def seen(make: Callable[..., Network], *shape: int) -> Callable[[], object]:
    def call() -> object:
        with torch.device("meta"):
            return make()(torch.zeros(*shape))

    return call


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            seen(nn1, 2, 3, 224, 224),
            "nn1: x must have shape (B, 3, 220, 220); got (2, 3, 224, 224). Resize the images.",
        ),
        (seen(nn3, 2, 1, 160, 160), "nn3: x must have shape (B, 3, 160, 160); got (2, 1, 160, 160)."),
        (seen(nns2, 2, 3, 116, 140), "nns2: x must have shape (B, 3, 140, 116); got (2, 3, 116, 140)."),
        (seen(nn4, 3, 96, 96), "nn4: x must have shape (B, 3, 96, 96); got (3, 96, 96)."),
        (lambda: nn2(embedding_dim=0), "nn2: embedding_dim must be a whole number of at least 1; got 0."),
        (lambda: nns1(norm=misspelt("layer")), "nns1: norm must be one of 'lrn', 'batch'; got 'layer'."),
        (
            lambda: Inception(3, Branches(1, 0, 0, 0, 0, misspelt("mean"), 1)),
            "Inception: pool must be one of 'max', 'l2'",
        ),
        (lambda: Inception(3, Branches(1, 0, 0, 0, 0, None, 1)), "Inception: project must be 0 without a pool; got 1."),
        (
            lambda: Inception(3, Branches(1, 0, 5, 0, 0, "l2", 1)),
            "Inception: three_reduce must be 0 exactly where the width is, 5; got 0.",
        ),
        (
            lambda: Inception(3, Branches(1, 0, 0, 5, 0, "l2", 1)),
            "Inception: five_reduce must be 0 exactly where the width is, 0; got 5.",
        ),
        (
            lambda: Inception(3, Branches(7, 0, 0, 0, 0, "l2", 1, 2)),
            "Inception: one must be 0 where the stride is not 1; got 7.",
        ),
        (
            lambda: Inception(3, Branches(0, 0, 0, 0, 0, None, 0)),
            "Inception: branches must have at least one branch; got (0, 0, 0, 0, 0, None, 0, 1).",
        ),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
