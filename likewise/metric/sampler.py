"""Batches for triplets: some identities with many faces each, and random faces beside them."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from jaxtyping import Int64
from torch import Tensor
from torch.utils.data import Sampler

from likewise.checks import require, require_count

FEW = 2  # faces from which an identity has an anchor and a positive


def share(rows: Sequence[int], *, rank: int, world: int) -> list[int]:
    """The part of a batch that is a rank's; the parts in order are the batch, and no two differ by more than one row.

    >>> [share([1, 2, 3, 4, 5], rank=rank, world=2) for rank in range(2)]
    [[1, 2], [3, 4, 5]]
    """
    return list(rows[len(rows) * rank // world : len(rows) * (rank + 1) // world])


class IdentitySampler(Sampler[list[int]]):
    """Batches of P identities with K faces each, plus random faces: a `batch_sampler` for a DataLoader.

    In an epoch every identity with at least two faces comes up once; the last batch is filled up from the epoch's
    first identities. An identity with fewer than `faces` gives all of them. The `random` faces are drawn from the
    rest of the data, whoever they show (people with one face appear only so), and no row comes twice in a batch.

    A batch depends on `seed`, its epoch and its place and on nothing before it, so a run can stop and go on anywhere:
    iterating continues at the position (`epoch`, `batch`), which `state_dict` saves. Of `world` processes, each with
    its own `rank`, every one gets its part of the same batch: the parts in order are the batch of one process.

    Paper: Schroff et al. 2015, section 3.2: about 40 faces per identity and randomly sampled negatives, about 1,800
    in all. How many identities is our choice: 40 x 40 + 200.

    >>> from torch import tensor
    >>> sampler = IdentitySampler(tensor([7, 7, 7, 8, 8, 9]), identities=2, faces=2, random=1)
    >>> [len(batch) for batch in sampler], sampler.epoch
    ([5], 1)
    """

    def __init__(
        self,
        labels: Int64[Tensor, "N"],
        *,
        identities: int = 40,
        faces: int = 40,
        random: int = 200,
        seed: int = 0,
        rank: int = 0,
        world: int = 1,
    ) -> None:
        where = "IdentitySampler"
        for name, value, least in (("identities", identities, 1), ("faces", faces, FEW), ("random", random, 0)):
            require_count(where, name, value, least=least)
        require_count(where, "seed", seed, least=0)
        require_count(where, "world", world)
        require_count(where, "rank", rank, least=0)
        require(rank < world, where, "rank", f"be less than world, {world}", rank)
        whole = isinstance(labels, Tensor) and labels.dim() == 1
        require(whole, where, "labels", "be a tensor of one dimension", type(labels).__name__)
        numbers = labels.cpu().numpy()
        _, groups, counts = np.unique(numbers, return_inverse=True, return_counts=True)
        self._order = np.argsort(groups, kind="stable")
        self._first, self._counts = np.cumsum(counts) - counts, counts
        self._eligible = np.flatnonzero(counts >= FEW)
        require(len(self._eligible) > 0, where, "labels", "have an identity with at least two rows", "none")
        self.identities, self.faces, self.random, self.seed = identities, faces, random, seed
        self.rank, self.world = rank, world
        self.epoch = self.batch = 0
        self._digest = hashlib.sha256(np.ascontiguousarray(numbers, dtype="<i8").tobytes()).hexdigest()[:16]
        self._shuffled: tuple[int, np.ndarray] | None = None

    def __len__(self) -> int:
        """Batches of an epoch."""
        return -(-len(self._eligible) // self.identities)

    def __iter__(self) -> Iterator[list[int]]:
        """This rank's parts of the batches from the position to the end of the epoch; the position moves along."""
        epoch = self.epoch
        for place in range(self.batch, len(self)):
            last = place + 1 == len(self)
            self.epoch, self.batch = (epoch + 1, 0) if last else (epoch, place + 1)
            rows = self.rows(epoch=epoch, batch=place)
            yield share(rows, rank=self.rank, world=self.world)

    def rows(self, *, epoch: int, batch: int) -> list[int]:
        """The whole batch at a position, all ranks together; the random faces come last."""
        require(0 <= batch < len(self), "rows", "batch", f"be from 0 to {len(self) - 1}", batch)
        rng = np.random.default_rng([self.seed, epoch, batch + 1])
        shuffled = self._identities_of(epoch)
        count = min(self.identities, len(shuffled))
        people = shuffled[(batch * self.identities + np.arange(count)) % len(shuffled)]
        chosen = []
        for person in people:
            start, size = self._first[person], self._counts[person]
            chosen.append(self._order[start + rng.choice(size, size=min(self.faces, size), replace=False)])
        balanced = np.concatenate(chosen)
        # Enough rows that those of the batch may be struck out: what is left is a fair draw from the rest.
        total = len(self._order)
        extra = rng.choice(total, size=min(total, self.random + len(balanced)), replace=False)
        extra = extra[~np.isin(extra, balanced)][: self.random]
        return np.concatenate([balanced, extra]).tolist()

    def _identities_of(self, epoch: int) -> np.ndarray:
        if self._shuffled is None or self._shuffled[0] != epoch:
            self._shuffled = epoch, np.random.default_rng([self.seed, epoch, 0]).permutation(self._eligible)
        return self._shuffled[1]

    def state_dict(self, *, used: int | None = None) -> dict[str, Any]:
        """The position and what it belongs to; not rank and world, so that a run may go on with more processes.

        A DataLoader with workers draws batches ahead of time: say then how many batches of this epoch were `used`.
        """
        position = {"epoch": self.epoch, "batch": self.batch}
        if used is not None:
            require_count("state_dict", "used", used, least=0)
            drawn = (self.epoch, self.batch) if self.batch or not self.epoch else (self.epoch - 1, len(self))
            require(used <= drawn[1], "state_dict", "used", f"be at most the {drawn[1]} batches drawn", used)
            position = {"epoch": drawn[0] + used // len(self), "batch": used % len(self)}
        return {**position, **self._settings()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where another sampler of the same data and settings was."""
        for name, mine in self._settings().items():
            require(state.get(name) == mine, "load_state_dict", name, f"be this sampler's, {mine!r}", state.get(name))
        for name in ("epoch", "batch"):
            require_count("load_state_dict", name, state.get(name), least=0)
        require(state["batch"] < len(self), "load_state_dict", "batch", f"be from 0 to {len(self) - 1}", state["batch"])
        self.epoch, self.batch = state["epoch"], state["batch"]

    def _settings(self) -> dict[str, Any]:
        return {
            "identities": self.identities,
            "faces": self.faces,
            "random": self.random,
            "seed": self.seed,
            "labels": self._digest,
        }
