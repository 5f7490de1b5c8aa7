"""Programs that a claim may name, and what counts them; other packages add theirs through an entry point.

An entry point of the group `likewise.programs` is a function without arguments that calls `register` and its kin here.
It is called once in every process that checks claims, and must not import anything heavy: a program does so when it
runs. `likewise.programs` is such a package, and brings the counting.
"""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal

from likewise.checks import refuse, require, require_choice
from likewise.claims.language.claim import Claim, Runs
from likewise.claims.language.expressions import QUANTITIES
from likewise.claims.language.parser import nodes
from likewise.claims.language.tokens import nearest
from likewise.claims.language.tree import Call, Name, children
from likewise.claims.verdict import Undecided
from likewise.polynomial import Polynomial

GROUP = "likewise.programs"
Memory = Literal["materialised", "streamed"]
Make = Callable[..., tuple[Any, ...]]
Sampler = Callable[[int, Any], Any]  # so many independent draws of one number, from a numpy generator


@dataclass(frozen=True)
class Program:
    """A name for a program of given sizes, in one or two variants; or for a number that is counted."""

    name: str
    sizes: tuple[str, ...]
    makes: Mapping[str, Make] = field(repr=False)  # by memory: from sizes to what `likewise.cost.cost` takes
    count: Callable[..., int] | None = field(default=None, repr=False)  # from sizes to a whole number

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(self.makes)

    def make(self, memory: Memory = "materialised") -> Make:
        """From sizes to a program and its inputs, for `cost(*make(N=2))` and `cost_polynomial(make, sizes)`.

        >>> _, *inputs = program("attention.softmax").make()(N=10, D=3, M=5)
        >>> [tuple(tensor.shape) for tensor in inputs]
        [(10, 3), (10, 3), (10, 5)]
        """
        require(bool(self.makes), "program", self.name, "be a program", "a counter", "Ask for its count.")
        if memory not in self.makes:
            refuse("program", "memory", f"be {' or '.join(self.makes)} for {self.name}", repr(memory))
        return self.makes[memory]


@dataclass(frozen=True)
class Measured:
    """Quantities of a program, each as polynomials in its sizes, of a peak several; and what they rest on."""

    sizes: tuple[str, ...]
    parts: tuple[tuple[Polynomial, ...], ...]
    runs: str = ""
    confinement: str = ""  # of a file of the user: what its process could not do


@dataclass(frozen=True)
class Counting:
    """How programs are counted, by functions that raise Undecided where it cannot be done."""

    prepare: Callable[[], None]  # load what takes seconds, before the time of a claim begins
    of_program: Callable[[Make, tuple[str, ...], tuple[str, ...]], Measured]  # make, sizes, quantities
    of_file: Callable[..., Measured]  # name, quantities, *, folder, seconds


_programs: dict[str, Program] = {}
_demonstrations: dict[str, Callable[..., Any]] = {}
_samplers: dict[str, Sampler] = {}
_counting: list[Counting] = []
_packaged: set[str] = set()  # programs that every process has, from entry points
_is_loaded = False


def load_programs() -> None:
    """Call the entry points, once."""
    global _is_loaded
    if _is_loaded:
        return
    _is_loaded = True
    from importlib.metadata import entry_points

    for point in entry_points(group=GROUP):
        try:
            point.load()()
        except Exception as error:  # one broken package must not take the others' programs away
            warnings.warn(f"{GROUP}: {point.name} cannot be loaded: {type(error).__name__}: {error}", stacklevel=2)
    _packaged.update(_programs)


def programs() -> dict[str, Program]:
    """Every program by its name."""
    load_programs()
    return _programs


def demonstrations() -> dict[str, Callable[..., Any]]:
    """What `run(...)` may name without permission."""
    load_programs()
    return _demonstrations


def samplers() -> dict[str, Sampler]:
    """Programs whose output is random."""
    load_programs()
    return _samplers


def counting() -> Counting:
    """What counts programs, or Undecided."""
    load_programs()
    if not _counting:
        raise Undecided("nothing here counts programs: the entry points of likewise are not installed")
    return _counting[0]


def register(
    name: str,
    fn: Callable[..., Any],
    inputs: Callable[..., tuple[Any, ...]],
    variants: Mapping[str, Callable[..., Any]] | None = None,
) -> Program:
    """Give a program a name that claims can use: the parameters of `inputs` are its sizes, what it returns, its inputs.

    variants: "streamed", the same function computed with less memory.

    >>> _ = register("demo.square", lambda x: x @ x, lambda n: (...,))
    >>> program("demo.square").sizes
    ('n',)
    >>> del programs()["demo.square"]
    """
    functions = {"materialised": fn, **(variants or {})}
    for memory in functions:
        require_choice("register", "variants", memory, ("materialised", "streamed"))

    makes: dict[str, Make] = {
        memory: lambda function=function, **sizes: (function, *inputs(**sizes))
        for memory, function in functions.items()
    }
    return _add(Program(name, tuple(signature(inputs).parameters), makes))


def register_counter(name: str, count: Callable[..., int]) -> Program:
    """Give a name to a whole number that depends on sizes, the parameters of `count`."""
    return _add(Program(name, tuple(signature(count).parameters), {}, count))


def register_made(name: str, make: Make) -> Program:
    """Give a name to a program of fixed sizes: `make()` returns it with its inputs."""
    return _add(Program(name, (), {"materialised": make}))


def register_demonstration(name: str, function: Callable[..., Any]) -> None:
    """Give a name to a function that `run(...)` may call without permission: it runs in the worker, unconfined."""
    require(name not in demonstrations(), "register", "name", "be new", repr(name))
    _demonstrations[name] = function


def register_sampler(name: str, function: Sampler) -> None:
    """Give a name to a program with a random output: `function(count, generator)` returns so many draws."""
    require(name not in samplers(), "register", "name", "be new", repr(name))
    _samplers[name] = function


def register_counting(added: Counting) -> None:
    """Say what counts programs; there is one."""
    require(not _counting, "register", "counting", "be registered once", added)
    _counting.append(added)


def program(name: str) -> Program:
    """The program of that name.

    >>> program("attention.softmax")
    Program(name='attention.softmax', sizes=('N', 'D', 'M'))
    """
    if name not in programs():
        refuse("program", "name", "be registered", repr(name), f"There are {', '.join(programs())}.")
    return programs()[name]


def _add(added: Program) -> Program:
    require(added.name not in programs(), "register", "name", "be new", repr(added.name))
    _programs[added.name] = added
    return added


def registered_here(name: str) -> bool:
    """Whether a program of that name was registered in this process alone, by its user."""
    return name in programs() and name not in _packaged


def programs_of(claim: Claim) -> set[str]:
    """The programs whose quantities a claim compares."""
    waiting, found = list(nodes(claim.relation)), {claim.program} if claim.program else set()
    while waiting:
        node = waiting.pop()
        if isinstance(node, Call) and node.function in QUANTITIES:
            found |= {argument.name for argument in node.arguments if isinstance(argument, Name)}
        waiting += children(node)
    return found


def misspelt(name: str) -> str:
    """The program that was probably meant, if there is none of this name; a file of the user is never one of ours.

    >>> misspelt("attention.sofmax"), misspelt("attention.softmax"), misspelt("net.py:step"), misspelt("mine.square")
    ('attention.softmax', '', '', '')
    """
    known = programs().keys() | samplers().keys()
    return "" if name in known or ":" in name else nearest(name, known, likeness=0.85)


def names_code(claim: Claim) -> bool:
    """Whether a program may be a file of the user: it is none of ours."""
    named = programs_of(claim) | ({claim.relation.program} if isinstance(claim.relation, Runs) else set())
    return bool(named) and not named <= programs().keys()


def needs_torch(claim: Claim) -> bool:
    """Whether a program of ours has to run or be counted; a file of the user has a process of its own."""
    return any(":" not in name for name in programs_of(claim)) or isinstance(claim.relation, Runs)
