"""A notebook and the text it is paired with hold the same cells."""

import json

from tests.house import guards

TEXTS = sorted((guards.ROOT / "notebooks").glob("*.py"))


def cells_of_text(text: str) -> list[tuple[str, str]]:
    """Kind and source of each cell of a percent script."""
    cells = []
    for block in text.split("\n# %%")[1:]:
        head, _, body = block.partition("\n")
        if head.strip() == "[markdown]":
            lines = [line.removeprefix("#").removeprefix(" ") for line in body.strip("\n").splitlines()]
            cells.append(("markdown", "\n".join(lines)))
        else:
            cells.append(("code", body.strip("\n")))
    return cells


def test_there_are_five() -> None:
    assert len(TEXTS) == 5


def test_each_is_paired_with_its_text_and_shows_outputs() -> None:
    for text in TEXTS:
        notebook = json.loads(text.with_suffix(".ipynb").read_text(encoding="utf-8"))
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
        assert cells == cells_of_text(text.read_text(encoding="utf-8")), text.name
        outputs = [output for cell in notebook["cells"] for output in cell.get("outputs", ())]
        assert outputs, text.name
        assert all(output["output_type"] != "error" for output in outputs), text.name
