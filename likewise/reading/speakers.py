"""Who speaks: from a sidecar of line ranges, or from headings that name the speaker.

A sidecar `answer.speakers.yaml` lists ranges, `assistant: [[12, 40], [60, 99]]`; lines that it leaves out belong to the
speaker `default` names, or to nobody known.
"""

import re
from pathlib import Path

from likewise.checks import require
from likewise.reading.segments import Turn

SPEAKERS = ("assistant", "user", "annotator", "unknown")
HEADINGS = re.compile(
    r"\s*(?:#{1,6}\s*)?\**\s*(?P<who>User|You|Human|Prompt|Assistant|ChatGPT|Claude|AI|Grok|DeepSeek|Gemini|Model)"
    r"(?:\s+said)?\s*:\**\s*(?:\S.*)?$",
)
TITLES = re.compile(  # alone on a line, as a heading or bold
    r"\s*(?:#{1,6}\s+\**|\*\*)(?P<who>User|You|Human|Assistant|ChatGPT|Claude|Grok|DeepSeek|Gemini)(?:\s+said)?\**\s*$"
)
PEOPLE = {"User", "You", "Human", "Prompt"}


def speakers_of(sidecar: Path, text: str) -> tuple[Turn, ...]:
    """The turns that a sidecar names; without one, those that headings name; else none."""
    if sidecar.exists():
        return ranges(sidecar.read_text(encoding="utf-8"), str(sidecar), text.count("\n") + 1)
    return headed(text)


def ranges(yaml_text: str, where: str, lines: int) -> tuple[Turn, ...]:
    r"""Turns from line ranges.

    >>> [(turn.speaker, turn.first, turn.last) for turn in ranges("user: [[2, 3]]\ndefault: assistant", "", 5)]
    [('assistant', 1, 1), ('user', 2, 3), ('assistant', 4, 5)]
    """
    import yaml

    found = yaml.safe_load(yaml_text)
    require(isinstance(found, dict), "speakers", where, "map speakers to line ranges", type(found).__name__)
    default = found.pop("default", "unknown")
    who = {}
    for speaker, spans in found.items():
        require(speaker in SPEAKERS, "speakers", where, f"name one of {', '.join(SPEAKERS)}", speaker)
        for span in spans:
            good = isinstance(span, list) and len(span) == 2 and all(isinstance(each, int) for each in span)
            require(good and 1 <= span[0] <= span[1], "speakers", where, "have ranges [first, last]", span)
            for line in range(span[0], min(span[1], lines) + 1):
                who[line] = speaker
    require(default in SPEAKERS, "speakers", f"default in {where}", f"be one of {', '.join(SPEAKERS)}", default)
    turns: list[Turn] = []
    for line in range(1, lines + 1):
        speaker = who.get(line, default)
        if turns and turns[-1].speaker == speaker:
            turns[-1] = Turn(speaker, turns[-1].first, line)
        else:
            turns.append(Turn(speaker, line, line))
    return tuple(turns)


def headed(text: str) -> tuple[Turn, ...]:
    """Turns from headings such as `User:`, `## User` and `ChatGPT said:`; two different speakers must be named."""
    lines = text.split("\n")
    starts = [(number, speaker) for number, line in enumerate(lines, start=1) if (speaker := speaker_of(line))]
    if len({speaker for _, speaker in starts}) < 2:
        return ()
    turns = [Turn("unknown", 1, starts[0][0] - 1)] if starts[0][0] > 1 else []
    for place, (number, speaker) in enumerate(starts):
        last = starts[place + 1][0] - 1 if place + 1 < len(starts) else len(lines)
        turns.append(Turn(speaker, number, last))
    return tuple(turns)


def speaker_of(line: str) -> str:
    """The speaker that a heading names, or "".

    >>> speaker_of("## You said:"), speaker_of("**Claude**"), speaker_of("# Model")
    ('user', 'assistant', '')
    """
    found = HEADINGS.match(line) or TITLES.match(line)
    return "" if found is None else "user" if found["who"] in PEOPLE else "assistant"
