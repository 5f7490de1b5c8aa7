"""The page of a review, live on the loopback address: marks go to the file beside the answer as they are made."""

import json
from pathlib import Path
from typing import Any

from likewise.review.marks import Conflict, Mark, MarkFile, mark_of, points_of
from likewise.review.rendering import page, policy
from likewise.review.reviewing import Review
from likewise.serving import Refusal, Request, Response, Server

BODY = 100_000  # bytes of a request: one mark with its quotation


def serve_review(review: Review, marks: Path, *, port: int = 0, token: str | None = None) -> Server:
    """A server of the page of a review, whose marks are kept in a file; the caller runs it.

    Nothing of the file system is reachable: there is the page, and the marks of this answer.
    """
    file = MarkFile(marks)
    parts = {part.name for part in review.rubric.parts} if review.rubric else set()
    sources = {(place.line, place.column): place.source for place in review.places}

    def answer(request: Request) -> Response:
        try:
            return _answered(request)
        except ValueError as error:  # the file of the marks is damaged: nothing is shown that would hide it
            raise Refusal(500, str(error)) from None

    def _answered(request: Request) -> Response:
        if request.path == "" and request.method in ("GET", "HEAD"):
            filled = page(review.with_marks(file.read(), file.read_points()), live=True)
            return Response(
                filled, "text/html; charset=utf-8", policy=f"{policy(filled, live=True)}; frame-ancestors 'none'"
            )
        if request.path == "marks":
            return _changed(request) if request.method == "POST" else _json({"marks": _shown()})
        raise Refusal(404, "There is the page and its marks, and nothing else.")

    def _shown() -> list[dict[str, Any]]:
        return [mark.to_json() for mark in review.with_marks(file.read()).marks]

    def _changed(request: Request) -> Response:
        try:
            data = json.loads(request.body)
            if "remove" in data:
                place = data["remove"]
                mark = mark_of({**place, "mark": "unclear"})
                file.remove(*_filed(mark), mark.revision)
                return _json({"mark": None})
            if "points" in data:
                given = points_of(data["points"])
                if given.part not in parts:
                    raise Refusal(404, "There is no such part in the rubric.")
                saved = file.put_points(given)
                words = review.with_marks(file.read(), file.read_points()).summary.asked
                return _json({"points": saved.to_json(), "words": words})
            mark = mark_of(data["put"])
            if (mark.line, mark.column) not in sources:
                raise Refusal(404, "There is nothing to mark in that place.")
            line, column = _filed(mark)
            source = sources[(mark.line, mark.column)]
            saved = file.put(Mark(line, column, mark.mark, mark.remark, mark.tag, source, mark.revision))
            return _json({"mark": {**saved.to_json(), "line": mark.line, "column": mark.column}})
        except Conflict as conflict:
            return _json({"current": conflict.current.to_json() if conflict.current else None}, 409)
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            return _json({"error": f"not a mark: {error}"[:300]}, 400)
        except OSError as error:
            return _json({"error": f"the file of the marks cannot be written: {error.strerror}"}, 500)

    def _filed(mark: Mark) -> tuple[int, int]:
        """Where the file has this mark: it may have been made on an older text, and moved since."""
        for each in file.read():
            moved = review.with_marks([each]).marks
            if moved and moved[0].key == mark.key and each.revision == mark.revision:
                return each.line, each.column
        return mark.line, mark.column

    return Server(answer, port=port, token=token, body=BODY)


def _json(data: dict[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(data), "application/json", status)
