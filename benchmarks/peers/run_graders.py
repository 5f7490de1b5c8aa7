"""A grader of others on pairs: a line of JSON in, a line of JSON out, with its seconds of processor time.

It runs in the peers' environment.

The argument is math-verify, verifiers (its check of a boxed answer) or inspect (its scorer `math`).
"""

import asyncio
import json
import sys
import time
from collections.abc import Callable


def math_verify() -> Callable[[str, str], str]:
    """`parse` and `verify`; LaTeX between dollars, as its manual asks for, prose and boxes as they are."""
    from math_verify import parse, verify  # ty: ignore[import-not-found] -- in the peers' environment only

    def wrapped(text: str) -> str:
        return text if any(sign in text for sign in ("$", "boxed", "nswer", "####", "\\[", "\\(")) else f"${text}$"

    def said(answer: str, key: str) -> str:
        gold, answers = (parse(wrapped(text)) or parse(text) for text in (key, answer))
        return "undecided" if not gold or not answers else "equal" if verify(gold, answers) else "different"

    return said


def verifiers() -> Callable[[str, str], str]:
    """`verify_boxed_math_answer`, which says 0 for different and for unread; an answer without a box gets one."""
    from verifiers.v1 import verify_boxed_math_answer  # ty: ignore[import-not-found]

    def said(answer: str, key: str) -> str:
        boxed = answer if "boxed" in answer else f"\\boxed{{{answer}}}"
        return "equal" if verify_boxed_math_answer(boxed, key) else "different"

    return said


def inspect() -> Callable[[str, str], str]:
    """The scorer `math` on the text of a model."""
    from inspect_ai.model import ModelName, ModelOutput  # ty: ignore[import-not-found]
    from inspect_ai.scorer import Target, math  # ty: ignore[import-not-found]
    from inspect_ai.solver import TaskState  # ty: ignore[import-not-found]

    score = math()

    def said(answer: str, key: str) -> str:
        state = TaskState(model=ModelName("mockllm/model"), sample_id=1, epoch=1, input="", messages=[])
        state.output = ModelOutput.from_content("mockllm/model", answer)
        found = asyncio.run(score(state, Target(key)))
        return {"C": "equal", "I": "different"}.get(found.value, "undecided")

    return said


grader = {"math-verify": math_verify, "verifiers": verifiers, "inspect": inspect}[sys.argv[1]]()
grader("1", "1")
print("ready", flush=True)
for line in sys.stdin:
    answer, key = json.loads(line)
    start = time.process_time()
    try:
        found = grader(answer, key)
    except Exception as error:  # a crash is a result here
        found = f"crash {type(error).__name__}"
    print(json.dumps([found, time.process_time() - start]), flush=True)
