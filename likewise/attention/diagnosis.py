"""What `diagnose` found: measurements of every head and map, and what they advise."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

from likewise.attention.features import FeatureMap
from likewise.files import finite
from likewise.text import aligned

REFUSAL = "do not linearise this head"


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
        return finite({**plain, "heads": [asdict(head) for head in self.heads]})

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
