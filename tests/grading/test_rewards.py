"""One score through all packages, and derivations."""

import math
from typing import Any

from likewise.grading import grade, grade_steps
from likewise.grading.rewards import text_of, trl_reward, verifiers_reward, verl_score

PAIRS = [
    (r"\boxed{x + x}", "2x"),
    ("3x", "2x"),
    ("O(ND^2)", "O(Nd^2)"),
    (r"42 \foo", "42"),
    ("5000 m", r"5 \text{ km}"),
]


def test_scores_are_the_same_through_all_packages():
    values: dict[str, Any] = {"depends": 0.5, "undecided": 0.25}
    expected = [grade(*pair, **values).reward for pair in PAIRS]
    assert expected == [1.0, 0.0, 0.5, 0.25, 1.0]
    answers, keys = [list(each) for each in zip(*PAIRS, strict=True)]
    talks = [[{"role": "assistant", "content": answer}] for answer in answers]
    for completions in (answers, talks):
        assert trl_reward(**values)(completions=completions, solution=keys, prompts=[], completion_ids=[]) == expected
        assert [verifiers_reward(**values)(*pair) for pair in zip(completions, keys, strict=True)] == expected
    assert [verl_score(**values)("math", *pair)["score"] for pair in PAIRS] == expected
    assert trl_reward()(completions=answers, solution=keys) == [1.0, 0.0, None, None, 1.0]
    assert not any(math.isnan(verl_score()("math", *pair)["score"]) for pair in PAIRS)
    assert text_of([{"role": "assistant", "content": [{"type": "text", "text": "a"}, {"type": "image"}]}]) == "a"


def test_facts_and_conventions_of_a_dataset_reach_the_grade():
    rows = {"given": ["x > 0", None], "conventions": [None, {"log": "e"}]}
    assert trl_reward()(completions=[r"\sqrt{x^2}", r"\log x"], solution=["x", r"\ln x"], **rows) == [1.0, 1.0]
    extra = {"given": "x > 0"}
    assert verl_score()("math", r"\sqrt{x^2}", "x", extra_info=extra) == {"score": 1.0, "verdict": "equal"}


def test_a_derivation_is_told_from_its_answer():
    right = "First $3 \\times 4 = 12$, then $12 + 5 = 17$.\n\nAnswer: ${}$"
    wrong = right.replace("17", "18")
    assert grade_steps(right.format(17), "17").verdict == "right"
    assert grade_steps(right.format(18), "17").verdict == "wrong answer after right steps"
    assert grade_steps(wrong.format(17), "17").verdict == "right answer after an error"
    found = grade_steps(wrong.format(18), "17", rubric=("3*4", "5+12=17"))
    assert found.verdict == "wrong from the first error"
    assert found.first_error is not None
    assert found.first_error.source == "12 + 5 = 18"
    assert found.points == (True, None)
