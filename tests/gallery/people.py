"""People made up for the tests: vectors around a centre for each."""

import numpy

from likewise.gallery import Gallery
from likewise.gallery.sqlite import SqliteStore
from likewise.gallery.store import Model

WIDTH = 13


def people(
    count: int, each: int = 1, *, width: int = WIDTH, spread: float = 0.1, seed: int = 0
) -> dict[str, numpy.ndarray]:
    """Unit vectors of some people, several each."""
    draw = numpy.random.default_rng(seed)
    centres = draw.normal(size=(count, 1, width))
    rows = centres / numpy.linalg.norm(centres, axis=2, keepdims=True) + spread * draw.normal(size=(count, each, width))
    rows /= numpy.linalg.norm(rows, axis=2, keepdims=True)
    return {f"person {number}": vectors.astype(numpy.float32) for number, vectors in enumerate(rows)}


def embedded(gallery: Gallery) -> SqliteStore:
    """The embedded store of a gallery."""
    assert isinstance(gallery.store, SqliteStore)
    return gallery.store


def model_of(gallery: Gallery) -> Model:
    """The current model of a gallery that has one."""
    model = gallery.store.current()
    assert model is not None
    return model
