"""Execute the notebooks of `notebooks` and write each beside its text: `make notebooks`.

A notebook is paired with a Python file (jupytext, percent format): the text is what people edit, the .ipynb holds its
outputs. Only text outputs are kept, without numbers of execution, so that a second run changes what is measured only.
"""

import sys
from pathlib import Path

import jupytext
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "notebooks"
SECONDS = 600


def main() -> None:
    """Execute all, or those named."""
    for text in [Path(name) for name in sys.argv[1:]] or sorted(FOLDER.glob("*.py")):
        notebook = jupytext.read(text)
        for number, cell in enumerate(notebook.cells):
            cell["id"] = f"{text.stem}-{number}"
        NotebookClient(notebook, timeout=SECONDS, kernel_name="python3", record_timing=False).execute()
        for cell in notebook.cells:
            if cell.cell_type == "code":
                cell.execution_count = None
                for output in cell.outputs:
                    output.pop("execution_count", None)
        notebook.metadata.pop("language_info", None)
        jupytext.write(notebook, text.with_suffix(".ipynb"), fmt="ipynb")
        print(text.with_suffix(".ipynb").name, flush=True)


if __name__ == "__main__":
    main()
