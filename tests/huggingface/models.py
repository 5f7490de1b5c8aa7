"""Small random models of transformers, one of each kind, whose tokens vary."""

from typing import Any

import torch
from transformers import (
    BertConfig,
    BertModel,
    LlamaConfig,
    LlamaForCausalLM,
    PreTrainedConfig,
    Qwen2Config,
    Qwen2ForCausalLM,
)

SIZES: dict[str, Any] = {
    "vocab_size": 97,
    "hidden_size": 40,
    "intermediate_size": 53,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "max_position_embeddings": 128,
    "initializer_range": 0.6,
}
DECODER: dict[str, Any] = {"num_key_value_heads": 2, "eos_token_id": None, "pad_token_id": 0}


def llama(attention: str, *, dtype: torch.dtype = torch.float64, **settings: Any) -> Any:
    """A decoder with two query heads per key-value head."""
    return _made(LlamaForCausalLM, LlamaConfig(**(SIZES | DECODER | settings)), attention, dtype)


def qwen(attention: str) -> Any:
    """A decoder with biases and one key-value head."""
    one_head: dict[str, Any] = {"num_key_value_heads": 1}
    return _made(Qwen2ForCausalLM, Qwen2Config(**(SIZES | DECODER | one_head)), attention, torch.float64)


def bert(attention: str, **settings: Any) -> Any:
    """An encoder."""
    return _made(BertModel, BertConfig(**(SIZES | settings)), attention, torch.float64)


def _made(kind: type, config: PreTrainedConfig, attention: str, dtype: torch.dtype) -> Any:
    torch.manual_seed(7)
    config._attn_implementation = attention
    return kind(config).to(dtype).eval()


def tokens(batch: int, length: int, seed: int = 0) -> torch.Tensor:
    """Token ids, none of them padding."""
    return torch.randint(1, 97, (batch, length), generator=torch.Generator().manual_seed(seed))
