"""Where activations go and how much is read at a time, decided before any work is done."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from likewise.checks import require, require_count
from likewise.similarity import EXTRA, QUERIES, SUPPORT

LEAST = 64  # rows at a time below which it is not worth trying
MAX_MEMORY = 4 << 30
PLACES = {"memory": "in memory", "disk": "on disk"}


@dataclass(frozen=True)
class LayerPlan:
    """One probe: how wide it is, where its activations go, and how many rows are in memory at a time."""

    name: str
    width: int
    bytes: int
    place: Literal["memory", "disk"]
    queries: int
    support: int
    working: int
    multiply_adds: int


@dataclass(frozen=True)
class DepthPlan:
    """All probes, the memory that they take at most, and the disk.

    memory: bytes of our arrays at the worst moment; the model, its forward pass and the interpreter come on top.
    """

    layers: tuple[LayerPlan, ...]
    support: int
    queries: int
    memory: int
    disk: int
    max_memory: int

    def __str__(self) -> str:
        head = f"{self.queries:,} queries against {self.support:,} training examples, at most "
        head += f"{_size(self.memory)} in memory (limit {_size(self.max_memory)}), {_size(self.disk)} on disk"
        wide = max(len(layer.name) for layer in self.layers)
        lines = [
            f"{each.name:{wide}}  {each.width:>7,} wide  {_size(each.bytes):>8} {PLACES[each.place]:9}  "
            f"{each.queries:>6,} x {each.support:>5,} rows at a time  {each.multiply_adds:.1e} multiply-adds at most"
            for each in self.layers
        ]
        return "\n".join([head, *lines])


def plan_layers(
    widths: Mapping[str, int],
    *,
    support: int,
    train: int,
    test: int,
    k: int,
    number: int = 4,
    max_memory: int = MAX_MEMORY,
) -> DepthPlan:
    """The plan for probes of these widths, with so many training examples, of which `train` are queries, and `test`.

    number: bytes of an activation.

    Half of the memory is for work: a block of queries, a block of support and their products. The narrowest layers
    stay in the other half; what does not fit is mapped from disk. Whatever then is free makes the blocks larger.

    >>> plan = plan_layers({"input": 10, "softmax": 4}, support=1000, train=1000, test=100, k=5)
    >>> [layer.place for layer in plan.layers], plan.disk
    (['memory', 'memory'], 0)
    """
    where = "plan_layers"
    require_count(where, "max_memory", max_memory)
    queries, rows = max(train, test, 1), support + test
    sizes = {name: rows * width * number for name, width in widths.items()}
    wanted = max(_working(width, queries, min(SUPPORT, support), k, number) for width in widths.values())
    held, free = set(), max_memory - min(wanted, max_memory // 2)
    for name in sorted(widths, key=lambda name: widths[name]):
        if sizes[name] > free:
            break
        held.add(name)
        free -= sizes[name]
    free = max_memory - sum(sizes[name] for name in held)
    layers = []
    for name, width in widths.items():
        n, m = _blocks(width, queries, support, k, number, free)
        working = _working(width, n, m, k, number)
        need = max_memory - free + working
        rule = f"be at least {need:,} bytes for {name!r}, {width:,} wide"
        require(
            working <= free, where, "max_memory", rule, f"{max_memory:,}", "Pool that layer: Tap(path, select=...)."
        )
        place = "memory" if name in held else "disk"
        layers.append(LayerPlan(name, width, sizes[name], place, n, m, working, (train + test) * support * width))
    memory = max_memory - free + max(layer.working for layer in layers)
    disk = sum(layer.bytes for layer in layers if layer.place == "disk")
    return DepthPlan(tuple(layers), support, train + test, memory, disk, max_memory)


def _working(width: int, queries: int, support: int, k: int, number: int) -> int:
    """Bytes of `nearest`: queries, some of them centred, support as read and centred, products, candidates."""
    centred = min(queries, QUERIES)
    return number * (width * (queries + centred + 2 * support) + 2 * centred * support) + 64 * queries * (k + EXTRA)


def _blocks(width: int, queries: int, support: int, k: int, number: int, free: int) -> tuple[int, int]:
    """How many queries and support rows at a time: as many as fit, support halved before queries."""
    n, m = queries, min(SUPPORT, support)
    while _working(width, n, m, k, number) > free and (n > LEAST or m > LEAST):
        if m > max(LEAST, n // 2) or n <= LEAST:
            m = max(1, m // 2)
        else:
            n = max(1, n // 2)
    return n, m


def _size(count: int) -> str:
    for unit, size in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.1f} {unit}"
    return f"{count} B"
