"""Answers of files and folders: Markdown, text, and exported conversations as JSON, with the sidecars beside them.

Apart from `answers`, which only sees texts: commands and studies open files through here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from likewise.checks import refuse, require
from likewise.reading.answers import Answer, read_answer
from likewise.reading.corrections import Correction, corrections_of
from likewise.reading.segments import Turn
from likewise.reading.speakers import speakers_of

TEXTS = (".md", ".markdown", ".txt")
PEOPLE = {"user", "human"}
MODELS = {"assistant", "model", "ai", "chatgpt", "claude"}


@dataclass(frozen=True)
class Opened:
    """One text with its turns and a person's corrections; `name` is shown."""

    name: str
    text: str
    turns: tuple[Turn, ...] = ()
    corrections: tuple[Correction, ...] = ()

    def read(self) -> Answer:
        """Its formulas as claims."""
        return read_answer(self.text, turns=self.turns, corrections=self.corrections)


def files_of(place: Path) -> list[Path]:
    """The file, or all answers below a folder, in the order of their names; sidecars and hidden files are none."""
    if not place.is_dir():
        return [place]
    found = sorted(
        path
        for path in place.rglob("*")
        if path.is_file()
        and path.suffix.lower() in (*TEXTS, ".json")
        and not is_sidecar(path)
        and not any(part.startswith(".") for part in path.relative_to(place).parts)
    )
    require(bool(found), "check", str(place), f"hold answers ({', '.join((*TEXTS, '.json'))})", "none")
    return found


def opened(path: Path, text: str) -> list[Opened]:
    """The answers of one file: one of a text, one for each conversation of an export, with sidecars of its own."""
    if path.suffix.lower() != ".json":
        turns = speakers_of(path.with_name(f"{path.stem}.speakers.yaml"), text)
        return [Opened(str(path), text, turns, corrections_of(sidecar(path, "readings.yaml")))]
    talks = list(conversations(text, str(path)))
    if len(talks) == 1:
        return [Opened(str(path), *spoken(talks[0]), corrections_of(sidecar(path, "readings.yaml")))]
    return [
        Opened(f"{path}#{number}", *spoken(talk), corrections_of(sidecar(path, "readings.yaml", number)))
        for number, talk in enumerate(talks, start=1)
    ]


def is_sidecar(path: Path) -> bool:
    """True for the marks of an answer and the output of a review, which are no answers."""
    return path.name.endswith(".marks.json") or path.name == "reviews.json"


def sidecar(path: Path, ending: str, conversation: int = 0) -> Path:
    """A file beside an answer: of `answer.md`, `answer.marks.json`; of the third conversation, `answer.3.marks.json`.

    >>> sidecar(Path("talks.json"), "marks.json", 3).name
    'talks.3.marks.json'
    """
    return path.with_name(f"{path.stem}.{f'{conversation}.' if conversation else ''}{ending}")


def conversations(text: str, where: str = "conversation") -> Iterator[list[tuple[str, str]]]:
    r"""The conversations of an export: speaker and text of every message, in order.

    Read are exports of ChatGPT (`mapping` with `current_node`) and Claude (`chat_messages` with `sender`), and lists of
    messages with `role` and `content`, alone or several in a list.

    >>> list(conversations('[{"role": "user", "content": "Hi"}, {"role": "assistant", "content": "$1+1=2$"}]'))
    [[('user', 'Hi'), ('assistant', '$1+1=2$')]]
    """
    try:
        data = json.loads(text)
    except (json.JSONDecodeError, RecursionError) as error:
        refuse("check", where, "be JSON of a conversation", str(error)[:80])
    if isinstance(data, dict) and isinstance(data.get("conversations"), list):
        data = data["conversations"]
    listed = data if isinstance(data, list) and not _messages(data) else [data]
    found = [talk for each in listed if (talk := _talk(each))]
    require(bool(found), "check", where, "hold messages of a known export", "none")
    yield from found


def spoken(talk: list[tuple[str, str]]) -> tuple[str, tuple[Turn, ...]]:
    """One text of all messages, with who says which lines."""
    lines: list[str] = []
    turns = []
    for speaker, said in talk:
        first = len(lines) + 1
        lines += [*said.replace("\r\n", "\n").split("\n"), ""]
        turns.append(Turn(speaker, first, len(lines)))
    return "\n".join(lines), tuple(turns)


def _talk(data: Any) -> list[tuple[str, str]]:
    if isinstance(data, list):
        return [said for each in data if (said := _message(each))]
    if not isinstance(data, dict):
        return []
    if isinstance(data.get("mapping"), dict):
        return [said for each in _branch(data) if (said := _message(each))]
    for key in ("chat_messages", "messages"):
        if isinstance(data.get(key), list):
            return [said for each in data[key] if (said := _message(each))]
    return []


def _branch(data: dict[str, Any]) -> list[Any]:
    """The messages from the root to the current node; without one, along the last children."""
    mapping = data["mapping"]
    name = data.get("current_node")
    if name not in mapping:
        parents = {each.get("parent") for each in mapping.values() if isinstance(each, dict)}
        name = next((key for key in reversed(mapping) if key not in parents), None)
    found, seen = [], set()
    while isinstance(mapping.get(name), dict) and name not in seen:
        seen.add(name)
        found.append(mapping[name].get("message"))
        name = mapping[name].get("parent")
    return found[::-1]


def _messages(data: list[Any]) -> bool:
    return bool(data) and all(isinstance(each, dict) and ("role" in each or "sender" in each) for each in data)


def _message(data: Any) -> tuple[str, str] | None:
    """Who says what; nothing for tools, system messages and pictures."""
    if not isinstance(data, dict):
        return None
    author = data.get("author")
    role = data.get("role") or data.get("sender") or (author.get("role") if isinstance(author, dict) else None)
    speaker = "user" if role in PEOPLE else "assistant" if role in MODELS else ""
    said = _said(data.get("content")) or _said(data.get("text"))
    return (speaker, said) if speaker and said.strip() else None


def _said(content: Any) -> str:
    if isinstance(content, str):
        return content
    if isinstance(content, list):
        return "\n\n".join(filter(None, map(_said, content)))
    if isinstance(content, dict) and content.get("type") in (None, "text") and "text" in content:
        return _said(content["text"])
    if (
        isinstance(content, dict)
        and "parts" in content
        and content.get("content_type") in (None, "text", "multimodal_text")
    ):
        return _said([each for each in content["parts"] if isinstance(each, str)])
    return ""
