"""Triplets on digits: what a network that learned seven of them makes of three it has never seen, and an upgrade."""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy
import torch
from jaxtyping import Float, Int64
from torch import Generator, Tensor, nn
from torch.nn import functional

from likewise.data import Batch, Examples, Preparation, digits
from likewise.data.examples import Stored, examples
from likewise.metric import IdentitySampler, Versions, all_pairs, compare_versions
from likewise.metric.clusters import ClusterScores, cluster, cluster_scores
from likewise.metric.versions import Match
from likewise.networks import Network
from likewise.networks.segments import UnitLength, before_relu
from likewise.progress import Progress, part, silent
from likewise.similarity import squared_distances
from likewise.stats import mean_and_error
from likewise.tour.learning import seeded
from likewise.training import Feed, Harmonic, Record, SemiHard, train
from likewise.training.fitting import Later, layer_alone
from likewise.training.objectives import drawn

# None of the other seven, turned or mirrored, looks like one of these; a turned 6 is a 9, so both are kept back.
UNSEEN = ("6", "8", "9")
PREPARATION = Preparation((8, 8), channels=1)


def split_digits() -> tuple[Examples, Examples]:
    """scikit-learn's digits: seven of them in eight positions each, turned and mirrored, and three as they are.

    A network that has seen seven classes tells seven classes apart and no more. A turned or mirrored digit is another
    shape, so it counts as another class: 56 in all.
    """
    whole = digits()
    seen = whole.without(UNSEEN)
    pixels = numpy.stack([seen.read(row) for row in range(len(seen))])
    names = [seen.identities[label] for label in seen.labels.tolist()]
    images, items, identities = [], [], []
    for position in range(8):
        turned = numpy.rot90(pixels, position % 4, axes=(1, 2))
        images.append(turned if position < 4 else turned[:, :, ::-1])
        items += [f"{item}/{position}" for item in seen.items]
        identities += [f"{name} in position {position}" for name in names]
    stored = Stored(numpy.ascontiguousarray(numpy.concatenate(images)))
    return examples("digits, turned and mirrored", stored, items, identities), whole.of(UNSEEN)


def prepared(examples: Examples) -> Float[Tensor, "N 1 8 8"]:
    """All images as the network takes them."""
    return torch.stack([PREPARATION(examples.read(row)) for row in range(len(examples))])


class SmallNetwork(Network):
    """Two convolutions, the larger of four neighbours, a linear layer to the embedding, and length 1."""

    def __init__(self, channels: int, embedding_dim: int, *, seed: int) -> None:
        super().__init__()
        self.embedding_dim = embedding_dim
        with seeded(seed):
            first = before_relu(nn.Conv2d(1, channels, 3, padding=1))
            second = before_relu(nn.Conv2d(channels, channels, 3, padding=1))
            self.body = nn.Sequential(first, nn.ReLU(), second, nn.ReLU(), nn.MaxPool2d(2), nn.Flatten())
            self.embedding = nn.Linear(16 * channels, embedding_dim)
        self.unit = UnitLength()

    @property
    def segments(self) -> list[tuple[str, nn.Module]]:
        return [("body", self.body), ("embedding", self.embedding), ("unit", self.unit)]


@dataclass(frozen=True, eq=False)
class InMemory:
    """Batches of identities out of images that are in memory, each image moved by up to a pixel, by seed and step."""

    images: Float[Tensor, "N 1 8 8"]
    labels: Int64[Tensor, "N"]
    sampler: IdentitySampler

    def since(self, step: int) -> Iterator[Batch]:
        for number in count(step):
            epoch, place = divmod(number, len(self.sampler))
            rows = torch.tensor(self.sampler.rows(epoch=epoch, batch=place))
            yield Batch(moved(self.images[rows], drawn(self.sampler.seed, number)), self.labels[rows], rows, number)


def moved(images: Float[Tensor, "B 1 8 8"], generator: Generator) -> Float[Tensor, "B 1 8 8"]:
    """Every image by -1, 0 or 1 pixels down and across; paper comes in from the edge."""
    wide = functional.pad(images[:, 0], (1, 1, 1, 1), value=-1.0)
    down, across = torch.randint(3, (2, len(images), 1, 1), generator=generator)
    pixels = torch.arange(8)
    return wide[torch.arange(len(images))[:, None, None], down + pixels[:, None], across + pixels][:, None]


FAR = 0.01
NEAREST = 7  # neighbours that are shown and judged
SHOWN = 2  # queries of each digit
CURVE = 0.5  # up to which FAR the curve is drawn
THRESHOLDS = 24  # tried on one half of the images, for clusters in the other


@dataclass(frozen=True)
class EmbeddingsPlan:
    """Sizes of the old and the new network, and how long they learn: runs with other seeds give the spread."""

    old_channels: int = 4
    channels: int = 32
    embedding_dim: int = 128
    old_steps: int = 20
    steps: int = 150
    head_steps: int = 40
    identities: int = 24
    faces: int = 3
    runs: int = 3


DIGITS = EmbeddingsPlan()


class Neighbour(NamedTuple):
    """An image, 0 for paper and 1 for ink, and which digit it is."""

    pixels: tuple[float, ...]
    digit: str


@dataclass(frozen=True)
class Judged:
    """How well some vectors tell digits apart, none of which was seen: `curve` is VAL against FAR, over all pairs."""

    name: str
    look: str
    curve: tuple[tuple[float, float], ...]
    val: float
    nearest: float
    clusters: ClusterScores


@dataclass(frozen=True)
class Compared:
    """A row of the upgrade's table, by run."""

    name: str
    vals: tuple[float, ...]
    accuracies: tuple[float, ...]
    fars_kept: tuple[float, ...]

    @property
    def val(self) -> float:
        """The mean over runs."""
        return mean_and_error(list(self.vals))[0]

    @property
    def accuracy(self) -> float:
        """The mean over runs."""
        return mean_and_error(list(self.accuracies))[0]

    @property
    def far_kept(self) -> float:
        """The mean over runs."""
        return mean_and_error(list(self.fars_kept))[0]


@dataclass(frozen=True)
class Embeddings:
    """All that the section shows; `upgrade` has v2-v2, v2-v1, v1-v1, then the control's v2-v2 and v2-v1."""

    plan: EmbeddingsPlan
    unseen: tuple[str, ...]
    classes: int
    images: int
    unseen_images: int
    records: tuple[Record, ...]
    judged: tuple[Judged, ...]
    neighbours: tuple[tuple[Neighbour, ...], ...]
    upgrade: tuple[Compared, ...]
    pairs: int
    far: float
    seed: int

    @property
    def one_cluster(self) -> float:
        """Pairwise F of all unseen images in one cluster: what clusters have to beat. Digits are about equally many."""
        precision = 1 / len(self.unseen)
        return 2 * precision / (precision + 1)

    @property
    def by_val(self) -> int:
        """In how many runs VAL falls from v2-v2 over v2-v1 to v1-v1."""
        return self._ordered("vals")

    @property
    def by_accuracy(self) -> int:
        """In how many runs accuracy does."""
        return self._ordered("accuracies")

    def _ordered(self, name: str) -> int:
        columns = zip(*(getattr(row, name) for row in self.upgrade[:3]), strict=True)
        return sum(new > mixed > old for new, mixed, old in columns)


def measure_embeddings(*, plan: EmbeddingsPlan = DIGITS, seed: int = 0, progress: Progress = silent) -> Embeddings:
    """Train, judge on the digits that nobody has seen, and upgrade, `plan.runs` times from other seeds."""
    seen, unseen = split_digits()
    shifted = moved(prepared(unseen), Generator().manual_seed(seed))
    data = Data(prepared(seen), seen.labels, shifted, unseen.labels, plan)
    runs = []
    for number in range(plan.runs):
        told = part(progress, 0.95 * number / plan.runs, 0.95 * (number + 1) / plan.runs)
        runs.append(upgraded(data, seed=100 * seed + 10 * number, progress=told))
    progress(0.95, "neighbours and clusters")
    before, after = (data.embedded(network) for network in (runs[0].before, runs[0].start))
    ink = (data.unseen + 1).flatten(1)
    rows = {"pixels": ("plain", ink / ink.norm(dim=1, keepdim=True)), "before training": ("positive", before)}
    rows["after"] = "near", after
    judged = tuple(judge(name, look, vectors, data.unseen_labels, seed) for name, (look, vectors) in rows.items())
    found = [run.versions for run in runs]
    progress(1.0, "neighbours and clusters")
    return Embeddings(
        plan=plan,
        unseen=UNSEEN,
        classes=len(seen.identities),
        images=len(seen),
        unseen_images=len(unseen),
        records=runs[0].records,
        judged=judged,
        neighbours=tuple(shown_neighbours(after, data.unseen, unseen)),
        upgrade=compared(found),
        pairs=found[0].pairs,
        far=FAR,
        seed=seed,
    )


@dataclass(frozen=True, eq=False)
class Data:
    """Images of classes that are trained on and of others, and how to train."""

    seen: Float[Tensor, "N 1 8 8"]
    seen_labels: Int64[Tensor, "N"]
    unseen: Float[Tensor, "M 1 8 8"]
    unseen_labels: Int64[Tensor, "M"]
    plan: EmbeddingsPlan

    def network(self, channels: int, seed: int) -> SmallNetwork:
        """A new one."""
        return SmallNetwork(channels, self.plan.embedding_dim, seed=seed)

    def feed(self, seed: int) -> InMemory:
        """Batches of seen classes."""
        sizes = {"identities": self.plan.identities, "faces": self.plan.faces, "random": 0}
        return InMemory(self.seen, self.seen_labels, IdentitySampler(self.seen_labels, seed=seed, **sizes))

    def embedded(self, network: nn.Module) -> Float[Tensor, "M E"]:
        """Vectors of the unseen digits."""
        with torch.no_grad():
            return network.eval()(self.unseen)


@dataclass(frozen=True, eq=False)
class Run:
    """The new network as it was before training and after, how that went, and what came of the upgrade."""

    before: SmallNetwork
    start: SmallNetwork
    records: tuple[Record, ...]
    versions: Versions


def upgraded(data: Data, *, seed: int, progress: Progress = silent) -> Run:
    """v1, then v2 alone, then v2 in harmony with v1, and the control: v2 in the same steps without v1."""
    plan = data.plan
    whole = plan.old_steps + plan.steps + 2 * (plan.head_steps + plan.steps)
    done = 0

    def learn(network: nn.Module, objective: nn.Module, feed: Feed, steps: int, name: str) -> tuple[Record, ...]:
        nonlocal done

        def watch(record: Record) -> None:
            progress((done + record.step + 1) / whole, f"{name}, step {record.step + 1} of {steps}")

        records = train(network, objective, feed, steps=steps, watch=watch).records
        done += steps
        return records

    old = data.network(plan.old_channels, seed + 1)
    learn(old, SemiHard(fallback="farthest"), data.feed(seed + 1), plan.old_steps, "v1")
    start = data.network(plan.channels, seed + 2)
    before = copy.deepcopy(start)
    records = learn(start, SemiHard(fallback="farthest"), data.feed(seed + 2), plan.steps, "v2")
    with torch.no_grad():
        vectors = old.eval()(data.seen)
    harmonic = Harmonic(vectors, data.seen_labels, rows=torch.arange(len(vectors)))
    made = []
    for name, objective in (("v2 with v1", harmonic), ("control", SemiHard(fallback="farthest"))):
        network, feed = copy.deepcopy(start), data.feed(seed + 3)
        network.embedding = data.network(plan.channels, seed + 3).embedding
        with layer_alone(network) as alone:
            learn(alone, objective, feed, plan.head_steps, name)
        learn(network, objective, Later(feed, plan.head_steps), plan.steps, name)
        made.append(data.embedded(network))
    versions = compare_versions(made[0], data.embedded(old), data.unseen_labels, made[1], far=FAR, seed=seed)
    return Run(before, start, records, versions)


def judge(name: str, look: str, vectors: Float[Tensor, "M E"], labels: Int64[Tensor, "M"], seed: int) -> Judged:
    """VAL against FAR over all pairs, the nearest neighbours, and clusters."""
    roc = all_pairs(vectors, labels, far=CURVE).roc
    points = [(far, val) for far, val in zip(roc.far.tolist(), roc.val.tolist(), strict=True) if far > 0]
    right = labels[nearest(vectors)] == labels[:, None]
    return Judged(
        name=name,
        look=look,
        curve=tuple(points),
        val=all_pairs(vectors, labels, far=FAR).val,
        nearest=right.double().mean().item(),
        clusters=clustered(vectors, labels, generator=Generator().manual_seed(seed)),
    )


def nearest(vectors: Float[Tensor, "M E"]) -> Int64[Tensor, "M k"]:
    """The rows of each row's nearest others, nearest first."""
    return squared_distances(vectors, vectors).fill_diagonal_(torch.inf).topk(NEAREST, largest=False).indices


def clustered(vectors: Float[Tensor, "M E"], labels: Int64[Tensor, "M"], *, generator: Generator) -> ClusterScores:
    """Clusters of one half of the images, at a threshold with the best pairwise F on the other half, midway of such."""
    one, other = torch.randperm(len(vectors), generator=generator).tensor_split(2)

    def score(rows: Tensor, threshold: float) -> ClusterScores:
        found = cluster(squared_distances(vectors[rows], vectors[rows]), threshold=threshold)
        return cluster_scores(found, labels[rows])

    distances = squared_distances(vectors[one], vectors[one]).flatten()
    tried = distances.quantile(torch.linspace(0.05, 0.95, THRESHOLDS)).tolist()
    scores = [score(one, threshold).f for threshold in tried]
    best = [threshold for threshold, f in zip(tried, scores, strict=True) if f == max(scores)]
    return score(other, best[len(best) // 2])


def shown_neighbours(
    vectors: Float[Tensor, "M E"], images: Float[Tensor, "M 1 8 8"], examples: Examples
) -> list[tuple[Neighbour, ...]]:
    """Of each digit the first image, and the one with most neighbours that are another digit; each with its nearest."""
    near = nearest(vectors)
    wrong = (examples.labels[near] != examples.labels[:, None]).sum(1)
    rows = []
    for label in range(len(examples.identities)):
        mine = (examples.labels == label).nonzero()[:, 0]
        rows += [int(mine[0]), int(mine[wrong[mine].argmax()])][:SHOWN]
    ink = ((images + 1) / 2).flatten(1).tolist()
    names = [examples.identities[label] for label in examples.labels.tolist()]
    return [tuple(Neighbour(tuple(ink[row]), names[row]) for row in (query, *near[query].tolist())) for query in rows]


def compared(found: list[Versions]) -> tuple[Compared, ...]:
    """The rows of the table, over all runs."""
    names: dict[str, Callable[[Versions], Match | None]] = {
        "v2 with v2": lambda each: each.new,
        "v2 with v1": lambda each: each.mixed,
        "v1 with v1": lambda each: each.old,
        "control with control": lambda each: each.control,
        "control with v1": lambda each: each.control_mixed,
    }
    rows = []
    for name, pick in names.items():
        matches = [match for match in map(pick, found) if match is not None]
        accuracies = tuple(match.rates.accuracy for match in matches)
        rows.append(
            Compared(
                name, tuple(match.val for match in matches), accuracies, tuple(match.far_kept for match in matches)
            )
        )
    return tuple(rows)
