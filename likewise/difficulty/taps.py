"""What a network computes on the way: the only place with forward hooks, which are gone when the taps are closed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Self

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

from likewise.checks import require
from likewise.networks import Network

INPUT, SOFTMAX = "input", "softmax"


@dataclass(frozen=True)
class Tap:
    """A layer by its path, and what of its output is wanted: an element of a tuple, or a mean over pixels."""

    path: str
    select: Callable[[Any], Tensor] | None = None

    @property
    def name(self) -> str:
        """The path, unless the model has given a module the name of the input or of the softmax."""
        return f"module {self.path}" if self.path in (INPUT, SOFTMAX) else self.path


class Taps:
    """While they are open, a forward pass leaves in `features` its input, what each layer gave, and its softmax.

    layers: module paths or, of our networks, names of segments, in any order. Unless given, they are the segments or
    else the direct children of the model, without a last one that gives the logits. `features` is in order of first
    execution; a module that is called again appears as `name#2`. `logits` is what the model gave. Every tensor is a
    copy without gradient, so nothing that happens later in place changes it, and the model runs as it would alone.

    >>> import torch
    >>> model = nn.Sequential(nn.Flatten(), nn.ReLU(inplace=True), nn.Softmax(dim=1)).eval()
    >>> with Taps(model, ["1", "0"]) as taps:
    ...     _ = model(torch.tensor([[-1.0, 3.0]]))
    >>> {name: feature.tolist() for name, feature in taps.features.items() if name != "softmax"}
    {'input': [[-1.0, 3.0]], '0': [[-1.0, 3.0]], '1': [[0.0, 3.0]]}
    """

    def __init__(self, model: nn.Module, layers: Sequence[str | Tap] | None = None) -> None:
        require(isinstance(model, nn.Module), "Taps", "model", "be a torch.nn.Module", type(model).__name__)
        self.model, self._by_default = model, layers is None
        known = dict(model.named_modules(remove_duplicate=False)) | _parts(model)
        known.pop("", None)
        self._taps: list[tuple[Tap, nn.Module]] = []
        for tap in _parts(model) if layers is None else layers:
            tap = tap if isinstance(tap, Tap) else Tap(tap)
            near = ", ".join(list(known)[:12])
            require(tap.path in known, "Taps", "layers", f"be modules of the model, such as {near}", repr(tap.path))
            module = known[tap.path]
            again = any(module is other for _, other in self._taps)
            require(not again, "Taps", "layers", "be different modules", f"{tap.path!r} again")
            self._taps.append((tap, module))
        self.features: dict[str, Tensor] = {}
        self.logits: Tensor | None = None
        self._last: Tensor | None = None  # what the latest layer gave, itself
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> Self:
        assert not self._handles, "these taps are open"
        self._handles.append(self.model.register_forward_pre_hook(self._begin))
        self._handles += [module.register_forward_hook(self._reader(tap)) for tap, module in self._taps]
        self._handles.append(self.model.register_forward_hook(self._end))
        return self

    def __exit__(self, *_: object) -> None:
        while self._handles:
            self._handles.pop().remove()

    def _begin(self, _: nn.Module, inputs: tuple[Any, ...]) -> None:
        one = len(inputs) == 1 and isinstance(inputs[0], Tensor)
        require(one, "Taps", "input", "be one tensor", ", ".join(type(each).__name__ for each in inputs) or "none")
        self.features = {INPUT: inputs[0].detach().clone()}

    def _reader(self, tap: Tap) -> Callable[..., None]:
        def read(_module: nn.Module, _inputs: object, output: Any) -> None:
            found = output if tap.select is None else tap.select(output)
            hint = f"Say which part: Tap({tap.path!r}, select=...)."
            is_tensor = isinstance(found, Tensor)
            require(is_tensor, "Taps", f"output of {tap.path!r}", "be a tensor", type(found).__name__, hint)
            name, calls = tap.name, 1
            while name in self.features:
                calls += 1
                name = f"{tap.name}#{calls}"
            self.features[name] = found.detach().clone()
            self._last = found

        return read

    def _end(self, _module: nn.Module, _inputs: object, output: Any) -> None:
        logits = isinstance(output, Tensor) and output.ndim == 2 and output.is_floating_point()
        got = f"shape {tuple(output.shape)}" if isinstance(output, Tensor) else type(output).__name__
        require(logits, "Taps", "output of the model", "be logits of shape (B, C)", got, "Wrap the model.")
        for tap, _ in self._taps:
            silent = f"nothing from {tap.path!r}"
            require(tap.name in self.features, "Taps", "layers", "take part in the forward pass", silent)
        if self._by_default and output is self._last:
            self.features.popitem()
        self._last = None
        self.logits = output.detach().clone()
        self.features[SOFTMAX] = self.logits.softmax(dim=1)


def _parts(model: nn.Module) -> dict[str, nn.Module]:
    """The segments of our networks, the children of others."""
    return dict(model.segments if isinstance(model, Network) else model.named_children())
