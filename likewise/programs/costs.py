"""What `likewise cost` does, as one call: programs counted at sizes, how they grow, and where one costs less.

It stands here because programs are found by the names that claims know; the counting itself is `likewise.cost`.
"""

import inspect
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from likewise.checks import refuse, require
from likewise.files import function_of
from likewise.progress import Progress, silent

if TYPE_CHECKING:  # loaded when something is counted: the command's help answers at once
    from likewise.cost import Cost
    from likewise.cost.growth import Growth, Step
    from likewise.programs.networks import Segment

UNITS = {
    "params": "elements",
    "macs": "mac",
    "elementwise": "results",
    "traffic": "elements",
    "fused_traffic": "elements",
    "copies": "elements",
    "peak": "elements",
    "saved": "elements",
}
WON = ("macs", "traffic")  # quantities of which the break-even is found
BY_STEP = ("macs", "elementwise", "traffic")
LENGTHS = ("T", "N", "n", "S")
NETWORKS = "networks"


@dataclass(frozen=True, kw_only=True)
class CostJob:
    """What to count.

    programs: registered names, file.py:function, or "networks" alone for all of them; each is compared with the first.
    sizes: by name; without all of a program's sizes it has no numbers, only polynomials. over: the length of the
    break-even. streamed: the variant that needs less memory. steps: which step costs what, too.
    """

    programs: tuple[str, ...]
    sizes: Mapping[str, int] = field(default_factory=dict)
    over: str | None = None
    streamed: bool = False
    steps: bool = False


@dataclass(frozen=True, eq=False)
class Counted:
    """A program: its cost, if every size is given, and its polynomials, if it has any; `note` says why it has none."""

    name: str
    sizes: tuple[str, ...]
    at: Mapping[str, int]
    cost: "Cost | None"
    growth: "Growth | None"
    segments: tuple["Segment", ...] = ()
    steps: tuple["Step", ...] = ()
    note: str = ""

    def to_json(self) -> dict[str, Any]:
        """Numbers, and polynomials as text."""
        counts = {name: getattr(self.cost, name) for name in UNITS} if self.cost else None
        polynomials = {name: self.growth.text(name) for name in UNITS} if self.growth else None
        runs = self.growth.runs if self.growth else None
        found = {"name": self.name, "sizes": dict(self.at), "cost": counts, "polynomials": polynomials, "runs": runs}
        if self.segments:
            found["steps"] = [vars(segment) for segment in self.segments]
        if self.steps:
            found["steps"] = [
                {"operation": step.operation, "place": step.place, "source": step.source}
                | {name: getattr(step, name).text(self.sizes) for name in BY_STEP}
                for step in self.steps
            ]
        return found


@dataclass(frozen=True)
class Win:
    """From which length on one program costs less than another; `cheaper` is None where they cost the same."""

    quantity: str
    over: str
    cheaper: str | None
    than: str
    start: int | None

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        return {("from" if name == "start" else name): value for name, value in asdict(self).items()}


@dataclass(frozen=True, eq=False)
class Costs:
    """Programs side by side. missing: sizes that were not given."""

    programs: tuple[Counted, ...]
    wins: tuple[Win, ...]
    missing: tuple[str, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        listed = [one.to_json() for one in self.programs]
        return {"programs": listed, "break_even": [win.to_json() for win in self.wins], "units": UNITS}


def run_cost_job(job: CostJob, *, progress: Progress = silent) -> Costs:
    """Count the programs of a job at its sizes.

    >>> found = run_cost_job(CostJob(programs=("attention.softmax",), sizes={"N": 4, "D": 2, "M": 3}))
    >>> found.programs[0].cost.macs, found.missing  # N^2 D + N^2 M
    (80, ())
    """
    from likewise.claims.registry import programs

    names = list(job.programs)
    if NETWORKS in names[:1]:
        alone = len(names) == 1 and not job.sizes
        given = " ".join([*names[1:], *(f"--{name} {size}" for name, size in job.sizes.items())])
        require(alone, "cost", NETWORKS, "stand alone", given)
        names = [name for name, found in programs().items() if found.makes and not found.sizes]
    resolved = [_program(name, job.streamed) for name in names]
    unknown = sorted(job.sizes.keys() - {size for _, known, _ in resolved for size in known})
    rule = "be " + " or ".join(f"{', '.join(known) or 'none'} for {name}" for name, known, _ in resolved)
    require(not unknown, "cost", "sizes", rule, ", ".join(unknown))
    counted = []
    for number, (name, known, make) in enumerate(resolved):
        progress(number / len(resolved), name)
        counted.append(_counted(name, known, make, job))
    wins = (
        [] if job.programs[0] == NETWORKS else [win for other in counted[1:] for win in _wins(counted[0], other, job)]
    )
    missing = {name for one in counted for name in one.sizes} - job.sizes.keys()
    return Costs(tuple(counted), tuple(wins), tuple(sorted(missing)))


def _counted(name: str, known: tuple[str, ...], make: Callable[..., Any], job: CostJob) -> Counted:
    from likewise.cost import NotPolynomial, cost, cost_polynomial, cost_steps
    from likewise.programs.networks import segments

    at = {size: job.sizes[size] for size in known if size in job.sizes}
    found = cost(*make(**at)) if len(at) == len(known) else None
    growth, note = None, ""
    if known:
        try:
            growth = cost_polynomial(make, known)
        except NotPolynomial as error:
            if found is None:
                raise
            note = str(error)
    parts = segments(name) if job.steps and not known and ".py:" not in name else ()
    steps = tuple(cost_steps(make, known)) if job.steps and not parts else ()
    return Counted(name, known, at, found, growth, parts, steps, note)


def _program(text: str, streamed: bool) -> tuple[str, tuple[str, ...], Callable[..., Any]]:
    """The full name, the sizes, and what makes a program and its inputs from them."""
    if ".py:" in text:
        require(not streamed, "cost", "--streamed", "be for registered programs", text)
        function = function_of(text, "cost", "program")
        return text, tuple(inspect.signature(function).parameters), function
    from likewise.claims.registry import programs

    known = programs()
    whole = [name for name in known if name == text]
    ends = [name for name in known if name.endswith(f".{text}")]
    starts = [name for name in known if name.startswith(f"{text}.")]
    [name, *_] = [*whole, *ends, *(starts if text == "resnet50" else []), ""]
    if not name:
        hint = f"There are {', '.join(n for n, p in known.items() if p.variants)}."
        refuse("cost", "program", "be a registered program or file.py:function", repr(text), hint)
    found = known[name]
    return name, found.sizes, found.make("streamed" if streamed else "materialised")


def _wins(first: Counted, second: Counted, job: CostJob) -> list[Win]:
    """From which length on one of two programs costs less; nothing, if they share no length or sizes are missing."""
    from likewise.cost import break_even

    shared = [name for name in first.sizes if name in second.sizes]
    length = job.over or next((name for name in LENGTHS if name in shared), None)
    rule = f"be a size of both, {', '.join(shared)}"
    require(job.over is None or job.over in shared, "cost", "--over", rule, repr(job.over))
    rest = {*first.sizes, *second.sizes} - {length}
    if length is None or first.growth is None or second.growth is None or not rest <= job.sizes.keys():
        return []
    names: dict[str | None, str | None] = {"a": first.name, "b": second.name, None: None}
    against: dict[str | None, str] = {"a": second.name, "b": first.name, None: second.name}
    found = []
    for quantity in WON:
        at = {name: job.sizes[name] for name in rest}
        one = break_even(first.growth.of(quantity), second.growth.of(quantity), over=length, at=at)
        found.append(Win(quantity, length, names[one.cheaper], against[one.cheaper], one.start))
    return found
