"""Conventions that an answer states itself: the base of log, and how many FLOP a multiply-add is."""

import re

BASE = r"(?:base[\s-]+\$?(?P<base{0}>2|10|e)\$?|(?P<natural{0}>natural)(?:\s+log(?:arithm)?s?)?)"
LOG = r"(?:\\?log(?:arithm)?s?)"
MAC = r"(?:(?:fused\s+)?multiply[- ](?:add|accumulate)s?|MACs?)"
LOGS = re.compile(
    rf"[\s,;]{{0,3}}(?:\(\s?(?:{LOG}\s+(?:is\s+)?(?:to\s+)?)?{BASE.format(1)}\s?\)"
    rf"|\(?\b(?:where|with|using|here)\s+(?:the\s+)?(?:\$?{LOG}\$?\s+(?:(?:is|are|denotes?|means?|taken|to|in|of|the)\s+){{0,4}})?"
    rf"{BASE.format(2)}\)?)",
    re.I,
)
FLOPS = re.compile(
    rf"[\s,;]{{0,3}}\(?(?:\b(?:counting|where|with|if|when|using|here)\s+)?(?:\b(?:a|an|one|1|each|every)\s+)?\b{MAC}\s*"
    r"(?:as|is|are|counts?\s+(?:as|for)|counted\s+as|=|equals?|being)\s*(?P<count>two|2|one|1|a\s+single)\s+(?:FLOPs?|operations?)\b\)?",
    re.I,
)
PLAIN_LOG = re.compile(r"\\?(?<![A-Za-z])log(?![A-Za-z_])(?!\s*_)")
FLOP = re.compile(r"(?<![A-Za-z])([kMGTP]?)(?:FLOPs?|floating[- ]point\s+operations)(?![A-Za-z])")


def stated_conventions(text: str) -> tuple[str, str, int | None]:
    r"""The text without its statements of conventions; the base of log, and the FLOP of a multiply-add, if it says so.

    >>> stated_conventions(r"$\log n$, where log is base 2")
    ('$\\log n$', '2', None)
    """
    bases = {each["base1"] or each["base2"] or "e" for each in LOGS.finditer(text)}
    counts = {2 if each["count"].lower() in ("two", "2") else 1 for each in FLOPS.finditer(text)}
    if len(bases) == 1:
        text = LOGS.sub("", text)
    if len(counts) == 1:
        text = FLOPS.sub("", text)
    return text, bases.pop() if len(bases) == 1 else "", counts.pop() if len(counts) == 1 else None


def in_conventions(text: str, base: str, flops: int | None) -> str:
    """A final answer with its logarithms in the stated base and its FLOP as multiply-adds."""
    if base:
        text = re.sub(
            r"\\?(?<![A-Za-z])log(?![A-Za-z_])(?!\s*_)", r"\\ln " if base == "e" else rf"\\log_{{{base}}}", text
        )
    if flops:
        text = FLOP.sub(lambda found: f"{found[1]}{'halfMACs' if flops == 2 else 'MACs'}", text)
    return text
