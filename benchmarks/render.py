"""The tables of the pages of measurements, from the committed results: no number there is typed by hand.

Run it as `python -m benchmarks.render`. What stands between `<!-- name: begin -->` and `<!-- name: end -->` is made
from benchmarks/results/name.json; the rest of a page is left as it is. A test holds the pages to what this makes.
"""

import json
import re
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs/attention_measured.md"
METRIC_PAGE = ROOT / "docs/metric_measured.md"
DEPTH_PAGE = ROOT / "docs/difficulty.md"
EXITS_PAGE = ROOT / "docs/exits.md"
GALLERY_PAGE = ROOT / "docs/gallery.md"
RESULTS = ROOT / "benchmarks/results"

Facts = dict[str, Any]
SINGLE_HEADING = ["form", "task", "T", "ms, least (median)", "MiB beyond the inputs"]


def error_tables(facts: Facts) -> str:
    """A table for each kind of data and direction: maps down, widths across."""
    points, problem = facts["points"], facts["problem"]
    sizes = "T = {T}, K = {K}, V = {V}; the median over {heads} heads, each with data and frequencies of its own."
    parts = [f"{sizes.format_map(problem)} {_where(facts)}"]
    for data in _different(point["data"] for point in points):
        for direction in _different(point["direction"] for point in points):
            here = [point for point in points if (point["data"], point["direction"]) == (data, direction)]
            parts += [f"**{data[0].upper()}{data[1:]}, {direction}**", _errors_by_width(here)]
    return "\n\n".join([*parts, *_notes(facts)])


def _errors_by_width(points: list[Facts]) -> str:
    widths = sorted({point["width"] for point in points if _is_swept(point, points)})
    rows = []
    for name, near in _different((point["map"], point["near"]) for point in points):
        mine = {point["width"]: point["error"] for point in points if (point["map"], point["near"]) == (name, near)}
        label = f"{name}, exact within {near}" if near else name
        if mine.keys() <= set(widths):
            rows.append([label, *(_short(mine.get(width)) for width in widths)])
        else:
            ((width, error),) = mine.items()  # it has no width to choose: what the others are compared with at each
            label = label if width is None else f"{label}, F = {width}"
            rows.append([label, *[_short(error)] * len(widths)])
    return _table(["map \\ F", *map(str, widths)], rows)


def _is_swept(point: Facts, points: list[Facts]) -> bool:
    return len({other["width"] for other in points if other["map"] == point["map"]}) > 1


def speed_tables(facts: Facts) -> str:
    """Promises, times of every task, memory, decode steps."""
    parts = [
        f"{_where(facts)} A product of two 2048 x 2048 matrices runs at {facts['product_gflops']:.3g} GFLOP/s.",
        "**Promises** (by the least times; beside them by the medians)",
        _table(["promise", "bound", "measured", "by median", "verdict"], map(_demand, facts["demands"])),
    ]
    times, single = _swept_and_single(facts["times"])
    for task in _different(each["task"] for each in times):
        mine = [each for each in times if each["task"] == task]
        weighed = [each for each in mine if each["extra_bytes"] is not None]
        parts += [f"**Time, {task}**: ms, least (median)", _against_length("T", mine, _milliseconds)]
        if weighed:
            title = f"**Memory beyond the inputs, {task}**: MiB, output included"
            parts += [title, _against_length("T", weighed, _mebibytes)]
    if single:
        parts += ["**Half precision and grouped heads**: one length", _table(SINGLE_HEADING, map(_single, single))]
    title = "**One decode step**: ms, least (median)"
    parts += [title, _against_length("tokens before it", facts["decoding"], _milliseconds)]
    return "\n\n".join([*parts, "Measured: " + "; ".join(facts["versions"]) + ".", *_notes(facts)])


def target_tables(facts: Facts) -> str:
    """Targets of the compiled kernel beside what was measured, and where the time goes."""
    rows = []
    for row in facts["rows"]:
        sign = ">=" if row["at_least"] else "<="
        target = "" if row["bound"] is None else f"{sign} {row['bound']:g}{row['unit']}"
        by_processor = "" if row["by_processor"] is None else f"{row['by_processor']:.3g}{row['unit']}"
        verdict = "" if row["bound"] is None else "met" if row["holds"] else "**missed**"
        rows.append([row["what"], target, f"{row['measured']:.3g}{row['unit']}", by_processor, row["note"], verdict])
    parts = [
        f"{_where(facts)} Kernel: {facts['kernel']}. Load when it began: {facts['machine']['load']:.2g}.",
        _table(["what", "target", "measured", "by processor time", "", "verdict"], rows),
    ]
    if facts["profile"]:
        fields = ("passed", "processor", "system")
        profile = [
            [part["what"], *(f"{part[name]:.3g}" for name in fields), str(part["faults"])] for part in facts["profile"]
        ]
        heading = ["call", "ms", "ms of processors", "of these in the system", "page faults"]
        parts += ["**Where the time goes**: the call that took the least processor time", _table(heading, profile)]
    return "\n\n".join(parts)


def limits_tables(facts: Facts) -> str:
    """Floors beside what is promised, arrangements by hand, a profile."""
    rate, work = facts["rate"], facts["work"]
    limits = [
        [each["promise"], *(_digits(each[name] * 1e3) for name in ("needed", "ours", "floor")), _reachable(each)]
        for each in facts["limits"]
    ]
    rows = [
        [name, _digits(seconds * 1e3), f"{work / seconds / rate:.1%}"]
        for name, seconds in facts["arrangements"].items()
    ]
    parts = [
        f"T = {facts['length']}. {_where(facts)} A large product runs at {rate / 1e9:.3g} GFLOP/s.",
        "**What a promise leaves, what ours takes, and the floor**: ms",
        _table(["promise", "leaves", "ours", "floor", "by these operators"], limits),
        "**Elu, causal, forward, in several arrangements**: ms, and of the rate of a large product",
        _table(["arrangement", "ms", "of the rate"], rows),
        "**Where ours spends its time** (Elu, causal, forward)",
        _table(["operator", "of the time"], [[name, f"{part:.1%}"] for name, part in facts["profile"]]),
    ]
    return "\n\n".join([*parts, *_notes(facts)])


def _reachable(each: Facts) -> str:
    if each["ours"] <= each["needed"]:
        return "kept"
    return "out of reach" if each["floor"] > each["needed"] else "not excluded"


def mining_tables(facts: Facts) -> str:
    """Promises, then times and memory."""
    sizes = "E = {E}, {faces} faces of each identity, margin {margin}, {dtype}.".format_map(facts["problem"])
    rows = [[each["form"], each["task"], str(each["length"]), *_time_and_memory(each)] for each in facts["times"]]
    parts = [
        f"{sizes} {_where(facts)}",
        "**Promises** (by the least times; beside them by the medians)",
        _table(["promise", "bound", "measured", "by median", "verdict"], map(_demand, facts["demands"])),
        "**Time and memory**",
        _table(["form", "task", "B", "ms, least (median)", "runs", "MiB beyond the inputs"], rows),
    ]
    return "\n\n".join([*parts, "Measured: " + "; ".join(facts["versions"]) + ".", *_notes(facts)])


def embedding_tables(facts: Facts) -> str:
    """The promise, then multiply-adds a second for every batch."""
    macs = facts["macs"]
    sizes = "; ".join(f"{name}: {count / 1e6:,.1f} million multiply-adds an image" for name, count in macs.items())
    names = _different((each["form"], each["task"]) for each in facts["times"])
    cells = {
        (each["form"], each["task"], each["length"]): _digits(
            macs[each["form"]] * each["length"] / each["best_seconds"] / 1e9
        )
        for each in facts["times"]
    }
    batches = _different(each["length"] for each in facts["times"])
    rows = [[f"{name}, {task}", *(cells[name, task, batch] for batch in batches)] for name, task in names]
    parts = [
        f"{sizes}. `embed_examples` takes {facts['chosen']} images at a time with NN4. {_where(facts)}",
        "**Promises** (by the least times; beside them by the medians)",
        _table(["promise", "bound", "measured", "by median", "verdict"], map(_demand, facts["demands"])),
        "**Thousand million multiply-adds a second**, by images at a time",
        _table(["network", *map(str, batches)], rows),
    ]
    return "\n\n".join([*parts, "Measured: " + "; ".join(facts["versions"]) + ".", *_notes(facts)])


def depth_tables(facts: Facts) -> str:
    """Promises, and one layer beside scikit-learn."""
    run, layer = facts["run"], facts["one_layer"]
    parts = [
        f"{facts['data']}, {facts['training']}, {run['accuracy']:.1%} of the test images right. {_where(facts)}",
        _table(["promise", "bound", "measured", "by median", "verdict"], map(_demand, facts["demands"])),
        f"{run['processor_seconds']:.0f} s of processor time. The neighbours of {layer['layer']} alone take "
        f"scikit-learn's brute force {layer['scikit-learn_seconds']:.0f} s and ours {layer['likewise_seconds']:.0f} s.",
    ]
    return "\n\n".join(parts)


def exit_tables(facts: Facts) -> str:
    """The promise, then the times of all ways to answer."""
    parts = [
        f"resnet20, images of 28 x 28, heads behind {', '.join(facts['problem']['heads'])}. {_where(facts)}",
        _table(["promise", "bound", "measured", "by median", "verdict"], map(_demand, facts["demands"])),
        _against_length("images at a time, ms", facts["times"], _milliseconds),
    ]
    return "\n\n".join(parts)


def gallery_tables(facts: Facts) -> str:
    """Search by batch against FAISS, the store against its aims, build and find against deepface."""
    seconds, figures = facts["seconds"], facts["figures"]
    batches = ["1", "64", "1000"]
    rows = [[name, *(_milliseconds_of(seconds[name][batch]) for batch in batches)] for name in seconds]
    parts = [
        _where(facts),
        "**Exact top-10 of 1,000,000 x 128**: ms, the least of several; FAISS "
        f"{facts.get('faiss', 'was not there')}, where two numbers stand with its usual and its best setting",
        _table(["batch", *batches], rows),
        "**Against what was aimed at**",
        _table(
            ["figure", "measured", "at most", "verdict"],
            [
                [name, _digits(value), _digits(aim), "kept" if value <= aim else "**missed**"]
                for name, value in figures.items()
                if (aim := facts["aims"].get(name)) is not None
            ],
        ),
    ]
    if "against deepface" in facts:
        found = facts["against deepface"]
        sides = {"likewise": found["likewise"], f"deepface {found['deepface']['version']}": found["deepface"]}
        names = ["build", "find", "find, no check of files"]
        parts += [
            f"**Build and find, {found['images']:,} images of LFW**: ms without the embedder's time, which is the same "
            "cheap projection on both sides. Build reads every image and writes what is needed to find; find reads one "
            "image and lists the nearest ten. deepface also hashes every file at each find, unless told not to.",
            _table(
                ["", *names],
                [[side, *(_digits(1e3 * each[n]) if n in each else "" for n in names)] for side, each in sides.items()],
            ),
        ]
    return "\n\n".join([*parts, *_notes(facts)])


def _milliseconds_of(seconds: float | list[float]) -> str:
    return " / ".join(_digits(1e3 * each) for each in (seconds if isinstance(seconds, list) else [seconds]))


def calibration_tables(facts: Facts) -> str:
    """What thresholds promised beside what other people showed, on real descriptors."""
    halves = [facts[name] for name in ("halves", "70:30")]
    columns = [
        "inside",
        "inside without widening",
        "fresh / promised, mean",
        "fresh / promised, sd",
        "high / low, median",
    ]
    codes, strangers = facts["codes"], facts["strangers"]
    return "\n\n".join(
        [
            f"{facts['images']:,} images of {facts['people']:,} people of LFW, dlib's 128 numbers, "
            f"{strangers['splits']} splits by person.",
            "**Fresh false accepts against the interval that was promised** (FAR 0.001; aim: inside in at least 0.92)",
            _table(
                ["calibrated on", *columns],
                [[f"{e['calibrated on']:.0%}", *(_digits(e[c]) for c in columns)] for e in halves],
            ),
            f"**Strangers accepted in a gallery of {strangers['enrolled']:,} people** (aim: 0.8 to 1.2 of the promise)",
            _table(
                ["promised", "accepted", "accepted / promised"],
                [
                    [f"{float(fpir):.0%}", f"{strangers['strangers accepted'][fpir]:.2%}", _digits(ratio)]
                    for fpir, ratio in strangers["accepted / promised"].items()
                ]
                + [["verify's threshold at FAR 0.001", f"{strangers['strangers accepted']['verify']:.0%}", ""]],
            ),
            f"**Codes of one byte a number** ({codes['gallery']:,} templates, {codes['probes']:,} probes)",
            _table(
                ["", "float", "codes"],
                [
                    [name, f"{codes[f'{name}, float']:.4f}", f"{codes[f'{name}, codes']:.4f}"]
                    for name in ("rank-1", "VAL at FAR 0.001")
                ]
                + [["same nearest template", "", f"{codes['same nearest template']:.4f}"]],
            ),
        ]
    )


def _time_and_memory(each: Facts) -> list[str]:
    return [_milliseconds(each), str(each["runs"]), _mebibytes(each)]


def _swept_and_single(times: list[Facts]) -> tuple[list[Facts], list[Facts]]:
    """Those of forms that were measured at several lengths, and those of the others."""
    swept = {
        one["form"] for one in times for two in times if one["form"] == two["form"] and one["length"] < two["length"]
    }
    return [each for each in times if each["form"] in swept], [each for each in times if each["form"] not in swept]


def _single(each: Facts) -> list[str]:
    return [each["form"], each["task"], str(each["length"]), _milliseconds(each), _mebibytes(each)]


def _mebibytes(each: Facts) -> str:
    return "-" if each["extra_bytes"] is None else f"{each['extra_bytes'] / 2**20:.1f}"


def _demand(demand: Facts) -> list[str]:
    unit = demand["unit"]
    bound = f"{'>=' if demand['at_least'] else '<='} {demand['bound']:g}{unit}"
    numbers = ("" if x is None else f"{x:.3g}{unit}" for x in (demand["measured"], demand["by_median"]))
    verdict = {True: "met", False: "**missed**", None: "not judged"}[demand["holds"]]
    return [demand["promise"], bound, *numbers, f"{verdict}: {demand['note']}" if demand["note"] else verdict]


def _against_length(heading: str, measured: list[Facts], cell: Callable[[Facts], str]) -> str:
    names = _different(each["form"] for each in measured)
    cells = {(each["form"], each["length"]): cell(each) for each in measured}
    lengths = sorted({each["length"] for each in measured})
    return _table([heading, *names], ([str(n), *(cells.get((name, n), "-") for name in names)] for n in lengths))


def _milliseconds(each: Facts) -> str:
    return f"{_digits(each['best_seconds'] * 1e3)} ({_digits(each['median_seconds'] * 1e3)})"


def _digits(number: float) -> str:
    """Three digits, and no exponent for what is larger.

    >>> _digits(0.012345), _digits(12345.6)
    ('0.0123', '12346')
    """
    return f"{number:.0f}" if number >= 100 else f"{number:#.3g}"


def _short(error: float | None) -> str:
    """Two digits; a hundred and more without an exponent.

    >>> _short(0.00010917), _short(0.61866), _short(32794.0), _short(None)
    ('0.00011', '0.62', '32794', '')
    """
    if error is None:
        return ""
    return f"{error:.0f}" if error >= 100 else f"{error:.2g}"


def _where(facts: Facts) -> str:
    threads = f", {facts['machine']['threads']} threads" if "threads" in facts["machine"] else ""
    return "{cpu}, {cores} cores{threads}, torch {torch}, Python {python}, {date}.".format(
        **facts["machine"] | {"threads": threads}
    )


def _notes(facts: Facts) -> list[str]:
    return [f"Note: {note}" for note in facts["notes"]]


def _different(items: Iterable[Any]) -> list[Any]:
    """Each once, in the order of its first appearance."""
    return list(dict.fromkeys(items))


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [heading, ["---", *["---:"] * (len(heading) - 1)], *rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


REGIONS: dict[str, Callable[[Facts], str]] = {
    "attention_error": error_tables,
    "attention_table": target_tables,
    "attention_speed": speed_tables,
    "attention_limits": limits_tables,
}
METRIC_REGIONS: dict[str, Callable[[Facts], str]] = {"mining": mining_tables, "embedding": embedding_tables}
PAGES: dict[Path, dict[str, Callable[[Facts], str]]] = {
    PAGE: REGIONS,
    METRIC_PAGE: METRIC_REGIONS,
    DEPTH_PAGE: {"depth": depth_tables},
    EXITS_PAGE: {"exits": exit_tables},
    GALLERY_PAGE: {"gallery": gallery_tables, "gallery_calibration": calibration_tables},
}
CAPTIONS = {
    "attention_error": "Error of every map against its width",
    "attention_speed": "Time and memory of every form against length",
}


def render(page: str, results: Path = RESULTS, regions: dict[str, Callable[[Facts], str]] = REGIONS) -> str:
    """The page with its regions made anew."""
    for name, tables in regions.items():
        source = results / f"{name}.json"
        text = "Not measured yet."
        if source.exists():
            picture = f"![{CAPTIONS[name]}](../benchmarks/results/{name}.png)\n\n" if name in CAPTIONS else ""
            text = f"{picture}{tables(json.loads(source.read_text()))}"
        begin, end = f"<!-- {name}: begin -->", f"<!-- {name}: end -->"
        region = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", flags=re.DOTALL)
        if len(region.findall(page)) != 1:
            raise ValueError(f"render: page must have one region {begin} ... {end}; got {len(region.findall(page))}.")
        page = region.sub(lambda _, text=text, begin=begin, end=end: f"{begin}\n\n{text}\n\n{end}", page)
    return page


if __name__ == "__main__":
    for path, regions in PAGES.items():
        path.write_text(render(path.read_text(), regions=regions))
        print(f"Rendered {path.relative_to(ROOT)}")
