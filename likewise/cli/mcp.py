"""`likewise mcp`: the server through which an assistant checks its own statements."""

from typing import Annotated

import typer

from likewise.checks import require_package
from likewise.cli.terminal import examples

MCP_EXAMPLES = examples(
    "likewise mcp", "likewise mcp --http --port 8765", "LIKEWISE_MCP_TOKEN=... likewise mcp --http --port 0"
)


def mcp(
    http: Annotated[
        bool, typer.Option("--http", help="Serve HTTP on 127.0.0.1, with a token that is printed.")
    ] = False,
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port of --http; 0 for any that is free.")] = 8765,
) -> None:
    """Let an assistant check its claims: a Model Context Protocol server with four tools that only read."""
    require_package("mcp", "mcp")
    from likewise.mcp import serve

    serve(port if http else None)
