"""`likewise cost`: what a program costs at given sizes, how that grows, and from which length on another costs less."""

import inspect
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.checks import refuse, require
from likewise.cli.terminal import Context, Json, examples, progress_bar
from likewise.files import function_of
from likewise.text import aligned

if TYPE_CHECKING:
    from likewise.cost import Cost
    from likewise.cost.growth import Growth, Step
    from likewise.programs.networks import Segment

QUANTITIES = {  # each with its title and its unit
    "params": ("parameters", "elements"),
    "macs": ("multiply-adds", "mac"),
    "elementwise": ("elementwise", "results"),
    "traffic": ("traffic", "elements"),
    "fused_traffic": ("traffic, fused", "elements"),
    "copies": ("layout copies", "elements"),
    "peak": ("peak", "elements"),
    "saved": ("saved for backward", "elements"),
}
UNITS = {name: unit for name, (_, unit) in QUANTITIES.items()}
TITLES = {name: f"{title} ({unit})" for name, (title, unit) in QUANTITIES.items()}
WIDTH = max(map(len, TITLES.values()))
LEGEND = "A mac is one multiply-add, 2 flop. An element is one number: 4 bytes in float32."
WON = ("macs", "traffic")  # quantities of which the break-even is shown
BY_STEP = ("macs", "elementwise", "traffic")
LENGTHS = ("T", "N", "n", "S")
NETWORKS = "networks"
YARDSTICK = "resnet50.v1_5"
LINE = 56  # characters of a source line that are shown

COST_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}  # every program has sizes of its own
COST_EXAMPLES = examples(
    "likewise cost networks",
    "likewise cost nn1 --compare nn2 --compare nns1",
    "likewise cost nn2 --steps",
    "likewise cost mqa_step --b 8 --n 4096 --h 16 --k 64 --v 64 --d 1024",
    "likewise cost softmax --steps",
    "likewise cost random_features --D 64 --M 64 --R 100 --compare softmax",
    "likewise cost model.py:step --batch 32 --operations",
)


def show_cost(
    context: Context,
    program: Annotated[
        str, typer.Argument(help="A registered program, file.py:function, or networks for all of them.")
    ],
    compare: Annotated[
        list[str] | None, typer.Option(help="Another program, shown beside it; may be repeated.")
    ] = None,
    over: Annotated[str | None, typer.Option(help="The length of the break-even; N or n unless given.")] = None,
    streamed: Annotated[bool, typer.Option("--streamed", help="The variant that needs less memory.")] = False,
    steps: Annotated[bool, typer.Option("--steps", help="Show which step costs what.")] = False,
    operations: Annotated[bool, typer.Option("--operations", help="Show every kind of operation.")] = False,
    as_json: Json = False,
) -> None:
    """Count multiply-adds, traffic and memory of a program, exactly. Sizes are options: --N 1024 --D 64.

    A function of a file is called with the sizes and returns a program followed by its inputs.
    """
    sizes = _sizes(context.args)
    names = [program, *(compare or [])]
    if program == NETWORKS:
        require(not compare and not sizes, "cost", NETWORKS, "stand alone", " ".join(names[1:] + context.args))
        names = _networks()
    resolved = [_program(name, streamed) for name in names]
    unknown = sorted(sizes.keys() - {size for _, known, _ in resolved for size in known})
    rule = "be " + " or ".join(f"{', '.join(known) or 'none'} for {name}" for name, known, _ in resolved)
    require(not unknown, "cost", "sizes", rule, ", ".join(unknown))
    with progress_bar() as progress:
        counted = []
        for number, found in enumerate(resolved):
            progress(number / len(resolved), found[0])
            counted.append(_Counted(*found, sizes, steps))
    if program == NETWORKS:
        print(json.dumps({"programs": [one.to_json() for one in counted]}) if as_json else _network_table(counted))
        return
    won = [win for other in counted[1:] for win in _break_evens(counted[0], other, sizes, over)]
    if as_json:
        print(json.dumps({"programs": [one.to_json() for one in counted], "break_even": won, "units": UNITS}))
        return
    shown = [_counts(counted), _polynomials(counted), _wins(counted, won, sizes)]
    shown += [one.step_table() for one in counted if steps]
    shown += [_operations(one) for one in counted if operations]
    print("\n\n".join(filter(None, [*shown, LEGEND])))


class _Counted:
    """A program at the sizes that were given: its cost, if they are all there, and its polynomials, if it has any."""

    def __init__(
        self, name: str, known: tuple[str, ...], make: Callable[..., Any], sizes: dict[str, int], with_steps: bool
    ) -> None:
        from likewise.cost import NotPolynomial, cost, cost_polynomial, cost_steps
        from likewise.programs.networks import segments

        self.name, self.sizes = name, known
        self.at = {size: sizes[size] for size in known if size in sizes}
        self.cost: Cost | None = cost(*make(**self.at)) if len(self.at) == len(known) else None
        self.growth: Growth | None = None
        if known:
            try:
                self.growth = cost_polynomial(make, known)
            except NotPolynomial as error:
                if self.cost is None:
                    raise
                print(f"likewise: {error}", file=sys.stderr)
        self.segments: tuple[Segment, ...] = segments(name) if with_steps and not known and ".py:" not in name else ()
        self.steps: tuple[Step, ...] = cost_steps(make, known) if with_steps and not self.segments else ()

    def to_json(self) -> dict[str, Any]:
        counts = {name: getattr(self.cost, name) for name in QUANTITIES} if self.cost else None
        polynomials = {name: self.growth.text(name) for name in QUANTITIES} if self.growth else None
        runs = self.growth.runs if self.growth else None
        found = {"name": self.name, "sizes": self.at, "cost": counts, "polynomials": polynomials, "runs": runs}
        if self.segments:
            found["steps"] = [vars(segment) for segment in self.segments]
        if self.steps:
            found["steps"] = [
                {"operation": step.operation, "place": step.place, "source": step.source}
                | {name: getattr(step, name).text(self.sizes) for name in BY_STEP}
                for step in self.steps
            ]
        return found

    def step_table(self) -> str:
        """Which step costs what: polynomials, numbers where every size is given, and of a network its segments."""
        if self.segments:
            heading = [f"segments of {self.name}", "gives", *(TITLES[name] for name in ("params", *BY_STEP))]
            rows = [
                [
                    part.name,
                    " x ".join(map(str, part.shape)),
                    *(f"{getattr(part, name):,}" for name in ("params", *BY_STEP)),
                ]
                for part in self.segments
            ]
            return aligned([heading, *rows])
        rows, line = [], ""
        for step in self.steps:
            again, line = step.source == line, step.source
            text = '"' if again and line else line[:LINE] or step.place
            rows.append([text, step.operation, *(self._text(getattr(step, name)) for name in BY_STEP)])
        return aligned([[f"steps of {self.name}", "operation", *(TITLES[name] for name in BY_STEP)], *rows])

    def _text(self, polynomial: Any) -> str:
        return f"{int(polynomial.evaluate(self.at)):,}" if self.cost else polynomial.text(self.sizes)


def _sizes(arguments: list[str]) -> dict[str, int]:
    """--N 8 or --N=8, for any name."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    sizes = {}
    for option, number in zip(words[::2], [*words[1::2], *[""] * (len(words) % 2)], strict=True):
        name = option.removeprefix("--")
        require(option.startswith("--") and name.isidentifier(), "cost", "sizes", "be options such as --N 8", option)
        whole = number.isascii() and number.isdigit() and int(number) >= 1
        require(whole, "cost", option, "be a whole number of at least 1", repr(number))
        require(name not in sizes, "cost", option, "be given once", f"{sizes.get(name)} and {number}")
        sizes[name] = int(number)
    return sizes


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


def _networks() -> list[str]:
    """Programs without sizes."""
    from likewise.claims.registry import programs

    return [name for name, found in programs().items() if found.makes and not found.sizes]


def _network_table(counted: list[_Counted]) -> str:
    """All networks, the largest first, each beside ResNet-50."""
    yardstick = next(one.cost for one in counted if one.name == YARDSTICK)
    assert yardstick is not None
    shown = ("params", "macs", "elementwise", "traffic", "peak")
    rows = []
    for one in sorted(counted, key=lambda one: -one.cost.macs if one.cost else 0):
        assert one.cost is not None
        share = f"{100 * one.cost.macs / yardstick.macs:.3g} %"
        rows.append([one.name, *(f"{getattr(one.cost, name):,}" for name in shown), share])
    heading = ["network, one image", *(TITLES[name] for name in shown), f"mac of {YARDSTICK}"]
    return f"{aligned([heading, *rows])}\n\n{LEGEND}"


def _break_evens(first: _Counted, second: _Counted, sizes: dict[str, int], over: str | None) -> list[dict[str, Any]]:
    """From which length on one of two programs costs less; nothing, if they share no length or sizes are missing."""
    from likewise.cost import break_even

    shared = [name for name in first.sizes if name in second.sizes]
    length = over or next((name for name in LENGTHS if name in shared), None)
    require(over is None or over in shared, "cost", "--over", f"be a size of both, {', '.join(shared)}", repr(over))
    rest = {*first.sizes, *second.sizes} - {length}
    if length is None or first.growth is None or second.growth is None or not rest <= sizes.keys():
        return []
    found = {}
    for quantity in WON:
        at = {name: sizes[name] for name in rest}
        found[quantity] = break_even(first.growth.of(quantity), second.growth.of(quantity), over=length, at=at)
    names = {"a": first.name, "b": second.name, None: None}
    against = {"a": second.name, "b": first.name, None: second.name}
    return [
        {
            "quantity": quantity,
            "over": length,
            "cheaper": names[one.cheaper],
            "than": against[one.cheaper],
            "from": one.start,
        }
        for quantity, one in found.items()
    ]


def _wins(counted: list[_Counted], won: list[dict[str, Any]], sizes: dict[str, int]) -> str:
    """The break-evens in words, or what is missing to find them."""
    missing = sorted({name for one in counted for name in one.sizes} - sizes.keys())
    if len(counted) > 1 and not won and len(missing) > 1:
        return f"Give all of {', '.join(missing)} but a length to see from where on one costs less."
    return "\n".join(
        f"{QUANTITIES[win['quantity']][0]}: "
        + (
            f"{win['cheaper']} costs less than {win['than']} from {win['over']}={win['from']} on"
            if win["cheaper"]
            else f"the same as {win['than']}"
        )
        for win in won
    )


def _counts(counted: list[_Counted]) -> str:
    """What can be counted at the sizes given, programs side by side, without what none of them has."""
    if not any(one.cost for one in counted):
        return ""
    heading = ["", *(" ".join([one.name, *(f"{name}={size}" for name, size in one.at.items())]) for one in counted)]
    rows = []
    for quantity, title in TITLES.items():
        counts = [getattr(one.cost, quantity) if one.cost else 0 for one in counted]
        if any(counts):
            rows.append([title.ljust(WIDTH), *(f"{count:,}" for count in counts)])
    return aligned([heading, *rows])


def _polynomials(counted: list[_Counted]) -> str:
    """How each quantity grows, and what that rests on."""
    blocks = []
    for one in counted:
        if one.growth:
            texts = {title: one.growth.text(quantity) for quantity, title in TITLES.items()}
            rows = [f"{title.ljust(WIDTH)}  {text}" for title, text in texts.items() if text != "0"]
            basis = f"fitted to {one.growth.grid} runs, confirmed by {one.growth.hold_outs} runs at larger sizes"
            blocks.append("\n".join([f"{one.name}, exact in {', '.join(one.sizes)}: {basis}", *rows]))
    return "\n\n".join(blocks)


def _operations(one: _Counted) -> str:
    """How often each operation ran and what it cost in all."""
    if one.cost is None:
        return f"{one.name}: give every size to see its operations"
    kinds: dict[str, list[int]] = {}
    for operation in one.cost.operations:
        row = (1, operation.macs, operation.elementwise, operation.traffic)
        kinds[operation.name] = [a + b for a, b in zip(kinds.get(operation.name, [0] * 4), row, strict=True)]
    heading = [one.name, "times", *(TITLES[name] for name in BY_STEP)]
    ranked = sorted(kinds.items(), key=lambda kind: (-kind[1][1], -kind[1][3]))
    return aligned([heading, *([name, *(f"{count:,}" for count in counts)] for name, counts in ranked)])
