"""A store in PostgreSQL with pgvector: each template is a row, and the server searches, exactly or by an HNSW index.

A gallery is a schema of the database, named by the fragment of the URL: postgresql://host/database#people. Writers take
turns by a lock on one table. After a lost connection every call is repeated on a new one; a write leaves its number in
its own transaction, so that a repetition sees whether the first attempt was committed.
"""

import json
import secrets
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, LiteralString, TypeVar, cast
from urllib.parse import urldefrag, urlsplit

import numpy
import psycopg
from psycopg import sql
from psycopg.adapt import Dumper, Loader
from psycopg.pq import Format
from psycopg.types import TypeInfo

from likewise.checks import refuse, require
from likewise.gallery.dumps import copy_notes, erased_from_dump
from likewise.gallery.search import EXTRA, squared_between
from likewise.gallery.store import (
    Absent,
    Array,
    CopyErased,
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
    require_collection,
    require_quota,
    require_templates,
)

VERSION = 1  # of the tables
OPENING, PATIENCE = 5.0, 60.0  # seconds that the first connection, and a later one, is tried
PAUSE = 0.05  # seconds between two attempts
ROWS = 8192  # templates that `rows` reads at a time
INDEXED = {"vector": 2000, "halfvec": 4000}  # numbers of a vector that an HNSW index of pgvector takes
EF = 100  # candidates of an HNSW search, at least
TABLES = """
CREATE TABLE state(name text PRIMARY KEY, value bigint NOT NULL);
CREATE TABLE writer(client bytea PRIMARY KEY, number bigint NOT NULL, at timestamptz NOT NULL DEFAULT now());
CREATE TABLE model(id integer PRIMARY KEY, name text NOT NULL,
    fingerprint bytea NOT NULL UNIQUE CHECK (length(fingerprint) = 32), width integer NOT NULL CHECK (width > 0),
    unit boolean NOT NULL, kind text NOT NULL CHECK (kind IN ('float32', 'int8')), compatible_with integer NOT NULL);
CREATE TABLE identity(id bigint PRIMARY KEY, name text COLLATE "C" NOT NULL UNIQUE,
    metadata text NOT NULL CHECK (length(metadata) <= 65536));
CREATE TABLE calibration(model integer NOT NULL REFERENCES model, kind text NOT NULL,
    facts text NOT NULL CHECK (length(facts) <= 1048576), PRIMARY KEY (model, kind));
CREATE TABLE correction(id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, one bigint NOT NULL, two bigint NOT NULL,
    same boolean NOT NULL);
CREATE TABLE copy(path text PRIMARY KEY);
CREATE TABLE erasing(identity bigint PRIMARY KEY);
INSERT INTO state VALUES ('version', 1), ('current', 0), ('identities', 0), ('templates', 0),
    ('held identities', 0), ('held templates', 0);
"""
DELEGATED = (
    "PostgreSQL keeps deleted rows in its tables until VACUUM, and in its write-ahead log, replicas and archives: "
    "erasing them is left to it."
)
Database = psycopg.Connection[Any]
Found = TypeVar("Found")


class _Vector(bytes):
    """A float32 vector as PostgreSQL sends it: its length in two bytes, two of zeros, numbers with the high byte first.

    A class for each type of the server, because psycopg chooses by the class.
    """


class _Half(bytes):
    """The same in 16-bit floating point, which holds the numbers of a code exactly."""


class PostgresStore:
    """A gallery in a schema of a PostgreSQL database; see `likewise.gallery.store.Store` for its methods."""

    erases: Literal["proven", "delegated"] = "delegated"

    def __init__(self, url: str, *, limits: Limits | None = None, search: Search = "exact") -> None:
        self._url, schema = urldefrag(url)
        self.schema = require_collection(schema or "likewise")
        self.limits, self.search = limits or Limits(), search
        parts = urlsplit(self._url)
        self.place = f"{parts.hostname or 'local'}{parts.path}#{self.schema}"  # without user and password
        self._lock = threading.RLock()
        self._db: Database | None = None
        self._reading = False  # inside of a snapshot, which a new connection would not have
        self._client, self._number = secrets.token_bytes(16), 0
        self._patience = OPENING
        try:
            self._within(self._prepare)
            self.settle()
        except BaseException:
            self.close()
            raise
        self._patience = PATIENCE

    # Connections and transactions

    def _connect(self) -> Database:
        deadline = time.monotonic() + self._patience
        while True:
            try:
                db = psycopg.connect(
                    self._url, autocommit=True, connect_timeout=10, prepare_threshold=None, application_name="likewise"
                )
                break
            except psycopg.OperationalError as error:  # it may be starting, or recovering from a crash
                if time.monotonic() > deadline:
                    raise OSError(f"Gallery: {self.place}: {_line(error)}.") from None
                time.sleep(PAUSE)
        try:
            self._adapt(db)
        except BaseException:
            db.close()
            raise
        return db

    def _adapt(self, db: Database) -> None:
        """Make the extension's types known; look for tables in the gallery's schema first."""
        with suppress(psycopg.errors.UniqueViolation, psycopg.errors.InsufficientPrivilege):
            db.execute("CREATE EXTENSION IF NOT EXISTS vector")
        query = "SELECT nspname FROM pg_extension JOIN pg_namespace n ON n.oid = extnamespace WHERE extname = 'vector'"
        found = db.execute(query).fetchone()
        if found is None:
            hint = "Its administrator runs: CREATE EXTENSION vector"
            refuse("Gallery.open", "url", "be a database with pgvector", self.place, hint)
        path = sql.SQL(", ").join(sql.Identifier(name) for name in (self.schema, found[0]))
        db.execute(sql.SQL("SET search_path = {}").format(path))
        for name, dumped in (("vector", _Vector), ("halfvec", _Half)):
            info = TypeInfo.fetch(db, name)
            require(info is not None, "Gallery.open", "url", "be a database with pgvector 0.8", self.place)
            assert info is not None
            info.register(db)
            dumper = type(name, (_Packed,), {"oid": info.oid})
            db.adapters.register_dumper(dumped, dumper)
            db.adapters.register_loader(info.oid, _Raw)

    def _within(self, work: Callable[[Database], Found], *, write: bool = False) -> Found:
        """Run work in one transaction; on a lost connection again, unless its commit had arrived."""
        with self._lock:
            self._number += write
            number, found = self._number, None
            while True:
                if self._db is None or self._db.closed:
                    self._db = self._connect()
                try:
                    with self._db.transaction():
                        if write:
                            self._db.execute("LOCK TABLE state IN EXCLUSIVE MODE")  # one writer at a time
                            if found is not None and self._arrived(self._db, number):
                                return found[0]
                        found = (work(self._db),)
                        if write:
                            self._db.execute(
                                "INSERT INTO writer VALUES (%s, %s) ON CONFLICT (client) "
                                "DO UPDATE SET number = excluded.number, at = now()",
                                (self._client, number),
                            )
                    return found[0]
                except psycopg.Error as error:
                    if self._db.closed and not self._reading:  # lost: on a new one again
                        continue
                    if isinstance(error, psycopg.OperationalError | psycopg.InternalError):
                        raise OSError(f"Gallery: {self.place}: {_line(error)}.") from None
                    refuse("Gallery", "url", "be a whole gallery", f"{_line(error)}, in {self.place}", error=Damaged)

    @contextmanager
    def snapshot(self) -> Generator[None]:
        with self._lock:
            self._within(lambda db: None)  # on a connection that answers
            assert self._db is not None
            with self._db.transaction():
                self._db.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
                self._reading = True
                try:
                    yield
                finally:
                    self._reading = False

    def _arrived(self, db: Database, number: int) -> bool:
        row = db.execute("SELECT number FROM writer WHERE client = %s", (self._client,)).fetchone()
        return row is not None and row[0] == number

    def _prepare(self, db: Database) -> None:
        """Make schema and tables, if they are not there; two that open at once take turns."""
        db.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (f"likewise {self.schema}",))
        if db.execute("SELECT to_regclass('state')").fetchone() == (None,):
            db.execute(sql.SQL("CREATE SCHEMA IF NOT EXISTS {}").format(sql.Identifier(self.schema)))
            db.execute(TABLES)
            db.execute("INSERT INTO state VALUES ('origin', %s)", (new_origin(),))
        found = _state(db, "version")
        rule = f"be a gallery of version {VERSION}"
        require(found == VERSION, "Gallery.open", "url", rule, f"{found}, in {self.place}")
        self.origin = _state(db, "origin")
        db.execute("DELETE FROM writer WHERE at < now() - interval '1 day'")
        if self.search == "approximate":
            for model in _models(db):
                self._index(db, model)

    def close(self) -> None:
        with self._lock:
            if self._db is not None:
                self._db.close()

    def _all(self, query: LiteralString, *values: Any) -> list[Any]:
        return self._within(lambda db: db.execute(query, values).fetchall())

    # Reading

    def models(self) -> tuple[Model, ...]:
        return self._within(_models)

    def current(self) -> Model | None:
        def work(db: Database) -> Model | None:
            number = _state(db, "current")
            return next((model for model in _models(db) if model.id == number), None)

        return self._within(work)

    def count(self) -> tuple[int, int]:
        rows = self._all("SELECT value FROM state WHERE name LIKE 'held %%' ORDER BY name")
        return rows[0][0], rows[1][0]

    def names(self, numbers: Sequence[int] | None = None) -> dict[int, str]:
        if numbers is None:
            return dict(self._all("SELECT id, name FROM identity ORDER BY name"))
        return dict(self._all("SELECT id, name FROM identity WHERE id = ANY(%s)", list({*map(int, numbers)})))

    def number(self, name: str) -> int:
        rows = self._all("SELECT id FROM identity WHERE name = %s", name)
        return rows[0][0] if rows else 0

    def metadata(self, number: int) -> str:
        rows = self._all("SELECT metadata FROM identity WHERE id = %s", number)
        return rows[0][0] if rows else "{}"

    def templates(self, number: int) -> tuple[Templates, ...]:
        def work(db: Database) -> tuple[Templates, ...]:
            found = []
            for model in _models(db):
                query = "SELECT vector, source, id FROM {} WHERE identity = %s ORDER BY id LIMIT %s"
                rows = _of(db, model, query, number, self.limits.templates_each)
                if rows:
                    vectors, sources, slots = zip(*rows, strict=True)
                    found.append(Templates(model, _unpacked(vectors, model), sources, slots))
            return tuple(found)

        return self._within(work)

    def waiting(self, models: Sequence[int]) -> tuple[str, ...]:
        query = "SELECT name FROM identity i WHERE EXISTS (SELECT FROM {} WHERE identity = i.id)"

        def work(db: Database) -> set[str]:
            return {name for model in _models(db) if model.id in models for (name,) in _of(db, model, query)}

        return tuple(sorted(self._within(work)))

    def rows(self, model: Model) -> Iterator[tuple[Array, Array, Array]]:
        last = 0
        query = "SELECT id, identity, vector FROM {} WHERE id > %s ORDER BY id LIMIT %s"
        while rows := self._within(lambda db, last=last: _of(db, model, query, last, ROWS)):
            numbers, owners, vectors = zip(*rows, strict=True)
            last = numbers[-1]
            yield _unpacked(vectors, model), numpy.array(owners, numpy.int64), numpy.array(numbers, numpy.int64)

    # Search

    def nearest(self, queries: Array, model: Model, *, k: int) -> Hits:
        owners = numpy.zeros((len(queries), k), numpy.int64)
        squared = numpy.full((len(queries), k), numpy.inf)

        def work(db: Database) -> None:
            if self.search == "exact":
                db.execute("SET LOCAL enable_indexscan = off")
            else:
                db.execute(sql.SQL("SET LOCAL hnsw.ef_search = {}").format(min(1000, max(EF, 2 * (k + EXTRA)))))
                db.execute("SET LOCAL hnsw.iterative_scan = relaxed_order")
            for row, query in enumerate(queries):
                found, distances = self._nearest(db, query, model, k)
                owners[row, : len(found)], squared[row, : len(found)] = found, distances

        self._within(work)
        return Hits(owners, squared)

    def _nearest(self, db: Database, query: Array, model: Model, k: int) -> tuple[Array, Array]:
        """The server's candidates, measured again in float64: more of them until a bound on the others is passed."""
        operator = "<=>" if model.kind == "int8" else "<->"
        order = "distance, id" if self.search == "exact" else "distance"  # the index knows no second column
        ask = f"SELECT id, identity, vector, vector {operator} %s AS distance FROM {{}} ORDER BY {order} LIMIT %s"
        codes, wanted = model.kind == "int8", k + EXTRA
        # The server sums in float32: each of the numbers adds a rounding.
        slack = (model.width + 8) * float(numpy.finfo(numpy.float32).eps)
        while True:
            rows = _of(db, model, ask, _packed(query[None], model)[0], wanted)
            if not rows:
                return numpy.zeros(0, numpy.int64), numpy.zeros(0)
            numbers, owners, vectors, distances = zip(*rows, strict=True)
            squared = squared_between(query[None], _unpacked(vectors, model)[None], codes=codes)[0]
            best = numpy.lexsort((numbers, squared))[:k]
            last = float(distances[-1])
            bound = 2 * (last - slack) if codes else last * last * (1 - slack)
            if self.search != "exact" or len(rows) < wanted or squared[best[-1]] < bound:
                return numpy.array(owners, numpy.int64)[best], squared[best]
            wanted *= 8

    def _index(self, db: Database, model: Model) -> None:
        kind = _type(model)
        rule = f"be exact: an index takes at most {INDEXED[kind]:,} numbers of {model.kind}"
        require(model.width <= INDEXED[kind], "Gallery", "search", rule, f"approximate with {model.width:,}")
        operators = "halfvec_cosine_ops" if kind == "halfvec" else "vector_l2_ops"
        query = f"CREATE INDEX IF NOT EXISTS nearest_{model.id} ON {{}} USING hnsw (vector {operators})"
        db.execute(sql.SQL(cast(LiteralString, query)).format(_table(model)))

    # Writing

    def add_model(self, model: Model, *, current: bool) -> Model:
        def work(db: Database) -> Model:
            models = _models(db)
            found = next((each for each in models if each.fingerprint == model.fingerprint), None)
            if found is None:
                most = self.limits.models
                require(len(models) < most, "Gallery", "models", f"be at most {most}", len(models) + 1)
                found = replace(model, id=max((each.id for each in models), default=0) + 1)
                values = [getattr(found, name) for name in ("id", "name", "fingerprint", "width", "unit", "kind")]
                db.execute("INSERT INTO model VALUES (%s, %s, %s, %s, %s, %s, %s)", (*values, found.compatible_with))
                query = (
                    f"CREATE TABLE {{}} (id bigint PRIMARY KEY, identity bigint NOT NULL REFERENCES identity "
                    f"ON DELETE CASCADE, source text NOT NULL, vector {_type(found)}({found.width}) NOT NULL)"
                )
                db.execute(sql.SQL(cast(LiteralString, query)).format(_table(found)))
                db.execute(sql.SQL("CREATE INDEX ON {} (identity)").format(_table(found)))
                if self.search == "approximate":
                    self._index(db, found)
            elif model.compatible_with:
                values = model.compatible_with, found.id
                db.execute("UPDATE model SET compatible_with = %s WHERE id = %s", values)
                found = replace(found, compatible_with=model.compatible_with)
            if current:
                _set_state(db, "current", found.id)
            return found

        return self._within(work, write=True)

    def add(self, people: Sequence[Person], model: Model, *, replaces: Sequence[int] = ()) -> int:
        rows = [person.templates for person in people]
        whole = numpy.concatenate(rows) if rows else numpy.zeros((0, model.width), model.kind)
        sources = [source for person in people for source in person.sources]
        packed = _packed(whole, model)

        def work(db: Database) -> int:
            numbers = self._put_identities(db, people)
            owners = numpy.repeat(numbers, [len(each) for each in rows]).tolist()
            first = _state(db, "templates") + 1
            if replaces:
                query = "DELETE FROM {} WHERE identity = ANY(%s) RETURNING identity, id, source"
                gone = [row for older in _models(db) if older.id in replaces for row in _of(db, older, query, numbers)]
                _count(db, templates=-len(gone))
                new = zip(owners, range(first, first + len(whole)), sources, strict=True)
                passed = heirs_of_each(sorted(gone), new)
                self._contract(db, [number for _, number, _ in gone], passed)
            _set_state(db, "templates", first + len(whole) - 1)
            query = sql.SQL("COPY {} (id, identity, source, vector) FROM STDIN (FORMAT BINARY)").format(_table(model))
            with db.cursor() as cursor, cursor.copy(query) as copy:
                copy.set_types(["int8", "int8", "text", _type(model)])
                for row in zip(range(first, first + len(whole)), owners, sources, packed, strict=True):
                    copy.write_row(row)
            _count(db, templates=len(whole))
            each = dict.fromkeys(dict.fromkeys(person.name for person in people), 0)
            for other in _models(db):
                query = "SELECT identity, count(*) FROM {} WHERE identity = ANY(%s) GROUP BY identity"
                held = dict(_of(db, other, query, numbers))
                for person, number in zip(people, numbers, strict=True):
                    each[person.name] += held.pop(number, 0)
            require_quota(self.limits, each, _state(db, "held identities"), _state(db, "held templates"))
            return len(whole)

        return self._within(work, write=True)

    def _put_identities(self, db: Database, people: Sequence[Person]) -> list[int]:
        """The number of each identity; new ones are written."""
        names = list(dict.fromkeys(person.name for person in people))
        known = dict(db.execute("SELECT name, id FROM identity WHERE name = ANY(%s)", (names,)).fetchall())
        changed = [(each.metadata, known[each.name]) for each in people if each.name in known and each.metadata]
        if changed:
            db.cursor().executemany("UPDATE identity SET metadata = %s WHERE id = %s", changed)
        metadata = {person.name: person.metadata or "{}" for person in people}
        first = _state(db, "identities") + 1
        new = {name: first + place for place, name in enumerate(name for name in names if name not in known)}
        if new:
            with db.cursor() as cursor, cursor.copy("COPY identity FROM STDIN") as copy:
                for name, number in new.items():
                    copy.write_row((number, name, metadata[name]))
            _set_state(db, "identities", first + len(new) - 1)
            _count(db, identities=len(new))
        found = known | new
        return [found[person.name] for person in people]

    def assign(self, numbers: Sequence[int], name: str) -> int:
        def work(db: Database) -> int:
            before: dict[int, int] = {}
            for model in _models(db):
                before |= dict(_of(db, model, "SELECT id, identity FROM {} WHERE id = ANY(%s)", list(numbers)))
            require_templates(numbers, before)
            [owner] = self._put_identities(db, [Person(name, numpy.zeros((0, 1)), ())])
            left = set(before.values())
            # Copies have the templates under their old owners, where forgetting the new one would not find them.
            for number in left - {owner}:
                db.execute("INSERT INTO erasing VALUES (%s) ON CONFLICT DO NOTHING", (number,))
            for model in _models(db):
                _of(db, model, "UPDATE {} SET identity = %s WHERE id = ANY(%s) RETURNING id", owner, list(numbers))
            for model in _models(db):
                query = "SELECT DISTINCT identity FROM {} WHERE identity = ANY(%s)"
                left -= {old for (old,) in _of(db, model, query, list(left))}
            db.execute("DELETE FROM identity WHERE id = ANY(%s)", (list(left),))
            _count(db, identities=-len(left))
            return owner

        owner = self._within(work, write=True)
        self.settle()
        return owner

    # Erasing

    def remove(self, name: str, *, prove: bool = False) -> Erasure:
        def work(db: Database) -> tuple[int, int]:
            row = db.execute("SELECT id FROM identity WHERE name = %s", (name,)).fetchone()
            if row is None:
                refuse("forget", "identity", "be in the gallery", repr(name), error=Absent)
            gone = [
                number
                for model in _models(db)
                for (number,) in _of(db, model, "DELETE FROM {} WHERE identity = %s RETURNING id", row[0])
            ]
            db.execute("DELETE FROM identity WHERE id = %s", row)
            db.execute("INSERT INTO erasing VALUES (%s) ON CONFLICT DO NOTHING", row)
            _count(db, identities=-1, templates=-len(gone))
            self._contract(db, gone, {})
            return row[0], len(gone)

        number, count = self._within(work, write=True)
        copies = tuple(copy for copy, erased in self._settled() if erased == number)
        return Erasure(name, count, "delegated", copies, warnings=(*copy_notes(copies, name), DELEGATED))

    def retire(self, models: Sequence[int], *, heirs: Mapping[int, int] | None = None) -> int:
        def work(db: Database) -> int:
            gone = [
                number
                for model in _models(db)
                if model.id in models
                for (number,) in _of(db, model, "DELETE FROM {} RETURNING id")
            ]
            _count(db, templates=-len(gone))
            self._contract(db, gone, heirs or {})
            return len(gone)

        return self._within(work, write=True)

    def settle(self) -> bool:
        return all(copy.status != "pending" for copy, _ in self._settled())

    def _settled(self) -> list[tuple[CopyErased, int]]:
        """Erase from every dump what was forgotten; what a crash interrupted goes on here."""
        waiting = [number for (number,) in self._all("SELECT identity FROM erasing ORDER BY identity")]
        if not waiting:
            return []
        found = [
            (CopyErased(path, erased_from_dump(Path(path), number, origin=self.origin)), number)
            for (path,) in self._all("SELECT path FROM copy ORDER BY path")
            for number in waiting
        ]
        done = list(set(waiting) - {number for copy, number in found if copy.status == "pending"})
        self._within(lambda db: db.execute("DELETE FROM erasing WHERE identity = ANY(%s)", (done,)), write=True)
        return found

    def add_copy(self, path: Path, kind: Literal["backup", "dump"]) -> None:
        values = (str(path.resolve()),)
        self._within(lambda db: db.execute("INSERT INTO copy VALUES (%s) ON CONFLICT DO NOTHING", values), write=True)

    # Calibrations and corrections

    def calibrations(self) -> dict[tuple[int, str], dict[str, Any]]:
        rows = self._all("SELECT model, kind, facts FROM calibration LIMIT 1000")
        return {(model, kind): json.loads(facts) for model, kind, facts in rows}

    def set_calibration(self, model: int, kind: str, facts: dict[str, Any]) -> None:
        query = (
            "INSERT INTO calibration VALUES (%s, %s, %s) ON CONFLICT (model, kind) DO UPDATE SET facts = excluded.facts"
        )
        self._within(lambda db: db.execute(query, (model, kind, json.dumps(facts))), write=True)

    def corrections(self) -> tuple[Correction, ...]:
        return tuple(Correction(*row) for row in self._all("SELECT one, two, same FROM correction ORDER BY id"))

    def correct(self, corrections: Sequence[Correction]) -> None:
        self._within(lambda db: _put_corrections(db, corrections), write=True)

    def _contract(self, db: Database, gone: Sequence[int], heirs: Mapping[int, int]) -> None:
        """Keep what corrections say about the templates that stay, and about heirs of others."""
        before = [Correction(*row) for row in db.execute("SELECT one, two, same FROM correction ORDER BY id")]
        after = inherited(before, gone, heirs)
        if after != before:
            db.execute("DELETE FROM correction")
            _put_corrections(db, after)


class _Packed(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return bytes(obj)


class _Raw(Loader):
    format = Format.BINARY

    def load(self, data: Any) -> bytes:
        return bytes(data)


def _type(model: Model) -> str:
    return "halfvec" if model.kind == "int8" else "vector"


def _table(model: Model) -> sql.Identifier:
    return sql.Identifier(f"template_{model.id}")


def _packed(rows: Array, model: Model) -> list[bytes]:
    """Vectors as the server takes them."""
    dtype, made = (">f2", _Half) if model.kind == "int8" else (">f4", _Vector)
    head = numpy.frombuffer(model.width.to_bytes(2, "big") + b"\0\0", numpy.uint8)
    body = rows.astype(dtype).view(numpy.uint8)
    whole = numpy.concatenate([numpy.broadcast_to(head, (len(rows), 4)), body], axis=1)
    return [made(row.tobytes()) for row in whole]


def _unpacked(cells: Sequence[bytes], model: Model) -> Array:
    dtype = ">f2" if model.kind == "int8" else ">f4"
    whole = numpy.frombuffer(b"".join(cells), numpy.uint8).reshape(len(cells), -1)
    return numpy.ascontiguousarray(whole[:, 4:]).view(dtype).astype(model.kind)


def _of(db: Database, model: Model, query: LiteralString, *values: Any) -> list[Any]:
    """Rows of a query about the templates of a model."""
    return db.cursor(binary=True).execute(sql.SQL(query).format(_table(model)), values).fetchall()


def _models(db: Database) -> tuple[Model, ...]:
    query = "SELECT id, name, fingerprint, width, unit, kind, compatible_with FROM model ORDER BY id"
    return tuple(Model(*row) for row in db.execute(query))


def _state(db: Database, name: str) -> int:
    row = db.execute("SELECT value FROM state WHERE name = %s", (name,)).fetchone()
    return row[0] if row else 0


def _set_state(db: Database, name: str, value: int) -> None:
    db.execute("UPDATE state SET value = %s WHERE name = %s", (value, name))


def _count(db: Database, *, identities: int = 0, templates: int = 0) -> None:
    for name, change in (("held identities", identities), ("held templates", templates)):
        if change:
            db.execute("UPDATE state SET value = value + %s WHERE name = %s", (change, name))


def _put_corrections(db: Database, corrections: Sequence[Correction]) -> None:
    rows = [(each.one, each.two, each.same) for each in corrections]
    db.cursor().executemany("INSERT INTO correction(one, two, same) VALUES (%s, %s, %s)", rows)


def _line(error: Exception) -> str:
    return str(error).strip().splitlines()[0].rstrip(".") if str(error).strip() else type(error).__name__
