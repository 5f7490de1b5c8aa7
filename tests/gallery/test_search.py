"""Search in blocks finds what comparing with every template finds."""

import numpy
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from likewise.gallery import search
from likewise.gallery.search import Matrix

KINDS = ["unit", "free", "codes"]


def rows_of(kind: str, count: int, width: int, draw: numpy.random.Generator) -> numpy.ndarray:
    if kind == "codes":
        return draw.integers(-127, 128, (count, width)).astype(numpy.int8)
    rows = draw.normal(size=(count, width)) * (1 if kind == "unit" else draw.uniform(0.1, 5, (count, 1)))
    return (rows / numpy.linalg.norm(rows, axis=1, keepdims=True) if kind == "unit" else rows).astype(numpy.float32)


def plain(queries: numpy.ndarray, rows: numpy.ndarray, owners: numpy.ndarray, k: int) -> tuple[list, list]:
    """Every distance in float64, sorted by (distance, row)."""
    q, y = queries.astype(numpy.float64), rows.astype(numpy.float64)
    if rows.dtype == numpy.int8:
        lengths = numpy.sqrt((q * q).sum(1)[:, None] * (y * y).sum(1))
        squared = numpy.maximum(2 - 2 * (q @ y.T) / lengths, 0)
    else:
        squared = ((q[:, None] - y) ** 2).sum(-1)
    squared[:, owners == 0] = numpy.inf
    order = numpy.argsort(squared, axis=1, kind="stable")[:, :k]
    return order.tolist(), numpy.take_along_axis(squared, order, 1).tolist()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("queries", [1, 3, 5, 71])
def test_search_equals_all_distances(kind: str, queries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search, "BLOCK", 512)
    monkeypatch.setattr(search, "PANEL", 256)
    draw = numpy.random.default_rng(0)
    rows = rows_of(kind, 3001, 17, draw)
    owners = draw.integers(0, 40, 3001)  # some rows are vacant
    matrix = Matrix(17, codes=kind == "codes", unit=kind == "unit")
    for start in range(0, 3001, 700):
        matrix.put(start, rows[start : start + 700], owners[start : start + 700])
    probes = rows_of(kind, queries, 17, draw)
    found = matrix.nearest(probes, k=11)
    order, squared = plain(probes, rows, owners, 11)
    assert found.rows.tolist() == order
    numpy.testing.assert_allclose(found.squared, squared, rtol=1e-9, atol=1e-12)
    assert len(matrix) == int((owners != 0).sum())


def test_machines_that_do_not_multiply_bytes_find_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    draw = numpy.random.default_rng(1)
    rows, probes = rows_of("codes", 1500, 31, draw), rows_of("codes", 3, 31, draw)
    matrix = Matrix(31, codes=True, unit=True)
    matrix.put(0, rows, numpy.arange(1, 1501))
    fast = matrix.nearest(probes, k=7)
    monkeypatch.setattr(search, "_bytes_multiply", lambda width: False)
    slow = matrix.nearest(probes, k=7)
    assert fast.rows.tolist() == slow.rows.tolist() == plain(probes, rows, matrix.owners[:1500], 7)[0]
    assert fast.squared.tolist() == slow.squared.tolist()


def test_products_of_bytes_are_used_only_where_they_are_exact(monkeypatch: pytest.MonkeyPatch) -> None:
    def saturating(one: torch.Tensor, two: torch.Tensor) -> torch.Tensor:
        pairs = one.int()[:, :, None] * two.int()[None]
        halves = pairs[:, 0::2] + pairs[:, 1::2]  # 16 bits, as without VNNI
        return halves.clamp(-32768, 32767).sum(1)

    search._bytes_multiply.cache_clear()
    monkeypatch.setattr(torch, "_int_mm", saturating)
    assert not search._bytes_multiply(32)
    search._bytes_multiply.cache_clear()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from(KINDS), st.integers(1, 9), st.integers(1, 200), st.integers(1, 12))
def test_ties_and_copies_are_found_in_order(seed: int, kind: str, queries: int, count: int, k: int) -> None:
    draw = numpy.random.default_rng(seed)
    few = rows_of(kind, 3, 5, draw)
    few[~few.any(1)] = 1
    rows = few[draw.integers(0, 3, count)]  # many copies of each
    owners = draw.integers(0, 2, count)
    matrix = Matrix(5, codes=kind == "codes", unit=kind == "unit")
    matrix.put(0, rows, owners)
    k = min(k, max(1, int(owners.sum())))
    found = matrix.nearest(few[draw.integers(0, 3, queries)], k=k)
    for row in range(queries):
        near = found.rows[row][found.rows[row] >= 0]
        assert len(near) == min(k, int(owners.sum()))
        assert owners[near].all()
        pairs = list(zip(found.squared[row].tolist(), found.rows[row].tolist(), strict=True))
        assert pairs == sorted(pairs)


def test_fewer_templates_than_asked_for_leave_gaps() -> None:
    matrix = Matrix(2, codes=False, unit=True)
    empty = matrix.nearest(numpy.ones((2, 2), numpy.float32), k=3)
    assert empty.rows.tolist() == [[-1] * 3] * 2
    matrix.put(0, numpy.eye(2, dtype=numpy.float32), numpy.array([4, 5]))
    matrix.vacate(numpy.array([0]))
    found = matrix.nearest(numpy.array([[1.0, 0.0]], numpy.float32), k=3)
    assert found.rows.tolist() == [[1, -1, -1]]
    assert found.squared.tolist() == [[2.0, numpy.inf, numpy.inf]]


@pytest.mark.parametrize(
    ("queries", "k", "message"),
    [
        (numpy.ones((1, 3), numpy.float32), 1, r"queries must be rows of 2 numbers; got \(1, 3\)"),
        (numpy.ones((1, 2), numpy.float64), 1, "queries must be float32; got float64"),
        (numpy.ones((1, 2), numpy.float32), 0, "k must be a whole number of at least 1; got 0"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_queries_are_refused(queries: numpy.ndarray, k: int, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Matrix(2, codes=False, unit=True).nearest(queries, k=k)
