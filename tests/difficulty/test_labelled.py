"""Whatever the data come in, they are read in one order, and what cannot be is refused."""

import re
from typing import Any

import numpy
import pytest
import torch
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, IterableDataset, TensorDataset

from likewise.data import Preparation, Unreadable
from likewise.data.examples import Stored, examples
from likewise.difficulty import labelled, prediction_depth
from likewise.difficulty.labelled import Digest
from tests.difficulty.problems import TEST, TRAIN, fitted
from tests.difficulty.problems import examples as drawn

PIXELS = numpy.arange(5 * 2 * 2, dtype=numpy.uint8).reshape(5, 2, 2, 1)
GREY = Preparation((2, 2), channels=1)


def images() -> Any:
    return examples("dots", Stored(PIXELS), [f"{n}" for n in range(5)], ["a", "b", "a", "b", "b"])


def joined(some: Any) -> Tensor:
    return torch.cat(list(some.batches()))


@pytest.mark.parametrize("batch", [1, 2, 5, 99])
def test_tensors_datasets_and_examples_say_the_same(batch: int) -> None:
    inputs = torch.stack([GREY(pixels) for pixels in PIXELS])
    labels = torch.tensor([0, 1, 0, 1, 1])
    forms = [
        labelled((inputs, labels), batch=batch),
        labelled(TensorDataset(inputs, labels), batch=batch),
        labelled(images(), preparation=GREY, batch=batch),
    ]
    for some in forms:
        assert torch.equal(joined(some), inputs)
        assert some.labels.tolist() == labels.tolist()
        assert len(some) == 5
        assert max(len(inputs) for inputs in some.batches()) == min(batch, 5)
    assert forms[0].fingerprint == forms[1].fingerprint
    assert labelled(forms[0]) is forms[0]


def test_depth_is_the_same_in_every_form() -> None:
    train, test = drawn(TRAIN, 5), drawn(TEST, 6)
    one = prediction_depth(fitted(), train, test, k=5)
    two = prediction_depth(fitted(), TensorDataset(*train), TensorDataset(*test), k=5)
    assert one.train.depth.tolist() == two.train.depth.tolist()
    assert one.fingerprint == two.fingerprint


def test_the_fingerprint_sees_inputs_labels_order_and_preparation() -> None:
    x, labels = drawn(TRAIN, 5)
    changed = x.clone()
    changed[3, 2] += 1e-6
    others = [(x.flip(0), labels), (x, labels.flip(0)), (changed, labels), (x.double(), labels), (x[1:], labels[1:])]
    marks = [labelled(data).fingerprint for data in [(x, labels), *others]]
    other = Preparation((2, 2), channels=1, mean=0.4)
    marks += [labelled(images(), preparation=each).fingerprint for each in (GREY, other)]
    assert len(set(marks)) == len(marks)


def test_the_digest_does_not_see_batches() -> None:
    x = drawn(TRAIN, 5)[0]
    marks = set()
    for size in (1, 7, TRAIN):
        digest = Digest()
        for part in x.split(size):
            digest.add(part)
        marks.add(digest.value)
    assert len(marks) == 1


def test_sets_whose_labels_mean_different_names_are_refused() -> None:
    model = nn.Sequential(nn.Flatten(), nn.Linear(4, 2)).eval()
    train, test = (labelled(images().of(names), preparation=GREY) for names in ("ab", "b"))
    message = "prediction_depth: test must have the identities of train, which its labels number; got ('b',)."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        prediction_depth(model, train, test, k=2)


class Augmented(Dataset):
    """Other inputs at every reading."""

    def __init__(self) -> None:
        self.generator = torch.Generator().manual_seed(0)

    def __len__(self) -> int:
        return 5

    def __getitem__(self, index: int) -> tuple[Tensor, int]:
        return torch.randn(5, generator=self.generator), 0


def test_data_that_change_are_refused() -> None:
    message = "^capture: data must give the same inputs at every reading; got others. Switch augmentation off.$"
    with pytest.raises(ValueError, match=message):
        prediction_depth(fitted(), Augmented(), None, k=1)


class Words(Augmented):
    def __getitem__(self, index: int) -> Any:
        return "word", 0


class Endless(IterableDataset):
    def __iter__(self) -> Any:
        return iter(())


DATA = "data must be (inputs, labels), a dataset with indices or examples"
PAIR = "data must be inputs (N, ...) and whole labels (N,)"
X, Y = torch.zeros(3, 2), torch.zeros(3, dtype=torch.int64)


@pytest.mark.parametrize(
    ("data", "options", "message"),
    [
        (3, {}, f"{DATA}; got int."),
        (Endless(), {}, f"{DATA}; got Endless."),
        (
            DataLoader(TensorDataset(X, Y), shuffle=True),
            {},
            f"{DATA}; got DataLoader. Of a loader pass its dataset: the order must stay.",
        ),
        ((X, Y[:2]), {}, f"{PAIR}; got (3, 2) and (2,) of torch.int64."),
        ((X, Y.float()), {}, f"{PAIR}; got (3, 2) and (3,) of torch.float32."),
        ((X, Y > 0), {}, f"{PAIR}; got (3, 2) and (3,) of torch.bool."),
        ((Y, Y), {}, f"{PAIR}; got (3,) and (3,) of torch.int64."),
        (Words(), {}, "input must be a tensor; got str. Give the dataset a transform to tensors."),
        (images(), {}, "preparation must be given for examples; got None."),
        ((X, Y), {"preparation": GREY}, f"preparation must be left out for data that are no examples; got {GREY}."),
        ((X, Y), {"batch": 0}, "batch must be a whole number of at least 1; got 0."),
        ((X, Y), {"workers": -1}, "workers must be a whole number of at least 0; got -1."),
    ],
)
def test_what_has_no_order_or_no_tensors_is_refused(data: Any, options: dict, message: str) -> None:
    with pytest.raises(ValueError, match=f"^labelled: {re.escape(message)}$"):
        labelled(data, **options)


class Broken:
    """A source whose second image cannot be had."""

    def read(self, index: int, *, least: int | None = None) -> numpy.ndarray:
        if index == 1:
            raise Unreadable("torn")
        return PIXELS[index]


def test_images_that_cannot_be_read_are_refused() -> None:
    some = labelled(examples("dots", Broken(), ["0", "1"], ["a", "b"]), preparation=GREY)
    message = "labelled: data must be readable; got 1 (torn). likewise.data.held leaves such images out."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        list(some.batches())
