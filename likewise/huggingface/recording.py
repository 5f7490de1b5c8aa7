"""Queries, keys and values of every attention layer of a model, while it computes what it always computes."""

from collections.abc import Callable, Generator
from contextlib import contextmanager
from functools import partial
from typing import NamedTuple

from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface

from likewise.attention import Attend, Softmax
from likewise.attention.masks import Structure
from likewise.huggingface import plugging

NAME = "likewise_recorded"


class Call(NamedTuple):
    """One call of one layer's attention: softmax attention of q, k, v gave `out`."""

    layer: str  # the name of the attention module in the model
    q: Tensor  # (B, H, T, K)
    k: Tensor  # (B, G, S, K)
    v: Tensor  # (B, G, S, V)
    out: Tensor  # (B, H, T, V)
    scale: float
    structure: Structure


class _Recorder(Attend):
    """Softmax attention that shows each of its calls."""

    def __init__(self, layer: str, scale: float, show: Callable[[Call], None]) -> None:
        super().__init__()
        self.layer, self.scale, self.show = layer, scale, show
        self.softmax = Softmax(scale=scale)

    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        out = self.softmax.attend(q, k, v, structure)
        call = Call(self.layer, q.detach(), k.detach(), v.detach(), out.detach(), self.scale, structure)
        self.show(call)
        return out


@contextmanager
def recorded(model: PreTrainedModel, show: Callable[[Call], None]) -> Generator[None]:
    """Within, every attention layer is softmax attention that shows its calls; afterwards all is as before."""
    names = {module: name for name, module in model.named_modules()}
    before = model.config._attn_implementation

    def record(module: nn.Module, key_dim: int, scale: float) -> Attend:
        return _Recorder(names[module], scale, show)

    plugging.FORMS[NAME] = record
    AttentionInterface.register(NAME, partial(plugging._attention, NAME))
    AttentionMaskInterface.register(NAME, partial(plugging._mask, NAME))
    try:
        model.set_attn_implementation(NAME)
        yield
    finally:
        model.set_attn_implementation(before)
        del plugging.FORMS[NAME]
        for module in names:
            plugging._forms.get(module, {}).pop(NAME, None)


def run(model: nn.Module, inputs: Tensor | dict[str, Tensor]) -> object:
    """One pass over token ids, or over what a tokenizer gives, without a cache."""
    given = {"input_ids": inputs} if isinstance(inputs, Tensor) else dict(inputs)
    accepts_cache = getattr(getattr(model, "config", None), "use_cache", False)
    return model(**given, **({"use_cache": False} if accepts_cache else {}))
