"""Images as people have them -> vectors of a model: paths, bytes, arrays, PIL pictures; any callable as the model."""

import hashlib
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy
import torch
from jaxtyping import Float32
from PIL import Image
from torch import Tensor

from likewise.checks import refuse, require
from likewise.data import Preparation, Skipped, Unreadable, decode
from likewise.data.files import read_bytes
from likewise.data.pictures import MAX_PIXELS, decode_picture
from likewise.networks import Saved, for_inference, load_network
from likewise.networks.weights import weights_hash
from likewise.progress import Progress, silent

AT_ONCE = 32  # images that a model is given
LEAST_LENGTH = 1e-6  # of a vector that is to be scaled to length 1
Pixels = numpy.ndarray
Array = numpy.ndarray


@dataclass(frozen=True, eq=False)
class Embedder:
    """A model as a gallery needs it.

    call: a list of images (uint8, rows x columns x 3) -> one vector each. name: for people. fingerprint: 32 bytes that
    change with the weights and with the preparation of images. unit: whether vectors are compared by their angle.
    crop: what of an image the model is given; it may raise `Unreadable`. See `likewise.gallery.faces`.

    >>> mean = Embedder(lambda images: [image.mean((0, 1)) for image in images], "mean colour", unit=False)
    >>> mean(numpy.full((2, 2, 3), 7, numpy.uint8)).vectors
    array([[7., 7., 7.]], dtype=float32)
    """

    call: Callable[[list[Pixels]], Any] | None
    name: str
    fingerprint: bytes = b""
    unit: bool = True
    least: int | None = None
    crop: Callable[[Pixels], Pixels] | None = None

    def __post_init__(self) -> None:
        require(bool(self.name), "Embedder", "name", "not be empty", repr(self.name))
        if not self.fingerprint:
            object.__setattr__(self, "fingerprint", hashlib.sha256(self.name.encode()).digest())
        require(len(self.fingerprint) == 32, "Embedder", "fingerprint", "be 32 bytes", len(self.fingerprint))

    def __call__(self, images: Any, *, progress: Progress = silent) -> "Vectors":
        """Vectors of images, or vectors as they are; a file that cannot be read is skipped and listed."""
        return vectors_of(images, self, progress=progress)


@dataclass(frozen=True, eq=False)
class Vectors:
    """float32 vectors, scaled to length 1 if the model says so; where each came from and stood; what was left out."""

    vectors: Float32[Array, "N E"]
    sources: tuple[str, ...]
    places: tuple[int, ...]
    skipped: tuple[Skipped, ...] = ()

    @property
    def count(self) -> int:
        """Images or vectors that were given."""
        return len(self.places) + len(self.skipped)


def open_embedder(model: "Embedder | Saved | Path | str | Callable[..., Any]", *, name: str = "") -> Embedder:
    """An `Embedder` of a file that `likewise train` wrote, of a loaded network, or of any callable (with a name).

    A function with the attributes `fingerprint` (32 bytes, or 64 hex digits), `unit` or `name` is taken at its word.
    """
    if isinstance(model, Embedder):
        return model
    if isinstance(model, str | Path):
        saved = load_network(model)
        return network_embedder(saved, name=name or Path(model).stem)
    if isinstance(model, Saved):
        return network_embedder(model, name=name or model.name)
    if isinstance(model, torch.nn.Module):
        hint = "A function of images prepares them, too: lambda images: model(**processor(images, ...)).pooler_output."
        rule = "be given as module_embedder(module, preparation, name=...), which says how images are prepared"
        refuse("open_embedder", "a torch module", rule, type(model).__name__, hint)
    require(callable(model), "open_embedder", "model", "be a file, a network or a function", type(model).__name__)
    name = name or str(getattr(model, "name", ""))
    hint = "Name the model and its version: templates carry it."
    require(bool(name), "open_embedder", "name", "be given with a function", "none", hint)
    fingerprint = getattr(model, "fingerprint", b"")
    fingerprint = bytes.fromhex(fingerprint) if isinstance(fingerprint, str) else fingerprint
    return Embedder(model, name, fingerprint, bool(getattr(model, "unit", True)))


def network_embedder(saved: Saved, *, name: str) -> Embedder:
    """One of our networks; its vectors have length 1."""
    return _module(for_inference(saved.network), saved.preparation, name, bytes.fromhex(saved.hash), unit=True)


def module_embedder(module: torch.nn.Module, preparation: Preparation, *, name: str, unit: bool = True) -> Embedder:
    """Any torch module that maps prepared images (N, C, rows, columns) to vectors, such as facenet-pytorch's.

    Its fingerprint is the SHA-256 of name, preparation and weights.
    """
    facts = {"name": name, "preparation": preparation.to_json()}
    fingerprint = bytes.fromhex(weights_hash(module.state_dict(), facts))
    return _module(module.eval(), preparation, name, fingerprint, unit=unit)


def _module(
    module: Callable[[Tensor], Tensor], preparation: Preparation, name: str, fingerprint: bytes, *, unit: bool
) -> Embedder:
    def call(images: list[Pixels]) -> Tensor:
        with torch.no_grad():
            return module(torch.stack([preparation(image) for image in images]))

    return Embedder(call, name, fingerprint, unit, preparation.least)


def vectors_of(images: Any, embedder: Embedder, *, progress: Progress = silent) -> Vectors:
    """Vectors of anything that `enrol`, `verify` and `identify` take: images, or rows of floating-point numbers."""
    rows = _as_rows(images)
    if rows is not None:
        return Vectors(checked(rows, embedder.unit), ("",) * len(rows), tuple(range(len(rows))))
    listed = _listed(images)
    if embedder.call is None:
        hint = "Open the gallery with embed=, or give vectors."
        refuse("Gallery", "images", "be vectors: this gallery was opened without a model", _kind(listed[:1]), hint)
    parts, sources, places, skipped = [], [], [], []
    for start in range(0, len(listed), AT_ONCE):
        pixels = []
        for place, item in enumerate(listed[start : start + AT_ONCE], start=start):
            try:
                found = pixels_of(item, least=embedder.least)
                pixels.append(found if embedder.crop is None else embedder.crop(found))
                sources.append(str(Path(item).resolve()) if isinstance(item, str | Path) else "")
            except Unreadable as error:
                skipped.append(Skipped(_item(item, place), str(error)))
            else:
                places.append(place)
        if pixels:
            given = embedder.call(pixels)
            rows = _output_rows(given)
            if rows is None or len(rows) != len(pixels):
                rule = f"give one vector for each of {len(pixels)} images"
                refuse("Gallery", "embed", rule, _described(given) if rows is None else len(rows))
            parts.append(checked(rows, embedder.unit))
        progress(min(1.0, (start + AT_ONCE) / len(listed)), "embedding images")
    vectors = numpy.concatenate(parts) if parts else numpy.zeros((0, 0), numpy.float32)
    return Vectors(vectors, tuple(sources), tuple(places), tuple(skipped))


def vectors_of_each(people: Iterable[tuple[str, Any]], embedder: Embedder) -> Iterator[tuple[str, Vectors]]:
    """Vectors of each identity's images, in order. The model gets images of several identities in one batch.

    >>> mean = Embedder(lambda images: [image.mean((0, 1)) for image in images], "mean colour", unit=False)
    >>> grey = numpy.full((2, 2, 3), 7, numpy.uint8)
    >>> [(name, len(found.vectors)) for name, found in vectors_of_each([("ann", [grey, grey]), ("bob", [grey])], mean)]
    [('ann', 2), ('bob', 1)]
    """
    waiting: list[tuple[str, list[Any]]] = []
    for name, images in people:
        if embedder.call is None or _as_rows(images) is not None:
            yield from _vectors_together(waiting, embedder)
            waiting = []
            yield name, vectors_of(images, embedder)
            continue
        waiting.append((name, _listed(images)))
        if sum(len(items) for _, items in waiting) >= AT_ONCE:
            yield from _vectors_together(waiting, embedder)
            waiting = []
    yield from _vectors_together(waiting, embedder)


def _vectors_together(waiting: Sequence[tuple[str, list[Any]]], embedder: Embedder) -> Iterator[tuple[str, Vectors]]:
    if not waiting:
        return
    found = vectors_of([item for _, items in waiting for item in items], embedder)
    unread = dict(zip(sorted({*range(found.count)} - {*found.places}), found.skipped, strict=True))
    start = 0
    for name, items in waiting:
        stop = start + len(items)
        first, last = (bisect_left(found.places, end) for end in (start, stop))
        places = tuple(place - start for place in found.places[first:last])
        skipped = tuple(
            Skipped(_item(items[place - start], place - start), unread[place].why)
            for place in range(start, stop)
            if place in unread
        )
        yield name, Vectors(found.vectors[first:last], found.sources[first:last], places, skipped)
        start = stop


def _item(item: Any, place: int) -> str:
    """What an image is called in messages."""
    return str(item) if isinstance(item, str | Path) else f"image {place}"


def bounded(where: str, name: str, images: Any, most: int) -> Any:
    """Refuse more images or vectors than `most` before any is embedded; an iterator is read no further."""
    if isinstance(images, Iterable) and not hasattr(images, "__len__") and not isinstance(images, Image.Image):
        images = list(islice(images, most + 1))
    if isinstance(images, numpy.ndarray | Tensor):
        pictures = images.dtype in (numpy.uint8, torch.uint8)
        count = len(images) if images.ndim == (4 if pictures else 2) else 1
    elif isinstance(images, str | Path | bytes | bytearray | memoryview | Image.Image) or _is_vector(images):
        count = 1
    else:
        count = len(images) if hasattr(images, "__len__") else 0
    require(count <= most, where, name, f"be at most {most:,} in one call", f"{count:,}")
    return images


def checked(rows: Array, unit: bool) -> Float32[Array, "N E"]:
    """Finite float32 rows, scaled to length 1 if asked for."""
    rows = rows.astype(numpy.float64)
    lengths = numpy.sqrt((rows * rows).sum(1))
    bad = int((~numpy.isfinite(lengths)).sum())
    require(bad == 0, "Gallery", "vectors", "be finite", f"{bad} that are not")
    if unit:
        short = int((lengths < LEAST_LENGTH).sum())
        require(short == 0, "Gallery", "vectors", "not be 0, which has no direction", f"{short} that are")
        rows = rows / lengths[:, None]
    found = rows.astype(numpy.float32)
    require(bool(numpy.isfinite(found).all()), "Gallery", "vectors", "be within the range of float32", "larger ones")
    return numpy.ascontiguousarray(found)


def pixels_of(item: Any, *, least: int | None = None) -> Pixels:
    """One image in red, green and blue; raises `Unreadable`."""
    if isinstance(item, str | Path):
        return decode(read_bytes(Path(item)), least=least)
    if isinstance(item, bytes | bytearray | memoryview):
        return decode(bytes(item), least=least)
    if isinstance(item, Image.Image):
        return decode_picture(item)
    array = item.numpy() if isinstance(item, Tensor) else item
    if not isinstance(array, numpy.ndarray):
        raise Unreadable(f"no image: {_kind([item])}")
    if array.dtype != numpy.uint8:
        raise Unreadable(f"no image: {array.dtype} of shape {array.shape}; pixels are uint8, vectors one or two axes")
    array = array[..., None] if array.ndim == 2 else array
    if array.ndim != 3 or array.shape[2] not in (1, 3) or not 0 < array.size <= 3 * MAX_PIXELS:
        raise Unreadable(f"no image: an array of shape {array.shape}")
    return array.repeat(3, axis=2) if array.shape[2] == 1 else array


def _as_rows(found: Any) -> Array | None:
    """Floating-point numbers as rows, one vector as one row; None for anything else."""
    if isinstance(found, Tensor):
        found = found.detach().cpu().float().numpy() if found.is_floating_point() else found.numpy()
    if _is_vector(found):
        found = numpy.asarray(found, numpy.float64)
    elif isinstance(found, Sequence) and not isinstance(found, str | bytes) and len(found) and _is_vector(found[0]):
        found = _stacked(found)
    if not isinstance(found, numpy.ndarray) or found.dtype.kind != "f" or found.ndim not in (1, 2):
        return None
    return found[None] if found.ndim == 1 else found


def _output_rows(found: Any) -> Array | None:
    """What a model gave, as rows: arrays, tensors, or a sequence of anything that holds numbers, as dlib's vectors."""
    if isinstance(found, Tensor | numpy.ndarray):
        rows = _as_rows(found if isinstance(found, Tensor) else found.astype(numpy.float64))
        return rows if rows is None or found.ndim == 2 else None
    rows = _stacked(found) if isinstance(found, Sequence) and not isinstance(found, str | bytes) else None
    return rows if rows is not None and rows.ndim == 2 else None


def _stacked(found: Sequence[Any]) -> Array | None:
    """Vectors of one length as rows of float64; None for anything else."""
    try:
        return numpy.stack(
            [
                numpy.asarray(each.detach().cpu().float() if isinstance(each, Tensor) else each, numpy.float64)
                for each in found
            ]
        )
    except (TypeError, ValueError):
        return None


def _is_vector(item: Any) -> bool:
    """Whether something is one vector: floating-point numbers in an array, a list or another type that holds them."""
    if isinstance(item, Tensor | numpy.ndarray):
        floats = item.is_floating_point() if isinstance(item, Tensor) else item.dtype.kind == "f"
        return floats and item.ndim == 1
    if isinstance(item, list | tuple):
        return bool(item) and all(isinstance(each, float | int) for each in item)
    foreign = hasattr(item, "__len__") and hasattr(item, "__getitem__") and not isinstance(item, str | bytes | Mapping)
    return foreign and len(item) > 0 and type(item[0]) is float


def _described(found: Any) -> str:
    shape = f" of shape {tuple(found.shape)}" if isinstance(found, Tensor | numpy.ndarray) else ""
    return f"{type(found).__name__}{shape}"


def _listed(images: Any) -> list[Any]:
    """Images one by one: one of them, a stack of arrays, or any iterable."""
    if isinstance(images, str | Path | bytes | bytearray | memoryview | Image.Image):
        return [images]
    if isinstance(images, numpy.ndarray | Tensor):
        return list(images) if images.ndim == 4 else [images]
    require(isinstance(images, Iterable), "Gallery", "images", "be images or vectors", _kind([images]))
    return list(images)


def _kind(items: list[Any]) -> str:
    return type(items[0]).__name__ if items else "nothing"
