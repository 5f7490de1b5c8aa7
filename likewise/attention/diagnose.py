"""How far linear attention with each feature map is from softmax attention, head by head, on a caller's own q, k, v."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import torch
from jaxtyping import Bool, Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Generator, Tensor

from likewise.attention.chunked import GroupedQKV
from likewise.attention.exact import kernel_attention
from likewise.attention.features import FeatureMap, Taylor
from likewise.attention.fitted import Fitted
from likewise.attention.kernels import Exponential, SimilarityKernel, Truncated
from likewise.attention.linear import check_features, linear_attention
from likewise.attention.masks import check_key_mask, check_tensors, hide
from likewise.attention.prefix import Prefix, finite
from likewise.attention.random_features import Hyperbolic, Positive, RandomFeatures
from likewise.checks import require, require_count
from likewise.files import finite as json_number
from likewise.progress import Progress, silent
from likewise.similarity import wide
from likewise.text import aligned

REFUSAL = "do not linearise this head"
WIDTHS = (64, 128, 256)
WINDOW = 64
# The features of Taylor are K^2/2: 2,145 for K = 64. For K = 128 they are 8,385, a state as large as a cache of 4,225
# positions, and nobody replaces softmax by that; its error is reported all the same, as a baseline.
TAYLOR_WIDTH = 2145
PAIRS = 2**22  # similarities of sampled rows that exist at a time: 32 MB in float64

Windows = tuple[int | None, ...]


@dataclass(frozen=True)
class Measurement:
    """One map on one head.

    squared_error: sum |out - softmax|^2 / sum |softmax|^2 over the measured rows; inf where an output is not finite.
    effective_sample_size: of the F terms c_r = phi_r(q) Z_r of a denominator, (sum c)^2 / sum c^2, median over rows:
    from 1, one feature decides alone, to F. None for maps that are exact or of both signs.
    log10_variance: of the relative variance of phi(q).phi(k), meant with the weights of softmax, median over rows;
    pairs within the window have none. None for maps that do not predict it.
    negative_share: of rows whose denominator, by the features alone, is not above 0. macs: multiply-adds per token.
    """

    map: str
    width: int
    exact_within: int | None
    squared_error: float
    effective_sample_size: float | None
    log10_variance: float | None
    negative_share: float
    macs: int

    @property
    def label(self) -> str:
        """The map and, where there is one, its window.

        >>> Measurement("Positive 64", 64, 32, 0.1, 9.0, -1.0, 0.0, 1000).label
        'Positive 64, exact within 32'
        """
        return self.map if self.exact_within is None else f"{self.map}, exact within {self.exact_within}"


@dataclass(frozen=True)
class Advice:
    """A sentence, and the map and window that it names; no map when it says not to linearise."""

    text: str
    map: str | None
    exact_within: int | None


@dataclass(frozen=True)
class HeadDiagnosis:
    """One query head: every map, beside the two errors that a map must beat to be worth its features.

    mean_of_values_error: of the mean of the values that a row sees. taylor_error: of the exponential's Taylor series to
    second order, computed from q.k, whether or not its features are among the maps.
    """

    head: int
    kv_head: int
    mean_of_values_error: float
    taylor_error: float
    measurements: tuple[Measurement, ...]
    advice: Advice

    @property
    def shown(self) -> Measurement:
        """What the advice names or, when it names none, the smallest error."""
        chosen = (self.advice.map, self.advice.exact_within)
        named = [m for m in self.measurements if (m.map, m.exact_within) == chosen]
        return named[0] if named else min(self.measurements, key=lambda m: m.squared_error)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [("map", "window", "error", "ESS", "log10 var", "den <= 0", "MACs")]
        rows += [(m.map, "" if m.exact_within is None else str(m.exact_within), *cells(m)) for m in self.measurements]
        baselines = f"mean of V {number(self.mean_of_values_error)}, Taylor-2 {number(self.taylor_error)}"
        return f"head {self.head}: {self.advice.text}\n{baselines}\n{aligned(rows)}"


@dataclass(frozen=True, repr=False)
class Diagnosis:
    """Every query head, and what was measured and how.

    maps: by name, as they were measured and, if `diagnose` made them, fitted. rows: measured in each batch entry.
    softmax_macs: multiply-adds per token of exact attention at this length. held_out: what was kept from fitting.
    """

    heads: tuple[HeadDiagnosis, ...]
    wanted_error: float
    causal: bool
    scale: float
    rows: int
    softmax_macs: int
    held_out: str
    maps: Mapping[str, FeatureMap] = field(compare=False)

    def __str__(self) -> str:
        rows: list[tuple[str, ...]] = [
            ("head", "mean of V", "Taylor-2", "map", "error", "ESS", "log10 var", "den <= 0", "MACs", "linearise")
        ]
        for head in self.heads:
            baselines = number(head.mean_of_values_error), number(head.taylor_error)
            verdict = "no" if head.advice.map is None else "yes"
            rows.append((str(head.head), *baselines, head.shown.label, *cells(head.shown), verdict))
        return f"{self.summary}\n{aligned(rows, left=(rows[0].index('map'), rows[0].index('linearise')))}"

    __repr__ = __str__

    def to_json(self) -> dict[str, Any]:
        """All of it but the maps themselves, by name; numbers that are not finite are null."""
        plain = {name: value for name, value in vars(self).items() if name not in ("maps", "heads")}
        return json_number({**plain, "heads": [asdict(head) for head in self.heads]})

    @property
    def summary(self) -> str:
        """What the numbers are, in one line."""
        direction = "causal" if self.causal else "both directions"
        return (
            f"relative squared error against softmax, wanted {self.wanted_error:g}; {direction}, {self.rows} rows,"
            f" {self.held_out}; softmax: {self.softmax_macs:,} MACs per token"
        )


def advise(
    measurements: Iterable[Measurement], mean_of_values_error: float, *, wanted_error: float, softmax_macs: int
) -> Advice:
    """The cheapest measurement with at most the wanted error, if it beats the mean of the values and never divides by
    what is not above 0.

    >>> wide, narrow = (Measurement(f"Positive {F}", F, None, 5 / F, None, None, 0.0, 130 * F) for F in (128, 64))
    >>> advise([wide, narrow], 0.5, wanted_error=0.1, softmax_macs=99_999).text
    'Positive 64: error 0.078, 8,320 MACs per token, softmax 99,999'
    >>> advise([wide, narrow], 0.5, wanted_error=0.01, softmax_macs=99_999).text
    'do not linearise this head: the best map, Positive 128, has error 0.039, wanted 0.01'
    """
    safe = [m for m in measurements if m.negative_share == 0]
    if not safe:
        return Advice(f"{REFUSAL}: every map has denominators that are not above 0", None, None)
    fit = [m for m in safe if m.squared_error <= wanted_error and m.squared_error < mean_of_values_error]
    if fit:
        chosen = min(fit, key=lambda m: (m.macs, m.squared_error))
        text = f"{chosen.label}: error {number(chosen.squared_error)}, {chosen.macs:,} MACs per token"
        remark = ", which is less at this length" if softmax_macs < chosen.macs else ""
        return Advice(f"{text}, softmax {softmax_macs:,}{remark}", chosen.map, chosen.exact_within)
    best = min(safe, key=lambda m: m.squared_error)
    if best.squared_error < mean_of_values_error:
        against = f"wanted {wanted_error:g}"
    else:
        against = f"the mean of V {number(mean_of_values_error)}"
    return Advice(
        f"{REFUSAL}: the best map, {best.label}, has error {number(best.squared_error)}, {against}", None, None
    )


def cells(m: Measurement) -> tuple[str, str, str, str, str]:
    """Error, effective sample size, variance, share of bad denominators and cost, as tables show them."""
    size = "" if m.effective_sample_size is None else f"{m.effective_sample_size:.1f}"
    variance = "" if m.log10_variance is None else f"{m.log10_variance:.1f}"
    return number(m.squared_error), size, variance, f"{100 * m.negative_share:.3g}%", f"{m.macs:,}"


def number(value: float) -> str:
    """Two digits.

    >>> number(0.12345), number(1234.5), number(3e-7)
    ('0.12', '1.2e+03', '3e-07')
    """
    return f"{value:.2g}"


class Case(NamedTuple):
    """Checked inputs, and the rows of them that are measured."""

    q: Tensor  # (B, H, T, K), float32 at least, 0 where no row counts
    k: Tensor  # (B, G, S, K), 0 where masked
    v: Tensor  # (B, G, S, V), 0 where masked
    mask: Tensor | None  # (B, S)
    causal: bool
    rows: Tensor  # (n,), in order
    counted: Tensor  # (B, n): whether a row is no padding and sees something

    @property
    def ends(self) -> Tensor:
        """How many keys each of the rows may see, before the mask, (n,)."""
        return key_ends(self.q.shape[2], self.k.shape[2], self.causal)[self.rows.cpu()]

    def seen(self, rows: slice) -> Bool[Tensor, "b 1 n S"]:
        """Which keys some of the rows see."""
        before = torch.arange(self.k.shape[2]) < self.ends[rows, None]
        seen = before.to(self.q.device)[None, None]
        return seen if self.mask is None else seen & self.mask[:, None, None]

    def near(self, rows: slice, within: int) -> Bool[Tensor, "n S"]:
        """Which keys are less than so many positions from some of the rows."""
        at = self.rows[rows, None] + (self.k.shape[2] - self.q.shape[2])
        return (at - torch.arange(self.k.shape[2], device=self.q.device)).abs() < within

    @property
    def block(self) -> int:
        """How many rows have no more than PAIRS pairs with all keys."""
        return max(1, PAIRS // (self.q.shape[0] * self.q.shape[1] * self.k.shape[2]))

    def blocks(self) -> Iterator[slice]:
        """The rows, so many at a time."""
        yield from (slice(start, start + self.block) for start in range(0, len(self.rows), self.block))


def diagnose(
    q: Float[Tensor, "B H T K"],
    k: Float[Tensor, "B G S K"],
    v: Float[Tensor, "B G S V"],
    maps: Mapping[str, FeatureMap] | None = None,
    *,
    causal: bool = False,
    mask: Bool[Tensor, "B S"] | None = None,
    wanted_error: float = 0.1,
    exact_within: int | None = None,
    rows: int = 256,
    generator: Generator | None = None,
    progress: Progress = silent,
) -> Diagnosis:
    """sum |out - softmax|^2 / sum |softmax|^2 of every head and map, what explains it, what it costs, what to use.

    The softmax is that with the scale of the maps, 1/sqrt(K) if they have none. maps: by name; without any, `Taylor`
    (up to K = 64) and `Positive`, `Hyperbolic` and `Fitted` with 64, 128 and 256 features. `Fitted` is then fitted to a
    first half, of the batch or, if that is 1, of the positions, and all maps are measured on the other.
    wanted_error: what the advice looks for. exact_within: a window to try beside none; without it 64, where there are
    more than 128 queries. rows: how many, drawn without return, are measured of each batch entry; time and memory are
    linear in T. Padding (`mask`) is left out of the keys and, when T = S, of the rows. progress: is told the part done.

    The cost is counted per token and head as one step of the recurrent form: 2 F (V + 1) to add a key and to read a
    query, 2 R K for the projections of both on R frequencies (2 F without), and K + V for every key in the window.

    >>> q, k, v = torch.randn(3, 2, 1, 256, 16, generator=torch.Generator().manual_seed(0))
    >>> flat, peaked = (diagnose(q * a, k * a, v, generator=torch.Generator().manual_seed(0)) for a in (0.3, 2.5))
    >>> flat.heads[0].advice.text
    'Hyperbolic 64: error 0.00..., 3,200 MACs per token, softmax 8,192'
    >>> peaked.heads[0].advice.text
    'do not linearise this head: the best map, Taylor, has error 0.9, wanted 0.1'
    """
    where = "diagnose"
    check_tensors(where, q, k, v)
    check_key_mask(where, mask, (k.shape[0], k.shape[2]), q.device)
    require(0 < wanted_error < math.inf, where, "wanted_error", "be a positive number", wanted_error)
    require_count(where, "rows", rows)
    _check_window(where, q, k, exact_within, causal=causal)
    for name, x in (("q", q), ("k", k), ("v", v)):
        require(x.numel() > 0, where, name, "have at least one entry", tuple(x.shape))
    windows: Windows = (None,) if exact_within is None else (None, exact_within)
    if exact_within is None and q.shape[2] > 2 * WINDOW and (causal or q.shape[2] == k.shape[2]):
        windows = (None, WINDOW)
    with torch.no_grad():
        counted = _counted(q, k, mask, causal=causal)
        q, k, v = _finite(where, q, k, v, mask, counted)
        held_out = "nothing held out"
        if maps is None:
            maps, counted, held_out = _default_maps(q, k, v, mask, counted, generator)
        scale = _scale(where, maps, k)
        some = counted.any(dim=1)
        chosen = _sample(where, counted, rows, generator)
        part = None if mask is None else mask[some]
        case = Case(q[some], k[some], v[some], part, causal, chosen, counted[some][:, chosen])
        return _measured(case, maps, windows, scale, wanted_error, held_out, progress)


def diagnose_file(
    path: Path,
    *,
    causal: bool = False,
    wanted_error: float = 0.1,
    exact_within: int | None = None,
    seed: int = 0,
    progress: Progress = silent,
) -> Diagnosis:
    """`diagnose` with its own maps on the tensors q, k, v and, if there is one, mask of a safetensors file."""
    tensors = read_tensors(path)
    return diagnose(
        tensors["q"],
        tensors["k"],
        tensors["v"],
        causal=causal,
        mask=tensors.get("mask"),
        wanted_error=wanted_error,
        exact_within=exact_within,
        generator=torch.Generator().manual_seed(seed),
        progress=progress,
    )


def read_tensors(path: Path) -> dict[str, Tensor]:
    """q, k, v (B, heads, positions, width) and perhaps mask (B, S); without the batch they are one entry of it."""
    where = "attention diagnose"
    try:
        tensors = load_file(path)
    except SafetensorError as error:
        raise ValueError(f"{where}: {path} must be a safetensors file; got {error}.") from error
    missing = [name for name in ("q", "k", "v") if name not in tensors]
    got = ", ".join(sorted(tensors)) or "none"
    require(not missing, where, str(path), f"hold the tensors q, k and v (no {', '.join(missing)})", got)
    if all(tensors[name].dim() == 3 for name in ("q", "k", "v")):
        return {name: tensor[None] for name, tensor in tensors.items()}
    return tensors


def _measured(
    case: Case,
    maps: Mapping[str, FeatureMap],
    windows: Windows,
    scale: float,
    wanted_error: float,
    held_out: str,
    progress: Progress,
) -> Diagnosis:
    """All measurements of checked inputs."""
    progress(0.0, "softmax")
    target = _by_kernel(case, Exponential(scale))
    means = _errors(case, _mean_of_values(case), target)
    taylor = _errors(case, _by_kernel(case, Truncated(scale)), target)
    found: list[list[Measurement]] = [[] for _ in means]
    for number, (name, features) in enumerate(maps.items()):
        progress((number + 1) / (len(maps) + 1), name)
        # A window changes nothing for a map that equals its kernel.
        tried = (None,) if features.exact else windows
        sizes, negative, width = _denominators(case, features)
        variances = _log10_variances(case, features, tried, scale)
        for within in tried:
            errors = _errors(case, _by_features(case, features, within), target)
            macs = _macs(case, features, width, within)
            for head, measurements in enumerate(found):
                size = None if sizes is None else sizes[head]
                variance = None if variances is None else variances[within][head]
                measurements.append(
                    Measurement(name, width, within, errors[head], size, variance, negative[head], macs)
                )
    repeats = case.q.shape[1] // case.k.shape[1]
    softmax_macs = round(_mean_keys(case) * (case.k.shape[3] + case.v.shape[3]))
    heads = []
    for head, measurements in enumerate(found):
        advice = advise(measurements, means[head], wanted_error=wanted_error, softmax_macs=softmax_macs)
        heads.append(HeadDiagnosis(head, head // repeats, means[head], taylor[head], tuple(measurements), advice))
    return Diagnosis(tuple(heads), wanted_error, case.causal, scale, len(case.rows), softmax_macs, held_out, dict(maps))


def key_ends(length: int, positions: int, causal: bool) -> Tensor:
    """How many keys each query may see; causal is lower-right.

    >>> key_ends(3, 2, True)
    tensor([0, 1, 2])
    """
    if not causal:
        return torch.full((length,), positions)
    return (torch.arange(1, length + 1) + (positions - length)).clamp(min=0)


def _check_window(where: str, q: Tensor, k: Tensor, exact_within: int | None, *, causal: bool) -> None:
    if exact_within is not None:
        require_count(where, "exact_within", exact_within)
        rule = f"come with causal=True or with as many queries as keys, {k.shape[2]}"
        require(causal or q.shape[2] == k.shape[2], where, "exact_within", rule, q.shape[2])


def _counted(q: Tensor, k: Tensor, mask: Tensor | None, *, causal: bool) -> Bool[Tensor, "B T"]:
    """Which rows are no padding and see something."""
    ends = key_ends(q.shape[2], k.shape[2], causal).to(q.device)
    if mask is None:
        return (ends > 0).expand(q.shape[0], -1)
    before = torch.cat([mask.new_zeros(mask.shape[0], 1, dtype=torch.long), mask.long().cumsum(dim=1)], dim=1)
    seeing = before[:, ends] > 0
    return seeing & mask if q.shape[2] == k.shape[2] else seeing


def _finite(
    where: str, q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, counted: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """q, k, v wide enough to sum, 0 where padding stands; refused when anything else is not finite."""
    require(bool(counted.any()), where, "q", "have a row that sees a key", "none")
    tensors = {"q": hide(q, counted), "k": hide(k, mask), "v": hide(v, mask)}
    for name, x in tensors.items():
        broken = int((~x.isfinite()).sum())
        require(broken == 0, where, name, "be finite where it is not masked", f"{broken} entries that are inf or nan")
    q, k, v = (x.to(wide(x.dtype)) for x in tensors.values())
    return q, k, v


def _scale(where: str, maps: Mapping[str, FeatureMap], k: Tensor) -> float:
    """The one scale of softmax that the maps stand for; maps of other kernels are held against it as well."""
    require(isinstance(maps, Mapping) and len(maps) > 0, where, "maps", "name at least one map", repr(maps))
    for features in maps.values():
        check_features(where, features, k)
    kernels = [features.kernel for features in maps.values()]
    scales = sorted(
        {
            Exponential(kernel.scale).scale_for(k.shape[3])
            for kernel in kernels
            if isinstance(kernel, Exponential | Truncated)
        }
    )
    require(len(scales) <= 1, where, "maps", "stand for softmax of one scale", " and ".join(map(str, scales)))
    return scales[0] if scales else Exponential().scale_for(k.shape[3])


def _sample(where: str, counted: Bool[Tensor, "B T"], rows: int, generator: Generator | None) -> Tensor:
    """Positions, in order, at which some batch entry has a row to measure."""
    candidates = counted.any(dim=0).nonzero().flatten()
    if len(candidates) <= rows:
        return candidates
    drawn = torch.randperm(len(candidates), generator=generator, device=None if generator is None else generator.device)
    return candidates[drawn[:rows].sort().values.to(counted.device)]


def _default_maps(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, counted: Tensor, generator: Generator | None
) -> tuple[dict[str, FeatureMap], Tensor, str]:
    """Maps with frequencies for every key-value head, the rows that fitting left for measuring, and which they are."""
    key_dim, groups = k.shape[3], k.shape[1]
    maps: dict[str, FeatureMap] = {}
    if math.comb(key_dim + 2, 2) <= TAYLOR_WIDTH:
        maps["Taylor"] = Taylor(key_dim)
    for kind in (Positive, Hyperbolic, Fitted):
        for width in WIDTHS:
            maps[f"{kind.__name__} {width}"] = kind(key_dim, num_features=width, kv_heads=groups, generator=generator)
    batch, length, positions = q.shape[0] // 2, q.shape[2] // 2, k.shape[2] // 2
    left = counted.clone()
    if batch:
        left[:batch] = False
        first, held_out = (slice(batch), slice(None), slice(None)), "fitted on the first half of the batch"
    else:
        left[:, :length] = False
        first = (slice(None), slice(length), slice(positions))
        held_out = "fitted on the first half of the positions"
    entries, queries, keys = first
    seen = None if mask is None else mask[entries, keys]
    enough = length * positions > 0 and counted[entries, queries].any() and (seen is None or seen.any())
    if not (enough and left.any()):
        fixed = {name: features for name, features in maps.items() if not isinstance(features, Fitted)}
        return fixed, counted, "too little to fit and measure apart: Fitted left out"
    for features in maps.values():
        if isinstance(features, Fitted):
            features.to(q.device).fit(q[entries, :, queries], k[entries, :, keys], mask=seen)
    return {name: features.to(q.device) for name, features in maps.items()}, left, f"{held_out}, measured on the rest"


def _by_kernel(case: Case, kernel: SimilarityKernel) -> Float[Tensor, "B H n V"]:
    """Exact attention of the rows, in float64."""
    q, k, v = case.q[:, :, case.rows].double(), case.k.double(), case.v.double()
    parts = [kernel_attention(q[:, :, some], k, v, kernel=kernel, mask=case.seen(some)) for some in case.blocks()]
    return torch.cat(parts, dim=2)


def _by_features(case: Case, features: FeatureMap, within: int | None) -> Float[Tensor, "B H n V"]:
    """Linear attention of the rows. Where a row depends on its position, that of all rows."""
    everything = case.causal or within is not None
    q = case.q if everything else case.q[:, :, case.rows]
    # The warning of denominators near 0 would say less than the measurement, and once given it is not given again.
    warned, features.has_warned = features.has_warned, True
    try:
        out = linear_attention(
            q, case.k, case.v, features=features, causal=case.causal, mask=case.mask, exact_within=within
        )
    finally:
        features.has_warned = warned
    return out[:, :, case.rows] if everything else out


def _mean_of_values(case: Case) -> Float[Tensor, "B H n V"]:
    """The mean of the values that each row sees."""
    v = case.v.double()
    kept = v.new_ones(v.shape[0], v.shape[2]) if case.mask is None else case.mask.double()
    sums, counts = v.cumsum(dim=2), kept.cumsum(dim=1)[:, None, :, None]  # masked values are 0
    last = case.ends.to(v.device) - 1
    means = sums[:, :, last] / counts[:, :, last]
    return means.repeat_interleave(case.q.shape[1] // v.shape[1], dim=1)


def _errors(case: Case, out: Tensor, target: Tensor) -> list[float]:
    """The relative squared error of every head."""
    ignored = ~case.counted[:, None, :, None]
    difference = (out.double() - target).masked_fill(ignored, 0).square().sum((0, 2, 3))
    size = target.masked_fill(ignored, 0).square().sum((0, 2, 3))
    # Values of 0 only: every average of them is right.
    errors = torch.where((size == 0) & (difference == 0), 0.0, difference / size)
    return errors.masked_fill(errors.isnan(), math.inf).tolist()


def _denominators(case: Case, features: FeatureMap) -> tuple[list[float] | None, list[float], int]:
    """Of every head the median effective sample size and the share of denominators that are not above 0; the width."""
    problem = GroupedQKV.fold(features, case.q[:, :, case.rows], case.k, case.v[..., :0], case.mask)
    prefix, taken, sizes, totals = problem.empty(), 0, [], []
    ends, counts = case.ends.unique_consecutive(return_counts=True)
    start = 0
    for end, count in zip(ends.tolist(), counts.tolist(), strict=True):
        prefix, taken = problem.absorbed(prefix, taken, end), end
        terms = problem.unfold(_terms(problem, prefix, start, start + count)).double()
        totals.append(terms.sum(-1))
        sizes.append(terms.sum(-1).square() / terms.square().sum(-1))
        start += count
    positive = (torch.cat(totals, dim=2) > 0) | ~case.counted[:, None]
    negative = (~positive).sum((0, 2)) / case.counted.sum()
    meant = features.positive and not features.exact
    return _medians(case.counted, torch.cat(sizes, dim=2)) if meant else None, negative.tolist(), prefix.sums.shape[2]


def _terms(problem: GroupedQKV, prefix: Prefix, start: int, stop: int) -> Float[Tensor, "B G rows F"]:
    """phi_r(q) Z_r of every feature, times one positive factor for each row."""
    queries, sums = problem.queries(start, stop), prefix.sums[..., -1].unsqueeze(-2)
    if queries.log is None or prefix.scale is None:
        return queries.plain() * sums
    logs = queries.log + prefix.scale
    factors = (logs - finite(logs.amax(dim=-1, keepdim=True))).exp()
    return (factors if queries.value is None else queries.value * factors) * sums


def _log10_variances(
    case: Case, features: FeatureMap, windows: Windows, scale: float
) -> dict[int | None, list[float]] | None:
    """Of every window and head the median of sum_j a_ij variance_ij, a the weights of softmax, as log10.

    A median does not need all rows: it is taken over as many of them, evenly spread, as `blocks` has in a block.
    """
    predict = getattr(features, "log_relative_variance", None)
    if predict is None:
        return None
    k = case.k.repeat_interleave(case.q.shape[1] // case.k.shape[1], dim=1)
    some = slice(None, None, -(-len(case.rows) // case.block))
    q, counted = case.q[:, :, case.rows[some]], case.counted[:, some]
    weights = Exponential(scale).log(q, k).masked_fill(~case.seen(some), -torch.inf).log_softmax(dim=-1)
    terms = weights + predict(q, k)
    found = {}
    for within in windows:
        far = terms if within is None else terms.masked_fill(case.near(some, within), -torch.inf)
        found[within] = _medians(counted, far.logsumexp(dim=-1).double() / math.log(10))
    return found


def _medians(counted: Bool[Tensor, "B n"], values: Float[Tensor, "B H n"]) -> list[float]:
    """Of every head, over the rows that count."""
    return values.transpose(1, 2)[counted].median(dim=0).values.tolist()


def _mean_keys(case: Case) -> float:
    """How many keys a row may see, on average over all rows."""
    return key_ends(case.q.shape[2], case.k.shape[2], case.causal).double().mean().item()


def _macs(case: Case, features: FeatureMap, width: int, within: int | None) -> int:
    """Multiply-adds per token and head, as `diagnose` counts them."""
    key_dim, value_dim, positions = case.k.shape[3], case.v.shape[3], case.k.shape[2]
    mapping = features.rows * key_dim if isinstance(features, RandomFeatures) else width
    near = 0 if within is None else min(positions, within if case.causal else 2 * within - 1)
    return 2 * width * (value_dim + 1) + 2 * mapping + near * (key_dim + value_dim)
