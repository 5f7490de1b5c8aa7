"""What `likewise check` does, as one call: the claims and formulas of files, or the catalogue, checked together.

It stands here because the catalogue does; everything else of it is `claims`, `reading` and `review`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from likewise.claims import checking
from likewise.claims.documents import claims_at, markdown_claims, text_at
from likewise.claims.stated import ClaimSource, or_nothing
from likewise.claims.verdict import OUTCOMES, SCHEMA, Outcome, Verdict, worst
from likewise.files import require_place, write_whole
from likewise.programs import rows
from likewise.progress import Progress, parts, silent
from likewise.reading import Answer
from likewise.reading.opening import TEXTS, files_of, opened

LABELS = ("who", "noticed", "row", "note")


@dataclass(frozen=True, kw_only=True)
class CheckJob:
    """What to check, and how.

    files: Markdown, text, conversations (JSON), YAML, Python files, folders, modules, or "-" for standard input.
    catalogue: check the catalogue instead of files. formulas: read formulas also where a file has claim fences.
    annotate: a page to write, of one Markdown file. budget: seconds for a claim or a formula.
    """

    files: tuple[str, ...] = ()
    catalogue: bool = False
    formulas: bool = False
    annotate: Path | None = None
    seed: int = 0
    budget: float | None = None
    allow_code: bool = False


@dataclass(frozen=True)
class Checked:
    """Claims with their verdicts, and answers with those of their formulas, by the names of their files."""

    stated: list[ClaimSource]
    verdicts: list[Verdict]
    answers: list[tuple[str, Answer]]
    catalogue: bool = False
    texts: Mapping[str, str] = field(default_factory=dict, repr=False)  # of the files that were read as text

    def outcome(self, *, strict: bool = False) -> Outcome:
        """The worst of claims and formulas; a formula that is undecided or not read is open only if it is `strict`."""
        found = [worst(self.verdicts)] if self.verdicts or not self.answers else []
        for _, answer in self.answers:
            counts = answer.counts
            if counts["refuted"]:
                found.append("fails")
            elif strict and counts["decided"] < counts["statements"]:
                found.append("open")
            else:
                found.append("passes")
        return min(found, key=OUTCOMES.index)

    def to_json(self) -> dict[str, Any]:
        """Plain data: verdicts with the labels of their claims, answers, and the catalogue's rows and totals."""
        from likewise.review.reviewing import totals

        listed = [
            {**verdict.to_json(), "file": claim.file, **{name: claim.labels.get(name, "") for name in LABELS}}
            for claim, verdict in zip(self.stated, self.verdicts, strict=True)
        ]
        plain: dict[str, Any] = {"schema": SCHEMA, "outcome": self.outcome(), "verdicts": listed}
        plain["claims"] = totals(self.stated, self.verdicts)
        if self.answers:
            plain["answers"] = [{"file": file, **answer.to_json()} for file, answer in self.answers]
        found = rows.rows(self.stated, self.verdicts)
        if not found:
            return plain
        summed = rows.totals(found)
        if not self.catalogue:
            del summed["listed"]
        return {**plain, "totals": summed, "rows": [row.to_json() for row in found]}

    def to_sarif(self) -> dict[str, Any]:
        """Claims and formulas that fail or stay open, as SARIF 2.1.0."""
        from likewise.claims.sarif import sarif

        pairs = [pair for file, answer in self.answers for pair in answer.as_claims(file)]
        return sarif(
            [*self.stated, *(claim for claim, _ in pairs)], [*self.verdicts, *(verdict for _, verdict in pairs)]
        )

    def page(self, file: str) -> str:
        """A Markdown file as HTML, with every verdict beside its claim or formula."""
        from likewise.review import page, review_of

        name = Path(file).name if file != "-" else "answer"
        answer = self.answers[0][1] if self.answers else None
        return page(review_of(self.texts[file], self.stated, self.verdicts, name=name, answer=answer))


def run_check_job(job: CheckJob, *, progress: Progress = silent) -> Checked:
    """Check files, or the catalogue; write the annotated page if one is asked for."""
    if job.annotate is not None:
        require_place("check --annotate", job.annotate)
    texts: dict[str, str] = {}
    stated, answers = (rows.catalogue_claims(), []) if job.catalogue else _claims_and_formulas(job, texts)
    first, second = parts(progress, 2) if stated and answers else (progress, progress)
    verdicts = checking.check_claims(
        stated, seed=job.seed, budget=job.budget, allow_code=job.allow_code, progress=first
    )
    if answers:
        from likewise.reading import check_answers
        from likewise.reading.answers import BUDGET

        unchecked, seconds = [answer for _, answer in answers], job.budget or BUDGET
        found = check_answers(unchecked, seed=job.seed, budget=seconds, progress=second)
        answers = [(file, answer) for (file, _), answer in zip(answers, found, strict=True)]
    checked = Checked(stated, verdicts, answers, job.catalogue, texts)
    if job.annotate is not None:
        write_whole(job.annotate, checked.page(job.files[0]))
    return checked


def _claims_and_formulas(job: CheckJob, texts: dict[str, str]) -> tuple[list[ClaimSource], list[tuple[str, Answer]]]:
    """Claims of every file; formulas of texts that have no claim, or of all texts if they are asked for.

    texts: filled with the text of every file that is read as text.
    """
    stated: list[ClaimSource] = []
    answers = []
    several = [str(path) for file in job.files for path in (files_of(Path(file)) if Path(file).is_dir() else [file])]
    for file in several:
        path = Path(file)
        talk = path.is_file() and path.suffix.lower() == ".json"
        if job.annotate is None and file != "-" and not talk and not (path.is_file() and path.suffix.lower() in TEXTS):
            stated += claims_at(file)
            continue
        text = texts[file] = text_at(file)
        claims = [] if talk else markdown_claims(text, file=file)
        read = [(each.name, each.read()) for each in opened(path, text)] if job.formulas or not claims else []
        found = [(name, answer) for name, answer in read if answer.counts["statements"]]
        answers += found
        stated += claims if found else or_nothing(claims, file)
    return stated, answers
