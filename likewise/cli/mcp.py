"""`likewise mcp`: the server through which an assistant checks its own statements."""

from typing import Annotated

import typer

from likewise.checks import require_package
from likewise.cli.terminal import examples

MCP_EXAMPLES = examples("likewise mcp", "likewise mcp --http --port 8765")


def mcp(
    http: Annotated[bool, typer.Option("--http", help="Serve HTTP on 127.0.0.1 instead of stdin and stdout.")] = False,
    port: Annotated[int, typer.Option(min=1, max=65535, help="Port of --http.")] = 8765,
) -> None:
    """Let an assistant check its claims: a Model Context Protocol server with three tools that only read."""
    require_package("mcp", "mcp")
    from likewise.mcp import serve

    serve(port if http else None)
