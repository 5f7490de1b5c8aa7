"""The door for assistants: three tools that only read, in this process, over pipes and over HTTP on this machine."""

import json
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from functools import partial
from typing import Any

import anyio
import mcp
import pytest
from mcp.server.mcpserver import MCPServer

from likewise import cli
from likewise.claims import checking
from likewise.claims.stated import Stated
from likewise.claims.verdict import Verdict
from likewise.mcp import FORMAT, answer, serve, server
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


async def _tools() -> list[Any]:
    async with mcp.Client(server()) as client:
        return (await client.list_tools()).tools


def test_there_are_three_tools_and_they_only_read() -> None:
    tools = {tool.name: tool for tool in anyio.run(_tools)}
    assert set(tools) == {"check_claim", "check_document", "explain_format"}
    for tool in tools.values():
        hints = tool.annotations.model_dump(by_alias=True, exclude_none=True)
        assert hints == {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
        assert tool.description
        assert tool.output_schema["type"] == "object"
    assert list(tools["check_claim"].input_schema["properties"]) == ["text"]
    assert list(tools["check_document"].input_schema["properties"]) == ["markdown"]
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

    def check_claims(stated: list[Stated], **options: Any) -> list[Verdict]:
        calls.append(options)
        return [Verdict(each.id, "holds", "", "") for each in stated]

    monkeypatch.setattr(checking, "check_claims", check_claims)
    call(server(), "check_claim", text="budget: 600\nassert: 1 == 1")
    call(server(), "check_document", markdown=DOCUMENT)
    assert [(options["allow_code"], options["budget"]) for options in calls] == [(False, 5.0), (False, 5.0)]


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
def port() -> Iterator[int]:
    """A server over HTTP, in a process of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        number = free.getsockname()[1]
    process = subprocess.Popen([*COMMAND, "--http", "--port", str(number)], cwd=guards.ROOT, stderr=subprocess.DEVNULL)
    try:
        for _ in range(600):
            with socket.socket() as tried:
                if tried.connect_ex(("127.0.0.1", number)) == 0:
                    break
            time.sleep(0.1)
        yield number
    finally:
        process.terminate()
        process.wait(10)


def test_an_assistant_is_served_over_http(port: int) -> None:
    assert call(f"http://127.0.0.1:{port}/mcp", "check_claim", text=TRUE)["verdict"] == "holds"


def test_another_host_is_refused(port: int) -> None:
    """A page in a browser could reach this machine under a name of its own; it may not."""
    codes = []
    for host in ("example.org", f"127.0.0.1:{port}"):
        headers = {"Host": host, "Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
        request = urllib.request.Request(f"http://127.0.0.1:{port}/mcp", b"{}", headers)
        with pytest.raises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request)
        refused.value.close()
        codes.append(refused.value.code)
    assert codes == [421, 400]  # misdirected; no request at all


def test_http_is_on_the_loopback_address(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    monkeypatch.setattr(MCPServer, "run", lambda self, transport, **options: calls.append((transport, options)))
    serve(1234)
    serve()
    assert calls == [("streamable-http", {"host": "127.0.0.1", "port": 1234}), ("stdio", {})]


@pytest.mark.slow
def test_a_missing_package_is_one_line(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr("likewise.checks.find_spec", lambda name: None)
    with pytest.raises(SystemExit) as stopped:
        cli.main(["mcp"])
    assert stopped.value.code == 1
    assert capsys.readouterr().err == (
        "likewise: mcp: mcp must be installed; got no such package. Try: pip install 'likewise[mcp]'\n"
    )
