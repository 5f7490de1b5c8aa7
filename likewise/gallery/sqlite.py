"""The embedded store: one SQLite database, durable, safe with several processes, and erased to the last byte.

Vectors lie side by side in blobs of 1,024 slots and are written in place; owners of the slots lie beside them. A slot
is used once: it is free, then belongs to an identity, then is zero, so that a reader sees what others have changed by
comparing owners. Everything in memory is derived from the file.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Generator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, NoReturn

import numpy

from likewise.checks import refuse, require
from likewise.files import require_place
from likewise.gallery.byte_search import search_bytes
from likewise.gallery.dumps import being_written, copy_notes, erased_from_dump, part_file
from likewise.gallery.schema import APPLICATION, PAGE, PRAGMAS, SCHEMA, STATE, VERSION
from likewise.gallery.search import Matrix
from likewise.gallery.store import (
    NAME,
    Absent,
    CopyErased,
    CopyStatus,
    Correction,
    Damaged,
    Erasure,
    Hits,
    Limits,
    Model,
    Person,
    Search,
    Templates,
    heirs_of_each,
    inherited,
    new_origin,
    require_templates,
)

SLOTS = 1024  # of a chunk: 512 kB of 128 float32
BUSY = 30.0  # seconds that a writer waits for another
PATIENCE = 100  # milliseconds that an erasure waits for readers before it is pending
LONGEST = 1 << 26  # bytes of one value that is read
MAGIC = b"SQLite format 3\0"
ROUNDING = 1e-3  # of a length of 1
Array = numpy.ndarray


class SqliteStore:
    """A gallery in one SQLite file; see `likewise.gallery.store.Store` for its methods."""

    erases: Literal["proven", "delegated"] = "proven"
    search: Search = "exact"

    def __init__(self, path: Path | str, *, limits: Limits | None = None, above: frozenset[Path] = frozenset()) -> None:
        """above: galleries of which this one is opened as a backup, to erase from it."""
        self.path, self.limits, self._above = Path(path), limits or Limits(), above
        self._lock = threading.RLock()
        self._matrices: dict[int, Matrix] = {}
        self._chunks: dict[int, list[int]] = {}  # of each model in memory, in order
        self._known: tuple[int, tuple[Model, ...], Model | None] | None = None
        self._seen: tuple[int, int] | None = None  # data_version and epoch of what is in memory
        _require_file(self.path)
        fresh = not self.path.exists()
        if fresh:
            with suppress(FileExistsError):  # biometric data: for its owner alone
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL | os.O_RDWR, 0o600))
        self._db = sqlite3.connect(self.path, timeout=BUSY, isolation_level=None, check_same_thread=False)
        try:
            with self._guard():
                self._prepare()
        except BaseException:
            self._db.close()
            raise
        if not above:
            self._settle_if_possible()

    def _prepare(self) -> None:
        self._db.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, LONGEST)
        self._db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
        self._pragma("trusted_schema", 0)
        self._pragma("cell_size_check", 1)
        empty = self._one("SELECT count(*) FROM sqlite_master") == 0
        if empty and self._one("PRAGMA application_id") == 0:
            self._db.execute(f"PRAGMA page_size={PAGE}")
        else:
            self._renew()
            self._require_ours()
        for name, value in PRAGMAS.items():
            self._pragma(name, value)
        if empty:
            with self._writing():
                if self._one("SELECT count(*) FROM sqlite_master") == 0:  # or another process was faster
                    for statement in SCHEMA.values():
                        self._db.execute(statement)
                    facts = {**dict.fromkeys(STATE, 0), "origin": new_origin()}
                    self._db.executemany("INSERT INTO state VALUES (?, ?)", facts.items())
                    self._db.execute(f"PRAGMA application_id={APPLICATION}")
                    self._db.execute(f"PRAGMA user_version={VERSION}")
        self._require_ours()

    def _renew(self) -> None:
        """Bring a gallery of version 1, which had no corrections, to this one."""
        if (self._one("PRAGMA application_id"), self._one("PRAGMA user_version")) == (APPLICATION, 1):
            with self._writing():
                self._db.execute(SCHEMA["correction"])
                self._db.execute("INSERT OR IGNORE INTO state VALUES ('origin', ?)", (new_origin(),))
                self._db.execute(f"PRAGMA user_version={VERSION}")

    def _pragma(self, name: str, value: int | str) -> None:
        self._db.execute(f"PRAGMA {name}={value}")
        found = self._one(f"PRAGMA {name}")
        require(found == value, "Gallery.open", name, f"be {value} on this file system", found)

    def _require_ours(self) -> None:
        """Refuse a database of another application, or one whose schema holds anything that is not ours."""
        found = self._one("PRAGMA application_id"), self._one("PRAGMA user_version")
        if found != (APPLICATION, VERSION):
            refuse("Gallery.open", "url", "be a gallery of likewise", f"another database, {str(self.path)!r}")
        objects = self._db.execute("SELECT name, sql FROM sqlite_master LIMIT 100").fetchall()
        schema = {name: sql for name, sql in objects if not name.startswith("sqlite_")}
        if schema != SCHEMA:
            odd = sorted(set(schema.items()) ^ set(SCHEMA.items()), key=str)
            self._damaged(f"a schema that differs in {odd[0][0][:40]!r}")
        self.origin = self._state("origin")
        if any(self._state(name) < 0 for name in STATE):
            self._damaged("a state that cannot be")

    def pragmas(self) -> dict[str, Any]:
        """The settings of this connection."""
        return {name: self._one(f"PRAGMA {name}") for name in PRAGMAS}

    def close(self) -> None:
        """Finish erasures, if no reader is in the way, and close."""
        with self._lock:
            if not self._above:
                with suppress(sqlite3.ProgrammingError):  # closed already
                    self._settle_if_possible()
            self._matrices.clear()
            self._db.close()

    # Reading

    def models(self) -> tuple[Model, ...]:
        return self._catalogue()[0]

    def current(self) -> Model | None:
        return self._catalogue()[1]

    def _catalogue(self) -> tuple[tuple[Model, ...], Model | None]:
        """All models and the current one, read again when another connection or this one may have changed them."""
        with self._lock, self._guard():
            version = self._one("PRAGMA data_version")
            if self._known is None or self._known[0] != version:
                models = self._read_models()
                number = self._state("current")
                current = next((model for model in models if model.id == number), None)
                if number and current is None:
                    self._damaged(f"no model {number}, which is the current one")
                found = version, models, current
                if self._db.in_transaction:  # it may be rolled back
                    return found[1:]
                self._known = found
            return self._known[1:]

    def _read_models(self) -> tuple[Model, ...]:
        with self._guard():
            rows = self._db.execute(
                "SELECT id, name, fingerprint, width, unit, kind, compatible_with FROM model ORDER BY id LIMIT ?",
                (self.limits.models + 1,),
            ).fetchall()
        models = []
        for number, name, fingerprint, width, unit, kind, older in rows:
            if not (0 < width <= self.limits.width and 0 < len(name) <= NAME and 0 <= older < number):
                self._damaged(f"a model {number} that cannot be")
            models.append(Model(number, name, fingerprint, width, bool(unit), kind, older))
        return tuple(models)

    def count(self) -> tuple[int, int]:
        [found] = self._select("SELECT (SELECT count(*) FROM identity), (SELECT count(*) FROM template)")
        return found

    def names(self, numbers: Sequence[int] | None = None) -> dict[int, str]:
        if numbers is None:
            found = self._select("SELECT id, name FROM identity ORDER BY name")
        else:
            query = "SELECT id, name FROM identity WHERE id = ?"
            found = [row for number in set(numbers) if number for row in self._select(query, number)]
        if not all(isinstance(name, str) for _, name in found):
            self._damaged("a name that is no text")
        return dict(found)

    def number(self, name: str) -> int:
        found = self._select("SELECT id FROM identity WHERE name = ?", name)
        return found[0][0] if found else 0

    def metadata(self, number: int) -> str:
        found = self._select("SELECT metadata FROM identity WHERE id = ?", number)
        return found[0][0] if found else "{}"

    def templates(self, number: int) -> tuple[Templates, ...]:
        models = {model.id: model for model in self.models()}
        found = []
        with self._reading():
            query = "SELECT slot, source FROM template WHERE identity = ? AND model = ? ORDER BY slot LIMIT ?"
            for model in models.values():
                rows = self._db.execute(query, (number, model.id, self.limits.templates_each)).fetchall()
                if rows:
                    vectors = numpy.stack([self._read(model, slot, owner=number) for slot, _ in rows])
                    slots, sources = zip(*rows, strict=True)
                    found.append(Templates(model, vectors, sources, slots))
        return tuple(found)

    def waiting(self, models: Sequence[int]) -> tuple[str, ...]:
        query = "SELECT name FROM identity WHERE id IN (SELECT identity FROM template WHERE model = ?)"
        return tuple(sorted({name for model in models for (name,) in self._select(query, model)}))

    def rows(self, model: Model) -> Iterator[tuple[Array, Array, Array]]:
        for (number,) in self._select("SELECT id FROM chunk WHERE model = ? ORDER BY id", model.id):
            with self._lock, self._guard():
                found = list(self._loaded(model, "id = ?", number))  # an open cursor would stop a checkpoint
            for _, owners, vectors in found:
                kept = numpy.flatnonzero(owners)
                yield vectors[kept], owners[kept], number * SLOTS + kept

    def _select(self, query: str, *values: Any) -> list[Any]:
        """All rows of a query; not in the middle of another thread's transaction."""
        with self._lock, self._guard():
            return self._db.execute(query, values).fetchall()

    def _loaded(self, model: Model, where: str, value: int) -> Iterator[tuple[int, Array, Array]]:
        """Chunks as (id, owners, vectors), all of it checked: a file may have been damaged or made by somebody else."""
        kind, width = numpy.dtype(model.kind), model.width
        for number, owners, vectors in self._db.execute(
            f"SELECT id, owners, vectors FROM chunk WHERE {where} ORDER BY id", (value,)
        ):
            if len(owners) != 8 * SLOTS or len(vectors) != SLOTS * width * kind.itemsize:
                self._damaged(f"a chunk {number} of another size")
            who = numpy.frombuffer(owners, "<i8")
            rows = numpy.frombuffer(vectors, kind.newbyteorder("<")).reshape(SLOTS, width)
            self._require_vectors(model, rows, who)
            yield number, who, rows

    def _require_vectors(self, model: Model, rows: Array, owners: Array) -> None:
        if model.kind == "int8":
            flawed = (rows == 0).all(1) & (owners != 0)
        else:
            squares = numpy.einsum("ne,ne->n", rows, rows)
            wanted = numpy.abs(squares - 1) <= ROUNDING if model.unit else numpy.isfinite(squares)
            flawed = ~wanted & (owners != 0)
        if flawed.any() or (owners < 0).any():
            self._damaged("a template that no model makes")

    def _read(self, model: Model, slot: int, *, owner: int) -> Array:
        """The template of a slot, which must be an identity's."""
        kind = numpy.dtype(model.kind)
        size = model.width * kind.itemsize
        chunk, place = divmod(slot, SLOTS)
        self._require_owner(slot, owner)
        try:
            with self._db.blobopen("chunk", "vectors", chunk, readonly=True) as blob:
                if len(blob) != SLOTS * size:
                    self._damaged(f"a chunk {chunk} of another size")
                blob.seek(place * size)
                return numpy.frombuffer(blob.read(size), kind.newbyteorder("<")).astype(kind)
        except sqlite3.OperationalError as error:
            self._damaged(f"a template without its chunk: {error}")

    def _require_owner(self, slot: int, owner: int) -> None:
        """Refuse a slot whose chunk names another owner than the table of templates."""
        chunk, place = divmod(slot, SLOTS)
        try:
            with self._db.blobopen("chunk", "owners", chunk, readonly=True) as blob:
                if len(blob) != 8 * SLOTS:
                    self._damaged(f"a chunk {chunk} of another size")
                blob.seek(8 * place)
                found = int.from_bytes(blob.read(8), "little", signed=True)
        except (sqlite3.OperationalError, OverflowError) as error:
            self._damaged(f"a template without its chunk: {error}")
        if found != owner:
            self._damaged(f"a template {slot} that belongs to two identities")

    # Search

    def nearest(self, queries: Array, model: Model, *, k: int) -> Hits:
        with self._lock:
            matrix = self.matrix(model)
            found = matrix.nearest(queries, k=k)
            owners = numpy.where(found.rows < 0, 0, matrix.owners[found.rows] if matrix.count else 0)
        return Hits(owners, found.squared)

    def matrix(self, model: Model) -> Matrix:
        """The templates of a model in memory, as the file has them now."""
        with self._lock, self._reading():
            seen = self._one("PRAGMA data_version"), self._state("epoch")
            if self._seen is None or self._seen[1] != seen[1]:
                self._matrices.clear()
            if model.id not in self._matrices:
                self._load(model)
            if self._seen is not None and self._seen != seen:
                for number in list(self._matrices):
                    self._refresh(number)
            self._seen = seen
            return self._matrices[model.id]

    def _load(self, model: Model) -> None:
        matrix = Matrix(model.width, codes=model.kind == "int8", unit=model.unit)
        ids = []
        for number, owners, vectors in self._loaded(model, "model = ?", model.id):
            matrix.put(len(ids) * SLOTS, vectors, owners)
            ids.append(number)
        self._matrices[model.id], self._chunks[model.id] = matrix, ids

    def _refresh(self, number: int) -> None:
        """Bring what other connections have changed into memory: rows whose owner is another, and new chunks."""
        model = next(model for model in self.models() if model.id == number)
        matrix, ids = self._matrices[number], self._chunks[number]
        places = {chunk: place for place, chunk in enumerate(ids)}
        for chunk, data in self._db.execute("SELECT id, owners FROM chunk WHERE model = ? ORDER BY id", (number,)):
            if len(data) != 8 * SLOTS:
                self._damaged(f"a chunk {chunk} of another size")
            owners = numpy.frombuffer(data, "<i8")
            known = places.get(chunk)
            if known is None and ids and chunk < ids[-1]:  # ours came before theirs in memory: keep the order of slots
                self._load(model)
                return
            if known is None:
                ids.append(chunk)
                for _, who, vectors in self._loaded(model, "id = ?", chunk):
                    matrix.put((len(ids) - 1) * SLOTS, vectors, who)
                continue
            start = known * SLOTS
            for place in numpy.flatnonzero(matrix.owners[start : start + SLOTS] != owners).tolist():
                vector = self._read(model, chunk * SLOTS + place, owner=int(owners[place]))[None]
                self._require_vectors(model, vector, owners[place : place + 1])
                matrix.put(start + place, vector, owners[place : place + 1])

    # Writing

    def add_model(self, model: Model, *, current: bool) -> Model:
        self._known = None
        with self._writing():
            models = self._read_models()
            found = next((each for each in models if each.fingerprint == model.fingerprint), None)
            if found is None:
                most = self.limits.models
                require(len(models) < most, "Gallery", "models", f"be at most {most}", len(models) + 1)
                values = model.name, model.fingerprint, model.width, model.unit, model.kind, model.compatible_with
                cursor = self._db.execute("INSERT INTO model VALUES (NULL, ?, ?, ?, ?, ?, ?)", values)
                assert cursor.lastrowid is not None
                found = replace(model, id=cursor.lastrowid)
            elif model.compatible_with:
                self._db.execute("UPDATE model SET compatible_with = ? WHERE id = ?", (model.compatible_with, found.id))
                found = replace(found, compatible_with=model.compatible_with)
            if current:
                self._set_state("current", found.id)
        return found

    def add(self, people: Sequence[Person], model: Model, *, replaces: Sequence[int] = ()) -> int:
        rows = [person.templates for person in people]
        whole = numpy.concatenate(rows) if rows else numpy.zeros((0, model.width), model.kind)
        assert whole.dtype == numpy.dtype(model.kind) and whole.shape[1] == model.width
        sources = [source for person in people for source in person.sources]
        taken: list[tuple[int, slice]] = []
        vacated: list[tuple[int, int]] = []
        with self._writing():
            known = [self._put_identity(person) for person in people]
            numbers = [number for number, _ in known]
            before: list[tuple[int, int, str]] = []
            for number in dict.fromkeys(numbers) if replaces else ():
                query = "SELECT slot, source FROM template WHERE identity = ? ORDER BY slot"
                before += [(number, *row) for row in self._db.execute(query, (number,))]
                vacated += [slot for older in replaces for slot in self._vacate(number, older)]
            owners = numpy.repeat(numpy.array(numbers, numpy.int64), [len(each) for each in rows])
            chunk, used = self._end(model)
            start = 0
            while start < len(whole):
                if used == SLOTS:
                    chunk, used = self._new_chunk(model), 0
                part = slice(start, min(len(whole), start + SLOTS - used))
                first, who = chunk * SLOTS + used, owners[part]
                self._write(model, chunk, used, whole[part], who)
                slots = range(first, first + len(who))
                self._db.executemany(
                    "INSERT INTO template VALUES (?, ?, ?, ?)",
                    zip(slots, who.tolist(), [model.id] * len(who), sources[part], strict=True),
                )
                taken.append((first, part))
                used, start = used + len(who), part.stop
            if vacated:
                gone = [slot for _, slot in vacated]
                fresh = [first + place for first, part in taken for place in range(part.stop - part.start)]
                new = zip(owners.tolist(), fresh, sources, strict=True)
                left = set(gone)
                self._contract(gone, heirs_of_each([each for each in before if each[1] in left], new))
            self._require_quota(known, people)
        for first, part in taken:
            self._follow(model.id, first, whole[part], owners[part])
        for older, slot in vacated:
            self._follow_vacated(older, slot)
        if vacated:
            self.settle()
        return len(whole)

    def _require_quota(self, known: Sequence[tuple[int, bool]], people: Sequence[Person]) -> None:
        """Refuse what is over a limit; the transaction is then rolled back."""
        limits, query = self.limits, "SELECT count(*) FROM template WHERE identity = ?"
        for (number, new), person in zip(known, people, strict=True):
            found = len(person.templates) if new else self._db.execute(query, (number,)).fetchone()[0]
            rule = f"have at most {limits.templates_each:,} templates"
            require(found <= limits.templates_each, "enrol", "an identity", rule, f"{found:,} for {person.name!r}")
        # The largest slot and number bound the counts from above, without counting.
        for name, table, most, bound in (
            ("templates", "template", limits.templates, "max(slot) - 1023"),
            ("identities", "identity", limits.identities, "max(id)"),
        ):
            if (self._one(f"SELECT {bound} FROM {table}") or 0) > most:
                found = self._one(f"SELECT count(*) FROM {table}")
                require(found <= most, "enrol", name, f"be at most {most:,} in all", f"{found:,}")

    def _put_identity(self, person: Person) -> tuple[int, bool]:
        """The number of an identity, and whether it is new."""
        found = self._db.execute("SELECT id FROM identity WHERE name = ?", (person.name,)).fetchone()
        if found is None:
            values = person.name, person.metadata or "{}"
            number = self._db.execute("INSERT INTO identity VALUES (NULL, ?, ?)", values).lastrowid
            assert number is not None
            return number, True
        if person.metadata is not None:
            self._db.execute("UPDATE identity SET metadata = ? WHERE id = ?", (person.metadata, found[0]))
        return found[0], False

    def assign(self, numbers: Sequence[int], name: str) -> int:
        with self._writing():
            query = "SELECT identity FROM template WHERE slot = ?"
            before = {slot: row[0] for slot in numbers for row in self._db.execute(query, (slot,))}
            require_templates(numbers, before)
            owner, _ = self._put_identity(Person(name, numpy.zeros((0, 1)), ()))
            left = set(before.values())
            for slot in before:
                self._db.execute("UPDATE template SET identity = ? WHERE slot = ?", (owner, slot))
                chunk, place = divmod(slot, SLOTS)
                self._put(chunk, "owners", 8 * place, owner.to_bytes(8, "little"))
            for number in left - {owner}:
                self._db.execute(
                    "DELETE FROM identity WHERE id = ?1 AND NOT EXISTS (SELECT 1 FROM template WHERE identity = ?1)",
                    (number,),
                )
            self._set_state("epoch", self._state("epoch") + 1)  # owners in memory are others now
            # Copies have the templates under their old owners, where forgetting the new one would not find them.
            self._db.executemany("INSERT OR IGNORE INTO erasing VALUES (?)", [(each,) for each in left - {owner}])
        self._settle_if_possible()
        return owner

    def _end(self, model: Model) -> tuple[int, int]:
        """The last chunk of a model, and how many of its slots were ever used."""
        chunk = self._db.execute("SELECT max(id) FROM chunk WHERE model = ?", (model.id,)).fetchone()[0]
        if chunk is None:
            return 0, SLOTS
        last = self._db.execute(
            "SELECT max(slot) FROM template WHERE slot BETWEEN ? AND ?", (chunk * SLOTS, chunk * SLOTS + SLOTS - 1)
        ).fetchone()[0]
        return chunk, 0 if last is None else last + 1 - chunk * SLOTS

    def _new_chunk(self, model: Model) -> int:
        size = SLOTS * model.width * numpy.dtype(model.kind).itemsize
        number = self._db.execute(
            "INSERT INTO chunk VALUES (NULL, ?, zeroblob(?), zeroblob(?))", (model.id, 8 * SLOTS, size)
        ).lastrowid
        assert number is not None
        return number

    def _write(self, model: Model, chunk: int, place: int, rows: Array, owners: Array) -> None:
        size = model.width * rows.itemsize
        self._put(chunk, "owners", 8 * place, owners.astype("<i8").tobytes())
        self._put(chunk, "vectors", size * place, rows.astype(rows.dtype.newbyteorder("<")).tobytes())

    def _put(self, chunk: int, column: str, at: int, data: bytes) -> None:
        """Write bytes in place."""
        with self._db.blobopen("chunk", column, chunk) as blob:
            blob.seek(at)
            blob.write(data)

    def _vacate(self, identity: int, model: int | None = None) -> list[tuple[int, int]]:
        """Overwrite an identity's templates with zeros and delete their rows; gives (model, slot) of each."""
        query = "SELECT model, slot FROM template WHERE identity = ?" + ("" if model is None else " AND model = ?")
        values = (identity,) if model is None else (identity, model)
        slots = self._db.execute(query, values).fetchall()
        models = {each.id: each for each in self.models()} if slots else {}
        for number, slot in slots:
            owner = models.get(number) or self._damaged(f"a template of no model, {number}")
            self._require_owner(slot, identity)
            zeros = numpy.zeros((1, owner.width), numpy.dtype(owner.kind))
            self._write(owner, *divmod(slot, SLOTS), zeros, numpy.zeros(1, numpy.int64))
        self._db.executemany("DELETE FROM template WHERE slot = ?", [(slot,) for _, slot in slots])
        if slots:
            self._count_pending()
        return slots

    def _count_pending(self) -> None:
        """Note that the log has to be cut: a number of its own, so that nobody takes it for what was cut before."""
        self._db.execute("UPDATE state SET value = value + 1 WHERE name = 'pending'")

    def _follow(self, number: int, slot: int, rows: Array, owners: Array) -> None:
        """Bring our own commit into memory, if that model is there."""
        with self._lock:
            if number not in self._matrices:
                return
            chunk, place = divmod(slot, SLOTS)
            ids = self._chunks[number]
            if not ids or ids[-1] < chunk:
                ids.append(chunk)
            at = ids.index(chunk) if ids[-1] != chunk else len(ids) - 1
            self._matrices[number].put(at * SLOTS + place, rows, owners)

    def _follow_vacated(self, number: int, slot: int) -> None:
        with self._lock:
            chunk, place = divmod(slot, SLOTS)
            if number in self._matrices and chunk in self._chunks[number]:
                row = self._chunks[number].index(chunk) * SLOTS + place
                self._matrices[number].vacate(numpy.array([row]))

    # Erasing

    def remove(self, name: str, *, prove: bool = False) -> Erasure:
        with self._writing():
            number = self.number(name)
            require(number > 0, "forget", "identity", "be in the gallery", repr(name), error=Absent)
            found = [row.tobytes() for each in self.templates(number) for row in each.rows] if prove else []
            slots = self._delete(number)
        for model, slot in slots:
            self._follow_vacated(model, slot)
        copies = tuple(CopyErased(path, status) for path, _, status in self._settled())
        notes = copy_notes(copies, name)
        late = bool(self._state("pending")) or any(copy.status == "pending" for copy in copies)
        if late:
            notes.append("Another process still reads: the bytes go when it ends and the gallery is opened or closed.")
        searched, count = (), None
        if prove:
            paths = [*self.files(), *(Path(copy.path) for copy in copies if copy.status != "missing")]
            searched, count = search_bytes(paths, found)
            if count and not late:
                notes.append("The same template may be enrolled under another name.")
        return Erasure(name, len(slots), "pending" if late else "erased", copies, searched, count, tuple(notes))

    def _delete(self, number: int) -> list[tuple[int, int]]:
        """Overwrite and delete an identity, and note that files and copies have to follow."""
        slots = self._vacate(number)
        self._contract([slot for _, slot in slots], {})
        self._db.execute("DELETE FROM identity WHERE id = ?", (number,))
        self._db.execute("INSERT OR IGNORE INTO erasing VALUES (?)", (number,))
        self._count_pending()
        return slots

    def retire(self, models: Sequence[int], *, heirs: Mapping[int, int] | None = None) -> int:
        count = 0
        with self._writing():
            for number in models:
                slots = [slot for (slot,) in self._db.execute("SELECT slot FROM template WHERE model = ?", (number,))]
                self._contract(slots, heirs or {})
                count += self._db.execute("DELETE FROM template WHERE model = ?", (number,)).rowcount
                for chunk, owners, vectors in self._db.execute(
                    "SELECT id, length(owners), length(vectors) FROM chunk WHERE model = ?", (number,)
                ).fetchall():
                    for column, size in (("owners", owners), ("vectors", vectors)):
                        with self._db.blobopen("chunk", column, chunk) as blob:
                            blob.write(bytes(size))
                self._db.execute("DELETE FROM chunk WHERE model = ?", (number,))
            self._set_state("epoch", self._state("epoch") + 1)
            self._count_pending()
        with self._lock:
            self._seen = None
        self.settle()
        return count

    def settle(self) -> bool:
        return all(status != "pending" for _, _, status in self._settled()) and not self._state("pending")

    def _settle_if_possible(self) -> None:
        """As `settle`, where neither a busy file nor a full disk is a reason to fail."""
        with suppress(OSError):
            self.settle()

    def _settled(self) -> list[tuple[str, int, CopyStatus]]:
        """Carry erasures through the log, the main file and every copy; what a crash interrupted goes on here."""
        with self._lock, self._guard():
            pending = self._state("pending")
            if pending:
                self._db.execute(f"PRAGMA busy_timeout={PATIENCE}")
                try:
                    busy, *_ = self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
                finally:
                    self._db.execute(f"PRAGMA busy_timeout={int(BUSY * 1000)}")
                if not busy:  # what another process has erased since then counts on
                    self._db.execute("UPDATE state SET value = 0 WHERE name = 'pending' AND value = ?", (pending,))
            waiting = [number for (number,) in self._db.execute("SELECT identity FROM erasing")]
            found = [each for number in waiting for each in self._forget_in_copies(number)]
            done = set(waiting) - {number for _, number, status in found if status == "pending"}
            if done:
                with self._writing():
                    self._db.executemany("DELETE FROM erasing WHERE identity = ?", [(number,) for number in done])
            return found

    def files(self) -> list[Path]:
        """Every file of the store that exists now."""
        ends = ("", "-wal", "-shm", "-journal")
        return [path for end in ends if (path := self.path.with_name(self.path.name + end)).exists()]

    def compact(self) -> None:
        """Give back the space of what was deleted: VACUUM, in memory, then a checkpoint."""
        with self._lock, self._guard():
            self._db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 1)  # its copy in memory
            try:
                self._db.execute("VACUUM")
            finally:
                self._db.setlimit(sqlite3.SQLITE_LIMIT_ATTACHED, 0)
            self._count_pending()
        self.settle()

    def backup(self, path: Path | str) -> None:
        """Write a copy of the whole database and remember it for `remove`."""
        path = Path(path)
        require_place("backup", path)
        require(path.resolve() != self.path.resolve(), "backup", "path", "be another file", repr(str(path)))
        self.add_copy(path, "backup")
        with part_file(path) as part, closing(sqlite3.connect(part.name, isolation_level=None)) as other:
            with self._lock, self._guard():
                self._db.backup(other)
            other.execute("DELETE FROM copy")  # the copies of a copy are none of its own
            other.execute(
                "INSERT OR REPLACE INTO state VALUES ('copied', (SELECT coalesce(max(seq), 0) FROM sqlite_sequence"
                " WHERE name = 'identity'))"
            )
            other.execute("PRAGMA journal_mode=DELETE")
            copied = {number for (number,) in other.execute("SELECT id FROM identity")}
        with self._writing():  # what another process has forgotten meanwhile
            gone = copied - {number for (number,) in self._db.execute("SELECT id FROM identity")}
            self._db.executemany("INSERT OR IGNORE INTO erasing VALUES (?)", [(number,) for number in gone])
        self._settle_if_possible()

    def add_copy(self, path: Path, kind: Literal["backup", "dump"]) -> None:
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO copy VALUES (?, ?)", (str(path.resolve()), kind))

    def _forget_in_copies(self, number: int) -> list[tuple[str, int, CopyStatus]]:
        found: list[tuple[str, int, CopyStatus]] = []
        for text, kind in self._select("SELECT path, kind FROM copy ORDER BY path"):
            path = Path(text)
            if path.resolve() not in self._above | {self.path.resolve()}:
                found.append((text, number, self._forget_in_copy(path, kind, number)))
        return found

    def _forget_in_copy(self, path: Path, kind: str, number: int) -> CopyStatus:
        if kind == "dump":
            return erased_from_dump(path, number, origin=self.origin)
        try:
            if being_written(path):  # it may hold the identity, or not: asked again when it is there
                return "pending"
            if not path.is_file():
                return "missing"
            if path.stat().st_size == 0:
                return "replaced"
            above = self._above | {self.path.resolve()}
            with closing(SqliteStore(path, limits=self.limits, above=above)) as copy:
                if copy.origin != self.origin:
                    return "replaced"
                if number <= copy._state("copied"):  # later numbers are of its own identities, if it went its own way
                    with copy._writing():
                        copy._delete(number)
                return "erased" if copy.settle() else "pending"
        except OSError:  # busy, not ours to write, a full disk
            return "pending"
        except ValueError:  # another database, or damaged
            return "replaced"

    # Corrections, calibrations and state

    def corrections(self) -> tuple[Correction, ...]:
        rows = self._select("SELECT one, two, same FROM correction ORDER BY id")
        return tuple(Correction(one, two, bool(same)) for one, two, same in rows)

    def correct(self, corrections: Sequence[Correction]) -> None:
        with self._writing():
            self._put_corrections(corrections)

    def _put_corrections(self, corrections: Sequence[Correction]) -> None:
        rows = [(each.one, each.two, each.same) for each in corrections]
        self._db.executemany("INSERT INTO correction VALUES (NULL, ?, ?, ?)", rows)

    def _contract(self, gone: Sequence[int], heirs: Mapping[int, int]) -> None:
        """Keep what corrections say about the templates that stay, and about heirs of others."""
        before = self.corrections()
        after = inherited(before, gone, heirs)
        if after != list(before):
            self._db.execute("DELETE FROM correction")
            self._put_corrections(after)

    def calibrations(self) -> dict[tuple[int, str], dict[str, Any]]:
        rows = self._select("SELECT model, kind, facts FROM calibration LIMIT 1000")
        try:
            return {(model, kind): json.loads(facts) for model, kind, facts in rows}
        except (ValueError, TypeError, RecursionError):
            self._damaged("a calibration that is no JSON")

    def set_calibration(self, model: int, kind: str, facts: dict[str, Any]) -> None:
        with self._writing():
            self._db.execute("INSERT OR REPLACE INTO calibration VALUES (?, ?, ?)", (model, kind, json.dumps(facts)))

    def _state(self, name: str) -> int:
        found = self._select("SELECT value FROM state WHERE name = ?", name)
        if not found and name in STATE:
            self._damaged(f"no state {name!r}")
        return found[0][0] if found else 0

    def _set_state(self, name: str, value: int) -> None:
        self._db.execute("INSERT OR REPLACE INTO state VALUES (?, ?)", (name, value))

    def _one(self, query: str) -> Any:
        return self._db.execute(query).fetchone()[0]

    @contextmanager
    def _writing(self) -> Generator[None]:
        """One transaction that takes the write lock at once: reading first would fail beside another writer."""
        with self._lock, self._guard():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    def snapshot(self) -> AbstractContextManager[None]:
        return self._reading()

    @contextmanager
    def _reading(self) -> Generator[None]:
        """One view of the database for several reads."""
        with self._lock, self._guard():
            if self._db.in_transaction:
                yield
                return
            self._db.execute("BEGIN")
            try:
                yield
            finally:
                self._db.execute("COMMIT")

    @contextmanager
    def _guard(self) -> Generator[None]:
        """Say what SQLite complains of in one line: a busy or full disk is an OSError, the rest a damaged file."""
        try:
            yield
        except sqlite3.OperationalError as error:
            text = str(error)
            if any(word in text for word in ("locked", "full", "I/O", "readonly", "unable to open")):
                raise OSError(f"Gallery: {self.path}: {text}.") from None
            self._damaged(text)
        except sqlite3.DatabaseError as error:
            self._damaged(str(error))

    def _damaged(self, what: str) -> NoReturn:
        refuse("Gallery", "url", "be a whole gallery", f"{what}, in {str(self.path)!r}", error=Damaged)


def _require_file(path: Path) -> None:
    where = "Gallery.open"
    require(path.parent.is_dir(), where, "url", "be in a folder that exists", repr(str(path)))
    if path.exists():
        require(path.is_file(), where, "url", "be a regular file", repr(str(path)))
        with path.open("rb") as file:
            head = file.read(16)
        require(head in (b"", MAGIC), where, "url", "be an SQLite database", repr(str(path)))
