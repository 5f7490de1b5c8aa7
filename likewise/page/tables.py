"""Wide tables on narrow screens: every cell names its column, so that the style sheet can stack the cells of a row."""

import re

FEW = 3  # columns that fit beside each other on a phone
TABLE = re.compile(r"<table(?P<attributes>[^>]*)>(?P<inside>.*?)</table>", re.DOTALL)
HEAD = re.compile(r"<thead>(.*?)</thead>", re.DOTALL)
ROW = re.compile(r"(<tr[^>]*>)(.*?)(</tr>)", re.DOTALL)
REFS = re.compile(r'<span class="refs">.*?</span>', re.DOTALL)  # links beside a formula are no part of a heading
CELL = re.compile(r"<(?P<tag>t[dh])(?P<attributes>[^>]*)>")
HEADING = re.compile(r"<th([^>]*)>(.*?)</th>", re.DOTALL)


def with_column_names(page: str) -> str:
    """The page with `data-column` on the cells of every table of more than FEW columns, and the class `stack` on these.

    >>> heads = "".join(f"<th>{name}</th>" for name in "abcde")
    >>> row = "<tr><th>1</th>" + "<td>2</td>" * 4 + "</tr>"
    >>> found = with_column_names(f"<table><thead><tr>{heads}</tr></thead><tbody>{row}</tbody></table>")
    >>> found.startswith('<table class="stack"><thead>'), found.count('<td data-column="e">2</td>')
    (True, 1)
    """
    return TABLE.sub(_table, page)


def _table(found: re.Match[str]) -> str:
    attributes, inside = found["attributes"], found["inside"]
    head = HEAD.search(inside)
    names = [] if head is None else _names(head[1])
    if len(names) <= FEW or "class=" in attributes:  # those with a class have a layout of their own
        return found[0]
    start, body, rest = inside.partition("<tbody>")
    rows = ROW.sub(lambda row: row[1] + _cells(row[2], names) + row[3], rest)
    return f'<table class="stack"{attributes}>{start}{body}{rows}</table>'


def _names(head: str) -> list[str]:
    """The headings over every column, joined where one stands over another.

    >>> _names('<tr><th rowspan="2">a</th><th colspan="2">b</th></tr><tr><th>c</th><th>d <i>e</i></th></tr>')
    ['a', 'b, c', 'b, d e']
    """
    found: dict[int, list[str]] = {}
    taken: set[tuple[int, int]] = set()
    for number, (_, cells, _) in enumerate(ROW.findall(head)):
        column = 0
        for attributes, text in HEADING.findall(cells):
            while (number, column) in taken:
                column += 1
            plain = " ".join(re.sub(r"<[^>]*>", "", REFS.sub("", text)).split()).replace('"', "&quot;")
            wide, deep = _span(attributes, "col"), _span(attributes, "row")
            for place in range(column, column + wide):
                taken |= {(number + row, place) for row in range(deep)}
                found.setdefault(place, []).append(plain)
            column += wide
    return [", ".join(filter(None, found[place])) for place in sorted(found)]


def _cells(row: str, names: list[str]) -> str:
    column = 0

    def named(cell: re.Match[str]) -> str:
        nonlocal column
        name = names[column] if column < len(names) and cell["tag"] == "td" else ""
        column += _span(cell["attributes"], "col")
        return f'<{cell["tag"]}{cell["attributes"]} data-column="{name}">' if name else cell[0]

    return CELL.sub(named, row)


def _span(attributes: str, kind: str) -> int:
    found = re.search(rf'{kind}span="(\d+)"', attributes)
    return int(found[1]) if found else 1
