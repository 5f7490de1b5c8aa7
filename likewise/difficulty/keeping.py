"""A folder that knows which work it holds, so that what was interrupted goes on where it stopped."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from jaxtyping import Bool, Int64
from torch import Tensor

from likewise.checks import require
from likewise.difficulty.activations import Activations, Layout, OnDisk
from likewise.files import write_whole
from likewise.networks.weights import load_tensors, save_tensors

Answers = dict[str, tuple[Bool[Tensor, "N"], Int64[Tensor, "k n"]]]  # of each set: who was asked, and the votes


@dataclass(frozen=True)
class Keeping:
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
