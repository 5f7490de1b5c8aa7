"""A measured tour as JSON, so that tests of the page need not measure: `python -m tests.tour.stored` writes it anew."""

import importlib
import json
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any
from unittest.mock import patch

import torch

from likewise.exits import EarlyExit
from likewise.networks import build_classifier
from likewise.progress import Progress, silent
from likewise.tour import tour
from likewise.tour.digit_depths import WHOLE
from likewise.tour.learning import Text
from tests.tour.plans import FEW, FEW_DIGITS, TINY

PATH = Path(__file__).with_suffix(".json")
ROOT = Path(__file__).parents[2]
SMALL = tour.TourPlan(
    widths=(8, 32),
    draws=2,
    lengths=(32, 64),
    contexts=(16, 32),
    allowance=5.0,
    real=TINY,
    embeddings=FEW,
    digits=FEW_DIGITS,
    topics="d",
    seed=3,
)


def measured_tour(progress: Progress = silent) -> tour.Tour:
    """A small tour, on a short text: the library's own takes seconds to read."""
    text = Text(torch.arange(97) % 83, torch.arange(53) % 83, files=7)
    with patch("likewise.tour.real_attention.library_text", lambda: text):
        return tour.take_tour(progress, plan=SMALL)


def stored_tour() -> tour.Tour:
    """The tour that was written."""
    return decoded(json.loads(PATH.read_text(encoding="utf-8")))


def encoded(value: Any) -> Any:
    """A result as JSON: each dataclass and named tuple with its name, each dictionary as pairs, each tuple as a list.

    Of trained networks only the names of exits are stored: no page asks for more.
    """
    names = [each.name for each in fields(value)] if is_dataclass(value) else getattr(value, "_fields", None)
    if names is not None:
        kind = f"{type(value).__module__}:{type(value).__qualname__}"
        return {"type": kind, **{name: encoded(getattr(value, name)) for name in names}}
    if isinstance(value, dict):
        return {"type": "dict", "items": [[encoded(key), encoded(each)] for key, each in value.items()]}
    if isinstance(value, list):
        return {"type": "list", "items": encoded(tuple(value))}
    if isinstance(value, tuple):
        return [encoded(each) for each in value]
    if isinstance(value, str):
        return value.replace(f"{ROOT}/", "")
    if isinstance(value, torch.Tensor):
        return {"type": "tensor", "dtype": str(value.dtype), "values": value.tolist()}
    if isinstance(value, EarlyExit):
        return {"type": "exits", "heads": list(value.names)}
    if isinstance(value, torch.nn.Module):
        return {"type": "module"}
    if isinstance(value, float):
        return float(f"{value:.5g}")
    assert value is None or isinstance(value, int), f"not stored: {type(value)}"
    return value


def decoded(value: Any) -> Any:
    """The result of what `encoded` gave."""
    if isinstance(value, list):
        return tuple(map(decoded, value))
    if not isinstance(value, dict):
        return value
    parts = dict(value)
    kind = parts.pop("type")
    if kind == "tensor":
        return torch.tensor(parts["values"], dtype=getattr(torch, parts["dtype"].removeprefix("torch.")))
    if kind == "exits":
        return EarlyExit(build_classifier(WHOLE, channels=1, num_classes=10, seed=0), heads=parts["heads"])
    if kind == "module":
        return torch.nn.Identity()
    if kind == "list":
        return list(decoded(parts["items"]))
    if kind == "dict":
        return {decoded(key): decoded(each) for key, each in parts["items"]}
    module, _, name = kind.partition(":")
    return getattr(importlib.import_module(module), name)(**{name: decoded(each) for name, each in parts.items()})


def shape(value: Any) -> Any:
    """What an encoded result is made of: the fields of its dataclasses, the kinds of its values, no value."""
    if isinstance(value, dict):
        return {name: each if name == "type" else shape(each) for name, each in value.items()}
    if isinstance(value, list):
        return sorted({json.dumps(shape(each), sort_keys=True) for each in value})
    return type(value).__name__


if __name__ == "__main__":
    PATH.write_text(json.dumps(encoded(measured_tour()), separators=(",", ":")) + "\n", encoding="utf-8")
