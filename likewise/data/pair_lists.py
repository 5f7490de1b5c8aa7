"""Somebody's own list of pairs: two images on a line, and whether they show the same person."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from likewise.checks import refuse, require
from likewise.data.examples import Examples, examples
from likewise.data.files import Files, is_outside
from likewise.data.lfw import Pair

RULE = "be two image paths and 1 or 0, and perhaps a fold, separated by tabs"


@dataclass(frozen=True, eq=False)
class PairList:
    """The images of a list, each once; its pairs, by item; and the fold of each pair, where the list gives it.

    Nobody is named in a list: an identity is the images that its "same" pairs join, and bears the first one's name.
    """

    examples: Examples
    pairs: tuple[Pair, ...]
    folds: tuple[int, ...] | None


def read_pairs(path: Path | str) -> PairList:
    """A text file of lines `first<TAB>second<TAB>1`, 1 for the same person and 0 for two; `<TAB>fold` may follow.

    Paths are relative to the folder of the list and stay in it. Empty lines, and those that begin with #, say nothing.
    A line that cannot be read, names no file or contradicts those above it (a is b, b is c, a is not c) is refused with
    its number.
    """
    file = Path(path)
    require(file.is_file(), "read_pairs", "path", "be a text file of pairs", repr(str(path)))
    try:
        lines = file.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError:
        refuse("read_pairs", "path", "be a text file of pairs", repr(str(path)), "It is not UTF-8.")
    numbered = list(_entries(lines, file.parent))
    require(bool(numbered), "read_pairs", "path", "hold at least one pair", repr(str(path)))
    with_fold = [fold is not None for _, _, fold in numbered]
    if any(with_fold) and not all(with_fold):
        number = numbered[with_fold.index(not with_fold[0])][0]
        refuse(f"read_pairs, line {number}", "fold", "be given on every line or on none", "a line unlike the first")
    names = _identities([(number, pair) for number, pair, _ in numbered])
    items = list(names)
    found = examples(file.stem, Files(tuple(file.parent / item for item in items)), items, list(names.values()))
    folds = tuple(fold for _, _, fold in numbered if fold is not None) or None
    return PairList(found, tuple(pair for _, pair, _ in numbered), folds)


def _entries(lines: list[str], folder: Path) -> Iterator[tuple[int, Pair, int | None]]:
    root = folder.resolve()
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.startswith("#"):
            continue
        where, parts = f"read_pairs, line {number}", [part.strip() for part in line.split("\t")]
        require(len(parts) in (3, 4) and parts[2] in ("0", "1"), where, "the line", RULE, repr(line))
        fold = parts[3] if len(parts) == 4 else None
        require(fold is None or fold.isdecimal(), where, "fold", "be a whole number", repr(fold))
        for item in parts[:2]:
            inside = not is_outside(item) and (folder / item).resolve().is_relative_to(root)
            require(inside, where, "path", "be in the folder of the list", repr(item))
            require((folder / item).is_file(), where, "path", "be a file", repr(item))
        first, second = (PurePosixPath(item).as_posix() for item in parts[:2])  # ./a.jpg is a.jpg
        require(first != second, where, "the line", "name two images", repr(line))
        yield number, Pair(first, second, parts[2] == "1"), None if fold is None else int(fold)


def _identities(pairs: list[tuple[int, Pair]]) -> dict[str, str]:
    """Every image, in the order in which they come up, and the first image of its person."""
    items = list(dict.fromkeys(item for _, pair in pairs for item in pair[:2]))
    numbers = {item: number for number, item in enumerate(items)}
    parent = list(range(len(items)))  # an image further up that shows the same person

    def first(item: str) -> int:
        number = numbers[item]
        while parent[number] != number:
            parent[number] = number = parent[parent[number]]
        return number

    for _, pair in pairs:
        if pair.same:
            low, high = sorted((first(pair.first), first(pair.second)))
            parent[high] = low
    rule = "not contradict the others, by which they show one person"
    for number, pair in pairs:
        apart = pair.same or first(pair.first) != first(pair.second)
        require(apart, f"read_pairs, line {number}", "the pair", rule, f"{pair.first!r} and {pair.second!r}")
    return {item: items[first(item)] for item in items}
