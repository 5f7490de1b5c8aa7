"""A claim: what is quantified, over what, under which conventions, and the relation that is to hold."""

from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, Literal

from likewise.claims.language.tree import PRECEDENCE, Chain, Comparison, Node, fraction_text, inside

Quantity = Literal["cost", "elementwise", "traffic", "params", "peak", "saved", "count"]
VerdictName = Literal["holds", "refuted", "inconclusive", "malformed"]
CONVENTIONS = ("unit", "layout", "kernel", "memory")


def _within(tolerance: "Tolerance | None") -> str:
    return "" if tolerance is None else f" within {tolerance}"


@dataclass(frozen=True, slots=True)
class Tolerance:
    """`within 0.01` (absolute), or `within 1%` of the right side."""

    value: Fraction
    relative: bool

    def __str__(self) -> str:
        return f"{fraction_text(self.value * 100)}%" if self.relative else fraction_text(self.value)


@dataclass(frozen=True, slots=True)
class Compares:
    """A chain that is to hold for every value of its variables."""

    chain: Chain
    within: Tolerance | None = None

    def __str__(self) -> str:
        return str(self.chain) + _within(self.within)


@dataclass(frozen=True, slots=True)
class Bounded:
    """`cost in O(N^2*D)`: the order of a quantity of the claim's program, or of any expression over sizes."""

    quantity: "Quantity | Node"
    order: Literal["O", "Omega", "Theta"]
    bound: Node

    def __str__(self) -> str:
        return f"{self.quantity} in {self.order}({self.bound})"


@dataclass(frozen=True, slots=True)
class Counts:
    """`cost == N^2*D + N^2*M`: a quantity of the claim's program against a polynomial or a number."""

    quantity: Quantity
    comparison: Comparison
    right: Node
    within: Tolerance | None = None

    def __str__(self) -> str:
        return f"{self.quantity} {self.comparison} {self.right}{_within(self.within)}"


@dataclass(frozen=True, slots=True)
class HasShape:
    """`x @ y' has shape [n, m]`."""

    body: Node
    dims: tuple[Node, ...]

    def __str__(self) -> str:
        return f"{self.body} has shape [{', '.join(map(str, self.dims))}]"


@dataclass(frozen=True, slots=True)
class Runs:
    """`run(name, x) succeeds`, `... raises ValueError`, or a comparison of what it returns."""

    program: str
    arguments: tuple[Node, ...]
    outcome: Literal["succeeds", "raises"] | Comparison
    error: str | None = None
    right: Node | None = None
    within: Tolerance | None = None

    def __str__(self) -> str:
        call = f"run({', '.join([self.program, *map(str, self.arguments)])})"
        rest = [self.outcome, self.error or "", str(self.right) if self.right is not None else ""]
        return " ".join([call, *filter(None, rest)]) + _within(self.within)


Relation = Compares | Bounded | Counts | HasShape | Runs


@dataclass(frozen=True, slots=True)
class Reals:
    """R, R^D, R^(N, D), or the tensor x[N, D]: any finite numbers of that shape."""

    dims: tuple[Node, ...] = ()

    def __str__(self) -> str:
        if len(self.dims) > 1:
            return f"R^({', '.join(map(str, self.dims))})"
        return f"R^{inside(self.dims[0], PRECEDENCE['x'])}" if self.dims else "R"


@dataclass(frozen=True, slots=True)
class Integers:
    """Z, or lowest..highest."""

    lowest: int | None = None
    highest: int | None = None

    def __str__(self) -> str:
        return "Z" if self.lowest is None else f"{self.lowest}..{self.highest}"


@dataclass(frozen=True, slots=True)
class OneOf:
    """{1, 2, 4}."""

    values: tuple[Fraction, ...]

    def __str__(self) -> str:
        return f"{{{', '.join(map(fraction_text, self.values))}}}"


@dataclass(frozen=True, slots=True)
class Between:
    """[0, 1], both ends included."""

    lowest: Fraction
    highest: Fraction

    def __str__(self) -> str:
        return f"[{fraction_text(self.lowest)}, {fraction_text(self.highest)}]"


@dataclass(frozen=True, slots=True)
class Normal:
    """N(mean, spread): the spread is a variance or a covariance, unless it is written `std=`."""

    mean: Node
    spread: Node
    is_std: bool = False

    def __str__(self) -> str:
        return f"N({self.mean}, {'std=' if self.is_std else ''}{self.spread})"


@dataclass(frozen=True, slots=True)
class Uniform:
    """U(lowest, highest)."""

    lowest: Node
    highest: Node

    def __str__(self) -> str:
        return f"U({self.lowest}, {self.highest})"


@dataclass(frozen=True, slots=True)
class Rademacher:
    """A vector of fair signs, -1 or 1."""

    dim: Node

    def __str__(self) -> str:
        return f"Rademacher({self.dim})"


@dataclass(frozen=True, slots=True)
class Exponential:
    """Exp(rate): waiting times with mean 1/rate."""

    rate: Node

    def __str__(self) -> str:
        return f"Exp({self.rate})"


@dataclass(frozen=True, slots=True)
class Bernoulli:
    """1 with probability p, else 0."""

    chance: Node

    def __str__(self) -> str:
        return f"Bernoulli({self.chance})"


Domain = Reals | Integers | OneOf | Between
Law = Normal | Uniform | Rademacher | Exponential | Bernoulli


@dataclass(frozen=True, slots=True)
class Variable:
    """Quantified over its domain, or random with its law; `layout` is what `row` or `col` said, if anything."""

    name: str
    kind: Domain | Law
    layout: Literal["row", "col"] | None = None

    @property
    def random(self) -> bool:
        return isinstance(self.kind, Law)

    def __str__(self) -> str:
        return f"{self.name} {'~' if self.random else 'in'} {self.kind}{' ' + self.layout if self.layout else ''}"


@dataclass(frozen=True, slots=True)
class Size:
    """A whole number of at least 1, free or given by an equation over earlier sizes (d = h*k)."""

    name: str
    equation: Node | None = None

    def __str__(self) -> str:
        return self.name if self.equation is None else f"{self.name} = {self.equation}"


@dataclass(frozen=True, slots=True)
class Definition:
    """phi(x) = ...; without parameters a name for an expression. Never recursive."""

    name: str
    parameters: tuple[str, ...]
    body: Node

    def __str__(self) -> str:
        head = f"{self.name}({', '.join(self.parameters)})" if self.parameters else self.name
        return f"{head} = {self.body}"


@dataclass(frozen=True, slots=True)
class Cell:
    """A number as it was printed; the digits say how it was rounded."""

    value: Fraction
    decimals: int  # digits after the point; negative for 1.6e9, whose last printed digit stands for 1e8

    @property
    def half_unit(self) -> Fraction:
        """Half of the last printed digit: the true number is this close."""
        return Fraction(1, 2) / Fraction(10) ** self.decimals


@dataclass(frozen=True, slots=True)
class Source:
    """Where cited numbers stand. That they stand there is the author's word."""

    title: str = ""
    place: str = ""
    cells: tuple[tuple[str, Cell], ...] = ()


@dataclass(frozen=True, slots=True)
class Claim:
    """One parsed claim. `relation`, `assumptions` and laws are free of definitions: `inlined` put the bodies in."""

    id: str
    relation: Relation
    variables: tuple[Variable, ...] = ()
    sizes: tuple[Size, ...] = ()  # those of `sizes:`, then names of dims that nothing else declares
    assumptions: tuple[Chain, ...] = ()
    definitions: tuple[Definition, ...] = ()
    written: str = ""  # the relation before definitions were inlined
    raw: tuple[Any, ...] = ()  # relation, assumptions, sets and laws before that, for the judge; () without definitions
    program: str | None = None
    expect: VerdictName | None = None
    source: Source | None = None
    revises: str | None = None
    unit: Literal["mac", "flop"] | None = None
    layout: Literal["rows", "columns"] = "rows"
    kernel: Literal["unfused", "fused"] = "unfused"
    memory: Literal["materialised", "streamed"] = "materialised"
    alpha: Fraction = Fraction(1, 10**6)
    budget: float = 5.0
    points: int = 8
    seed: int | None = None
    bounded: tuple[Fraction, Fraction] | None = None
    who: str = ""  # said it
    noticed: str = ""
    note: str = ""
    row: int | None = None  # of the catalogue
    given_fields: frozenset[str] = field(default=frozenset())  # which fields were written, not left at their default

    @property
    def statement(self) -> str:
        """The claim as it was understood, in its own language, on one line."""
        parts = [f"given: {'; '.join(map(str, self.variables))}" if self.variables else ""]
        told = self.program or any(size.equation is not None for size in self.sizes)
        parts += [f"sizes: {', '.join(map(str, self.sizes))}" if self.sizes and told else ""]
        parts += [f"of: {self.program}" if self.program else ""]
        parts += [str(definition) for definition in self.definitions]
        parts += [f"assume: {'; '.join(map(str, self.assumptions))}" if self.assumptions else ""]
        parts += [f"{name}: {getattr(self, name)}" for name in CONVENTIONS if name in self.given_fields]
        parts += [f"assert: {self.written or self.relation}"]
        return " | ".join(filter(None, parts))

    def variable(self, name: str) -> Variable | None:
        """The variable of that name, if it is one."""
        return next((variable for variable in self.variables if variable.name == name), None)

    def size(self, name: str) -> Size | None:
        """The size of that name, if it is one."""
        return next((size for size in self.sizes if size.name == name), None)
