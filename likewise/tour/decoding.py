"""What one more token costs after a long context: a linear state beside a key-value cache."""

import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import Generator, Tensor

from likewise.attention import (
    Elu,
    Exponential,
    FeatureMap,
    KeyValueCache,
    LinearState,
    Positive,
    kernel_attention,
    softmax_attention,
)
from likewise.attention.kernels import Induced, SimilarityKernel
from likewise.progress import Progress, silent
from likewise.tour.agreement import residual
from likewise.tour.measuring import one_thread

CONTEXTS = (256, 512, 1024, 2048, 4096, 8192, 16384, 32768)
HEADS, WIDTH, FEATURES = 8, 64, 256
CACHE, ELU, POSITIVE = "softmax, key-value cache", f"Elu state, F = {WIDTH}", f"Positive state, F = {FEATURES}"
PIECE = 4096  # positions drawn and prefilled at a time
TOLERANCE = 1e-4  # of float32
FEWEST, ENOUGH = 4, 0.3  # steps taken after every context, and seconds after which no more are
Memory = KeyValueCache | LinearState


@dataclass(frozen=True)
class DecodingForm:
    """A way to decode: what it starts from, how positions are added to it unseen, and a step that also answers."""

    name: str
    kernel: SimilarityKernel
    empty: Memory
    grow: Callable[[Any, Tensor, Tensor, Tensor], Memory]
    step: Callable[[Any, Tensor, Tensor, Tensor], tuple[Tensor, Memory]]


@dataclass(frozen=True)
class Step:
    """One form after one context: the least time of a step, and the memory held between steps."""

    context: int
    seconds: float
    held_bytes: int


@dataclass(frozen=True)
class Decoder:
    """One form after all contexts; none when its output was wrong."""

    name: str
    error: float  # of a step's output against float64 brute force, after the shortest context
    steps: tuple[Step, ...]

    @property
    def right(self) -> bool:
        """Whether its output was right, without which its speed means nothing."""
        return self.error <= TOLERANCE

    @property
    def growth(self) -> float:
        """How many times longer a step takes after the longest context than after the shortest."""
        return self.steps[-1].seconds / self.steps[0].seconds


@dataclass(frozen=True)
class Decoding:
    """All forms; the first is the key-value cache."""

    decoders: tuple[Decoder, ...]
    heads: int
    width: int
    seed: int

    def break_even(self, name: str) -> float | None:
        """The context from which on a form holds less memory than a key-value cache, which grows by the position."""
        cache, other = self.decoders[0], next(decoder for decoder in self.decoders if decoder.name == name)
        if not cache.steps or not other.steps:
            return None
        return other.steps[-1].held_bytes / (cache.steps[-1].held_bytes / cache.steps[-1].context)


def measure_decoding(
    *,
    contexts: tuple[int, ...] = CONTEXTS,
    forms: tuple[DecodingForm, ...] | None = None,
    repeats: int = 20,
    seed: int = 0,
    progress: Progress = silent,
) -> Decoding:
    """Grow one context through all the given lengths, and time up to `repeats` steps after each: B = 1, float32.

    Every form's first step is compared with float64 brute force over all keys; a form that is wrong is not timed.
    """
    forms = decoding_forms(seed) if forms is None else forms
    decoders = []
    with torch.inference_mode():
        for number, form in enumerate(forms):
            error = _error(form, contexts[0], seed)
            steps = []
            for step in _steps(form, contexts, repeats, seed) if error <= TOLERANCE else ():
                steps.append(step)
                progress((number + len(steps) / len(contexts)) / len(forms), f"decoding, {form.name}")
            decoders.append(Decoder(form.name, error, tuple(steps)))
    progress(1.0, "decoding")
    return Decoding(tuple(decoders), HEADS, WIDTH, seed)


def decoding_forms(seed: int) -> tuple[DecodingForm, ...]:
    """Softmax attention over all keys and values so far, then the linear states of two maps."""
    positive = Positive(WIDTH, num_features=FEATURES, generator=Generator().manual_seed(seed))
    return (
        DecodingForm(
            CACHE, Exponential(), KeyValueCache.empty(), lambda cache, q, k, v: cache.append(k, v), _cached_step
        ),
        _state_form(ELU, Elu(), Elu().kernel),
        _state_form(POSITIVE, positive, Induced(positive.queries, positive.keys)),
    )


def _cached_step(cache: KeyValueCache, q: Tensor, k: Tensor, v: Tensor) -> tuple[Tensor, KeyValueCache]:
    """The newest query sees every key: no mask, so PyTorch's attention reads the cache where it lies."""
    cache = cache.append(k, v)
    return softmax_attention(q, cache.keys, cache.values), cache


def _state_form(name: str, features: FeatureMap, kernel: SimilarityKernel) -> DecodingForm:
    empty = LinearState.empty(features, kv_heads=HEADS, value_dim=WIDTH)
    return DecodingForm(name, kernel, empty, lambda state, q, k, v: state.prefill(q, k, v)[1], LinearState.step)


def _steps(form: DecodingForm, contexts: tuple[int, ...], repeats: int, seed: int) -> Iterator[Step]:
    """Grow the context in pieces, and after each of the lengths take some steps, which belong to it from then on."""
    generator = Generator().manual_seed(seed)
    memory = form.empty
    for context in contexts:
        with one_thread():  # not timed, and one thread does not mind other work on the machine
            while memory.length < context:
                memory = form.grow(memory, *_draw(min(PIECE, context - memory.length), generator))
        held, times = memory.nbytes, []
        while len(times) < repeats and (len(times) < FEWEST or sum(times) < ENOUGH):
            qkv = _draw(1, generator)
            with one_thread() if len(times) % 2 else nullcontext():  # small steps are often faster on one
                started = time.perf_counter()
                _, memory = form.step(memory, *qkv)
                times.append(time.perf_counter() - started)
        yield Step(context, min(times), held)


def _error(form: DecodingForm, context: int, seed: int) -> float:
    """How far a step after the context is from float64 brute force."""
    generator = Generator().manual_seed(seed)
    before, now = _draw(context, generator), _draw(1, generator)
    out, _ = form.step(form.grow(form.empty, *before), *now)
    k, v = (torch.cat(parts, dim=2).double() for parts in zip(before[1:], now[1:], strict=True))
    return residual(out, kernel_attention(now[0].double(), k, v, kernel=form.kernel))


def _draw(length: int, generator: Generator) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.randn(3, 1, HEADS, length, WIDTH, generator=generator)
    return q, k, v
