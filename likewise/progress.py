"""Progress of long work: one signature, told everywhere in the same way."""

from collections.abc import Callable

Progress = Callable[[float, str], None]  # the share that is done, from 0 to 1, and what is being done


def silent(done: float, doing: str) -> None:
    """Progress that is not shown."""


def part(progress: Progress, start: float, stop: float, doing: str | None = None) -> Progress:
    """The progress of one step, which takes the whole from `start` to `stop`; `doing` replaces what the step tells.

    >>> shown = []
    >>> part(lambda done, doing: shown.append((done, doing)), 0.5, 1.0)(0.5, "heads")
    >>> part(lambda done, doing: shown.append((done, doing)), 0.5, 1.0, "training")(1.0, "heads")
    >>> shown
    [(0.75, 'heads'), (1.0, 'training')]
    """
    return lambda done, told: progress(start + (stop - start) * done, told if doing is None else doing)


def parts(progress: Progress, count: int) -> list[Progress]:
    """The progress of each of several steps that take equally long.

    >>> shown = []
    >>> first, second = parts(lambda done, doing: shown.append(done), 2)
    >>> first(1.0, "one"), second(0.5, "two"), shown
    (None, None, [0.5, 0.75])
    """
    return [part(progress, step / count, (step + 1) / count) for step in range(count)]
