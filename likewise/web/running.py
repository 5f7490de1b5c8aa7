"""Run the service: a socket on the loopback address, the gate with its tokens, and the server."""

import os
import secrets
import sys
from collections.abc import Mapping
from pathlib import Path

from likewise.checks import require
from likewise.gallery import Gallery
from likewise.serving import HOST, OWNER, Gate, guarded, listening
from likewise.web.service import BODY, Audit, Rate, service

TOKEN = "LIKEWISE_SERVE_TOKEN"  # a variable of the environment; without it every start has a token of its own
SHORTEST = 16  # characters of a token


def read_tokens(path: Path) -> dict[str, str]:
    """Names and tokens of further clients: two words in each line."""
    found: dict[str, str] = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        words = line.split()
        rule = f"have a name and a token of {SHORTEST} characters in each line"
        fits = len(words) == 2 and len(words[1]) >= SHORTEST and words[0] not in (*found, OWNER)
        require(fits, "serve", "tokens", rule, f"line {number}")
        found[words[0]] = words[1]
    return found


def run(gallery: Gallery, *, port: int, others: Mapping[str, str], rate: float, audit: Path) -> None:
    """Serve until Ctrl-C; the address with its token is printed once the port is ours."""
    import torch
    import uvicorn

    # Measured on two busy cores, 50 probes among 10,000 templates: 7 ms of processor time with one thread, 60 with two.
    torch.set_num_threads(1)
    token = os.environ.get(TOKEN) or secrets.token_urlsafe()
    with listening(port) as sockets:
        gate = Gate(sockets.getsockname()[1], token, body=BODY, others=others)
        app = guarded(service(gallery, rate=Rate(rate), audit=Audit(audit)), gate, page=True)
        sys.stderr.write(f"likewise: serving http://{HOST}:{gate.port}/{token}/ (Ctrl-C ends it)\n")
        sys.stderr.flush()
        config = uvicorn.Config(app, log_level="warning", access_log=False, server_header=False, proxy_headers=False)
        uvicorn.Server(config).run(sockets=[sockets])
