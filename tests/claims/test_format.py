"""format.md names every function and program, and what it says of numbers is so."""

from pathlib import Path

import pytest

from likewise.claims import checking, engines
from likewise.claims.language.parser import parse
from likewise.claims.language.tree import FUNCTIONS, RESERVED
from likewise.claims.registry import load_programs, programs

TEXT = Path(checking.__file__).with_name("format.md").read_text()


def test_every_function_and_reserved_name_is_explained() -> None:
    missing = [name for name in sorted(FUNCTIONS | RESERVED) if f"`{name}" not in TEXT and f" {name}" not in TEXT]
    assert missing == []


def test_every_program_is_listed_with_its_sizes() -> None:
    load_programs()
    rows = [line for line in TEXT.partition("## Programs")[2].splitlines() if line.startswith("| ")]
    for name, program in programs().items():
        [row] = [row for row in rows if name in row.split("|")[1].replace(" ", "").split(",")]
        said = row.split("|")[2]
        assert all(f"{size} " in f"{said} ".replace(",", " ") for size in program.sizes), (name, said)


@pytest.mark.parametrize(
    ("relation", "wanted"),
    [
        ("max([1, 5], [4, 2]) == [4, 5]", "holds"),
        ("0^0 == 1", "holds"),
        ("pairs([2, 3, 5]) == [6, 10, 15]", "holds"),
        ("choose(5, 2) == 10", "holds"),
        ("vec([[1, 2], [3, 4]]) == [1, 2, 3, 4]", "holds"),
        ('einsum("ij,jk->ik", [[1, 2], [3, 4]], [[1], [1]]) == [[3], [7]]', "holds"),
        ("[1, 2][2] == 2", "holds"),
        ("[[1, 2], [3, 4]]' == [[1, 3], [2, 4]]", "holds"),
        ("[1, 2] != [1, 3]", "holds"),
        ("[1, 2] < [2, 2]", "refuted"),
        ("sum([1, 2])/0 == 3", "refuted"),
        ("softmax([0, 0]) == [1/2, 1/2]", "holds"),
        ("outer([1, 2], [3, 4]) == [[3, 4], [6, 8]]", "holds"),
        ("mean([[1, 2], [3, 6]]) == 3", "holds"),
        ("norm([[3, 0], [0, 4]]) == 5", "holds"),
        ("[[1, 2], [3, 4]] + [10, 20] == [[11, 22], [13, 24]]", "holds"),
    ],
)
def test_its_meanings_are_those_of_the_engines(relation: str, wanted: str) -> None:
    assert engines.decide(parse(f"assert: {relation}")).verdict == wanted
