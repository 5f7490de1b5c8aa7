"""Prediction depth: from which layer on do the nearest training examples say what the network says."""

import hashlib
import platform
import tempfile
import time
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy
import torch
from jaxtyping import Int64
from torch import Tensor, nn

import likewise
from likewise.checks import require, require_count
from likewise.difficulty.activations import Layout, ResultStore, described, layout_of, require_evaluation
from likewise.difficulty.labelled import Labelled, labelled
from likewise.difficulty.plan import MAX_MEMORY, DepthPlan, plan_layers
from likewise.difficulty.results import Curve, Depths, PredictionDepth
from likewise.difficulty.sweep import TEST, TRAIN, Answered, Queries, SweepJob, sweep
from likewise.difficulty.taps import Tap
from likewise.files import json_hash
from likewise.networks.weights import weights_hash
from likewise.progress import Progress, silent

SAMPLE = 1000
CONVENTIONS = {
    "reference": "the network's class",
    "support": "all training examples, with the labels given",
    "distance": "Euclidean, float64, about the mean of the support",
    "self": "excluded by index",
    "ties": "votes: smaller sum of ranks, then the nearest; distances: smaller index",
    "undefined": "depth = number of probes",
}


def last_run_start(matrix: Int64[Tensor, "L N"], reference: Int64[Tensor, "N"]) -> Int64[Tensor, "N"]:
    """1 + the last row that differs from the reference, 0 if none does: where the final run of agreement starts.

    Rows are probes for prediction depth, checkpoints for the iteration learned.

    >>> last_run_start(torch.tensor([[7, 0, 7], [0, 7, 7], [7, 7, 0]]), torch.tensor([7, 7, 7])).tolist()
    [2, 1, 3]
    """
    places = torch.arange(1, len(matrix) + 1, device=matrix.device)[:, None]
    return ((matrix != reference) * places).amax(dim=0) if len(matrix) else torch.zeros_like(reference)


def iteration_learned(
    predictions: Int64[Tensor, "T N"], converged: Int64[Tensor, "N"] | None = None
) -> Int64[Tensor, "N"]:
    """The first checkpoint from which on every prediction is the converged network's, the last one's unless given.

    It is T where the last checkpoint still differs from a converged network that is given.

    >>> iteration_learned(torch.tensor([[1, 0, 2], [0, 0, 2], [1, 0, 1]])).tolist()
    [2, 0, 2]

    Paper: Baldock et al., arXiv 2106.09647.
    """
    require(len(predictions) > 0, "iteration_learned", "predictions", "hold a checkpoint", 0)
    return last_run_start(predictions, predictions[-1] if converged is None else converged)


def prediction_depth(
    model: nn.Module,
    train: Any,
    test: Any,
    *,
    k: int = 30,
    sweep_ks: Sequence[int] = (),
    layers: Sequence[str | Tap] | None = None,
    train_rows: Sequence[int] | None = None,
    sample: int = SAMPLE,
    max_memory: int = MAX_MEMORY,
    folder: Path | str | None = None,
    progress: Progress = silent,
) -> PredictionDepth:
    """1 + the last probe whose k nearest training examples vote otherwise than the network; 0 if none does.

    The probes are the input, the layers in order of execution, and the softmax. All training examples are the support,
    as labelled; none is its own neighbour. Where already the softmax probe disagrees the depth is undefined and equals
    the number of probes. Exact: see `likewise.similarity.nearest`.

    model: any that gives logits, in evaluation mode. train, test: what `labelled` takes; test may be None. sweep_ks:
    further k, from the same neighbours. layers: as for `Taps`. train_rows: which training examples are queries, all
    unless given. sample: how many of each set are asked at every probe, for the curves. max_memory: bytes, kept to by
    putting activations on disk. folder: where they go and where finished layers stay, so that the same call goes on
    after an interruption.

    >>> blobs = torch.tensor([[0.0], [0.1], [0.2], [5.0], [5.1], [5.2]])
    >>> model = nn.Sequential(nn.Linear(1, 2)).eval()
    >>> _ = model.load_state_dict({"0.weight": torch.tensor([[-1.0], [1.0]]), "0.bias": torch.tensor([2.0, -2.0])})
    >>> labels = torch.tensor([0, 0, 0, 1, 1, 1])
    >>> found = prediction_depth(model, (blobs, labels), (torch.tensor([[1.0], [2.5]]), torch.tensor([0, 0])), k=3)
    >>> found.layers, found.test.predicted.tolist(), found.test.depth.tolist()  # 2.5 lies nearer to 0.2, class 0
    (('input', 'softmax'), [0, 1], [0, 1])

    Paper: Baldock et al., arXiv 2106.09647. Differs: self-exclusion, vote ties and the undefined case are ours.
    """
    began = time.perf_counter()
    sets, ks, layout = _asked(model, train, test, (k, *sweep_ks), layers, train_rows, sample)
    plan = _planned(sets, ks, layout, max_memory)
    settings = _settings(ks, layers, layout, train_rows, sample)
    fingerprint = _fingerprint(model, sets, settings)
    with _keeping(folder) as keeping:
        keeping.claim(fingerprint, settings)
        found = sweep(SweepJob(model, layers, layout, plan, ks, keeping, progress), sets)
    depths = {which: _depths(sets[which], answered, ks, layout) for which, answered in found.sets.items()}
    return PredictionDepth(
        tuple(layout.widths),
        k,
        depths[TRAIN],
        depths.get(TEST),
        {which: _curve(each, found.sets[which], ks) for which, each in sets.items() if each.sampled.any()},
        found.reads,
        found.recomputed,
        plan,
        settings,
        fingerprint,
        versions(),
        time.perf_counter() - began,
    )


def plan_depth(
    model: nn.Module,
    train: Any,
    test: Any,
    *,
    k: int = 30,
    sweep_ks: Sequence[int] = (),
    layers: Sequence[str | Tap] | None = None,
    train_rows: Sequence[int] | None = None,
    max_memory: int = MAX_MEMORY,
) -> DepthPlan:
    """What `prediction_depth` would do with these arguments: widths, bytes, places, blocks; only one example is run."""
    sets, ks, layout = _asked(model, train, test, (k, *sweep_ks), layers, train_rows, 0)
    return _planned(sets, ks, layout, max_memory)


def versions() -> dict[str, str]:
    """Of everything that computes."""
    return {
        "likewise": likewise.__version__,
        "torch": torch.__version__,
        "numpy": numpy.__version__,
        "python": platform.python_version(),
    }


def _asked(
    model: nn.Module,
    train: Any,
    test: Any,
    ks: tuple[int, ...],
    layers: Sequence[str | Tap] | None,
    train_rows: Sequence[int] | None,
    sample: int,
) -> tuple[dict[str, Queries], tuple[int, ...], Layout]:
    """The arguments, checked: sets, k first and then the others, and the probes."""
    where = "prediction_depth"
    require_evaluation(where, model)
    for k in ks:
        require_count(where, "k", k)
    require_count(where, "sample", sample, least=0)
    train = labelled(train)
    require(len(train) > 0, where, "train", "not be empty", 0)
    layout = layout_of(model, train, layers)
    sets = {TRAIN: _queries(train, train_rows, sample)}
    if test is not None:
        test = labelled(test)
        require(len(test) > 0, where, "test", "not be empty", 0, "Pass None if there is none.")
        hint = "The depth of training examples is there too, without themselves as neighbours."
        require(test.fingerprint != train.fingerprint, where, "test", "be other data than train", "the same", hint)
        alike = None in (train.names, test.names) or train.names == test.names
        require(alike, where, "test", "have the identities of train, which its labels number", test.names)
        sets[TEST] = _queries(test, None, sample)
    most = len(train) - int(bool(sets[TRAIN].wanted.any()))
    require(max(ks) <= most, where, "k", f"be at most {most}, the training examples that can be neighbours", max(ks))
    for which, each in sets.items():
        low, high = (int(bound) for bound in each.data.labels.aminmax())
        rule = f"be from 0 to {layout.classes - 1}, the classes of the model"
        require(low >= 0 and high < layout.classes, where, f"labels of {which}", rule, f"{low} to {high}")
    return sets, tuple(dict.fromkeys(ks)), layout


def _queries(data: Labelled, rows: Sequence[int] | None, sample: int) -> Queries:
    """Whose depth is wanted, and of these a sample, evenly spread."""
    wanted = torch.full((len(data),), rows is None)
    for row in rows or ():
        inside = 0 <= row < len(data)
        require(inside, "prediction_depth", "train_rows", f"be rows of train, 0 to {len(data) - 1}", row)
        wanted[row] = True
    chosen = wanted.nonzero()[:, 0]
    if len(chosen) > sample:
        chosen = chosen[torch.arange(sample) * len(chosen) // max(sample, 1)]
    sampled = torch.zeros_like(wanted)
    sampled[chosen] = True
    return Queries(data, wanted, sampled)


def _planned(sets: dict[str, Queries], ks: Sequence[int], layout: Layout, max_memory: int) -> DepthPlan:
    return plan_layers(
        layout.widths,
        support=len(sets[TRAIN].data),
        train=int(sets[TRAIN].wanted.sum()),
        test=len(sets[TEST].data) if TEST in sets else 0,
        k=max(ks),
        number=layout.dtype.itemsize,
        max_memory=max_memory,
    )


def _settings(
    ks: Sequence[int],
    layers: Sequence[str | Tap] | None,
    layout: Layout,
    train_rows: Sequence[int] | None,
    sample: int,
) -> dict[str, Any]:
    """All that the numbers depend on besides model and data."""
    return {
        "k": ks[0],
        "sweep_ks": list(ks[1:]),
        "layers": list(layout.widths),
        "selected": [described(tap.select) for tap in layers or () if isinstance(tap, Tap) and tap.select],
        "sample": sample,
        "train_rows": "all" if train_rows is None else len(train_rows),
        **CONVENTIONS,
    }


def _fingerprint(model: nn.Module, sets: dict[str, Queries], settings: dict[str, Any]) -> str:
    """A hash of weights, data and settings."""
    facts = {
        "settings": settings,
        "data": {which: each.data.fingerprint for which, each in sets.items()},
        "queries": hashlib.sha256(sets[TRAIN].wanted.numpy().tobytes()).hexdigest(),
        "model": weights_hash(model.state_dict(), {"model": repr(model)}),
        "version": likewise.__version__,
    }
    return json_hash(facts)


@contextmanager
def _keeping(folder: Path | str | None) -> Generator[ResultStore]:
    """The folder that was given, or one that is gone afterwards."""
    if folder is not None:
        yield ResultStore(Path(folder), lasting=True)
    else:
        with tempfile.TemporaryDirectory(prefix="likewise-depth-") as place:
            yield ResultStore(Path(place), lasting=False)


def _depths(asked: Queries, answered: Answered, ks: Sequence[int], layout: Layout) -> Depths:
    rows = asked.wanted.nonzero()[:, 0]
    predicted = answered.predicted[rows]
    by_k = {k: last_run_start(votes[:, rows], predicted) for k, votes in zip(ks, answered.votes, strict=True)}
    labels = asked.data.labels[rows]
    return Depths(rows, labels, predicted, ks[0], by_k, probes=len(layout.widths), classes=layout.classes)


def _curve(asked: Queries, answered: Answered, ks: tuple[int, ...]) -> Curve:
    rows = asked.sampled.nonzero()[:, 0]
    votes = answered.votes[:, :, rows]
    right = (votes == asked.data.labels[rows]).double().mean(dim=2)
    agreed = (votes == answered.predicted[rows]).double().mean(dim=2)
    return Curve(rows, ks, right, agreed)
