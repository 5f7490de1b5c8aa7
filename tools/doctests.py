"""An extension of griffe for the documentation site: examples and claims in docstrings become blocks of code."""

import re
import runpy
from pathlib import Path

import griffe  # comes with `make docs`

titled = runpy.run_path(str(Path(__file__).with_name("site.py")))["titled"]  # griffe loads this file by its path
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", flags=re.MULTILINE)


def fenced(text: str) -> str:
    r"""A docstring with a fence around every example.

    >>> print(fenced("Adds.\n\n>>> 1 + 1\n2\n\nAlways."))
    Adds.
    <BLANKLINE>
    ```pycon
    >>> 1 + 1
    2
    ```
    <BLANKLINE>
    Always.
    """
    return EXAMPLE.sub(lambda block: f"```pycon\n{block[0]}\n```", text)


class Doctests(griffe.Extension):
    """What griffe calls for every docstring that it reads."""

    def on_instance(self, *, obj: griffe.Object, **kwargs: object) -> None:
        if obj.docstring is not None:
            obj.docstring.value = titled(fenced(obj.docstring.value))
