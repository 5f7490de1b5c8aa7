"""One call from a network and images to all that is worth knowing of how it tells people apart."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require, require_count
from likewise.data import Examples, Preparation, Skipped
from likewise.data.examples import Origin
from likewise.evaluation.judging import Rates, judge, pair_distances_of, rates_and_curve, supported_far
from likewise.evaluation.protocols import Everyone, Listed
from likewise.evaluation.results import Evaluation, Histogram, Templates, Worst
from likewise.evaluation.shifts import Mirror, shifted
from likewise.metric import bootstrap_threshold, clopper_pearson, quantised, restored
from likewise.metric.clusters import ClusterScores, cluster, cluster_scores
from likewise.metric.rates import Roc, Threshold, allowed, require_shown
from likewise.metric.surveying import bin_width, binned, survey
from likewise.networks import Network
from likewise.progress import Progress, part, parts, silent
from likewise.similarity import squared_distances
from likewise.training import embed_examples
from likewise.training.embedding import Embedded

BINS = 128  # of a histogram
FINE = 16  # thresholds in each, at which the curve is known
MOST_CLUSTERED = 15_000  # images: their distances are held twice, 0.9 GB each
SEEN = "These are the images that the network was trained on: the rates say nothing of other people."
PARTLY = "The network was trained on {count:,} of these {images:,} images: the rates are too good for other people."
TAIL, LEAST = 4, 100_000  # of the smallest distances the bootstrap sees so many times the FAR, or at least so many


@dataclass(frozen=True, eq=False)
class Subject:
    """Images that a protocol needs, embedded once each; the protocol's rows are rows of `vectors`."""

    examples: Examples
    vectors: Float[Tensor, "N E"]
    labels: Int64[Tensor, "N"]
    protocol: Listed | Everyone
    left_out: int
    skipped: tuple[Skipped, ...]


def evaluate(
    network: Network,
    preparation: Preparation,
    examples: Examples,
    *,
    protocol: Listed | Everyone | None = None,
    far: float | None = None,
    mirror: bool = False,
    clusters: bool = False,
    worst: int = 12,
    workers: int = 0,
    trained_on: Sequence[Origin] = (),
    progress: Progress = silent,
) -> Evaluation:
    """Accuracy, VAL at a FAR, the curve, thresholds with what supports them, 8-bit templates and the worst pairs.

    protocol: `lfw_pairs`, `own_pairs`, or all pairs in splits of identities, which is the default. far: as in `judge`;
    one that the number of pairs cannot show is refused. mirror: the embedding of an image is the mean of its own and
    its mirror image's, of length 1. clusters: find the people without their names too, at the threshold for `far`.
    worst: how many of each kind of wrong pairs. trained_on: the training images, as far as they are known
    (`Saved.trained_on`); that some of them are judged is then a warning of the result.
    """
    require_count("evaluate", "worst", worst, least=0)
    embedding = Embedding(network, preparation, mirror, workers)
    subject = embed_subject(embedding, examples, protocol or Everyone(), part(progress, 0.0, 0.8))
    progress(0.8, "judging pairs")
    far = supported_far(subject.labels, protocol=subject.protocol) if far is None else far
    rates, curve = rates_and_curve(subject.vectors, subject.labels, protocol=subject.protocol, far=far)
    small = restored(quantised(subject.vectors)).to(subject.vectors)
    after = judge(small, subject.labels, protocol=subject.protocol, far=far)
    progress(0.9, "looking for the worst pairs")
    view = _of_list if isinstance(subject.protocol, Listed) else _of_everyone
    doubts = require_shown("evaluate", far, _calibrating(subject.protocol, rates), see="the interval")
    count, images = subject.examples.shared(trained_on), len(subject.examples)
    seen = (SEEN if count == images else PARTLY.format(count=count, images=images),) if count else ()
    return Evaluation(
        data=examples.title,
        protocol=subject.protocol.title,
        listed=isinstance(subject.protocol, Listed),
        images=len(subject.examples),
        identities=len(subject.examples.identities),
        mirror=mirror,
        rates=rates,
        templates=Templates(subject.vectors.shape[1], after, rates.val - after.val),
        clusters=_clusters(subject, rates) if clusters else None,
        left_out=subject.left_out,
        skipped=subject.skipped,
        warnings=(*seen, *doubts),
        **view(subject, rates, curve, worst),
    )


@dataclass(frozen=True, eq=False)
class Embedding:
    """How images become vectors; with `mirror`, that of an image is the mean of its own and its mirror image's."""

    network: Network
    preparation: Preparation
    mirror: bool = False
    workers: int = 0

    def __call__(self, images: Examples, progress: Progress = silent) -> Embedded:
        """Embed each image once (and its mirror image once)."""
        if not self.mirror:
            return self._embedded(images, progress)
        first, second = parts(progress, 2)
        found = self._embedded(images, first)
        turned = self._embedded(shifted(images, self.preparation, Mirror()), second)
        return replace(found, vectors=torch.nn.functional.normalize(found.vectors + turned.vectors))

    def _embedded(self, images: Examples, progress: Progress) -> Embedded:
        found = embed_examples(self.network, self.preparation, images, workers=self.workers, progress=progress)
        return replace(found, vectors=found.vectors.cpu())


def embed_subject(
    embedding: Embedding,
    examples: Examples,
    protocol: Listed | Everyone,
    progress: Progress = silent,
) -> Subject:
    """Embed what a protocol needs, each image once."""
    used = protocol.rows.unique().tolist() if isinstance(protocol, Listed) else range(len(examples))
    images = examples.take(used)
    require(len(images) > 0, "evaluate", "examples", "not be empty", 0)
    found = embedding(images, progress)
    left_out = 0
    if isinstance(protocol, Listed):
        place = torch.full((len(examples),), -1, dtype=torch.int64)
        place[torch.tensor(used)[found.rows]] = torch.arange(len(found.rows))
        protocol, left_out = _moved(protocol, place)
    kept = images if len(found.rows) == len(images) else images.take(found.rows.tolist())
    skipped = tuple(dict.fromkeys([*examples.skipped, *found.skipped]))
    return Subject(kept, found.vectors, kept.labels, protocol, left_out, skipped)


def _moved(pairs: Listed, place: Int64[Tensor, "M"]) -> tuple[Listed, int]:
    """The pairs in other rows; those whose images have none are left out and counted."""
    rows = place[pairs.rows]
    there = (rows >= 0).all(1)
    require(bool(there.any()), "evaluate", "pairs", "have images that can be read", "none")
    folds = pairs.folds[there] if isinstance(pairs.folds, Tensor) else pairs.folds
    return replace(pairs, rows=rows[there], same=pairs.same[there], folds=folds), int((~there).sum())


def _of_list(subject: Subject, rates: Rates, curve: Roc, worst: int) -> dict:
    """What is known of listed pairs: of the judged fold, or of all. Thresholds come from the pairs outside the fold."""
    pairs = subject.protocol
    assert isinstance(pairs, Listed)
    d = pair_distances_of(subject.vectors, None, pairs)
    judged, others = pairs.judged, pairs.calibrating & ~pairs.same
    kinds = [judged & pairs.same, judged & ~pairs.same]
    width = bin_width(subject.vectors, BINS)
    same, different = (binned(d[kind], width, BINS) for kind in kinds)
    found = [kind.nonzero()[:, 0] for kind in kinds]
    orders = [found[0][d[found[0]].sort(descending=True, stable=True).indices[:worst]]]
    orders.append(found[1][d[found[1]].sort(stable=True).indices[:worst]])
    return {
        "independent": _independent(d[others], rates, _calibrating(pairs, rates)),
        "interval": bootstrap_threshold(d[others], subject.labels[pairs.rows[others]], far=rates.far),
        "roc": curve,
        "histogram": Histogram(width * torch.arange(1.0, BINS + 1), same, different),
        "worst_same": _named(subject.examples, pairs.rows[orders[0]], d[orders[0]]),
        "worst_different": _named(subject.examples, pairs.rows[orders[1]], d[orders[1]]),
    }


def _of_everyone(subject: Subject, rates: Rates, curve: Roc, worst: int) -> dict:
    """What is known of all pairs."""
    vectors, labels = subject.vectors, subject.labels
    accepted = allowed(rates.far, rates.different)
    tail = min(rates.different, max(worst, TAIL * accepted, LEAST))
    seen = survey(vectors, labels, farthest=worst, nearest=tail, bins=BINS * FINE)
    near, far_apart = seen.nearest_different, seen.farthest_same
    faces = labels.bincount()
    same, different = (counts.reshape(BINS, FINE).sum(1) for counts in (seen.same, seen.different))
    return {
        "independent": _independent(near.distances, rates, rates.different),
        "interval": bootstrap_threshold(near.distances, labels[near.rows], faces, far=rates.far),
        "roc": _joined(curve, seen.roc),
        "histogram": Histogram(seen.edges[FINE - 1 :: FINE], same, different),
        "worst_same": _named(subject.examples, far_apart.rows, far_apart.distances),
        "worst_different": _named(subject.examples, near.rows[:worst], near.distances[:worst]),
    }


def _calibrating(protocol: Listed | Everyone, rates: Rates) -> int:
    """How many different pairs the thresholds come from."""
    return int((protocol.calibrating & ~protocol.same).sum()) if isinstance(protocol, Listed) else rates.different


def _independent(low: Float[Tensor, "k"], rates: Rates, count: int) -> Threshold:
    """The FAR of `rates.threshold` among so many different pairs, the nearest of which are at hand."""
    accepted = int((low <= rates.threshold).sum())
    low_far, high_far = clopper_pearson(accepted=accepted, total=count)
    return Threshold(rates.threshold, rates.far, accepted / count, low_far, high_far, count, accepted)


def _joined(low: Roc, whole: Roc) -> Roc:
    """Two exact samples of one curve."""
    threshold, order = torch.cat([low.threshold, whole.threshold.to(low.threshold)]).sort(stable=True)
    return Roc(threshold, torch.cat([low.far, whole.far])[order], torch.cat([low.val, whole.val])[order])


def _named(examples: Examples, rows: Int64[Tensor, "n 2"], distances: Float[Tensor, "n"]) -> tuple[Worst, ...]:
    pairs = zip(rows.tolist(), distances.tolist(), strict=True)
    return tuple(Worst(examples.items[one], examples.items[two], distance) for (one, two), distance in pairs)


def _clusters(subject: Subject, rates: Rates) -> ClusterScores:
    count = len(subject.vectors)
    require(count <= MOST_CLUSTERED, "evaluate", "images", f"be at most {MOST_CLUSTERED:,} for clusters", f"{count:,}")
    found = cluster(squared_distances(subject.vectors, subject.vectors), threshold=max(rates.threshold, 0.0))
    return cluster_scores(found, subject.labels)
