"""A slice of the generated pairs, labelled pairs, hostile answers, and the page against the results."""

import json
import os

import pytest

from benchmarks.grading import MARKS, PAGE, RESULTS, table
from benchmarks.grading_pairs import KEYS, blind, generated, hostile
from likewise.grading import grade


@pytest.mark.slow
def test_generated_equivalents_are_equal_and_near_misses_are_not_in_both_orders():
    pairs = generated(120, seed=7)
    assert len({key for _, key, _ in pairs}) == KEYS
    for answer, key, label in pairs:
        found = [grade(answer, key).verdict, grade(key, answer).verdict]
        assert found[0] == found[1], (answer, key, found)
        assert (found[0] == "equal") == (label == "equal"), (answer, key, found)


def test_pairs_labelled_before_are_never_accepted_or_refused_wrongly():
    wrong = {"equal": {"different"}, "near miss": {"equal"}, "depends": {"equal", "different"}}
    assert [pair for pair in blind() if grade(*pair[:2]).verdict in wrong[pair[2]]] == []


@pytest.mark.slow
def test_hostile_answers_have_no_reward_and_leave_nothing(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    pairs = hostile()
    assert len(pairs) >= 300
    before = grade("2x/4", "x/2")
    for answer, key, _ in pairs:
        found = grade(answer, key)
        assert not found.reward, (answer[:80], key, found)
        assert found.seconds < 1.5, (answer[:80], key, found)
        assert grade("2x/4", "x/2") == before
    assert os.listdir(tmp_path) == []


def test_the_page_shows_the_results():
    facts = json.loads((RESULTS / "grading.json").read_text(encoding="utf-8"))
    assert f"{MARKS[0]}\n{table(facts)}\n{MARKS[1]}" in PAGE.read_text(encoding="utf-8")
