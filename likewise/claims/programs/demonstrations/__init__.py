"""Programs of ours that `run(...)` may name without permission: small real code for statements about code."""

from collections.abc import Callable
from typing import Any

from likewise.claims.programs.demonstrations import attention, coursework, probes

DEMONSTRATIONS: dict[str, Callable[..., Any]] = {
    **coursework.DEMONSTRATIONS,
    **attention.DEMONSTRATIONS,
    **probes.DEMONSTRATIONS,
}
