"""A YAML file with a list `claims:`, read as text: what is written is what is checked, and nothing is constructed.

Tags, anchors, aliases, merge keys and duplicate keys are refused, and a number keeps its digits: 85.1 is not a float.
"""

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator
from typing import Any

import yaml

from likewise.claims.language.limits import CLAIMS
from likewise.claims.stated import Entry, Misread, Span

FIELD = re.compile(r"[A-Za-z_]+")
LINE_END = re.compile(r"\r\n?|\n")
LISTS = {
    "given": "; ",
    "assume": "; ",
    "sizes": ", ",
    "define": "\n",
}  # fields whose value may be a list, and its joint
NESTING = 8  # of lists and maps in each other; a claim needs five
NODES = 40 * CLAIMS  # of one file, or a long list of nothing would take half a minute


class _Nodes(yaml.SafeLoader):
    """The safe loader up to nodes, which hold the text of every scalar; objects are never made."""

    nesting = nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        event = self.peek_event()
        place = _place(event)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise Misread("YAML anchors and aliases are not read", *place)
        if event.tag is not None:
            raise Misread("YAML tags are not read", *place)
        if self.nesting > NESTING:
            raise Misread(f"nested deeper than {NESTING}", *place)
        if self.nodes > NODES:
            raise Misread(f"more than {NODES:,} values", *place)
        self.nodes += 1
        self.nesting += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.nesting -= 1


def entries(text: str) -> list[Entry]:
    r"""The claims of a file, or Misread.

    >>> entries("claims:\n  - {id: half, assert: 1/2 == 0.50}")[0][:3]
    (2, 'half', 'assert: 1/2 == 0.50')
    """
    try:
        root = _Nodes(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        place = (mark.line + 1, mark.column + 1) if mark else (1, 1)
        raise Misread(f"no YAML: {error.problem}", *place) from None
    except yaml.YAMLError as error:
        raise Misread(f"no YAML: {str(error).splitlines()[0]}", 1) from None
    content = _mapping(root, "the file")
    if set(content) != {"claims"} or not isinstance(content["claims"], yaml.SequenceNode):
        raise Misread("the file must be one list, claims:, and nothing else", 1)
    written = _Written(text)
    return [_entry(node, written) for node in content["claims"].value]


def _entry(node: yaml.Node, written: "_Written") -> Entry:
    id, fields = "", []
    try:
        content = _mapping(node, "a claim")
        id = _scalar(content.pop("id")) if "id" in content else ""
        keys = {_scalar(key): key for key, _ in node.value}
        for name, value in content.items():
            fields += [("\n", None)] if fields else []
            fields += _field(name, keys[name], value)
    except Misread as reason:
        return Entry(reason.line, id, "", str(reason), reason.column)
    text = "".join(piece for piece, _ in fields)
    line, column = _place(node)
    return Entry(line, id, text, "", column, tuple(written.spans(fields)))


Piece = tuple[str, yaml.Node | None]  # a part of a claim's text, and where it comes from


def _field(name: str, key: yaml.Node, node: yaml.Node) -> list[Piece]:
    """One field in the claim's own language; `define` holds definitions, which have no field there."""
    if not FIELD.fullmatch(name):
        raise Misread(f"a field is a word in small letters; got {name!r}", *_place(key))
    head: list[Piece] = [] if name == "define" else [(name, key), (": ", None)]
    if not (isinstance(node, yaml.SequenceNode) and name in LISTS):
        return [*head, (_flow(node, _scalar), node)]
    for number, item in enumerate(node.value):
        head += [(LISTS[name], None)] if number else []
        head.append((_scalar(item), item))
    return head


class _Written:
    """The text of a file, where the words of its claims are found again."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._starts = [0, *(match.end() for match in LINE_END.finditer(text))]

    def spans(self, pieces: list[Piece]) -> Iterator[Span]:
        """One for each node, and one for each word of a scalar."""
        line, column = 1, 1
        for text, node in pieces:
            if node is not None:
                yield Span(line, column, *_place(node))
            if isinstance(node, yaml.ScalarNode):
                yield from self._words(text, node, line, column)
            line, column = (line + 1, 1) if text == "\n" else (line, column + len(text))

    def _words(self, text: str, node: Any, line: int, column: int) -> Iterator[Span]:
        at = node.start_mark.index
        for match in re.finditer(r"\S+", text):
            found = self._text.find(match.group(), at, node.end_mark.index)
            if found < 0:  # written with an escape
                return
            row = bisect_right(self._starts, found)
            yield Span(line, column + match.start(), row, found - self._starts[row - 1] + 1)
            at = found + len(match.group())


def _place(node: Any) -> tuple[int, int]:
    return node.start_mark.line + 1, node.start_mark.column + 1


def _flow(node: yaml.Node, scalar: Callable[[yaml.Node], str]) -> str:
    """A value on one line: [a, b] and {a: b} as claims write them."""
    if isinstance(node, yaml.SequenceNode):
        return f"[{', '.join(_flow(item, _quoted) for item in node.value)}]"
    if isinstance(node, yaml.MappingNode):
        content = _mapping(node, "a map")
        return f"{{{', '.join(f'{name}: {_flow(value, _quoted)}' for name, value in content.items())}}}"
    return scalar(node)


def _mapping(node: yaml.Node | None, what: str) -> dict[str, yaml.Node]:
    if not isinstance(node, yaml.MappingNode):
        raise Misread(f"{what} must be a map of names and values", *(_place(node) if node else (1, 1)))
    content: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = _scalar(key)
        if name in content:
            raise Misread(f"{name!r} is given twice", *_place(key))
        content[name] = value
    return content


def _scalar(node: yaml.Node) -> str:
    """The text as it is written, on one line, so that no value can pass for a field of its own."""
    if not isinstance(node, yaml.ScalarNode):
        raise Misread("expected text or a number here", *_place(node))
    return " ".join(node.value.split())


def _quoted(node: yaml.Node) -> str:
    text = _scalar(node)
    if '"' in text:
        raise Misread("a quotation mark inside a map or a list", *_place(node))
    return f'"{text}"' if re.search("[{}:,]", text) else text
