"""What a state does not take, and what it says."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from likewise.attention import Elu, LinearState, Positive
from likewise.attention.random_features import RandomFeatures
from tests.attention import brute
from tests.attention.drawing import seeded
from tests.attention.states import SIZES, after, at, make, sequence, start

without_shape_checks = pytest.mark.usefixtures("without_shape_checks")


def test_a_file_made_with_another_projection_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "state"
    after(start(make("Positive")), sequence()).save(path)
    for other in (make("Positive", seed=2), make("Positive, scaled"), make("Hyperbolic"), Elu()):
        made, got = make("Positive").projection_id, other.projection_id
        message = f"LinearState.load: the projection must be {made}, with which the state was made; got {got}."
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            LinearState.load(path, other)


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    for path in (tmp_path / "nothing", tmp_path):
        message = f"LinearState.load: path must be a file; got {path}."
        with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
            LinearState.load(path, Elu())


@pytest.mark.parametrize("content", [b"", b"not a state", bytes(range(256))], ids=["empty", "text", "binary"])
def test_a_file_of_garbage_is_refused(content: bytes, tmp_path: Path) -> None:
    path = tmp_path / "state"
    path.write_bytes(content)
    message = f"LinearState.load: path must be a safetensors file; got {path} ("
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        LinearState.load(path, Elu())


@pytest.mark.parametrize("metadata", [None, {"format": "pt"}], ids=["no format", "another format"])
def test_a_file_of_something_else_is_refused(metadata: dict[str, str] | None, tmp_path: Path) -> None:
    path = tmp_path / "state"
    save_file({"weight": torch.ones(2)}, path, metadata)
    got = None if metadata is None else metadata["format"]
    message = f"LinearState.load: path must hold a likewise.LinearState/2; got {got}."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LinearState.load(path, Elu())


@pytest.mark.parametrize("lost", ["projection_id", "length", "facts", "folded.sums", "recent.keys"])
def test_a_file_that_lost_a_part_is_refused(lost: str, tmp_path: Path) -> None:
    path = tmp_path / "state"
    after(start(make("Positive"), 2), sequence()).save(path)
    with safe_open(path, framework="pt") as file:
        metadata = {name: value for name, value in file.metadata().items() if name != lost}
        tensors = {name: file.get_tensor(name) for name in file.keys() if name != lost}  # noqa: SIM118
    save_file(tensors, path, metadata)
    message = f"LinearState.load: path must hold all parts of a state; got {path} (KeyError('{lost}'))."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        LinearState.load(path, make("Positive"))


@pytest.mark.parametrize("name", [name for name in brute.MAPS if isinstance(make(name), RandomFeatures)])
def test_a_redrawn_map_cannot_continue_a_state(name: str) -> None:
    features = make(name)
    assert isinstance(features, RandomFeatures)
    state, old = after(start(features, 2), sequence()), features.projection_id
    features.redraw(seeded(9))
    with pytest.raises(ValueError, match=r"^LinearState\.merge: the projection must be "):
        state.merge(after(start(features, 2), sequence()))
    message = f"the projection must be {old}, with which the state was made; got {features.projection_id}."
    uses: dict[str, Callable[[], object]] = {
        "prefill": lambda: state.prefill(*sequence()),
        "merge": lambda: state.merge(state),
    }
    for where, use in uses.items():
        with pytest.raises(ValueError, match=f"^{re.escape(f'LinearState.{where}: {message}')}$"):
            use()


STATES: dict[str, dict[str, Any]] = {
    "features must be a feature map; got 'elu'. For example Elu().": {"features": "elu"},
    "batch must be a whole number of at least 0; got -1.": {"batch": -1},
    "kv_heads must be a whole number of at least 1; got 0.": {"kv_heads": 0},
    "value_dim must be a whole number of at least 0; got 2.0.": {"value_dim": 2.0},
    "lag must be a whole number of at least 0; got True.": {"lag": True},
    "exact_within must be a whole number of at least 1; got 0.": {"exact_within": 0},
    "features must have kv_heads 1 or 2; got 3.": {"kv_heads": 2, "features": make("Positive")},
}


@without_shape_checks
@pytest.mark.parametrize(("message", "wrong"), STATES.items())
def test_a_state_that_cannot_be_is_refused(message: str, wrong: dict[str, Any]) -> None:
    options: dict[str, Any] = {"features": Elu(), "kv_heads": 3, "value_dim": 5} | wrong
    with pytest.raises(ValueError, match=f"^LinearState.empty: {re.escape(message)}$"):
        LinearState.empty(options.pop("features"), **options)


def wrong_inputs() -> dict[str, tuple[list[Tensor], Tensor | None]]:
    """By message, what does not fit a state of SIZES with float64 sums: q, k, v and a mask."""
    q, k, v = sequence(4)
    seen, fit = torch.ones(SIZES.B, 4, dtype=torch.bool), "k and v must have the state's (batch, kv_heads, value_dim)"
    return {
        "q must have 4 dimensions (batch, heads, positions, width); got (15, 4, 7).": ([q[0], k, v], None),
        "q must be a floating point tensor; got torch.int64.": ([q.long(), k, v], None),
        "k must have the dtype of q, torch.float64; got torch.float32.": ([q, k.float(), v], None),
        "k must be of a dtype summed in the state's torch.float64; got torch.float32.": (
            [q.float(), k.float(), v.float()],
            None,
        ),
        "k must be of a dtype summed in the state's torch.float64; got torch.bfloat16.": (
            [q.bfloat16(), k.bfloat16(), v.bfloat16()],
            None,
        ),
        "k must have the positions of q, 4; got 3.": ([q, k[:, :, 1:], v[:, :, 1:]], None),
        "k must have the width of q, 7; got 6.": ([q, k[..., 1:], v], None),
        "v must have the heads of k, 3; got 2.": ([q, k, v[:, 1:]], None),
        "q must have a multiple of the 3 heads of k and v; got 7 heads.": ([q[:, :7], k, v], None),
        f"{fit} (2, 3, 11); got (2, 3, 5).": ([q, k, v[..., :5]], None),
        f"{fit} (2, 3, 11); got (1, 3, 11).": ([q[:1], k[:1], v[:1]], None),
        f"{fit} (2, 3, 11); got (2, 1, 11).": ([q, k[:, :1], v[:, :1]], None),
        "mask must have shape (B, S) = (2, 4); got (2, 3).": ([q, k, v], seen[:, 1:]),
        "mask must be bool, True where a key may be seen; got torch.int32.": ([q, k, v], seen.int()),
        "mask must have shape (B, S) = (2, 4); got (2, 1, 1, 4). "
        "A mask over pairs of query and key needs softmax_attention or kernel_attention.": (
            [q, k, v],
            seen[:, None, None],
        ),
    }


@without_shape_checks
@pytest.mark.parametrize("message", wrong_inputs())
def test_inputs_that_do_not_fit_the_state_are_refused(message: str) -> None:
    inputs, mask = wrong_inputs()[message]
    state = after(start(Elu()), sequence())
    with pytest.raises(ValueError, match=f"^LinearState.prefill: {re.escape(message)}$"):
        state.prefill(inputs[0], inputs[1], inputs[2], mask=mask)


def wrong_uses() -> dict[str, Callable[[LinearState], object]]:
    """By message, what cannot be done with a state of SIZES and lag 5 that has seen 13 positions."""
    narrow = Positive(5, num_features=11, generator=seeded(0))
    shape = "(batch, kv_heads, value_dim, lag, exact_within)"
    return {
        "LinearState.step: q must have one position; got (2, 15, 13, 7). Use prefill for more.": (
            lambda state: state.step(*sequence())
        ),
        "LinearState.step: q must have one position; got (2, 15, 0, 7). Use prefill for more.": (
            lambda state: state.step(*at(sequence(), 0, 0))
        ),
        "LinearState.prefill: features must have key_dim = 7, the width of k; got 5.": (
            lambda state: start(narrow).prefill(*sequence())
        ),
        "LinearState.rollback: positions must be a whole number of at least 0; got -1.": (
            lambda state: state.rollback(-1)
        ),
        "LinearState.rollback: positions must be at most 3, the positions still kept; got 4. "
        "The state was made with lag=5; keep a snapshot to go further back.": (
            lambda state: state.rollback(2).rollback(4)
        ),
        "LinearState.fork: copies must be a whole number of at least 1; got 0.": lambda state: state.fork(0),
        f"LinearState.merge: after must have {shape} (2, 3, 11, 5, None); got (2, 3, 11, 4, None).": (
            lambda state: state.merge(start(make("Positive"), 4))
        ),
        f"LinearState.merge: after must have {shape} (2, 3, 11, 5, None); got (6, 3, 11, 5, None).": (
            lambda state: state.merge(state.fork(3))
        ),
    }


@without_shape_checks
def test_only_states_merge() -> None:
    with pytest.raises(ValueError, match=r"^LinearState\.merge: after must be a LinearState; got 3\.$"):
        start(Elu(), 2).merge(3)  # ty: ignore[invalid-argument-type]


def test_states_of_different_dtypes_do_not_merge() -> None:
    for lag in (0, 2):
        states = [after(start(Elu(), lag), sequence(dtype=dtype)) for dtype in (torch.float64, torch.float32)]
        for one, other in (states, states[::-1]):
            with pytest.raises(ValueError, match=r"^LinearState\.merge: after must .*dtype"):
                one.merge(other)


@without_shape_checks
@pytest.mark.parametrize("message", wrong_uses())
def test_what_a_state_cannot_do_is_refused(message: str) -> None:
    use = wrong_uses()[message]
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        use(after(start(make("Positive"), 5), sequence()))
