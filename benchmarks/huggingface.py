"""Time and memory of linear attention in transformers' models beside SDPA, and decoding beside a growing cache.

Run: python -m benchmarks.huggingface decoding [tokens] | lengths [longest]

decoding: tokens a second and bytes of a LinearCache beside transformers' cache, on a random Llama of two layers; it
first checks that decoding equals one full pass. lengths: one pass over 512 tokens and more, batch 1, on models of the
sizes of SmolLM2-135M and MiniLM with random weights, of which time and memory do not depend. Each cell is a process of
its own.
"""

import json
import resource
import subprocess
import sys
import time
from typing import Any

import torch
from transformers import BertConfig, BertModel, DynamicCache, LlamaConfig, LlamaForCausalLM

from likewise.huggingface import LinearCache, register
from likewise.huggingface.mixed import IMPLEMENTATION, HeadGroup, LayerPlan, attach

STEPS = 200  # tokens that one line of `decoding` is the mean of
MARKS = (1_000, 2_000, 4_000, 8_000, 16_000)
SHORTEST = 512
PASSES = 3  # of which the fastest counts; one where a pass takes longer than SLOW seconds
SLOW = 10.0
FORMS = ("sdpa", "likewise_elu", "likewise_positive", "distilled")


# Decoding.


def small(attention: str, length: int) -> Any:
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
    llama, ids = small(attention, 64), torch.randint(512, (1, 64))
    cache = LinearCache(llama)
    steps = torch.cat([llama(ids[:, i : i + 1], past_key_values=cache)[0] for i in range(64)], dim=1)
    difference = (steps - llama(ids)[0]).abs().max().item()
    if difference > 1e-4:
        sys.exit(f"{attention}: decoding differs from the full pass by {difference:g}")


def bytes_of(cache: Any) -> int:
    """Memory of keys and values, or of the states."""
    return cache.nbytes if isinstance(cache, LinearCache) else sum(x.keys.nbytes * 2 for x in cache.layers)


@torch.inference_mode()
def decoding(length: int) -> None:
    """Decode with every form in turn, so that all meet the same load, and print a row at every mark.

    The crossover is the first mark from which a form is faster than sdpa. Seconds are those of the processor.
    """
    forms = FORMS[:3]
    for attention in forms[1:]:
        check(attention)
    models = {name: small(name, length) for name in forms}
    caches: dict[str, Any] = {
        name: DynamicCache() if name == "sdpa" else LinearCache(model) for name, model in models.items()
    }
    token = torch.zeros(1, 1, dtype=torch.long)
    tokens, seconds = dict.fromkeys(forms, token), dict.fromkeys(forms, 0.0)
    marks, begin, faster = {mark for mark in MARKS if mark < length} | {length}, 0, {}
    print("tokens  " + "  ".join(f"{name:>28}" for name in forms))
    while begin < length:
        end = min(begin + STEPS, length, *(mark for mark in marks if mark > begin))
        rates = {}
        for name in forms:
            began = time.process_time()
            for _ in range(begin, end):
                tokens[name] = models[name](tokens[name], past_key_values=caches[name])[0].argmax(-1)
            spent = time.process_time() - began
            seconds[name] += spent
            rates[name] = (end - begin) / spent
        begin = end
        for name in forms[1:]:
            if rates[name] <= rates["sdpa"]:
                faster.pop(name, None)
            else:
                faster.setdefault(name, begin)
        if begin in marks:
            cells = (f"{rates[name]:7.0f}/s {bytes_of(caches[name]):12,} bytes" for name in forms)
            print(f"{begin:6}  " + "  ".join(f"{cell:>28}" for cell in cells), flush=True)
    print("all     " + "  ".join(f"{length / seconds[name]:26.0f}/s" for name in forms))
    for name in forms[1:]:
        print(f"{name} is faster than sdpa from {faster.get(name, 'more than ' + str(length))} tokens on")


# One pass.


def decoder(length: int) -> tuple[Any, int]:
    """A model of the sizes of SmolLM2-135M, and the window of its distilled form."""
    config = LlamaConfig(
        vocab_size=49_152,
        hidden_size=576,
        intermediate_size=1_536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        max_position_embeddings=length,
        tie_word_embeddings=True,
    )
    return LlamaForCausalLM(config), 64


def encoder(length: int) -> tuple[Any, int]:
    """A model of the sizes of MiniLM with a position table that is long enough."""
    config = BertConfig(
        hidden_size=384,
        intermediate_size=1_536,
        num_hidden_layers=6,
        num_attention_heads=12,
        max_position_embeddings=length,
    )
    return BertModel(config), 16


def distilled(model: Any, within: int) -> None:
    """Learned maps beside a window, as `distill` makes them: in all heads of a decoder, in half of an encoder's."""
    config, causal = model.config, isinstance(model, LlamaForCausalLM)
    heads = getattr(config, "num_key_value_heads", config.num_attention_heads)
    linear = tuple(range(heads if causal else heads // 2))
    width = config.hidden_size // config.num_attention_heads
    plan = LayerPlan(heads, width, width**-0.5, (HeadGroup(linear, "Learned", 256 if causal else 64, within),))
    names = [name for name, module in model.named_modules() if hasattr(module, "is_causal")]
    attach(model, dict.fromkeys(names, plan))


@torch.inference_mode()
def one(kind: str, form: str, length: int) -> None:
    """Print seconds of the processor for a pass, and the memory that it needed beyond the model's, as JSON."""
    register()
    torch.manual_seed(0)
    model, within = decoder(length) if kind == "SmolLM2" else encoder(length)
    model = model.eval()
    if form == "distilled":
        distilled(model, within)
    model.set_attn_implementation(IMPLEMENTATION if form == "distilled" else form)
    body = model.model if kind == "SmolLM2" else model  # logits of all tokens are not what is measured
    options = {"use_cache": False} if kind == "SmolLM2" else {}
    body(torch.randint(1_000, (1, 64)), **options)
    ids, before = torch.randint(1_000, (1, length)), peak()
    seconds: list[float] = []
    while len(seconds) < PASSES and (not seconds or seconds[0] < SLOW):
        began = time.process_time()
        body(ids, **options)
        seconds.append(time.process_time() - began)
    print(json.dumps({"seconds": min(seconds), "bytes": peak() - before}))


def peak() -> int:
    """The most memory that this process has held, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


def lengths(longest: int) -> None:
    """Print a table for each model: seconds and MB beyond the model's own."""
    for kind in ("SmolLM2", "MiniLM"):
        print(f"\n| {kind}, tokens | {' | '.join(FORMS)} |\n|{'---|' * (len(FORMS) + 1)}", flush=True)
        length = SHORTEST
        while length <= longest:
            cells = []
            for form in FORMS:
                command = [sys.executable, "-m", "benchmarks.huggingface", "one", kind, form, str(length)]
                out = subprocess.run(command, check=True, capture_output=True, text=True).stdout
                row = json.loads(out.splitlines()[-1])
                cells.append(f"{row['seconds']:.2f} s, {row['bytes'] / 1e6:.0f} MB")
            print(f"| {length:,} | " + " | ".join(cells) + " |", flush=True)
            length *= 2


def main(command: str = "decoding", *rest: str) -> None:
    """Run a part."""
    register()
    if command == "one":
        kind, form, length = rest
        one(kind, form, int(length))
    elif command == "lengths":
        lengths(int(rest[0]) if rest else 16_384)
    elif command == "decoding":
        decoding(int(rest[0]) if rest else 20_000)
    else:
        sys.exit("python -m benchmarks.huggingface decoding [tokens] | lengths [longest]")


if __name__ == "__main__":
    main(*sys.argv[1:])
