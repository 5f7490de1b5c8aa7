"""`likewise cost`: what a program costs at given sizes, how that grows, and from which length on another costs less."""

import json
import sys
from collections.abc import Sequence
from typing import Annotated, Any

import typer

from likewise.checks import require
from likewise.cli.terminal import Context, Json, examples, progress_bar
from likewise.programs.costs import BY_STEP, NETWORKS, UNITS, CostJob, Costs, Counted, run_cost_job
from likewise.text import aligned

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
TITLES = {name: f"{title} ({UNITS[name]})" for name, title in QUANTITIES.items()}
WIDTH = max(map(len, TITLES.values()))
LEGEND = "A mac is one multiply-add, 2 flop. An element is one number: 4 bytes in float32."
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
    job = CostJob(
        programs=(program, *(compare or [])), sizes=_sizes(context.args), over=over, streamed=streamed, steps=steps
    )
    with progress_bar() as progress:
        found = run_cost_job(job, progress=progress)
    for one in found.programs:
        if one.note:
            print(f"likewise: {one.note}", file=sys.stderr)
    if as_json:
        print(json.dumps(found.to_json()))
    elif program == NETWORKS:
        print(_network_table(found.programs))
    else:
        shown = [_counts(found.programs), _polynomials(found.programs), _wins(found)]
        shown += [_step_table(one) for one in found.programs if steps]
        shown += [_operations(one) for one in found.programs if operations]
        print("\n\n".join(filter(None, [*shown, LEGEND])))


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


def _network_table(counted: Sequence[Counted]) -> str:
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


def _step_table(one: Counted) -> str:
    """Which step costs what: polynomials, numbers where every size is given, and of a network its segments."""
    if one.segments:
        heading = [f"segments of {one.name}", "gives", *(TITLES[name] for name in ("params", *BY_STEP))]
        rows = [
            [
                part.name,
                " x ".join(map(str, part.shape)),
                *(f"{getattr(part, name):,}" for name in ("params", *BY_STEP)),
            ]
            for part in one.segments
        ]
        return aligned([heading, *rows])
    rows, line = [], ""
    for step in one.steps:
        again, line = step.source == line, step.source
        text = '"' if again and line else line[:LINE] or step.place
        rows.append([text, step.operation, *(_text(one, getattr(step, name)) for name in BY_STEP)])
    return aligned([[f"steps of {one.name}", "operation", *(TITLES[name] for name in BY_STEP)], *rows])


def _text(one: Counted, polynomial: Any) -> str:
    return f"{int(polynomial.evaluate(one.at)):,}" if one.cost else polynomial.text(one.sizes)


def _wins(found: Costs) -> str:
    """The break-evens in words, or what is missing to find them."""
    if len(found.programs) > 1 and not found.wins and len(found.missing) > 1:
        return f"Give all of {', '.join(found.missing)} but a length to see from where on one costs less."
    return "\n".join(
        f"{QUANTITIES[win.quantity]}: "
        + (
            f"{win.cheaper} costs less than {win.than} from {win.over}={win.start} on"
            if win.cheaper
            else f"the same as {win.than}"
        )
        for win in found.wins
    )


def _counts(counted: Sequence[Counted]) -> str:
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


def _polynomials(counted: Sequence[Counted]) -> str:
    """How each quantity grows, and what that rests on."""
    blocks = []
    for one in counted:
        if one.growth:
            texts = {title: one.growth.text(quantity) for quantity, title in TITLES.items()}
            rows = [f"{title.ljust(WIDTH)}  {text}" for title, text in texts.items() if text != "0"]
            basis = f"fitted to {one.growth.grid} runs, confirmed by {one.growth.hold_outs} runs at larger sizes"
            blocks.append("\n".join([f"{one.name}, exact in {', '.join(one.sizes)}: {basis}", *rows]))
    return "\n\n".join(blocks)


def _operations(one: Counted) -> str:
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
