"""The diagnosis: its numbers by brute force and by hand, and advice that never recommends what the numbers forbid."""

import math
import warnings
from typing import Any

import pytest
import torch
from torch import Tensor

from likewise.attention import (
    DenominatorWarning,
    Elu,
    FeatureMap,
    Fitted,
    Fourier,
    Hyperbolic,
    Positive,
    Scaled,
    SoftmaxFourier,
    Taylor,
    diagnose,
    linear_attention,
)
from likewise.attention.diagnose import Diagnosis
from tests.attention import brute
from tests.attention.drawing import Sizes, draw, seeded, structures
from tests.tolerance import RELATIVE

SQUARE = Sizes(T=11, S=11)


def relative(error: float) -> Any:
    return pytest.approx(error, rel=RELATIVE[torch.float64])


def brute_error(out: Tensor, target: Tensor, counted: Tensor, head: int) -> float:
    """sum |out - target|^2 / sum |target|^2 of one head, row by row."""
    difference = size = 0.0
    for b, i in counted.nonzero().tolist():
        difference += (out[b, head, i] - target[b, head, i]).square().sum().item()
        size += target[b, head, i].square().sum().item()
    return difference / size


def counted_rows(q: Tensor, k: Tensor, structure: dict[str, Any]) -> Tensor:
    """Rows that see a key and, when T = S, are not masked, (B, T)."""
    counted = brute.allowed(q, k, structure)[:, 0].any(-1)
    return counted & structure["mask"] if "mask" in structure and q.shape[2] == k.shape[2] else counted


def key_mask(positions: int) -> Tensor:
    return structures(positions)["masked"]["mask"]


CASES: dict[str, tuple[Sizes, dict[str, Any]]] = {
    "both directions": (Sizes(), {}),
    "causal": (SQUARE, {"causal": True}),
    "masked": (SQUARE, {"mask": key_mask(11)}),
    "masked causal": (SQUARE, {"causal": True, "mask": key_mask(11)}),
    "masked, fewer queries": (Sizes(), {"causal": True, "mask": key_mask(11)}),
    "more queries than keys": (Sizes(T=13, S=5), {"causal": True}),
    "one query": (Sizes(T=1, S=5), {"causal": True}),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("name", ["Elu", "Positive, scaled", "Hyperbolic"])
def test_errors_are_those_of_brute_force(case: str, name: str) -> None:
    sizes, structure = CASES[case]
    q, k, v = draw(sizes, seeded(3))
    features = brute.MAPS[name].make(sizes.K, sizes.G, seeded(5))
    scale = 0.7 if name == "Positive, scaled" else sizes.K**-0.5
    found = diagnose(q, k, v, {name: features}, **structure)
    target = brute.kernel(brute.exponential(scale), q, k, v, structure)
    counted = counted_rows(q, k, structure)
    expected = {
        "map": brute.linear(name, features, q, k, v, structure),
        "taylor": brute.kernel(brute.truncated(scale), q, k, v, structure),
        "mean": brute.kernel(lambda q, k, w: brute.positive(0 * brute.dots(q, k)), q, k, v, structure),
    }
    assert found.scale == relative(scale)
    for head in found.heads:
        errors = {what: brute_error(out, target, counted, head.head) for what, out in expected.items()}
        assert head.measurements[0].squared_error == relative(errors["map"])
        assert head.taylor_error == relative(errors["taylor"])
        assert head.mean_of_values_error == relative(errors["mean"])
    assert [head.kv_head for head in found.heads] == [0, 0, 1, 1, 2, 2]


def test_maps_of_other_kernels_are_held_against_softmax() -> None:
    q, k, v = draw(Sizes(), seeded(3))
    features = Fourier(5, num_frequencies=7, generator=seeded(0))
    target = brute.kernel(brute.exponential(None), q, k, v)
    out = brute.linear("Fourier", features, q, k, v)
    [head, *_] = diagnose(q, k, v, {"waves": features}).heads
    everything = torch.ones(2, 7, dtype=torch.bool)
    assert head.measurements[0].squared_error == relative(brute_error(out, target, everything, 0))


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_over_everything_has_no_error_and_no_variance(causal: bool) -> None:
    q, k, v = draw(SQUARE, seeded(3), size=2.0)
    maps = {"few": Positive(5, num_features=2, generator=seeded(0))}
    for head in diagnose(q, k, v, maps, causal=causal, exact_within=11).heads:
        alone, near = head.measurements
        assert near.squared_error < 1e-20 < alone.squared_error
        assert near.log10_variance == -math.inf
        assert (alone.exact_within, near.exact_within) == (None, 11)
        assert (head.advice.map, head.advice.exact_within) == ("few", 11)


def test_an_exact_map_is_not_tried_with_a_window() -> None:
    [head, *_] = diagnose(*draw(SQUARE, seeded(3)), {"elu": Elu()}, causal=True, exact_within=3).heads
    assert [m.exact_within for m in head.measurements] == [None]


class Given(FeatureMap):
    """A map written by a user: the logarithms of the features are the input itself, the same for queries and keys."""

    exact, positive, logarithmic = False, True, "features"

    def split_keys(self, x: Tensor) -> Scaled:
        return Scaled(None, x)


class Plain(FeatureMap):
    """phi(x) = x, of both signs."""

    def split_keys(self, x: Tensor) -> Scaled:
        return Scaled(x, None)


def test_equal_terms_count_fully_and_one_large_term_alone() -> None:
    q, k, v = draw(Sizes(), seeded(3))
    q, k = torch.zeros_like(q), torch.zeros_like(k)
    equal = diagnose(q, k, v, {"given": Given()})
    assert [head.measurements[0].effective_sample_size for head in equal.heads] == [relative(5.0)] * 6
    q[:, 2:4, :, 1] = 900.0  # exp would overflow
    lone = diagnose(q, k, v, {"given": Given()})
    assert [head.measurements[0].effective_sample_size for head in lone.heads] == [
        relative(1.0 if head in (2, 3) else 5.0) for head in range(6)
    ]


@pytest.mark.parametrize("case", ["causal", "masked causal", "both directions"])
def test_effective_sample_size_is_that_of_brute_force(case: str) -> None:
    sizes, structure = CASES[case]
    q, k, v = draw(sizes, seeded(3))
    found = diagnose(q, k, v, {"given": Given()}, **structure)
    seen, counted = brute.allowed(q, k, structure), counted_rows(q, k, structure)
    for head in found.heads:
        sums = torch.einsum("bts,bsf->btf", seen[:, head.head].double(), k[:, head.kv_head].exp())
        terms = q[:, head.head].exp() * sums
        sizes_of_rows = terms.sum(-1).square() / terms.square().sum(-1)
        assert head.measurements[0].effective_sample_size == relative(sizes_of_rows[counted].median().item())


def test_exact_and_signed_maps_have_no_effective_sample_size() -> None:
    maps = {"elu": Elu(), "waves": SoftmaxFourier(5, num_frequencies=3, generator=seeded(0))}
    for head in diagnose(*draw(Sizes(), seeded(3)), maps).heads:
        assert [m.effective_sample_size for m in head.measurements] == [None, None]


@pytest.mark.parametrize("causal", [False, True])
def test_denominators_that_are_not_above_zero_are_counted(causal: bool) -> None:
    q, k, v = torch.ones(1, 2, 5, 3), torch.ones(1, 1, 5, 3), torch.randn(1, 1, 5, 2, generator=seeded(0))
    q[0, 1, 1], q[0, 1, 4] = -1.0, 0.0
    found = diagnose(q, k, v, {"plain": Plain()}, causal=causal, wanted_error=1e9)
    assert [head.measurements[0].negative_share for head in found.heads] == [0, pytest.approx(0.4)]
    assert found.heads[1].advice.map is None
    assert found.heads[1].advice.text == "do not linearise this head: every map has denominators that are not above 0"


def test_the_warning_of_denominators_is_left_to_others() -> None:
    features = SoftmaxFourier(5, num_frequencies=2, generator=seeded(0))
    inputs = draw(SQUARE, seeded(3), size=2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = diagnose(*inputs, {"waves": features})
    assert max(head.measurements[0].negative_share for head in found.heads) > 0.1
    with pytest.warns(DenominatorWarning):
        linear_attention(*inputs, features=features)


def test_predicted_variance_of_one_pair_is_the_closed_form() -> None:
    q, k = (torch.tensor([[[pair]]], dtype=torch.float64) for pair in ([0.4, -1.0], [0.2, 0.5]))
    maps = {"one": Positive(2, num_features=6, scale=1.0), "both": Hyperbolic(2, num_features=6, scale=1.0)}
    [head] = diagnose(q, k, torch.ones(1, 1, 1, 1).double(), maps).heads
    t = 0.6**2 + 0.5**2  # |x + y|^2
    positive, hyperbolic = (m.log10_variance for m in head.measurements)
    assert positive == relative(math.log10((math.exp(t) - 1) / 6))
    assert hyperbolic == relative(math.log10((1 - math.exp(-t)) / 2 * (math.exp(t) - 1) / 3))  # 3 frequencies


@pytest.mark.parametrize("within", [None, 3])
@pytest.mark.parametrize("case", ["causal", "masked causal", "masked"])
def test_predicted_variance_is_meant_with_softmax_weights(case: str, within: int | None) -> None:
    sizes, structure = CASES[case]
    q, k, v = draw(sizes, seeded(3))
    maps = {"one": Positive(5, num_features=7), "both": Hyperbolic(5, num_features=14)}
    found = diagnose(q, k, v, maps, exact_within=within, **structure)
    counted = counted_rows(q, k, structure)
    x, y = q * 5**-0.25, k.repeat_interleave(2, dim=1) * 5**-0.25
    logits = brute.dots(x, y).masked_fill(~brute.allowed(q, k, structure), -math.inf)
    t = (x[:, :, :, None] + y[:, :, None]).square().sum(-1)
    variance = {"one": (t.exp() - 1) / 7, "both": (1 - (-t).exp()) * (t.exp() - 1) / 14}
    positions = torch.arange(11)
    far = (positions[:, None] - positions).abs() >= (within or 0)
    for head in found.heads:
        for m in head.measurements:
            pairs = variance[m.map] * (far if m.exact_within else 1)
            rows = (logits.softmax(-1).nan_to_num(0) * pairs).sum(-1)[:, head.head][counted]
            assert m.log10_variance == relative(rows.median().log10().item())
        one, both = (m for m in head.measurements if m.exact_within == within)
        assert one.log10_variance is not None
        assert both.log10_variance is not None
        assert both.log10_variance < one.log10_variance


@pytest.mark.full
def test_a_peaked_head_is_left_alone_and_a_flat_one_is_not() -> None:
    q, k, v = draw(Sizes(B=2, G=2, repeats=1, T=149, S=149, K=16, V=7), seeded(3), dtype=torch.float32)
    q[:, 0] *= 0.4
    q[:, 1] *= 6.0
    flat, peaked = diagnose(q, k, v, causal=True, generator=seeded(0)).heads
    assert flat.advice.map is not None
    assert flat.shown.squared_error <= 0.1
    assert peaked.advice.map is None
    assert peaked.advice.text.startswith("do not linearise this head: the best map, ")


@pytest.mark.full
def test_defaults_are_taylor_and_three_random_maps_by_width_and_window() -> None:
    q, k, v = draw(Sizes(G=2, repeats=1, T=131, S=131), seeded(3), dtype=torch.float32)
    found = diagnose(q, k, v, causal=True, generator=seeded(0))
    families = {f"{kind} {F}": F for kind in ("Positive", "Hyperbolic", "Fitted") for F in (64, 128, 256)}
    expected = [("Taylor", 21, None)] + [(name, F, W) for name, F in families.items() for W in (None, 64)]
    for head in found.heads:
        assert [(m.map, m.width, m.exact_within) for m in head.measurements] == expected
    assert list(found.maps) == ["Taylor", *families]
    short = diagnose(q[:, :, :128], k[:, :, :128], v[:, :, :128], causal=True, generator=seeded(0))
    assert {m.exact_within for m in short.heads[0].measurements} == {None}
    crossed = diagnose(q, k[:, :, :128], v[:, :, :128], generator=seeded(0))
    assert {m.exact_within for m in crossed.heads[0].measurements} == {None}


def test_taylor_is_left_out_where_it_is_wider_than_heads_of_64_make_it() -> None:
    for key_dim, there in ((64, True), (65, False)):
        q, k, v = draw(Sizes(G=1, repeats=1, K=key_dim), seeded(3), dtype=torch.float32)
        found = diagnose(q, k, v, generator=seeded(0))
        assert ("Taylor" in found.maps) is there
        assert found.heads[0].taylor_error > 0


@pytest.mark.parametrize(("batch", "half"), [(3, "batch"), (1, "positions")])
def test_what_is_measured_was_kept_from_fitting(batch: int, half: str) -> None:
    q, k, v = draw(Sizes(B=batch, T=13, S=13), seeded(3))
    first = (slice(1), slice(None)) if batch > 1 else (slice(None), slice(6))
    fitted = Fitted(5, num_features=256, kv_heads=3).fit(q[first[0], :, first[1]], k[first[0], :, first[1]])
    found = diagnose(q, k, v, causal=True, generator=seeded(0))
    mine = found.maps["Fitted 256"]
    assert isinstance(mine, Fitted)
    assert torch.equal(mine.query_mean, fitted.query_mean)
    assert torch.equal(mine.widening, fitted.widening)
    assert found.held_out == f"fitted on the first half of the {half}, measured on the rest"
    rest = torch.ones(batch, 13, dtype=torch.bool)
    rest[first] = False
    target = brute.kernel(brute.exponential(None), q, k, v, {"causal": True})
    out = brute.linear("Positive", found.maps["Positive 64"], q, k, v, {"causal": True})
    [measured] = [m for m in found.heads[4].measurements if m.map == "Positive 64"]
    assert measured.squared_error == relative(brute_error(out, target, rest, 4))
    assert found.rows == rest.any(0).sum()


@pytest.mark.parametrize("why", ["one position", "padding first"])
def test_fitted_is_left_out_where_nothing_can_be_held_out(why: str) -> None:
    positions = 1 if why == "one position" else 7
    mask = torch.arange(positions)[None] >= positions // 2
    found = diagnose(*draw(Sizes(B=1, T=positions, S=positions), seeded(3)), mask=mask, generator=seeded(0))
    assert not any(name.startswith("Fitted") for name in found.maps)
    assert found.held_out == "too little to fit and measure apart: Fitted left out"


def without_maps(found: Diagnosis) -> str:
    return "\n".join(map(str, [found, *found.heads]))


def test_the_same_generator_gives_the_same_diagnosis() -> None:
    q, k, v = draw(Sizes(T=29, S=29), seeded(3), dtype=torch.float32)
    one, same, other = (diagnose(q, k, v, rows=5, generator=seeded(seed)) for seed in (0, 0, 1))
    assert one == same
    assert one != other
    assert one.rows == 5
    assert without_maps(one) == without_maps(same)


@pytest.mark.slow
@pytest.mark.parametrize("causal", [False, True])
def test_some_rows_tell_what_all_rows_tell(causal: bool) -> None:
    # Not more exactly than this: the few causal rows with few keys have most of the error.
    q, k, v = draw(Sizes(G=2, repeats=1, T=331, S=331), seeded(3), size=0.7, dtype=torch.float32)
    maps = {"one": Positive(5, num_features=64, generator=seeded(0))}
    every, some = (
        diagnose(q, k, v, maps, causal=causal, rows=rows, generator=seeded(1), exact_within=7) for rows in (331, 101)
    )
    assert (every.rows, some.rows) == (331, 101)
    for all_rows, sampled in zip(every.heads, some.heads, strict=True):
        assert sampled.mean_of_values_error == pytest.approx(all_rows.mean_of_values_error, rel=0.5)
        for a, b in zip(sampled.measurements, all_rows.measurements, strict=True):
            assert a.squared_error == pytest.approx(b.squared_error, rel=0.5)
            assert a.effective_sample_size == pytest.approx(b.effective_sample_size, rel=0.1)
            assert a.log10_variance == pytest.approx(b.log10_variance, abs=0.1)


def test_grouped_heads_equal_repeated_keys_and_values() -> None:
    q, k, v = draw(SQUARE, seeded(3))
    maps = {"one": Positive(5, num_features=7, generator=seeded(0)), "taylor": Taylor(5)}
    grouped = diagnose(q, k, v, maps, causal=True, exact_within=3)
    repeated = diagnose(q, *(x.repeat_interleave(2, dim=1) for x in (k, v)), maps, causal=True, exact_within=3)
    for one, other in zip(grouped.heads, repeated.heads, strict=True):
        assert one.advice == other.advice
        for a, b in zip(one.measurements, other.measurements, strict=True):
            assert a.squared_error == relative(b.squared_error)
            assert (a.map, a.width, a.macs, a.negative_share) == (b.map, b.width, b.macs, b.negative_share)


def test_what_stands_in_padding_changes_nothing() -> None:
    q, k, v = draw(SQUARE, seeded(3))
    maps = {"one": Positive(5, num_features=7, generator=seeded(0))}
    mask = key_mask(11)
    clean = diagnose(q, k, v, maps, mask=mask, causal=True, exact_within=3)
    for x in (q, k, v):
        x.masked_fill_(~mask[:, None, :, None], torch.nan)
    assert diagnose(q, k, v, maps, mask=mask, causal=True, exact_within=3) == clean


def test_half_precision_is_measured_in_float32() -> None:
    q, k, v = draw(SQUARE, seeded(3), dtype=torch.bfloat16)
    maps = {"one": Positive(5, num_features=7, generator=seeded(0))}
    assert diagnose(q, k, v, maps) == diagnose(q.float(), k.float(), v.float(), maps)


def test_values_of_zero_have_no_error() -> None:
    q, k, v = draw(Sizes(), seeded(3))
    [head, *_] = diagnose(q, k, 0 * v, {"elu": Elu()}).heads
    assert (head.mean_of_values_error, head.measurements[0].squared_error) == (0, 0)


def test_cost_by_hand() -> None:
    q, k, v = draw(Sizes(T=11, S=11, K=5, V=13), seeded(3))
    maps = {"elu": Elu(), "one": Positive(5, num_features=6), "both": Hyperbolic(5, num_features=6)}
    state = 2 * 6 * 14
    for causal, keys, softmax in ((True, 3, 6 * 18), (False, 5, 11 * 18)):
        found = diagnose(q, k, v, maps, causal=causal, exact_within=3)
        assert [(m.map, m.macs) for m in found.heads[0].measurements] == [
            ("elu", 2 * 5 * 14 + 2 * 5),
            ("one", state + 2 * 6 * 5),
            ("one", state + 2 * 6 * 5 + keys * 18),
            ("both", state + 2 * 3 * 5),
            ("both", state + 2 * 3 * 5 + keys * 18),
        ]
        assert found.softmax_macs == softmax
