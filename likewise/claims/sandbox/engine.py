"""Engine "run": what happens when a program is called, for the inputs it was called with.

Demonstrations are ours and may always be named. A file of the user, `net.forward` for the function `forward` of net.py
beside the claim, is run only where code is allowed, and then in a process that can do little but compute.
"""

from dataclasses import dataclass
from fractions import Fraction
from math import isinf, isnan, prod
from typing import Any

from likewise.claims import arrays
from likewise.claims.arithmetic.cited import Compared, number_text
from likewise.claims.language.claim import Between, Claim, Integers, OneOf, Reals, Runs
from likewise.claims.language.expressions import rebuilt
from likewise.claims.language.limits import ELEMENTS, SIZE
from likewise.claims.language.tree import Join, Name, Node, Number, names
from likewise.claims.reader import Reader
from likewise.claims.registry import demonstrations
from likewise.claims.sandbox.child import attempt, built
from likewise.claims.sandbox.confinement import OFF, Code, printable, program_file, run_confined
from likewise.claims.shapes import distinct_sizes
from likewise.claims.verdict import Finding, Undecided

OURS_TO_BLAME = ("OSError", "MemoryError", "ImportError", "can't allocate memory", "can't start new thread")


def decide(claim: Claim, *, allow_code: bool = False, folder: str = "") -> Finding | None:
    """Run what the claim names, and judge here what came back."""
    relation = claim.relation
    if not isinstance(relation, Runs):
        return None
    ours = demonstrations().get(relation.program)
    if ours is None and not allow_code:
        return Finding("inconclusive", "undecided", OFF, "run")
    sizes = distinct_sizes(claim)
    inputs = Inputs(claim, sizes)
    described = [inputs.described(node, place) for place, node in enumerate(relation.arguments)]
    if ours is not None:
        outcome, confinement = attempt(ours, [built(spec) for spec in described]), ""
        if _is_misuse(outcome):
            raise Undecided(f"{relation.program} does not take {len(described)} inputs")
    else:
        file, attribute = program_file(relation.program, folder)
        outcome, confinement = run_confined(Code(file, attribute, tuple(described)), claim.budget)
    found = Judged(relation, outcome, inputs.text(relation.arguments), sizes).finding()
    numbers = (("confinement", confinement),) if confinement else ()
    return Finding(found.verdict, found.grade, found.detail, "run", witness=found.witness, numbers=numbers)


@dataclass(frozen=True)
class Inputs:
    """What the arguments of a call stand for, at these sizes: tensors of normal numbers from the claim's seed."""

    claim: Claim
    sizes: dict[str, int]

    def described(self, node: Node, place: int) -> dict[str, Any]:
        """A description that `child.built` makes an input of."""
        variable = self.claim.variable(node.name) if isinstance(node, Name) else None
        if variable is None:
            return self._number(node)
        if any(variable.name in names(term) for chain in self.claim.assumptions for term in chain.terms):
            raise Undecided(f"inputs are drawn freely, but something is assumed of {variable.name}")
        seed = ((self.claim.seed or 0) + place) % 2**63
        match variable.kind:
            case Reals(dims):
                counts = [self._count(dim) for dim in dims]
                if prod(counts) > ELEMENTS or max(counts, default=1) > SIZE:
                    raise Undecided(f"{variable.name} has more than {ELEMENTS} numbers, or a size beyond {SIZE}")
                return {"dims": counts, "seed": seed}
            case Integers(lowest, highest):
                low, high = (-9, 9) if lowest is None or highest is None else (lowest, highest)
                return {"number": low + seed % (high - low + 1)}
            case OneOf(values):
                return {"number": plain(values[seed % len(values)])}
            case Between(lowest, highest):
                return {"number": plain(lowest + (highest - lowest) * Fraction(seed % 1009, 1008))}
        raise Undecided(f"{variable.name} is random; an input is declared in R^D or as x[D]")

    def _count(self, dim: Node) -> int:
        value = self._number(dim)["number"]
        if not isinstance(value, int) or value < 1:
            raise Undecided(f"{dim} is no size")
        return value

    def _number(self, node: Node) -> dict[str, Any]:
        sizes = {name: arrays.scalar(Fraction(size)) for name, size in self.sizes.items()}
        try:
            value = Reader(sizes, self.sizes).evaluate(node)
        except (Undecided, ArithmeticError, IndexError):
            raise Undecided(f"{node} is no exact number") from None
        numbers = list(map(plain, value.entries))
        return {"numbers": numbers} if value.shape else {"number": numbers[0]}

    def text(self, arguments: tuple[Node, ...]) -> tuple[tuple[str, str], ...]:
        """Inputs by name, as a verdict records them."""
        found = []
        for place, node in enumerate(arguments):
            spec = self.described(node, place)
            value = f"normal {spec['dims']}, seed {spec['seed']}" if "dims" in spec else str(next(iter(spec.values())))
            found.append((str(node), value))
        return tuple(found)


def plain(value: Fraction) -> int | float:
    """A whole number stays one."""
    return int(value) if value.denominator == 1 else float(value)


def _is_misuse(outcome: dict[str, Any]) -> bool:
    return outcome.get("raised", [""])[0] == "TypeError" and "positional argument" in outcome["message"]


@dataclass(frozen=True)
class Judged:
    """An outcome against what the claim says of it."""

    relation: Runs
    outcome: dict[str, Any]
    inputs: tuple[tuple[str, str], ...]
    sizes: dict[str, int]

    def finding(self) -> Finding:
        """Whatever the confinement may have caused, and whatever is no number, decides nothing."""
        if "missing" in self.outcome:
            raise Undecided(f"{self.relation.program} is not defined there, or cannot be called")
        if "raised" in self.outcome:
            return self._of_error(self.outcome["raised"], printable(self.outcome["message"]))
        returned = self.outcome["returned"]
        if self.relation.outcome in ("succeeds", "raises"):
            verdict = self.relation.outcome == "succeeds"
            return self._found(verdict, f"returned {printable(returned['kind'])}")
        return self._of_numbers(returned)

    def _of_error(self, kinds: list[str], message: str) -> Finding:
        text = f"{printable(kinds[0])}: {message}" if message else printable(kinds[0])
        if "Exception" not in kinds:
            raise Undecided(f"the code ended its process: {text}")
        if set(OURS_TO_BLAME) & set(kinds) or any(words in message for words in OURS_TO_BLAME):
            raise Undecided(f"the code met a limit of its confinement: {text}")
        wanted = self.relation.error or "Exception"
        return self._found(self.relation.outcome == "raises" and wanted in kinds, text)

    def _of_numbers(self, returned: dict[str, Any]) -> Finding:
        if not returned["numbers"]:
            raise Undecided(f"returned {printable(returned['kind'])}, which is not numbers")
        values = list(map(parsed, returned["numbers"]))
        assert self.relation.right is not None
        right = self._at_sizes(self.relation.right)
        parts = list(right.parts) if isinstance(right, Join) else [right] * len(values)
        if len(parts) != len(values):
            return self._found(False, f"returned {len(values)} numbers, not {len(parts)}")
        for place, (value, part) in enumerate(zip(values, parts, strict=True), start=1):
            truth, text = self._compared(value, part)
            if not truth:
                return self._found(False, f"entry {place}: {text}" if len(values) > 1 else text)
        shown = ", ".join(map(shortened, values[:8])) + ", ..." * (len(values) > 8)
        return self._found(True, f"returned {shown}")

    def _compared(self, value: Fraction | float, right: Node) -> tuple[bool, str]:
        sign = self.relation.outcome
        assert sign not in ("succeeds", "raises")
        if not isinstance(value, Fraction):
            if isnan(value) and sign == "!=":
                raise Undecided("returned nan, which differs from everything")
            infinite = {"<": value < 0, "<=": value < 0, ">": value > 0, ">=": value > 0, "!=": True}.get(sign, False)
            return infinite and not isnan(value), f"returned {value}"
        compared = Compared(Number(value), sign, right, self.relation.within, {})
        if compared.answer == "inconclusive":
            raise Undecided(f"{compared.detail}: too close to tell")
        return compared.answer == "holds", compared.detail

    def _at_sizes(self, node: Node) -> Node:
        if isinstance(node, Name) and node.name in self.sizes:
            return Number(Fraction(self.sizes[node.name]))
        return rebuilt(node, self._at_sizes)

    def _found(self, truth: bool, detail: str) -> Finding:
        inputs = f" for {', '.join(f'{name} {value}' for name, value in self.inputs)}" if self.inputs else ""
        if truth:
            return Finding("holds", "run", f"{detail}{inputs}", "run")
        return Finding("refuted", "run", detail, "run", witness=self.inputs or (("outcome", detail),))


def parsed(text: str) -> Fraction | float:
    """A number as `child.encoded` wrote it; exact, but for nan and the infinities."""
    try:
        if text.lstrip("-").isdigit():
            return Fraction(int(text))
        value = float(text)
    except ValueError:
        raise Undecided("the code answered with something that is no number") from None
    return value if isnan(value) or isinf(value) else Fraction(value)


def shortened(value: Fraction | float) -> str:
    """A few digits."""
    return number_text((value, value)) if isinstance(value, Fraction) else str(value)
