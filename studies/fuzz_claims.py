"""Texts that are nearly claims: nothing may raise, nothing may pass its deadline, and what does not parse is open.

Run it as `python studies/fuzz_claims.py --count 100000 --seed 0` (five minutes on two cores). Texts are the claims of
the catalogue and of docs/, with tokens and characters left out, doubled, swapped, put in, and claims spliced; the same
seed gives the same texts. It prints one JSON object and ends with 1 if any text offends.
"""

import json
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import Progress

from likewise.checks import require_count
from likewise.claims.checking import check_claims
from likewise.claims.documents import markdown_claims
from likewise.claims.language.parser import parse
from likewise.claims.pool import shared_pool
from likewise.claims.registry import needs_torch
from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict
from likewise.programs.rows import catalogue_claims

DOCS = Path(__file__).parents[1] / "docs"
BATCH = 400
LONGER = 20  # a program takes longer to count than anything takes to think about
LISTED = 50  # offending texts that are printed
TOKEN = re.compile(r"\n|[ \t]+|[A-Za-z_]\w*|\d+(?:\.\d+)?|[=!<>]=|\*\*|\.\.|.")
READ = re.compile(r"^(row|who|noticed|note|expect|revises):.*\n?", re.MULTILINE)  # for people only
INSERTED = (
    *"+-*/@^'()[]{},;:~%<>=0", "==", "!=", "<=", ">=", "**", "..", " in ", " within ", "\n", "\nassume: ", "\ngiven: ",
    "\nsizes: ", "\nassert: ", "E[", "Var[", "P[", "O(", "Theta(", "N(", "U(", "std=", "R^", "Z", "1e9", "1e-300", "64",
    "-1", "1/0", "0^0", "x", "D", "sqrt(", "log(", "exp(", "sum(", "mean(", "max(", "abs(", "relu(",
    "softmax(", "pairs(", "outer(", "dot(", "norm(", "einsum(", "choose(", "dim(", "ones(", "I(", "cost", "traffic",
    "peak", " has shape ", "\x00", "\u202e", "\uff11", "'" * 40, "(" * 60, "[1, " * 20,
)  # fmt: skip


def tokens(text: str) -> list[str]:
    """The text in pieces, so that joining them gives it back."""
    return TOKEN.findall(text)


def _kind(piece: str) -> str:
    """Names change into names, and numbers into numbers, where a text is to stay readable."""
    return "name" if piece[0].isalpha() else "number" if piece[0].isdigit() else "gap" if piece.isspace() else "sign"


def mutated(text: str, other: str, random: Random) -> str:
    """One to three changes of a text; `other` is what it may be spliced with.

    >>> mutated("assert: 1 == 1", "", Random(1)) == mutated("assert: 1 == 1", "", Random(1))
    True
    """
    for _ in range(random.choice((1, 1, 1, 1, 2, 2, 3))):
        pieces = tokens(text)
        if not pieces:
            return text
        i, j = random.randrange(len(pieces)), random.randrange(len(pieces))
        match random.randrange(24):
            case 0:
                del pieces[i]
            case 1:
                pieces.insert(i, pieces[i])
            case 2:
                pieces[i], pieces[j] = pieces[j], pieces[i]
            case 3:
                pieces.insert(i, random.choice(INSERTED))
            case 4:
                pieces[i] = random.choice(INSERTED)
            case 5:
                at = random.randrange(len(pieces[i]))
                pieces[i] = pieces[i][:at] + chr(random.randrange(32, 127)) + pieces[i][at + 1 :]
            case 6:
                pieces[i] = random.choice(tokens(other) or [""])
            case 7:
                rest = tokens(other)
                pieces = pieces[:i] + rest[random.randrange(len(rest) + 1) :]
            case _:
                pieces[i] = random.choice([piece for piece in pieces if _kind(piece) == _kind(pieces[i])])
        text = "".join(pieces)
    return text


def texts(count: int, seed: int) -> Iterator[str]:
    """So many texts, made from all claims of the catalogue and of docs/."""
    known = [each.text for each in catalogue_claims()]
    for page in sorted(DOCS.glob("*.md")):
        known += [each.text for each in markdown_claims(page.read_text(encoding="utf-8"))]
    known = [READ.sub("", text) for text in known]
    random = Random(seed)
    for _ in range(count):
        yield mutated(random.choice(known), random.choice(known), random)


@dataclass
class Tally:
    """Verdicts counted, and what should not have happened."""

    verdicts: Counter[str] = field(default_factory=Counter)
    unparsed: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    offending: list[dict[str, str]] = field(default_factory=list)

    def offends(self, fault: str, text: str, detail: str) -> None:
        self.faults[fault] += 1
        if self.faults[fault] <= LISTED:
            self.offending.append({"fault": fault, "text": text, "detail": detail})

    def judged(self, text: str, verdict: Verdict) -> None:
        """One verdict against the rules."""
        self.verdicts[verdict.verdict] += 1
        if parses(text):
            if "internal error" in verdict.detail or "not understood" in verdict.detail:
                self.offends("internal error", text, verdict.detail)
            if "deadline" in verdict.detail or "worker" in verdict.detail:
                self.offends("deadline", text, verdict.detail)
        else:
            self.unparsed += 1
            if verdict.verdict in ("holds", "refuted"):
                self.offends("decided though it does not parse", text, str(verdict))
        if verdict.verdict == "refuted" and not verdict.witness and verdict.engine != "sampling":
            self.offends("refuted without a witness", text, verdict.detail)
        if not verdict.detail:
            self.offends("no detail", text, str(verdict))

    def to_json(self) -> dict[str, Any]:
        """Plain data."""
        counts = {"verdicts": dict(sorted(self.verdicts.items())), "unparsed": self.unparsed}
        return {**counts, "faults": dict(self.faults), "offending": self.offending}


def parses(text: str) -> bool:
    """Whether the text is a claim."""
    try:
        parse(text)
    except Exception:  # what is no Unparsed is found again, and reported, where the text is checked
        return False
    return True


def checked(batch: list[str], budget: float, tally: Tally) -> None:
    """One batch of texts; what raises is looked for text by text."""
    try:
        verdicts = check_claims([ClaimSource(f"fuzz-{i}", text) for i, text in enumerate(batch)], budget=budget)
    except Exception as error:  # the fault that is looked for
        if len(batch) == 1:
            tally.offends("raised", batch[0], f"{type(error).__name__}: {error}")
        else:
            for text in batch:
                checked([text], budget, tally)
        return
    for text, verdict in zip(batch, verdicts, strict=True):
        tally.judged(text, verdict)


def main(
    count: Annotated[int, typer.Option(help="Texts to try.")] = 20_000,
    seed: Annotated[int, typer.Option(help="Where the random changes start.")] = 0,
    budget: Annotated[float, typer.Option(help="Seconds for one text.")] = 0.5,
) -> None:
    """Try many texts that are nearly claims and print what became of them."""
    require_count("fuzz_claims", "count", count)
    started, tally, batch = time.monotonic(), Tally(), []
    with Progress(console=Console(stderr=True)) as progress:
        task = progress.add_task("texts", total=count)
        for number, text in enumerate(texts(count, seed), start=1):
            batch.append(text)
            if len(batch) == BATCH or number == count:
                counted = [text for text in batch if parses(text) and needs_torch(parse(text))]
                checked([text for text in batch if text not in counted], budget, tally)
                checked(counted, LONGER * budget, tally)
                progress.update(task, completed=number)
                batch = []
    shared_pool().close()
    seconds = round(time.monotonic() - started, 1)
    typer.echo(json.dumps({"count": count, "seed": seed, "seconds": seconds, **tally.to_json()}, indent=1))
    raise typer.Exit(1 if tally.faults else 0)


if __name__ == "__main__":
    typer.run(main)
