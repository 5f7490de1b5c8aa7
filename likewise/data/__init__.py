"""Files to batches: folders of identities, LFW, the MNIST family, CIFAR-10 and scikit-learn's digits."""

# ruff: noqa: E402  without torch, this is the first line that fails
from likewise.checks import require_package

require_package("likewise.data", "torch")

from likewise.data.arrays import cifar10, digits, idx
from likewise.data.batches import Augmentation, Batch, Batches, Preparation, Shuffled, held, in_order
from likewise.data.examples import Examples, Origin, Skipped, Source, Stored, examples
from likewise.data.files import folders
from likewise.data.lfw import Pair, Protocol, lfw, lfw_protocol, pair_rows
from likewise.data.opening import Halves, find_halves, has_halves, is_lfw, open_examples, open_halves
from likewise.data.pair_lists import PairList, read_pairs
from likewise.data.pictures import Unreadable, decode

__all__ = [
    "Augmentation",
    "Batch",
    "Batches",
    "Examples",
    "Halves",
    "Origin",
    "Pair",
    "PairList",
    "Preparation",
    "Protocol",
    "Shuffled",
    "Skipped",
    "Source",
    "Stored",
    "Unreadable",
    "cifar10",
    "decode",
    "digits",
    "examples",
    "find_halves",
    "folders",
    "has_halves",
    "held",
    "idx",
    "in_order",
    "is_lfw",
    "lfw",
    "lfw_protocol",
    "open_examples",
    "open_halves",
    "pair_rows",
    "read_pairs",
]
