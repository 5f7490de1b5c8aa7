"""A gallery as one .npz: the same templates, models, metadata and calibrations, for another engine or for keeping."""

import json
import os
import zipfile
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy

from likewise.checks import refuse, require
from likewise.gallery.store import NAME, Array, Damaged, Limits, Model, Store

VERSION = 1
FACTS = 1 << 30  # bytes of JSON that are read


@dataclass(frozen=True, eq=False)
class Dump:
    """Everything a gallery holds. people: number -> (name, metadata); rows, owners, sources: by model."""

    models: tuple[Model, ...]
    current: int
    people: dict[int, tuple[str, str]]
    rows: dict[int, Array]
    owners: dict[int, Array]
    sources: dict[int, list[str]]
    calibrations: list[tuple[int, str, dict[str, Any]]]


def dump_of(store: Store) -> Dump:
    """Read all of a store; of each model, templates stand in the order of enrolment."""
    models, current = store.models(), store.current()
    people = {number: (name, store.metadata(number)) for number, name in store.names().items()}
    rows, owners, sources = {}, {}, {}
    for model in models:
        parts = list(store.rows(model))
        rows[model.id] = numpy.concatenate([each for each, _ in parts]) if parts else _nothing(model)
        owners[model.id] = numpy.concatenate([each for _, each in parts]) if parts else numpy.zeros(0, numpy.int64)
    for model in models:
        own: dict[int, list[str]] = {
            number: [source for each in store.templates(number) if each.model.id == model.id for source in each.sources]
            for number in dict.fromkeys(owners[model.id].tolist())
        }
        taken = dict.fromkeys(own, 0)
        listed = []
        for number in owners[model.id].tolist():
            listed.append(own[number][taken[number]])
            taken[number] += 1
        sources[model.id] = listed
    calibrations = [(model, kind, facts) for (model, kind), facts in store.calibrations().items()]
    return Dump(models, current.id if current else 0, people, rows, owners, sources, calibrations)


def _nothing(model: Model) -> Array:
    return numpy.zeros((0, model.width), model.kind)


def write_dump(dump: Dump, path: Path) -> None:
    """Write a dump: the file is whole or not there, for its owner alone; what was there before is overwritten."""
    facts = {
        "version": VERSION,
        "models": [{**asdict(model), "fingerprint": model.fingerprint.hex()} for model in dump.models],
        "current": dump.current,
        "people": [[number, *person] for number, person in dump.people.items()],
        "sources": {str(model): sources for model, sources in dump.sources.items()},
        "calibrations": dump.calibrations,
    }
    arrays = {"facts": numpy.frombuffer(json.dumps(facts).encode(), numpy.uint8)}
    for model in dump.models:
        arrays[f"rows_{model.id}"], arrays[f"owners_{model.id}"] = dump.rows[model.id], dump.owners[model.id]
    beside = path.with_name(f".{path.name}.{os.getpid()}.part")
    old = path.open("r+b") if path.is_file() else None
    try:
        with os.fdopen(os.open(beside, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
            numpy.savez(file, allow_pickle=False, **arrays)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
        if old is not None:  # the blocks of the old file would keep what is not in the new one
            _overwrite(old)
    finally:
        beside.unlink(missing_ok=True)
        if old is not None:
            old.close()


def _overwrite(file: Any) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    for start in range(0, size, 1 << 20):
        file.write(bytes(min(1 << 20, size - start)))
    file.flush()
    os.fsync(file.fileno())


def forget_in_dump(path: Path, number: int) -> None:
    """Take one identity out of a dump."""
    dump = read_dump(path, Limits())
    kept = {model: owners != number for model, owners in dump.owners.items()}
    write_dump(
        Dump(
            dump.models,
            dump.current,
            {each: person for each, person in dump.people.items() if each != number},
            {model: rows[kept[model]] for model, rows in dump.rows.items()},
            {model: owners[kept[model]] for model, owners in dump.owners.items()},
            {m: [text for text, keep in zip(s, kept[m], strict=True) if keep] for m, s in dump.sources.items()},
            dump.calibrations,
        ),
        path,
    )


def read_dump(path: Path, limits: Limits) -> Dump:
    """Read a dump, of which nothing is believed: sizes, kinds, numbers and names are checked."""
    require(path.is_file(), "Gallery.load", "path", "be a file", repr(str(path)))
    dump = None
    with suppress(KeyError, TypeError, ValueError, AttributeError, OSError, EOFError, zipfile.BadZipFile):
        dump = _read(path)
    if dump is None or not _sound(dump, limits):
        refuse("Gallery.load", "path", "be a whole dump of a gallery", repr(str(path)), error=Damaged)
    return dump


def _read(path: Path) -> Dump | None:
    with path.open("rb") as file, numpy.load(file, allow_pickle=False) as found:
        if found.zip.getinfo("facts.npy").file_size > FACTS:
            return None
        facts = json.loads(found["facts"].tobytes())
        if facts["version"] != VERSION:
            return None
        models = tuple(map(_model, facts["models"]))
        rows = {model.id: found[f"rows_{model.id}"] for model in models}
        owners = {model.id: found[f"owners_{model.id}"] for model in models}
    people = {number: (name, metadata) for number, name, metadata in facts["people"]}
    sources = {int(model): texts for model, texts in facts["sources"].items()}
    calibrations = [(model, kind, each) for model, kind, each in facts["calibrations"]]
    return Dump(models, facts["current"], people, rows, owners, sources, calibrations)


def _model(facts: dict[str, Any]) -> Model:
    facts["fingerprint"] = bytes.fromhex(facts["fingerprint"])
    return Model(**facts)


def _sound(dump: Dump, limits: Limits) -> bool:
    texts: Iterable[Any] = (text for person in dump.people.values() for text in person)
    right = [
        len(dump.models) <= limits.models,
        len(dump.people) <= limits.identities,
        sum(map(len, dump.rows.values())) <= limits.templates,
        all(isinstance(text, str) for text in texts),
        all(len(name) <= NAME and len(data) <= limits.metadata for name, data in dump.people.values()),
        len({name for name, _ in dump.people.values()}) == len(dump.people),
        dump.current == 0 or dump.current in {model.id for model in dump.models},
    ]
    for model in dump.models:
        rows, owners = dump.rows[model.id], dump.owners[model.id]
        right += [
            isinstance(model.width, int) and 0 < model.width <= limits.width and len(model.fingerprint) == 32,
            model.kind in ("float32", "int8") and rows.dtype == numpy.dtype(model.kind),
            rows.ndim == 2 and rows.shape[1:] == (model.width,) and owners.shape == (len(rows),),
            owners.dtype == numpy.int64 and len(dump.sources[model.id]) == len(rows),
            set(numpy.unique(owners).tolist()) <= dump.people.keys(),
            bool(numpy.isfinite(rows).all()),
        ]
    return all(right)
