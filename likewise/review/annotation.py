"""An answer with the verdict beside each of its claims, and how its statements were corrected, as one page."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from likewise.claims.documents import markdown_parser
from likewise.claims.stated import Stated
from likewise.claims.verdict import Verdict
from likewise.page import render

BOOKKEEPING = ("expect:", "revises:", "who:", "noticed:", "row:", "note:")  # no part of what a claim states
GRADES = {
    "proved": "exact algebra, a certificate in fractions, or shapes in symbols, for the whole domain",
    "exact witness": "a point violates the relation, in exact arithmetic",
    "counted": "counted on the program; the polynomial was confirmed at sizes it was not made from",
    "sampled": "sampled; wrong with at most this probability",
    "arithmetic": "exact, from numbers as they are cited",
    "run": "it happened, on the inputs that are named",
    "searched": "no counterexample was found, and no proof",
    "undecided": "not decided; the reason stands beside it",
    "late": "not decided in time",
    "disagreement": "two engines differ, so nothing is said",
}


@dataclass(frozen=True)
class Card:
    """A claim, its verdict, and the claims that revise it."""

    stated: Stated
    verdict: Verdict
    revised_by: tuple[str, ...] = ()

    @property
    def anchor(self) -> str:
        """Where it stands on the page."""
        return f"line-{self.stated.line}"

    @property
    def lines(self) -> list[str]:
        """The lines that state something."""
        lines = self.stated.text.splitlines()
        return [line for line in lines if line.strip() and not line.lstrip().startswith(BOOKKEEPING)]

    @property
    def grade(self) -> str:
        """The grade without its numbers: of `sampled, alpha=1e-6, n=101` it is sampled."""
        return self.verdict.grade.partition(",")[0]


@dataclass(frozen=True)
class Attempt:
    """One step of a correction; its lines are marked '-' or '+' where they differ from the step before, else ' '."""

    card: Card
    changes: tuple[tuple[str, str], ...]


def annotated(markdown: str, stated: Sequence[Stated], verdicts: Sequence[Verdict], *, title: str = "") -> str:
    """The page of a Markdown text, whose claims and their verdicts are given in the same order."""
    cards = _cards(stated, verdicts)
    pieces = list(_pieces(markdown, {card.stated.line: card for card in cards}))
    found = {card.grade for card in cards}
    return render(
        "review/templates/annotation.html",
        {
            "title": title,
            "cards": cards,
            "pieces": pieces,
            "unplaced": [card for card in cards if card not in pieces],
            "corrections": corrections(cards),
            "anchors": {card.stated.id: card.anchor for card in reversed(cards)},
            "grades": {grade: meaning for grade, meaning in GRADES.items() if grade in found},
        },
    )


def attempts(stated: Sequence[Stated], verdicts: Sequence[Verdict]) -> list[list[Attempt]]:
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


def _cards(stated: Sequence[Stated], verdicts: Sequence[Verdict]) -> list[Card]:
    revisions: dict[str | None, list[str]] = {}
    for verdict in verdicts:
        if verdict.revises != verdict.id:
            revisions.setdefault(verdict.revises, []).append(verdict.id)
    pairs = zip(stated, verdicts, strict=True)
    return [Card(claim, verdict, tuple(revisions.get(verdict.id, ()))) for claim, verdict in pairs]


def _pieces(markdown: str, cards: Mapping[int, Card]) -> Iterator[str | Card]:
    """The text as HTML, with a card in the place of each claim's fence."""
    from markdown_it.common.utils import escapeHtml

    parser = markdown_parser()
    # A page that stands alone fetches no picture; what the picture is said to show remains.
    parser.add_render_rule("image", lambda _, tokens, place, *rest: escapeHtml(tokens[place].content))
    start, tokens = 0, parser.parse(markdown)
    for place, token in enumerate(tokens):
        if token.type == "fence" and token.map and token.map[0] + 1 in cards:
            yield parser.renderer.render(tokens[start:place], parser.options, {})
            yield cards[token.map[0] + 1]
            start = place + 1
    yield parser.renderer.render(tokens[start:], parser.options, {})
