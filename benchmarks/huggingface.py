"""Tokens a second and bytes of a LinearCache beside transformers' growing cache, on a random Llama of two layers.

Run: python -m benchmarks.huggingface [tokens]. It first checks that decoding equals one full pass.
"""

import sys
import time
from typing import Any

import torch
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

from likewise.huggingface import LinearCache, register

STEPS = 200  # tokens that one line is the mean of


def model(attention: str, length: int) -> Any:
    """Two layers of width 256, four query heads and two key-value heads of width 64."""
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=512,
        hidden_size=256,
        intermediate_size=512,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=length + 1,
    )
    config._attn_implementation = attention
    return LlamaForCausalLM(config).eval()


def check(attention: str) -> None:
    """Refuse to measure what is wrong."""
    llama, ids = model(attention, 64), torch.randint(512, (1, 64))
    cache = LinearCache(llama)
    steps = torch.cat([llama(ids[:, i : i + 1], past_key_values=cache)[0] for i in range(64)], dim=1)
    difference = (steps - llama(ids)[0]).abs().max().item()
    if difference > 1e-4:
        sys.exit(f"{attention}: decoding differs from the full pass by {difference:g}")


def bytes_of(cache: Any) -> int:
    """Memory of keys and values, or of the states."""
    return cache.nbytes if isinstance(cache, LinearCache) else sum(x.keys.nbytes * 2 for x in cache.layers)


@torch.inference_mode()
def main(length: int) -> None:
    """Decode token by token, and print a line whenever the length has doubled."""
    register()
    for attention in ("likewise_elu", "likewise_positive", "sdpa"):
        if attention != "sdpa":
            check(attention)
        llama, token = model(attention, length), torch.zeros(1, 1, dtype=torch.long)
        cache = DynamicCache() if attention == "sdpa" else LinearCache(llama)
        shown, marks = 0, {1000 * 2**i for i in range(20)} | {length}
        began = time.perf_counter()
        for at in range(1, length + 1):
            if at + STEPS in marks:
                shown = time.perf_counter()
            token = llama(token, past_key_values=cache)[0].argmax(-1)
            if at in marks:
                rate = STEPS / (time.perf_counter() - shown)
                print(f"{attention:18} {at:6} tokens  {rate:7.1f} a second  {bytes_of(cache):10} bytes", flush=True)
        print(f"{attention:18} all: {length / (time.perf_counter() - began):.1f} tokens a second", flush=True)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 20_000)
