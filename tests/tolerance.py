"""The one place that says how equal is equal."""

import torch
from torch import Tensor

RELATIVE = {torch.float64: 1e-9, torch.complex128: 1e-9, torch.float32: 1e-4, torch.complex64: 1e-4}
RMS_RATIO = {torch.bfloat16: 1e-2, torch.float16: 1e-2}


def assert_close(actual: Tensor, expected: Tensor, *, atol: float = 0.0) -> None:
    """Equal to the accuracy of actual's dtype; shape and NaN included.

    Float64 and float32 are compared entry by entry, |a - e| <= atol + rtol |e|. Half precision rounds each entry on its
    own, so there the root mean square of the difference is held against that of `expected`. `atol` is 0 unless the
    test argues for one: cancellation to a value near 0 is the usual argument.
    """
    assert actual.shape == expected.shape, f"shape {tuple(actual.shape)}, expected {tuple(expected.shape)}"
    if actual.dtype in RMS_RATIO:
        assert actual.isfinite().all(), "not finite"
        difference, size = _rms(actual.double() - expected.double()), _rms(expected.double())
        bound = atol + RMS_RATIO[actual.dtype] * size
        assert difference <= bound, f"RMS difference {difference:.3e} exceeds {bound:.3e}; RMS expected {size:.3e}"
    elif actual.dtype in RELATIVE:
        torch.testing.assert_close(
            actual, expected.to(actual.dtype), rtol=RELATIVE[actual.dtype], atol=atol, equal_nan=False
        )
    else:
        assert torch.equal(actual, expected), f"{actual} is not {expected}"


def _rms(x: Tensor) -> float:
    return x.square().mean().sqrt().item() if x.numel() else 0.0
