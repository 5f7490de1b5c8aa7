"""The door for assistants: a server of the Model Context Protocol with three tools that only read.

Code claims stay off here, whoever asks, and over HTTP the server is reached from this machine alone.
"""

import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

import likewise
from likewise.claims import checking
from likewise.claims.language.claim import VerdictName
from likewise.claims.verdict import SCHEMA, Outcome, Verdict, worst
from likewise.text import printable

FORMAT = Path(checking.__file__).with_name("format.md")
SECONDS = 5.0  # for one claim, whatever it asks for
READ_ONLY = ToolAnnotations(read_only_hint=True, idempotent_hint=True, open_world_hint=False)
INSTRUCTIONS = """\
Checks technical statements about deep learning by executing them: identities, expectations, shapes, exact costs,
O-bounds, cited numbers. Write a statement as a claim (explain_format says how) and check it before you assert it. When
it is refuted, read the counterexample and say what you correct. Inconclusive means undecided, not true."""


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


class Format(BaseModel):
    """How to write a claim."""

    text: str


def server() -> MCPServer:
    """The server, with its three tools."""
    made = MCPServer("likewise", version=likewise.__version__, instructions=INSTRUCTIONS, log_level="WARNING")
    one_at_a_time = threading.Lock()  # tools run in threads, and each check may use all cores

    @made.tool(annotations=READ_ONLY)
    def check_claim(text: str) -> Answer:
        """Check one claim: lines such as `given: q, k in R^D` and `assert: dot(q, k) == dot(k, q)`."""
        with one_at_a_time:
            return answer(checking.check(text, budget=SECONDS))

    @made.tool(annotations=READ_ONLY)
    def check_document(markdown: str) -> Answers:
        """Check every fenced block of a Markdown text whose info string is `claim <id>`."""
        with one_at_a_time:
            verdicts = checking.check_document(markdown, budget=SECONDS)
        return answers(verdicts)

    @made.tool(annotations=READ_ONLY)
    def explain_format() -> Format:
        """Explain how claims are written, with an example of every kind."""
        return Format(text=FORMAT.read_text(encoding="utf-8"))

    return made


def answer(verdict: Verdict) -> Answer:
    """A verdict as the tools return it."""
    return Answer.model_validate(_printable(verdict.to_json()))


def answers(verdicts: Sequence[Verdict]) -> Answers:
    """The verdicts of a document as the tool returns them."""
    counts = Counter(verdict.outcome for verdict in verdicts)
    found = {name: counts[name] for name in ("fails", "open", "malformed")}
    return Answers(schema=SCHEMA, outcome=worst(verdicts), verdicts=[answer(each) for each in verdicts], **found)


def serve(port: int | None = None) -> None:
    """Serve over stdin and stdout or, given a port, over HTTP on the loopback address."""
    if port is None:
        server().run("stdio")
    else:
        server().run("streamable-http", host="127.0.0.1", port=port)


def _printable(data: Any) -> Any:
    if isinstance(data, dict):
        return {printable(name): _printable(value) for name, value in data.items()}
    if isinstance(data, list):
        return [_printable(value) for value in data]
    return printable(data) if isinstance(data, str) else data
