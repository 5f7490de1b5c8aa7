"""Arrays with written entries: arithmetic, transposes, determinants and traces."""

from collections.abc import Sequence

from likewise.grading.arithmetic import Unclear
from likewise.grading.parsing import bare
from likewise.reading.expressions import Node, number

ARRAYS = ("vector", "matrix")
ROWS = 6


def has_array(node: Node) -> bool:
    """Whether the value is an array with written entries: a vector, a matrix, or arithmetic of these."""
    node = bare(node)
    if node.kind in ARRAYS or diagonal_of(node):
        return True
    if node.kind == "product":
        return any(map(has_array, node.parts))
    return node.kind in ("+", "-", "neg", "/", "transpose") and has_array(node.parts[0])


def diagonal_of(node: Node) -> tuple[Node, ...]:
    """The entries of diag(a, b), or nothing."""
    if node.kind != "call" or node.text != "diag":
        return ()
    inner = bare(node.parts[0])
    return inner.parts if len(node.parts) == 1 and inner.kind == "vector" else node.parts if len(node.parts) > 1 else ()


def rows_of(node: Node) -> list[list[Node]]:
    """The entries of an array. A transpose of a tuple is a column, as people write (1, 2)^T."""
    node = bare(node)
    if node.kind == "matrix":
        return [list(row.parts) for row in node.parts]
    if node.kind == "vector":
        return [[part] for part in node.parts]
    if entries := diagonal_of(node):
        zero = number("0")
        return [[entry if row == place else zero for row in range(len(entries))] for place, entry in enumerate(entries)]
    if not has_array(node):
        raise Unclear("a vector or matrix and something else")
    inner = bare(node.parts[0])
    if node.kind == "transpose" and inner.kind == "vector":
        return rows_of(inner)
    if node.kind == "transpose":
        return [list(column) for column in zip(*rows_of(inner), strict=True)]
    if node.kind == "neg":
        return [[Node("neg", (entry,)) for entry in row] for row in rows_of(inner)]
    if node.kind == "/":
        return [[Node("/", (entry, node.parts[1])) for entry in row] for row in rows_of(inner)]
    if node.kind in ("+", "-"):
        one, other = map(rows_of, node.parts)
        if (len(one), len(one[0])) != (len(other), len(other[0])):
            raise Unclear("a sum of different shapes")
        return [[Node(node.kind, pair) for pair in zip(*rows, strict=True)] for rows in zip(one, other, strict=True)]
    found: list[list[Node]] | None = None
    scalar: list[Node] = []
    for part in node.parts:
        if not has_array(part):
            scalar.append(part)
            continue
        right = rows_of(part)
        if found is not None and (len(found[0]) != len(right) or max(len(found), len(right), len(right[0])) > ROWS):
            raise Unclear("a product whose shapes do not fit")
        found = (
            right if found is None else [[_dot(row, column) for column in zip(*right, strict=True)] for row in found]
        )
    assert found is not None
    return [[Node("product", (*scalar, entry), joined=("",) * len(scalar)) for entry in row] for row in found]


def _dot(row: Sequence[Node], column: Sequence[Node]) -> Node:
    terms = [Node("product", pair, joined=("",)) for pair in zip(row, column, strict=True)]
    total = terms[0]
    for term in terms[1:]:
        total = Node("+", (total, term))
    return total


def expanded(node: Node) -> Node:
    """The tree with determinants and traces of written matrices multiplied out."""
    if node.kind == "call" and node.text in ("det", "tr") and len(node.parts) == 1 and has_array(node.parts[0]):
        rows = rows_of(node.parts[0])
        if len(rows) != len(rows[0]) or len(rows) > 5:
            raise Unclear(f"{node.text} of a matrix that is not square, or large")
        if node.text == "det":
            return _determinant(rows)
        total = rows[0][0]
        for place in range(1, len(rows)):
            total = Node("+", (total, rows[place][place]))
        return total
    return Node(node.kind, tuple(map(expanded, node.parts)), node.text, node.joined)


def _determinant(rows: list[list[Node]]) -> Node:
    if len(rows) == 1:
        return rows[0][0]
    total = number("0")
    for place, entry in enumerate(rows[0]):
        minor = [row[:place] + row[place + 1 :] for row in rows[1:]]
        term = Node("product", (entry, _determinant(minor)), joined=("",))
        total = Node("-" if place % 2 else "+", (total, term))
    return total
