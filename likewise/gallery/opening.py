"""From a URL to the store behind it; what an engine needs is imported when it is asked for."""

from pathlib import Path

from likewise.checks import require, require_choice, require_package
from likewise.gallery.sqlite import SqliteStore
from likewise.gallery.store import Limits, Search, Store


def open_store(url: Path | str, limits: Limits | None = None, search: Search = "exact") -> Store:
    """The store at a URL: a path, sqlite:///path, postgresql://host/database#name or milvus://host:19530#name."""
    where, text = "Gallery.open", str(url)
    require_choice(where, "search", search, ("exact", "approximate"))
    scheme, found, rest = text.partition("://")
    if scheme in ("postgresql", "postgres") and found:
        require_package(where, "psycopg")
        from likewise.gallery.postgres import PostgresStore

        return PostgresStore(text, limits=limits, search=search)
    if scheme in ("milvus", "milvus+https") and found:
        require_package(where, "pymilvus")
        from likewise.gallery.milvus import MilvusStore

        return MilvusStore(text, limits=limits, search=search)
    require(search == "exact", where, "search", "be exact in the embedded store", search)
    if not found:
        return SqliteStore(Path(url), limits=limits)
    require(scheme == "sqlite", where, "url", "be a path, sqlite:///, postgresql:// or milvus://", repr(scheme))
    return SqliteStore(Path(rest.removeprefix("/") if not rest.startswith("//") else rest[1:]), limits=limits)
