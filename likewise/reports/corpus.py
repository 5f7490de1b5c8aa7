"""Text and images that come with the installed packages: Python's own documentation strings, scikit-learn's digits."""

import ast
import os
from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float, Int
from torch import Generator, Tensor

from likewise.checks import require

LIBRARY = Path(os.__file__).parent
FOREIGN = {"site-packages", "dist-packages", "test", "tests", "__pycache__"}  # not the library's own, or no prose
HELD_OUT = 10  # every tenth file is kept from training


@dataclass(frozen=True)
class Text:
    """Bytes to learn from and bytes to be judged by, of different files."""

    train: Int[Tensor, " n"]
    test: Int[Tensor, " m"]
    files: int


@dataclass(frozen=True)
class Images:
    """Digits to learn from and digits to be judged by; pixels from -1 (paper) to 1 (ink)."""

    train: Float[Tensor, "n 1 8 8"]
    train_labels: Int[Tensor, " n"]
    test: Float[Tensor, "m 1 8 8"]
    test_labels: Int[Tensor, " m"]


def library_text(folder: Path = LIBRARY) -> Text:
    """The documentation strings of every Python file below a folder, read and never run, in the order of file names."""
    files = sorted(path for path in folder.rglob("*.py") if not FOREIGN & set(path.relative_to(folder).parts[:-1]))
    texts = [text for text in (docstrings(path.read_text("utf-8", "replace")) for path in files) if text]
    require(len(texts) > 1, "library_text", "folder", "hold two documented Python files or more", len(texts))
    test = [text for number, text in enumerate(texts) if number % HELD_OUT == 0]
    train = [text for number, text in enumerate(texts) if number % HELD_OUT != 0]
    return Text(_bytes(train), _bytes(test), len(texts))


def docstrings(source: str) -> str:
    r"""The documentation strings of a module, its classes and its functions, an empty line between them.

    >>> docstrings("'''Over.'''\ndef f():\n    '''Under.'''\n")
    'Over.\n\nUnder.'
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError):  # a file of another Python, or a sample of a bad one
        return ""
    documented = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    found = [ast.get_docstring(node) for node in ast.walk(tree) if isinstance(node, documented)]
    return "\n\n".join(text for text in found if text)


def digit_images(*, held_out: int, generator: Generator) -> Images:
    """scikit-learn's 1,797 digits in a drawn order, the last of them held out."""
    from sklearn.datasets import load_digits

    pixels, labels = (torch.from_numpy(array) for array in load_digits(return_X_y=True))
    rule = f"be below the number of images, {len(labels)}"
    require(0 < held_out < len(labels), "digit_images", "held_out", rule, held_out)
    order = torch.randperm(len(labels), generator=generator)
    images, labels = (pixels / 8 - 1).float().view(-1, 1, 8, 8)[order], labels[order].long()
    return Images(images[:-held_out], labels[:-held_out], images[-held_out:], labels[-held_out:])


def _bytes(texts: list[str]) -> Int[Tensor, " n"]:
    return torch.frombuffer(bytearray("\n\n".join(texts), "utf-8"), dtype=torch.uint8).long()
