"""A loopback server answers its own pages, with the token, within its limits; and nothing else."""

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import anyio
import pytest

from likewise.serving import CLIENTS, Gate, Refusal, Request, Response, Server, guarded

TOKEN = "secret-token"


def answer(request: Request) -> Response:
    if request.path == "refused":
        raise Refusal(404, "There is no such page.")
    if request.path == "broken":
        raise OSError("the client is gone")
    told = {"method": request.method, "path": request.path, "query": dict(request.query), "size": len(request.body)}
    return Response(json.dumps(told), "application/json")


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(answer, token=TOKEN, body=100)
    with made.running():
        yield made


def ask(
    server: Server, path: str = f"/{TOKEN}/", method: str = "GET", body: bytes | None = None, **headers: str
) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection("127.0.0.1", server.gate.port, timeout=10)
    sent = {name.replace("_", "-"): value for name, value in headers.items()}
    connection.request(method, path, body, sent)
    found = connection.getresponse()
    found.body = found.read()  # ty: ignore[missing-attribute]
    connection.close()
    return found


def test_a_request_with_the_token_is_answered(server: Server) -> None:
    found = ask(server, f"/{TOKEN}/marks%20here?since=3", "POST", b"12345")
    assert found.status == 200
    told = json.loads(found.body)  # ty: ignore[missing-attribute]
    assert told == {"method": "POST", "path": "marks here", "query": {"since": "3"}, "size": 5}


@pytest.mark.parametrize("path", ["/", "/wrong/", f"/{TOKEN}x/", f"/{TOKEN[:-1]}/", f"/?token={TOKEN}", "/\xff/"])
def test_without_the_token_nothing_is_answered(server: Server, path: str) -> None:
    assert ask(server, path.encode("utf-8").decode("latin-1") if path.isascii() else "/%ff/").status == 401


@pytest.mark.parametrize("host", ["example.org", "127.0.0.1", "127.0.0.1:1", "127.0.0.1.example.org:{port}", ""])
def test_another_host_is_refused(server: Server, host: str) -> None:
    assert ask(server, Host=host.format(port=server.gate.port)).status == 421


@pytest.mark.parametrize(
    "origin", ["https://example.org", "null", "", "http://127.0.0.1:1", "https://127.0.0.1:{port}"]
)
def test_another_origin_is_refused(server: Server, origin: str) -> None:
    assert ask(server, Origin=origin.format(port=server.gate.port)).status == 403


@pytest.mark.parametrize("name", ["127.0.0.1", "localhost", "LOCALHOST"])
def test_its_own_pages_are_let_in(server: Server, name: str) -> None:
    own = f"{name}:{server.gate.port}"
    assert ask(server, method="POST", body=b"1", Host=own, Origin=f"http://{own}").status == 200


def test_a_change_by_a_page_without_an_origin_is_refused(server: Server) -> None:
    assert ask(server, method="POST", body=b"1", Sec_Fetch_Site="cross-site").status == 403


def test_sizes_are_limited(server: Server) -> None:
    assert ask(server, method="POST", body=b"1" * 100).status == 200
    assert ask(server, method="POST", body=b"1" * 101).status == 413
    assert ask(server, method="POST", Content_Length="9" * 40).status == 413
    assert ask(server, method="POST", Content_Length="-1").status == 411
    assert ask(server, method="POST", Transfer_Encoding="chunked").status == 411


def test_other_methods_are_not_served(server: Server) -> None:
    assert [ask(server, method=method).status for method in ("PUT", "DELETE", "OPTIONS", "TRACE")] == [501] * 4


def test_a_refusal_is_a_status_and_a_sentence(server: Server) -> None:
    found = ask(server, f"/{TOKEN}/refused")
    assert (found.status, found.body) == (404, b"There is no such page.\n")  # ty: ignore[missing-attribute]


def test_every_response_says_how_it_may_be_used(server: Server) -> None:
    for path in (f"/{TOKEN}/", "/wrong/"):
        found = ask(server, path)
        assert found.getheader("X-Content-Type-Options") == "nosniff"
        assert found.getheader("X-Frame-Options") == "DENY"
        assert found.getheader("Referrer-Policy") == "no-referrer"
        assert found.getheader("Cache-Control") == "no-store"
        assert found.getheader("Content-Security-Policy") == "default-src 'none'; frame-ancestors 'none'"
        assert found.getheader("Access-Control-Allow-Origin") is None


@pytest.mark.parametrize(
    "sent", [b"PUT /x HTTP/1.1\r\n\r\n", b"<script>alert(1)</script>\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n"]
)
def test_what_is_no_request_of_ours_is_refused_as_text_with_every_header(server: Server, sent: bytes) -> None:
    with socket.create_connection(("127.0.0.1", server.gate.port), timeout=10) as connection:
        connection.sendall(sent)
        head, _, body = connection.makefile("rb").read().partition(b"\r\n\r\n")
    assert b" 4" in head[:12] or b" 5" in head[:12]
    assert b"Content-Type: text/plain" in head
    assert b"Content-Security-Policy: default-src 'none'" in head
    assert b"<" not in body or b"Bad request" in body


def test_a_client_that_goes_disturbs_nobody(server: Server, capfd: pytest.CaptureFixture[str]) -> None:
    with socket.create_connection(("127.0.0.1", server.gate.port)) as connection:
        connection.sendall(b"POST / HTTP/1.1\r\nContent-Le")
    with pytest.raises((http.client.HTTPException, OSError)):
        ask(server, f"/{TOKEN}/broken")
    assert ask(server).status == 200
    assert capfd.readouterr() == ("", "")


def test_many_clients_are_served_and_too_many_are_turned_away(server: Server) -> None:
    def wait(count: int, *, answered: bool) -> None:
        """So many clients connect and say nothing; soon another one is answered, or turned away."""
        for _ in range(count):
            waiting.enter_context(socket.create_connection(("127.0.0.1", server.gate.port)))
        ends = time.monotonic() + 20.0
        while is_answered(server) is not answered:
            assert time.monotonic() < ends
            time.sleep(0.1)

    with contextlib.ExitStack() as waiting:
        wait(CLIENTS - 1, answered=True)
        wait(CLIENTS, answered=False)
        waiting.close()
        wait(0, answered=True)


def is_answered(server: Server) -> bool:
    try:
        return ask(server).status == 200
    except (http.client.HTTPException, OSError):
        return False


def test_requests_are_answered_side_by_side() -> None:
    both = threading.Barrier(2, timeout=10)

    def together(request: Request) -> Response:
        both.wait()
        return Response("met")

    server = Server(together, token=TOKEN)
    with server.running():
        first = threading.Thread(target=ask, args=(server,))
        first.start()
        assert ask(server).status == 200
        first.join()


def test_every_start_has_a_token_of_its_own() -> None:
    servers = [Server(answer) for _ in range(2)]
    assert len({server.gate.token for server in servers}) == 2
    assert min(len(server.gate.token) for server in servers) >= 32
    assert TOKEN not in repr(Gate(1, TOKEN))
    for server in servers:
        server.close()


def test_ctrl_c_ends_it_and_frees_the_port() -> None:
    code = (
        "from likewise.serving import Response, Server\n"
        "server = Server(lambda request: Response('here'))\n"
        "print(server.address, flush=True)\nserver.run()\nprint('ended')"
    )
    process = subprocess.Popen(  # Ctrl-C is heard even where the tests run in the background of a shell
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),
    )
    assert process.stdout is not None
    port = int(process.stdout.readline().split(":")[2].split("/")[0])
    held = socket.create_connection(("127.0.0.1", port))  # an open connection does not keep it
    time.sleep(0.2)
    os.kill(process.pid, signal.SIGINT)
    out, error = process.communicate(timeout=10)
    held.close()
    assert (out, error, process.returncode) == ("ended\n", "", 0)
    with pytest.raises(OSError, match=r".*"):
        socket.create_connection(("127.0.0.1", port), timeout=1)


def asgi(gate: Gate, headers: dict[str, str], *chunks: bytes) -> tuple[int, int]:
    """The status of a request to a guarded application, and how many bytes the application was given."""
    taken, sent = [0], []
    waiting = [{"type": "http.request", "body": chunk, "more_body": True} for chunk in chunks]

    async def app(scope: dict[str, Any], receive: Any, send: Any) -> None:
        while (message := await receive())["type"] == "http.request":
            taken[0] += len(message["body"])
        await send({"type": "http.response.start", "status": 200, "headers": []})

    async def receive() -> dict[str, Any]:
        return waiting.pop(0) if waiting else {"type": "http.disconnect"}

    async def send(message: dict[str, Any]) -> None:
        sent.append(message)

    scope = {"type": "http", "headers": [(name.encode(), value.encode()) for name, value in headers.items()]}
    anyio.run(guarded(app, gate), scope, receive, send)
    return sent[0]["status"], taken[0]


def test_an_application_is_behind_the_same_gate() -> None:
    gate = Gate(8000, TOKEN, body=10)
    right = {"host": "127.0.0.1:8000", "authorization": f"Bearer {TOKEN}"}
    assert asgi(gate, right, b"12345") == (200, 5)
    assert asgi(gate, {**right, "authorization": TOKEN})[0] == 401
    assert asgi(gate, {**right, "authorization": "Bearer other"})[0] == 401
    assert asgi(gate, {**right, "host": "example.org"})[0] == 421
    assert asgi(gate, {**right, "origin": "https://example.org"})[0] == 403
    assert asgi(gate, {**right, "content-length": "11"})[0] == 413


def test_an_application_gets_no_more_than_the_limit() -> None:
    right = {"host": "127.0.0.1:8000", "authorization": f"Bearer {TOKEN}"}
    assert asgi(Gate(8000, TOKEN, body=10), right, b"12345", b"12345", b"1")[1] == 10
