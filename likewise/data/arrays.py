"""Data sets that come as arrays: the MNIST family (idx), CIFAR-10 and scikit-learn's digits."""

import gzip
import io
import pickle
import zlib
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy

from likewise.checks import refuse, require, require_choice, require_package
from likewise.data.examples import Examples, Stored, examples
from likewise.data.pictures import Pixels, decode

Split = Literal["train", "test"]
CIFAR_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
CIFAR_ROW = 1 + 3 * 32 * 32  # bytes: a label, then the red, green and blue plane
MAX_VALUES = 1 << 31
IDX_STEMS = {"train": "train", "test": "t10k"}


def digits() -> Examples:
    """scikit-learn's 1,797 handwritten digits of 8 x 8, in one grey channel; needs the extra `report`."""
    require_package("digits", "sklearn")
    from sklearn.datasets import load_digits

    found = load_digits()
    pixels = (found.images * 255 / 16).round().astype(numpy.uint8)[..., None]
    return _numbered("digits", Stored(pixels), found.target.tolist())


def idx(path: Path | str, *, split: Split = "train") -> Examples:
    """A folder with train-images-idx3-ubyte and train-labels-idx1-ubyte (t10k- for "test"), packed by gzip or not."""
    require_choice("idx", "split", split, ("train", "test"))
    images = read_idx(_idx_file(Path(path), split, "images-idx3"))
    labels = read_idx(_idx_file(Path(path), split, "labels-idx1"))
    fits = images.ndim == 3 and labels.ndim == 1 and len(images) == len(labels)
    require(fits, "idx", "path", "hold as many labels as images", f"{images.shape} and {labels.shape}")
    return _numbered(Path(path).name, Stored(images[..., None]), labels.tolist())


def read_idx(file: Path) -> numpy.ndarray:
    """One idx file of unsigned bytes; no more is unpacked than its header announces."""
    try:
        with file.open("rb") as plain, gzip.open(plain) if file.suffix == ".gz" else plain as opened:
            return _idx_values(opened, file.name)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        refuse("read_idx", "file", "be whole", file.name, str(error))


def _idx_values(opened: io.BufferedIOBase, name: str) -> numpy.ndarray:
    magic = opened.read(4)
    known = len(magic) == 4 and magic[:3] == b"\0\0\x08" and 1 <= magic[3] <= 4
    require(known, "read_idx", "file", "start as idx of unsigned bytes does", f"{magic!r} in {name}")
    shape = [int.from_bytes(opened.read(4), "big") for _ in range(magic[3])]
    count = int(numpy.prod(shape, dtype=object))
    require(count <= MAX_VALUES, "read_idx", "file", f"announce at most {MAX_VALUES:,} values", f"{count:,} in {name}")
    data = opened.read(count)
    require(len(data) == count, "read_idx", "file", f"hold the {count:,} values it announces", f"{len(data):,}")
    return numpy.frombuffer(data, numpy.uint8).reshape(shape)


def _idx_file(folder: Path, split: Split, part: str) -> Path:
    names = [f"{IDX_STEMS[split]}-{part}{dot}ubyte{end}" for dot in "-." for end in ("", ".gz")]
    found = next((folder / name for name in names if (folder / name).is_file()), None)
    if found is None:
        refuse("idx", "path", f"hold {names[0]}", repr(str(folder)))
    return found


def cifar10(path: Path | str, *, split: Split = "train") -> Examples:
    """CIFAR-10: the folder of the Python version or of the binary one, or one .npz of JPEGs.

    The Python version is pickled; only plain arrays, lists and texts are read of it, and nothing it names is run. The
    .npz has, for each split, `_jpeg` (all files, joined), `_offset` (where each starts, and the end) and `_label`.
    """
    require_choice("cifar10", "split", split, ("train", "test"))
    place = Path(path)
    if place.suffix == ".npz":
        source, labels = _cifar_jpegs(place, split)
    else:
        stems = [f"data_batch_{number}" for number in range(1, 6)] if split == "train" else ["test_batch"]
        parts = [_cifar_part(place, stem) for stem in stems]
        planes = numpy.concatenate([part[0] for part in parts]).reshape(-1, 3, 32, 32)
        source, labels = Stored(planes.transpose(0, 2, 3, 1)), [label for part in parts for label in part[1]]
    return _numbered("cifar10", source, labels, CIFAR_NAMES)


@dataclass(frozen=True)
class Joined:
    """Image files one behind the other."""

    data: numpy.ndarray
    offsets: numpy.ndarray

    def read(self, index: int, *, least: int | None = None) -> Pixels:
        start, end = self.offsets[index : index + 2]
        return decode(self.data[start:end].tobytes(), least=least)


def read_npz(where: str, file: Path, names: Sequence[str]) -> dict[str, numpy.ndarray]:
    """Those of some arrays that a .npz holds; nothing that is pickled is read.

    Of damaged data zipfile, zlib and numpy raise nearly anything, and some of it advises to load the file unsafely: all
    that is said instead is our own sentence.
    """
    require(file.is_file(), where, "path", "be a file", repr(str(file)))
    arrays = None
    with file.open("rb") as opened, suppress(Exception), numpy.load(opened, allow_pickle=False) as found:
        arrays = {name: found[name] for name in names if name in found}
    if arrays is None:
        refuse(where, "path", "be a whole .npz with arrays of numbers or texts, no objects", repr(str(file)))
    return arrays


def _cifar_jpegs(file: Path, split: Split) -> tuple[Joined, list[int]]:
    names = [f"{split}_{name}" for name in ("jpeg", "offset", "label")]
    found = read_npz("cifar10", file, names)
    require(len(found) == 3, "cifar10", "path", f"hold {names[0]}, {names[1]} and {names[2]}", repr(str(file)))
    data, offsets, labels = (found[name] for name in names)
    rows = data.ndim == offsets.ndim == labels.ndim == 1 and data.dtype == numpy.uint8
    whole = rows and offsets.dtype.kind in "iu" and labels.dtype.kind in "iu"
    rule = f"have {names[0]} in one row of bytes, {names[1]} and {names[2]} in one row of whole numbers"
    require(whole, "cifar10", "path", rule, repr(str(file)))
    fits = len(offsets) == len(labels) + 1 and offsets[0] >= 0 and offsets[-1] <= len(data)
    fits = fits and bool((offsets[1:] >= offsets[:-1]).all())
    got = f"{len(offsets)}, {len(labels)} in {str(file)!r}"
    require(fits, "cifar10", "path", "have an offset for each label, and the end", got)
    return Joined(data, offsets), _cifar_labels(file, labels.tolist())


def _cifar_part(folder: Path, stem: str) -> tuple[numpy.ndarray, list[int]]:
    file = folder / f"{stem}.bin"
    if file.is_file():
        data = file.read_bytes()
        whole = len(data) > 0 and len(data) % CIFAR_ROW == 0
        require(whole, "cifar10", "path", f"hold rows of {CIFAR_ROW:,} bytes", f"{len(data):,} bytes in {str(file)!r}")
        rows = numpy.frombuffer(data, numpy.uint8).reshape(-1, CIFAR_ROW)
        return rows[:, 1:], _cifar_labels(file, rows[:, 0].tolist())
    file = folder / stem
    require(file.is_file(), "cifar10", "path", f"hold {stem} or {stem}.bin", repr(str(folder)))
    found = _unpickled(file)
    data: Any = found.get(b"data")
    labels: Any = found.get(b"labels")
    plain = isinstance(data, numpy.ndarray) and isinstance(labels, list)
    fits = plain and data.dtype == numpy.uint8 and data.shape == (len(labels), CIFAR_ROW - 1)
    require(fits, "cifar10", "path", f"hold data and labels in {stem}", repr(str(folder)))
    return data, _cifar_labels(file, labels)


def _cifar_labels(file: Path, labels: list[Any]) -> list[int]:
    """The labels, each of which must have a name."""
    odd = [label for label in labels if not isinstance(label, int) or not 0 <= label < len(CIFAR_NAMES)]
    if odd:
        rule = f"have labels from 0 to {len(CIFAR_NAMES) - 1}"
        refuse("cifar10", "path", rule, f"{odd[0]!r:.40} in {str(file)!r}")
    return labels


def _unpickled(file: Path) -> dict[bytes, Any]:
    """What a pickle holds by name; nothing, if it is something else."""
    data = file.read_bytes()
    try:
        found = _Plain(io.BytesIO(data), encoding="bytes").load()
        return found if isinstance(found, dict) else {}
    except _Foreign:
        raise
    except Exception:  # a pickle is a program, and a damaged one may fail in any way
        refuse("cifar10", "path", "hold whole pickles", repr(str(file)))


class _Foreign(ValueError):
    """A pickle that names more than arrays."""


class _Plain(pickle.Unpickler):
    """Reads arrays and refuses everything else that a pickle could name."""

    ALLOWED = frozenset({"_reconstruct", "ndarray", "dtype"})

    def find_class(self, module: str, name: str) -> Any:
        plain = module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray") and name in self.ALLOWED
        if not plain:
            refuse("cifar10", "path", "hold pickles of plain arrays only", f"{module}.{name}", error=_Foreign)
        return super().find_class(module.replace("numpy.core", "numpy._core"), name)


def _numbered(title: str, source: Any, labels: list[int], names: Sequence[str] | None = None) -> Examples:
    """Examples named by their number; identities are in the order of their labels."""
    kinds = [str(label) if names is None else names[label] for label in labels]
    items = [f"{kind}/{number:05d}" for number, kind in enumerate(kinds)]
    return examples(title, source, items, kinds)
