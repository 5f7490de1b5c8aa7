"""Layers whose key-value heads attend in different forms, and models that keep them when they are saved and loaded."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PreTrainedModel
from transformers.quantizers.auto import register_quantization_config, register_quantizer
from transformers.quantizers.base import HfQuantizer
from transformers.utils.quantization_config import QuantizationConfigMixin

from likewise.attention import (
    Attend,
    Elu,
    FeatureMap,
    Fitted,
    Hyperbolic,
    KeyValueCache,
    Learned,
    Linear,
    LinearState,
    Positive,
    Softmax,
    Taylor,
)
from likewise.attention.masks import Structure
from likewise.attention.random_features import RandomFeatures
from likewise.checks import require, require_choice

IMPLEMENTATION = "likewise_converted"
MAPS = ("Elu", "Taylor", "Positive", "Hyperbolic", "Fitted", "Learned")


@dataclass(frozen=True)
class HeadGroup:
    """Key-value heads of one layer that attend through one feature map, and through the kernel within a window."""

    heads: tuple[int, ...]
    map: str
    features: int
    within: int | None = None

    def build(self, key_dim: int, scale: float, seed: int) -> FeatureMap:
        """The feature map, drawn by the seed and not yet fitted or learned."""
        require_choice("HeadGroup", "map", self.map, MAPS)
        if self.map == "Elu":
            return Elu()
        if self.map == "Taylor":
            return Taylor(key_dim, scale=scale)
        generator = torch.Generator().manual_seed(seed)
        make = {"Positive": Positive, "Hyperbolic": Hyperbolic, "Fitted": Fitted, "Learned": Learned}[self.map]
        own: dict[str, Any] = {"kv_heads": len(self.heads)} if self.map in ("Fitted", "Learned") else {}
        return make(key_dim, num_features=self.features, scale=scale, generator=generator, **own)


@dataclass(frozen=True)
class LayerPlan:
    """How every key-value head of a layer attends: those in no group by softmax."""

    kv_heads: int
    key_dim: int
    scale: float
    groups: tuple[HeadGroup, ...]

    @property
    def exact(self) -> tuple[int, ...]:
        """The heads that stay softmax attention."""
        linear = {head for group in self.groups for head in group.heads}
        return tuple(head for head in range(self.kv_heads) if head not in linear)

    def build(self, seed: int) -> "MixedHeads":
        """The layer's attention, its maps not yet fitted or learned."""
        forms: list[Attend] = [
            Linear(group.build(self.key_dim, self.scale, seed), exact_within=group.within) for group in self.groups
        ]
        heads = [group.heads for group in self.groups]
        if self.exact:
            forms.append(Softmax(scale=self.scale))
            heads.append(self.exact)
        return MixedHeads(forms, heads)

    def to_json(self) -> dict[str, Any]:
        """Plain data, for config.json."""
        groups = [vars(group) | {"heads": list(group.heads)} for group in self.groups]
        return {"kv_heads": self.kv_heads, "key_dim": self.key_dim, "scale": self.scale, "groups": groups}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> "LayerPlan":
        """What `to_json` wrote."""
        groups = tuple(
            HeadGroup(tuple(group["heads"]), group["map"], group["features"], group["within"])
            for group in data["groups"]
        )
        return cls(data["kv_heads"], data["key_dim"], data["scale"], groups)


@dataclass(frozen=True, eq=False)
class MixedCache:
    """What the forms of a layer remember, one cache each."""

    parts: tuple[KeyValueCache | LinearState, ...]

    @property
    def nbytes(self) -> int:
        """The memory of all parts."""
        return sum(part.nbytes for part in self.parts)

    def select(self, rows: Tensor) -> "MixedCache":
        """A cache of these batch rows, in this order."""
        return MixedCache(tuple(part.select(rows) for part in self.parts))


class MixedHeads(Attend):
    """Attention whose key-value heads, with their query heads, attend in different forms.

    >>> mixed = MixedHeads([Linear(Elu()), Softmax()], [(1,), (0, 2)])
    >>> mixed(torch.zeros(1, 6, 5, 4), torch.zeros(1, 3, 5, 4), torch.zeros(1, 3, 5, 7), causal=True).shape
    torch.Size([1, 6, 5, 7])
    """

    def __init__(self, forms: Sequence[Attend], heads: Sequence[Sequence[int]]) -> None:
        super().__init__()
        every = sorted(head for group in heads for head in group)
        rule = "name every key-value head once, one group for each form"
        right = len(forms) == len(heads) and every == list(range(len(every))) and len(every) > 0
        require(right, "MixedHeads", "heads", rule, [list(group) for group in heads])
        self.forms, self.heads = nn.ModuleList(forms), tuple(tuple(group) for group in heads)

    def _split(self, q: Tensor, k: Tensor, v: Tensor) -> list[tuple[Tensor, Tensor, Tensor]]:
        """q, k and v of every form."""
        queries = q.unflatten(1, (k.shape[1], -1))
        parts = []
        for heads in self.heads:
            at = torch.tensor(heads, device=q.device)
            chosen = queries.index_select(1, at).flatten(1, 2), k.index_select(1, at), v.index_select(1, at)
            parts.append(chosen)
        return parts

    def _join(self, outs: list[Tensor]) -> Tensor:
        """Outputs of the forms, in the order of the heads."""
        order = torch.tensor([head for group in self.heads for head in group], device=outs[0].device).argsort()
        kv_heads = len(order)
        grouped = [out.unflatten(1, (len(group), -1)) for out, group in zip(outs, self.heads, strict=True)]
        return torch.cat(grouped, dim=1).index_select(1, order).flatten(1, 2) if kv_heads > 1 else outs[0]

    def attend(self, q: Tensor, k: Tensor, v: Tensor, structure: Structure) -> Tensor:
        split = zip(self.forms, self._split(q, k, v), strict=True)
        return self._join([form(*part, **structure._asdict()) for form, part in split])

    def empty_cache(self, *, batch: int, kv_heads: int, value_dim: int, lag: int = 0) -> MixedCache:  # ty: ignore
        caches = []
        for form, heads in zip(self.forms, self.heads, strict=True):
            assert isinstance(form, Attend)
            caches.append(form.empty_cache(batch=batch, kv_heads=len(heads), value_dim=value_dim, lag=lag))
        return MixedCache(tuple(caches))

    def decode(  # ty: ignore
        self, q: Tensor, k: Tensor, v: Tensor, cache: MixedCache, mask: Tensor | None = None
    ) -> tuple[Tensor, MixedCache]:
        outs, parts = [], []
        for form, part, split in zip(self.forms, cache.parts, self._split(q, k, v), strict=True):
            assert isinstance(form, Attend)
            out, after = form.decode(*split, part, mask)
            outs.append(out)
            parts.append(after)
        return self._join(outs), MixedCache(tuple(parts))


def attach(model: PreTrainedModel, plans: Mapping[str, LayerPlan]) -> None:
    """Give the attention modules of these names their forms, and the model the implementation that calls them.

    The name of a module may lack the prefix that a model of another task puts before it.
    """
    modules = dict(model.named_modules())
    for number, (name, plan) in enumerate(plans.items()):
        named = [full for full in modules if full == name or full.endswith(f".{name}") or name.endswith(f".{full}")]
        named = [full for full in named if full]
        require(len(named) == 1, "likewise", "model", f"have one attention module {name}", named or "none")
        modules[named[0]].add_module("likewise", plan.build(number))
    model.config.quantization_config = ConvertedConfig({name: plan.to_json() for name, plan in plans.items()})
    vars(model)["hf_quantizer"] = ConvertedModel(model.config.quantization_config)
    _keep_precision(model)


def _keep_precision(model: PreTrainedModel) -> None:
    """Load and save the maps in float32 whatever the model's dtype: rounded weights would be those of another map."""
    strict = model._keep_in_fp32_modules_strict
    model._keep_in_fp32_modules_strict = {*(strict or ()), "likewise"}


def restore(features: RandomFeatures) -> None:
    """Bring a map up to date with the buffers that were loaded into it, or rounded to what is saved, in float32."""
    for name in ("query_mean", "key_mean", "balance", "widening"):
        if isinstance(features, Fitted):
            setattr(features, name, getattr(features, name).float().double())
    features._settle()


@register_quantization_config("likewise")
class ConvertedConfig(QuantizationConfigMixin):
    """What config.json says of a converted model: how the heads of every layer attend."""

    def __init__(self, layers: Mapping[str, Any], quant_method: str = "likewise") -> None:
        self.quant_method = quant_method  # ty: ignore[invalid-assignment]
        self.layers = dict(layers)


@register_quantizer("likewise")
class ConvertedModel(HfQuantizer):
    """Builds the attention of a converted model before `from_pretrained` loads its weights.

    transformers has one place where a package may change a model before its weights are loaded, and it is called after
    quantization. Nothing is quantized.
    """

    def update_attn_implementation(self, config: Any) -> Any:
        config._attn_implementation = IMPLEMENTATION
        return config

    def _process_model_before_weight_loading(self, model: PreTrainedModel, **others: Any) -> PreTrainedModel:
        layers = self.quantization_config.layers  # ty: ignore[missing-attribute]
        with torch.device("cpu"):
            attach(model, {name: LayerPlan.from_json(data) for name, data in layers.items()})
        return model

    def _process_model_after_weight_loading(self, model: PreTrainedModel, **others: Any) -> PreTrainedModel:
        for module in model.modules():
            if isinstance(module, RandomFeatures):
                restore(module)
        vars(model)["is_quantized"] = False
        model.set_attn_implementation(IMPLEMENTATION)
        return model

    def is_serializable(self) -> bool:
        return True

    @property
    def is_trainable(self) -> bool:
        return True
