"""A gallery as one .npz: the same templates, models, metadata and calibrations, for another engine or for keeping."""

import json
import os
import zipfile
from collections.abc import Generator, Iterable, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import IO, Any

import numpy

from likewise.checks import refuse, require
from likewise.gallery.store import (
    NAME,
    Array,
    CopyErased,
    CopyStatus,
    Correction,
    Damaged,
    Limits,
    Model,
    Person,
    Store,
    contracted,
    require_name,
)

VERSION = 2
FACTS = 1 << 30  # bytes of JSON that are read
NO_DUMP = (KeyError, TypeError, ValueError, AttributeError, OSError, EOFError, RecursionError, zipfile.BadZipFile)


@dataclass(frozen=True, eq=False)
class Dump:
    """Everything a gallery holds. people: number -> (name, metadata); rows, owners, numbers, sources: by model.

    origin: of the gallery that wrote it.
    """

    origin: int
    models: tuple[Model, ...]
    current: int
    people: dict[int, tuple[str, str]]
    rows: dict[int, Array]
    owners: dict[int, Array]
    numbers: dict[int, Array]
    sources: dict[int, list[str]]
    calibrations: list[tuple[int, str, dict[str, Any]]]
    corrections: list[Correction]


def dump_of(store: Store) -> Dump:
    """Read all of a store; of each model, templates stand in the order of enrolment."""
    with store.snapshot():
        models, current = store.models(), store.current()
        rows, owners, numbers, sources = {}, {}, {}, {}
        for model in models:
            parts = [_nothing(model), *store.rows(model)]
            wholes = [numpy.concatenate(each) for each in zip(*parts, strict=True)]
            rows[model.id], owners[model.id], numbers[model.id] = wholes
            sources[model.id] = _sources(store, model, owners[model.id])
        people = {number: (name, store.metadata(number)) for number, name in store.names().items()}
        calibrations = [(model, kind, facts) for (model, kind), facts in store.calibrations().items()]
        corrections = list(store.corrections())
    number = current.id if current else 0
    return Dump(store.origin, models, number, people, rows, owners, numbers, sources, calibrations, corrections)


def _sources(store: Store, model: Model, owners: Array) -> list[str]:
    """The source of every row: an identity's sources stand in the order of its rows."""
    numbers, counts = numpy.unique(owners, return_counts=True)
    own = {}
    for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
        texts = [text for each in store.templates(number) if each.model.id == model.id for text in each.sources]
        if len(texts) != count:
            got = f"{len(texts)} templates and {count} vectors of identity {number}"
            refuse("Gallery.dump", "gallery", "be a whole one, and not change meanwhile", got, error=Damaged)
        own[number] = iter(texts)
    return [next(own[number]) for number in owners.tolist()]


def _nothing(model: Model) -> tuple[Array, Array, Array]:
    return numpy.zeros((0, model.width), model.kind), numpy.zeros(0, numpy.int64), numpy.zeros(0, numpy.int64)


def write_dump(store: Store, path: Path) -> None:
    """Write everything a store holds to a file; what another process has forgotten meanwhile goes from it at once."""
    with part_file(path) as part:  # it is there before the first row is read: see `being_written`
        dump = dump_of(store)
        _write(dump, part)
    for number in dump.people.keys() - store.names().keys():
        forget_in_dump(path, number, origin=store.origin, wait=True)


def _write(dump: Dump, file: IO[bytes]) -> None:
    facts = {
        "version": VERSION,
        "origin": dump.origin,
        "models": [{**asdict(model), "fingerprint": model.fingerprint.hex()} for model in dump.models],
        "current": dump.current,
        "people": [[number, *person] for number, person in dump.people.items()],
        "sources": {str(model): sources for model, sources in dump.sources.items()},
        "calibrations": dump.calibrations,
        "corrections": [[each.one, each.two, each.same] for each in dump.corrections],
    }
    arrays = {"facts": numpy.frombuffer(json.dumps(facts).encode(), numpy.uint8)}
    for model in dump.models:
        for name, found in (("rows", dump.rows), ("owners", dump.owners), ("numbers", dump.numbers)):
            arrays[f"{name}_{model.id}"] = found[model.id]
    numpy.savez(file, allow_pickle=False, **arrays)


@contextmanager
def part_file(path: Path, *, wait: bool = True) -> Generator[IO[bytes]]:
    """A new file that takes the place of `path` at the end: `path` is whole or not there, for its owner alone.

    Its lock lets one process at a time read and write a copy; the next waits, or raises BlockingIOError. If nothing is
    written to it, `path` stays as it is. What was at `path` before is overwritten: its blocks would keep what is not in
    the new file.
    """
    part = _part(path)
    with _locked(part, wait=wait) as file:
        old = path.open("r+b") if path.is_file() else None
        replaced = False
        try:
            yield file
            file.flush()
            os.fsync(file.fileno())
            for side in _sides(part):
                side.unlink(missing_ok=True)
            if file.seek(0, os.SEEK_END):
                part.replace(path)
                replaced = True
                if old is not None:
                    _overwrite(old)
        finally:
            if not replaced:  # else it may be another's by now
                for left in (*_sides(part), part):
                    left.unlink(missing_ok=True)
            if old is not None:
                old.close()


def being_written(path: Path) -> bool:
    """Whether a process is writing a copy to `path` now. What a crash has left of such a copy is overwritten."""
    part = _part(path)
    if not any(left.exists() for left in (*_sides(part), part)):
        return False
    try:
        with _locked(part, wait=False):
            part.unlink()
    except BlockingIOError:
        return True
    return False


def _part(path: Path) -> Path:
    return path.with_name(f".{path.name}.part")


def _sides(path: Path) -> list[Path]:
    """What SQLite may write beside a database."""
    return [path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal")]


@contextmanager
def _locked(part: Path, *, wait: bool) -> Generator[IO[bytes]]:
    """A part file that no other process has, empty."""
    with ExitStack() as stack:
        while True:
            file = stack.enter_context(open(part, "r+b", opener=_made))
            _lock(file, wait=wait)
            with suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(file.fileno()), part.stat()):  # else its owner has moved it meanwhile
                    break
            file.close()
        _overwrite(file)
        file.truncate(0)
        file.seek(0)
        for side in filter(Path.is_file, _sides(part)):
            with side.open("r+b") as left:
                _overwrite(left)
            side.unlink()
        yield file


def _made(name: str, flags: int) -> int:
    return os.open(name, flags | os.O_CREAT, 0o600)


def _lock(file: IO[bytes], *, wait: bool) -> None:
    try:
        import fcntl
    except ImportError:  # a system without them
        return
    fcntl.flock(file, fcntl.LOCK_EX if wait else fcntl.LOCK_EX | fcntl.LOCK_NB)


def _overwrite(file: IO[bytes]) -> None:
    size = file.seek(0, os.SEEK_END)
    file.seek(0)
    for start in range(0, size, 1 << 20):
        file.write(bytes(min(1 << 20, size - start)))
    file.flush()
    os.fsync(file.fileno())


def forget_in_dump(path: Path, number: int, *, origin: int, wait: bool = False) -> bool:
    """Take one identity out of a dump; False, and nothing is changed, if the dump is of another gallery."""
    with part_file(path, wait=wait) as part:  # nobody else rewrites it between reading and writing
        dump = read_dump(path, Limits())
        if dump.origin != origin:
            return False
        if number in dump.people:
            _write(_without(dump, number), part)
    return True


def erased_from_dump(path: Path, number: int, *, origin: int) -> CopyStatus:
    """Take one identity out of a dump that a gallery noted, and say how that went."""
    try:
        if being_written(path):  # it may hold the identity, or not: asked again when it is there
            return "pending"
        if not path.is_file():
            return "missing"
        return "erased" if forget_in_dump(path, number, origin=origin) else "replaced"
    except OSError:  # busy, not ours to write, a full disk
        return "pending"
    except ValueError:  # another file, or damaged
        return "replaced"


def copy_notes(copies: Sequence[CopyErased], name: str) -> list[str]:
    """What to say of copies that an identity could not be erased from."""
    missing = "{} is not there any more; if it was moved, it still holds {!r}."
    replaced = "{} is not the copy that this gallery made, and was not changed; a damaged one may hold {!r}."
    return [
        words.format(copy.path, name)
        for status, words in (("missing", missing), ("replaced", replaced))
        for copy in copies
        if copy.status == status
    ]


def _without(dump: Dump, number: int) -> Dump:
    kept = {model: owners != number for model, owners in dump.owners.items()}
    gone = [each for model, numbers in dump.numbers.items() for each in numbers[~kept[model]].tolist()]
    return replace(
        dump,
        people={each: person for each, person in dump.people.items() if each != number},
        rows={model: rows[kept[model]] for model, rows in dump.rows.items()},
        owners={model: owners[kept[model]] for model, owners in dump.owners.items()},
        numbers={model: numbers[kept[model]] for model, numbers in dump.numbers.items()},
        corrections=contracted(dump.corrections, gone),
        sources={m: [text for text, keep in zip(s, kept[m], strict=True) if keep] for m, s in dump.sources.items()},
    )


def read_dump(path: Path, limits: Limits) -> Dump:
    """Read a dump, of which nothing is believed: sizes, kinds, numbers and names are checked."""
    require(path.is_file(), "Gallery.load", "path", "be a file", repr(str(path)))
    dump = None
    with suppress(*NO_DUMP):
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
        numbers = {model.id: found[f"numbers_{model.id}"] for model in models}
    people = {number: (name, metadata) for number, name, metadata in facts["people"]}
    sources = {int(model): texts for model, texts in facts["sources"].items()}
    calibrations = [(model, kind, each) for model, kind, each in facts["calibrations"]]
    corrections = [Correction(one, two, same) for one, two, same in facts["corrections"]]
    return Dump(
        facts["origin"], models, facts["current"], people, rows, owners, numbers, sources, calibrations, corrections
    )


def _model(facts: dict[str, Any]) -> Model:
    facts["fingerprint"] = bytes.fromhex(facts["fingerprint"])
    return Model(**facts)


def _sound(dump: Dump, limits: Limits) -> bool:
    texts: Iterable[Any] = (text for person in dump.people.values() for text in person)
    right = [
        isinstance(dump.origin, int),
        len(dump.models) <= limits.models,
        len(dump.people) <= limits.identities,
        sum(map(len, dump.rows.values())) <= limits.templates,
        all(isinstance(text, str) for text in texts),
        all(len(name) <= NAME and len(data) <= limits.metadata for name, data in dump.people.values()),
        len({name for name, _ in dump.people.values()}) == len(dump.people),
        dump.current == 0 or dump.current in {model.id for model in dump.models},
    ]
    every: set[int] = set()
    for model in dump.models:
        rows, owners, numbers = dump.rows[model.id], dump.owners[model.id], dump.numbers[model.id]
        every |= set(numbers.tolist())
        right += [
            isinstance(model.width, int) and 0 < model.width <= limits.width and len(model.fingerprint) == 32,
            model.kind in ("float32", "int8") and rows.dtype == numpy.dtype(model.kind),
            rows.ndim == 2 and rows.shape[1:] == (model.width,) and owners.shape == (len(rows),),
            numbers.dtype == numpy.int64 and numbers.shape == owners.shape,
            owners.dtype == numpy.int64 and len(dump.sources[model.id]) == len(rows),
            set(numpy.unique(owners).tolist()) <= dump.people.keys(),
            bool(numpy.isfinite(rows).all()),
        ]
    right.append(len(every) == sum(map(len, dump.rows.values())))
    right += [{each.one, each.two} <= every and isinstance(each.same, bool) for each in dump.corrections]
    return all(right)


def people_of(dump: Dump, model: int) -> tuple[list[Person], list[int]]:
    """The identities of a dump with their templates of one model, and the rows of these in this order."""
    rows, owners, sources = dump.rows[model], dump.owners[model], dump.sources[model]
    groups: dict[int, list[int]] = {}
    for place, number in enumerate(owners.tolist()):
        groups.setdefault(number, []).append(place)
    people = [
        Person(require_name("Gallery.load", name), rows[places], tuple(sources[place] for place in places), metadata)
        for number, places in groups.items()
        for name, metadata in [dump.people[number]]
    ]
    return people, [place for places in groups.values() for place in places]
