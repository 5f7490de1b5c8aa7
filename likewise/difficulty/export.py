"""Depths as files for others: a line for each example, or everything; each says how it came about."""

import csv
import io
import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from likewise.checks import refuse, require
from likewise.difficulty.plan import DepthPlan, LayerPlan
from likewise.difficulty.results import Curve, Depths, PredictionDepth, Reads
from likewise.files import write_whole

KIND = "likewise prediction depth"


def depth_csv(found: PredictionDepth) -> str:
    """A line for each example; before them, behind #, settings, fingerprint and versions."""
    page = io.StringIO()
    for name, value in _provenance(found).items():
        page.write(f"# {name}: {json.dumps(value)}\n")
    table = csv.writer(page, lineterminator="\n")
    others = [k for k in found.train.sweep if k != found.k]
    table.writerow(
        ["set", "row", "label", "predicted", "correct", "depth", "undefined", *(f"depth_k{k}" for k in others)]
    )
    for which, each in _sets(found).items():
        columns = [each.rows, each.labels, each.predicted, each.correct.long(), each.depth, each.undefined.long()]
        for line in torch.stack([*columns, *(each.sweep[k] for k in others)], dim=1).tolist():
            table.writerow([which, *line])
    return page.getvalue()


def depth_json(found: PredictionDepth) -> str:
    """All of a result; `read_depth` gives it back."""
    facts = {
        **_provenance(found),
        "probes": len(found.layers),
        "classes": found.train.classes,
        "sets": {which: _depths_facts(each) for which, each in _sets(found).items()},
        "curves": {
            which: {"rows": each.rows.tolist(), "ks": list(each.ks)}
            | {"accuracy": each.accuracy.tolist(), "agreement": each.agreement.tolist()}
            for which, each in found.curves.items()
        },
        "reads": asdict(found.reads),
        "recomputed": found.recomputed,
        "plan": asdict(found.plan),
        "seconds": found.seconds,
    }
    return json.dumps(facts, indent=1) + "\n"


def write_depth(found: PredictionDepth, path: Path | str) -> None:
    """Write a result to a file that ends in .csv or .json; it is there as a whole or not at all."""
    forms = {".csv": depth_csv, ".json": depth_json}
    form = forms.get(Path(path).suffix)
    if form is None:
        refuse("write_depth", "path", "end in .csv or .json", repr(str(path)))
    write_whole(Path(path), form(found).encode())


def read_depth(path: Path | str) -> PredictionDepth:
    """What `write_depth` wrote as JSON."""
    try:
        facts = json.loads(Path(path).read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        refuse("read_depth", "path", "be a JSON of write_depth", repr(str(path)), str(error))
    kind = facts.get("kind") if isinstance(facts, dict) else None
    require(kind == KIND, "read_depth", "path", "be a JSON of write_depth", repr(str(path)))
    sets = {which: _depths(each, facts) for which, each in facts["sets"].items()}
    curves = {
        which: Curve(_whole(each["rows"]), tuple(each["ks"]), _real(each["accuracy"]), _real(each["agreement"]))
        for which, each in facts["curves"].items()
    }
    layers = tuple(LayerPlan(**layer) for layer in facts["plan"].pop("layers"))
    return PredictionDepth(
        tuple(facts["layers"]),
        facts["k"],
        sets["train"],
        sets.get("test"),
        curves,
        Reads(**facts["reads"]),
        facts["recomputed"],
        DepthPlan(layers, **facts["plan"]),
        facts["settings"],
        facts["fingerprint"],
        facts["versions"],
        facts["seconds"],
    )


def _provenance(found: PredictionDepth) -> dict[str, Any]:
    return {
        "kind": KIND,
        "k": found.k,
        "layers": list(found.layers),
        "settings": dict(found.settings),
        "fingerprint": found.fingerprint,
        "versions": dict(found.versions),
    }


def _sets(found: PredictionDepth) -> dict[str, Depths]:
    return {"train": found.train} if found.test is None else {"train": found.train, "test": found.test}


def _depths_facts(each: Depths) -> dict[str, Any]:
    """Its examples and, for whoever only reads, the sums over them."""
    return {
        "rows": each.rows.tolist(),
        "labels": each.labels.tolist(),
        "predicted": each.predicted.tolist(),
        "depth": {str(k): depth.tolist() for k, depth in each.sweep.items()},
        "undefined_rate": _known(each.undefined_rate),
        "accuracy": _known(each.accuracy),
        "mean_depth": _known(each.mean()),
        "counts": each.counts.tolist(),
        "accuracy_by_depth": [_known(value) for value in each.accuracy_by_depth.tolist()],
        "classes_by_depth": each.classes_by_depth.tolist(),
    }


def _depths(facts: dict[str, Any], whole: dict[str, Any]) -> Depths:
    return Depths(
        _whole(facts["rows"]),
        _whole(facts["labels"]),
        _whole(facts["predicted"]),
        whole["k"],
        {int(k): _whole(depth) for k, depth in facts["depth"].items()},
        probes=whole["probes"],
        classes=whole["classes"],
    )


def _known(value: float) -> float | None:
    """JSON has no NaN."""
    return None if math.isnan(value) else value


def _whole(values: list[int]) -> Tensor:
    return torch.tensor(values, dtype=torch.int64)


def _real(values: list[list[float]]) -> Tensor:
    return torch.tensor(values, dtype=torch.float64)
