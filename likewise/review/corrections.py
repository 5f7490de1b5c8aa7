"""Chains of corrections: claims that revise earlier ones, with what changed."""

import difflib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict

BOOKKEEPING = ("expect:", "revises:", "who:", "noticed:", "row:", "note:")  # no part of what a claim states


@dataclass(frozen=True)
class Card:
    """A claim, its verdict, and the claims that revise it."""

    stated: ClaimSource
    verdict: Verdict
    revised_by: tuple[str, ...] = ()

    @property
    def lines(self) -> list[str]:
        """The lines that state something."""
        lines = self.stated.text.splitlines()
        return [line for line in lines if line.strip() and not line.lstrip().startswith(BOOKKEEPING)]


@dataclass(frozen=True)
class Attempt:
    """One step of a correction; its lines are marked '-' or '+' where they differ from the step before, else ' '."""

    card: Card
    changes: tuple[tuple[str, str], ...]


def attempts(stated: Sequence[ClaimSource], verdicts: Sequence[Verdict]) -> list[list[Attempt]]:
    """How the claims of a text, and their verdicts in the same order, revise each other."""
    return corrections(_cards(stated, verdicts))


def corrections(cards: Sequence[Card]) -> list[list[Attempt]]:
    """Chains of attempts, each from the first to one that nothing revises."""
    by_id = {card.stated.id: card for card in reversed(cards)}
    chains = []
    for last in cards:
        if last.revised_by or last.verdict.revises not in by_id.keys() - {last.stated.id}:
            continue
        chain = [last]
        while (before := by_id.get(chain[0].verdict.revises or "")) is not None and before not in chain:
            chain.insert(0, before)
        steps = zip([None, *chain[:-1]], chain, strict=True)
        chains.append([Attempt(card, tuple(_changes(before, card))) for before, card in steps])
    return chains


def _changes(before: Card | None, card: Card) -> Iterator[tuple[str, str]]:
    for line in difflib.ndiff((before or card).lines, card.lines):
        if line[0] in " +-":  # not the lines that point at letters
            yield line[0], line[2:]


def _cards(stated: Sequence[ClaimSource], verdicts: Sequence[Verdict]) -> list[Card]:
    revisions: dict[str | None, list[str]] = {}
    for verdict in verdicts:
        if verdict.revises != verdict.id:
            revisions.setdefault(verdict.revises, []).append(verdict.id)
    pairs = zip(stated, verdicts, strict=True)
    return [Card(claim, verdict, tuple(revisions.get(verdict.id, ()))) for claim, verdict in pairs]
