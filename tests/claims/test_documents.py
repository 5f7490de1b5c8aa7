"""Claims are found where they stand, as they are written, and what is wrong with a file is said of the file."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from likewise.claims.documents import (
    claims_at,
    file_claims,
    markdown_claims,
    module_claims,
    python_claims,
    yaml_claims,
)
from likewise.claims.language.limits import CLAIMS, DOCUMENT
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unparsed
from likewise.claims.stated import ClaimSource
from likewise.text import printable

TRUE = "assert: 1 == 1"


def places(claims: list[ClaimSource]) -> list[tuple[str, int]]:
    return [(claim.id, claim.line) for claim in claims]


def errors(claims: list[ClaimSource]) -> list[tuple[int, str]]:
    return [(claim.line, claim.error) for claim in claims if claim.error]


def test_fences_are_found_with_their_lines() -> None:
    page = """\
    # Title

    ```claim first
    assert: 1 == 1
    ```

    ~~~ claim
    assert: 2 == 2
    ~~~

    1. In a list

       ```claim listed
       given: x in R
       assert: x == x
       ```

    > ```claim   quoted
    > assert: 3 == 3
    > ```

    ```python
    claim = 1
    ```
    """
    claims = markdown_claims(textwrap.dedent(page))
    assert places(claims) == [("first", 3), ("claim-2", 7), ("listed", 13), ("quoted", 18)]
    assert [claim.text for claim in claims] == [
        "assert: 1 == 1\n",
        "assert: 2 == 2\n",
        "given: x in R\nassert: x == x\n",
        "assert: 3 == 3\n",
    ]
    assert errors(claims) == []


def test_a_fence_inside_a_longer_fence_is_an_example() -> None:
    page = f"````md\n```claim shown\n{TRUE}\n```\n````\n~~~~\n~~~claim shown\n~~~\n~~~~\n    ```claim indented\n"
    assert markdown_claims(page) == []


def test_a_fence_ends_with_its_own_sign() -> None:
    [claim] = markdown_claims(f"```claim a\n~~~\n{TRUE}\n```\n")
    assert claim.text == f"~~~\n{TRUE}\n"


def test_windows_line_ends_and_a_byte_order_mark_change_nothing(tmp_path: Path) -> None:
    path = tmp_path / "page.md"
    path.write_bytes(f"```claim a\r\n{TRUE}\r\n```\r\n".encode("utf-8-sig"))
    assert file_claims(path) == [ClaimSource("a", f"{TRUE}\n", 1, str(path))]


@pytest.mark.parametrize("info", ["Claim a", "claim: a", "CLAIM", "claim{a}", "claim-a"])
def test_what_nearly_is_a_claim_is_not_passed_over(info: str) -> None:
    [claim] = markdown_claims(f"```{info}\n{TRUE}\n```")
    assert claim.error == f"a claim's fence begins with 'claim <id>'; got {info!r}"


@pytest.mark.parametrize("info", ["claims", "claimant a", "python claim", "", "text"])
def test_other_fences_are_no_claims(info: str) -> None:
    assert markdown_claims(f"```{info}\n{TRUE}\n```") == []


def test_an_id_is_given_once() -> None:
    page = f"```claim a\n{TRUE}\n```\n" * 2
    assert errors(markdown_claims(page)) == [(4, "the id a is given twice")]
    page = f"```claim claim-2\n{TRUE}\n```\n```claim\n{TRUE}\n```\n"
    assert errors(markdown_claims(page)) == [(4, "the id claim-2 is given twice")]


@pytest.mark.parametrize("id", ["a b", "a\x1b[31m", "<b>", "-a", "é", "a" * 65, "a/b", "&#x202e;"])
def test_an_id_is_plain(id: str) -> None:
    [claim] = markdown_claims(f"~~~claim {id}\n{TRUE}\n~~~")
    assert claim.id == "claim-1"
    assert claim.error.startswith("an id is made of letters, digits, '.', '_' and '-'; got ")
    assert claim.error.isprintable()


def test_the_number_of_claims_is_bounded() -> None:
    fence = f"```claim\n{TRUE}\n```\n"
    assert len(markdown_claims(fence * CLAIMS)) == CLAIMS
    claims = markdown_claims(fence * (CLAIMS + 2))
    assert len(claims) == CLAIMS + 1
    assert errors(claims) == [(3 * CLAIMS + 1, "more than 500 claims in one file; the rest was not read")]
    listed = yaml_claims("claims:\n" + "- assert: 1 == 1\n" * (CLAIMS + 2))
    assert errors(listed) == [(CLAIMS + 2, "more than 500 claims in one file; the rest was not read")]


def test_a_long_document_is_not_read() -> None:
    page = f"```claim a\n{TRUE}\n```\n".ljust(DOCUMENT)
    assert errors(markdown_claims(page)) == []
    assert markdown_claims(page + " ") == [ClaimSource("document", "", 1, "", "longer than 1,000,000 characters")]


@given(
    st.lists(st.sampled_from(["```claim a\n", "~~~claim\n", "```\n", "> ", "- ", "    ", "text\n", "\x00", "`", "1. "]))
)
def test_every_claim_of_a_page_begins_on_its_line(parts: list[str]) -> None:
    page = "".join(parts)
    for claim in markdown_claims(page):
        assert "claim" in page.splitlines()[claim.line - 1]


# YAML


def test_a_list_says_what_a_fence_says() -> None:
    claims = yaml_claims("""\
claims:
  - id: facenet-60
    source:
      title: FaceNet
      place: Table 6, row 2
      cells: {a: 85.1, b: 76.30}
    assert: (a - b)/(100 - b) == 0.60 within 0.01
    expect: refuted
  - given: [q, k in R^D, "s in R"]
    assume:
      - s > 0
      - s < 1e+3
    define: phi(x) = [1, sqrt(2)*x, x*x]
    assert: >
      dot(phi(q), phi(k))
      == (dot(q, k) + 1)^2
  - of: attention.softmax
    sizes: [N, D, M]
    bounded: [-0.234, 0.995]
    unit: mac
    assert: cost == N^2*D + N^2*M
""")
    assert [claim.text for claim in claims] == [
        'source: {title: FaceNet, place: "Table 6, row 2", cells: {a: 85.1, b: 76.30}}\n'
        "assert: (a - b)/(100 - b) == 0.60 within 0.01\nexpect: refuted",
        "given: q; k in R^D; s in R\nassume: s > 0; s < 1e+3\nphi(x) = [1, sqrt(2)*x, x*x]\n"
        "assert: dot(phi(q), phi(k)) == (dot(q, k) + 1)^2",
        "of: attention.softmax\nsizes: N, D, M\nbounded: [-0.234, 0.995]\nunit: mac\nassert: cost == N^2*D + N^2*M",
    ]
    assert places(claims) == [("facenet-60", 2), ("claim-2", 9), ("claim-3", 17)]
    source = parse(claims[0].text).source
    assert source is not None
    assert source.place == "Table 6, row 2"
    assert [cell.decimals for _, cell in source.cells] == [1, 2]
    assert parse(claims[2].text).unit == "mac"


def test_numbers_keep_their_digits() -> None:
    [claim] = yaml_claims("claims: [{row: 0017, alpha: 1e-6, assert: 0x10 == 1_0 , note: yes}]")
    assert claim.text == "row: 0017\nalpha: 1e-6\nassert: 0x10 == 1_0\nnote: yes"


BOMB = "claims: &a [" + "*a, " * 10 + "]"
WRONG = {
    "claims:\n- assert: !!python/object/apply:os.system [ls]": "YAML tags are not read",
    "claims:\n- assert: !!str x": "YAML tags are not read",
    "claims:\n- assert: ! x": "YAML tags are not read",
    "claims: &a\n- assert: 1 == 1": "YAML anchors and aliases are not read",
    "claims:\n- {assert: *a}": "YAML anchors and aliases are not read",
    BOMB: "YAML anchors and aliases are not read",
    "claims: " + "[" * 100_000: "nested deeper than 8",
    "claims: " + "{a: " * 1_000 + "}" * 1_000: "nested deeper than 8",
    "claims: [" + "a, " * 100_000 + "]": "more than 20,000 values",
    "claims: []\nclaims: []": "'claims' is given twice",
    "claim: []": "the file must be one list, claims:, and nothing else",
    "claims: []\nother: 1": "the file must be one list, claims:, and nothing else",
    "claims: {a: b}": "the file must be one list, claims:, and nothing else",
    "- assert: 1 == 1": "the file must be a map of names and values",
    "": "the file must be a map of names and values",
    "claims: [": "no YAML: expected the node content, but found '<stream end>'",
    "a: 1\n---\nb: 2": "no YAML: but found another document",
    "claims: \x1b[31m": "no YAML: unacceptable character #x001b: special characters are not allowed",
}


@pytest.mark.parametrize("text", WRONG)
def test_a_wrong_file_is_one_claim_with_a_reason(text: str) -> None:
    [claim] = yaml_claims(text)
    assert (claim.id, claim.text, claim.error) == ("document", "", WRONG[text])


@pytest.mark.parametrize(
    ("entry", "line", "error"),
    [
        ("{assert: 1 == 1, assert: 2 == 2}", 2, "'assert' is given twice"),
        ("{source: {a: 1,\n    a: 2}}", 3, "'a' is given twice"),
        ("{<<: {assert: 1 == 1}}", 2, "a field is a word in small letters; got '<<'"),
        ("{phi(x): 2*x}", 2, "a field is a word in small letters; got 'phi(x)'"),
        ('{"assert: 1 == 1\\nexpect": x}', 2, "a field is a word in small letters; got 'assert: 1 == 1 expect'"),
        ("{given: [q, [k]]}", 2, "expected text or a number here"),
        ("{[a]: b}", 2, "expected text or a number here"),
        ("{source: {title: 'a\"b'}}", 2, "a quotation mark inside a map or a list"),
        ("just text", 2, "a claim must be a map of names and values"),
    ],
)
def test_a_wrong_entry_leaves_the_others(entry: str, line: int, error: str) -> None:
    wrong, right = yaml_claims(f"claims:\n  - {entry}\n  - {{id: right, assert: 1 == 1}}")
    assert (wrong.line, wrong.error) == (line, error)
    assert (right.id, right.text, right.error) == ("right", TRUE, "")


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"])
def test_a_value_cannot_pass_for_a_field(end: str) -> None:
    escaped = "".join(f"\\u{ord(sign):04x}" for sign in end)
    [claim] = yaml_claims(f'claims: [{{assert: "1 == 2{escaped}expect: refuted"}}]')
    assert claim.text == "assert: 1 == 2 expect: refuted"


# Python

SOURCE = '''\
"""Module.

```claim module
assert: 1 == 1
```
"""

class Thing:
    """Class.

    - listed

      ```claim listed
      given: x in R
        ; y in R
      assert: x == x
      ```
    """

    async def method(self):
        r"""```claim
        assert: 2 == 2
        ```"""

def plain():
    "no claim"
    x = """
    ```claim no_docstring
    assert: 3 == 3
    ```
    """
raise SystemExit("this was run")
'''


def test_docstrings_hold_claims() -> None:
    claims = python_claims(SOURCE)
    assert places(claims) == [("module", 3), ("listed", 13), ("claim-3", 21)]
    assert claims[1].text == "given: x in R\n  ; y in R\nassert: x == x\n"


@pytest.mark.parametrize("text", ["def f(:", "x = '\0'", "(" * 10_000, "-" * 100_000 + "1", "1" + "+1" * 50_000])
def test_what_is_no_python_is_said(text: str) -> None:
    [claim] = python_claims(text)
    assert claim.error.startswith("no Python: ")


def test_an_odd_escape_in_a_source_is_no_warning() -> None:
    assert python_claims("x = '\\d'") == []


def test_a_package_is_read_and_not_imported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inner = tmp_path / "unimported" / "inner"
    inner.mkdir(parents=True)
    for folder in (inner.parent, inner):
        (folder / "__init__.py").write_text("raise SystemExit('this was imported')")
    (inner / "b.py").write_text(SOURCE)
    (inner / "a.py").write_text(f'"""```claim a\n{TRUE}\n```"""')
    monkeypatch.chdir(tmp_path)
    assert [(claim.id, Path(claim.file).name) for claim in module_claims("unimported")] == [
        ("a", "a.py"),
        ("module", "b.py"),
        ("listed", "b.py"),
        ("claim-3", "b.py"),
    ]
    assert [claim.id for claim in claims_at("unimported.inner.a")] == ["a"]
    assert "unimported" not in sys.modules


def test_a_room_is_found_without_importing_it() -> None:
    code = "from likewise.claims.documents import module_claims; import sys; module_claims('likewise.attention')\n"
    code += "assert 'likewise.attention' not in sys.modules and 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("name", ["absent.md", "absent", "likewise.absent", "sys", "likewise..claims", "../x", ""])
def test_what_is_not_there_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match=r"^check: file must (exist, or be the name of|be a file or)"):
        claims_at(name)


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "page.html").write_text("")
    (tmp_path / "page.md").write_bytes(b"\xff\xfe")
    with pytest.raises(ValueError, match=r"^check: file must end in .md, .markdown, .txt, .yaml, .yml, .py; got"):
        claims_at(str(tmp_path / "page.html"))
    with pytest.raises(ValueError, match=r"^check: file must be text in UTF-8; got"):
        claims_at(str(tmp_path / "page.md"))
    with pytest.raises(ValueError, match=r"^check: file must be a file or the name of a module; got the folder"):
        claims_at(str(tmp_path))


# Places


def place(claim: ClaimSource) -> tuple[int, int]:
    """Where in its file the parser stops."""
    with pytest.raises(Unparsed) as refusal:
        parse(claim.text)
    assert refusal.value.place is not None
    return claim.place(refusal.value.place)


TYPO = "given: x in R\n{0}assert: x +\n{0}   oops == x\n"


@pytest.mark.parametrize(
    ("page", "found"),
    [
        ("```claim a\n" + TYPO.format("") + "```", (4, 4)),
        ("> - one\n>\n>   ```claim a\n>   " + TYPO.format(">   ") + ">   ```", (6, 8)),
        ("text\r\n\r\n  ```claim a\r\n  " + TYPO.format("  ").replace("\n", "\r\n") + "  ```", (6, 6)),
    ],
)
def test_a_place_in_a_fence_is_one_of_the_page(page: str, found: tuple[int, int]) -> None:
    [claim] = markdown_claims(page)
    assert place(claim) == found


def test_a_place_in_a_docstring_is_one_of_the_source() -> None:
    [claim] = python_claims(
        'x = 1\n\ndef f():\n    """F.\n\n    ```claim a\n    ' + TYPO.format("    ") + '    ```\n    """\n'
    )
    assert place(claim) == (9, 8)


@pytest.mark.parametrize(
    ("entry", "found"),
    [
        ("  - {id: a, given: x in R, assert: x == oops}", (2, 41)),
        ("  - id: a\n    given: [x in R, y in R]\n    assert: x\n      + y ==\n      x + oops", (6, 11)),
        ("  - id: a\n    given: x in R\n    assert: 'x ==  oops'", (4, 20)),
        ("  - id: a\n    given: x in R\n    assert: >\n      x ==\n      oops", (6, 7)),
        ("  - id: a\n    given: [x in R, y in]\n    assert: x == y", (3, 25)),
        ("  - id: a\n    define: [f(x) = x, g(x) = oops(x)]\n    assert: f(1) == 1", (3, 31)),
        ("  - id: a\n    givn: x in R\n    assert: 1 == 1", (3, 5)),
        ('  - {id: a, assert: "\\u0031 == oops"}', (2, 21)),
    ],
)
def test_a_place_in_a_list_is_one_of_the_file(entry: str, found: tuple[int, int]) -> None:
    [claim] = yaml_claims(f"claims:\n{entry}\n")
    line, column = place(claim)
    assert (line, column) == found or "\\u" in entry  # behind an escape the column is that of the value's beginning
    assert line == found[0]


@pytest.mark.slow
@given(st.text())
def test_printable_text_is_printable(text: str) -> None:
    assert printable(text).isprintable()
    assert (printable(text) == text) is text.isprintable()


def test_what_a_terminal_obeys_is_written_out() -> None:
    assert printable("\x1b[2J\x07\r\n\x9b1m\u202e\u200b\ud800") == r"\x1b[2J\x07\r\n\x9b1m\u202e\u200b\ud800"
