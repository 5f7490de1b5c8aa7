"""Files to batches: folders of identities, LFW, the MNIST family, CIFAR-10 and scikit-learn's digits."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.data", "torch")

from likewise.data.arrays import digits
from likewise.data.batches import Batch, Batches, Preparation, held
from likewise.data.examples import Examples, Skipped, Source
from likewise.data.files import folders
from likewise.data.lfw import lfw
from likewise.data.opening import find_halves, open_examples, open_halves
from likewise.data.pictures import Unreadable, decode

__all__ = [
    "Batch",
    "Batches",
    "Examples",
    "Preparation",
    "Skipped",
    "Source",
    "Unreadable",
    "decode",
    "digits",
    "find_halves",
    "folders",
    "held",
    "lfw",
    "open_examples",
    "open_halves",
]
