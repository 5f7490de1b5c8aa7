"""The house rules as functions: source text in, complaints out. The tests beside feed them good and bad text."""

import ast
import doctest
import functools
import graphlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "likewise"

# A room imports only rooms above it.
FOUNDATION = ["checks", "text", "files", "progress", "stats", "polynomial", "page", "serving"]
METHODS = [
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
    "huggingface",
]
STATEMENTS = ["claims", "reading", "grading", "review", "programs"]
DOORS = ["pytest_plugin", "mcp", "web", "cli", "__main__"]
ROOMS = [*FOUNDATION, *METHODS, *STATEMENTS, "reports", "tour", *DOORS]

# Rooms that import nothing but these and themselves: `claims` works without torch.
ISLANDS = {"claims": FOUNDATION}

OPTIONS = 8
EXEMPT = {  # every setting of a run is an option of its command, and options of all commands are added in one place
    "likewise/cli/terminal.py:run",
    "likewise/cli/train.py:train",
    "likewise/cli/check.py:check",
    "likewise/cli/evaluate.py:evaluate",
    "likewise/cli/depth.py:depth",
    "likewise/cli/exits.py:exits",
    "likewise/huggingface/caching.py:update",  # transformers calls these with arguments of its own
    "likewise/huggingface/mixed.py:_process_model_after_weight_loading",
    "likewise/huggingface/mixed.py:_process_model_before_weight_loading",
    "likewise/huggingface/plugging.py:_attention",
    "likewise/grading/rewards.py:likewise_reward",  # so does TRL, with the columns of a dataset
    "likewise/huggingface/plugging.py:_mask",
}

WORDS = ("detail", "reason", "why", "message")  # fields of results that people read

# Written so that this file does not complain about itself.
MACHINE_PATH = re.compile(r"(?<![\w.\]])/(?:home|root|Users|work|opt|tmp|mnt|private)/\w")
LOOSE_END = re.compile(r"\b(?:TO" + r"DO|FIX" + r"ME|XX" + r"X)\b")


def sources() -> list[Path]:
    """Every module of the package."""
    return sorted(PACKAGE.rglob("*.py"))


def texts() -> list[Path]:
    """Every file of the project that people read."""
    patterns = ("*.md", "*.toml", "*.txt", "Makefile", ".ci/run", ".gitignore", "docs/**/*.md")
    folders = ("likewise", "tests", "benchmarks", "studies", "tools")
    code = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    return sorted([path for pattern in patterns for path in ROOT.glob(pattern)] + code)


def module_name(path: Path) -> str:
    """likewise/attention/linear.py -> likewise.attention.linear; a room's __init__ is the room."""
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


@functools.cache  # several rules ask for the same sources
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
    """Imports of a room that does not stand above the module's own, relative imports, and rooms that are not listed."""
    room, names = _room(module), imported_modules(text)
    if room is None:
        return [f"{module} imports {name}; the package itself imports nothing" for name in names]
    if room not in ROOMS:
        return [f"{module}: {room} is not a room; rooms are {', '.join(ROOMS)}"]
    complaints = [f"{module} imports {name}; write the full name" for name in names if name.startswith(".")]
    for name in names:
        other = _room(name)
        if name.startswith(".") or other in (None, "__version__"):
            continue
        if room in ISLANDS and other not in (room, *ISLANDS[room]):
            complaints.append(f"{module} imports {name}; {room} imports only {', '.join(ISLANDS[room])}")
        elif other not in ROOMS or ROOMS.index(other) > ROOMS.index(room):
            complaints.append(f"{module} imports {name}, which is not above it")
    return complaints


def _room(module: str) -> str | None:
    return [*module.split("."), None][1]


def import_graph(texts: dict[str, str]) -> dict[str, set[str]]:
    """Which modules each module imports, late imports included; texts: module name -> source."""

    def owner(name: str) -> str:
        while name and name not in texts:
            name = name.rpartition(".")[0]
        return name

    return {module: {owner(name) for name in imported_modules(text)} - {""} for module, text in texts.items()}


def import_cycle(graph: dict[str, set[str]]) -> list[str]:
    """One circle of modules that import each other, or nothing."""
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def unexplained_files(texts: dict[str, str]) -> list[str]:
    """Files that one other file imports, or none, and that do not say in a docstring why they stand alone."""
    graph = import_graph(texts)
    users = {name: [module for module in graph if name in graph[module]] for name in graph}
    entries = [name for name in texts if _room(name) in (None, *DOORS)]
    return [
        f"{name} has {f'one user, {used[0]}' if used else 'no user'}, and no docstring says why it is a file"
        for name, used in users.items()
        if len(used) < 2 and name not in entries and not ast.get_docstring(ast.parse(texts[name]))
    ]


def odd_signatures(name: str, text: str) -> list[str]:
    """Functions with too many options or with **kwargs, and prints outside the doors."""
    complaints = []
    room = Path(name).parts[1].removesuffix(".py") if len(Path(name).parts) > 1 else name
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and f"{name}:{node.name}" not in EXEMPT:
            options = len(node.args.kwonlyargs) + len(node.args.defaults)
            if options > OPTIONS:
                complaints.append(f"{name}:{node.name} has {options} options; at most {OPTIONS}")
            if node.args.kwarg is not None:
                complaints.append(f"{name}:{node.name} takes **{node.args.kwarg.arg}; name the options")
        if room not in DOORS and isinstance(node, ast.Call) and getattr(node.func, "id", None) == "print":
            complaints.append(f"{name}:{node.lineno} prints; only {', '.join(DOORS)} may")
    return complaints


def decisions_on_words(name: str, text: str) -> list[str]:
    """Where the words of an error or a verdict are looked into; what a program decides by is a field, or a class."""
    nodes = list(ast.walk(ast.parse(text)))
    errors = {node.name for node in nodes if isinstance(node, ast.ExceptHandler) and node.name}

    def printed(node: ast.AST) -> bool:
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("str", "repr") and len(node.args) == 1:
            return getattr(node.args[0], "id", None) in errors
        return isinstance(node, ast.Attribute) and node.attr in WORDS

    lines = []
    for node in nodes:
        if isinstance(node, ast.Compare) and isinstance(node.ops[0], ast.In | ast.NotIn):
            lines += [node.lineno] * (printed(node.comparators[0]) and isinstance(node.left, ast.Constant))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            own = node.func.attr in ("startswith", "endswith") and printed(node.func.value)
            given = node.func.attr in ("match", "search", "fullmatch") and any(map(printed, node.args))
            lines += [node.lineno] * (own or given)
    return [f"{name}:{line} decides by printed words; give the result a field" for line in lines]


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


def shell_blocks(markdown: str) -> list[str]:
    """The ```sh fences of a page."""
    return re.findall(r"^```sh\n(.*?)^```", markdown, flags=re.MULTILINE | re.DOTALL)


def undefined_commands(markdown: str, targets: set[str], verbs: set[str]) -> list[str]:
    """Lines of ```sh fences that name a make target or a verb that does not exist."""
    complaints = []
    for block in shell_blocks(markdown):
        for line in block.splitlines():
            program, _, rest = line.partition("#")[0].strip().removeprefix("$ ").partition(" ")
            known = {"make": targets, "likewise": verbs}.get(program)
            if known is not None and rest.split()[:1] and rest.split()[0] not in known:
                complaints.append(f"{line.strip()}: there is no {rest.split()[0]}")
    return complaints
