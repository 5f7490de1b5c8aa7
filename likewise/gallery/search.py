"""Exact nearest templates in memory, float32 vectors or one-byte codes: products in blocks, then float64."""

from dataclasses import dataclass
from functools import cache

import numpy
import torch
from jaxtyping import Float32, Float64, Int8, Int64

from likewise.checks import require, require_count

BLOCK = 1 << 16  # rows of one array: 32 MB of float32 at width 128
PANEL = 1 << 11  # rows of one matrix product, at least
SCORES = 1 << 19  # of one matrix product with few queries: 2 MB, which stay in the cache
GROUP = 32  # scores that share one maximum: what does not reach a query's bound is skipped 32 at a time
SAMPLE = 4096  # scores of the first block that give one query its first bound
FEW = 4  # queries for which numpy's vector product is faster than torch's matrix product
QUERIES = 1024  # at a time
EXTRA = 16  # candidates beyond the k nearest that are measured again in float64

Array = numpy.ndarray


@dataclass(frozen=True, eq=False)
class Nearest:
    """Rows of the k nearest templates, nearest first, and their squared distances; -1 and inf where there are fewer."""

    rows: Int64[Array, "n k"]
    squared: Float64[Array, "n k"]


class Matrix:
    """Templates of one model and their owners, searched exactly by (squared distance, row).

    codes: rows are int8 (`likewise.metric.quantised`) and compared by their angle, D = 2 - 2 q.p / (|q| |p|). unit:
    float rows have length 1. Rows without an owner (0) are never found.

    Products in float32 (exact integers for codes) give k + 16 candidates and a bound on all other rows; candidates are
    measured again in float64. If the k-th does not lie below the bound, the query is asked again with 8 times as many.

    >>> templates = Matrix(2, codes=False, unit=False)
    >>> templates.put(0, numpy.array([[5.0, 0.0], [1.0, 0.0], [-1.0, 0.0]], "f"), numpy.array([7, 8, 9]))
    >>> found = templates.nearest(numpy.array([[0.0, 0.0]], "f"), k=2)
    >>> found.rows.tolist(), found.squared.tolist()
    ([[1, 2]], [[1.0, 1.0]])
    """

    def __init__(self, width: int, *, codes: bool, unit: bool) -> None:
        self.width, self.codes, self.unit = width, codes, unit
        self.dtype = numpy.dtype(numpy.int8 if codes else numpy.float32)
        self.blocks: list[Array] = []
        self.factors: list[Array] = []  # of codes 1 / |q|, of free vectors |y|^2 / 2, nothing for unit ones
        self._steepest: list[float] = []  # at least the greatest factor of each block
        self.owners = numpy.zeros(0, numpy.int64)
        self.count = 0  # rows up to the last that was ever used
        self._vacant: Array | None = None

    def __len__(self) -> int:
        return self.count - len(self.vacant)

    @property
    def nbytes(self) -> int:
        """Memory of templates and what search keeps with them."""
        return sum(each.nbytes for each in (*self.blocks, *self.factors, self.owners))

    @property
    def vacant(self) -> Array:
        """Rows that belong to no identity."""
        if self._vacant is None:
            self._vacant = numpy.flatnonzero(self.owners[: self.count] == 0)
        return self._vacant

    def put(self, start: int, vectors: Array, owners: Array) -> None:
        """Write rows from `start` on; owner 0 vacates a row, whose numbers become 0."""
        assert vectors.dtype == self.dtype, vectors.dtype
        stop = start + len(vectors)
        while len(self.blocks) * BLOCK < stop:
            self.blocks.append(numpy.zeros((BLOCK, self.width), self.dtype))
            if self.codes or not self.unit:
                self.factors.append(numpy.zeros(BLOCK, numpy.float32))
                self._steepest.append(0.0)
        if len(self.owners) < stop:
            grown = numpy.zeros(max(stop, 2 * len(self.owners)), numpy.int64)
            grown[: len(self.owners)] = self.owners
            self.owners = grown
        self.owners[start:stop] = owners
        while start < stop:
            number, offset = divmod(start, BLOCK)
            some, vectors = numpy.split(vectors, [BLOCK - offset])
            place = slice(offset, offset + len(some))
            self.blocks[number][place] = some
            if self.factors:
                squares = _squares(some)
                factors = 1 / numpy.sqrt(numpy.maximum(squares, 1)) if self.codes else squares / 2
                self.factors[number][place] = factors
                self._steepest[number] = max(self._steepest[number], float(factors.max()))
            start += len(some)
        self.count = max(self.count, stop)
        self._vacant = None

    def vacate(self, rows: Array) -> None:
        """Overwrite rows with zeros."""
        for row in rows.tolist():
            self.put(row, numpy.zeros((1, self.width), self.dtype), numpy.zeros(1, numpy.int64))

    def rows(self, rows: Array) -> Array:
        """The templates of some rows."""
        found = numpy.empty((*rows.shape, self.width), self.dtype)
        blocks, offsets = rows // BLOCK, rows % BLOCK
        for number in numpy.unique(blocks).tolist():
            mine = blocks == number
            found[mine] = self.blocks[number][offsets[mine]]
        return found

    def nearest(self, queries: Float32[Array, "n E"] | Int8[Array, "n E"], *, k: int) -> Nearest:
        """The k nearest templates of every query, which is float32, or codes for codes.

        Paper: none; the bound is that of `likewise.similarity.nearest`.
        """
        where = "Matrix.nearest"
        require_count(where, "k", k)
        fits = queries.ndim == 2 and queries.shape[1] == self.width
        require(fits, where, "queries", f"be rows of {self.width} numbers", queries.shape)
        require(queries.dtype == self.dtype, where, "queries", f"be {self.dtype}", queries.dtype)
        rows = numpy.full((len(queries), k), -1, numpy.int64)
        squared = numpy.full((len(queries), k), numpy.inf)
        found = min(k, len(self))
        for start in range(0, len(queries) if found else 0, QUERIES):
            part = slice(start, start + QUERIES)
            rows[part, :found], squared[part, :found] = self._settled(queries[part], found)
        return Nearest(rows, squared)

    def _settled(self, queries: Array, k: int) -> tuple[Array, Array]:
        rows = numpy.empty((len(queries), k), numpy.int64)
        squared = numpy.empty((len(queries), k))
        left, wanted = numpy.arange(len(queries)), k + EXTRA
        while len(left):
            wanted = min(wanted, len(self))
            some = queries[left]
            candidates, bounds = self._candidates(some, wanted)
            measured = self.measured(some, candidates)
            order = numpy.lexsort((candidates, measured))[:, :k]
            rows[left] = numpy.take_along_axis(candidates, order, 1)
            squared[left] = numpy.take_along_axis(measured, order, 1)
            left = left[~(squared[left, -1] < bounds)] if wanted < len(self) else left[:0]
            wanted *= 8
        return rows, squared

    def measured(self, queries: Array, rows: Array) -> Float64[Array, "n c"]:
        """Squared distances to listed rows, in float64."""
        return squared_between(queries, self.rows(rows), codes=self.codes)

    def _candidates(self, queries: Array, count: int) -> tuple[Array, Array]:
        """Rows with the greatest scores, and a lower bound on the squared distance of all others."""
        if len(queries) < FEW:
            pairs = [self._by_vector(query, count) for query in queries]
            scores, rows = (numpy.stack(each) for each in zip(*pairs, strict=True))
        else:
            scores, rows = self._by_matrix(queries, count)
        squares = _squares(queries).astype(numpy.float64)
        last = scores.min(1).astype(numpy.float64)
        # A product of K terms is off by at most (8 sqrt(K) + 8) roundings of |x| |y|, as in `likewise.similarity`.
        slack = (4 * self.width**0.5 + 4) * numpy.finfo(numpy.float32).eps
        if self.codes:  # integers are exact below 2^24; 1 / |q| and the product with it round
            cosine = last / numpy.sqrt(numpy.maximum(squares, 1))
            rounding = 8 * numpy.finfo(numpy.float32).eps + (2 * slack if self.width << 14 > 1 << 24 else 0)
            return rows, 2 - 2 * cosine - rounding
        if self.unit:  # lengths are 1 up to rounding
            return rows, squares + 1 - 2 * last - slack * (numpy.sqrt(squares) + 1) * 2
        longest = max(self._steepest) * 2
        return rows, squares - 2 * last - slack * (squares + longest)

    def _by_vector(self, query: Array, count: int) -> tuple[Array, Array]:
        """One query: whole blocks times a vector, which reads templates at the speed of memory."""
        kept: list[tuple[Array, Array]] = []
        bound = -float("inf")
        for number, block in enumerate(self.blocks):
            start = number * BLOCK
            size = min(BLOCK, self.count - start)
            if self.codes and bound > 0 and _bytes_multiply(self.width):
                rows, scores = self._code_scores(block[:size], number, query, bound)
            else:
                scores = self._vector_scores(block[:size], number, query)
                self._hide(scores, start)
                if bound == -float("inf") and count <= min(size, SAMPLE):  # a first bound without sorting a whole block
                    bound = float(numpy.partition(scores[:SAMPLE], -count)[-count])
                rows = numpy.flatnonzero(scores >= bound)
                scores = scores[rows]
            if len(rows) > count:
                best = numpy.argpartition(scores, -count)[-count:]
                rows, scores = rows[best], scores[best]
            kept.append((scores, rows + start))
            best = numpy.concatenate([each for each, _ in kept])
            if len(best) >= count:
                bound = float(numpy.partition(best, -count)[-count])
        scores, rows = (numpy.concatenate(each) for each in zip(*kept, strict=True))
        order = numpy.argpartition(scores, -count)[-count:]
        return scores[order], rows[order]

    def _code_scores(self, block: Array, number: int, query: Array, bound: float) -> tuple[Array, Array]:
        """Rows of codes whose score reaches a positive bound: only products that may reach it are divided by |q|."""
        products = _byte_products(block, query).numpy()
        rows = numpy.flatnonzero(products >= int(bound / self._steepest[number] * (1 - 1e-6)))
        scores = products[rows].astype(numpy.float32) * self.factors[number][rows]
        near = (scores >= bound) & (self.owners[rows + number * BLOCK] != 0)
        return rows[near], scores[near]

    def _vector_scores(self, block: Array, number: int, query: Array) -> Array:
        if self.codes and _bytes_multiply(self.width):
            return _byte_products(block, query).float().numpy() * self.factors[number][: len(block)]
        if self.codes:
            # In float32 whole numbers below 2^24 are exact, and a panel of them stays in the cache.
            q = torch.from_numpy(query.astype(numpy.float32))
            scores = torch.cat([panel.float() @ q for panel in torch.from_numpy(block).split(PANEL)]).numpy()
            return scores * self.factors[number][: len(block)]
        scores = block @ query
        if not self.unit:
            scores -= self.factors[number][: len(block)]
        return scores

    def _hide(self, scores: Array, start: int) -> None:
        """Give vacant rows a score that no template has."""
        vacant = self.vacant
        if len(vacant):
            inside = vacant[numpy.searchsorted(vacant, start) : numpy.searchsorted(vacant, start + len(scores))]
            scores[inside - start] = -numpy.inf

    def _by_matrix(self, queries: Array, count: int) -> tuple[Array, Array]:
        """Many queries: all queries times panels of templates.

        The maximum of every 32 scores is taken; only groups whose maximum reaches a query's bound, the least of its
        candidates so far, are looked at.
        """
        q = queries.astype(numpy.float32)
        best = _Best(len(queries), count)
        step = max(PANEL, min(BLOCK // 8, SCORES // len(queries)))
        scores = numpy.empty((len(queries), step), numpy.float32)
        for number, block in enumerate(self.blocks):
            start = number * BLOCK
            size = min(BLOCK, self.count - start)
            for first in range(0, size, step):
                panel = block[first : min(first + step, size)]
                found = scores[:, : len(panel)]
                # numpy's OpenBLAS multiplies these a fifth faster than torch's library does on AMD. Codes are whole
                # numbers below 2^24: exact, and faster than products of bytes.
                numpy.matmul(q, panel.astype(numpy.float32, copy=False).T, out=found)
                if self.factors:
                    factors = self.factors[number][first : first + len(panel)]
                    (numpy.multiply if self.codes else numpy.subtract)(found, factors, out=found)
                self._hide(found.T, start + first)
                best.look(torch.from_numpy(found), start + first)
        return best.settled()


class _Best:
    """The greatest scores of every query and their rows. What reaches a query's bound waits to be sorted in."""

    def __init__(self, queries: int, count: int) -> None:
        self._scores = torch.full((queries, count), -torch.inf)
        self._rows = torch.full((queries, count), -1, dtype=torch.int64)
        self._bound = self._scores.amin(1)
        self._waiting: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []  # query, score, row
        self._held = 0

    def look(self, scores: torch.Tensor, start: int) -> None:
        """Take scores (queries x templates) of the rows from `start` on."""
        size = scores.shape[1]
        if start == 0:
            some = min(self._scores.shape[1], size)
            self._scores[:, :some], self._rows[:, :some] = scores.topk(some, dim=1)
            self._bound = self._scores.amin(1)
            return
        whole = size // GROUP * GROUP
        groups = scores[:, :whole].unflatten(1, (GROUP, -1)) if whole else scores[:, None, :0]
        query, group = (groups.amax(1) > self._bound[:, None]).nonzero().unbind(1)
        if len(group):
            values = groups[query, :, group]
            hit, place = (values > self._bound[query, None]).nonzero().unbind(1)
            self._wait(query[hit], values[hit, place], place * groups.shape[2] + group[hit] + start)
        if whole < size:
            query, row = (scores[:, whole:] > self._bound[:, None]).nonzero().unbind(1)
            self._wait(query, scores[query, whole + row], row + whole + start)

    def _wait(self, query: torch.Tensor, values: torch.Tensor, rows: torch.Tensor) -> None:
        self._waiting.append((query, values, rows))
        self._held += len(query)
        if self._held >= self._scores.numel():
            self._sort_in()

    def _sort_in(self) -> None:
        query, values, rows = (torch.cat(each) for each in zip(*self._waiting, strict=True))
        self._waiting, self._held = [], 0
        query, order = query.sort(stable=True)
        mine, each = query.unique_consecutive(return_counts=True)
        if not len(mine):
            return
        number = torch.arange(len(mine)).repeat_interleave(each)
        rank = torch.arange(len(query)) - (each.cumsum(0) - each)[number]
        padded = torch.full((len(mine), int(each.max())), -torch.inf)
        padded[number, rank] = values[order]
        places = torch.zeros(padded.shape, dtype=torch.int64)
        places[number, rank] = rows[order]
        kept, order = torch.cat([self._scores[mine], padded], dim=1).topk(self._scores.shape[1], dim=1)
        self._rows[mine] = torch.cat([self._rows[mine], places], dim=1).gather(1, order)
        self._scores[mine] = kept
        self._bound = self._scores.amin(1)

    def settled(self) -> tuple[Array, Array]:
        """Scores and rows, in no order."""
        if self._waiting:
            self._sort_in()
        return self._scores.numpy(), self._rows.numpy()


def squared_between(queries: Array, rows: Array, *, codes: bool) -> Float64[Array, "n c"]:
    """Squared distances of every query (n, E) to rows of its own (n, c, E), in float64; of codes by their angle."""
    q, y = queries.astype(numpy.float64)[:, None], rows.astype(numpy.float64)
    if codes:
        product = (q * y).sum(-1)
        lengths = numpy.sqrt((q * q).sum(-1) * (y * y).sum(-1))
        return numpy.maximum(2 - 2 * product / lengths, 0)
    return ((q - y) ** 2).sum(-1)


def _byte_products(block: Array, query: Array) -> torch.Tensor:
    return torch._int_mm(torch.from_numpy(block), torch.from_numpy(query)[:, None])[:, 0]


@cache
def _bytes_multiply(width: int) -> bool:
    """Whether torch multiplies bytes exactly on this machine; without VNNI instructions sums of pairs may saturate."""
    if not torch.backends.mkldnn.is_available():
        return False  # there is only a slow loop then
    rows = torch.tensor([[127], [-128], [-127]], dtype=torch.int8).expand(3, width).contiguous()
    try:
        found = torch._int_mm(rows, rows.mT[:, :2].contiguous())
    except (AttributeError, RuntimeError):
        return False
    return bool((found == rows.int() @ rows.int().mT[:, :2]).all())


def _squares(rows: Array) -> Array:
    """|row|^2, exact for codes."""
    if rows.dtype == numpy.int8:
        rows = rows.astype(numpy.float32)  # whole numbers below 2^24: exact
    return numpy.einsum("ne,ne->n", rows, rows)
