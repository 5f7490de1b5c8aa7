"""Score pairs through TRL, verl, verifiers or Inspect as a user runs them. It runs in an environment with that package.

Run: PYTHONPATH=. PYTHON benchmarks/peers/run_rewards.py trl | verl | verifiers | inspect. The pairs are those of
studies/sets/grades.jsonl that need no facts. TRL trains a random network of one layer for three steps (GRPOTrainer);
verl loads the reward from a file and scores a batch (NaiveRewardManager); verifiers scores tasks with a @vf.reward;
Inspect evaluates a task with a mock model. The exit code is 1 if a score is not that of `grade`.
"""

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path

from likewise.grading import grade
from likewise.grading.rewards import inspect_scorer, trl_reward, verifiers_reward

ROWS = map(json.loads, Path("studies/sets/grades.jsonl").read_text(encoding="utf-8").splitlines())
PAIRS = [(row["answer"], row["key"]) for row in ROWS if not row.get("given")]


def trl() -> tuple[list[float | None], list[float | None]]:
    """A GRPO run; the completions are those that the network samples."""
    from datasets import Dataset  # ty: ignore[import-not-found]
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast, Qwen2Config, Qwen2ForCausalLM
    from trl import GRPOConfig, GRPOTrainer  # ty: ignore[import-not-found]

    words = ["<pad>", "<eos>", "<unk>", "x", "+", "2", "4", "5", "6", "8", "?"]
    words_only = Tokenizer(models.WordLevel({word: place for place, word in enumerate(words)}, unk_token="<unk>"))
    words_only.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=words_only, pad_token="<pad>", eos_token="<eos>", unk_token="<unk>", padding_side="left"
    )
    network = Qwen2ForCausalLM(
        Qwen2Config(
            vocab_size=len(words),
            hidden_size=32,
            intermediate_size=32,
            num_hidden_layers=1,
            num_attention_heads=2,
            num_key_value_heads=2,
            pad_token_id=0,
            eos_token_id=1,
            bos_token_id=None,
        )
    )
    seen: list[tuple[str, str, float | None]] = []
    reward = trl_reward()

    def likewise_reward(completions: list[str], **columns: list[str]) -> list[float | None]:
        found = reward(completions=completions, **columns)
        seen.extend(zip(completions, columns["solution"], found, strict=True))
        return found

    with tempfile.TemporaryDirectory() as folder:
        options = GRPOConfig(
            output_dir=folder, per_device_train_batch_size=16, num_generations=8, max_completion_length=1, max_steps=3,
            report_to=[], use_cpu=True, bf16=False, save_strategy="no",
        )  # fmt: skip
        data = Dataset.from_dict({"prompt": ["2 + 2 ?", "4 + 4 ?", "x + x ?"], "solution": ["4", "8", "2x"]})
        GRPOTrainer(
            model=network, reward_funcs=[likewise_reward], args=options, train_dataset=data, processing_class=tokenizer
        ).train()
    return [found for _, _, found in seen], [grade(answer, key).reward for answer, key, _ in seen]


def verl() -> tuple[list[float], list[float]]:
    """A batch through verl's reward manager, with the reward in a file as its configuration names it."""
    import numpy as np
    import torch
    from omegaconf import OmegaConf  # ty: ignore[import-not-found]
    from verl import DataProto  # ty: ignore[import-not-found]
    from verl.trainer.ppo.reward import get_custom_reward_fn  # ty: ignore[import-not-found]
    from verl.workers.reward_manager.naive import NaiveRewardManager  # ty: ignore[import-not-found]

    class Characters:
        eos_token = ""

        def decode(self, ids: torch.Tensor, skip_special_tokens: bool = True) -> str:
            del skip_special_tokens
            return "".join(chr(int(each)) for each in ids)

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "reward.py"
        path.write_text("from likewise.grading.rewards import verl_score\n\ncompute_score = verl_score()\n")
        named = {"path": str(path), "name": "compute_score", "reward_kwargs": {}}
        score = get_custom_reward_fn(OmegaConf.create({"reward": {"custom_reward_function": named}}))
    longest = max(len(answer) for answer, _ in PAIRS)
    responses = torch.zeros(len(PAIRS), longest, dtype=torch.long)
    mask = torch.zeros(len(PAIRS), longest + 1, dtype=torch.long)
    for row, (answer, _) in enumerate(PAIRS):
        responses[row, : len(answer)] = torch.tensor([ord(each) for each in answer])
        mask[row, : len(answer) + 1] = 1
    objects = {
        "data_source": ["math"] * len(PAIRS),
        "reward_model": [{"ground_truth": key} for _, key in PAIRS],
        "extra_info": [{}] * len(PAIRS),
    }
    batch = DataProto.from_dict(
        tensors={"prompts": torch.full((len(PAIRS), 1), ord("?")), "responses": responses, "attention_mask": mask},
        non_tensors={name: np.array(values, dtype=object) for name, values in objects.items()},
    )
    manager = NaiveRewardManager(tokenizer=Characters(), num_examine=0, compute_score=score)
    return manager(batch, return_dict=True)["reward_tensor"].sum(-1).tolist(), expected()


def verifiers() -> tuple[list[float], list[float]]:
    """Tasks with a reward, each scored on a trace that holds the answer."""
    import verifiers.v1 as vf  # ty: ignore[import-not-found]
    from verifiers.v1.graph import MessageNode  # ty: ignore[import-not-found]
    from verifiers.v1.trace import TraceTask  # ty: ignore[import-not-found]

    judge = verifiers_reward()

    class PairData(vf.TaskData):
        answer: str

    class PairTask(vf.Task[PairData]):
        @vf.reward(weight=1.0)
        async def right(self, trace: vf.Trace) -> float:
            return judge(trace.last_reply, self.data.answer)

    async def score(place: int, answer: str, key: str) -> float:
        task = PairTask(PairData(idx=place, prompt="?", answer=key))
        said = MessageNode(message=vf.AssistantMessage(content=answer), sampled=True)
        trace = vf.Trace.model_construct(
            task=TraceTask.model_construct(data=task.data), nodes=[said], calls=[], rewards={}, metrics={}, info={},
            root_reply=None, state=None, errors=[],
        )  # fmt: skip
        await task.score(trace)
        return trace.reward

    async def every() -> list[float]:
        return [await score(place, answer, key) for place, (answer, key) in enumerate(PAIRS)]

    return asyncio.run(every()), expected()


def inspect() -> tuple[list[float], list[float]]:
    """An evaluation with Inspect's mock model; its tokens are counted by words, as a download would be needed else."""
    import tiktoken  # ty: ignore[import-not-found]

    class Words:
        def encode(self, text: str, **_: object) -> list[str]:
            return text.split()

        encode_ordinary = encode

    tiktoken.get_encoding = tiktoken.encoding_for_model = lambda _: Words()
    os.environ["INSPECT_DISPLAY"] = "none"
    from inspect_ai import Task, eval  # ty: ignore[import-not-found]
    from inspect_ai.dataset import Sample  # ty: ignore[import-not-found]
    from inspect_ai.model import ModelOutput, get_model  # ty: ignore[import-not-found]
    from inspect_ai.solver import generate  # ty: ignore[import-not-found]

    outputs = [ModelOutput.from_content("mockllm/model", answer) for answer, _ in PAIRS]
    task = Task(dataset=[Sample(input="?", target=key) for _, key in PAIRS], solver=generate(), scorer=inspect_scorer())
    with tempfile.TemporaryDirectory() as folder:
        model = get_model("mockllm/model", custom_outputs=outputs)
        (log,) = eval(task, model=model, max_samples=1, max_connections=1, log_dir=folder)
        return [next(iter(sample.scores.values())).value for sample in log.samples], expected()


def expected() -> list[float]:
    """The rewards of `grade`, 0 for undecided and depends."""
    return [grade(answer, key, depends=0.0, undecided=0.0).reward or 0.0 for answer, key in PAIRS]


scores, wanted = {"trl": trl, "verl": verl, "verifiers": verifiers, "inspect": inspect}[sys.argv[1]]()
print(f"{sys.argv[1]}: {len(scores)} scores, {scores.count(1.0)} of them 1; the same as grade: {scores == wanted}")
sys.exit(int(scores != wanted))
