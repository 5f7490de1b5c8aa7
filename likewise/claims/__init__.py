"""Claims: statements about all of this, parsed, executed and answered with a verdict."""

from likewise.claims.checking import R, check, check_claims, check_document
from likewise.claims.registry import register
from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict

__all__ = [
    "ClaimSource",
    "R",
    "Verdict",
    "check",
    "check_claims",
    "check_document",
    "register",
]
