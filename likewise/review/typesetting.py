"""Terms and relations of the claim language as MathML: what the run says is shown as formulas, like the answer.

A claim is parsed and printed as LaTeX, which `mathml` sets. What has no LaTeX here stays as it is typed.
"""

import re
from collections.abc import Mapping
from functools import lru_cache

from likewise.claims.language.claim import Compares, Domain, Law, Normal, Rademacher, Reals, Uniform
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unbounded, Unparsed
from likewise.claims.language.tree import (
    PRECEDENCE,
    Binary,
    Call,
    Chain,
    Constant,
    Index,
    Indexed,
    Join,
    Matrix,
    Moment,
    Name,
    Negative,
    Node,
    Number,
    Probability,
    Transpose,
    children,
    precedence,
)
from likewise.review.mathml import Unset, mathml
from likewise.review.setting import escaped

GREEK = re.compile(
    "alpha|beta|gamma|delta|epsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|pi|rho|sigma|tau|phi|chi|psi|omega"
    "|Gamma|Delta|Theta|Lambda|Sigma|Phi|Psi|Omega"
)
SIGNS = {"==": "=", "!=": r"\ne", "<": "<", "<=": r"\le", ">": ">", ">=": r"\ge"}
AROUND = {
    "sqnorm": (r"\|", r"\|", "^2"),
    "norm": (r"\|", r"\|", ""),
    "abs": ("|", "|", ""),
    "floor": (r"\lfloor", r"\rfloor", ""),
    "ceil": (r"\lceil", r"\rceil", ""),
}
SCALARS = frozenset(("dot", "sqnorm", "norm", "sum", "mean", "max", "min", "tr", "dim", "choose", "prod", "argmax"))
AXES = {
    "outer": 2,
    "I": 2,
    "ones": 1,
    "zeros": 1,
    "vec": 1,
    "pairs": 1,
    "einsum": 4,
    "reshape": 4,
    "transpose": 4,
    "grad": 4,
}
TALL = re.compile(r"\\(?:frac|sum|prod|binom|begin|sqrt)")  # what brackets grow with
OPERATORS = frozenset(("exp", "log", "sin", "cos", "tanh", "max", "min"))
SUMS = {"sum": r"\sum", "prod": r"\prod", "max": r"\max", "min": r"\min"}
NAME = re.compile(r"(?P<head>[A-Za-z]+)(?P<number>\d*)(?:_(?P<below>\w+))?")
POWER, PRODUCT, ATOM = PRECEDENCE["^"], PRECEDENCE["*"], PRECEDENCE["x"]


def set_relation(statement: str, relation: str = "") -> str:
    r"""What a claim asserts as HTML, or another relation under its `given:`.

    >>> print(set_relation("given: x in R | assert: x <= 2"))
    <math display="inline" alttext="x \le 2"><mrow><mi>x</mi><mo>≤</mo><mn>2</mn></mrow></math>
    """
    head, asserted = _split(statement)
    found = _compared(f"{head}assert: {relation or asserted}")
    return _set(found, relation or asserted)


def set_sides(statement: str, link: int = 0) -> tuple[str, str]:
    """The two sides of a claim's comparison, of a chain the one that fails, as HTML; empty if it makes none."""
    found = _compared("assert: ".join(_split(statement)))
    first = max(link, 1) - 1
    if found is None or len(found.terms) < first + 2 or (len(found.terms) > 2 and not link):
        return "", ""
    left, right = (_set(term, str(term)) for term in found.terms[first : first + 2])
    return left, right


def set_condition(statement: str, condition: str) -> str:
    """What would make a claim true as HTML: one comparison, or several with commas between them."""
    several = [set_relation(statement, each) for each in condition.split(", ")]
    return (
        ", ".join(several) if all(each.startswith("<math") for each in several) else set_relation(statement, condition)
    )


def set_term(statement: str, term: str) -> str:
    """A term over the names of a claim as HTML."""
    found = _compared(f"{_split(statement)[0]}assert: {term} == 0")
    return _set(found.terms[0] if found else None, term)


def chain(node: Chain) -> str:
    """A chain of comparisons as LaTeX."""
    rest = (f" {SIGNS[sign]} {latex(term)}" for sign, term in zip(node.comparisons, node.terms[1:], strict=True))
    return latex(node.terms[0]) + "".join(rest)


def latex(node: Node) -> str:
    r"""A term as LaTeX.

    >>> from fractions import Fraction
    >>> print(latex(Call("sqnorm", (Binary("-", Name("q"), Name("k")),))), latex(Name("w_in2")))
    \| q - k \|^2 w_{\mathrm{in2}}
    """
    match node:
        case Number(value):
            return _number(str(node)) if value.denominator != 1 and "/" in str(node) else str(node)
        case Constant():
            return r"\pi"
        case Name(name):
            return _name(name)
        case Negative(operand):
            return f"-{_inside(operand, PRECEDENCE['-x'])}"
        case Binary():
            return _binary(node)
        case Transpose(operand):
            return f"{_inside(operand, ATOM)}^\\top"
        case Index(operand, indices):
            return f"{_inside(operand, ATOM)}_{{{', '.join(map(latex, indices))}}}"
        case Join(parts):
            return _within("[", ", ".join(map(latex, parts)), "]")
        case Matrix(rows) if all(isinstance(row, Join) for row in rows):
            lines = (" & ".join(map(latex, row.parts)) for row in rows if isinstance(row, Join))
            return r"\begin{pmatrix}" + r" \\ ".join(lines) + r"\end{pmatrix}"
        case Moment(kind, body):
            letter = r"\mathbb{E}" if kind == "E" else r"\operatorname{Var}"
            return letter + _within("[", latex(body), "]")
        case Probability(event):
            return "P" + _within("[", chain(event), "]")
        case Indexed(function, index, lowest, highest, body) if function in SUMS:
            below = f"{_name(index)}={latex(lowest)}"
            above = "" if function in ("max", "min") else f"^{{{latex(highest)}}}"
            below += "" if above else rf",\dots,{latex(highest)}"
            return rf"{SUMS[function]}_{{{below}}}{above} {_inside(body, PRODUCT)}"
        case Call(function, arguments):
            return _call(function, arguments)
    raise Unset(f"there is no LaTeX of {type(node).__name__} here")


def _call(function: str, arguments: tuple[object, ...]) -> str:
    if not all(isinstance(each, Node) for each in arguments):
        raise Unset(f"there is no LaTeX of {function} here")
    terms = [each for each in arguments if isinstance(each, Node)]
    match function, terms:
        case "dot", [a, b]:
            return rf"{_inside(a, ATOM)}^\top {_inside(b, ATOM)}"
        case "outer", [a, b]:
            return rf"{_inside(a, ATOM)} {_inside(b, ATOM)}^\top"
        case "choose", [a, b]:
            return rf"\binom{{{latex(a)}}}{{{latex(b)}}}"
        case "factorial", [a]:
            return f"{_inside(a, ATOM)}!"
        case "I", [a]:
            return f"I_{{{latex(a)}}}"
        case "sqrt", [a]:
            return rf"\sqrt{{{latex(a)}}}"
        case _, [a] if function in AROUND:
            opening, closing, after = AROUND[function]
            return _within(opening, latex(a), closing) + after
    name = f"\\{function}" if function in OPERATORS else rf"\operatorname{{{function}}}"
    return name + _within("(", ", ".join(map(latex, terms)), ")")


def _binary(node: Binary) -> str:
    mine = PRECEDENCE[node.operator]
    if node.operator == "^":
        norm = isinstance(node.left, Call) and node.left.function == "sqnorm"
        if norm and isinstance(node.right, Number) and str(node.right).isdigit():
            return latex(node.left).removesuffix("^2") + f"^{{{2 * node.right.value}}}"
        return f"{_base(node.left)}^{{{latex(node.right)}}}"
    if node.operator == "/":
        return rf"\frac{{{latex(node.left)}}}{{{latex(node.right)}}}"
    left, right = _inside(node.left, mine), _inside(node.right, mine + 1)
    if right.startswith("-"):
        right = _within("(", right, ")")
    if node.operator in "+-":
        return f"{left} {node.operator} {right}"
    dotted = node.operator == "*" and (right[:1].isdigit() or right.startswith("\\frac"))
    return rf"{left} \cdot {right}" if dotted else rf"{left}\,{right}"


def _base(node: Node) -> str:
    """What is raised to a power: a name, a whole number or what has brackets of its own; else in parentheses."""
    single = isinstance(node, Name | Constant | Moment | Probability) and "_" not in str(node)
    single |= isinstance(node, Number) and str(node).isdigit()
    single |= isinstance(node, Call) and node.function not in ("sqnorm", "dot", "outer", "factorial")
    return latex(node) if single else _within("(", latex(node), ")")


def _inside(node: Node, least: int) -> str:
    """A node as part of one that binds with `least`."""
    loose = isinstance(node, Call) and node.function in ("dot", "outer", "sqnorm", "factorial") and least > PRODUCT + 1
    loose |= isinstance(node, Indexed) and least > PRECEDENCE["+"]
    fraction = isinstance(node, Binary) and node.operator == "/" and least <= POWER  # its bar holds it together
    bare = not loose and (fraction or precedence(node) >= least)
    return latex(node) if bare else _within("(", latex(node), ")")


def _within(opening: str, inside: str, closing: str) -> str:
    """A term in brackets, which grow with it if it is tall."""
    return rf"\left{opening}{inside}\right{closing}" if TALL.search(inside) else f"{opening} {inside} {closing}"


def _number(text: str) -> str:
    top, _, bottom = text.partition("/")
    sign, top = ("-", top[1:]) if top.startswith("-") else ("", top)
    return rf"{sign}\frac{{{top}}}{{{bottom}}}"


def _name(name: str) -> str:
    found = NAME.fullmatch(name)
    if not found:
        raise Unset(f"{name} has no LaTeX here")
    head, below = found["head"], found["number"] + (found["below"] or "")
    shown = f"\\{head}" if GREEK.fullmatch(head) else head if len(head) == 1 else rf"\mathrm{{{head}}}"
    under = below if below.isdigit() or len(below) == 1 else rf"\mathrm{{{below}}}"
    return f"{shown}_{{{under}}}" if below else shown


def _split(statement: str) -> tuple[str, str]:
    """What a claim says about its names, and what it asserts."""
    head, _, asserted = statement.replace(" | ", "\n").rpartition("assert: ")
    return head, asserted


@lru_cache(maxsize=4096)
def _compared(text: str) -> Chain | None:
    """The comparison of a claim, as it was written."""
    try:
        claim = parse(text, id="claim")
    except (Unparsed, Unbounded, RecursionError):
        return None
    relation = claim.raw[0] if claim.raw else claim.relation
    if not isinstance(relation, Compares) or relation.within:
        return None
    axes = {each.name: _axes_of(each.kind) for each in claim.variables}
    return relation.chain if all(_usual(term, axes) for term in relation.chain.terms) else None


def _axes_of(kind: Domain | Law) -> int:
    """How many axes a variable has; 0 for a number."""
    match kind:
        case Reals(dims):
            return len(dims)
        case Normal(mean, spread):
            return min(1, max(_axes(mean, {}), _axes(spread, {})))
        case Uniform(lowest, highest):
            return max(_axes(lowest, {}), _axes(highest, {}))
    return int(isinstance(kind, Rademacher))


def _axes(node: Node, axes: Mapping[str, int]) -> int:
    """How many axes a term has at most."""
    inside = max((_axes(each, axes) for each in children(node)), default=0)
    match node:
        case Name(name):
            return axes.get(name, 0)
        case Call(function):
            return 0 if function in SCALARS else AXES.get(function, inside)
        case Index(operand, indices):
            return max(0, _axes(operand, axes) - len(indices))
        case Join():
            return 1
        case Matrix():
            return 2
        case Probability():
            return 0
    return inside


def _usual(node: Node, axes: Mapping[str, int]) -> bool:
    """False if a product, quotient or power is taken entry by entry: in print it would look like another."""
    if isinstance(node, Binary) and node.operator in "*/^":
        left, right = _axes(node.left, axes), _axes(node.right, axes)
        if right and (left or node.operator != "*"):
            return False
        if left and node.operator == "^":
            return False
    return all(_usual(each, axes) for each in children(node))


def _set(node: Node | Chain | None, typed: str) -> str:
    try:
        if node is None:
            raise Unset("not parsed")
        return mathml(chain(node) if isinstance(node, Chain) else latex(node))
    except (Unset, RecursionError):
        return f"<code>{escaped(typed)}</code>"
