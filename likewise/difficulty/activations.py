"""Activations of a data set, in memory or on disk, and what a run keeps of them so that it can go on after a stop."""

import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy
import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor, nn

from likewise.checks import require
from likewise.difficulty.labelled import Digest, Labelled
from likewise.difficulty.taps import Tap, Taps
from likewise.files import write_whole
from likewise.networks.weights import load_tensors, save_tensors
from likewise.progress import Progress
from likewise.similarity import wide

GATHERED = 256  # rows of a file that are picked at a time
TYPES = {torch.float32: numpy.float32, torch.float64: numpy.float64}


@dataclass(frozen=True)
class Layout:
    """The probes in order of first execution, each with its width; the type in which all are kept; how many classes."""

    widths: Mapping[str, int]
    dtype: torch.dtype
    classes: int


@dataclass(frozen=True)
class OnDisk:
    """Rows of numbers in a file. Only the piece that is asked for is mapped, so no more than that is resident."""

    path: Path
    shape: tuple[int, int]
    dtype: torch.dtype

    def __getitem__(self, index: slice | Tensor, /) -> Float[Tensor, "n K"]:
        count, width = self.shape
        if isinstance(index, Tensor):
            found = torch.empty(len(index), width, dtype=self.dtype)
            for start in range(0, len(index), GATHERED):
                rows = index[start : start + GATHERED].numpy()
                found[start : start + GATHERED] = torch.from_numpy(self._mapped(0, count)[rows])
            return found
        start, stop, step = index.indices(count)
        assert step == 1
        return torch.from_numpy(self._mapped(start, stop)) if stop > start else torch.empty(0, width, dtype=self.dtype)

    def _mapped(self, start: int, stop: int) -> numpy.ndarray:
        """Copied where written to, which nobody does: torch wants arrays that could be."""
        offset = start * self.shape[1] * self.dtype.itemsize
        return numpy.memmap(self.path, TYPES[self.dtype], "c", offset, (stop - start, self.shape[1]))


Stored = Tensor | OnDisk


@dataclass(frozen=True, eq=False)
class Activations:
    """What a model made of a set: its classes, and each layer's rows with their sum."""

    predicted: Int64[Tensor, "N"]
    layers: Mapping[str, Stored]
    sums: Mapping[str, Float64[Tensor, "_"]]


def require_evaluation(where: str, model: nn.Module) -> None:
    """Refuse a model any part of which is in training mode, where activations depend on chance and on the batch."""
    busy = [name or "the model" for name, module in model.named_modules() if module.training]
    got = f"{', '.join(busy[:3])} in training mode"
    require(not busy, where, "model", "be in evaluation mode", got, "Call model.eval().")


def layout_of(model: nn.Module, data: Labelled, layers: Sequence[str | Tap] | None) -> Layout:
    """What the probes are, found by running the first example."""
    with Taps(model, layers) as taps, torch.no_grad():
        model(next(data.batches())[:1].to(device_of(model)))
    assert taps.logits is not None
    kinds = [feature.dtype for feature in taps.features.values() if feature.is_floating_point()]
    dtype = torch.float64 if torch.float64 in kinds else wide(kinds[0])
    return Layout({name: each.numel() for name, each in taps.features.items()}, dtype, taps.logits.shape[1])


def device_of(model: nn.Module) -> torch.device:
    """Where the model's weights are."""
    return next((tensor.device for tensor in model.parameters()), torch.device("cpu"))


def capture(
    model: nn.Module,
    data: Labelled,
    layers: Sequence[str | Tap] | None,
    *,
    layout: Layout,
    wanted: Sequence[str],
    files: Mapping[str, Path],
    progress: Progress,
) -> Activations:
    """Run the model once over the set and keep the wanted layers: in their file if they have one, else in memory."""
    stores: dict[str, Stored] = {}
    for name in wanted:
        shape = (len(data), layout.widths[name])
        on_disk = name in files
        stores[name] = OnDisk(files[name], shape, layout.dtype) if on_disk else torch.zeros(shape, dtype=layout.dtype)
    sums = {name: torch.zeros(layout.widths[name], dtype=torch.float64) for name in wanted}
    predicted, done, digest = torch.zeros(len(data), dtype=torch.int64), 0, Digest()
    handles: dict[str, BinaryIO] = {}
    try:
        handles.update({name: _allocated(store) for name, store in stores.items() if isinstance(store, OnDisk)})
        with Taps(model, layers) as taps, torch.no_grad():
            for inputs in data.batches():
                if data.content is not None:
                    digest.add(inputs)
                model(inputs.to(device_of(model)))
                rows = slice(done, done + len(inputs))
                assert taps.logits is not None
                predicted[rows] = taps.logits.argmax(dim=1).cpu()
                for name, feature in _flat(taps.features, layout, len(inputs)).items():
                    if name in sums:
                        sums[name] += feature.sum(0, dtype=torch.float64)
                        _put(stores[name], rows, feature, handles.get(name))
                done += len(inputs)
                progress(done / len(data), "forward pass")
    finally:
        for handle in handles.values():
            handle.close()
    same = data.content in (None, digest.value)
    require(same, "capture", "data", "give the same inputs at every reading", "others", "Switch augmentation off.")
    for name, total in sums.items():
        require(bool(total.isfinite().all()), "capture", f"activations of {name!r}", "be finite", "others")
    return Activations(predicted, stores, sums)


def _flat(features: Mapping[str, Tensor], layout: Layout, count: int) -> dict[str, Tensor]:
    """One row of numbers for each input; every batch must give what the first example gave."""
    got = {name: tuple(feature.shape) for name, feature in features.items()}
    same = list(features) == list(layout.widths) and all(
        feature.shape[:1] == (count,) and math.prod(feature.shape[1:]) == layout.widths[name]
        for name, feature in features.items()
    )
    rule = f"give, for {count} inputs, {', '.join(f'{name} {count} x {w}' for name, w in layout.widths.items())}"
    require(same, "capture", "model", rule, got, "Select what belongs to an input: Tap(path, select=...).")
    return {name: feature.flatten(1).to("cpu", layout.dtype) for name, feature in features.items()}


def _allocated(store: OnDisk) -> BinaryIO:
    """The file at its full size, so that a disk that is too small says so now."""
    handle = store.path.open("wb")
    try:
        size = store.shape[0] * store.shape[1] * store.dtype.itemsize
        if size and hasattr(os, "posix_fallocate"):
            os.posix_fallocate(handle.fileno(), 0, size)
    except BaseException:
        handle.close()
        raise
    return handle


def _put(store: Stored, rows: slice, feature: Tensor, handle: BinaryIO | None) -> None:
    if isinstance(store, Tensor):
        store[rows] = feature
    else:
        assert handle is not None
        handle.write(feature.contiguous().numpy().data)


Answers = dict[str, tuple[Bool[Tensor, "N"], Int64[Tensor, "k n"]]]  # of each set: who was asked, and the votes


@dataclass(frozen=True)
class ResultStore:
    """Files of one run: `settings.json`, votes of finished layers, and activations until their layer is finished.

    lasting: somebody may come back to this folder; if not, only activations are written.
    """

    folder: Path
    lasting: bool

    def claim(self, fingerprint: str, settings: Mapping[str, Any]) -> None:
        """Make the folder this run's; that of another run is left as it is and refused."""
        if not self.lasting:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.folder / "settings.json"
        if path.exists():
            held = json.loads(path.read_text(encoding="utf-8")).get("fingerprint")
            hint = "Model, data or settings differ: take another folder."
            require(held == fingerprint, "prediction_depth", "folder", f"hold the run {fingerprint[:12]}", held, hint)
        else:
            text = json.dumps({"fingerprint": fingerprint, "settings": dict(settings)}, indent=1, sort_keys=True)
            write_whole(path, text)

    def activations_path(self, which: str, number: int) -> Path:
        """Where a layer's activations of one set go."""
        return self.folder / f"{which}_{number:03}.activations"

    def save_votes(self, number: int, answers: Answers, recomputed: int) -> None:
        """A finished layer; its activations are no longer needed."""
        tensors = {f"{which}.asked": asked for which, (asked, _) in answers.items()}
        tensors |= {f"{which}.votes": votes for which, (_, votes) in answers.items()}
        if self.lasting:
            save_tensors(self._votes(number), tensors, {"kind": "votes", "recomputed": recomputed})
        for which in answers:
            self.activations_path(which, number).unlink(missing_ok=True)

    def load_votes(self, number: int) -> tuple[Answers, int] | None:
        """What `save_votes` kept."""
        if not self._votes(number).exists():
            return None
        tensors, facts = load_tensors(self._votes(number), kind="votes")
        sets = sorted({key.partition(".")[0] for key in tensors})
        return {which: (tensors[f"{which}.asked"], tensors[f"{which}.votes"]) for which in sets}, facts["recomputed"]

    def save_activations(self, which: str, made: Activations) -> None:
        """That the forward pass over a set is done; the rows themselves are in their files."""
        tensors = {f"sum.{name}": total for name, total in made.sums.items()} | {"predicted": made.predicted}
        if self.lasting:
            save_tensors(self.folder / f"{which}.safetensors", tensors, {"kind": "activations"})

    def load_activations(self, which: str, count: int, layout: Layout, wanted: Iterable[str]) -> Activations | None:
        """The forward pass that `save_activations` kept, if the rows of all wanted layers are still in files."""
        path, names = self.folder / f"{which}.safetensors", list(layout.widths)
        files = {name: self.activations_path(which, names.index(name)) for name in wanted}
        if not path.exists() or not all(file.exists() for file in files.values()):
            return None
        tensors, _ = load_tensors(path, kind="activations")
        rows = {name: OnDisk(file, (count, layout.widths[name]), layout.dtype) for name, file in files.items()}
        return Activations(tensors["predicted"], rows, {name: tensors[f"sum.{name}"] for name in files})

    def _votes(self, number: int) -> Path:
        return self.folder / f"layer_{number:03}.safetensors"


def described(value: object) -> str:
    """A function told from others by its name and its code, for the fingerprint."""
    code = getattr(value, "__code__", None)
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__name__)}"
    return name if code is None else f"{name} {code.co_code.hex()} {code.co_consts!r} {code.co_names!r}"
