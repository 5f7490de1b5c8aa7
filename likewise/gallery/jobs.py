"""Whole commands in one call: data sets as people -> vectors, enrolments, thresholds, upgrades."""

import hashlib
import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy

from likewise.checks import refuse, require
from likewise.data import Examples, Skipped, Unreadable, open_examples
from likewise.data.arrays import read_npz
from likewise.data.files import Files
from likewise.files import function_of, require_place, write_whole
from likewise.gallery.answers import Enrolled
from likewise.gallery.batches import Batches, Waiting
from likewise.gallery.calibration import Calibration, require_strangers
from likewise.gallery.embedding import Embedder, open_embedder, vectors_of_each
from likewise.gallery.faces import face_embedder, open_detector
from likewise.gallery.gallery import Gallery
from likewise.gallery.upgrading import Upgrade
from likewise.progress import Progress, part, silent

PICTURES = (".jpg", ".jpeg", ".png", ".ppm", ".pgm", ".bmp", ".gif", ".webp", ".tif", ".tiff")
MOST_FILES = 100_000  # of a folder of probes


def open_model(text: str, faces: str | None = None) -> Embedder:
    """A model by what a user types: a file of `likewise train`, or file.py:function.

    A function takes a list of images (uint8, rows x columns x 3) and gives one vector each; its fingerprint is that of
    its file, and an attribute `unit` says whether vectors are compared by angle (True unless given). faces: a detector,
    as `open_detector` takes it, whose largest face the model is given.
    """
    if faces is not None:
        return face_embedder(open_model(text), open_detector(faces))
    if ":" in text and not Path(text).exists():
        function = function_of(text, "--model", "model")
        digest = hashlib.sha256(Path(text.rpartition(":")[0]).read_bytes() + text.encode()).digest()
        return Embedder(function, text[-200:], digest, bool(getattr(function, "unit", True)))
    return open_embedder(text)


class People(Mapping[str, Any]):
    """A data set as a mapping from identities to images, or to vectors; images are read when they are asked for."""

    def __init__(self, data: Path | str) -> None:
        path = Path(data)
        self.skipped: tuple[Skipped, ...] = ()
        self.examples: Examples | None = None
        self._vectors: numpy.ndarray | None = None
        if path.suffix == ".npz" and path.is_file():
            found = read_npz("people", path, ("vectors", "names"))
            if len(found) == 2:
                vectors, names = found["vectors"], found["names"]
                fits = vectors.ndim == 2 and vectors.dtype.kind == "f" and names.shape == vectors.shape[:1]
                fits = fits and names.dtype.kind == "U"
                require(fits, "people", "data", "hold vectors and their names", repr(str(data)))
                self._vectors = vectors
                self._rows = _grouped(names.tolist())
                return
        self.examples = open_examples(data)
        self.skipped = self.examples.skipped
        self._rows = _grouped([self.examples.identities[label] for label in self.examples.labels.tolist()])

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __getitem__(self, name: str) -> Any:
        rows = self._rows[name]
        if self._vectors is not None:
            return self._vectors[rows]
        some = self.examples
        assert some is not None
        if isinstance(some.source, Files) and some.source.crop is None:
            return [some.source.paths[row] for row in rows]
        return [_pixels(some, row) for row in rows]

    def items_of(self, name: str) -> list[str]:
        """Names of an identity's images, as far as they have any."""
        return [self.examples.items[row] for row in self._rows[name]] if self.examples else []


def _pixels(some: Examples, row: int) -> Any:
    try:
        return some.read(row)
    except Unreadable:
        return b""  # which no model can read: it is skipped and listed


def _grouped(names: Sequence[str]) -> dict[str, list[int]]:
    rows: dict[str, list[int]] = {}
    for row, name in enumerate(names):
        rows.setdefault(name, []).append(row)
    return rows


def probe_files(paths: Sequence[Path | str]) -> list[Path]:
    """Image files: those given, and those in folders that are given."""
    found: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            found += sorted(file for file in path.rglob("*") if file.suffix.lower() in PICTURES)
        else:
            found.append(path)
    require(bool(found), "identify", "images", "be image files or folders of them", "none")
    require(len(found) <= MOST_FILES, "identify", "images", f"be at most {MOST_FILES:,}", f"{len(found):,}")
    return found


def embed_people(
    data: Path | str, model: str, out: Path, *, faces: str | None = None, progress: Progress = silent
) -> Enrolled:
    """Write vectors, names and items of a data set as a .npz, which `enrol` and `likewise train` read."""
    require_place("embed", out)
    embedder, people = open_model(model, faces), People(data)
    vectors, names, items, skipped = [], [], [], list(people.skipped)
    for place, (name, found) in enumerate(vectors_of_each(people.items(), embedder)):
        listed = people.items_of(name)
        vectors.append(found.vectors)
        names += [name] * len(found.vectors)
        items += [listed[row] for row in found.places] if listed else [""] * len(found.vectors)
        skipped += found.skipped
        progress((place + 1) / len(people), "embedding images")
    vectors = [each for each in vectors if len(each)]
    if not vectors:
        refuse("embed", "data", "hold an image that can be read", repr(str(data)))
    file = io.BytesIO()
    whole = numpy.concatenate(vectors)
    numpy.savez(file, vectors=whole, names=numpy.array(names), items=numpy.array(items))
    write_whole(out, file.getvalue())
    return Enrolled(len(set(names)), len(whole), tuple(skipped))


@dataclass(frozen=True)
class EnrolledPeople:
    """What `enrol_people` added; already: identities that were left as they are; finished: False if interrupted."""

    added: Enrolled
    already: int
    finished: bool = True


def enrol_people(
    gallery: Gallery,
    people: Mapping[str, Any],
    *,
    add: bool = False,
    skipped: Sequence[Skipped] = (),
    progress: Progress = silent,
    interrupted: Callable[[], bool] | None = None,
) -> EnrolledPeople:
    """Enrol a data set: every identity whole or not at all, several in one transaction.

    Those that are there already are left, so that an interrupted enrolment goes on. add: add templates to these, too.
    """
    identities = templates = already = 0
    left, finished = list(skipped), True

    def missing() -> Iterator[tuple[str, Any]]:
        nonlocal already, finished
        for place, name in enumerate(people):
            if interrupted is not None and interrupted():
                finished = False
                return
            progress(place / len(people), "enrolling")
            if not add and name in gallery:
                already += 1
            else:
                yield name, people[name]

    def write(waiting: Sequence[Waiting]) -> None:
        nonlocal already, identities, templates
        new = [each for each in waiting if add or each[0] not in gallery]  # or another process was faster
        already += len(waiting) - len(new)
        identities += len(new)
        templates += gallery.enrol_each(new)

    with Batches(write) as batch:
        for name, found in vectors_of_each(missing(), gallery.embedder):
            left += found.skipped
            if len(found.vectors):
                batch.put(name, found)
    if finished:
        progress(1.0, "enrolling")
    return EnrolledPeople(Enrolled(identities, templates, tuple(left)), already, finished)


def upgrade_gallery(
    gallery: Gallery,
    newer: Embedder,
    held_out: Mapping[str, Any],
    *,
    far: float | None = None,
    images: Mapping[str, Any] | None = None,
    replace: bool = False,
    progress: Progress = silent,
    interrupted: Callable[[], bool] | None = None,
) -> tuple[Upgrade | None, Enrolled | None]:
    """Judge a new model on held-out people; if it is compatible, enrol everybody anew whose images are known.

    replace: with a model that is not compatible, too; the gallery changes over when everybody has templates of it. The
    same call goes on where it was interrupted, and then has no verdict.
    """
    verdict = None
    if images is None or not gallery.reenrolling(newer):
        verdict = gallery.upgrade(newer, held_out, far=far, progress=part(progress, 0.0, 0.5))
        if images is None or not (verdict.compatible or replace):
            return verdict, None
    again = part(progress, 0.5 if verdict else 0.0, 1.0)
    return verdict, gallery.reenrol(images, embed=newer, progress=again, interrupted=interrupted)


def calibrate_gallery(
    gallery: Gallery,
    people: Mapping[str, Any] | None,
    strangers: Mapping[str, Any] | None,
    *,
    far: float = 1e-3,
    fpir: float = 0.01,
    progress: Progress = silent,
) -> Calibration:
    """Find thresholds on data sets: all pairs of people, and one image of every stranger."""
    others = None
    if strangers is not None:
        known = [name for name in strangers if name in gallery]
        require(not known, "calibrate", "strangers", "be people who are not enrolled", ", ".join(known[:3]))
        require_strangers(len(strangers), fpir)
        vectors = []
        for place, name in enumerate(strangers):
            vectors.append(gallery.embedder(strangers[name]).vectors[:1])
            progress(0.5 * (place + 1) / len(strangers), "embedding strangers")
        others = numpy.concatenate([each for each in vectors if len(each)] or [numpy.zeros((0, 0), numpy.float32)])
    step = part(progress, 0.5 if others is not None else 0.0, 1.0)
    gallery.calibrate(people, far=far, strangers=others, fpir=fpir, progress=step)
    return gallery.calibration
