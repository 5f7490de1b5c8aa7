"""One decode step after few and after many tokens: from the prefix state, and from the cache of all keys and values."""

import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import torch
from torch import Tensor

from benchmarks.attention_forms import ELU, POSITIVE, expected_rows, feature_map, induced, relative_error, softmax
from benchmarks.attention_problem import CAUSAL, HEADS, WIDTH, Attend, inputs
from benchmarks.harness.measurement import Measurement
from likewise.attention import KeyValueCache, LinearState, softmax_attention

CACHE = "KeyValueCache + softmax"
WARM = 5  # steps that are not counted: the first makes the cache grow

Step = Callable[[], Tensor]  # decodes one more token


def decode(contexts: list[int], repeats: int, exact_repeats: int) -> Iterator[Measurement]:
    """Times of a step of every form after each number of tokens, in turns."""
    for name in (ELU, POSITIVE):
        yield from _in_turns(name, {context: _linear_steps(name, context) for context in contexts}, repeats)
    # Apart from the others: a cache of 100,000 tokens throws everything else out of the processor's.
    yield from _in_turns(CACHE, {context: _exact_steps(context) for context in contexts}, exact_repeats)


def step_error(name: str, context: int) -> float:
    """|out - reference| / |reference| of the first step after so many tokens."""
    if name == CACHE:
        return _error(softmax(True), _exact_steps(context)(), context + 1)
    return _error(induced(name)(True), _linear_steps(name, context)(), context + 1)


def _error(attend: Attend, out: Tensor, length: int) -> float:
    return relative_error((out,), expected_rows(attend, inputs(length), CAUSAL, rows=1))


def _linear_steps(name: str, context: int) -> Step:
    (q, k, v), new = _context_and_token(context)
    state = LinearState.empty(feature_map(name), batch=1, kv_heads=HEADS, value_dim=WIDTH)
    _, state = state.prefill(q, k, v)

    def step() -> Tensor:
        nonlocal state
        out, state = state.step(*new)
        return out

    return step


def _exact_steps(context: int) -> Step:
    (_, k, v), (new_q, new_k, new_v) = _context_and_token(context)
    cache = KeyValueCache.empty().append(k, v)

    def step() -> Tensor:
        nonlocal cache
        cache = cache.append(new_k, new_v)
        return softmax_attention(new_q, cache.keys, cache.values)

    return step


def _context_and_token(context: int) -> tuple[tuple[Tensor, ...], tuple[Tensor, ...]]:
    tensors = inputs(context + 1)[:3]
    return tuple(x[:, :, :-1] for x in tensors), tuple(x[:, :, -1:] for x in tensors)


def _in_turns(name: str, steps: dict[int, Step], repeats: int) -> list[Measurement]:
    measured = {context: Measurement(name, context, ()) for context in steps}
    with torch.inference_mode():
        for turn in range(WARM + repeats):
            for context, step in steps.items():
                started = time.perf_counter()
                step()
                spent = time.perf_counter() - started
                if turn >= WARM:
                    old = measured[context]
                    measured[context] = replace(old, seconds=(*old.seconds, spent))
    return list(measured.values())
