"""How a cost grows: exact polynomials in the sizes of a program, and the length from which one program costs less."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from itertools import product
from typing import Any

from likewise.checks import refuse, require, require_choice
from likewise.cost.counting import Cost, Operation, cost
from likewise.polynomial import Polynomial, interpolate

QUANTITIES = ("params", "macs", "elementwise", "traffic", "fused_traffic", "copies", "peak", "saved")
STEP_QUANTITIES = ("macs", "elementwise", "traffic")
START = 2  # the smallest size of a run; at 1 axes vanish and operations are spared
HOLD_OUTS = 4
HIGHEST = 4  # degree in one size
MOST_RUNS = 2_000

Point = tuple[int, ...]
Series = Mapping[Point, int]
Event = tuple[str, int]  # the name of an operation and its path: one step of a program


class NotPolynomial(ValueError):
    """Counts that no polynomial of a low degree explains."""


@dataclass(frozen=True)
class Growth:
    """The cost of a program as polynomials in its sizes, confirmed on sizes that they were not made from."""

    sizes: tuple[str, ...]
    polynomials: Mapping[str, tuple[Polynomial, ...]] = field(repr=False)  # of a peak several, of others one
    grid: int  # runs that the polynomials were made from
    hold_outs: int  # runs at larger sizes that confirm them

    def of(self, quantity: str) -> Polynomial:
        """The polynomial of one quantity."""
        return self._fitted(quantity)[0]

    @property
    def params(self) -> Polynomial:
        return self.of("params")

    @property
    def macs(self) -> Polynomial:
        return self.of("macs")

    @property
    def flops(self) -> Polynomial:
        return 2 * self.macs

    @property
    def elementwise(self) -> Polynomial:
        return self.of("elementwise")

    @property
    def traffic(self) -> Polynomial:
        return self.of("traffic")

    @property
    def fused_traffic(self) -> Polynomial:
        return self.of("fused_traffic")

    @property
    def copies(self) -> Polynomial:
        return self.of("copies")

    @property
    def saved(self) -> Polynomial:
        return self.of("saved")

    @property
    def peak(self) -> tuple[Polynomial, ...]:
        """The moments that none other always exceeds, in the order in which they come: the peak is their maximum."""
        return self._fitted("peak")

    def text(self, quantity: str) -> str:
        """As people write it: `N^2*D + N^2*M`, and of a peak with several moments `max(..., ...)`."""
        texts = [polynomial.text(self.sizes) for polynomial in self._fitted(quantity)]
        return texts[0] if len(texts) == 1 else f"max({', '.join(texts)})"

    @property
    def runs(self) -> str:
        """How many runs this rests on: those of the grid, and those that confirm."""
        return f"{self.grid}+{self.hold_outs} runs"

    def _fitted(self, quantity: str) -> tuple[Polynomial, ...]:
        require_choice("Growth", "quantity", quantity, tuple(self.polynomials))
        return self.polynomials[quantity]


def cost_polynomial(
    make: Callable[..., Any], sizes: Iterable[str], *, quantities: Iterable[str] = QUANTITIES
) -> Growth:
    """The exact cost as polynomials in the sizes: `make(N=2, D=3)` returns what `cost` takes, a program and its inputs.

    Runs on a grid from size 2 determine the polynomials, of degree 1 in each size at first; four runs at sizes from 6
    to 12 must confirm them, or degrees are raised, up to 4; then `NotPolynomial`. A branch at still larger sizes is not
    excluded. Runs that only showed which degree to raise are not counted in `runs`.

    >>> import torch
    >>> def attention(N, D, M):
    ...     return lambda q, k, v: (q @ k.T).softmax(-1) @ v, torch.empty(N, D), torch.empty(N, D), torch.empty(N, M)
    >>> growth = cost_polynomial(attention, ["N", "D", "M"])
    >>> growth.text("macs"), growth.text("elementwise"), growth.runs
    ('N^2*D + N^2*M', 'N^2', '12+4 runs')
    >>> growth.text("peak")
    'max(2*N^2 + 2*N*D + N*M, N^2 + 2*N*D + 2*N*M)'
    """
    sizes, quantities = tuple(sizes), tuple(quantities)
    for quantity in quantities:
        require_choice("cost_polynomial", "quantities", quantity, QUANTITIES)
    fitted, grid = _grown(_Runs(make, sizes), quantities)
    peaks = {"peak": undominated(fitted["peak"])} if "peak" in fitted else {}
    return Growth(sizes, {**fitted, **peaks}, grid, HOLD_OUTS)


@dataclass(frozen=True)
class Step:
    """One operation of a program, all turns of a loop together, and what it costs as polynomials in the sizes."""

    operation: str
    place: str  # file and line of the program
    source: str  # the text of that line
    macs: Polynomial
    elementwise: Polynomial
    traffic: Polynomial


def cost_steps(make: Callable[..., Any], sizes: Iterable[str]) -> tuple[Step, ...]:
    """Which step costs what: the operations of a program in their order, each with its exact polynomials.

    They add up to those of `cost_polynomial`, and `make` is the same.

    >>> import torch
    >>> def attention(N, D, M):
    ...     return lambda q, k, v: (q @ k.T).softmax(-1) @ v, torch.empty(N, D), torch.empty(N, D), torch.empty(N, M)
    >>> for step in cost_steps(attention, ["N", "D", "M"]):
    ...     print(step.operation, step.macs.text("NDM"), step.elementwise.text("NDM"))
    mm N^2*D 0
    _softmax 0 N^2
    mm N^2*M 0
    """
    runs = _Runs(make, tuple(sizes))
    first = {_event(operation): operation for operation in reversed(runs((START,) * len(runs.sizes)).operations)}
    counts = [(event, quantity) for event in reversed(first) for quantity in STEP_QUANTITIES]
    fitted, _ = _grown(runs, counts)
    if any({_event(operation) for operation in found.operations} != first.keys() for found in runs.done.values()):
        refuse("cost_steps", "make", "run the same steps at every size", "others", error=NotPolynomial)
    return tuple(
        Step(
            operation.name.split(".")[1],  # aten.mm.default
            operation.place,
            operation.source,
            *(fitted[event, quantity][0] for quantity in STEP_QUANTITIES),
        )
        for event, operation in reversed(first.items())
    )


def _grown(runs: "_Runs", quantities: Sequence[Any]) -> tuple[dict[Any, tuple[Polynomial, ...]], int]:
    """Polynomials of each quantity, of the least degrees that the larger runs confirm, and the runs of the grid."""
    sizes = runs.sizes
    degrees = [1] * len(sizes)
    confirm = [tuple(6 + (2 * i + 3 * j) % 7 for j in range(len(sizes))) for i in range(HOLD_OUTS)]
    while True:
        grid = list(product(*(range(START, START + degree + 1) for degree in degrees)))
        require(len(grid) <= MOST_RUNS, "cost_polynomial", "sizes", f"need at most {MOST_RUNS} runs", len(grid))
        series = {quantity: runs.series(quantity, grid + confirm) for quantity in quantities}
        fitted = {quantity: _fit(several, sizes, degrees) for quantity, several in series.items()}
        wrong = [quantity for quantity in quantities if not _agree(fitted[quantity], series[quantity], sizes, confirm)]
        if not wrong:
            return fitted, len(grid)
        degrees = _raised(degrees, runs, wrong)


class _Runs:
    """Every size is run once."""

    def __init__(self, make: Callable[..., Any], sizes: tuple[str, ...]) -> None:
        self.make, self.sizes = make, sizes
        self.done: dict[Point, Cost] = {}

    def __call__(self, point: Point) -> Cost:
        if point not in self.done:
            self.done[point] = cost(*self.make(**dict(zip(self.sizes, point, strict=True))))
        return self.done[point]

    def series(self, quantity: "str | tuple[Event, str]", points: list[Point]) -> list[Series]:
        """A quantity at every point, or that of one step; of a peak, what is alive after each event of the program."""
        costs = {point: self(point) for point in points}
        if not isinstance(quantity, str):
            step, name = quantity
            return [{point: _of_step(found, step, name) for point, found in costs.items()}]
        if quantity != "peak":
            return [{point: getattr(found, quantity) for point, found in costs.items()}]
        timelines = {point: _timeline(found) for point, found in costs.items()}
        if len({tuple(timeline) for timeline in timelines.values()}) > 1:
            timelines = {point: _timeline(found, by_place=True) for point, found in costs.items()}
        first, *others = [timeline.keys() for timeline in timelines.values()]
        if any(first != other for other in others):
            refuse("cost_polynomial", "peak", "have the same events at every size", "others", error=NotPolynomial)
        return [{point: timeline[event] for point, timeline in timelines.items()} for event in first]


def _timeline(found: Cost, by_place: bool = False) -> dict[Any, int]:
    """What is alive after each operation; by place, the most after any turn of a loop through it."""
    live: dict[Any, int] = {}
    for number, operation in enumerate(found.operations):
        event = operation.name, operation.path if by_place else number
        live[event] = max(operation.live, live.get(event, 0))
    return live or {"inputs": found.peak}


def _event(operation: Operation) -> Event:
    return operation.name, operation.path


def _of_step(found: Cost, step: Event, quantity: str) -> int:
    return sum(getattr(operation, quantity) for operation in found.operations if _event(operation) == step)


def _fit(several: list[Series], sizes: tuple[str, ...], degrees: list[int]) -> tuple[Polynomial, ...]:
    return tuple(
        interpolate(lambda at, values=values: values[tuple(at.values())], sizes, degrees, START) for values in several
    )


def _agree(fitted: tuple[Polynomial, ...], several: list[Series], sizes: tuple[str, ...], points: list[Point]) -> bool:
    return all(
        polynomial.evaluate(dict(zip(sizes, point, strict=True))) == values[point]
        for polynomial, values in zip(fitted, several, strict=True)
        for point in points
    )


def _raised(degrees: list[int], runs: _Runs, wrong: list[Any]) -> list[int]:
    """One more for each size along which a quantity, the others at their smallest, has a higher degree."""
    raised = list(degrees)
    for axis, degree in enumerate(degrees):
        line = [(*[START] * axis, START + step, *[START] * (len(degrees) - axis - 1)) for step in range(degree + 2)]
        for quantity in wrong:
            for values in runs.series(quantity, line):
                polynomial = interpolate(lambda at, v=values, p=line: v[p[at["step"]]], ["step"], [degree + 1], 0)
                if polynomial.degree > degree:
                    raised[axis] = degree + 1
    if raised == degrees:
        raised = [degree + 1 for degree in degrees]
    if max(raised) > HIGHEST:
        rule = f"be polynomials of degree at most {HIGHEST} in each of {', '.join(runs.sizes)}"
        refuse("cost_polynomial", "counts", rule, f"others for {', '.join(map(str, wrong))}", error=NotPolynomial)
    return raised


def undominated(events: Iterable[Polynomial]) -> tuple[Polynomial, ...]:
    """Those that no other one certainly reaches at all sizes of at least 1, each once, in their order."""
    distinct = list(dict.fromkeys(events))
    return tuple(p for p in distinct if not any(q != p and never_less(q, p) for q in distinct))


def never_less(p: Polynomial, q: Polynomial) -> bool:
    """Whether p - q has no negative coefficient in sizes counted from 1, which proves p >= q at all of them.

    >>> n = Polynomial.variable("N")
    >>> never_less(n**2, n), never_less(n, n**2)
    (True, False)
    """
    difference = p - q
    from_one = difference.substitute({name: Polynomial.variable(name) + 1 for name in difference.variables})
    return all(value >= 0 for value in from_one.terms.values())


@dataclass(frozen=True)
class BreakEven:
    """From a length on, one of two programs always costs less."""

    over: str
    start: int | None
    cheaper: str | None  # "a" or "b"; None if they always cost the same

    def __str__(self) -> str:
        if self.cheaper is None:
            return f"a and b cost the same at every {self.over}"
        return f"{self.cheaper} costs less from {self.over}={self.start} on"


def break_even(
    a: Polynomial, b: Polynomial, *, over: str = "T", at: Mapping[str, int | Fraction] | None = None
) -> BreakEven:
    """The first whole length from which a, or b, costs strictly less at every greater one too; exact.

    at: the other sizes.

    >>> n, r, d = map(Polynomial.variable, "NRD")
    >>> softmax, linear = 2 * n**2 * d, 6 * n * r * d + 2 * n * r
    >>> print(break_even(linear, softmax, over="N", at={"D": 64, "R": 100}))  # (600 * 64 + 200) / 128 = 301.6
    a costs less from N=302 on
    """
    difference = b.substitute(at or {}) - a.substitute(at or {})
    rest = sorted(difference.variables - {over})
    require(not rest, "break_even", "at", f"give every size but {over}", f"nothing for {', '.join(rest)}")
    values = [part.coefficient() for part in difference.coefficients(over)]
    if values == [0]:
        return BreakEven(over, None, None)
    sign = 1 if values[-1] > 0 else -1
    changes = sign_changes([sign * value for value in values])
    return BreakEven(over, changes[-1] if changes else 1, "a" if sign > 0 else "b")


def sign_changes(values: list[Fraction]) -> list[int]:
    """The whole t > 1 at which `p(t) > 0` is not what it was at t - 1; p by its coefficients, constant first.

    Where p(t + 1) - p(t), of a lower degree, keeps its sign, p is monotone and a bisection finds the only change.

    >>> sign_changes([Fraction(6), Fraction(-5), Fraction(1)])  # (t - 2)(t - 3) is 2, 0, 0, 2 at 1, 2, 3, 4
    [2, 4]
    """
    if len(values) == 1:
        return []
    line = Polynomial({(("t", power),) if power else (): value for power, value in enumerate(values)})

    def positive(t: int) -> bool:
        return line.evaluate({"t": t}) > 0

    step = line.substitute({"t": Polynomial.variable("t") + 1}) - line
    turns = [1, *sign_changes([part.coefficient() for part in step.coefficients("t")])]
    last = turns[-1]
    while positive(last) != (values[-1] > 0):  # beyond the last turn p moves towards the sign of its first term
        last *= 2
    found = []
    for low, high in zip(turns, [*turns[1:], last], strict=True):
        if positive(low) != positive(high):
            while high - low > 1:
                middle = (low + high) // 2
                low, high = (middle, high) if positive(middle) == positive(low) else (low, middle)
            found.append(high)
    return found
