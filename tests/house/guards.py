"""The house rules as functions: source text in, complaints out. The tests beside feed them good and bad text."""

import ast
import doctest
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "likewise"

# A room imports only rooms above it.
ROOMS = [
    "checks",
    "polynomial",
    "cost",
    "data",
    "similarity",
    "attention",
    "networks",
    "metric",
    "training",
    "evaluation",
    "gallery",
    "difficulty",
    "exits",
    "claims",
    "programs",
    "reports",
    "pytest_plugin",
    "mcp",
    "web",
    "cli",
]
DOORS = {"cli", "mcp", "web"}

# Rooms that import nothing but these and themselves: `claims` works without torch.
ISLANDS = {"claims": {"checks", "text", "files", "progress", "stats", "polynomial"}}

# Inside a room the same rule holds for its files, where the order is settled.
FILES = {
    "attention": [
        "kernels",
        "workspace",
        "features",
        "frequencies",
        "random_features",
        "masks",
        "fitted",
        "exact",
        "prefix",
        "problem",
        "pieces",
        "chunks",
        "packed",
        "scan",
        "linear",
        "memory",
        "state",
        "cache",
        "heads",
        "diagnosis",
        "diagnosing",
    ],
    "cost": ["operations", "counting", "growth"],
    "claims": [
        "language",
        "verdict",
        "escaping",
        "stated",
        "yaml_entries",
        "documents",
        "registry",
        "arithmetic",
        "shape",
        "algebra",
        "sandbox",
        "growth",
        "chance",
        "engines",
        "worker",
        "pool",
        "checking",
        "sarif",
    ],
    "programs": ["inside", "counting", "attention", "networks", "demonstrations", "registering", "rows"],
    "networks": [
        "segments",
        "inception",
        "facenet",
        "resnet",
        "embedder",
        "inference",
        "weights",
        "classifiers",
        "attends",
        "transformer",
        "vit",
        "language",
    ],
    "data": ["pictures", "examples", "files", "lfw", "pair_lists", "arrays", "preparing", "batches", "opening"],
    "training": [
        "caching",
        "objectives",
        "checkpoints",
        "ranks",
        "loop",
        "embedding",
        "fitting",
        "upgrading",
        "jobs",
    ],
    "difficulty": [
        "taps",
        "labelled",
        "plan",
        "activations",
        "margins",
        "keeping",
        "probes",
        "results",
        "consistency",
        "traits",
        "export",
        "sweep",
        "depth",
    ],
    "exits": [
        "placement",
        "chains",
        "criteria",
        "policies",
        "running",
        "timings",
        "splits",
        "early",
        "observing",
        "fitting",
        "bounds",
        "losses",
        "paths",
        "risk",
        "costs",
        "clock",
        "study",
        "answer",
        "weights",
        "exporting",
    ],
    "evaluation": ["protocols", "judging", "results", "shifts", "evaluating", "sweeps", "budgets"],
    "cli": [
        "terminal",
        "attention",
        "cost",
        "versions",
        "train",
        "evaluate",
        "depth",
        "exits",
        "verdicts",
        "check",
        "mcp",
    ],
    "metric": [
        "triplet",
        "bounds",
        "mining",
        "batch_all",
        "harmonic",
        "sampler",
        "collapse",
        "rates",
        "versions",
        "all_pairs",
        "surveying",
        "bootstrap",
        "templates",
        "two_covariance",
        "cluster",
    ],
}

FILE_LINES = 400
FUNCTION_LINES = 60
OPTIONS = 8

# Literal tables, doors and adapters to foreign protocols may exceed a budget, each by name: "file" or "file:function".
EXEMPT: set[str] = {  # every setting of a run, and of a judgement, is an option
    "likewise/cli/train.py:train",
    "likewise/cli/evaluate.py:evaluate",
    "likewise/cli/depth.py:depth",
    "likewise/cli/exits.py:exits",
}

# Written so that this file does not complain about itself.
MACHINE_PATH = re.compile(r"(?<![\w.\]])/(?:home|root|Users|work|opt|tmp|mnt|private)/\w")
LOOSE_END = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def sources() -> list[Path]:
    """Every module of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def texts() -> list[Path]:
    """Every file of the project that people read."""
    patterns = ("*.md", "*.toml", "*.txt", "Makefile", ".ci/run", ".gitignore", "docs/**/*.md")
    code = [path for folder in ("likewise", "tests", "benchmarks", "studies") for path in (ROOT / folder).rglob("*.py")]
    return sorted([path for pattern in patterns for path in ROOT.glob(pattern)] + code)


def module_name(path: Path) -> str:
    """likewise/attention/linear.py -> likewise.attention.linear; a room's __init__ is the room."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported_modules(text: str) -> list[str]:
    """What a source imports from the package, anywhere in it; `from likewise.a import b` counts as likewise.a.b."""
    found = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            found += [f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names]
    return [name for name in found if name.split(".")[0] in ("likewise", "")]


def wrong_way_imports(module: str, text: str) -> list[str]:
    """Imports of a room, or of a file of the same room, that does not stand above."""
    complaints = []
    room, file = _room_and_file(module)
    if room is None:
        return [f"{module} imports {name}; the front door stays empty" for name in imported_modules(text)]
    if room not in ROOMS:
        return [f"{module}: {room} is not a room; rooms are {', '.join(ROOMS)}"]
    order = FILES.get(room)
    if order and file and file not in order:
        return [f"{module}: {file} is not in the order of {room}: {', '.join(order)}"]
    for name in imported_modules(text):
        if name.startswith("."):
            complaints.append(f"{module} imports {name}; write the full name")
            continue
        other_room, other_file = _room_and_file(name)
        if other_room in (None, "__version__"):
            continue
        if room in ISLANDS and other_room not in {room, *ISLANDS[room]}:
            complaints.append(f"{module} imports {name}; {room} imports only {', '.join(sorted(ISLANDS[room]))}")
        elif other_room not in ROOMS or ROOMS.index(other_room) > ROOMS.index(room):
            complaints.append(f"{module} imports {name}, which is not above it")
        elif other_file == file and module.count(".") > 2:
            continue  # two files of one folder; they have an order too, or Python would not import them
        elif other_room == room and order and file and order.index(file) <= _position(order, other_file):
            complaints.append(f"{module} imports {name}, which is not above it in {', '.join(order)}")
    return complaints


def _room_and_file(module: str) -> tuple[str | None, str | None]:
    _, room, file, *_ = [*module.split("."), None, None]
    return room, file


def _position(order: list[str], file: str | None) -> int:
    # A name that is no file comes out of the room's __init__, which imports all files.
    return order.index(file) if file in order else len(order)


def over_budget(name: str, text: str) -> list[str]:
    """Files, functions and signatures that are too long, **kwargs, and prints outside the doors."""
    complaints = []
    lines = len(text.splitlines())
    if lines > FILE_LINES and name not in EXEMPT:
        complaints.append(f"{name} has {lines} lines; at most {FILE_LINES}")
    room = Path(name).parts[1].removesuffix(".py") if len(Path(name).parts) > 1 else name
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and f"{name}:{node.name}" not in EXEMPT:
            complaints += [f"{name}:{node.name} {complaint}" for complaint in _function_complaints(node)]
        if room not in DOORS and isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print":
            complaints.append(f"{name}:{node.lineno} prints; only {', '.join(sorted(DOORS))} may")
    return complaints


def _function_complaints(node: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    complaints = []
    lines = (node.end_lineno or node.lineno) - node.lineno + 1
    if lines > FUNCTION_LINES:
        complaints.append(f"has {lines} lines; at most {FUNCTION_LINES}")
    options = len(node.args.kwonlyargs) + len(node.args.defaults)
    if options > OPTIONS:
        complaints.append(f"has {options} options; at most {OPTIONS}")
    if node.args.kwarg is not None:
        complaints.append(f"takes **{node.args.kwarg.arg}; name the options")
    return complaints


def loose_ends(name: str, text: str) -> list[str]:
    """Paths of somebody's machine, and work left for later."""
    return [
        f"{name}:{number} has {match.group()!r}"
        for number, line in enumerate(text.splitlines(), start=1)
        for pattern in (MACHINE_PATH, LOOSE_END)
        for match in [pattern.search(line)]
        if match
    ]


def python_blocks(markdown: str) -> list[str]:
    """The contents of the ```python fences."""
    return re.findall(r"^```python\n(.*?)^```", markdown, flags=re.MULTILINE | re.DOTALL)


def failing_blocks(name: str, markdown: str) -> list[str]:
    """Run the python fences of a page in one namespace; a fence with >>> is compared with the output it shows."""
    complaints: list[str] = []
    names: dict[str, object] = {"__name__": name}
    for number, block in enumerate(python_blocks(markdown), start=1):
        if block.lstrip().startswith(">>>"):
            # DocTest copies its namespace, so the names a block defines are carried on by hand.
            test = doctest.DocTestParser().get_doctest(block, names, f"{name}, block {number}", name, 0)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            runner.run(test, out=complaints.append, clear_globs=False)
            names.update(test.globs)
        else:
            try:
                exec(compile(block, f"{name}, block {number}", "exec"), names)
            except Exception as error:
                complaints.append(f"{name}, block {number}: {type(error).__name__}: {error}")
    return complaints


def undefined_commands(markdown: str, targets: set[str], verbs: set[str]) -> list[str]:
    """Lines of ```sh fences that name a make target or a verb that does not exist."""
    complaints = []
    for block in re.findall(r"^```sh\n(.*?)^```", markdown, flags=re.MULTILINE | re.DOTALL):
        for line in block.splitlines():
            program, _, rest = line.partition("#")[0].strip().removeprefix("$ ").partition(" ")
            known = {"make": targets, "likewise": verbs}.get(program)
            if known is not None and rest.split()[:1] and rest.split()[0] not in known:
                complaints.append(f"{line.strip()}: there is no {rest.split()[0]}")
    return complaints
