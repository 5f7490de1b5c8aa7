"""What a call takes: its time, and the memory that its tensors need."""

import time
import weakref
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


@contextmanager
def one_thread() -> Generator[None, None, None]:
    """Let torch compute on one thread, then on as many as before."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def best_seconds(call: Callable[[], object], *, allowance: float = 0.3, fewest: int = 2, most: int = 7) -> float:
    """The least time of some calls: what the work costs when nobody disturbs it.

    Calls are repeated until they have taken the allowance (seconds) together. A first call, which warms caches up, is
    left to the caller.
    """
    times: list[float] = []
    while len(times) < fewest or (len(times) < most and sum(times) < allowance):
        started = time.perf_counter()
        call()
        times.append(time.perf_counter() - started)
    return min(times)


def peak_bytes(call: Callable[[], object]) -> int:
    """The most memory that tensors made during a call, its result included, held at the same time.

    Counted operation by operation, so it is the same on every run. What one operation needs inside itself and frees
    before it returns is not seen.

    >>> peak_bytes(lambda: torch.ones(1000) + torch.ones(1000))  # two terms and their sum, 4 bytes a number
    12000
    """
    with _Watch() as watch:
        call()
    return watch.peak


class _Watch(TorchDispatchMode):
    """Adds up the storages that operations make, until each is freed."""

    def __init__(self) -> None:
        super().__init__()
        self.live = self.peak = 0

    def __torch_dispatch__(
        self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        before = {id(x.untyped_storage()) for x in tree_leaves((args, kwargs)) if isinstance(x, Tensor)}
        out = func(*args, **(kwargs or {}))
        made = {id(s): s for s in (x.untyped_storage() for x in tree_leaves(out) if isinstance(x, Tensor))}
        for identity in made.keys() - before:
            self._hold(made[identity])
        return out

    def _hold(self, storage: torch.UntypedStorage) -> None:
        size = storage.nbytes()
        self.live += size
        self.peak = max(self.peak, self.live)
        weakref.finalize(storage, self._release, size)

    def _release(self, size: int) -> None:
        self.live -= size
