"""One call that knows a data set by its layout."""

import hashlib
import math
from pathlib import Path
from typing import NamedTuple

from likewise.checks import require, require_count
from likewise.data.arrays import Split, cifar10, digits, idx
from likewise.data.examples import Examples
from likewise.data.files import folders
from likewise.data.lfw import lfw


def open_examples(data: Path | str, *, split: Split = "train") -> Examples:
    """The data set at a path, or "digits".

    A .tar or a folder with pairs.txt in it or beside it is LFW; a .npz or a folder with data_batch_1 is CIFAR-10; a
    folder with train-images-idx3-ubyte is of the MNIST family; any other folder has one folder for each identity.
    """
    if str(data) == "digits" and not Path(data).exists():
        return digits()
    path = Path(data)
    require(path.exists(), "open_examples", "data", 'be "digits" or a path that exists', repr(str(data)))
    if path.suffix == ".tar" or (path.is_dir() and is_lfw(path)):
        return lfw(path)
    if _is_cifar(path):
        return cifar10(path, split=split)
    if _is_idx(path):
        return idx(path, split=split)
    require(path.is_dir(), "open_examples", "data", "be a folder, a .tar or a .npz", repr(str(data)))
    return folders(path)


class Halves(NamedTuple):
    """Examples to learn from, others to be asked about, whose labels count the same identities; and who parted them."""

    train: Examples
    test: Examples
    how: str


def open_halves(data: Path | str, *, held_out: float = 0.2, fold: int = 0) -> Halves:
    """The two halves of a data set: its own if it has them (the MNIST family, CIFAR-10), else this part is held out.

    Of n images of an identity, m = round(held_out * n) are, never all: in the order of the SHA-256 of their names, m
    from fold * m on. So the same call gives the same halves everywhere, and no two folds hold out the same image.
    """
    require_count("open_halves", "fold", fold, least=0)
    require(0 <= held_out < 1, "open_halves", "held_out", "be from 0 to below 1", held_out)
    path = Path(data)
    if has_halves(path):
        train, test = open_examples(path), open_examples(path, split="test")
        require(fold == 0, "open_halves", "fold", "be 0 for data that has its own halves", fold)
        lossy = ", stored as JPEG, which is lossy" if path.suffix == ".npz" else ""
        return Halves(train, test.numbered_by(train.identities), f"the halves of the data set{lossy}")
    whole = open_examples(data)
    hashes = [hashlib.sha256(item.encode("utf-8", "surrogateescape")).digest() for item in whole.items]
    out: set[int] = set()
    for label in range(len(whole.identities)):
        rows = sorted((whole.labels == label).nonzero()[:, 0].tolist(), key=lambda row: hashes[row])
        part = min(round(held_out * len(rows)), len(rows) - 1)
        out.update(rows[fold * part : (fold + 1) * part])
    train = whole.take([row for row in range(len(whole)) if row not in out])
    test = whole.take(sorted(out)).numbered_by(train.identities)
    which = f", fold {fold}" if fold else ""
    return Halves(train, test, f"{held_out:.0%} of every class held out, by the hash of their names{which}")


def find_halves(data: Path | str, *, trained_on: str | None, held_out: float = 0.2) -> tuple[Halves, bool]:
    """Of the folds of `open_halves` the one whose training half has this fingerprint; else the first, and False."""
    first = open_halves(data, held_out=held_out)
    folds = 1 if has_halves(Path(data)) or not held_out else math.floor(1 / held_out + 1e-9)
    for fold in range(folds if trained_on else 0):
        halves = open_halves(data, held_out=held_out, fold=fold) if fold else first
        if halves.train.fingerprint == trained_on:
            return halves, True
    return first, False


def has_halves(path: Path) -> bool:
    """Whether data has a training and a test half of its own: the MNIST family, CIFAR-10."""
    return path.exists() and not is_lfw(path) and (_is_cifar(path) or _is_idx(path))


def _is_cifar(path: Path) -> bool:
    return path.suffix == ".npz" or any((path / f"data_batch_1{end}").is_file() for end in ("", ".bin"))


def _is_idx(path: Path) -> bool:
    return path.is_dir() and any(path.glob("*-idx3?ubyte*"))


def is_lfw(path: Path) -> bool:
    """Whether a path is laid out as LFW is: a .tar, or a folder with its list of pairs inside or beside."""
    return path.suffix == ".tar" or any((place / "pairs.txt").is_file() for place in (path, path.parent))
