"""A YAML file with a list `claims:`, read as text: what is written is what is checked, and nothing is constructed.

Tags, anchors, aliases, merge keys and duplicate keys are refused, and a number keeps its digits: 85.1 is not a float.
"""

import re
from collections.abc import Callable
from typing import Any

import yaml

from likewise.claims.language.limits import CLAIMS
from likewise.claims.stated import Entry, Misread

FIELD = re.compile(r"[a-z]+")
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
        line = event.start_mark.line + 1
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            raise Misread("YAML anchors and aliases are not read", line)
        if event.tag is not None:
            raise Misread("YAML tags are not read", line)
        if self.nesting > NESTING:
            raise Misread(f"nested deeper than {NESTING}", line)
        if self.nodes > NODES:
            raise Misread(f"more than {NODES:,} values", line)
        self.nodes += 1
        self.nesting += 1
        try:
            return super().compose_node(parent, index)
        finally:
            self.nesting -= 1


def entries(text: str) -> list[Entry]:
    r"""The claims of a file, or Misread.

    >>> entries("claims:\n  - {id: half, assert: 1/2 == 0.50}")
    [Entry(line=2, id='half', text='assert: 1/2 == 0.50', error='')]
    """
    try:
        root = _Nodes(text).get_single_node()
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise Misread(f"no YAML: {error.problem}", line) from None
    except yaml.YAMLError as error:
        raise Misread(f"no YAML: {str(error).splitlines()[0]}", 1) from None
    content = _mapping(root, "the file")
    if set(content) != {"claims"} or not isinstance(content["claims"], yaml.SequenceNode):
        raise Misread("the file must be one list, claims:, and nothing else", 1)
    return [_entry(node) for node in content["claims"].value]


def _entry(node: yaml.Node) -> Entry:
    id = ""
    try:
        content = _mapping(node, "a claim")
        id = _scalar(content.pop("id")) if "id" in content else ""
        text = "\n".join(_line(name, value) for name, value in content.items())
    except Misread as reason:
        return Entry(reason.line, id, "", str(reason))
    return Entry(node.start_mark.line + 1, id, text)


def _line(name: str, node: yaml.Node) -> str:
    """One field in the claim's own language; `define` holds definitions, which have no field there."""
    if not FIELD.fullmatch(name):
        raise Misread(f"a field is a word in small letters; got {name!r}", node.start_mark.line + 1)
    listed = isinstance(node, yaml.SequenceNode) and name in LISTS
    value = LISTS[name].join(map(_scalar, node.value)) if listed else _flow(node, _scalar)
    return value if name == "define" else f"{name}: {value}"


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
        raise Misread(f"{what} must be a map of names and values", node.start_mark.line + 1 if node else 1)
    content: dict[str, yaml.Node] = {}
    for key, value in node.value:
        name = _scalar(key)
        if name in content:
            raise Misread(f"{name!r} is given twice", key.start_mark.line + 1)
        content[name] = value
    return content


def _scalar(node: yaml.Node) -> str:
    """The text as it is written, on one line, so that no value can pass for a field of its own."""
    if not isinstance(node, yaml.ScalarNode):
        raise Misread("expected text or a number here", node.start_mark.line + 1)
    return " ".join(node.value.split())


def _quoted(node: yaml.Node) -> str:
    text = _scalar(node)
    if '"' in text:
        raise Misread("a quotation mark inside a map or a list", node.start_mark.line + 1)
    return f'"{text}"' if re.search("[{}:,]", text) else text
