"""Faces in pictures: an embedder of pictures from one of faces and any detector, a function from pixels to boxes."""

import hashlib
import importlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy
from PIL import Image

from likewise.checks import require, require_number, require_package
from likewise.data import Unreadable
from likewise.files import function_of
from likewise.gallery.embedding import Embedder, Pixels

SHARE = 114 / 250  # of the side of LFW's pictures, whose boxes were enlarged 2.2 times
LONGEST = 1024  # pixels of a side that dlib is shown: faces of less than 80 of them are not found
Box = tuple[int, int, int, int]  # top, left, bottom, right
Detector = Callable[[Pixels], Sequence[Box]]


@dataclass(frozen=True)
class Centre:
    """The square in the middle as the only face: the paper's crop of aligned pictures.

    Paper: Schroff et al. 2015, section 5.6: "a fixed center crop of the LFW provided thumbnail".

    >>> Centre()(numpy.zeros((250, 250, 3), numpy.uint8))
    [(68, 68, 182, 182)]
    """

    share: float = SHARE

    @property
    def name(self) -> str:
        """What the fingerprint of an embedder knows it by."""
        return f"centre {self.share:.6g}"

    def __call__(self, pixels: Pixels) -> list[Box]:
        rows, columns = pixels.shape[:2]
        side = max(1, round(self.share * min(rows, columns)))
        top, left = (rows - side) // 2, (columns - side) // 2
        return [(top, left, top + side, left + side)]


class DlibFaces:
    """dlib's frontal detector (`likewise[faces]`): histograms of gradients, whose weights are inside the package."""

    name = "dlib frontal"

    def __init__(self) -> None:
        require_package("DlibFaces", "dlib")
        module: Any = importlib.import_module("dlib")
        self._detect = module.get_frontal_face_detector()

    def __call__(self, pixels: Pixels) -> list[Box]:
        """Boxes of all faces, which may reach beyond the picture."""
        scale = min(1.0, LONGEST / max(pixels.shape[:2]))
        small = pixels
        if scale < 1:
            size = [max(1, round(scale * side)) for side in pixels.shape[1::-1]]
            small = numpy.asarray(Image.fromarray(pixels).resize((size[0], size[1])))
        # Shown at twice its size, for faces from 40 pixels on.
        found = self._detect(numpy.ascontiguousarray(small), 1)
        sides = [(box.top(), box.left(), box.bottom() + 1, box.right() + 1) for box in found]
        return [(round(a / scale), round(b / scale), round(c / scale), round(d / scale)) for a, b, c, d in sides]


def face_embedder(embedder: Embedder, detect: Detector | None = None, *, margin: float = 0.0) -> Embedder:
    """An embedder of whole pictures: the largest face is cut out and given to `embedder`.

    A picture without a face is skipped and listed. detect: `Centre()` unless given; any function from pixels to boxes
    (top, left, bottom, right). margin: share of a box's sides that is added on each side. Detector and margin are part
    of the fingerprint: templates of other crops are templates of another model.

    >>> mean = Embedder(lambda images: [image.mean((0, 1)) for image in images], "mean colour", unit=False)
    >>> half = numpy.zeros((250, 250, 3), numpy.uint8)
    >>> half[100:150, 100:150] = 255
    >>> face_embedder(mean)(half).vectors.round(1)  # 255 * 50^2 / 114^2
    array([[49.1, 49.1, 49.1]], dtype=float32)
    """
    where = "face_embedder"
    detector = Centre() if detect is None else detect
    require(embedder.call is not None, where, "embedder", "take images", "one of vectors")
    require_number(where, "margin", margin, least=0)
    name = str(getattr(detector, "name", ""))
    hint = "Give it an attribute `name`, with its version: templates depend on it."
    require(bool(name), where, "detect", "have a name", repr(detector), hint)

    def face(pixels: Pixels) -> Pixels:
        return largest_face(pixels, detector, margin)

    facts = embedder.fingerprint + f"{name} {margin!r}".encode()
    called = f"{embedder.name}, faces: {name}"
    return replace(embedder, name=called, fingerprint=hashlib.sha256(facts).digest(), least=None, crop=face)


def largest_face(pixels: Pixels, detect: Detector, margin: float = 0.0) -> Pixels:
    """The part of a picture with its largest face; `Unreadable` if there is none."""
    rows, columns = pixels.shape[:2]
    cut = []
    for top, left, bottom, right in detect(pixels):
        down, across = round(margin * (bottom - top)), round(margin * (right - left))
        inside = max(0, top - down), max(0, left - across), min(rows, bottom + down), min(columns, right + across)
        if inside[0] < inside[2] and inside[1] < inside[3]:
            cut.append(((bottom - top) * (right - left), inside))
    if not cut:
        raise Unreadable("no face was found")
    _, (top, left, bottom, right) = max(cut)
    return pixels[top:bottom, left:right]


def open_detector(text: str) -> Detector:
    """A detector by what a user types: centre, dlib, or file.py:function."""
    if text == "centre":
        return Centre()
    if text == "dlib":
        return DlibFaces()
    rule = "be centre, dlib or file.py:function"
    require(":" in text, "likewise", "--faces", rule, repr(text))
    return _Named(function_of(text, "--faces", "faces"), text)


class _Named:
    """A user's function, known by its file's contents."""

    def __init__(self, function: Detector, text: str) -> None:
        with open(text.rpartition(":")[0], "rb") as file:
            digest = hashlib.sha256(file.read()).hexdigest()[:12]
        self._function, self.name = function, f"{text.rpartition(':')[2]} {digest}"

    def __call__(self, pixels: Pixels) -> Sequence[Box]:
        return self._function(pixels)
