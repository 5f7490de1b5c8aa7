"""A store in Milvus: a server, or a file of Milvus Lite. The engine searches, exactly or by an HNSW index.

A gallery is one collection of identities and one of the templates of each model, named by the fragment of the URL:
milvus://user:password@host:19530/database#people, or milvus:///people.db#people for a file.

Milvus has no transactions. Here one row, the commit record, makes a transaction: new identities and templates get
numbers above those of the last record, which readers do not look at, and become visible when the next record raises
these numbers. Changes of rows that are visible already stand in the record and are made after it; whoever opens the
gallery makes them again if a crash came between. All reads use Milvus' consistency level Strong. One process may write
at a time, others read: Milvus has no locks.
"""

import hashlib
import json
import logging
import threading
import time
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, TypeVar
from urllib.parse import unquote, urlsplit

import numpy
from pymilvus import DataType, MilvusClient, MilvusException

from likewise.checks import refuse, require
from likewise.gallery.dumps import copy_notes, erased_from_dump
from likewise.gallery.search import EXTRA, Matrix, squared_between
from likewise.gallery.store import (
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

VERSION = 1  # of the collections
OPENING, PATIENCE = 5.0, 60.0  # seconds that the first connection, and a later call, is tried
PAUSE = 0.2  # seconds between two attempts
TEXT = 65_535  # bytes of a text in Milvus
PARTS = 4096  # texts of one commit record, at most
BYTES = 1 << 24  # of vectors in one message
IDS = 1000  # numbers listed in one filter
WINDOW = 8192  # rows of one answer
MOST = 16_384  # rows that a search finds
FLUSH = 10_000  # rows after which Milvus Lite writes a segment: it searches what is in its log one by one
LISTS, NEIGHBOURS = 200, 16  # of an HNSW index: candidates while it is built, and links of a row
UNLOADED = 101  # Milvus' code of a collection that is not in memory
NEVER = frozenset({1100, 1101, 1102, 1103})  # Milvus' codes of wrong parameters: no reason to try again
DELEGATED = (
    "Milvus keeps deleted rows in its log, segments and object storage until it compacts them, and Milvus Lite in its "
    "files: erasing them is left to it."
)
logging.getLogger("pymilvus.decorators").setLevel(logging.CRITICAL)  # errors are raised, or the call is made again
Record = dict[str, Any]
Found = TypeVar("Found")


@dataclass
class Head:
    """The last commit record. identities, templates: the greatest visible numbers; held: how many there are.

    changes: of visible rows, to be made after the commit: ["delete", collection, numbers], ["empty", model],
    ["owner", model, numbers, identity], ["metadata", number, name, text].
    """

    version: int = VERSION
    number: int = 0
    origin: int = 0
    search: Search = "exact"
    current: int = 0
    identities: int = 0
    templates: int = 0
    held: list[int] = field(default_factory=lambda: [0, 0])
    models: list[dict[str, Any]] = field(default_factory=list)
    calibrations: list[list[Any]] = field(default_factory=list)
    corrections: list[list[Any]] = field(default_factory=list)
    copies: list[str] = field(default_factory=list)
    erasing: list[int] = field(default_factory=list)
    changes: list[list[Any]] = field(default_factory=list)

    def catalogue(self) -> tuple[Model, ...]:
        """The models."""
        return tuple(map(_model, self.models))


class MilvusStore:
    """A gallery in collections of Milvus; see `likewise.gallery.store.Store` for its methods."""

    erases: Literal["proven", "delegated"] = "delegated"

    def __init__(self, url: str, *, limits: Limits | None = None, search: Search = "exact") -> None:
        limits = limits or Limits()
        self.limits = replace(limits, metadata=min(limits.metadata, TEXT), top=min(limits.top, MOST - EXTRA))
        parts = urlsplit(url)
        self.name = require_collection(parts.fragment or "likewise")
        self.file = None if parts.hostname else Path(unquote(parts.path).removeprefix("/"))
        if self.file is not None:
            rule = "name a server, milvus://host:19530, or a file that ends in .db, milvus:///people.db"
            require(self.file.suffix == ".db", "Gallery.open", "url", rule, repr(str(self.file)))
        self.place = f"{self.file or parts.netloc.rpartition('@')[2]}{'' if self.file else parts.path}#{self.name}"
        self._parts = parts
        self._lock = threading.RLock()
        self._client: MilvusClient | None = None
        self._seen = Head()
        self._pinned = False  # inside of a snapshot
        self._clean = False  # nothing lies above the visible numbers
        self._unflushed = 0
        self._patience = OPENING
        try:
            self._client = self._connected()
            self._prepare(search)
            self.settle()
        except BaseException:
            self.close()
            raise
        self._patience = PATIENCE

    # Connections

    def _connected(self) -> MilvusClient:
        if self.file is not None:
            return _lite(self.file)
        parts = self._parts
        secure = "https" if parts.scheme == "milvus+https" else "http"
        try:
            return MilvusClient(
                f"{secure}://{parts.hostname}:{parts.port or 19530}",
                user=unquote(parts.username or ""),
                password=unquote(parts.password or ""),
                db_name=parts.path.strip("/"),
                timeout=OPENING,
            )
        except MilvusException as error:
            raise OSError(f"Gallery: {self.place}: {_line(error)}.") from None

    def _call(self, work: Callable[[MilvusClient], Found]) -> Found:
        """Ask the engine; while it is starting again, or loads its collections after that, once more."""
        assert self._client is not None
        deadline = time.monotonic() + self._patience
        while True:
            try:
                return work(self._client)
            except MilvusException as error:
                if error.code in NEVER or error.is_input_error:
                    refuse("Gallery", "url", "be a whole gallery", f"{_line(error)}, in {self.place}", error=Damaged)
                if error.code == UNLOADED and time.monotonic() <= deadline:
                    self._load()
                    continue
                if time.monotonic() > deadline:
                    raise OSError(f"Gallery: {self.place}: {_line(error)}.") from None
                time.sleep(PAUSE)

    def _load(self) -> None:
        """Load the collections: Milvus Lite has none in memory after a start, and a server may release them."""
        assert self._client is not None
        for table in (self.name, *(self._table(model.id) for model in self._seen.catalogue())):
            with suppress(MilvusException):  # dropped meanwhile
                self._client.load_collection(table, timeout=self._patience)

    def close(self) -> None:
        with self._lock:
            if self._client is None:
                return
            if self.file is not None:
                _release(self.file)
            else:
                self._client.close()
            self._client = None

    # Collections and rows

    def _prepare(self, search: Search) -> None:
        """Make the collection of identities, if it is not there."""
        if not self._call(lambda client: client.has_collection(self.name, timeout=self._patience)):
            self._create(self.name, {"code": DataType.INT64, "name": DataType.VARCHAR, "text": DataType.VARCHAR}, 2)
        head = self._read_head()
        if head.number == 0:
            with self._writing() as head:
                head.origin, head.search = new_origin(), search
        rule = f"be a gallery of version {VERSION}"
        require(head.version == VERSION, "Gallery.open", "url", rule, f"{head.version}, in {self.place}")
        hint = "A gallery in Milvus has one index: move it to another by dump and load."
        require(head.search == search, "Gallery.open", "search", f"be {head.search}, as it was made", search, hint)
        self.search: Search = head.search
        self.origin = head.origin
        if head.changes:
            with self._lock:
                self._finish(head)

    def _create(self, name: str, columns: Mapping[str, DataType], width: int, *, codes: bool = False) -> None:
        """A collection with an index, loaded. Codes are compared by their angle, which Milvus calls COSINE."""
        schema = MilvusClient.create_schema(auto_id=False, enable_dynamic_field=False)
        schema.add_field("id", DataType.INT64, is_primary=True)
        for each, kind in columns.items():
            schema.add_field(each, kind, **({"max_length": TEXT} if kind == DataType.VARCHAR else {}))
        schema.add_field("vector", DataType.FLOAT_VECTOR, dim=width)
        graph = self._seen.search == "approximate" and name != self.name
        index = MilvusClient.prepare_index_params()
        index.add_index(
            "vector",
            index_type="HNSW" if graph else "FLAT",
            metric_type="COSINE" if codes else "L2",
            params={"M": NEIGHBOURS, "efConstruction": LISTS} if graph else {},
        )

        def work(client: MilvusClient) -> None:
            client.create_collection(name, schema=schema, index_params=index, consistency_level="Strong", num_shards=1)

        self._call(work)

    def _create_templates(self, model: Model) -> None:
        columns = {"identity": DataType.INT64, "source": DataType.VARCHAR}
        self._create(self._table(model.id), columns, model.width, codes=model.kind == "int8")

    def _table(self, model: int) -> str:
        return f"{self.name}_{model}"

    def _query(self, table: str, condition: str, columns: Sequence[str]) -> list[Record]:
        """Rows by number. Conditions are built from integers only."""

        def work(client: MilvusClient) -> list[Record]:
            return client.query(
                table,
                filter=condition,
                output_fields=["id", *columns],
                limit=MOST,
                consistency_level="Strong",
                timeout=self._patience,
            )

        return sorted(map(dict, self._call(work)), key=lambda row: row["id"])

    def _listed(
        self, table: str, column: str, numbers: Sequence[int], columns: Sequence[str], *, most: int
    ) -> list[Record]:
        """Visible rows where a column is one of some numbers."""
        found = []
        for start in range(0, len(numbers), IDS):
            some = list(map(int, numbers[start : start + IDS]))
            found += self._query(table, f"{column} in {some} and id > 0 and id <= {most}", columns)
        return found

    def _windows(self, table: str, most: int, columns: Sequence[str], size: int = WINDOW) -> Iterator[list[Record]]:
        """All visible rows, by number."""
        for start in range(0, most, size):
            rows = self._query(table, f"id > {start} and id <= {min(start + size, most)}", columns)
            if rows:
                yield rows

    def _insert(self, table: str, rows: Sequence[Record], size: int = 2) -> None:
        step = _rows_of(size)
        for start in range(0, len(rows), step):
            part = list(rows[start : start + step])
            self._call(lambda client, part=part: client.insert(table, part, timeout=self._patience))

    def _delete(self, table: str, numbers: Sequence[int]) -> None:
        for start in range(0, len(numbers), IDS):
            part = list(map(int, numbers[start : start + IDS]))
            self._call(lambda client, part=part: client.delete(table, ids=part, timeout=self._patience))

    # The commit record

    def _read_head(self) -> Head:
        """The last commit record: the row below 0 with the least number that says how many parts it has."""
        if self._pinned:
            return self._seen
        while True:
            rows = self._query(self.name, "id < 0 and code > 0", ["code", "text"])
            if not rows:
                return Head()
            first, parts, text = rows[0]["id"], rows[0]["code"], rows[0]["text"]
            if -(first + 1) // PARTS == self._seen.number:
                return self._seen
            if parts > 1:
                others = [first - part for part in range(1, parts)]
                pieces = self._query(self.name, f"id in {others}", ["text"])
                if len(pieces) < len(others):  # a writer has replaced it meanwhile
                    continue
                text += "".join(row["text"] for row in reversed(pieces))
            try:
                self._seen = Head(**json.loads(text))
            except (TypeError, ValueError):
                refuse("Gallery.open", "url", "be a whole gallery", f"another collection, {self.place}", error=Damaged)
            return self._seen

    @contextmanager
    def _writing(self) -> Generator[Head]:
        """Change a copy of the record, which is written at the end, and then make its changes of visible rows."""
        with self._lock:
            head = self._read_head()
            if not self._clean:
                self._sweep(head)
            # By way of JSON, so that what is in memory is what others read.
            fresh = replace(Head(**json.loads(json.dumps(asdict(head)))), number=head.number + 1, changes=[])
            self._clean = False
            yield fresh
            self._commit(fresh)
            self._clean = True
            if fresh.changes:
                self._finish(fresh)

    def _commit(self, head: Head) -> None:
        text = json.dumps(asdict(head))  # ASCII
        pieces = [text[start : start + TEXT] for start in range(0, len(text), TEXT)]
        require(len(pieces) <= PARTS, "Gallery", "catalogue", f"have at most {PARTS:,} parts", len(pieces))
        first = -head.number * PARTS - 1
        rows = [
            {"id": first - part, "code": 0 if part else len(pieces), "name": "", "text": piece, "vector": [0.0, 0.0]}
            for part, piece in enumerate(pieces)
        ]
        self._insert(self.name, rows[1:], TEXT // 4)
        self._insert(self.name, rows[:1])
        older = [row["id"] for row in self._query(self.name, f"id < 0 and id > {first}", [])]
        self._delete(self.name, older)
        self._seen = head

    def _finish(self, head: Head) -> None:
        """Make the record's changes of visible rows, each of which may be made twice; then say that they are made."""
        models = {model.id: model for model in head.catalogue()}
        for kind, *what in head.changes:
            if kind == "delete":
                self._delete(*what)
            elif kind == "empty":
                name = self._table(what[0])
                self._call(lambda client, name=name: client.drop_collection(name, timeout=self._patience))
                self._create_templates(models[what[0]])
            elif kind == "owner":
                self._give(models[what[0]], what[1], what[2])
            elif kind == "metadata":
                number, name, text = what
                row = {"id": number, "code": _code(name), "name": name, "text": text, "vector": [0.0, 0.0]}
                self._call(lambda client, row=row: client.upsert(self.name, [row], timeout=self._patience))
        self._commit(replace(head, number=head.number + 1, changes=[]))

    def _give(self, model: Model, numbers: Sequence[int], owner: int) -> None:
        table, step = self._table(model.id), _rows_of(4 * model.width)
        for start in range(0, len(numbers), step):
            rows = self._query(table, f"id in {list(numbers[start : start + step])}", ["source", "vector"])
            rows = [{**row, "identity": owner} for row in rows]
            self._call(lambda client, rows=rows: client.upsert(table, rows, timeout=self._patience))

    def _sweep(self, head: Head) -> None:
        """Delete what a writer that ended in the middle has left above the visible numbers."""
        tables = [(self.name, head.identities), *((self._table(each.id), head.templates) for each in head.catalogue())]
        for table, most in tables:
            while rows := self._query(table, f"id > {most}", []):
                self._delete(table, [row["id"] for row in rows])

    @contextmanager
    def snapshot(self) -> Generator[None]:
        """What is added meanwhile is not seen; what is removed is missing."""
        with self._lock:
            self._read_head()
            self._pinned = True
            try:
                yield
            finally:
                self._pinned = False

    # Reading

    def _head(self) -> Head:
        with self._lock:
            return self._read_head()

    def models(self) -> tuple[Model, ...]:
        return self._head().catalogue()

    def current(self) -> Model | None:
        head = self._head()
        return next((model for model in head.catalogue() if model.id == head.current), None)

    def count(self) -> tuple[int, int]:
        identities, templates = self._head().held
        return identities, templates

    def names(self, numbers: Sequence[int] | None = None) -> dict[int, str]:
        most = self._head().identities
        if numbers is None:
            rows = [row for some in self._windows(self.name, most, ["name"]) for row in some]
            rows.sort(key=lambda row: row["name"])
        else:
            rows = self._listed(self.name, "id", sorted({*map(int, numbers)}), ["name"], most=most)
        return {row["id"]: row["name"] for row in rows}

    def number(self, name: str) -> int:
        return self._numbers([name], self._head()).get(name, 0)

    def _numbers(self, names: Sequence[str], head: Head) -> dict[str, int]:
        """The numbers of those identities that are there, found by a hash of the name."""
        rows = self._listed(self.name, "code", [_code(name) for name in names], ["name"], most=head.identities)
        wanted = set(names)
        return {row["name"]: row["id"] for row in rows if row["name"] in wanted}

    def metadata(self, number: int) -> str:
        rows = self._listed(self.name, "id", [number], ["text"], most=self._head().identities)
        return rows[0]["text"] if rows else "{}"

    def templates(self, number: int) -> tuple[Templates, ...]:
        head, found = self._head(), []
        for model in head.catalogue():
            columns = ["source", "vector"]
            rows = self._listed(self._table(model.id), "identity", [number], columns, most=head.templates)
            if rows:
                rows = rows[: self.limits.templates_each]
                sources, numbers = tuple(row["source"] for row in rows), tuple(row["id"] for row in rows)
                found.append(Templates(model, _vectors(rows, model), sources, numbers))
        return tuple(found)

    def waiting(self, models: Sequence[int]) -> tuple[str, ...]:
        head = self._head()
        tables = [self._table(model.id) for model in head.catalogue() if model.id in models]
        found = {
            row["identity"]
            for table in tables
            for rows in self._windows(table, head.templates, ["identity"])
            for row in rows
        }
        return tuple(sorted(self.names(sorted(found)).values())) if found else ()

    def rows(self, model: Model) -> Iterator[tuple[Array, Array, Array]]:
        head, size = self._head(), min(WINDOW, _rows_of(4 * model.width))
        for rows in self._windows(self._table(model.id), head.templates, ["identity", "vector"], size):
            owners, numbers = ([row[name] for row in rows] for name in ("identity", "id"))
            yield _vectors(rows, model), numpy.array(owners, numpy.int64), numpy.array(numbers, numpy.int64)

    # Search

    def nearest(self, queries: Array, model: Model, *, k: int) -> Hits:
        owners = numpy.zeros((len(queries), k), numpy.int64)
        squared = numpy.full((len(queries), k), numpy.inf)
        most, left, wanted = self._head().templates, numpy.arange(len(queries)), k + EXTRA
        while len(left) and most:
            if wanted > MOST:
                self._scan(queries, left, model, owners, squared)
                break
            late = []
            step = max(1, _rows_of(4 * model.width) // wanted)
            for start in range(0, len(left), step):
                part = left[start : start + step]
                for row, hits in zip(part.tolist(), self._search(queries[part], model, wanted, most), strict=True):
                    if not self._settled_hits(queries[row], model, hits, wanted, owners[row], squared[row]):
                        late.append(row)
            left, wanted = numpy.array(late, numpy.int64), wanted * 8
        return Hits(owners, squared)

    def _search(self, queries: Array, model: Model, wanted: int, most: int) -> list[list[Record]]:
        metric = "COSINE" if model.kind == "int8" else "L2"
        params = {"ef": min(32_768, max(LISTS, 2 * wanted))} if self.search == "approximate" else {}

        def work(client: MilvusClient) -> list[list[Record]]:
            return client.search(
                self._table(model.id),
                [list(map(float, query)) for query in queries],
                filter=f"id > 0 and id <= {most}",
                limit=wanted,
                anns_field="vector",
                output_fields=["identity", "vector"],
                search_params={"metric_type": metric, "params": params},
                consistency_level="Strong",
                timeout=self._patience,
            )

        return self._call(work)

    def _settled_hits(
        self, query: Array, model: Model, hits: Sequence[Record], wanted: int, owners: Array, squared: Array
    ) -> bool:
        """Measure the engine's candidates in float64; whether a bound on all others proves them the nearest."""
        if not hits:
            return True
        codes, k = model.kind == "int8", len(owners)
        rows = [dict(hit["entity"]) for hit in hits]
        numbers, holders = numpy.array([hit["id"] for hit in hits]), numpy.array([row["identity"] for row in rows])
        exact = squared_between(query[None], _vectors(rows, model)[None], codes=codes)[0]
        best = numpy.lexsort((numbers, exact))[:k]
        owners[: len(best)], squared[: len(best)] = holders[best], exact[best]
        if self.search != "exact" or len(hits) < wanted:
            return True
        # The engine sums in float32, each of the numbers adds a rounding of |x| |y|, and |y| <= |x| + |x - y|.
        slack, last = (model.width + 8) * float(numpy.finfo(numpy.float32).eps), float(hits[-1]["distance"])
        if codes:
            return bool(exact[best[-1]] < 2 - 2 * last - 2 * slack)
        length = float(numpy.linalg.norm(query.astype(numpy.float64)))
        return bool(exact[best[-1]] < last - slack * (length**2 + (length + max(last, 0.0) ** 0.5) ** 2))

    def _scan(self, queries: Array, left: Array, model: Model, owners: Array, squared: Array) -> None:
        """Answer queries by reading every template: there are more ties than a search of Milvus finds."""
        matrix, start = Matrix(model.width, codes=model.kind == "int8", unit=model.unit), 0
        for rows, who, _ in self.rows(model):
            matrix.put(start, rows, who)
            start += len(rows)
        found = matrix.nearest(queries[left], k=owners.shape[1])
        owners[left] = numpy.where(found.rows < 0, 0, matrix.owners[found.rows] if matrix.count else 0)
        squared[left] = found.squared

    # Writing

    def add_model(self, model: Model, *, current: bool) -> Model:
        with self._writing() as head:
            models = head.catalogue()
            found = next((each for each in models if each.fingerprint == model.fingerprint), None)
            if found is None:
                most = self.limits.models
                require(len(models) < most, "Gallery", "models", f"be at most {most}", len(models) + 1)
                found = replace(model, id=max((each.id for each in models), default=0) + 1)
                table = self._table(found.id)
                if self._call(lambda client: client.has_collection(table, timeout=self._patience)):  # a crash left it
                    self._call(lambda client: client.drop_collection(table, timeout=self._patience))
                self._create_templates(found)
                head.models.append(_model_facts(found))
            elif model.compatible_with:
                found = replace(found, compatible_with=model.compatible_with)
                head.models = [_model_facts(found) if each["id"] == found.id else each for each in head.models]
            if current:
                head.current = found.id
        return found

    def add(self, people: Sequence[Person], model: Model, *, replaces: Sequence[int] = ()) -> int:
        with self._writing() as head:
            numbers = self._put_identities(people, head)
            known = sorted({number for number in numbers if number <= self._seen.identities})
            held = dict.fromkeys(numbers, 0)
            gone: list[tuple[int, int, str]] = []
            for each in head.catalogue():
                table, leaving = self._table(each.id), []
                for row in self._listed(table, "identity", known, ["identity", "source"], most=self._seen.templates):
                    if each.id in replaces:
                        leaving.append((row["identity"], row["id"], row["source"]))
                    else:
                        held[row["identity"]] += 1
                if leaving:
                    head.changes.append(["delete", table, [number for _, number, _ in leaving]])
                    gone += leaving
            rows: list[Record] = []
            new: list[tuple[int, int, str]] = []
            for person, number in zip(people, numbers, strict=True):
                held[number] += len(person.templates)
                for vector, source in zip(person.templates.astype(numpy.float32), person.sources, strict=True):
                    head.templates += 1
                    new.append((number, head.templates, source))
                    row = {"id": head.templates, "identity": number, "source": source, "vector": vector}
                    rows.append(row)
            head.held[1] += len(rows) - len(gone)
            names = {number: person.name for person, number in zip(people, numbers, strict=True)}
            require_quota(self.limits, {names[number]: count for number, count in held.items()}, *head.held)
            self._contract(head, [number for _, number, _ in gone], heirs_of_each(sorted(gone), new))
            self._insert(self.name, self._new_identities(people, numbers))
            self._insert(self._table(model.id), rows, 4 * model.width)
            self._flush_lite(model, len(rows))
        return len(rows)

    def _put_identities(self, people: Sequence[Person], head: Head) -> list[int]:
        """The number of each identity: new ones get the next; of others the metadata changes after the commit."""
        found = self._numbers(list(dict.fromkeys(person.name for person in people)), self._seen)
        for person in people:
            if person.name not in found:
                head.identities += 1
                head.held[0] += 1
                found[person.name] = head.identities
            elif person.metadata is not None and found[person.name] <= self._seen.identities:
                head.changes.append(["metadata", found[person.name], person.name, person.metadata])
        return [found[person.name] for person in people]

    def _new_identities(self, people: Sequence[Person], numbers: Sequence[int]) -> list[Record]:
        new: dict[int, Record] = {}
        for person, number in zip(people, numbers, strict=True):
            if number > self._seen.identities:
                row = {"id": number, "code": _code(person.name), "name": person.name, "vector": [0.0, 0.0]}
                text = person.metadata or new.get(number, {}).get("text", "{}")
                new[number] = {**row, "text": text}
        return list(new.values())

    def _flush_lite(self, model: Model, count: int) -> None:
        self._unflushed += count
        if self.file is not None and self._unflushed >= FLUSH:
            self._call(lambda client: client.flush(self._table(model.id)))
            self._unflushed = 0

    def assign(self, numbers: Sequence[int], name: str) -> int:
        empty = Person(name, numpy.zeros((0, 1)), ())
        with self._writing() as head:
            left: set[int] = set()
            found: dict[int, list[int]] = {}
            for model in head.catalogue():
                rows = self._listed(
                    self._table(model.id), "id", sorted(set(numbers)), ["identity"], most=head.templates
                )
                left |= {row["identity"] for row in rows}
                if rows:
                    found[model.id] = [row["id"] for row in rows]
            require_templates(numbers, {number for each in found.values() for number in each})
            [owner] = self._put_identities([empty], head)
            head.changes += [["owner", model, each, owner] for model, each in found.items()]
            left.discard(owner)
            keep, moved = set(), set(numbers)
            for model in head.catalogue():
                table = self._table(model.id)
                rows = self._listed(table, "identity", sorted(left), ["identity"], most=head.templates)
                keep |= {row["identity"] for row in rows if row["id"] not in moved}
            if left - keep:
                head.changes.append(["delete", self.name, sorted(left - keep)])
            head.held[0] -= len(left - keep)
            # Copies have the templates under their old owners, where forgetting the new one would not find them.
            head.erasing = sorted({*head.erasing, *left})
            self._insert(self.name, self._new_identities([empty], [owner]))
        self.settle()
        return owner

    # Erasing

    def remove(self, name: str, *, prove: bool = False) -> Erasure:
        with self._writing() as head:
            number = self._numbers([name], self._seen).get(name, 0)
            if not number:
                refuse("forget", "identity", "be in the gallery", repr(name))
            gone: list[int] = []
            for model in head.catalogue():
                rows = self._listed(self._table(model.id), "identity", [number], [], most=head.templates)
                if rows:
                    head.changes.append(["delete", self._table(model.id), [row["id"] for row in rows]])
                    gone += [row["id"] for row in rows]
            head.changes.append(["delete", self.name, [number]])
            head.held = [head.held[0] - 1, head.held[1] - len(gone)]
            head.erasing = sorted({*head.erasing, number})
            self._contract(head, gone, {})
        copies = tuple(copy for copy, erased in self._settled() if erased == number)
        return Erasure(name, len(gone), "delegated", copies, warnings=(*copy_notes(copies, name), DELEGATED))

    def retire(self, models: Sequence[int], *, heirs: Mapping[int, int] | None = None) -> int:
        with self._writing() as head:
            gone: list[int] = []
            for model in head.catalogue():
                if model.id in models:
                    windows = self._windows(self._table(model.id), head.templates, [])
                    gone += [row["id"] for rows in windows for row in rows]
                    head.changes.append(["empty", model.id])
            head.held[1] -= len(gone)
            self._contract(head, gone, heirs or {})
        return len(gone)

    def settle(self) -> bool:
        return all(copy.status != "pending" for copy, _ in self._settled())

    def _settled(self) -> list[tuple[CopyErased, int]]:
        """Erase from every dump what was forgotten; what a crash interrupted goes on here."""
        head = self._head()
        if not head.erasing:
            return []
        found = [
            (CopyErased(path, erased_from_dump(Path(path), number, origin=self.origin)), number)
            for path in head.copies
            for number in head.erasing
        ]
        done = set(head.erasing) - {number for copy, number in found if copy.status == "pending"}
        if done:
            with self._writing() as fresh:
                fresh.erasing = sorted({*fresh.erasing} - done)
        return found

    def add_copy(self, path: Path, kind: Literal["backup", "dump"]) -> None:
        with self._writing() as head:
            head.copies = sorted({*head.copies, str(path.resolve())})

    # Calibrations and corrections

    def calibrations(self) -> dict[tuple[int, str], dict[str, Any]]:
        return {(model, kind): facts for model, kind, facts in self._head().calibrations}

    def set_calibration(self, model: int, kind: str, facts: dict[str, Any]) -> None:
        with self._writing() as head:
            others = [each for each in head.calibrations if each[:2] != [model, kind]]
            head.calibrations = [*others, [model, kind, facts]]

    def corrections(self) -> tuple[Correction, ...]:
        return tuple(Correction(*each) for each in self._head().corrections)

    def correct(self, corrections: Sequence[Correction]) -> None:
        with self._writing() as head:
            head.corrections += [[each.one, each.two, each.same] for each in corrections]

    def _contract(self, head: Head, gone: Sequence[int], heirs: Mapping[int, int]) -> None:
        """Keep what corrections say about the templates that stay, and about heirs of others."""
        after = inherited([Correction(*each) for each in head.corrections], gone, heirs)
        head.corrections = [[each.one, each.two, each.same] for each in after]


# Milvus Lite runs a server in this process for each file, on a port of the loopback address.
_OPENED: dict[Path, int] = {}
_OPENING = threading.Lock()


def _lite(path: Path) -> MilvusClient:
    path = path.resolve()
    with _OPENING:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        try:
            client = MilvusClient(str(path))
        except (MilvusException, OSError, ValueError) as error:
            hint = "One process at a time opens a file of Milvus Lite."
            refuse("Gallery.open", "url", "be a file of Milvus Lite", f"{path}: {_line(error)}", hint)
        _OPENED[path] = _OPENED.get(path, 0) + 1
    return client


def _release(path: Path) -> None:
    """Stop the server of a file with its last gallery, so that another process may open it."""
    from milvus_lite import server_manager_instance

    path = path.resolve()
    with _OPENING:
        _OPENED[path] -= 1
        if not _OPENED[path]:
            server_manager_instance.release_server(str(path))


def _model_facts(model: Model) -> Record:
    return {**asdict(model), "fingerprint": model.fingerprint.hex()}


def _model(facts: Record) -> Model:
    facts = {**facts, "fingerprint": bytes.fromhex(facts["fingerprint"])}
    return Model(**facts)


def _vectors(rows: Sequence[Record], model: Model) -> Array:
    found = numpy.array([row["vector"] for row in rows], numpy.float32)
    return found.astype(model.kind).reshape(len(rows), model.width)


def _rows_of(size: int) -> int:
    """Rows of so many bytes in one message."""
    return max(1, min(WINDOW, BYTES // size))


def _code(name: str) -> int:
    """A number by which a name is found: filters are built from integers only."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def _line(error: BaseException) -> str:
    text = error.message if isinstance(error, MilvusException) else str(error)
    return str(text).strip().splitlines()[0].rstrip(".")[:200] if str(text).strip() else type(error).__name__
