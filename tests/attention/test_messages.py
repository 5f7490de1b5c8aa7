"""Every refusal of attention, word by word: `where: name must rule; got value.` and, where it helps, the next step."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise.attention import (
    Elu,
    Exponential,
    Positive,
    Quadratic,
    argmax_attention,
    kernel_attention,
    linear_attention,
    softmax_attention,
)
from tests.attention.drawing import Inputs, Sizes, draw, seeded

pytestmark = pytest.mark.usefixtures("without_shape_checks")

Attend = Callable[..., Tensor]
EXACT: dict[str, Attend] = {
    "softmax_attention": softmax_attention,
    "argmax_attention": argmax_attention,
    "kernel_attention": partial(kernel_attention, kernel=Exponential()),
}
FORMS: dict[str, Attend] = {**EXACT, "linear_attention": partial(linear_attention, features=Elu())}
EVERY_FORM = pytest.mark.parametrize("where", FORMS)
EXACT_FORMS = pytest.mark.parametrize("where", EXACT)


def inputs() -> Inputs:
    """B, H, G, T, S, K, V = 2, 6, 3, 7, 11, 5, 13."""
    return draw(Sizes(), seeded(1), dtype=torch.float32)


def assert_refuses(message: str, attend: Attend, *tensors: Any, **options: Any) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        attend(*tensors, **options)


def ids(*runs: int) -> Tensor:
    """Two equal rows of 11 ids."""
    return torch.tensor([runs, runs])


WRONG_TENSORS: dict[str, tuple[Callable[[Tensor, Tensor, Tensor], tuple[Any, ...]], str]] = {
    "k as a list": (lambda q, k, v: (q, k.tolist(), v), "k must be a tensor; got list."),
    "q without batch": (
        lambda q, k, v: (q[0], k, v),
        "q must have 4 dimensions (batch, heads, positions, width); got (6, 7, 5).",
    ),
    "k with too many": (
        lambda q, k, v: (q, k[None], v),
        "k must have 4 dimensions (batch, heads, positions, width); got (1, 2, 3, 11, 5).",
    ),
    "v a vector": (
        lambda q, k, v: (q, k, v[0, 0, 0]),
        "v must have 4 dimensions (batch, heads, positions, width); got (13,).",
    ),
    "q a number": (
        lambda q, k, v: (torch.tensor(1.0), k, v),
        "q must have 4 dimensions (batch, heads, positions, width); got ().",
    ),
    "whole numbers": (lambda q, k, v: (q.long(), k, v), "q must be a floating point tensor; got torch.int64."),
    "complex": (
        lambda q, k, v: (q, k.to(torch.complex64), v),
        "k must be a floating point tensor; got torch.complex64.",
    ),
    "another dtype of k": (
        lambda q, k, v: (q, k.double(), v),
        "k must have the dtype of q, torch.float32; got torch.float64.",
    ),
    "another dtype of v": (
        lambda q, k, v: (q, k, v.bfloat16()),
        "v must have the dtype of q, torch.float32; got torch.bfloat16.",
    ),
    "another device": (lambda q, k, v: (q, k.to("meta"), v), "k must be on the device of q, cpu; got meta."),
    "another batch of k": (lambda q, k, v: (q, k[:1], v), "k must have the batch size of q, 2; got 1."),
    "another batch of v": (lambda q, k, v: (q, k, v[:1]), "v must have the batch size of q, 2; got 1."),
    "another width": (lambda q, k, v: (q, k[..., :3], v), "k must have the width of q, 5; got 3."),
    "other heads": (lambda q, k, v: (q, k, v[:, :1]), "v must have the heads of k, 3; got 1."),
    "other positions": (lambda q, k, v: (q, k, v[:, :, :7]), "v must have the positions of k, 11; got 7."),
    "heads that do not divide": (
        lambda q, k, v: (q[:, :5], k, v),
        "q must have a multiple of the 3 heads of k and v; got 5 heads.",
    ),
    "fewer query heads": (
        lambda q, k, v: (q[:, :1], k, v),
        "q must have a multiple of the 3 heads of k and v; got 1 heads.",
    ),
    "no heads": (
        lambda q, k, v: (q, k[:, :0], v[:, :0]),
        "q must have a multiple of the 0 heads of k and v; got 6 heads.",
    ),
}


@pytest.mark.slow
@EVERY_FORM
@pytest.mark.parametrize("wrong", WRONG_TENSORS)
@pytest.mark.parametrize("causal", [False, True])
def test_tensors_that_do_not_fit_are_refused(where: str, wrong: str, causal: bool) -> None:
    change, message = WRONG_TENSORS[wrong]
    assert_refuses(f"{where}: {message}", FORMS[where], *change(*inputs()), causal=causal)


WRONG_STRUCTURES: dict[str, tuple[dict[str, Any], str]] = {
    "ids and blocks": (
        {"sequence_ids": ids(*[0] * 11), "block_size": 2, "causal": True},
        "structure must be at most one of sequence_ids, prefix_lengths and block_size; "
        "got sequence_ids and block_size.",
    ),
    "ids and prefixes": (
        {"sequence_ids": ids(*[0] * 11), "prefix_lengths": torch.tensor([1, 2]), "causal": True},
        "structure must be at most one of sequence_ids, prefix_lengths and block_size; "
        "got sequence_ids and prefix_lengths.",
    ),
    "all three": (
        {"sequence_ids": ids(*[0] * 11), "prefix_lengths": torch.tensor([1, 2]), "block_size": 2, "causal": True},
        "structure must be at most one of sequence_ids, prefix_lengths and block_size; "
        "got sequence_ids and prefix_lengths and block_size.",
    ),
    "fractional ids": (
        {"sequence_ids": torch.zeros(2, 11)},
        "sequence_ids must be an integer tensor; got torch.float32.",
    ),
    "ids that are bool": (
        {"sequence_ids": torch.zeros(2, 11, dtype=torch.bool)},
        "sequence_ids must be an integer tensor; got torch.bool.",
    ),
    "ids of queries": (
        {"sequence_ids": torch.zeros(2, 7, dtype=torch.int64)},
        "sequence_ids must have shape (2, 11); got (2, 7).",
    ),
    "an id that comes back": (
        {"sequence_ids": ids(0, 0, 0, 1, 1, 0, 2, 2, 2, 2, 2)},
        "sequence_ids must give each sequence one unbroken run; got an id that comes back.",
    ),
    "fractional prefixes": (
        {"prefix_lengths": torch.tensor([1.0, 2.0]), "causal": True},
        "prefix_lengths must be an integer tensor; got torch.float32.",
    ),
    "prefixes of another batch": (
        {"prefix_lengths": torch.tensor([1, 2, 3]), "causal": True},
        "prefix_lengths must have shape (2,); got (3,).",
    ),
    "a prefix without causal": (
        {"prefix_lengths": torch.tensor([1, 2])},
        "prefix_lengths must come with causal=True; got causal=False.",
    ),
    "a prefix that is too long": (
        {"prefix_lengths": torch.tensor([1, 12]), "causal": True},
        "prefix_lengths must lie between 0 and S = 11; got tensor([ 1, 12]).",
    ),
    "a prefix below 0": (
        {"prefix_lengths": torch.tensor([-1, 2]), "causal": True},
        "prefix_lengths must lie between 0 and S = 11; got tensor([-1,  2]).",
    ),
    "blocks without causal": ({"block_size": 2}, "block_size must come with causal=True; got causal=False."),
    "blocks of 0": ({"block_size": 0, "causal": True}, "block_size must be a whole number of at least 1; got 0."),
    "blocks of 2.0": ({"block_size": 2.0, "causal": True}, "block_size must be a whole number of at least 1; got 2.0."),
    "blocks of True": (
        {"block_size": True, "causal": True},
        "block_size must be a whole number of at least 1; got True.",
    ),
}


@EVERY_FORM
@pytest.mark.parametrize("wrong", WRONG_STRUCTURES)
def test_structure_that_does_not_fit_is_refused(where: str, wrong: str) -> None:
    structure, message = WRONG_STRUCTURES[wrong]
    assert_refuses(f"{where}: {message}", FORMS[where], *inputs(), **structure)


@EVERY_FORM
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mask", torch.ones(2, 11, dtype=torch.bool)),
        ("sequence_ids", ids(*[0] * 11)),
        ("prefix_lengths", torch.tensor([1, 2])),
    ],
)
def test_structure_on_another_device_is_refused(where: str, name: str, value: Tensor) -> None:
    message = f"{where}: {name} must be on the device of q, cpu; got meta."
    assert_refuses(message, FORMS[where], *inputs(), causal=True, **{name: value.to("meta")})


@EVERY_FORM
@pytest.mark.parametrize("empty", ["q", "k"])
def test_empty_inputs_are_checked_like_others(where: str, empty: str) -> None:
    q, k, v = inputs()
    q, k, v = (q[:, :, :0], k, v) if empty == "q" else (q, k[:, :, :0], v[:, :, :0])
    message = f"{where}: block_size must come with causal=True; got causal=False."
    assert_refuses(message, FORMS[where], q, k, v, block_size=2)
    assert_refuses(f"{where}: k must have the width of q, 5; got 3.", FORMS[where], q, k[..., :3], v)


@EVERY_FORM
def test_queries_outside_a_pack_are_refused(where: str) -> None:
    q, k, v = inputs()
    message = f"{where}: q must have at most the 7 positions that sequence_ids describes; got 11."
    assert_refuses(
        message, FORMS[where], k.repeat(1, 2, 1, 1), q[:, :3], v[:, :, :7], sequence_ids=torch.zeros(2, 7).long()
    )


@EXACT_FORMS
@pytest.mark.parametrize("shape", [(2, 7), (7, 11), (11,), (2, 7, 11), (2, 5, 7, 11), (1, 11), (2, 1, 7, 7)])
def test_masks_of_other_shapes_are_refused_by_exact_forms(where: str, shape: tuple[int, ...]) -> None:
    message = (
        f"{where}: mask must have shape (B, S) = (2, 11), "
        f"or 4 dimensions that broadcast to (B, H, T, S) = (2, 6, 7, 11); got {shape}."
    )
    assert_refuses(message, EXACT[where], *inputs(), mask=torch.ones(shape, dtype=torch.bool))


@EXACT_FORMS
@pytest.mark.parametrize("dtype", [torch.float32, torch.int64, torch.uint8])
def test_masks_that_are_not_bool_are_refused_by_exact_forms(where: str, dtype: torch.dtype) -> None:
    message = f"{where}: mask must be bool, True where a query may attend; got {dtype}."
    assert_refuses(message, EXACT[where], *inputs(), mask=torch.ones(2, 11, dtype=dtype))


@pytest.mark.parametrize("shape", [(2, 6, 7, 11), (1, 1, 7, 11), (2, 1, 1, 11)])
def test_masks_of_pairs_are_refused_by_the_linear_form(shape: tuple[int, ...]) -> None:
    message = (
        f"linear_attention: mask must have shape (B, S) = (2, 11); got {shape}. "
        "A mask over pairs of query and key needs softmax_attention or kernel_attention."
    )
    assert_refuses(message, FORMS["linear_attention"], *inputs(), mask=torch.ones(shape, dtype=torch.bool))


@pytest.mark.parametrize("shape", [(2, 7), (7, 11), (11,), (2, 7, 11), (1, 11)])
def test_masks_of_other_shapes_are_refused_by_the_linear_form(shape: tuple[int, ...]) -> None:
    message = f"linear_attention: mask must have shape (B, S) = (2, 11); got {shape}."
    assert_refuses(message, FORMS["linear_attention"], *inputs(), mask=torch.ones(shape, dtype=torch.bool))


def test_masks_that_are_not_bool_are_refused_by_the_linear_form() -> None:
    message = "linear_attention: mask must be bool, True where a key may be seen; got torch.float32."
    assert_refuses(message, FORMS["linear_attention"], *inputs(), mask=torch.ones(2, 11))


@EVERY_FORM
def test_masks_that_are_no_tensors_are_refused(where: str) -> None:
    assert_refuses(f"{where}: mask must be a tensor; got list.", FORMS[where], *inputs(), mask=[True])


@pytest.mark.parametrize("dropout", [-0.1, 1.0, 1.5])
def test_a_dropout_that_is_no_share_is_refused(dropout: float) -> None:
    message = f"softmax_attention: dropout must be at least 0 and below 1; got {dropout}."
    assert_refuses(message, softmax_attention, *inputs(), dropout=dropout)


@pytest.mark.parametrize("scale", [0.0, -1.0])
def test_a_scale_that_is_not_positive_is_refused(scale: float) -> None:
    message = f"softmax_attention: scale must be a positive number; got {scale}."
    assert_refuses(message, softmax_attention, *inputs(), scale=scale)


@pytest.mark.parametrize("chunk_size", [0, -1, 2.0, True])
def test_a_chunk_that_is_no_count_is_refused(chunk_size: Any) -> None:
    message = f"linear_attention: chunk_size must be a whole number of at least 1; got {chunk_size!r}."
    assert_refuses(message, FORMS["linear_attention"], *inputs(), chunk_size=chunk_size)


@pytest.mark.parametrize("features", [None, "elu", torch.nn.Identity()])
def test_what_is_no_feature_map_is_refused(features: Any) -> None:
    message = f"linear_attention: features must be a feature map; got {features!r}. For example features=Elu()."
    assert_refuses(message, linear_attention, *inputs(), features=features)


def test_a_map_made_for_other_heads_is_refused() -> None:
    features = Positive(5, num_features=7, kv_heads=2, generator=seeded(2))
    message = "linear_attention: features must have kv_heads 1 or that of k, 3; got 2."
    assert_refuses(message, linear_attention, *inputs(), features=features)


def test_a_map_made_for_another_width_is_refused() -> None:
    message = "linear_attention: features must have key_dim = 5, the width of k; got 3."
    assert_refuses(message, linear_attention, *inputs(), features=Quadratic(3))


def test_the_linear_form_has_no_dropout() -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'dropout'"):
        FORMS["linear_attention"](*inputs(), dropout=0.1)


def test_the_exact_forms_have_no_default_kernel() -> None:
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'kernel'"):
        kernel_attention(*inputs())  # ty: ignore[missing-argument]
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'features'"):
        linear_attention(*inputs())  # ty: ignore[missing-argument]
