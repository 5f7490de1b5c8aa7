"""The service of a gallery as an ASGI application: enrol, identify, verify, clusters, calibration, versions, forget.

What comes from outside is bytes of one picture, or JSON with vectors and names; neither is ever a path. Everything that
touches the gallery runs in two threads, one that searches and one for all the rest, so that the loop answers at once.
"""

import asyncio
import base64
import binascii
import io
import json
import os
import time
import warnings
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, MutableMapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, TypeVar

import numpy
from fastapi import FastAPI, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import HTMLResponse, JSONResponse
from PIL import Image
from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError

import likewise
from likewise.data import Unreadable
from likewise.data.pictures import FORMATS
from likewise.files import finite
from likewise.gallery import Gallery
from likewise.gallery.grouping import Grouping
from likewise.gallery.store import NAME, Absent
from likewise.page import render
from likewise.reports.gallery import curve_figure
from likewise.review.rendering import policy
from likewise.serving import HEADERS, NO_PAGE, OWNER, App
from likewise.web.searching import Searcher

BODY = 20_000_000  # bytes of a request: a picture of a telephone
PIXELS = 25_000_000  # of a picture, 75 MB decoded
PROBES = 256  # vectors of one request
SHOWN = 500  # identities or groups of one answer
BURST = 2.0  # seconds of requests that may come at once
KINDS = ("image/jpeg", "image/png", "image/webp", "image/gif", "image/bmp", "image/tiff", "application/octet-stream")
Found = TypeVar("Found")
Array = numpy.ndarray
Name = Annotated[str, Query(min_length=1, max_length=NAME, description="An identity.")]
Top = Annotated[int, Query(ge=1, le=50, description="Identities to list.")]


class Listed(BaseModel):
    """Vectors as lists of numbers."""

    model_config = ConfigDict(extra="forbid")
    vectors: list[list[float]] = Field(min_length=1, max_length=PROBES)

    def rows(self) -> Array:
        """The vectors, one in each row."""
        if len({len(row) for row in self.vectors}) != 1:
            raise ValueError("vectors must have the same length")
        return numpy.array(self.vectors, numpy.float64)


class Packed(BaseModel):
    """Vectors as little-endian float32 numbers in base64, row after row: a third of the bytes of a list."""

    model_config = ConfigDict(extra="forbid")
    float32: str = Field(min_length=1, max_length=BODY, json_schema_extra={"contentEncoding": "base64"})
    width: int = Field(ge=1, le=1 << 16)

    def rows(self) -> Array:
        """The vectors, one in each row."""
        try:
            data = base64.b64decode(self.float32, validate=True)
        except binascii.Error as error:
            raise ValueError(f"float32 must be base64; {error}") from None
        rows, left = divmod(len(data), 4 * self.width)
        if left or not 1 <= rows <= PROBES:
            raise ValueError(f"float32 must hold 1 to {PROBES} vectors of {self.width} numbers; got {len(data)} bytes")
        return numpy.frombuffer(data, "<f4").reshape(rows, self.width).astype(numpy.float64)


VECTORS: TypeAdapter[Listed | Packed] = TypeAdapter(Listed | Packed)


class Chosen(BaseModel):
    """Templates by their numbers, of which something is said."""

    templates: list[Annotated[int, Field(ge=0, lt=1 << 62)]] = Field(min_length=1, max_length=10_000)


class Named(Chosen):
    """Templates, and who they are of."""

    identity: str = Field(min_length=1, max_length=NAME)


class Rate:
    """Requests a second of each client: a bucket that fills up to two seconds' worth."""

    def __init__(self, a_second: float) -> None:
        self._a_second = a_second
        self._buckets: dict[str, tuple[float, float]] = {}

    def take(self, client: str) -> float:
        """Take one; 0 if there was one, else the seconds until there is."""
        now = time.monotonic()
        most = max(1.0, BURST * self._a_second)
        held, then = self._buckets.get(client, (most, now))
        held = min(most, held + (now - then) * self._a_second)
        self._buckets[client] = (held - (held >= 1), now)
        return 0.0 if held >= 1 else (1 - held) / self._a_second


class Limits:
    """ASGI middleware: the rate of each client, and the headers of every response."""

    def __init__(self, app: App, rate: Rate) -> None:
        self._app, self._rate = app, rate

    async def __call__(self, scope: dict[str, Any], receive: Any, send: Callable[[Any], Awaitable[None]]) -> None:
        """Answer a request, or refuse one too many."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def headed(message: MutableMapping[str, Any]) -> None:
            if message["type"] == "http.response.start":
                given = message.get("headers", [])
                own = {name for name, _ in given}
                message["headers"] = [*given, *(pair for pair in ALWAYS if pair[0] not in own)]
            await send(message)

        if wait := self._rate.take(scope.get("client_name", OWNER)):
            refusal = _problem(429, f"Too many requests; the next in {wait:.2f} s.")
            refusal.headers["Retry-After"] = str(max(1, round(wait)))
            await refusal(scope, receive, headed)
        else:
            await self._app(scope, receive, headed)


ALWAYS = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
ALWAYS.append((b"content-security-policy", NO_PAGE.encode()))


class Audit:
    """Who changed what: a line of JSON for each, for the owner alone, without vectors or pictures."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def note(self, client: str, action: str, facts: dict[str, Any]) -> None:
        """Append a line."""
        line = {"time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), "client": client, "action": action}
        with open(os.open(self._path, os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600), "a", encoding="utf-8") as file:
            file.write(json.dumps({**line, **facts}) + "\n")


def _body(*extra: str) -> dict[str, Any]:
    """What the description of the API says of a body that is a picture or vectors."""
    forms = {"anyOf": [each.model_json_schema() for each in (Listed, Packed)]}  # in full: without references
    content: dict[str, Any] = {"application/json": {"schema": forms}}
    content |= {kind: {"schema": {"type": "string", "format": "binary"}} for kind in KINDS}
    return {"requestBody": {"required": True, "content": content}}


PROBLEM = {"type": "object", "properties": {"detail": {"type": "string"}}, "required": ["detail"]}
PROBLEMS = {
    400: "The request cannot be read.",
    401: "The token is missing or wrong.",
    404: "There is no such identity.",
    413: "The body is too long.",
    415: "No picture that can be read, and no vectors.",
    422: "What was given does not fit the gallery.",
    429: "Too many requests.",
    503: "The gallery cannot be reached now.",
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    code: {"description": why, "content": {"application/json": {"schema": PROBLEM}}} for code, why in PROBLEMS.items()
}


def service(gallery: Gallery, *, rate: Rate, audit: Audit) -> FastAPI:
    """The application; `likewise.serving.guarded` stands before it."""
    searcher = Searcher(gallery)
    rest = ThreadPoolExecutor(1, thread_name_prefix="gallery")

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncGenerator[None]:
        yield
        searcher.close()
        rest.shutdown()

    app = FastAPI(
        title="likewise",
        version=likewise.__version__,
        description="A gallery of identities.",
        lifespan=lifespan,
        docs_url=None,
        redoc_url=None,
        openapi_url="/api/openapi.json",
        responses=RESPONSES,
    )
    app.add_middleware(Limits, rate=rate)

    async def apart(work: Callable[[], Found]) -> Found:
        return await asyncio.get_running_loop().run_in_executor(rest, work)

    async def vectors_in(request: Request) -> Array:
        """The vectors of a request: those it holds, or that of its picture."""
        data, kind = await request.body(), request.headers.get("content-type", "").partition(";")[0].strip()
        if kind == "application/json":
            return gallery.embedder(VECTORS.validate_json(data).rows()).vectors
        require_small(data)
        found = await apart(lambda: gallery.embedder([data]))
        if found.skipped:
            raise Unreadable(found.skipped[0].why)
        return found.vectors

    @app.exception_handler(Unreadable)
    async def unreadable(_: Request, error: Exception) -> JSONResponse:
        return _problem(415, str(error))

    @app.exception_handler(ValidationError)
    async def odd(_: Request, error: ValidationError) -> JSONResponse:
        return _misfit(error.errors(include_url=False, include_input=False)[0])

    @app.exception_handler(RequestValidationError)
    async def misfit(_: Request, error: RequestValidationError) -> JSONResponse:
        return _misfit(error.errors()[0])

    @app.exception_handler(ValueError)
    async def refused(_: Request, error: ValueError) -> JSONResponse:
        return _problem(404 if isinstance(error, Absent) else 422, str(error))

    @app.exception_handler(OSError)
    async def unreachable(_: Request, error: OSError) -> JSONResponse:
        return _problem(503, "The gallery cannot be reached now.")

    @app.get("/", include_in_schema=False)
    async def page() -> HTMLResponse:
        filled = await apart(lambda: _page(gallery))
        rules = f"{policy(filled, live=True)}; img-src blob: data:; frame-ancestors 'none'"
        return HTMLResponse(filled, headers={"Content-Security-Policy": rules})

    @app.get("/api/gallery")
    async def about() -> dict[str, Any]:
        """How many identities and templates there are, of which models, and whether forgetting is proven."""

        def work() -> dict[str, Any]:
            identities, templates = gallery.store.count()
            current = gallery.store.current()
            versions = [
                {
                    "name": model.name,
                    "fingerprint": model.fingerprint.hex(),
                    "width": model.width,
                    "kind": model.kind,
                    "current": current is not None and model.id == current.id,
                    "compatible_with": model.compatible_with or None,
                }
                for model in gallery.store.models()
            ]
            facts = {"identities": identities, "templates": templates, "versions": versions}
            return {**facts, "erases": gallery.store.erases, "pictures": gallery.embedder.call is not None}

        return await apart(work)

    @app.get("/api/identities")
    async def identities(after: Annotated[str, Query(max_length=NAME)] = "") -> dict[str, Any]:
        """Names in order, some at a time: those after a name."""

        def work() -> dict[str, Any]:
            names = [name for name in gallery.identities() if name > after]
            return {"identities": names[:SHOWN], "more": len(names) > SHOWN}

        return await apart(work)

    @app.get("/api/calibration")
    async def calibration() -> dict[str, Any]:
        """The thresholds of verification and identification, with the curves they rest on."""
        found = await apart(lambda: gallery.calibration)
        return {name: finite(asdict(each)) if each else None for name, each in vars(found).items()}

    @app.post("/api/identify", openapi_extra=_body())
    async def identify(request: Request, top: Top = 5) -> JSONResponse:
        """Who each probe is, or that nobody enrolled is near enough."""
        answers = await searcher.identify(await vectors_in(request), top)
        return JSONResponse({"answers": [_identified(each, top) for each in answers]})

    @app.post("/api/verify", openapi_extra=_body())
    async def verify(request: Request, identity: Name) -> dict[str, Any]:
        """Whether a probe shows an identity."""
        probe = await vectors_in(request)
        found = await apart(lambda: gallery.verify(identity, probe))
        return finite({**asdict(found), "odds": found.odds})

    @app.post("/api/enrol", openapi_extra=_body())
    async def enrol(request: Request, identity: Annotated[str | None, Query(max_length=NAME)] = None) -> dict[str, Any]:
        """Add templates of an identity; without one each gets a name of its own, to be sorted by clusters."""
        vectors = await vectors_in(request)

        def work() -> dict[str, Any]:
            found = gallery.enrol(identity, vectors)
            audit.note(_client(request), "enrol", {"identity": identity, "templates": found.templates})
            return {"identities": found.identities, "templates": found.templates}

        return await apart(work)

    @app.post("/api/forget")
    async def forget(request: Request, identity: Name) -> dict[str, Any]:
        """Erase an identity, and say how sure that is."""

        def work() -> dict[str, Any]:
            found = gallery.forget(identity, prove=True)
            facts = {"identity": identity, "templates": found.templates, "status": found.status}
            audit.note(_client(request), "forget", facts)
            copies = [copy.status for copy in found.copies]  # their paths are nobody's business outside
            return {**facts, "copies": copies, "warnings": [] if copies else list(found.warnings)}

        return await apart(work)

    @app.get("/api/clusters")
    async def clusters(threshold: Annotated[float | None, Query(gt=0, le=1e6)] = None) -> dict[str, Any]:
        """Templates grouped by who they seem to be of, the largest groups first."""
        return await apart(lambda: _grouping(gallery.cluster(threshold=threshold)))

    @app.post("/api/clusters/merge")
    async def merge(request: Request, chosen: Chosen) -> dict[str, Any]:
        """Say for good that templates are of one person."""
        return await changed(request, "merge", chosen, lambda: gallery.merge(chosen.templates))

    @app.post("/api/clusters/split")
    async def split(request: Request, chosen: Chosen) -> dict[str, Any]:
        """Take templates out of their group for good."""
        return await changed(request, "split", chosen, lambda: gallery.split(chosen.templates))

    @app.post("/api/clusters/name")
    async def name(request: Request, named: Named) -> dict[str, Any]:
        """Give templates to an identity."""
        facts = {"identity": named.identity}
        return await changed(request, "name", named, lambda: gallery.assign(named.templates, named.identity), facts)

    async def changed(
        request: Request, action: str, chosen: Chosen, work: Callable[[], None], facts: dict[str, Any] | None = None
    ) -> dict[str, Any]:
        def noted() -> dict[str, Any]:
            work()
            audit.note(_client(request), action, {"templates": chosen.templates, **(facts or {})})
            return {"templates": len(chosen.templates)}

        return await apart(noted)

    return app


def require_small(data: bytes) -> None:
    """Refuse a picture by its header, before anything is decoded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            with Image.open(io.BytesIO(data), formats=FORMATS) as picture:
                pixels = picture.width * picture.height
        except Exception:  # Pillow's plugins raise nearly anything on damaged data
            raise Unreadable("no picture in a known format") from None
    if pixels > PIXELS:
        raise Unreadable(f"{pixels:,} pixels; at most {PIXELS:,} are decoded")


def _client(request: Request) -> str:
    return request.scope.get("client_name", OWNER)


def _misfit(first: Mapping[str, Any]) -> JSONResponse:
    """What does not fit the description: the place and the reason, as of every refusal."""
    return _problem(422, f"{'.'.join(map(str, first['loc']))}: {first['msg']}")


def _problem(status: int, detail: str) -> JSONResponse:
    return JSONResponse({"detail": detail[:500]}, status)


def _identified(found: Any, top: int) -> dict[str, Any]:
    near = [{"identity": each.identity, "squared": each.squared} for each in found.candidates[:top]]
    facts = {"outcome": found.outcome, "identity": found.identity, "candidates": near, "odds": found.odds}
    return {**facts, "threshold": found.threshold, "rate": found.rate, "warnings": list(found.warnings)}


def _grouping(found: Grouping) -> dict[str, Any]:
    groups = [
        {
            "identities": group.identities[:5],
            "templates": [{"template": each.template, "identity": each.identity} for each in group.members],
        }
        for group in found.groups[:SHOWN]
    ]
    facts = {"threshold": found.threshold, "exact": found.exact, "largest": found.largest, "groups": groups}
    return {**facts, "left_out": len(found.groups) - len(groups), "warnings": list(found.warnings)}


def _page(gallery: Gallery) -> str:
    found = gallery.calibration
    curves = []
    if (verify := found.verify) is not None:
        label = "Share of impostor pairs accepted"
        curves.append(("Verification", curve_figure(verify.curve, verify.threshold, verify.far, label, "verify")))
    if (identify := found.identify) is not None:
        label = "Share of strangers accepted"
        figure = curve_figure(identify.curve, identify.threshold, identify.fpir, label, "identify")
        curves.append(("Identification", figure))
    values = {"curves": curves, "warnings": found.warnings, "pictures": gallery.embedder.call is not None}
    return render("web/templates/service.html", values)
