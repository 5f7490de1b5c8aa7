"""HTTP on the loopback address: token, Host, Origin and size checks for every server, and a small threaded server.

A page of another site can reach 127.0.0.1 from the user's browser, under that address or under a name of its own that
resolves to it. So a request must name this host (Host), come from this server's pages if it says where it comes from
(Origin), and carry a token that only the user was shown. The token is a bearer token, or the first part of the path.
"""

import contextlib
import json
import secrets
import socket
import sys
import threading
from collections.abc import Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl, unquote, urlsplit

from likewise.text import printable

HOST = "127.0.0.1"
BODY = 1_000_000  # bytes of a request's body
CLIENTS = 32  # connections that are served at once; a further one is closed
OWNER = "owner"  # of a server: who has the token that was printed at its start
PATIENCE = 30.0  # seconds for a client to send its request
SAFE = ("GET", "HEAD")
HEADERS = {  # of every response
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
}
NO_PAGE = "default-src 'none'; frame-ancestors 'none'"  # the content security policy of a response that sets none
App = Callable[[dict[str, Any], Any, Any], Awaitable[None]]  # an ASGI application


class Refusal(Exception):
    """A request that is not answered, with its HTTP status and the reason."""

    def __init__(self, status: int, reason: str) -> None:
        super().__init__(reason)
        self.status = status


@dataclass(frozen=True)
class Gate:
    """The checks of a loopback server on the address, the origin, the token and the size of a request.

    others: tokens of further clients, by their names; the first token is the owner's.

    >>> gate = Gate(8000, "secret")
    >>> gate.check_address({"host": "127.0.0.1:8000", "origin": "https://example.org"})
    Traceback (most recent call last):
        ...
    likewise.serving.Refusal: Origin must be http://127.0.0.1:8000; got https://example.org.
    """

    port: int
    token: str = field(repr=False)
    body: int = BODY
    others: Mapping[str, str] = field(default_factory=dict, repr=False)

    @property
    def hosts(self) -> tuple[str, ...]:
        """The names under which this server may be asked."""
        return f"{HOST}:{self.port}", f"localhost:{self.port}"

    def check_address(self, headers: Mapping[str, str]) -> None:
        """Refuse a request to another host, or from a page of another origin; names of headers in small letters."""
        host, origin = headers.get("host", ""), headers.get("origin")
        if host.lower() not in self.hosts:
            raise Refusal(421, f"Host must be {self.hosts[0]}; got {host[:80] or 'none'}.")
        if origin is not None and origin.lower() not in [f"http://{name}" for name in self.hosts]:
            raise Refusal(403, f"Origin must be http://{self.hosts[0]}; got {origin[:80] or 'none'}.")

    def check_token(self, given: str) -> str:
        """The client that a token is of; another is refused, and takes as long for a near miss as for any other."""
        tried, tokens = given.encode("utf-8", "replace"), {OWNER: self.token, **self.others}
        found = [name for name, token in tokens.items() if secrets.compare_digest(tried, token.encode())]
        if not found:
            raise Refusal(401, "The token that was printed at the start is needed.")
        return found[0]

    def check_bearer(self, headers: Mapping[str, str]) -> str:
        """Refuse a request without `Authorization: Bearer <token>`."""
        kind, _, given = headers.get("authorization", "").partition(" ")
        return self.check_token(given if kind == "Bearer" else "")

    def check_length(self, headers: Mapping[str, str]) -> int:
        """The length of a request's body, which must be told beforehand and be within the limit."""
        told = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not (told.isascii() and told.isdecimal()):
            raise Refusal(411, "The request must tell its Content-Length.")
        if len(told) > 12 or int(told) > self.body:
            raise Refusal(413, f"The body must have at most {self.body:,} bytes; got {told[:12]}.")
        return int(told)


def guarded(app: App, gate: Gate, *, page: bool = False) -> App:
    """An ASGI application behind a gate with a bearer token; a body without a length is cut off at the limit.

    page: the token may be the first part of the path instead, and what changes something must say its Origin then, as
    in `Server`. The client's name is scope["client_name"].
    """

    async def answered(scope: dict[str, Any], receive: Any, send: Any) -> None:
        if scope["type"] == "lifespan":
            await app(scope, receive, send)
            return
        try:
            headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope.get("headers", ())}
            if scope["type"] != "http":
                raise Refusal(403, "Only HTTP is served.")
            gate.check_address(headers)
            given, slash, path = scope.get("path", "").lstrip("/").partition("/")
            if page and slash and "authorization" not in headers:
                scope = {**scope, "client_name": gate.check_token(given), "path": f"/{path}", "raw_path": None}
                if scope["method"] not in SAFE and "origin" not in headers and headers.get("sec-fetch-site") != "none":
                    raise Refusal(403, "A page that changes something must say its Origin.")
            else:
                scope = {**scope, "client_name": gate.check_bearer(headers)}
            if "content-length" in headers:
                gate.check_length(headers)
        except Refusal as refusal:
            found = {**HEADERS, "Content-Type": "application/json", "Content-Security-Policy": NO_PAGE}
            if refusal.status == 401:
                found["WWW-Authenticate"] = "Bearer"
            sent = [(name.lower().encode(), value.encode()) for name, value in found.items()]
            await send({"type": "http.response.start", "status": refusal.status, "headers": sent})
            await send({"type": "http.response.body", "body": json.dumps({"detail": str(refusal)}).encode()})
            return
        await app(scope, _counted(receive, gate.body), send)

    return answered


def _counted(receive: Callable[[], Awaitable[dict[str, Any]]], most: int) -> Callable[[], Awaitable[dict[str, Any]]]:
    """The messages of a request, which counts as given up by its client once it is longer than it may be."""
    taken = 0

    async def received() -> dict[str, Any]:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        return message if taken <= most else {"type": "http.disconnect"}

    return received


@dataclass(frozen=True)
class Request:
    """A request that has passed the gate; the path is what follows the token."""

    method: str
    path: str
    query: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Response:
    """What a server answers; `policy` is the content security policy of a page."""

    body: bytes | str
    kind: str = "text/plain; charset=utf-8"
    status: int = 200
    policy: str = NO_PAGE


class Server(ThreadingHTTPServer):
    """A threaded server on the loopback address, for requests whose path begins with the token.

    answer: called in a thread for each request; a `Refusal` becomes its status. Nothing of the file system is served.
    """

    daemon_threads = True
    block_on_close = False
    request_queue_size = CLIENTS

    def __init__(
        self, answer: Callable[[Request], Response], *, port: int = 0, token: str | None = None, body: int = BODY
    ) -> None:
        super().__init__((HOST, port), _Handler)
        self.answer = answer
        self.gate = Gate(self.server_address[1], token or secrets.token_urlsafe(), body)
        self._places = threading.BoundedSemaphore(CLIENTS)

    @property
    def address(self) -> str:
        """The address to open, with the token in it."""
        return f"http://{HOST}:{self.gate.port}/{self.gate.token}/"

    @contextlib.contextmanager
    def running(self) -> Generator[str]:
        """Serve in a thread while the block runs; yields the address."""
        thread = threading.Thread(target=self.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield self.address
        finally:
            self.shutdown()
            thread.join()
            self.server_close()

    def run(self) -> None:
        """Serve until Ctrl-C."""
        with contextlib.suppress(KeyboardInterrupt), contextlib.closing(self):
            self.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        """Give the port back."""
        self.server_close()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Start a thread for a connection, or close it if too many are open."""
        if self._places.acquire(blocking=False):
            try:
                super().process_request(request, client_address)
            except BaseException:
                self._places.release()
                raise
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Serve one connection and give its place back."""
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._places.release()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is no error of ours; anything else is shown by the thread that met it."""
        if not isinstance(sys.exception(), OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: Server  # ty: ignore[incompatible-mutable-override]
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "likewise", ""
    timeout = PATIENCE

    def do_GET(self) -> None:
        self._answer()

    def do_HEAD(self) -> None:
        self._answer()

    def do_POST(self) -> None:
        self._answer()

    def _answer(self) -> None:
        try:
            self._send(self.server.answer(self._request()))
        except Refusal as refusal:
            self.send_error(refusal.status, str(refusal))

    def send_error(self, code: int, message: str | None = None, explain: str | None = None) -> None:
        """A refusal as plain text, for a request that is no HTTP or has another method, too."""
        self.close_connection = True  # what is left of its body is not read
        self.request_version = self.protocol_version  # what is no HTTP is answered in HTTP, with every header
        words = message or HTTPStatus(code).phrase
        self._send(Response(f"{printable(words)}\n", status=code))

    def _send(self, response: Response) -> None:
        body = response.body.encode() if isinstance(response.body, str) else response.body
        self.send_response(response.status)
        for name, value in {
            **HEADERS,
            "Content-Type": response.kind,
            "Content-Security-Policy": response.policy,
        }.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        if self.close_connection:
            self.send_header("Connection", "close")
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _request(self) -> Request:
        headers = {name.lower(): value for name, value in self.headers.items()}
        self.server.gate.check_address(headers)
        parts = urlsplit(self.path)
        given, _, path = parts.path.lstrip("/").partition("/")
        self.server.gate.check_token(given)
        length = self.server.gate.check_length(headers)
        if self.command not in SAFE and "origin" not in headers and headers.get("sec-fetch-site", "none") != "none":
            raise Refusal(403, "A page that changes something must say its Origin.")
        return Request(self.command, unquote(path), dict(parse_qsl(parts.query)), self.rfile.read(length))

    def log_message(self, format: str, *args: Any) -> None:
        """Nothing: a log would hold the token."""


def listening(port: int) -> socket.socket:
    """A socket on the loopback address, for servers that bring their own loop; 0 is any port that is free."""
    return socket.create_server((HOST, port))
