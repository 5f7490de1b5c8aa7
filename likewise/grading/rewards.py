"""`grade` as the reward of TRL, verl and verifiers, and as a scorer of Inspect; the same scores through all.

It stands alone because nothing here imports these packages until a scorer is made. Undecided and depends have the value
that the caller sets. TRL leaves an example out where the reward is None; the other three need a number, 0 unless set.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from likewise.grading.grading import Grade, grade

Message = Mapping[str, Any]


def text_of(completion: str | Sequence[Message]) -> str:
    """The text of a completion: a string, or the last message of a conversation.

    >>> text_of([{"role": "user", "content": "1 + 1?"}, {"role": "assistant", "content": "2"}])
    '2'
    """
    if isinstance(completion, str):
        return completion
    content = completion[-1]["content"] if completion else ""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content or ())


def trl_reward(
    *, key: str = "solution", depends: float | None = None, undecided: float | None = None
) -> Callable[..., list[float | None]]:
    """A reward function for `trl.GRPOTrainer`; `key` is the column of the dataset that holds the keys.

    >>> trl_reward()(completions=["x + x", "3x", "unknown"], solution=["2x", "2x", "2x"])
    [1.0, 0.0, None]
    """

    def likewise_reward(completions: Sequence[Any], **columns: Any) -> list[float | None]:
        keys = columns[key]
        rows = zip(
            completions, keys, _column(columns, "given", keys), _column(columns, "conventions", keys), strict=True
        )
        return [
            grade(text_of(text), right, given, said, depends=depends, undecided=undecided).reward
            for text, right, given, said in rows
        ]

    return likewise_reward


def _column(columns: Mapping[str, Any], name: str, keys: Sequence[str]) -> Sequence[Any]:
    return columns[name] if name in columns else [None] * len(keys)


def verl_score(*, depends: float = 0.0, undecided: float = 0.0) -> Callable[..., dict[str, Any]]:
    """A `compute_score` for verl: `custom_reward_function.path` names a file that calls this once.

    >>> verl_score()("math", "x + x", "2x")["score"]
    1.0
    """

    def compute_score(
        data_source: str, solution_str: str, ground_truth: str, extra_info: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        del data_source
        extra = extra_info or {}
        found = grade(
            solution_str,
            ground_truth,
            extra.get("given"),
            extra.get("conventions"),
            depends=depends,
            undecided=undecided,
        )
        return {"score": found.reward, "verdict": found.verdict}

    return compute_score


def verifiers_reward(*, depends: float = 0.0, undecided: float = 0.0) -> Callable[..., float]:
    """A reward for `verifiers`: for `Rubric(funcs=[...])` of 0.1, or called in a `@vf.reward` of 0.4.

    >>> verifiers_reward()("x + x", "2x")
    1.0
    """

    def likewise_reward(completion: str | Sequence[Message], answer: str) -> float:
        return _number(grade(text_of(completion), answer, depends=depends, undecided=undecided))

    return likewise_reward


def inspect_scorer(*, depends: float = 0.0, undecided: float = 0.0) -> Any:
    """A scorer for Inspect; the target is the key, of several targets the best counts.

    The verdict, witness and condition are in the metadata of each score.
    """
    from inspect_ai.scorer import Score, accuracy, scorer, stderr  # ty: ignore[import-not-found] -- an extra
    from inspect_ai.scorer import Target as Keys  # ty: ignore[import-not-found]
    from inspect_ai.solver import TaskState  # ty: ignore[import-not-found]

    @scorer(metrics=[accuracy(), stderr()], name="likewise")
    def likewise_scorer() -> Any:
        async def score(state: TaskState, target: Keys) -> Score:
            found = [grade(state.output.completion, key, depends=depends, undecided=undecided) for key in target]
            best = max(found, key=_number)
            return Score(
                value=_number(best),
                answer=best.read[0],
                explanation="; ".join(best.reasons),
                metadata={"verdict": best.verdict, "witness": best.witness, "condition": best.condition},
            )

        return score

    return likewise_scorer()


def _number(found: Grade) -> float:
    return math.nan if found.reward is None else found.reward
