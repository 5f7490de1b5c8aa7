"""Labeled Faces in the Wild, as a folder or as the tar it comes in, and its protocol.

The detector's boxes were enlarged 2.2 times before the 250 x 250 images were cut, so the face is the centre 250 / 2.2 =
114 pixels: no detector is needed.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import torch
from jaxtyping import Bool, Int64
from torch import Tensor

from likewise.checks import refuse, require, require_count
from likewise.data.examples import Examples, Skipped, examples
from likewise.data.files import Files, Members, is_outside, members, read_span

FACE = 114  # of 250 pixels
LISTS = ("people.txt", "pairs.txt", "peopleDevTrain.txt", "peopleDevTest.txt", "pairsDevTrain.txt", "pairsDevTest.txt")


class Pair(NamedTuple):
    """Two images, by item, and whether they show the same person."""

    first: str
    second: str
    same: bool


@dataclass(frozen=True)
class Protocol:
    """Who and what belongs to which part.

    View 2, for the result: `people` and `pairs` of each of ten folds. View 1, for all choices before it:
    `train_people`, `test_people`, `train_pairs`, `test_pairs`.
    """

    people: tuple[tuple[str, ...], ...]
    pairs: tuple[tuple[Pair, ...], ...]
    train_people: tuple[str, ...]
    test_people: tuple[str, ...]
    train_pairs: tuple[Pair, ...]
    test_pairs: tuple[Pair, ...]

    def outside(self, fold: int) -> tuple[str, ...]:
        """The people of the other nine folds (counted from 0): whom one may train on when a fold is the test."""
        require(0 <= fold < len(self.people), "outside", "fold", f"be from 0 to {len(self.people) - 1}", fold)
        return tuple(name for number, names in enumerate(self.people) if number != fold for name in names)


def lfw(path: Path | str, *, crop: int | None = FACE) -> Examples:
    """The images of a folder or .tar with <Name>/<Name>_0001.jpg somewhere inside; items are written just so.

    crop: pixels of the centre that are kept; None keeps all.
    """
    if crop is not None:
        require_count("lfw", "crop", crop)
    found, skipped = _images(Path(path))
    require(bool(found), "lfw", "path", "hold <Name>/<Name>_0001.jpg", repr(str(path)))
    items = sorted(found)
    names = [item.partition("/")[0] for item in items]
    places = [found[item] for item in items]
    files = Files(tuple(p for p in places if isinstance(p, Path)), crop)
    spans = Members(Path(path), tuple(p for p in places if isinstance(p, tuple)), crop)
    return examples("lfw", files if files.paths else spans, items, names, skipped)


def lfw_protocol(path: Path | str) -> Protocol:
    """The lists beside the images: people.txt, pairs.txt and the four of View 1."""
    texts = _lists(Path(path))
    for name in LISTS:
        require(name in texts, "lfw_protocol", "path", f"hold {name}", repr(str(path)))
    [train_people], [test_people] = _people(texts["peopleDevTrain.txt"], 1), _people(texts["peopleDevTest.txt"], 1)
    [train_pairs], [test_pairs] = _pairs(texts["pairsDevTrain.txt"]), _pairs(texts["pairsDevTest.txt"])
    people = _people(texts["people.txt"], None)
    return Protocol(people, _pairs(texts["pairs.txt"]), train_people, test_people, train_pairs, test_pairs)


def pair_rows(examples: Examples, pairs: Sequence[Pair]) -> tuple[Int64[Tensor, "n 2"], Bool[Tensor, "n"]]:
    """Where the images of pairs stand in a set of examples, and which pairs are of one person."""
    rows = torch.tensor([examples.rows(pair[:2]) for pair in pairs], dtype=torch.int64).reshape(-1, 2)
    return rows, torch.tensor([pair.same for pair in pairs], dtype=torch.bool)


def _images(path: Path) -> tuple[dict[str, Path | tuple[int, int]], list[Skipped]]:
    """Image items and where each is; other files are skipped."""
    found: dict[str, Path | tuple[int, int]] = {}
    skipped = []
    if path.is_dir():
        root = path.resolve()
        files = ((p.relative_to(path).as_posix(), p, _why_not(p, root)) for p in path.rglob("*") if not p.is_dir())
    else:
        require(path.is_file(), "lfw", "path", "be a folder or a .tar", repr(str(path)))
        files = members(path)
    for name, place, why in files:
        *_, folder, file = ["", "", *PurePosixPath(name).parts]
        if file in LISTS:
            continue
        if not why and not (folder and file.startswith(f"{folder}_") and file.endswith(".jpg")):
            why = "not <Name>/<Name>_0001.jpg"
        if why:
            skipped.append(Skipped(name, why))
        else:
            found[f"{folder}/{file}"] = place
    return found, skipped


def _why_not(file: Path, root: Path) -> str:
    """Why a file is skipped whatever its name is; nothing, if it is not. A pipe would be waited for, for ever."""
    if not file.resolve().is_relative_to(root):
        return "a link that leads out of the folder"
    return "" if file.is_file() else "no regular file"


def _lists(path: Path) -> dict[str, str]:
    if path.is_dir():
        places = {name: [path / name, path.parent / name] for name in LISTS}
        files = {name: next((p for p in paths if p.is_file()), None) for name, paths in places.items()}
        return {name: file.read_text() for name, file in files.items() if file is not None}
    spans = {PurePosixPath(name).name: span for name, span, why in members(path) if not why and "/" not in name}
    return {name: read_span(path, spans[name]).decode() for name in LISTS if name in spans}


def _people(text: str, folds: int | None) -> tuple[tuple[str, ...], ...]:
    """[folds], then for each a count and lines `name images`."""
    lines = [line.split("\t") for line in text.splitlines() if line.strip()]
    if folds is None:
        [count], *lines = lines
        folds = int(count)
    parts = []
    for _ in range(folds):
        [count], *lines = lines
        part, lines = lines[: int(count)], lines[int(count) :]
        parts.append(tuple(_name(line[0]) for line in part))
    return tuple(parts)


def _pairs(text: str) -> tuple[tuple[Pair, ...], ...]:
    """[folds] and how many of each kind, then for each fold lines `name i j` and lines `name i other j`."""
    first, *lines = [line.split("\t") for line in text.splitlines() if line.strip()]
    folds, each = (int(first[0]), int(first[1])) if len(first) == 2 else (1, int(first[0]))
    if len(lines) != 2 * folds * each:
        refuse("lfw_protocol", "pairs", f"be {2 * folds * each} lines, as the first line says", len(lines))
    parts = [lines[2 * each * fold : 2 * each * (fold + 1)] for fold in range(folds)]
    return tuple(tuple(_pair(line) for line in part) for part in parts)


def _pair(line: list[str]) -> Pair:
    if len(line) not in (3, 4):
        refuse("lfw_protocol", "pairs", "have three or four columns", repr("\t".join(line)))
    one, i, other, j = line if len(line) == 4 else (line[0], line[1], line[0], line[2])
    return Pair(_item(one, i), _item(other, j), len(line) == 3)


def _item(name: str, number: str) -> str:
    return f"{_name(name)}/{name}_{int(number):04d}.jpg"


def _name(name: str) -> str:
    require(bool(name) and not is_outside(name) and "/" not in name, "lfw_protocol", "names", "be plain", repr(name))
    return name
