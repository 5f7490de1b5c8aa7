"""Time and memory of causal attention against its length, the linear forms beside PyTorch's own softmax attention."""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import torch
from torch import Generator, Tensor

from likewise.attention import Elu, Exponential, Positive, kernel_attention, linear_attention, softmax_attention
from likewise.attention.kernels import Induced, SimilarityKernel
from likewise.progress import Progress, silent
from likewise.tour.agreement import residual
from likewise.tour.measuring import best_seconds, one_thread, peak_bytes

LENGTHS = (256, 512, 1024, 2048, 4096, 8192, 16384)
HEADS, WIDTH, FEATURES = 8, 64, 256
SDPA, PLAIN, ELU, POSITIVE = "PyTorch SDPA", "plain softmax", f"Elu, F = {WIDTH}", f"Positive, F = {FEATURES}"
PLAIN_LONGEST = 2048  # the plain form keeps T x T weights for every head: half a gigabyte at twice this length
TOLERANCE = 1e-4  # of float32
SLOW = 2.0  # seconds from which on a call is timed once


@dataclass(frozen=True)
class AttentionForm:
    """A way to attend, the kernel that it claims to attend with, and the length beyond which it is not tried."""

    name: str
    attend: Callable[[Tensor, Tensor, Tensor], Tensor]
    kernel: SimilarityKernel
    longest: float = math.inf


@dataclass(frozen=True)
class Sample:
    """One form at one length: the least time, and the memory its tensors need beyond q, k and v."""

    length: int
    seconds: float
    extra_bytes: int


@dataclass(frozen=True)
class Line:
    """One form at all its lengths; none when its output was wrong."""

    name: str
    error: float  # of its output against float64 brute force, at the shortest length
    samples: tuple[Sample, ...]

    @property
    def right(self) -> bool:
        """Whether its output was right, without which its speed means nothing."""
        return self.error <= TOLERANCE

    def at(self, length: int) -> Sample | None:
        """The sample of one length, where there is one."""
        return next((sample for sample in self.samples if sample.length == length), None)


@dataclass(frozen=True)
class Scaling:
    """All forms; the first is the one that the others are held against."""

    lines: tuple[Line, ...]
    heads: int
    width: int
    seed: int

    @property
    def lengths(self) -> tuple[int, ...]:
        """All lengths at which anything was measured."""
        return tuple(sorted({sample.length for line in self.lines for sample in line.samples}))

    def shared(self, *names: str) -> int:
        """The longest length at which the first form and these were all measured; 0 when there is none."""
        lines = [self.lines[0], *(line for line in self.lines if line.name in names)]
        return max((length for length in self.lengths if all(line.at(length) for line in lines)), default=0)

    def input_bytes(self, length: int) -> int:
        """The memory of q, k and v."""
        return 3 * self.heads * length * self.width * torch.float32.itemsize

    def speedup(self, name: str) -> float | None:
        """How many times faster than the first form a form is, at the longest length of both."""
        [line] = [line for line in self.lines if line.name == name]
        first, other = self.lines[0].at(self.shared(name)), line.at(self.shared(name))
        return None if first is None or other is None else first.seconds / other.seconds

    def break_even(self, name: str) -> float | None:
        """The length from which on a form is faster than the first; 0 when it always was, None when it never is."""
        [line] = [line for line in self.lines if line.name == name]
        pairs = [(s.length, first.seconds / s.seconds) for s in line.samples if (first := self.lines[0].at(s.length))]
        return crossing(pairs)


def crossing(ratios: list[tuple[int, float]]) -> float | None:
    """Where a ratio rises above 1 for good, interpolated between logarithms; 0 if it always is, None if it ends below.

    >>> crossing([(256, 0.5), (1024, 2.0), (4096, 8.0)])
    512.0
    """
    if not ratios or ratios[-1][1] <= 1:
        return None
    below = [number for number, (_, ratio) in enumerate(ratios) if ratio <= 1]
    if not below:
        return 0.0
    (short, low), (long, high) = ratios[below[-1]], ratios[below[-1] + 1]
    share = -math.log(low) / (math.log(high) - math.log(low))
    return float(f"{short * (long / short) ** share:.6g}")


def measure_scaling(
    *,
    lengths: tuple[int, ...] = LENGTHS,
    forms: tuple[AttentionForm, ...] | None = None,
    allowance: float = 16.0,
    seed: int = 0,
    progress: Progress = silent,
) -> Scaling:
    """Measure causal forms, B = 1, float32, each after a check of its output; a form with a wrong output is not timed.

    forms: those of this module unless given. allowance: about the seconds to spend. A form is left out from the length
    on at which it would exceed them, on the assumption that twice the length takes four times as long.
    """
    progress(0.0, "time and memory")
    peak_bytes(lambda: torch.zeros(1))  # the first time, this loads a good part of torch
    started = time.perf_counter()
    forms = causal_forms(seed) if forms is None else forms
    errors = {form.name: _error(form, lengths[0], seed) for form in forms}
    samples: dict[str, list[Sample]] = {form.name: [] for form in forms}
    running = [form for form in forms if errors[form.name] <= TOLERANCE]
    for number, length in enumerate(lengths):
        qkv = _draw(length, seed)
        for form in list(running):
            progress(sum(lengths[:number]) / sum(lengths), f"time and memory of {form.name}, T = {length}")
            before = samples[form.name][-1] if samples[form.name] else None
            samples[form.name].append(_sample(form, qkv, before))
            left = allowance - (time.perf_counter() - started)
            if 4 * samples[form.name][-1].seconds > left or 2 * length > form.longest:
                running.remove(form)
    progress(1.0, "time and memory")
    lines = tuple(Line(form.name, errors[form.name], tuple(samples[form.name])) for form in forms)
    return Scaling(lines, HEADS, WIDTH, seed)


def causal_forms(seed: int) -> tuple[AttentionForm, ...]:
    """PyTorch's fused softmax attention first, then the plain one, then the linear forms of two maps."""
    positive = Positive(WIDTH, num_features=FEATURES, generator=Generator().manual_seed(seed))
    return (
        AttentionForm(SDPA, partial(softmax_attention, causal=True), Exponential()),
        AttentionForm(
            PLAIN, partial(kernel_attention, kernel=Exponential(), causal=True), Exponential(), PLAIN_LONGEST
        ),
        AttentionForm(ELU, partial(linear_attention, features=Elu(), causal=True), Elu().kernel),
        AttentionForm(
            POSITIVE,
            partial(linear_attention, features=positive, causal=True),
            Induced(positive.queries, positive.keys),
        ),
    )


def _draw(length: int, seed: int) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.randn(3, 1, HEADS, length, WIDTH, generator=Generator().manual_seed(seed))
    return q, k, v


def _error(form: AttentionForm, length: int, seed: int) -> float:
    """How far the output is from float64 brute force."""
    q, k, v = _draw(length, seed)
    expected = kernel_attention(q.double(), k.double(), v.double(), kernel=form.kernel, causal=True)
    return residual(form.attend(q, k, v), expected)


def _sample(form: AttentionForm, qkv: tuple[Tensor, Tensor, Tensor], before: Sample | None) -> Sample:
    """One length, after a shorter one. No form here grows faster than the square of the length; a time that does is one
    of a disturbed machine, on which threads wait for each other, and is taken again on one thread. So is the first.
    """
    length = qkv[0].shape[2]
    expected = 0.0 if before is None else 1.5 * before.seconds * (length / before.length) ** 2
    with torch.inference_mode():
        started = time.perf_counter()
        extra = peak_bytes(lambda: form.attend(*qkv))
        counted = time.perf_counter() - started
        # Counting slows down; but a call that takes long enough does not notice, and need not be waited for again.
        seconds = counted if counted > SLOW else best_seconds(lambda: form.attend(*qkv))
        if seconds > expected:
            with one_thread():
                seconds = min(seconds, best_seconds(lambda: form.attend(*qkv), fewest=1))
    return Sample(length, seconds, extra)
