"""One call that knows a data set by its layout."""

from pathlib import Path

from likewise.checks import require
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
    if path.suffix == ".npz" or any((path / f"data_batch_1{end}").is_file() for end in ("", ".bin")):
        return cifar10(path, split=split)
    if path.is_dir() and any(path.glob("*-idx3?ubyte*")):
        return idx(path, split=split)
    require(path.is_dir(), "open_examples", "data", "be a folder, a .tar or a .npz", repr(str(data)))
    return folders(path)


def is_lfw(path: Path) -> bool:
    """Whether a path is laid out as LFW is: a .tar, or a folder with its list of pairs inside or beside."""
    return path.suffix == ".tar" or any((place / "pairs.txt").is_file() for place in (path, path.parent))
