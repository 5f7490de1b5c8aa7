"""A server of the Model Context Protocol for assistants, with four tools that only read.

Code claims stay off here, whoever asks. Over HTTP the server is reached from this machine alone, with a token. A
document has a deadline, and ends when its client goes; several are checked at once.
"""

import functools
import os
import secrets
import sys
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal, TypeVar

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

import likewise
from likewise import reading
from likewise.claims import checking
from likewise.claims.language.claim import VerdictName
from likewise.claims.verdict import SCHEMA, Outcome, Verdict, worst
from likewise.serving import HOST, Gate, guarded, listening
from likewise.text import printable

Found = TypeVar("Found")
FORMAT = Path(checking.__file__).with_name("format.md")
SECONDS = 5.0  # for one claim, whatever it asks for
DOCUMENT = 60.0  # seconds on the clock for a document, or for a claim on a busy machine
DOCUMENTS = 4  # checked at once; each uses all cores, and a short one must not wait for a long one
CLAIMS = 8  # checked at once, beside the documents
BODY = 8_000_000  # bytes of a request over HTTP: a document of the longest kind, escaped
SHORT = 400  # characters of a formula, claim or reason in an answer about a draft
OPEN = 20  # formulas that stayed open in such an answer
POLL = 0.5  # seconds between looks at whether a client is still there
TOKEN = "LIKEWISE_MCP_TOKEN"  # a variable of the environment; without it every start has a token of its own
READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
INSTRUCTIONS = """\
Checks technical statements about deep learning by executing them: identities, expectations, shapes, exact costs,
O-bounds, cited numbers. Give check_answer your draft before you send it, or write a statement as a claim
(explain_format says how) and check it before you assert it. When it is refuted, read the counterexample and say what
you correct. Inconclusive means undecided, not true."""


class Answer(BaseModel):
    """The verdict on one claim."""

    version: Literal[1] = Field(alias="schema", description="Of the form of this answer.")
    verdict: VerdictName
    mark: str = Field(description="One character for it: tick, cross, ~ (searched), ? or !.")
    id: str
    detail: str = Field(description="Of a refuted claim the counterexample, of another one the reason.")
    grade: str = Field(
        description="How sure: proved, exact witness, counted, arithmetic, sampled; searched, undecided, late."
    )
    statement: str = Field(
        description="The claim as it was understood; if it is not what was meant, rewrite the claim."
    )
    witness: dict[str, str] = Field(description="Names and values of the counterexample.")
    suggestions: list[str] = Field(description="Assumptions under which the claim would hold.")
    assumptions: list[str]
    numbers: dict[str, str]
    engine: str
    outcome: Outcome = Field(description="fails: refuted, or not what expect: says; open: inconclusive.")
    place: tuple[int, int] | None = Field(description="Of a malformed claim the line and column to correct.")
    nearest: str = Field(description="Of a malformed claim the name that was probably meant.")
    expect: VerdictName | None
    revises: str | None
    line: int = Field(description="Of the claim in its document.")
    seed: int
    budget: float
    seconds: float
    versions: dict[str, str]


class Answers(BaseModel):
    """The verdicts on the claims of a document, in its order."""

    version: Literal[1] = Field(alias="schema", description="Of the form of this answer.")
    outcome: Outcome = Field(description="The worst of the verdicts; a document without a claim is open, not a pass.")
    verdicts: list[Answer]
    fails: int = Field(description="How many are refuted or not as expected.")
    open: int = Field(description="How many are inconclusive.")
    malformed: int = Field(description="How many are not written as claims are; place says where.")


class Formula(BaseModel):
    """One formula of a draft that is refuted or open, with its place."""

    line: int
    column: int
    source: str = Field(description="The formula as typed.")
    verdict: VerdictName
    claim: str = Field(description="What was read; if it is not what was meant, say the missing definition.")
    detail: str = Field(description="Of a refuted formula the counterexample, of another one the reason.")
    bindings: list[str] = Field(description="The lines that say what its names are.")
    findings: list[str] = Field(description="Lines that it contradicts or follows from.")


class Draft(BaseModel):
    """What was found in a draft: refuted formulas first, then those that stayed open, and counts of all."""

    version: Literal[1] = Field(alias="schema", description="Of the form of this answer.")
    refuted: list[Formula]
    open: list[Formula]
    counts: dict[str, int]
    refused: dict[str, int] = Field(description="Why other formulas were not read, and how many.")
    unanswered: list[str] = Field(description="Lettered parts that have no answer.")


class Format(BaseModel):
    """How to write a claim."""

    text: str


def server() -> MCPServer:
    """The server, with its four tools."""
    made = MCPServer("likewise", version=likewise.__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    documents, claims = anyio.Semaphore(DOCUMENTS), anyio.Semaphore(CLAIMS)

    @made.tool(annotations=READ_ONLY)
    async def check_claim(text: str, context: Context) -> Answer:
        """Check one claim: lines such as `given: q, k in R^D` and `assert: dot(q, k) == dot(k, q)`."""
        async with claims:
            check = functools.partial(checking.check, text, budget=SECONDS, seconds=DOCUMENT)
            return answer(await while_connected(check, context))

    @made.tool(annotations=READ_ONLY)
    async def check_document(markdown: str, context: Context) -> Answers:
        """Check every fenced block of a Markdown text whose info string is `claim <id>`."""
        async with documents:
            check = functools.partial(checking.check_document, markdown, budget=SECONDS, seconds=DOCUMENT)
            return answers(await while_connected(check, context))

    @made.tool(annotations=READ_ONLY)
    async def check_answer(text: str, context: Context) -> Draft:
        """Check a draft in Markdown and LaTeX before you send it: its formulas are read as they are written."""
        async with documents:
            check = functools.partial(reading.check_answer, text, speaker="assistant", seconds=DOCUMENT)
            return draft(await while_connected(check, context))

    @made.tool(annotations=READ_ONLY)
    def explain_format() -> Format:
        """Explain how claims are written, with an example of every kind."""
        return Format(text=FORMAT.read_text(encoding="utf-8"))

    return made


async def while_connected(check: Callable[..., Found], context: Context) -> Found:
    """The result of a check in a thread, which is told to end when this task is cancelled or its client is gone."""
    gone = threading.Event()
    request: Any = context.request_context.request  # none over stdin and stdout

    async def watch() -> None:
        while not await request.is_disconnected():
            await anyio.sleep(POLL)
        gone.set()

    try:
        async with anyio.create_task_group() as tasks:
            if request is not None:
                tasks.start_soon(watch)
            found = await anyio.to_thread.run_sync(functools.partial(check, gone=gone), abandon_on_cancel=True)
            tasks.cancel_scope.cancel()
        return found
    finally:
        gone.set()


def answer(verdict: Verdict) -> Answer:
    """A verdict as the tools return it."""
    return Answer.model_validate(_printable(verdict.to_json()))


def draft(found: reading.Answer) -> Draft:
    """What was found in a draft, short enough to act on."""
    listed: dict[str, list[Any]] = {"refuted": [], "inconclusive": []}
    for each in found.statements:
        if each.verdict in listed:
            plain = each.to_json()
            listed[each.verdict].append(
                {
                    **{name: plain[name] for name in ("line", "column", "verdict", "bindings", "findings")},
                    **{name: plain[name][:SHORT] for name in ("source", "claim", "detail")},
                }
            )
    plain = {
        "schema": SCHEMA,
        "refuted": listed["refuted"],
        "open": listed["inconclusive"][:OPEN],
        "counts": found.counts,
        "refused": found.refused,
        "unanswered": [part.label for part in found.parts if not part.answered],
    }
    return Draft.model_validate(_printable(plain))


def answers(verdicts: Sequence[Verdict]) -> Answers:
    """The verdicts of a document as the tool returns them."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    found = {name: counts[name] for name in ("fails", "open", "malformed")}
    return Answers(schema=SCHEMA, outcome=worst(verdicts), verdicts=[answer(each) for each in verdicts], **found)


def serve(port: int | None = None) -> None:
    """Serve over stdin and stdout or, given a port (0 for any that is free), over HTTP on the loopback address."""
    if port is None:
        server().run("stdio")
    else:
        serve_http(port)


def serve_http(port: int) -> None:
    """Serve over HTTP on the loopback address; address and token are printed once the port is ours."""
    import uvicorn

    token = os.environ.get(TOKEN) or secrets.token_urlsafe()
    with listening(port) as sockets:
        gate = Gate(sockets.getsockname()[1], token, body=BODY)
        app = guarded(server().streamable_http_app(host=HOST), gate)
        address = f"http://{HOST}:{gate.port}/mcp"
        sys.stderr.write(f"likewise: serving {address}\nlikewise: send Authorization: Bearer {token}\n")
        sys.stderr.flush()
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[sockets])


def _printable(data: Any) -> Any:
    if isinstance(data, dict):
        return {printable(name): _printable(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_printable(value) for value in data]
    return printable(data) if isinstance(data, str) else data
