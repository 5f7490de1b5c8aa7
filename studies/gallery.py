"""How far the thresholds of a gallery can be trusted: promises against fresh people, on real descriptors.

Run it as `python -m studies.gallery descriptors.npz`: a .npz of `likewise embed`, or of benchmarks/peers/run_dlib.py,
which describes LFW by dlib's network. It repeats 200 splits by person: the threshold of one part promises a false
accept rate with an interval, the other part shows it. Then 1,000 people are enrolled, and others are strangers. It
writes benchmarks/results/gallery_calibration.json, from which docs/gallery.md is rendered. Ten identities, as of
digits, show nothing here.
"""

import json
import sys
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import Tensor

from likewise.gallery.calibration import identify_threshold, verify_threshold
from likewise.gallery.search import Matrix
from likewise.metric import all_pairs, quantised, restored
from likewise.metric.surveying import shares_at

SPLITS, FAR = 200, 1e-3
FPIRS = (0.01, 0.05)
ENROLLED = 1000
LEAST_PEOPLE = 100
OUT = Path(__file__).parents[1] / "benchmarks/results/gallery_calibration.json"


def read(path: Path) -> tuple[Tensor, Tensor]:
    """Unit vectors and labels of a .npz with vectors and names."""
    with numpy.load(path, allow_pickle=False) as found:
        vectors, names = torch.from_numpy(found["vectors"].astype(numpy.float32)), found["names"]
    labels = torch.from_numpy(numpy.unique(names, return_inverse=True)[1])
    return torch.nn.functional.normalize(vectors, dim=1), labels


def fresh_rates(vectors: Tensor, labels: Tensor, *, share: float, splits: int) -> dict[str, Any]:
    """How often the rate among fresh people lies inside the interval that was promised for them."""
    people = int(labels.max()) + 1
    inside, plain, ratios, widths = [], [], [], []
    for split in range(splits):
        order = torch.randperm(people, generator=torch.Generator().manual_seed(split))
        mine = torch.isin(labels, order[: round(share * people)])
        found = verify_threshold(vectors[mine], labels[mine], codes=False, unit=True, far=FAR, draws=200, seed=split)
        rate = shares_at(vectors[~mine], labels[~mine], threshold=found.threshold)[1]
        low, high = found.interval(people - found.people)
        inside.append(low <= rate <= high)
        plain.append(found.low <= rate <= found.high)
        ratios.append(rate / FAR)
        widths.append(high / low)
        if sys.stderr.isatty() or split % 20 == 19:
            print(f"split {split + 1} of {splits}: inside {numpy.mean(inside):.3f}", file=sys.stderr, flush=True)
    return {
        "calibrated on": share,
        "splits": splits,
        "inside": float(numpy.mean(inside)),
        "inside without widening": float(numpy.mean(plain)),
        "fresh / promised, mean": float(numpy.mean(ratios)),
        "fresh / promised, sd": float(numpy.std(ratios)),
        "high / low, median": float(numpy.median(widths)),
    }


def strangers(vectors: Tensor, labels: Tensor, *, splits: int) -> dict[str, Any]:
    """Strangers accepted by thresholds for identification, and by the one for verification."""
    first = torch.stack([(labels == person).nonzero()[0, 0] for person in range(int(labels.max()) + 1)])
    found: dict[str, list[float]] = {"verify": [], **{str(fpir): [] for fpir in FPIRS}}
    pairs = all_pairs(vectors, labels, far=FAR)
    for split in range(splits):
        order = first[torch.randperm(len(first), generator=torch.Generator().manual_seed(split))]
        enrolled, others = order[:ENROLLED], order[ENROLLED:]
        known, fresh = others[: len(others) // 2], others[len(others) // 2 :]
        matrix = Matrix(vectors.shape[1], codes=False, unit=True)
        matrix.put(0, vectors[enrolled].numpy(), numpy.arange(1, len(enrolled) + 1))
        near = torch.from_numpy(matrix.nearest(vectors[known].numpy(), k=1).squared[:, 0])
        seen = torch.from_numpy(matrix.nearest(vectors[fresh].numpy(), k=1).squared[:, 0])
        for fpir in FPIRS:
            threshold = identify_threshold(near, templates=len(enrolled), fpir=fpir).threshold
            found[str(fpir)].append(float((seen <= threshold).double().mean()))
        found["verify"].append(float((seen <= pairs.limit).double().mean()))
    means = {name: float(numpy.mean(values)) for name, values in found.items()}
    kept = {fpir: means[str(fpir)] / fpir for fpir in FPIRS}
    return {"strangers accepted": means, "accepted / promised": kept, "enrolled": ENROLLED, "splits": splits}


def codes(vectors: Tensor, labels: Tensor) -> dict[str, float]:
    """Rank-1, VAL and nearest neighbours of 128-byte codes beside float, one template for each person."""
    order = torch.arange(len(labels))
    first = torch.zeros(len(labels), dtype=torch.bool)
    first[torch.stack([(labels == person).nonzero()[0, 0] for person in range(int(labels.max()) + 1)])] = True
    several = (labels.bincount()[labels] > 1) & ~first
    gallery, probes = order[first], order[several]
    owners = labels[gallery].numpy() + 1
    results = {}
    nearest = {}
    for name, coded in (("float", False), ("codes", True)):
        rows = quantised(vectors).numpy() if coded else vectors.numpy()
        matrix = Matrix(vectors.shape[1], codes=coded, unit=True)
        matrix.put(0, rows[gallery], owners)
        nearest[name] = matrix.nearest(rows[probes], k=1).rows[:, 0]
        results[f"rank-1, {name}"] = float((labels[gallery][nearest[name]] == labels[probes]).double().mean())
        judged = restored(quantised(vectors)) if coded else vectors
        results[f"VAL at FAR {FAR:g}, {name}"] = all_pairs(judged, labels, far=FAR).val
    results["same nearest template"] = float((nearest["float"] == nearest["codes"]).mean())
    return {**results, "gallery": len(gallery), "probes": len(probes)}


def main() -> None:
    """Measure all of it and write it."""
    path = Path(sys.argv[1])
    splits = int(sys.argv[2]) if len(sys.argv) > 2 else SPLITS
    vectors, labels = read(path)
    people = int(labels.max()) + 1
    if people < LEAST_PEOPLE:
        sys.exit(f"{people} identities show nothing about thresholds; {LEAST_PEOPLE} at least are needed.")
    found = {"images": len(labels), "people": people, "codes": codes(vectors, labels)}
    found["strangers"] = strangers(vectors, labels, splits=splits)
    print(json.dumps(found, indent=1), flush=True)
    found["halves"] = fresh_rates(vectors, labels, share=0.5, splits=splits)
    found["70:30"] = fresh_rates(vectors, labels, share=0.7, splits=splits)
    print(json.dumps(found, indent=1))
    OUT.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
