"""The page of a review, live on the loopback address: marks and corrections go to files beside the answer at once."""

import json
import threading
from pathlib import Path
from typing import Any

from likewise.review.marks import Conflict, Mark, MarkFile, mark_of, points_of
from likewise.review.readings import ReadingFile
from likewise.review.rendering import page, policy
from likewise.review.reviewing import Review, read_again
from likewise.serving import Refusal, Request, Response, Server

BODY = 100_000  # bytes of a request: one mark with its quotation
TOLD = 5  # statements that are named after a correction


def serve_review(
    review: Review, marks: Path, *, readings: Path | None = None, port: int = 0, token: str | None = None
) -> Server:
    """A server of the page of a review; the caller runs it.

    marks, readings: the files that keep marks and corrections of readings; without the second none are taken. Nothing
    else of the file system is reachable.
    """
    served = _Served(review, MarkFile(marks), ReadingFile(readings) if readings and review.answer else None)
    return Server(served.answer, port=port, token=token, body=BODY)


class _Served:
    """One review and its files, for all tabs; `version` counts how often it was read again."""

    def __init__(self, review: Review, file: MarkFile, readings: ReadingFile | None) -> None:
        self.review, self.file, self.readings = review, file, readings
        self.version = 0
        self._reading = threading.Lock()

    def answer(self, request: Request) -> Response:
        """The page, its marks, or a change; anything else is refused."""
        try:
            return self._answered(request)
        except ValueError as error:  # the file of the marks is damaged: nothing is shown that would hide it
            raise Refusal(500, str(error)) from None

    def _answered(self, request: Request) -> Response:
        if request.path == "" and request.method in ("GET", "HEAD"):
            shown = self.review.with_marks(self.file.read(), self.file.read_points())
            filled = page(shown, live=True, corrects=self.readings is not None, version=self.version)
            rules = f"{policy(filled, live=True)}; frame-ancestors 'none'"
            return Response(filled, "text/html; charset=utf-8", policy=rules)
        if request.path == "marks":
            if request.method == "POST":
                return self._changed(request)
            shown = [mark.to_json() for mark in self.review.with_marks(self.file.read()).marks]
            return _json({"marks": shown, "version": self.version})
        if request.path == "readings" and request.method == "POST":
            return self._corrected(request)
        raise Refusal(404, "There is the page, its marks and its readings, and nothing else.")

    def _changed(self, request: Request) -> Response:
        review, file = self.review, self.file
        sources = {(place.line, place.column): place.source for place in review.places}
        try:
            data = json.loads(request.body)
            if "remove" in data:
                place = data["remove"]
                mark = mark_of({**place, "mark": "unclear"})
                file.remove(*_filed(review, file, mark), mark.revision)
                return _json({"mark": None})
            if "points" in data:
                given = points_of(data["points"])
                if given.part not in {part.name for part in (review.rubric.parts if review.rubric else ())}:
                    raise Refusal(404, "There is no such part in the rubric.")
                saved = file.put_points(given)
                words = review.with_marks(file.read(), file.read_points()).summary.asked
                return _json({"points": saved.to_json(), "words": words})
            mark = mark_of(data["put"])
            if (mark.line, mark.column) not in sources:
                raise Refusal(404, "There is nothing to mark in that place.")
            line, column = _filed(review, file, mark)
            source = sources[(mark.line, mark.column)]
            saved = file.put(Mark(line, column, mark.mark, mark.remark, mark.tag, source, mark.revision))
            return _json({"mark": {**saved.to_json(), "line": mark.line, "column": mark.column}})
        except Conflict as conflict:
            return _json({"current": conflict.current.to_json() if conflict.current else None}, 409)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return _json({"error": f"not a mark: {error}"[:300]}, 400)
        except OSError as error:
            return _json({"error": f"the file of the marks cannot be written: {error.strerror}"}, 500)

    def _corrected(self, request: Request) -> Response:
        """Keep a correction of a reading and check again what it changes; one at a time."""
        if self.readings is None:
            raise Refusal(404, "No formulas were read here.")
        try:
            entry = json.loads(request.body)["correct"]
            if not isinstance(entry, dict):
                raise TypeError("a correction is a mapping")
            with self._reading:
                before = self.review
                if entry.get("role"):
                    entry = _of_formula(before, entry)
                self.readings.put(entry)
                self.review = read_again(before, self.readings.read())
                self.version += 1
                return _json({"version": self.version, "words": changes(before, self.review)})
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return _json({"error": f"not corrected: {error}"[:300]}, 400)
        except OSError as error:
            return _json({"error": f"the file of the readings cannot be written: {error.strerror}"}, 500)


def _of_formula(review: Review, entry: dict[str, Any]) -> dict[str, Any]:
    """The correction with the column of its formula: of two statements in one formula the second has a column more."""
    line, column = entry.get("line"), entry.get("column", 0)
    columns = [each.column for each in (review.answer.statements if review.answer else ()) if each.line == line]
    before = [each for each in columns if not column or (isinstance(column, int) and each <= column)]
    if not before:
        raise ValueError(f"no formula that was read begins on line {line}")
    return {**entry, "column": max(before)} if column else entry


def changes(before: Review, after: Review) -> str:
    """Which statements have another verdict after a correction, in plain words."""
    old = {(each.line, each.column, each.source): each.status.label for each in before.statements}
    found = [
        f"line {each.line}: {each.status.label} (was {was})"
        for each in after.statements
        if (was := old.get((each.line, each.column, each.source), "absent")) != each.status.label
    ]
    if not found:
        return "Checked again; no verdict changed."
    more = f", and {len(found) - TOLD} more" if len(found) > TOLD else ""
    return f"Checked again. Changed: {'; '.join(found[:TOLD])}{more}."


def _filed(review: Review, file: MarkFile, mark: Mark) -> tuple[int, int]:
    """Where the file has this mark: it may have been made on an older text, and moved since."""
    for each in file.read():
        moved = review.with_marks([each]).marks
        if moved and moved[0].key == mark.key and each.revision == mark.revision:
            return each.line, each.column
    return mark.line, mark.column


def _json(data: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(data), "application/json", status)
