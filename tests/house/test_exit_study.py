"""The study of early exit: promises are counted as they are kept, and the page shows the numbers."""

import json
from collections.abc import Callable

import pytest
import torch

from likewise.exits import MaxProbability
from likewise.exits.observing import Observed
from studies import early_exit as study
from studies.lfw import filled
from tests.exits.problems import small


def observed(role: str, count: int, seed: int) -> Observed:
    """Two heads that are right about the network's class as often as they are sure of it."""
    chance = torch.Generator().manual_seed(seed)
    labels = torch.randint(3, (count,), generator=chance)
    sure = torch.rand(3, count, generator=chance)
    right = torch.rand(3, count, generator=chance) < sure
    right[-1] = True
    said = torch.where(right, labels, (labels + 1) % 3)
    logits = torch.nn.functional.one_hot(said, 3).double()
    return Observed(MaxProbability(), role, labels, sure[:-1], logits)  # ty: ignore[invalid-argument-type]


@pytest.fixture
def seen() -> study.Seen:
    return study.Seen(observed("selection", 500, 0), observed("calibration", 3000, 1), observed("test", 3000, 2))


def test_the_page_shows_the_numbers() -> None:
    saved = study.RESULTS / "early_exit.json"
    if not saved.is_file():
        pytest.skip("the study has not been run")
    page = study.PAGE.read_text(encoding="utf-8")
    assert filled(page, study.render(json.loads(saved.read_text(encoding="utf-8"))), marks=study.MARKS) == page


def test_a_pool_is_both_halves_in_one(seen: study.Seen) -> None:
    assert len(seen.pool) == 6000
    assert torch.equal(seen.pool.labels[3000:], seen.test.labels)
    assert torch.equal(seen.pool.scores[:, :3000], seen.calibration.scores)
    assert seen.pool.role == "calibration"


@pytest.mark.full
def test_a_promise_is_kept_and_a_thoughtless_choice_is_not(seen: study.Seen, monkeypatch: pytest.MonkeyPatch) -> None:
    exits, pool = small(), seen.pool
    steps = study.matched_path(seen.selection).steps
    risks = [(pool.at(pool.policy(*each).exits(pool.scores)).argmax(1) != pool.full).double().mean() for each in steps]
    risk = next(each.item() for each in risks if each > 0.05) - 1e-4  # this step looks right in half of the draws
    kept = study.checked(exits, seen, loss="disagreement", risk=risk, splits=40)
    assert kept.drawn <= study.most_breaks(40, kept.delta)
    assert 0 < kept.mean_risk < risk

    honest: Callable = study.control_risk
    monkeypatch.setattr(study, "control_risk", lambda *seen, delta, **asked: honest(*seen, delta=0.999, **asked))
    thoughtless = study.checked(exits, seen, loss="disagreement", risk=risk, splits=40)
    assert thoughtless.drawn > study.most_breaks(40, kept.delta)


def test_breaks_within_chance() -> None:
    assert study.most_breaks(200, 0.05) == 18
    assert study.most_breaks(1, 0.5) == 1
