"""Inputs and labels in one fixed order: tensors, a dataset, or our examples with their preparation."""

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Int64
from torch import Tensor
from torch.utils.data import DataLoader, Dataset, IterableDataset

from likewise.checks import refuse, require, require_count
from likewise.data import Batches, Examples, Preparation
from likewise.data.batches import in_order

BATCH = 128


@dataclass(frozen=True, eq=False)
class Labelled:
    """Labelled inputs, read a batch at a time, the same ones at every reading; which, `fingerprint` says.

    content: the `Digest` of all inputs, of a source that could change them from one reading to the next. names: of the
    classes, where they have some.
    """

    source: Any = field(repr=False)
    labels: Int64[Tensor, "N"] = field(repr=False)
    fingerprint: str
    batch: int = BATCH
    workers: int = 0
    content: str | None = None
    names: tuple[str, ...] | None = None

    def __len__(self) -> int:
        return len(self.labels)

    def batches(self) -> Iterator[Tensor]:
        """All inputs, in order."""
        if isinstance(self.source, Tensor):
            yield from self.source.split(self.batch)
        elif isinstance(self.source, Batches):
            yield from _decoded(self.source)
        else:
            yield from (inputs for inputs, _ in _read(self.source, self.batch, self.workers))


def labelled(data: Any, *, preparation: Preparation | None = None, batch: int = BATCH, workers: int = 0) -> Labelled:
    """Labelled inputs from (inputs, labels), from a dataset of (input, label), or from our examples.

    preparation: of examples, and only of them. batch: inputs of one forward pass; workers: processes that read. A
    dataset is read once here, for its labels and its digest.

    >>> some = labelled((torch.arange(6.0).view(3, 2), torch.tensor([1, 0, 1])), batch=2)
    >>> len(some), [inputs.tolist() for inputs in some.batches()]
    (3, [[[0.0, 1.0], [2.0, 3.0]], [[4.0, 5.0]]])
    """
    where = "labelled"
    require_count(where, "batch", batch)
    require_count(where, "workers", workers, least=0)
    if isinstance(data, Labelled):
        return data
    if isinstance(data, Examples):
        if preparation is None:
            refuse(where, "preparation", "be given for examples", preparation)
        source = Batches(data, preparation, in_order(len(data), batch), workers=workers)
        facts = json.dumps([data.fingerprint, preparation.to_json()], sort_keys=True)
        mark = hashlib.sha256(facts.encode()).hexdigest()
        return Labelled(source, data.labels, mark, batch, workers, names=data.identities)
    require(preparation is None, where, "preparation", "be left out for data that are no examples", preparation)
    if isinstance(data, Sequence) and len(data) == 2 and all(isinstance(part, Tensor) for part in data):
        return _tensors(data[0], data[1], batch)
    if not isinstance(data, Dataset) or isinstance(data, IterableDataset):
        hint = "Of a loader pass its dataset: the order must stay." if isinstance(data, DataLoader) else ""
        refuse(where, "data", "be (inputs, labels), a dataset with indices or examples", type(data).__name__, hint)
    digest, read = Digest(), []
    for inputs, labels in _read(data, batch, workers):
        digest.add(inputs)
        read += labels
    found = torch.tensor(read, dtype=torch.int64)
    return Labelled(data, found, _with_labels(digest, found), batch, workers, digest.value)


class Digest:
    """A hash of inputs in their order, which does not see how they came in batches.

    >>> one, two = Digest(), Digest()
    >>> one.add(torch.eye(2)), two.add(torch.eye(2)[:1]), two.add(torch.eye(2)[1:])
    (None, None, None)
    >>> one.value == two.value
    True
    """

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._begun = False

    def add(self, inputs: Tensor) -> None:
        """The next inputs."""
        if not self._begun:
            self._hash.update(f"{inputs.dtype} {tuple(inputs.shape[1:])}".encode())
            self._begun = True
        self._hash.update(inputs.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy())

    @property
    def value(self) -> str:
        """Of all so far."""
        return self._hash.hexdigest()


def _tensors(inputs: Tensor, labels: Tensor, batch: int) -> Labelled:
    whole = not (labels.is_floating_point() or labels.is_complex() or labels.dtype == torch.bool)
    fits = labels.ndim == 1 and inputs.ndim > 1 and len(labels) == len(inputs) and whole
    got = f"{tuple(inputs.shape)} and {tuple(labels.shape)} of {labels.dtype}"
    require(fits, "labelled", "data", "be inputs (N, ...) and whole labels (N,)", got)
    labels, digest = labels.cpu().long(), Digest()
    digest.add(inputs)
    return Labelled(inputs, labels, _with_labels(digest, labels), batch)


def _with_labels(digest: Digest, labels: Int64[Tensor, "N"]) -> str:
    return hashlib.sha256(digest.value.encode() + labels.numpy().tobytes()).hexdigest()


def _decoded(batches: Batches) -> Iterator[Tensor]:
    """The images; one that cannot be read would move all that follow."""
    for batch in batches.since(0):
        got = ", ".join(f"{item} ({why})" for item, why in batch.skipped)
        require(not batch.skipped, "labelled", "data", "be readable", got, "likewise.data.held leaves such images out.")
        yield batch.images


def _read(data: Dataset, batch: int, workers: int) -> Iterator[tuple[Tensor, list[int]]]:
    # A generator of its own, or the loader would draw from the global one.
    generator = torch.Generator()
    yield from DataLoader(data, batch, num_workers=workers, collate_fn=_stacked, generator=generator)


def _stacked(pairs: list[tuple[Any, Any]]) -> tuple[Tensor, list[int]]:
    for x, _ in pairs:
        hint = "Give the dataset a transform to tensors."
        require(isinstance(x, Tensor), "labelled", "input", "be a tensor", type(x).__name__, hint)
    return torch.stack([x for x, _ in pairs]), [int(label) for _, label in pairs]
