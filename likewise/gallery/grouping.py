"""Clusters of a gallery's templates: who is who without names, corrected by a person, kept up to date."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy
import torch

from likewise.checks import refuse, require
from likewise.gallery.store import Absent, Correction, Model, Store
from likewise.metric import Clusters, ClusterScores, cluster_scores, restored

LARGEST = 4096  # templates of a component that are clustered anew for each newcomer


@dataclass(frozen=True)
class Member:
    """A template in a group: its number, and the identity that it is enrolled under."""

    template: int
    identity: str


@dataclass(frozen=True)
class Group:
    """Templates that are taken to be of one person."""

    members: tuple[Member, ...]

    @property
    def identities(self) -> tuple[str, ...]:
        """The identities of its templates, the most frequent first."""
        return tuple(name for name, _ in Counter(each.identity for each in self.members).most_common())


@dataclass(frozen=True)
class Grouping:
    """The clusters of a gallery, the largest first.

    exact: whether they are those of `likewise.metric.cluster`, all templates at once. It is False if a component, the
    templates that chains of pairs within the threshold connect, has more than `largest`: `settle` then clusters it.
    """

    threshold: float
    groups: tuple[Group, ...] = field(repr=False)
    exact: bool
    largest: int = LARGEST
    warnings: tuple[str, ...] = ()

    @cached_property
    def templates(self) -> int:
        """How many templates were clustered."""
        return sum(len(group.members) for group in self.groups)

    def scores(self, truth: Mapping[int, str] | None = None) -> ClusterScores:
        """Pairwise and B-cubed precision and recall; the truth, by template, is the enrolled identity unless given."""
        found, names = [], []
        for number, group in enumerate(self.groups):
            for each in group.members:
                found.append(number)
                names.append(each.identity if truth is None else truth[each.template])
        people = torch.from_numpy(numpy.unique(names, return_inverse=True)[1])
        return cluster_scores(torch.tensor(found), people)


class Grouped:
    """The clusters of a store's templates by comparable models, brought up to date by `refresh`.

    New templates and corrections change only the components that they touch. After a removal everything is clustered
    anew, so that nothing of a forgotten template stays in memory.
    """

    def __init__(self, store: Store, models: Sequence[Model], threshold: float) -> None:
        self.store, self.models, self.threshold = store, tuple(models), threshold
        self._begin()

    def _begin(self) -> None:
        self.clusters = Clusters(threshold=self.threshold, largest=LARGEST)
        self.places: dict[int, int] = {}  # of templates, by number
        self.owners = numpy.zeros(0, numpy.int64)
        self._followed: set[Correction] = set()
        self.refused: list[Correction] = []

    def refresh(self) -> None:
        """Follow what was enrolled, given to others, forgotten and corrected."""
        limit = self.store.limits.clustered
        count = self.store.count()[1]
        require(count <= limit, "cluster", "gallery", f"hold at most {limit:,} templates", f"{count:,}")
        vectors, owners, numbers = [], [], []
        for model in self.models:
            for rows, who, which in self.store.rows(model):
                plain = torch.from_numpy(rows.copy())
                vectors.append(restored(plain) if model.kind == "int8" else plain)
                owners += who.tolist()
                numbers += which.tolist()
        if not self.places.keys() <= set(numbers):
            self._begin()
        whole = torch.cat(vectors) if vectors else torch.zeros(0, 1)
        new = [row for row, number in enumerate(numbers) if number not in self.places]
        if new:
            self.clusters.add(whole[new])
            self.places |= {numbers[row]: len(self.places) + place for place, row in enumerate(new)}
        self.owners = numpy.zeros(len(numbers), numpy.int64)
        self.owners[[self.places[number] for number in numbers]] = owners
        self._follow([each for each in self.store.corrections() if each not in self._followed])

    def _follow(self, corrections: Sequence[Correction]) -> None:
        known = [each for each in corrections if {each.one, each.two} <= self.places.keys()]
        if not known:
            return
        try:
            self._apply(known)
        except ValueError:  # two people contradicted each other at the same time: the earlier word counts
            for each in known:
                try:
                    self._apply([each])
                except ValueError:
                    self.refused.append(each)
        self._followed |= set(known)

    def _apply(self, corrections: Sequence[Correction]) -> None:
        pairs = {same: [self._pair(each) for each in corrections if each.same is same] for same in (True, False)}
        self.clusters.correct(same=pairs[True], different=pairs[False])

    def _pair(self, correction: Correction) -> tuple[int, int]:
        return self.places[correction.one], self.places[correction.two]

    def correct(self, corrections: Sequence[Correction]) -> None:
        """Take corrections, in memory and in the store; what contradicts an earlier one is refused."""
        for number in {number for each in corrections for number in (each.one, each.two)}:
            if number not in self.places:
                refuse("correct", "template", "be in the gallery", number, error=Absent)
        self._apply(corrections)
        self.store.correct(corrections)
        self._followed |= set(corrections)

    def split(self, numbers: Sequence[int]) -> list[Correction]:
        """Corrections that take templates out of their cluster: the same as each other, different from the rest."""
        labels, places = self.clusters.labels, [self.places.get(number, -1) for number in numbers]
        found = bool(numbers) and min(places) >= 0
        require(found, "split", "templates", "be in the gallery", list(numbers)[:3], error=Absent)
        label = int(labels[places[0]])
        inside = all(int(labels[place]) == label for place in places)
        require(inside, "split", "templates", "be of one group", "several")
        chosen = set(numbers)
        rest = [number for number, place in self.places.items() if int(labels[place]) == label and number not in chosen]
        require(bool(rest), "split", "templates", "leave some in the group", "all of it")
        first, *others = numbers
        return [
            *(Correction(first, other, True) for other in others),
            *(Correction(first, other, False) for other in rest),
        ]

    def grouping(self) -> Grouping:
        """The clusters as they are."""
        names, labels = self.store.names(), self.clusters.labels.tolist()
        groups: dict[int, list[Member]] = {}
        for number, place in self.places.items():
            owner = names.get(int(self.owners[place]), "")
            groups.setdefault(labels[place], []).append(Member(number, owner))
        ordered = sorted((tuple(members) for members in groups.values()), key=lambda members: -len(members))
        notes = [
            f"Templates {each.one} and {each.two} were corrected in two ways; the earlier correction counts."
            for each in self.refused
        ]
        exact = self.clusters.exact
        if not exact:
            notes.append(f"More than {LARGEST:,} templates are connected: newcomers joined the nearest cluster.")
        return Grouping(self.threshold, tuple(map(Group, ordered)), exact, warnings=tuple(notes))
