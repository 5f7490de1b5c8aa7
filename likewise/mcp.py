"""The door for assistants: a server of the Model Context Protocol with three tools that only read.

Code claims stay off here, whoever asks, and over HTTP the server is reached from this machine alone.
"""

import threading
from pathlib import Path
from typing import Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp_types import ToolAnnotations
from pydantic import BaseModel, Field

import likewise
from likewise.claims import checking
from likewise.claims.language.claim import VerdictName
from likewise.claims.verdict import Verdict
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

    verdict: VerdictName
    id: str
    detail: str = Field(description="Of a refuted claim the counterexample, of an inconclusive one the reason.")
    grade: str = Field(description="How sure: proved, exact witness, exact count, shape, alpha=..., not refuted, ...")
    statement: str = Field(
        description="The claim as it was understood; if it is not what was meant, rewrite the claim."
    )
    witness: dict[str, str] = Field(description="Names and values of the counterexample.")
    suggestions: list[str] = Field(description="Assumptions under which the claim would hold.")
    assumptions: list[str]
    numbers: dict[str, str]
    engine: str
    outcome: Literal["passes", "fails", "open"] = Field(description="fails: refuted, or not what expect: says.")
    expect: VerdictName | None
    revises: str | None
    line: int = Field(description="Of the claim in its document.")
    seed: int
    budget: float
    seconds: float
    versions: dict[str, str]


class Answers(BaseModel):
    """The verdicts on the claims of a document, in its order."""

    verdicts: list[Answer]
    fails: int = Field(description="How many are refuted or not as expected.")
    open: int = Field(description="How many are undecided.")


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
            found = [answer(verdict) for verdict in checking.check_document(markdown, budget=SECONDS)]
        outcomes = [each.outcome for each in found]
        return Answers(verdicts=found, fails=outcomes.count("fails"), open=outcomes.count("open"))

    @made.tool(annotations=READ_ONLY)
    def explain_format() -> Format:
        """Explain how claims are written, with an example of every kind."""
        return Format(text=FORMAT.read_text(encoding="utf-8"))

    return made


def answer(verdict: Verdict) -> Answer:
    """A verdict as the tools return it."""
    return Answer.model_validate({**_printable(verdict.to_json()), "outcome": verdict.outcome})


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
