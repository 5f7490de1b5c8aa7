"""`likewise attention`: a linear form beside its kernel and softmax, and what replacing softmax costs a head."""

import functools
import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from likewise.cli.terminal import Context, Json, examples, progress_bar, verb

FeatureName = Literal["elu", "relu", "quadratic", "taylor", "fourier", "softmax-fourier", "positive", "hyperbolic"]

SMALL_PRODUCTS = 2**27  # multiply-adds of 10 ms on a core: a thread that waits for another waits as long
SMALL_FILE = 2**20  # bytes: q, k and v of 8 heads of width 64 at 170 positions

attention_app = typer.Typer(pretty_exceptions_enable=False)


def small_comparison(options: dict[str, Any]) -> bool:
    """Whether the largest product of a comparison is so small that more threads would only wait for each other."""
    wide = max(options["length"], options["width"])
    return options["heads"] * options["length"] * wide * options["key_dim"] <= SMALL_PRODUCTS


def small_tensors(options: dict[str, Any]) -> bool:
    """The same of the tensors of a file."""
    return options["file"].is_file() and options["file"].stat().st_size <= SMALL_FILE


@attention_app.callback(
    invoke_without_command=True,
    epilog=examples(
        "likewise attention --features elu --causal",
        "likewise attention --length 4096 --features positive --width 256",
        "likewise attention --features taylor --key-dim 32 --json",
        "likewise attention diagnose layer.safetensors --causal --picture heads.svg",
    ),
)
@functools.partial(verb, small=small_comparison)
def attention(
    context: Context,
    features: Annotated[FeatureName, typer.Option(help="Feature map of the linear form.")] = "elu",
    length: Annotated[int, typer.Option(min=1, help="Positions, T.")] = 2048,
    heads: Annotated[int, typer.Option(min=1, help="Heads, H.")] = 8,
    key_dim: Annotated[int, typer.Option(min=1, help="Key and value width per head, K.")] = 64,
    width: Annotated[int, typer.Option(min=2, help="Width of a random map, F.")] = 256,
    causal: Annotated[bool, typer.Option("--causal", help="A position sees itself and what came before.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of q, k, v and the random map.")] = 0,
    as_json: Json = False,
) -> None:
    """Compare a linear attention with its exact kernel and with softmax, on random q, k, v."""
    if context.invoked_subcommand is not None:
        _refuse_lost_options(context)
        return
    from likewise.attention.comparison import compare_random

    with progress_bar() as progress:
        result = compare_random(
            features,
            length=length,
            heads=heads,
            key_dim=key_dim,
            width=width,
            causal=causal,
            seed=seed,
            progress=progress,
        )
    if as_json:
        print(json.dumps(asdict(result)))
    else:
        _show_comparison(asdict(result))


def _show_comparison(result: dict[str, Any]) -> None:
    from rich.console import Console
    from rich.table import Table

    _, heads, length, key_dim = result["shape"]
    direction = "causal" if result["causal"] else "both directions"
    title = f"{result['features']}, {direction}: T={length}, H={heads}, K={key_dim}, F={result['feature_dim']}"
    table = Table("form", title=title, caption="errors: |out - target| / |target|")
    for heading in ("seconds", "error against its kernel", "error against softmax"):
        table.add_column(heading, justify="right")
    for form in result["forms"]:
        kernel_error = "" if form["kernel_error"] is None else f"{form['kernel_error']:.2e}"
        table.add_row(form["name"], f"{form['seconds']:.4f}", kernel_error, f"{form['softmax_error']:.2e}")
    Console().print(table)
    for text in result["warnings"]:
        print(f"warning: {text}")


def _refuse_lost_options(context: Context) -> None:
    """Options of a group that stand before its verb would be read by nobody."""
    given = [name for name in context.params if str(context.get_parameter_source(name)).endswith("COMMANDLINE")]
    if given:
        option = given[0].removeprefix("as_").replace("_", "-")
        inner = context.invoked_subcommand
        raise ValueError(f"attention: options must come after {inner}; got --{option} before it.")


@attention_app.command(
    "diagnose",
    epilog=examples(
        "likewise attention diagnose layer.safetensors --causal",
        "likewise attention diagnose layer.safetensors --wanted-error 0.05 --picture heads.svg",
        "likewise attention diagnose layer.safetensors --exact-within 128 --json",
    ),
)
@functools.partial(verb, small=small_tensors)
def diagnose_heads(
    file: Annotated[Path, typer.Argument(help="Tensors q, k, v: (batch,) heads, positions, width; and perhaps mask.")],
    causal: Annotated[bool, typer.Option("--causal", help="A position sees itself and what came before.")] = False,
    wanted_error: Annotated[float, typer.Option(help="Largest relative squared error of an output.")] = 0.1,
    exact_within: Annotated[int | None, typer.Option(min=1, help="Try a window of so many exact positions.")] = None,
    picture: Annotated[Path | None, typer.Option(help="Where to write an SVG of heads by maps.")] = None,
    every: Annotated[bool, typer.Option("--all", help="Show every map of every head.")] = False,
    seed: Annotated[int, typer.Option(help="Seed of the random maps and the sampled rows.")] = 0,
    as_json: Json = False,
) -> None:
    """Say of every head what replacing softmax by features costs, and which map to take, if any."""
    from likewise.attention.diagnose import diagnose_file
    from likewise.files import require_place, write_whole
    from likewise.reports.diagnosis import diagnosis_picture

    if picture is not None:
        require_place("attention diagnose", picture)
    with progress_bar() as progress:
        result = diagnose_file(
            file, causal=causal, wanted_error=wanted_error, exact_within=exact_within, seed=seed, progress=progress
        )
    if picture is not None:
        write_whole(picture, diagnosis_picture(result))
    if as_json:
        print(json.dumps(result.to_json(), allow_nan=False))
        return
    print(result)
    for head in result.heads:
        print(f"\n{head}" if every else f"head {head.head}: {head.advice.text}")
    if picture is not None:
        print(f"The picture is {picture}")
