"""`likewise cost`: what a program costs at given sizes, how that grows, and from which length on another costs less."""

import inspect
import json
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.checks import refuse, require
from likewise.cli.terminal import Context, Json, examples, function_of, progress_bar
from likewise.text import aligned

if TYPE_CHECKING:
    from likewise.cost import Cost, Growth

QUANTITIES = {
    "params": "parameters",
    "macs": "multiply-adds",
    "elementwise": "elementwise",
    "traffic": "traffic",
    "fused_traffic": "traffic, fused",
    "copies": "layout copies",
    "peak": "peak",
    "saved": "saved for backward",
}
TITLE = max(map(len, QUANTITIES.values()))
WON = ("macs", "traffic")  # quantities of which the break-even is shown
LENGTHS = ("T", "N", "n", "S")

COST_SETTINGS = {"allow_extra_args": True, "ignore_unknown_options": True}  # every program has sizes of its own
COST_EXAMPLES = examples(
    "likewise cost nn2",
    "likewise cost resnet50 --compare resnet50.v1_5",
    "likewise cost mqa_step --b 8 --n 4096 --h 16 --k 64 --d 1024",
    "likewise cost random_features --D 64 --M 64 --R 100 --compare softmax",
    "likewise cost model.py:step --batch 32 --operations",
)


def show_cost(
    context: Context,
    program: Annotated[str, typer.Argument(help="A registered program, or file.py:function.")],
    compare: Annotated[str | None, typer.Option(help="Another program, shown beside it.")] = None,
    over: Annotated[str | None, typer.Option(help="The length of the break-even; N or n unless given.")] = None,
    streamed: Annotated[bool, typer.Option("--streamed", help="The variant that needs less memory.")] = False,
    operations: Annotated[bool, typer.Option("--operations", help="Show every kind of operation.")] = False,
    as_json: Json = False,
) -> None:
    """Count multiply-adds, traffic and memory of a program, exactly. Sizes are options: --N 1024 --D 64.

    A function of a file is called with the sizes and returns a program followed by its inputs.
    """
    sizes = _sizes(context.args)
    with progress_bar() as progress:
        counted = []
        for number, name in enumerate([program, *([compare] if compare else [])]):
            progress(number / 2, name)
            counted.append(_Counted(name, sizes, streamed))
    known = {name for one in counted for name in one.sizes}
    unknown = sorted(sizes.keys() - known)
    require(not unknown, "cost", "sizes", f"be of {' or '.join(one.name for one in counted)}", ", ".join(unknown))
    won = _break_evens(counted, sizes, over) if compare else []
    if as_json:
        print(json.dumps({"programs": [one.to_json() for one in counted], "break_even": won}))
        return
    shown = [_counts(counted), _polynomials(counted), _wins(counted, won, sizes)]
    print("\n\n".join(filter(None, shown)))
    if operations:
        for one in counted:
            print(f"\n{_operations(one)}")


class _Counted:
    """A program at the sizes that were given: its cost, if they are all there, and its polynomials, if it has any."""

    def __init__(self, text: str, sizes: dict[str, int], streamed: bool) -> None:
        from likewise.cost import NotPolynomial, cost, cost_polynomial

        self.name, self.sizes, make = _program(text, streamed)
        self.at = {name: sizes[name] for name in self.sizes if name in sizes}
        self.cost: Cost | None = cost(*make(**self.at)) if len(self.at) == len(self.sizes) else None
        self.growth: Growth | None = None
        if self.sizes:
            try:
                self.growth = cost_polynomial(make, self.sizes)
            except NotPolynomial as error:
                if self.cost is None:
                    raise
                print(f"likewise: {error}", file=sys.stderr)

    def to_json(self) -> dict[str, Any]:
        counts = {name: getattr(self.cost, name) for name in QUANTITIES} if self.cost else None
        polynomials = {name: self.growth.text(name) for name in QUANTITIES} if self.growth else None
        runs = self.growth.runs if self.growth else None
        return {"name": self.name, "sizes": self.at, "cost": counts, "polynomials": polynomials, "runs": runs}


def _sizes(arguments: list[str]) -> dict[str, int]:
    """--N 8 or --N=8, for any name."""
    words = [word for argument in arguments for word in argument.split("=", 1)]
    sizes = {}
    for option, number in zip(words[::2], [*words[1::2], *[""] * (len(words) % 2)], strict=True):
        name = option.removeprefix("--")
        require(option.startswith("--") and name.isidentifier(), "cost", "sizes", "be options such as --N 8", option)
        whole = number.isascii() and number.isdigit() and int(number) >= 1
        require(whole, "cost", option, "be a whole number of at least 1", repr(number))
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


def _break_evens(counted: list[_Counted], sizes: dict[str, int], over: str | None) -> list[dict[str, Any]]:
    """From which length on one of two programs costs less; nothing, if they share no length or sizes are missing."""
    from likewise.cost import break_even

    first, second = counted
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
    return [
        {"quantity": quantity, "over": length, "cheaper": names[one.cheaper], "from": one.start}
        for quantity, one in found.items()
    ]


def _wins(counted: list[_Counted], won: list[dict[str, Any]], sizes: dict[str, int]) -> str:
    """The break-evens in words, or what is missing to find them."""
    missing = sorted({name for one in counted for name in one.sizes} - sizes.keys())
    if len(counted) == 2 and not won and len(missing) > 1:
        return f"Give all of {', '.join(missing)} but a length to see from where on one costs less."
    return "\n".join(
        f"{QUANTITIES[win['quantity']]}: "
        + (f"{win['cheaper']} costs less from {win['over']}={win['from']} on" if win["cheaper"] else "the same")
        for win in won
    )


def _counts(counted: list[_Counted]) -> str:
    """What can be counted at the sizes given, programs side by side, without what none of them has."""
    if not any(one.cost for one in counted):
        return ""
    heading = ["", *(" ".join([one.name, *(f"{name}={size}" for name, size in one.at.items())]) for one in counted)]
    rows = []
    for quantity, title in QUANTITIES.items():
        counts = [getattr(one.cost, quantity) if one.cost else 0 for one in counted]
        if any(counts):
            rows.append([title.ljust(TITLE), *(f"{count:,}" for count in counts)])
    return aligned([heading, *rows])


def _polynomials(counted: list[_Counted]) -> str:
    """How each quantity grows."""
    blocks = []
    for one in counted:
        if one.growth:
            texts = {title: one.growth.text(quantity) for quantity, title in QUANTITIES.items()}
            rows = [f"{title.ljust(TITLE)}  {text}" for title, text in texts.items() if text != "0"]
            blocks.append("\n".join([f"{one.name}, exact in {', '.join(one.sizes)} ({one.growth.runs})", *rows]))
    return "\n\n".join(blocks)


def _operations(one: _Counted) -> str:
    """How often each operation ran and what it cost in all."""
    if one.cost is None:
        return f"{one.name}: give every size to see its operations"
    kinds: dict[str, list[int]] = {}
    for operation in one.cost.operations:
        row = (1, operation.macs, operation.elementwise, operation.traffic)
        kinds[operation.name] = [a + b for a, b in zip(kinds.get(operation.name, [0] * 4), row, strict=True)]
    heading = [one.name, "times", QUANTITIES["macs"], QUANTITIES["elementwise"], QUANTITIES["traffic"]]
    ranked = sorted(kinds.items(), key=lambda kind: (-kind[1][1], -kind[1][3]))
    return aligned([heading, *([name, *(f"{count:,}" for count in counts)] for name, counts in ranked)])
