"""The door for assistants: four tools that only read, in this process, over pipes and over HTTP on this machine."""

import asyncio
import json
import os
import queue
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from types import SimpleNamespace
from typing import Any

import anyio
import httpx2
import mcp
import pytest
import uvicorn
from mcp.client.streamable_http import streamable_http_client

from likewise import cli
from likewise.claims import checking
from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict
from likewise.mcp import DOCUMENTS, FORMAT, TOKEN, answer, serve, server, while_connected
from tests.house import guards

TRUE = "given: q, k in R^D\nassert: dot(q, k) == dot(k, q)"
DOCUMENT = f"""\
```claim symmetric
{TRUE}
```

```claim wrong
given: x in R
assert: x + 1 == x
```

```claim typo
assert: y > 0
```
"""
SECRET = "a-token-of-the-tests"
COMMAND = [sys.executable, "-c", "from likewise.cli import main; main()", "mcp"]


def call(where: Any, tool: str, **arguments: str) -> Any:
    """The structured result of one call by a new client."""
    result = anyio.run(partial(_call, where, tool, arguments))
    assert not result.is_error, result.content
    assert json.loads(result.content[0].text) == result.structured_content
    return result.structured_content


async def _call(where: Any, tool: str, arguments: dict[str, str]) -> Any:
    async with mcp.Client(where, read_timeout_seconds=60) as client:
        return await client.call_tool(tool, arguments)


async def _over_http(url: str, tool: str, arguments: dict[str, str]) -> Any:
    headers = {"Authorization": f"Bearer {SECRET}"}
    async with httpx2.AsyncClient(headers=headers, timeout=60) as http:
        return await _call(streamable_http_client(url, http_client=http), tool, arguments)


async def _tools() -> list[Any]:
    async with mcp.Client(server()) as client:
        return (await client.list_tools()).tools


def test_there_are_four_tools_and_they_only_read() -> None:
    tools = {tool.name: tool for tool in anyio.run(_tools)}
    assert set(tools) == {"check_claim", "check_document", "check_answer", "explain_format"}
    for tool in tools.values():
        hints = tool.annotations.model_dump(by_alias=True, exclude_none=True)
        assert hints == {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
        assert tool.description
        assert tool.output_schema["type"] == "object"
    assert list(tools["check_claim"].input_schema["properties"]) == ["text"]
    assert list(tools["check_document"].input_schema["properties"]) == ["markdown"]
    assert list(tools["check_answer"].input_schema["properties"]) == ["text"]
    assert tools["explain_format"].input_schema["properties"] == {}


def test_a_claim_is_answered() -> None:
    found = call(server(), "check_claim", text="given: x in R\nassert: x + 1 == x")
    assert (found["verdict"], found["outcome"], found["witness"]) == ("refuted", "fails", {"x": "0"})
    assert found["statement"] == "given: x in R | assert: x + 1 == x"
    assert found["versions"]["likewise"] == "0.1.0"


def test_a_document_is_answered_in_its_order() -> None:
    found = call(server(), "check_document", markdown=DOCUMENT)
    assert [(each["id"], each["line"], each["verdict"]) for each in found["verdicts"]] == [
        ("symmetric", 1, "holds"),
        ("wrong", 6, "refuted"),
        ("typo", 11, "malformed"),
    ]
    assert (found["schema"], found["outcome"], found["fails"], found["open"]) == (1, "malformed", 1, 0)
    assert (found["malformed"], found["verdicts"][2]["place"]) == (1, [12, 9])
    twice = call(server(), "check_document", markdown="```claim\nof: a.py:f\nassert: cost in O(1)\n```\n" * 2)
    assert (twice["outcome"], twice["fails"], twice["open"]) == ("open", 0, 2)


def test_a_draft_is_answered_with_its_errors_first_and_what_stayed_open() -> None:
    text = "(a) So $2 + 2 = 5$, and $1 + 1 = 2$.\n\n(b)\n\nLet $f(q) = q^T q$. Then $f(k) = \\weird$."
    found = call(server(), "check_answer", text=text)
    assert [(each["line"], each["column"], each["source"]) for each in found["refuted"]] == [(1, 9, "2 + 2 = 5")]
    assert (found["counts"]["decided"], found["counts"]["refuted"]) == (2, 1)
    assert sum(found["refused"].values()) == 1
    assert found["unanswered"] == []


def test_a_document_without_claims_is_no_pass() -> None:
    found = call(server(), "check_document", markdown="# Text")
    assert (found["outcome"], found["open"], found["fails"]) == ("open", 1, 0)
    assert [each["detail"] for each in found["verdicts"]] == ["nothing to check: there is no claim"]


def test_the_format_that_is_explained_is_the_one_that_is_checked() -> None:
    text = call(server(), "explain_format")["text"]
    assert text == FORMAT.read_text()
    verdicts = checking.check_document(text)
    assert [str(verdict) for verdict in verdicts if verdict.outcome != "passes"] == []
    assert len(verdicts) == 6


def test_code_is_never_allowed_and_time_is_short(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []

    def check_claims(stated: list[ClaimSource], **options: Any) -> list[Verdict]:
        calls.append(options)
        return [Verdict(each.id, "holds", "", "") for each in stated]

    monkeypatch.setattr(checking, "check_claims", check_claims)
    call(server(), "check_claim", text="budget: 600\nassert: 1 == 1")
    call(server(), "check_document", markdown=DOCUMENT)
    assert [(options["allow_code"], options["budget"]) for options in calls] == [(False, 5.0), (False, 5.0)]
    assert [options["seconds"] for options in calls] == [60.0, 60.0]


def test_a_code_claim_stays_undecided() -> None:
    found = call(server(), "check_claim", text="given: x[2]\nassert: run(page.forward, x) succeeds")
    assert (found["verdict"], found["outcome"]) == ("inconclusive", "open")
    found = call(server(), "check_claim", text="of: page.py:step\nsizes: N\nassert: cost in O(N)")
    assert (found["verdict"], found["detail"]) == ("inconclusive", "code claims are off; --allow-code runs them")


def test_a_wrong_call_is_an_error_and_the_server_lives() -> None:
    async def go() -> list[Any]:
        async with mcp.Client(server()) as client:
            wrong = await client.call_tool("check_claim", {})
            return [wrong, await client.call_tool("check_claim", {"text": "assert: 1 == 1"})]

    wrong, right = anyio.run(go)
    assert wrong.is_error
    assert right.structured_content["verdict"] == "holds"


def test_signs_that_nobody_sees_are_written_out() -> None:
    odd = "\u202e\x1b[2J\x9b"
    shown = r"\u202e\x1b[2J\x9b"
    found = answer(Verdict(odd, "refuted", odd, odd, odd, witness=((odd, odd),), suggestions=(odd,), revises=odd))
    assert found.model_dump_json(exclude={"mark"}).isascii()
    assert (found.id, found.detail, found.witness, found.suggestions) == (shown, shown, {shown: shown}, [shown])


@pytest.mark.slow
def test_an_assistant_is_served_over_pipes() -> None:
    place = mcp.StdioServerParameters(command=COMMAND[0], args=COMMAND[1:], cwd=guards.ROOT)
    assert call(place, "check_claim", text=TRUE)["verdict"] == "holds"


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """The address that a server over HTTP prints at its start."""
    process = subprocess.Popen(
        [*COMMAND, "--http", "--port", "0"],
        cwd=guards.ROOT,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, TOKEN: SECRET},
    )
    try:
        assert process.stderr is not None
        first, second = process.stderr.readline(), process.stderr.readline()
        assert second == f"likewise: send Authorization: Bearer {SECRET}\n"
        yield first.removeprefix("likewise: serving ").strip()
    finally:
        process.terminate()
        process.communicate(timeout=10)


def test_an_assistant_is_served_over_http(url: str) -> None:
    result = anyio.run(partial(_over_http, url, "check_claim", {"text": TRUE}))
    assert result.structured_content["verdict"] == "holds"


def code(url: str, **headers: str) -> int:
    """The status of a request that is no call."""
    sent = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream", **headers}
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(urllib.request.Request(url, b"{}", sent))
    refused.value.close()
    return refused.value.code


def test_http_needs_the_token(url: str) -> None:
    assert code(url) == 401
    assert code(url, Authorization="Bearer another") == 401
    assert code(url, Authorization=SECRET) == 401
    assert code(url, Authorization=f"Bearer {SECRET}") == 400  # let in, but no request


def test_another_host_is_refused(url: str) -> None:
    """A page in a browser could reach this machine under a name of its own; it may not."""
    assert code(url, Authorization=f"Bearer {SECRET}", Host="example.org") == 421


def test_http_is_on_the_loopback_address(url: str) -> None:
    assert url.startswith("http://127.0.0.1:")
    assert url.endswith("/mcp")


def test_every_start_has_a_token_of_its_own(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv(TOKEN, raising=False)
    monkeypatch.setattr(uvicorn.Server, "run", lambda self, sockets: None)
    shown = []
    for _ in range(2):
        serve(0)
        shown.append(capsys.readouterr().err.splitlines()[1].removeprefix("likewise: send Authorization: Bearer "))
    assert len(set(shown)) == 2
    assert min(map(len, shown)) >= 32


def test_a_claim_does_not_wait_for_a_document(monkeypatch: pytest.MonkeyPatch) -> None:
    released = threading.Event()

    def check_document(markdown: str, **options: Any) -> list[Verdict]:
        assert released.wait(30)
        return [Verdict("slow", "holds", "proved", "")]

    async def go() -> list[str]:
        order: list[str] = []

        async def ask(client: Any, tool: str, **arguments: str) -> None:
            assert not (await client.call_tool(tool, arguments)).is_error
            order.append(tool)
            released.set()

        async with mcp.Client(server(), read_timeout_seconds=60) as client, anyio.create_task_group() as tasks:
            for _ in range(DOCUMENTS):
                tasks.start_soon(partial(ask, client, "check_document", markdown=DOCUMENT))
            await anyio.sleep(0.5)
            tasks.start_soon(partial(ask, client, "check_claim", text="assert: 1 == 1"))
        return order

    monkeypatch.setattr(checking, "check_document", check_document)
    assert anyio.run(go) == ["check_claim", *["check_document"] * DOCUMENTS]


def test_a_check_ends_when_its_client_goes() -> None:
    class Request:
        async def is_disconnected(self) -> bool:
            return True

    def check(gone: threading.Event) -> bool:
        return gone.wait(30)

    context = SimpleNamespace(request_context=SimpleNamespace(request=Request()))
    started = time.monotonic()
    assert anyio.run(while_connected, check, context)
    assert time.monotonic() - started < 10


CLIENT = """
import sys
from functools import partial
import anyio
from tests.test_mcp import _over_http
anyio.run(partial(_over_http, sys.argv[1], "check_document", {"markdown": "# Text"}))
"""


@pytest.mark.slow
def test_a_check_ends_when_its_client_hangs_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """Over a real socket: the client is another process, which is killed while it waits."""
    begun, ended = threading.Event(), threading.Event()
    started: queue.Queue[tuple[uvicorn.Server, int]] = queue.Queue()

    def check_document(markdown: str, *, gone: threading.Event, **options: Any) -> list[Verdict]:
        begun.set()
        if gone.wait(60):
            ended.set()
        return []

    def run(http: uvicorn.Server, sockets: list[socket.socket]) -> None:
        started.put((http, sockets[0].getsockname()[1]))
        asyncio.run(http.serve(sockets=sockets))

    monkeypatch.setattr(checking, "check_document", check_document)
    monkeypatch.setattr(uvicorn.Server, "run", run)
    monkeypatch.setenv(TOKEN, SECRET)
    thread = threading.Thread(target=serve, args=(0,))
    thread.start()
    http, port = started.get(timeout=30)
    client = subprocess.Popen([sys.executable, "-c", CLIENT, f"http://127.0.0.1:{port}/mcp"], cwd=guards.ROOT)
    try:
        assert begun.wait(60)
        assert not ended.is_set()
        client.kill()
        assert ended.wait(20)
    finally:
        client.kill()
        client.wait()
        http.should_exit = True
        thread.join(30)


def test_a_check_ends_when_its_call_is_cancelled() -> None:
    ended = threading.Event()

    def check(gone: threading.Event) -> None:
        if gone.wait(30):
            ended.set()

    context: Any = SimpleNamespace(request_context=SimpleNamespace(request=None))

    async def go() -> None:
        with anyio.move_on_after(0.3):
            await while_connected(check, context)

    anyio.run(go)
    assert ended.wait(10)


@pytest.mark.slow
def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("likewise.checks.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["mcp"])
    assert stopped.value.code == 1
    assert capsys.readouterr().err == (
        "likewise: mcp: mcp must be installed; got no such package. Try: pip install 'likewise[mcp]'\n"
    )
