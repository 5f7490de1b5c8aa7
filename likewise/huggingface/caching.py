"""A cache of transformers whose layers hold the state of linear attention, so that `generate` needs constant memory."""

from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel
from transformers.cache_utils import Cache, CacheLayerMixin

from likewise.attention import Attend
from likewise.checks import refuse, require

New = tuple[Tensor, Tensor, Tensor | None]  # keys, values and mask of new positions


class LinearCache(Cache):
    """What `generate(past_key_values=LinearCache(model))` keeps between tokens: one state per layer.

    The model uses one of the implementations of `register`. Greedy decoding, sampling, beam search, assisted and
    prompt-lookup decoding, chunked prefill and continuing a conversation give what full passes give. While candidates
    are verified (`activate_past_recording`, which `generate` calls), the positions since the last `crop` are kept as
    they came, so any number of them can be taken back; no lag has to be chosen.

    It does not grow, but for `likewise_exact`, which keeps all keys and values. `nbytes` is its memory.
    """

    layers: list["StateLayer"]

    def __init__(self, model: PreTrainedModel) -> None:
        config = model.config.get_text_config(decoder=True)
        name = config._attn_implementation
        hint = 'Load it with attn_implementation="likewise_elu", after likewise.huggingface.register().'
        own = isinstance(name, str) and name.startswith("likewise_")
        require(own, "LinearCache", "model", "use an attention of likewise", repr(name), hint)
        super().__init__(layers=[StateLayer() for _ in range(config.num_hidden_layers)])

    @property
    def nbytes(self) -> int:
        """The memory of all layers' states, without positions kept for `crop`."""
        return sum(layer.state.nbytes for layer in self.layers if layer.state is not None)


class StateLayer(CacheLayerMixin):
    """One layer of a `LinearCache`.

    `update` comes before attention and sees no query: it returns the new keys, to which the layer is attached, and the
    attention function calls `attend` of the layer that it finds there.
    """

    is_croppable = True
    supports_early_init = False
    is_sliding = False

    def __init__(self) -> None:
        super().__init__()
        self.reset()

    def reset(self) -> None:
        """Forget all positions."""
        self.length = self.batch = 0
        self.form: Attend | None = None
        self.state: Any = None  # what `Attend.empty_cache` gives
        self.record_past = False
        self.cropped: Any = None  # the state at the last crop, and what came since
        self.since: list[New] = []

    def lazy_initialization(self, key_states: Tensor, value_states: Tensor) -> None:
        """Nothing: a state is made when attention is first called."""

    def update(self, key_states: Tensor, value_states: Tensor, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
        """The new keys and values, with this layer attached to the keys."""
        self.length += key_states.shape[2]
        self.batch = key_states.shape[0]
        keys = key_states.view_as(key_states)
        keys.likewise_layer = self  # ty: ignore[missing-attribute]
        return keys, value_states

    def attend(self, form: Attend, q: Tensor, new: New) -> Tensor:
        """The outputs of new positions, which see all before them."""
        k, v, mask = new
        if self.state is None:
            self.form = form
            self.state = form.empty_cache(batch=k.shape[0], kv_heads=k.shape[1], value_dim=v.shape[3])
            self.cropped = self.state
        if self.record_past:
            self.since.append(new)
        out, self.state = form.decode(q, k, v, self.state, mask)
        return out

    def get_mask_sizes(self, query_length: int) -> tuple[int, int]:
        """The number of keys that the next queries see, and the position of the first."""
        return self.length + query_length, 0

    def get_seq_length(self) -> int:
        """The number of positions so far."""
        return self.length

    def get_max_length(self) -> int:
        """No maximum."""
        return -1

    def activate_past_recording(self) -> None:
        """Keep positions as they come until the next `crop`."""
        self.record_past, self.cropped, self.since = True, self.state, []

    def crop(self, tokens_to_remove: int) -> None:
        """Take back -tokens_to_remove positions, and forget how to take back what is left."""
        require(tokens_to_remove <= 0, "LinearCache.crop", "tokens_to_remove", "be at most 0", tokens_to_remove)
        kept, hint = sum(k.shape[2] for k, _, _ in self.since), "Call activate_past_recording() before they come."
        rule = f"be at least {-kept}, the positions recorded since the last crop"
        require(-tokens_to_remove <= kept, "LinearCache.crop", "tokens_to_remove", rule, tokens_to_remove, hint)
        if tokens_to_remove < 0 and self.form is not None:
            stay, self.length = kept + tokens_to_remove, self.length + tokens_to_remove
            state = self.cropped
            for k, v, mask in self.since:
                if (count := min(stay, k.shape[2])) > 0:
                    k, v, mask = k[:, :, :count], v[:, :, :count], None if mask is None else mask[:, :count]
                    if state is None:
                        state = self.form.empty_cache(batch=k.shape[0], kv_heads=k.shape[1], value_dim=v.shape[3])
                    _, state = self.form.decode(k, k, v, state, mask)  # any queries do: only the state is needed
                    stay -= count
            self.state = state
        self.cropped, self.since = self.state, []

    def reorder_cache(self, beam_idx: Tensor) -> None:
        """Keep these batch rows, in this order."""
        self.batch = len(beam_idx)
        if self.state is not None:
            self.state = self.state.select(beam_idx)
        if self.cropped is not None:
            self.cropped = self.cropped.select(beam_idx)
        self.since = [(k[beam_idx], v[beam_idx], None if mask is None else mask[beam_idx]) for k, v, mask in self.since]

    batch_select_indices = reorder_cache

    def batch_repeat_interleave(self, repeats: int) -> None:
        """Let every batch row stand so many times in a row."""
        if self.state is not None:
            self.reorder_cache(torch.arange(self.batch).repeat_interleave(repeats))

    def offload(self) -> None:
        refuse("LinearCache", "offloading", "be off", "on", "The state is small and stays where it is.")

    prefetch = offload
