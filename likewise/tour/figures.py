"""The tour's pictures: results in, SVG out."""

import math
from collections.abc import Iterable
from dataclasses import replace
from xml.etree.ElementTree import Element, SubElement, tostring

from likewise.reports.charts import Axis, Mark, Panel, Rule, Trace, draw
from likewise.reports.learning import learning_panels
from likewise.text import MICRO, length, percent, power, scientific, seconds, short, size
from likewise.tour.approximation import Approximation, ErrorsByWidth, Point
from likewise.tour.combinations import MEAN
from likewise.tour.decoding import Decoding
from likewise.tour.embeddings import Embeddings
from likewise.tour.identities import FrequencyLaw
from likewise.tour.real_attention import Outcome, RealAttention, Subject
from likewise.tour.scaling import Line, Scaling

# Which colour of the style sheet a name has, on every picture and in every legend.
LOOKS = {
    "Fourier": "fourier",
    "SoftmaxFourier": "softmax-fourier",
    "Positive": "positive",
    "Hyperbolic": "hyperbolic",
    "Elu": "elu",
    "PyTorch SDPA": "softmax",
    "softmax": "softmax",
    "plain softmax": "plain",
}
ERRORS = (4e-5, 10.0)  # what the error axis shows; beyond it there are arrow heads
TIME_UNITS = {0: "s", -3: "ms", -6: f"{MICRO}s", -9: "ns"}
SIZE_UNITS = {0: "B", 3: "kB", 6: "MB", 9: "GB"}


def look(name: str) -> str:
    """The colour of a name such as "Positive, F = 256", by its first words.

    >>> look("Positive, F = 256"), look("Taylor")
    ('positive', 'fixed')
    """
    return LOOKS.get(name.partition(",")[0].removesuffix(" state"), "fixed")


def law_figure(law: FrequencyLaw) -> str:
    """The Gaussian, and what random waves make of it under two laws."""
    ticks = tuple((float(d), f"{d}") for d in range(0, math.floor(law.distances[-1]) + 1, 2))
    x = Axis("distance |q - k|".replace("-", "\N{MINUS SIGN}"), 0.0, law.distances[-1], ticks, log=False)
    y = Axis("", -0.1, 1.05, ((0.0, "0"), (0.25, "0.25"), (0.5, "0.5"), (0.75, "0.75"), (1.0, "1")), log=False)
    steps = [law.distances[-1] * i / 200 for i in range(201)]
    bell = Trace("softmax", tuple((d, math.exp(-(d**2) / (2 * law.variance))) for d in steps), dots=False)
    traces = [bell]
    for name, estimates in (("elu", law.right), ("wrong", law.wrong)):
        hints = tuple(f"distance {short(d)}: {short(e)}" for d, e in zip(law.distances, estimates, strict=True))
        points = tuple(zip(law.distances, estimates, strict=True))
        traces.append(Trace(name, points, hints, joined=False))
    panel = Panel("similarity", x, y, tuple(traces))
    return draw((panel,), name="law", label="The Gaussian kernel and two estimates of it by distance", height=290.0)


def approximation_figure(result: Approximation) -> str:
    """Error against width, one panel per problem."""
    return draw(
        tuple(_error_panel(problem) for problem in result.problems),
        name="errors",
        label="Relative squared error of the output against feature width, by map",
        columns=2,
        height=305.0,
    )


def _error_panel(problem: ErrorsByWidth) -> Panel:
    widths = [point.width for point in (*problem.fixed, *problem.random)]
    room = 2.6, 4.2  # for the tags of the narrowest and the widest maps
    x = Axis("feature width F", min(widths) / room[0], max(widths) * room[1], _powers_of_two(widths, every=2))
    low, high = ERRORS
    decades = range(math.ceil(math.log10(low)), math.floor(math.log10(high)) + 1)
    y = Axis("", low, high, tuple((10.0**e, power(e)) for e in decades))
    names = dict.fromkeys(point.map for point in problem.random)
    traces = [_error_trace(look(name), problem.curve(name)) for name in names]
    traces += [
        replace(_error_trace("fixed", (point,)), tag=point.map, tag_left=point.width == min(widths))
        for point in problem.fixed
    ]
    rules = (Rule("softmax", problem.mean.error, "mean of V"),)
    return Panel(problem.title, x, y, tuple(traces), rules)


def _error_trace(name: str, points: tuple[Point, ...]) -> Trace:
    hints = tuple(f"{point.map}, F = {point.width}: {scientific(point.error)}" for point in points)
    return Trace(name, tuple((point.width, point.error) for point in points), hints)


def image_figure(pixels: tuple[float, ...], label: str) -> str:
    """A square grey image, 0 for paper and 1 for ink."""
    side = math.isqrt(len(pixels))
    svg = Element("svg", {"viewBox": f"0 0 {side} {side}", "role": "img", "aria-label": label, "class": "image"})
    for number, ink in enumerate(pixels):
        row, column = divmod(number, side)
        if ink > 0:
            SubElement(svg, "rect", {"x": f"{column}", "y": f"{row}", "fill-opacity": f"{ink:.2f}"})
    return tostring(svg, encoding="unicode", short_empty_elements=False)


def scaling_figure(result: Scaling) -> str:
    """Time and memory against length."""
    lines = [line for line in result.lines if line.samples]
    if not lines:
        return ""
    lengths = result.lengths
    x = Axis("length T", min(lengths) / 1.15, max(lengths) * 1.15, _powers_of_two(lengths, every=2))
    times = _decades([s.seconds for line in lines for s in line.samples], TIME_UNITS)
    sizes = _decades([s.extra_bytes for line in lines for s in line.samples], SIZE_UNITS)
    by_time, by_size = [], []
    for line in lines:
        hints = tuple(f"{line.name}, T = {length(s.length)}: {seconds(s.seconds)}" for s in line.samples)
        by_time.append(Trace(look(line.name), tuple((s.length, s.seconds) for s in line.samples), hints))
        hints = tuple(f"{line.name}, T = {length(s.length)}: {size(s.extra_bytes)}" for s in line.samples)
        by_size.append(Trace(look(line.name), tuple((s.length, s.extra_bytes) for s in line.samples), hints))
    panels = (
        Panel("time of one call", x, times, tuple(by_time), marks=tuple(_break_evens(result))),
        Panel("memory beyond q, k and v", x, sizes, tuple(by_size)),
    )
    return draw(panels, name="scaling", label="Time and memory against length, by form", columns=2, height=310.0)


def _break_evens(result: Scaling) -> Iterable[Mark]:
    """Where a linear form overtakes the first form."""
    for line in result.lines[1:]:
        crossing = result.break_even(line.name)
        if crossing:
            yield Mark(look(line.name), crossing, _seconds_at(result.lines[0], crossing), f"T = {short(crossing)}")


def _seconds_at(line: Line, at: float) -> float:
    """The time at a length between two that were measured, on a straight line between logarithms."""
    before = max((s for s in line.samples if s.length <= at), key=lambda s: s.length)
    after = min((s for s in line.samples if s.length >= at), key=lambda s: s.length)
    if before == after:
        return before.seconds
    share = math.log(at / before.length) / math.log(after.length / before.length)
    return before.seconds * (after.seconds / before.seconds) ** share


def decoding_figure(result: Decoding) -> str:
    """Time of a step and memory held, against context."""
    decoders = [decoder for decoder in result.decoders if decoder.steps]
    if not decoders:
        return ""
    contexts = [step.context for decoder in decoders for step in decoder.steps]
    x = Axis("context length", min(contexts) / 1.15, max(contexts) * 1.15, _powers_of_two(contexts, every=2))
    times = _decades([step.seconds for decoder in decoders for step in decoder.steps], TIME_UNITS)
    sizes = _decades([step.held_bytes for decoder in decoders for step in decoder.steps], SIZE_UNITS)
    by_time, by_size = [], []
    for decoder in decoders:
        start = f"{decoder.name}, context"
        hints = tuple(f"{start} {length(s.context)}: {seconds(s.seconds)}" for s in decoder.steps)
        by_time.append(Trace(look(decoder.name), tuple((s.context, s.seconds) for s in decoder.steps), hints))
        hints = tuple(f"{start} {length(s.context)}: {size(s.held_bytes)}" for s in decoder.steps)
        by_size.append(Trace(look(decoder.name), tuple((s.context, s.held_bytes) for s in decoder.steps), hints))
    panels = (
        Panel("time of one step", x, times, tuple(by_time)),
        Panel("memory held between steps", x, sizes, tuple(by_size)),
    )
    label = "Time and memory of a decoding step against context length, by form"
    return draw(panels, name="decoding", label=label, columns=2, height=310.0)


def real_figure(result: RealAttention) -> str:
    """Error of every head, one panel per network."""
    panels = tuple(_head_panel(subject) for subject in result.subjects)
    return draw(panels, name="real", label="Squared error of every head's output, by what replaces softmax", columns=2)


def _head_panel(subject: Subject) -> Panel:
    mean = subject.of(MEAN, 0)
    shown = [("positive", subject.baseline(subject.best)), ("best", subject.alone), ("near", subject.best)]
    shown += [("plain", mean)] if mean else []
    heads = range(subject.layers * subject.heads)
    ticks = tuple((head, f"{head // subject.heads + 1}.{head % subject.heads + 1}") for head in heads)
    x = Axis("layer.head", -0.5, len(heads) - 0.5, ticks, log=False)
    errors = [error for _, outcome in shown for error in outcome.errors if error > 0] or [1.0]
    low, high = math.floor(math.log10(min(errors))), math.ceil(math.log10(max(errors)))
    low = max(low, high - 6)
    y = Axis("", 10.0**low, 10.0 ** max(high, low + 1), tuple((10.0**e, power(e)) for e in range(low, high + 1)))
    return Panel(subject.title.removeprefix("a "), x, y, tuple(_head_trace(*each) for each in shown))


def triplets_figure(result: Embeddings) -> str:
    """The loss and the shares of triplets while the new network learns by itself."""
    losses, shares, _ = learning_panels(result.records, title="triplets")
    shares = replace(shares, title="share of triplets")
    label = "Loss, and shares of hard, semi-hard and easy triplets, against steps"
    return draw((replace(losses, title="loss"), shares), name="triplets", label=label, columns=2, height=270.0)


def verification_figure(result: Embeddings) -> str:
    """VAL against FAR on digits that were never seen."""
    low = min(point[0] for judged in result.judged for point in judged.curve)
    low = 10.0 ** math.floor(math.log10(max(low, 1e-4)))
    decades = [10.0**exponent for exponent in range(round(math.log10(low)), 1)]
    x = Axis("FAR: different digits taken for the same", low, 1.0, tuple((far, short(far, 1)) for far in decades))
    y = Axis("", 0.0, 1.02, tuple((share, percent(share)) for share in (0.0, 0.25, 0.5, 0.75, 1.0)), log=False)
    curves = [[point for point in judged.curve if point[0] >= low] for judged in result.judged]
    traces = [Trace(each.look, tuple(curve), dots=False) for each, curve in zip(result.judged, curves, strict=True)]
    chance = [low * (1 / low) ** (step / 60) for step in range(61)]
    traces.append(Trace("fixed", tuple((far, far) for far in chance), dots=False, tag="chance", tag_left=True))
    panel = Panel("VAL: same digits accepted", x, y, tuple(traces))
    return draw((panel,), name="verification", label="VAL against FAR on digits never seen, by vectors", height=320.0)


def _head_trace(name: str, outcome: Outcome) -> Trace:
    hints = tuple(f"{outcome.name}: {scientific(error)}" for error in outcome.errors)
    return Trace(name, tuple(enumerate(outcome.errors)), hints, joined=False)


def _powers_of_two(values: Iterable[int | float], *, every: int) -> tuple[tuple[float, str], ...]:
    """Ticks at every so many powers of two in the range of the values: 256, 1k, 4k."""
    values = list(values)
    low, high = math.ceil(math.log2(min(values))), math.floor(math.log2(max(values)))
    ticks = [2**e for e in range(low, high + 1) if (high - e) % every == 0]
    return tuple((float(tick), f"{tick // 1024}k" if tick >= 1024 else str(tick)) for tick in ticks)


def _decades(values: Iterable[int | float], units: dict[int, str]) -> Axis:
    """An axis over the decades of the values, each tick in the unit that suits it."""
    values = list(values)
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    high = max(high, low + 1)
    ticks = []
    for exponent in range(low, high + 1):
        unit = max((u for u in units if u <= exponent), default=min(units))
        ticks.append((10.0**exponent, f"{10 ** (exponent - unit)} {units[unit]}"))
    return Axis("", 10.0**low, 10.0**high, tuple(ticks))
