"""From an old version to a new one whose vectors can be compared with the old ones, and whether they can."""

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy
import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require
from likewise.data import Examples
from likewise.data.arrays import read_npz
from likewise.metric import FewImpostorsWarning, Versions, compare_versions
from likewise.metric.versions import compared_pairs
from likewise.networks import Saved, load_network
from likewise.progress import Progress, parts, silent
from likewise.training.embedding import Embedded, embed_examples
from likewise.training.fitting import FitResult, TrainingPlan
from likewise.training.objectives import Harmonic

UNKNOWN = -1  # the row of a stored vector whose image is not among the examples, or not known at all
ROUNDING = 1e-3  # of a length of 1; float16 changes it by less than 5e-4
STORED = {  # in a .npz: axes, kinds of numpy, and both in words
    "vectors": (2, "fiu", "be rows of numbers"),
    "names": (1, "U", "be one row of texts"),
    "items": (1, "U", "be one row of texts"),
}


@dataclass(frozen=True, eq=False)
class StoredVectors:
    """All that is left of an old network: vectors, whose they are and, if known, the images, as in `Examples.items`.

    Vectors have length 1, as all embeddings: with others, distances and margins would mean something else.
    """

    vectors: Float[Tensor, "M E"]
    names: tuple[str, ...]
    items: tuple[str, ...] | None = None

    def __post_init__(self) -> None:
        for name in ("names", "items"):
            values = getattr(self, name)
            fits = values is None or len(values) == len(self.vectors)
            require(fits, "StoredVectors", name, f"be one for each of {len(self.vectors)} vectors", len(values or ()))
        lengths = self.vectors.norm(dim=1)
        odd = lengths[~((lengths - 1).abs() <= ROUNDING)].tolist()  # so that NaN is odd
        hint = "Divide each by its length."
        require(not odd, "StoredVectors", "vectors", "have length 1", f"{odd[0] if odd else 1:.4g}", hint)

    def of(self, examples: Examples) -> Embedded:
        """Those of the identities of some examples; `rows` is -1 where the image is not known, or not one of these."""
        numbers = {name: number for number, name in enumerate(examples.identities)}
        kept = [place for place, name in enumerate(self.names) if name in numbers]
        require(bool(kept), "StoredVectors", "names", f"be of identities in {examples.title}", "none of them")
        labels = torch.tensor([numbers[self.names[place]] for place in kept])
        places = {item: row for row, item in enumerate(examples.items)}
        rows = [places.get(self.items[place], UNKNOWN) if self.items else UNKNOWN for place in kept]
        return Embedded(self.vectors[kept], labels, torch.tensor(rows))


Older = Saved | StoredVectors


def open_older(path: Path) -> Older:
    """A network, or a .npz with `vectors`, `names` and, if they are known, `items`."""
    if path.suffix != ".npz":
        return load_network(path)
    found = read_npz("open_older", path, tuple(STORED))
    got = f"{', '.join(found) or 'neither'} in {str(path)!r}"
    require({"vectors", "names"} <= found.keys(), "open_older", "path", "hold vectors and names", got)
    for name, array in found.items():
        axes, kinds, rule = STORED[name]
        right = array.ndim == axes and array.dtype.kind in kinds
        require(right, "open_older", name, rule, f"{array.dtype} of shape {array.shape} in {str(path)!r}")
    vectors = torch.from_numpy(found["vectors"].astype(numpy.float32))
    items = tuple(found["items"].tolist()) if "items" in found else None
    return StoredVectors(vectors, tuple(found["names"].tolist()), items)


def old_width(older: Older) -> int:
    """Numbers in an embedding of an older version."""
    return older.network.embedding_dim if isinstance(older, Saved) else older.vectors.shape[1]


def old_vectors(older: Older, examples: Examples, *, workers: int = 0, progress: Progress = silent) -> Embedded:
    """What an older version has for some examples: vectors of all of them, or the stored ones of their identities."""
    if isinstance(older, StoredVectors):
        return older.of(examples)
    return embed_examples(older.network, older.preparation, examples, workers=workers, progress=progress)


def harmony(
    older: Older,
    examples: Examples,
    plan: TrainingPlan,
    *,
    workers: int = 0,
    progress: Progress = silent,
) -> Harmonic:
    """The objective that keeps a new version comparable with an older one, on these examples."""
    wide = old_width(older)
    require(wide == plan.embedding_dim, "harmony", "embedding_dim", f"be that of V1, {wide}", plan.embedding_dim)
    found = old_vectors(older, examples, workers=workers, progress=progress)
    rows = torch.full((len(examples),), UNKNOWN)
    known = found.rows >= 0
    rows[found.rows[known]] = known.nonzero()[:, 0]
    by_image = bool(known.any())
    return Harmonic(found.vectors, found.labels, rows=rows if by_image else None, margin=plan.margin, seed=plan.seed)


def unseen(examples: Examples, trained_on: Examples) -> Examples:
    """The examples of identities that were not trained on."""
    found = examples.without(trained_on.identities)
    hint = "Identities are known by name."
    require(
        len(found.identities) > 1,
        "unseen",
        "examples",
        "have two identities not trained on",
        len(found.identities),
        hint,
    )
    return found


def require_comparable(older: Older, examples: Examples, *, far: float) -> None:
    """Refuse what `compare_fitted` would refuse of examples all of which can be read: before anything is trained."""
    labels, old_labels = examples.labels, None
    if isinstance(older, StoredVectors):
        old = older.of(examples)
        if bool((old.rows >= 0).all()):
            labels = examples.labels[old.rows.unique()]
        else:
            old_labels = old.labels
    with warnings.catch_warnings(action="ignore", category=FewImpostorsWarning):
        compared_pairs(labels, old_labels, far=far)


def compare_fitted(
    new: FitResult,
    older: Older,
    examples: Examples,
    *,
    control: FitResult | None = None,
    far: float = 1e-3,
    workers: int = 0,
    progress: Progress = silent,
) -> Versions:
    """`compare_versions` of networks on examples, which should be of identities that none of them was trained on.

    If the images of the old vectors are known, all comparisons are on the same pairs of the images that every version
    could read.
    """
    networks = [each for each in (new, control) if each]
    steps = parts(progress, len(networks) + 1)
    found = [
        embed_examples(each.network, each.preparation, examples, workers=workers, progress=step)
        for each, step in zip(networks, steps, strict=False)
    ]
    old = old_vectors(older, examples, workers=workers, progress=steps[-1])
    progress(1.0, "comparing")
    by_image = bool((old.rows >= 0).all())
    common = set.intersection(*(set(each.rows.tolist()) for each in (*found, *([old] if by_image else []))))
    rows = torch.tensor(sorted(common), dtype=torch.int64)
    vectors = [_at(each, rows) for each in found]
    labels = examples.labels[rows]
    if by_image:
        return compare_versions(vectors[0], _at(old, rows), labels, *vectors[1:], far=far)
    return compare_versions(vectors[0], old.vectors, labels, *vectors[1:], old_labels=old.labels, far=far)


def _at(found: Embedded, rows: Int64[Tensor, "n"]) -> Float[Tensor, "n E"]:
    """The vectors of some rows of the examples."""
    places = {row: place for place, row in enumerate(found.rows.tolist())}
    return found.vectors[[places[row] for row in rows.tolist()]]
