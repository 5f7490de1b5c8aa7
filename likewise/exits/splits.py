"""Examples that know what they are for: an example that has been trained on is not tested on, not even by accident."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple, Self

import torch
from jaxtyping import Int64, Shaped
from torch import Tensor

from likewise.checks import refuse, require, require_choice, require_count
from likewise.data import Batch, Batches, Examples, Preparation
from likewise.data.batches import Shuffled, in_order

Role = Literal["train", "selection", "calibration", "test"]
ROLES: tuple[Role, ...] = ("train", "selection", "calibration", "test")


@dataclass(frozen=True, eq=False)
class Split:
    """Inputs and labels, for one of four uses.

    train: weights. selection: temperatures, criteria and paths of thresholds. calibration: the one threshold with a
    guarantee. test: what is reported, and nothing else.
    """

    inputs: Shaped[Tensor, "N *rest"]
    labels: Int64[Tensor, "N"]
    role: Role

    def __post_init__(self) -> None:
        require_choice("Split", "role", self.role, ROLES)
        same = len(self.inputs) == len(self.labels)
        require(same, "Split", "labels", f"be one for each of {len(self.inputs)} inputs", len(self.labels))

    def __len__(self) -> int:
        return len(self.labels)

    def __repr__(self) -> str:
        return f"Split({len(self):,} examples, {self.role})"

    @classmethod
    def read(cls, examples: Examples, preparation: Preparation, *, role: Role, workers: int = 0) -> Self:
        """All images of some examples, prepared, in memory; unreadable ones are left out."""
        feed = Batches(examples, preparation, in_order(len(examples), 256), workers=workers)
        batches = list(feed.since(0))
        require(len(batches) > 0, "Split.read", "examples", "not be empty", 0)
        return cls(torch.cat([b.images for b in batches]), torch.cat([b.labels for b in batches]), role)

    @cached_property
    def ids(self) -> Int64[Tensor, "N"]:
        """A hash of each input, by which it is known again, whatever split it comes in."""
        rows = self.inputs.detach().cpu().contiguous()
        rows = rows.reshape(len(rows), -1).view(torch.uint8).numpy() if rows.numel() else [b""] * len(rows)
        found = [int.from_bytes(hashlib.blake2b(row, digest_size=8).digest(), "big", signed=True) for row in rows]
        return torch.tensor(found, dtype=torch.int64)

    def take(self, rows: Int64[Tensor, "n"]) -> "Split":
        """Some of the examples, for the same use."""
        return Split(self.inputs[rows], self.labels[rows], self.role)

    def without(self, other: "Split") -> "Split":
        """The examples whose input is not also in another split."""
        return self.take((~torch.isin(self.ids, other.ids)).nonzero()[:, 0])

    def batches(self, size: int) -> Iterator[tuple[Tensor, Tensor]]:
        """Inputs and labels in order, so many at a time."""
        require_count("Split.batches", "size", size)
        yield from zip(self.inputs.split(size), self.labels.split(size), strict=True)

    def feed(self, *, size: int = 128, seed: int = 0) -> "Fed":
        """Batches for training, in a new order each epoch."""
        require_count("Split.feed", "size", size)
        return Fed(self, Shuffled(len(self), min(size, len(self)), seed))


@dataclass(frozen=True, eq=False)
class Fed:
    """The batches of a split from any step on, for `likewise.training.train`."""

    split: Split
    drawn: Shuffled

    def since(self, step: int) -> Iterator[Batch]:
        while True:
            rows = torch.tensor(self.drawn[step])
            yield Batch(self.split.inputs[rows], self.split.labels[rows], rows, step)
            step += 1


class Splits(NamedTuple):
    """One set of examples for each use."""

    train: Split
    selection: Split
    calibration: Split
    test: Split


def split_examples(
    inputs: Shaped[Tensor, "N *rest"],
    labels: Int64[Tensor, "N"],
    *,
    selection: float = 0.1,
    calibration: float = 0.2,
    test: float = 0.2,
    seed: int = 0,
) -> Splits:
    """Deal examples to the four uses by shares, what is left to training; equal inputs are dealt together."""
    shares = (selection, calibration, test)
    fits = min(shares) >= 0 and sum(shares) <= 1
    require(fits, "split_examples", "shares", "be 0 or more and at most 1 together", shares)
    whole = Split(inputs, labels, "train")
    _, group = whole.ids.unique(return_inverse=True)
    count = int(group.max()) + 1 if len(group) else 0
    order = torch.randperm(count, generator=torch.Generator().manual_seed(seed))
    ends = [round(count * sum(shares[:number])) for number in range(1, 4)]
    part = torch.bucketize(order[group], torch.tensor(ends), right=True)  # 0, 1, 2 for the shares, 3 for training
    rows = [(part == number).nonzero()[:, 0] for number in (3, 0, 1, 2)]
    return Splits(*(Split(inputs[chosen], labels[chosen], role) for chosen, role in zip(rows, ROLES, strict=True)))


class Ledger:
    """Which examples a network with exits has used, and for what. An example has one use."""

    def __init__(self) -> None:
        self.used: dict[str, Tensor] = {}

    def take(self, where: str, data: Split, *, roles: tuple[Role, ...]) -> None:
        """Note the use of some data; data for another use, or that was used for another, is refused."""
        require(data.role in roles, where, "data", f"be for {' or '.join(roles)}", f"a split for {data.role}")
        for role, ids in self.used.items():
            shared = int(torch.isin(data.ids, ids).sum()) if role != data.role else 0
            if shared:
                got = f"{shared} of {len(data)} that were used for {role}"
                refuse(where, "data", f"be new examples for {data.role}", got, "Take them out: data.without(other).")
        self.used[data.role] = torch.cat([self.used.get(data.role, data.ids[:0]), data.ids]).unique()

    def forget(self, role: Role) -> None:
        """For a study that deals its data anew: forget one use."""
        require_choice("Ledger.forget", "role", role, ROLES)
        self.used.pop(role, None)
