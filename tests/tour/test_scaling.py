"""Time and memory: what is measured, when it is refused, and what is made of it."""

import time
from contextlib import suppress
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from likewise.progress import part
from likewise.tour import decoding, scaling
from likewise.tour.decoding import Decoder, Decoding, Step, decoding_forms, measure_decoding
from likewise.tour.measuring import best_seconds, one_thread, peak_bytes
from likewise.tour.scaling import Line, Sample, Scaling, causal_forms, crossing, measure_scaling

LENGTHS = (32, 64)


def line(name: str, *seconds: float) -> Line:
    lengths = [256 * 2**i for i in range(len(seconds))]
    return Line(name, 0.0, tuple(Sample(t, s, 1) for t, s in zip(lengths, seconds, strict=True)))


def test_peak_counts_what_lives_at_the_same_time() -> None:
    def one_after_the_other() -> Tensor:
        for _ in range(5):
            x = torch.ones(1000)
        return x

    x = torch.ones(1000)
    assert peak_bytes(one_after_the_other) == 2 * 4000  # the new one is made before the old one is dropped
    assert peak_bytes(lambda: [torch.ones(1000) for _ in range(5)]) == 5 * 4000
    assert peak_bytes(lambda: x.view(10, 100).mT[1:]) == 0
    assert peak_bytes(lambda: x.add_(1)) == 0
    assert peak_bytes(lambda: x + 1) == 4000


def test_best_seconds_is_the_least() -> None:
    pauses = iter([0.4, 0.01, 0.4])  # far apart: a busy machine prolongs them
    assert 0.01 <= best_seconds(lambda: time.sleep(next(pauses)), allowance=10.0, most=3) < 0.4


def test_a_slow_call_is_not_repeated_often() -> None:
    calls: list[float] = []
    assert best_seconds(lambda: (calls.append(0.0), time.sleep(0.02)), allowance=0.01, fewest=2) >= 0.02
    assert len(calls) == 2


def test_progress_of_a_part() -> None:
    seen: list[tuple[float, str]] = []
    inner = part(lambda done, doing: seen.append((done, doing)), 0.2, 0.6)
    for done in (0.0, 0.5, 1.0):
        inner(done, "x")
    assert seen == [(0.2, "x"), (pytest.approx(0.4), "x"), (pytest.approx(0.6), "x")]


def test_one_thread_gives_the_others_back_even_after_an_error() -> None:
    before, inside = torch.get_num_threads(), []
    with suppress(KeyboardInterrupt), one_thread():
        inside.append(torch.get_num_threads())
        raise KeyboardInterrupt
    assert inside == [1]
    assert torch.get_num_threads() == before


def test_every_form_is_right_and_measured() -> None:
    seen: list[float] = []
    result = measure_scaling(lengths=LENGTHS, progress=lambda done, doing: seen.append(done))
    assert seen == sorted(seen)
    assert seen[-1] == 1.0
    assert [len(form.samples) for form in result.lines] == [2] * 4
    assert all(form.right and sample.seconds > 0 for form in result.lines for sample in form.samples)
    assert result.lengths == LENGTHS
    assert result.shared(*(form.name for form in result.lines)) == 64
    sdpa, plain, *_ = result.lines
    output = scaling.HEADS * 64 * scaling.WIDTH * 4
    assert output <= sdpa.samples[-1].extra_bytes < 1.1 * output
    assert plain.samples[-1].extra_bytes > sdpa.samples[-1].extra_bytes


def test_a_form_with_a_wrong_output_is_not_timed() -> None:
    sdpa, _, elu, _ = causal_forms(0)
    leaky = replace(elu, attend=lambda q, k, v: elu.attend(q, k, v.roll(-1, dims=2)))
    result = measure_scaling(lengths=LENGTHS, forms=(sdpa, leaky))
    assert [form.right for form in result.lines] == [True, False]
    assert result.lines[1].samples == ()
    assert result.speedup(leaky.name) is None
    assert result.break_even(leaky.name) is None


def test_a_time_that_cannot_be_is_taken_again_on_one_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scaling, "peak_bytes", lambda call: 1)
    monkeypatch.setattr(scaling, "best_seconds", lambda call, fewest=2: 1.0 if torch.get_num_threads() == 1 else 5.0)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    monkeypatch.setattr(torch, "set_num_threads", lambda n: monkeypatch.setattr(torch, "get_num_threads", lambda: n))
    sdpa, *_ = causal_forms(0)
    q, k, v = torch.randn(3, 1, 2, 64, 5, generator=torch.Generator().manual_seed(0))
    assert scaling._sample(sdpa, (q, k, v), Sample(32, 1.0, 1)).seconds == 5.0  # within 1.5 times the square
    assert scaling._sample(sdpa, (q, k, v), Sample(32, 0.5, 1)).seconds == 1.0
    assert torch.get_num_threads() == 2


def test_a_form_stops_when_its_time_is_up() -> None:
    result = measure_scaling(lengths=LENGTHS, allowance=0.0)
    assert [len(form.samples) for form in result.lines] == [1] * 4


def test_a_form_stops_at_its_longest() -> None:
    sdpa, plain, *_ = causal_forms(0)
    result = measure_scaling(lengths=LENGTHS, forms=(sdpa, replace(plain, longest=32)))
    assert [len(form.samples) for form in result.lines] == [2, 1]


@pytest.mark.parametrize(
    ("ratios", "length"),
    [
        ([], None),
        ([(256, 0.5), (512, 0.9)], None),
        ([(256, 2.0), (512, 0.9)], None),
        ([(256, 1.1), (512, 2.0)], 0.0),
        ([(256, 0.5), (1024, 2.0)], 512.0),
        ([(256, 2.0), (512, 0.5), (1024, 2.0)], 724.077),
    ],
)
def test_break_even_is_where_it_stays_faster(ratios: list[tuple[int, float]], length: float | None) -> None:
    assert crossing(ratios) == (length if not length else pytest.approx(length, rel=1e-5))


def test_speedup_is_at_the_longest_shared_length() -> None:
    result = Scaling((line("slow", 1.0, 4.0, 16.0), line("fast", 2.0, 4.0, 8.0), line("short", 0.5)), 8, 64, 0)
    assert result.speedup("fast") == 2.0
    assert (result.shared("fast"), result.shared("short"), result.shared("fast", "short")) == (1024, 256, 256)
    assert result.speedup("short") == 2.0
    assert result.break_even("fast") == 512.0
    assert result.break_even("short") == 0.0


def test_a_state_does_not_grow_and_a_cache_does() -> None:
    seen: list[float] = []
    result = measure_decoding(contexts=(16, 64), repeats=2, progress=lambda done, doing: seen.append(done))
    assert seen == sorted(seen)
    assert all(decoder.right and len(decoder.steps) == 2 for decoder in result.decoders)
    cache, elu, positive = result.decoders
    per_position = decoding.HEADS * 2 * decoding.WIDTH * 4
    assert [step.held_bytes for step in cache.steps] == [16 * per_position, 64 * per_position]
    for state, width in ((elu, decoding.WIDTH), (positive, decoding.FEATURES)):
        first, last = (step.held_bytes for step in state.steps)
        assert first == last
        assert first >= decoding.HEADS * width * (decoding.WIDTH + 1) * 4
    # Sums of phi(k) v and of phi(k), and the scale of each feature.
    assert result.break_even(elu.name) == decoding.WIDTH * (decoding.WIDTH + 2) / (2 * decoding.WIDTH)


def test_a_decoder_that_forgets_is_not_timed() -> None:
    cache, elu, _ = decoding_forms(0)
    forgetful = replace(elu, grow=lambda state, q, k, v: state.prefill(q[:, :, 1:], k[:, :, 1:], v[:, :, 1:])[1])
    result = measure_decoding(contexts=(16, 32), forms=(cache, forgetful), repeats=1)
    assert [decoder.right for decoder in result.decoders] == [True, False]
    assert result.decoders[1].steps == ()
    assert result.break_even(forgetful.name) is None


def test_growth_is_last_over_first() -> None:
    decoder = Decoder("x", 0.0, (Step(16, 2.0, 10), Step(32, 5.0, 10)))
    assert decoder.growth == 2.5
    cache = Decoder("cache", 0.0, (Step(16, 1.0, 32), Step(32, 2.0, 64)))
    assert Decoding((cache, decoder), 8, 64, 0).break_even("x") == 5.0
