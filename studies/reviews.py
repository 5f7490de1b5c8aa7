"""Review the five transcripts as a folder: a page for each answer, a card for each assistant, two side by side.

    LIKEWISE_TRANSCRIPTS=... python -m studies.reviews      # build/reviews, and the table of docs/review.md

`studies/reviews.yaml` says which lines answer which question, and has the people's marks: line, mark and tag. The pages
hold the transcripts, so they stay in `build`, which is not part of the project; the table holds counts only.
"""

import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

from likewise.files import write_whole
from likewise.reading.opening import Opened
from likewise.reading.segments import Turn
from likewise.reading.speakers import speakers_of
from likewise.review import Folder, Mark, Review, pages_of, review
from likewise.review.folder import Entry

HERE = Path(__file__).parent
PAGES = HERE.parent / "build" / "reviews"
PAGE = HERE.parent / "docs" / "review.md"
TABLE = re.compile(r"(<!-- transcripts -->\n).*?(<!-- end -->)", re.DOTALL)


def entries(folder: Path, about: dict[str, Any]) -> Iterator[Entry]:
    """Every answer of every transcript: the lines of one question, with the marks on them."""
    for name, said in about.items():
        text = (folder / f"{name}.txt").read_text(encoding="utf-8")
        turns = speakers_of(HERE / "speakers" / f"{name}.speakers.yaml", text)
        for question, (first, last) in said["questions"].items():
            file = f"{name}, {question}"
            found = review(cut(text, turns, first, last, file))
            marks = [placed(found, line - first + 1, *rest) for line, *rest in said["marks"] if first <= line <= last]
            yield Entry(said["assistant"], question, file, found.with_marks(marks))


def cut(text: str, turns: tuple[Turn, ...], first: int, last: int, name: str) -> Opened:
    """Some lines of a text, with who says them."""
    lines = text.split("\n")[first - 1 : last]
    spoken = [
        Turn(turn.speaker, max(turn.first, first) - first + 1, min(turn.last, last) - first + 1)
        for turn in turns
        if turn.first <= last and turn.last >= first
    ]
    return Opened(name, "\n".join(lines), tuple(spoken))


def placed(found: Review, line: int, mark: Any, tag: str = "") -> Mark:
    """A mark on the passage that holds a line."""
    row = found.row_of(line)
    if row is None:
        raise ValueError(f"reviews: line {line} of {found.name} must hold a passage; got an empty line.")
    return Mark(row.first, 0, mark, tag=tag)


def table(folder: Folder) -> str:
    """The cards as Markdown."""
    heads = ["assistant", "answers", "statements", "decided", "right at first", "refuted", "noticed"]
    heads.append("repaired after a doubt")
    rows = [heads, ["---"] * len(heads)]
    for card in folder.cards:
        counts = (card.answers, card.statements, card.decided, card.right, card.noticed.total, card.noticed.count)
        rows.append([card.assistant, *map(str, counts), str(card.repaired)])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def main() -> int:
    """Write the pages and the table."""
    if "LIKEWISE_TRANSCRIPTS" not in os.environ:
        print("studies.reviews: LIKEWISE_TRANSCRIPTS is not set; the transcripts are not reviewed.", file=sys.stderr)
        return 0
    about = yaml.safe_load((HERE / "reviews.yaml").read_text(encoding="utf-8"))
    folder = Folder("Five transcripts", tuple(entries(Path(os.environ["LIKEWISE_TRANSCRIPTS"]), about)))
    PAGES.mkdir(parents=True, exist_ok=True)
    for name, content in pages_of(folder).items():
        write_whole(PAGES / name, content)
    shown = table(folder)
    write_whole(PAGE, TABLE.sub(lambda found: f"{found[1]}{shown}{found[2]}", PAGE.read_text(encoding="utf-8")))
    print(f"{shown}\nPages: {PAGES / 'index.html'}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
