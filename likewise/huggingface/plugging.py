"""Attention and mask functions for transformers' tables, which say what they cannot compute before the first token."""

from collections.abc import Callable
from functools import partial
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import AttentionInterface
from transformers.masking_utils import AttentionMaskInterface, bidirectional_mask_function, causal_mask_function

from likewise.attention import Attend, Elu, Hyperbolic, Linear, Positive, Softmax
from likewise.checks import refuse, require

FEATURES = 256


def _positive(make: type[Positive] | type[Hyperbolic], module: nn.Module, key_dim: int, scale: float) -> Attend:
    # Drawn by the layer's number: a model that is loaded again has the same maps.
    layer = getattr(module, "layer_idx", None)
    generator = torch.Generator().manual_seed(0 if layer is None else layer)
    return Linear(make(key_dim, num_features=FEATURES, scale=scale, generator=generator))


def _converted(module: nn.Module, key_dim: int, scale: float) -> Attend:
    attend = module._modules.get("likewise")
    hint = "Call likewise.huggingface.convert or distill first, or load a model that they made."
    require(isinstance(attend, Attend), "likewise_converted", "the model", "be a converted one", "another", hint)
    assert isinstance(attend, Attend)
    return attend


def _fitted(module: nn.Module, key_dim: int, scale: float) -> Attend:
    hint = "A name brings no data. Call likewise.huggingface.convert(model, texts), which fits maps to them."
    refuse("likewise_fitted", "the maps", "be fitted to the model's own queries and keys", "no texts", hint)


# What each implementation attends with: (module, key_dim, scale) -> Attend.
FORMS: dict[str, Callable[[nn.Module, int, float], Attend]] = {
    "likewise_elu": lambda module, key_dim, scale: Linear(Elu()),
    "likewise_positive": partial(_positive, Positive),
    "likewise_hyperbolic": partial(_positive, Hyperbolic),
    "likewise_fitted": _fitted,
    "likewise_exact": lambda module, key_dim, scale: Softmax(scale=scale),
    "likewise_converted": _converted,
}
# What a model passes to its attention and linear attention does not have: the setting of the model, and what to do.
UNSUPPORTED = {
    "sliding_window": ("config.sliding_window", "Set it to None before the model is built"),
    "softcap": ("config.attn_logit_softcapping", "Set it to None"),
    "s_aux": ("the attention sinks (s_aux)", "Take a model without sinks"),
    "position_bias": ("the position bias", "Take a model with rotary or absolute positions"),
    "output_attentions": ("output_attentions", "Leave it out: there are no weights"),
}
_forms: WeakKeyDictionary[nn.Module, dict[str, Attend]] = WeakKeyDictionary()


def register() -> None:
    """Let `attn_implementation` take likewise_elu, likewise_positive, likewise_hyperbolic and likewise_exact.

    `from_pretrained` then also loads models that `convert` and `distill` made.

    Encoders and decoders, grouped heads, padding on either side, packed sequences, the model's own scaling. Sliding
    windows, softcaps, sinks, 4-D masks, attention dropout and static caches raise before the first token.
    The maps of random features have 256 features and one draw per layer, by the layer's number. `Fitted` needs data, so
    likewise_fitted refuses and names `convert`.

        likewise.huggingface.register()
        model = AutoModelForCausalLM.from_pretrained(folder, attn_implementation="likewise_elu")
        model.generate(**inputs, past_key_values=LinearCache(model))
    """
    for name in FORMS:
        AttentionInterface.register(name, partial(_attention, name))
        AttentionMaskInterface.register(name, partial(_mask, name))


def _attention(
    name: str,
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    **settings: Any,
) -> tuple[Tensor, None]:
    """What transformers calls in every layer: (B, H, T, K) and keys (B, G, S, K) to (B, T, H, V)."""
    for setting, (called, remedy) in UNSUPPORTED.items():
        value_of = settings.get(setting)
        if value_of is not None and value_of is not False:
            shown = "a tensor" if isinstance(value_of, Tensor) else value_of
            refuse(name, called, "be None", shown, f'{remedy}, or use attn_implementation="sdpa".')
    hint = "Set config.attention_dropout (attention_probs_dropout_prob in BERT) to 0: there are no weights to drop."
    require(dropout == 0, name, "attention dropout", "be 0", dropout, hint)
    causal = bool(getattr(module, "is_causal", False) if is_causal is None else is_causal)
    form = _form(name, module, key, query.shape[-1] ** -0.5 if scaling is None else scaling)
    mask = sequence_ids = None
    if attention_mask is not None:
        hint = "Give padding as (batch, positions); packed sequences by position_ids."
        require(attention_mask.dim() == 2, name, "attention_mask", "have 2 dimensions", attention_mask.dim(), hint)
        if attention_mask.dtype == torch.bool:
            mask = attention_mask
        else:
            sequence_ids = attention_mask
    layer = getattr(key, "likewise_layer", None)
    if layer is not None:
        require(causal, name, "the model", "be causal to decode with LinearCache", "is_causal=False")
        recent = None if mask is None else mask[:, mask.shape[1] - key.shape[2] :]
        recent = None if recent is None or bool(recent.all()) else recent
        return layer.attend(form, query, (key, value, recent)).transpose(1, 2), None
    if attention_mask is not None:
        rule = f"have as many positions as the keys, {key.shape[2]}"
        hint = "A model that changes keys after its cache cannot use LinearCache." if causal else ""
        require(attention_mask.shape[1] == key.shape[2], name, "attention_mask", rule, attention_mask.shape[1], hint)
    out = form(query, key, value, causal=causal, mask=mask, sequence_ids=sequence_ids)
    return out.transpose(1, 2), None


def _form(name: str, module: nn.Module, key: Tensor, scale: float) -> Attend:
    """The form of attention of one layer: the one it was given, or one made on first use."""
    forms = _forms.setdefault(module, {})
    if name not in forms:
        forms[name] = FORMS[name](module, key.shape[3], scale)
    return forms[name].to(key.device)


def _mask(
    name: str,
    batch_size: int,
    q_length: int,
    kv_length: int,
    q_offset: int | Tensor = 0,
    kv_offset: int = 0,
    mask_function: Callable[..., Any] = causal_mask_function,
    attention_mask: Tensor | None = None,
    *,
    use_vmap: bool = False,
    local_size: int | None = None,
    device: torch.device | str = "cpu",
    **others: Any,
) -> Tensor | None:
    """What transformers calls once per pass: None, the keys that are no padding (B, S), or sequence ids (B, S)."""
    otherwise = 'use attn_implementation="sdpa".'
    if local_size is not None:
        called, remedy = UNSUPPORTED["sliding_window"]
        refuse(name, called, "be None", local_size, f"{remedy}, or {otherwise}")
    require(not use_vmap, name, "the mask function", "be causal or bidirectional", "a custom one", f"Else {otherwise}")
    seen = int(q_offset) + q_length
    causal = mask_function is not bidirectional_mask_function
    hint = "Leave out cache_implementation, or pass past_key_values=LinearCache(model)."
    require(not causal or kv_length <= seen, name, "the cache", "be dynamic or a LinearCache", "a static cache", hint)
    require(kv_offset == 0, name, "the cache", "hold all positions", f"those from {kv_offset} on", hint)
    if mask_function not in (causal_mask_function, bidirectional_mask_function):
        plain = attention_mask is None and q_length == kv_length
        require(plain, name, "packed sequences", "come without attention_mask and cache", "one of them")
        return _sequence_ids(name, mask_function, batch_size, q_length, device)
    if attention_mask is not None:
        return attention_mask[:, :kv_length].bool()
    # After the first pass the width of the mask tells the attention function whether it sees all keys.
    return torch.ones(batch_size, kv_length, dtype=torch.bool, device=device) if int(q_offset) > 0 else None


def _sequence_ids(name: str, sees: Callable[..., Any], batch: int, length: int, device: torch.device | str) -> Tensor:
    """The packed sequence that each position belongs to, read from a mask function in O(T) questions."""
    rows, at = torch.arange(batch, device=device)[:, None], torch.arange(length, device=device)[None]

    def ask(queries: Tensor, keys: Tensor) -> Tensor:
        return torch.as_tensor(sees(rows, 0, queries, keys)).expand(batch, -1)

    joined = ask(at[:, 1:], at[:, :-1])
    ids = nn.functional.pad((~joined).long().cumsum(1), (1, 0))
    first = torch.searchsorted(ids, ids)  # where the sequence of each position begins
    before = (first - 1).clamp(min=0)
    packed = (
        bool(ask(at, at).all())
        and not bool(ask(at[:, :-1], at[:, 1:]).any())
        and bool(ask(at, first).all())
        and not bool((ask(at, before) & (first > 0)).any())
    )
    rule = "be that of packed causal sequences"
    require(packed, name, "the mask function", rule, "another one", 'Use attn_implementation="sdpa".')
    return ids
