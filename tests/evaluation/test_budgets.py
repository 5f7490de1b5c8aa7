"""Tables that train: every row is a network of its own, equal budgets, and a stopped table goes on where it was."""

import json
import math
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest

from likewise.data import Examples, digits
from likewise.evaluation import Table, judge
from likewise.evaluation.budgets import held_out, plan_of, share_of, table5, table6
from likewise.evaluation.protocols import Everyone
from likewise.metric import CollapseError
from likewise.networks import load_network
from likewise.training import TrainingPlan, embed_examples, fit, harmony
from tests.evaluation.faces import drawn_people

PLAN = TrainingPlan(network="resnet8", embedding_dim=4, steps=3, identities=4, faces=3, random=2, seed=1)


@pytest.fixture(scope="module")
def parts() -> tuple[Examples, Examples]:
    return held_out(drawn_people(12, 4, noise=50.0), 0.4, seed=3)


def test_nobody_is_on_both_sides() -> None:
    some = drawn_people(10, 3)
    train, test = held_out(some, 0.3, seed=1)
    assert (len(test.identities), len(train) + len(test)) == (3, len(some))
    assert not set(train.identities) & set(test.identities)
    assert held_out(some, 0.3, seed=1)[1].items == test.items
    assert held_out(some, 0.3, seed=2)[1].items != test.items


def test_a_smaller_share_is_part_of_a_larger_one() -> None:
    some = drawn_people(16, 2)
    shares = [set(share_of(some, share, seed=4).items) for share in (0.01, 0.25, 0.5, 1.0)]
    assert [len(share) for share in shares] == [4, 8, 16, 32]
    assert all(one < two for one, two in pairwise(shares))


@pytest.mark.slow
def test_a_row_is_a_network_of_its_own(parts: tuple[Examples, Examples], tmp_path: Path) -> None:
    some, test = parts
    found = table5(some, test, PLAN, tmp_path / "runs", widths=(3, 6), protocol=Everyone(2), far=0.1)
    assert [(row.group, row.value) for row in found.rows] == [("dimension", 3), ("dimension", 6)]
    assert (found.far, found.finished) == (0.1, True)
    for row in found.rows:
        alone = fit(some, replace(PLAN, embedding_dim=int(row.value)), tmp_path / "alone.safetensors")
        [kept] = (tmp_path / "runs").glob(f"table5-{row.value:g}-*.safetensors")
        assert load_network(kept).hash == alone.hash
        vectors = embed_examples(alone.network, alone.preparation, test).vectors
        rates = judge(vectors, test.labels, protocol=Everyone(2), far=0.1)
        assert (row.val, row.val_error, row.accuracy) == (rates.val, rates.val_error, rates.accuracy)


@pytest.mark.slow
def test_a_stopped_table_goes_on_to_the_same_result(parts: tuple[Examples, Examples], tmp_path: Path) -> None:
    some, test = parts

    def table(folder: str, **more: object) -> Table:
        return table5(some, test, PLAN, tmp_path / folder, widths=(3, 5), far=0.1, **more)  # ty: ignore[invalid-argument-type]

    whole = table("whole")
    steps: list[str] = []

    def stop(done: float, doing: str) -> bool:
        steps.append(doing)
        return len(steps) == 5  # in the second row

    stopped = table("parts", watch=stop)
    assert (len(stopped.rows), stopped.finished) == (1, False)
    assert steps[-1].startswith("dimension 5, step 2, loss ")
    rest: list[tuple[float, str]] = []
    again = table("parts", watch=lambda done, doing: rest.append((done, doing)))
    assert again == whole
    assert [(round(done, 6), doing.partition(",")[0]) for done, doing in rest] == [(1.0, "dimension 5")]
    assert table("parts", watch=lambda done, doing: pytest.fail("nothing is left to do")) == whole
    lines = (tmp_path / "parts" / "table5.jsonl").read_text().splitlines()
    assert [json.loads(line)["value"] for line in lines] == [3, 5]
    # Rows of another judgement are not taken for these; a line that was cut off is no row.
    with (tmp_path / "parts" / "table5.jsonl").open("a") as file:
        file.write(lines[0][:40])
    other = table5(some, test, PLAN, tmp_path / "parts", widths=(3,), far=0.3)
    assert other.rows[0].val != whole.rows[0].val or other.rows[0].threshold != whole.rows[0].threshold


@pytest.mark.slow
def test_more_people_are_more_images(parts: tuple[Examples, Examples], tmp_path: Path) -> None:
    some, test = parts
    found = table6(some, test, PLAN, tmp_path, shares=(0.5, 1.0), far=0.1)
    assert [(row.value, row.note) for row in found.rows] == [(16, "4 identities"), (28, "7 identities")]
    drawn = Everyone(2).draw(test.labels)
    listed = table6(some, test, PLAN, tmp_path, shares=(1.0,), far=0.3, protocol=drawn)
    assert listed.protocol == "drawn pairs"
    assert len((tmp_path / "table6.jsonl").read_text().splitlines()) == 3


def test_a_failed_row_says_so(
    parts: tuple[Examples, Examples], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from likewise.training import fitting

    def fail(*arguments: object, **options: object) -> None:
        raise CollapseError("all embeddings are one", ())

    monkeypatch.setattr(fitting, "train", fail)
    found = table5(*parts, PLAN, tmp_path, widths=(3,), far=0.1)
    assert found.rows[0].note == "failed: all embeddings are one"
    assert math.isnan(found.rows[0].val)
    again = table5(*parts, PLAN, tmp_path, widths=(3,), far=0.1)
    assert math.isnan(again.rows[0].val)
    json.dumps(again.to_json(), allow_nan=False)


def test_a_plan_comes_back_from_beside_its_network(tmp_path: Path) -> None:
    plan = replace(PLAN, size=(6, 7), rate=0.01, steps=1)
    fit(digits().take(range(40)), plan, tmp_path / "m.safetensors")
    assert plan_of(tmp_path / "m.safetensors") == plan
    with pytest.raises(ValueError, match=r"^plan_of: model must have its checkpoint beside it; got .* No n.ch"):
        plan_of(tmp_path / "n.safetensors")


@pytest.mark.slow
def test_the_plan_of_an_upgraded_network_is_one_from_scratch(tmp_path: Path) -> None:
    some = digits().take(range(60))
    first = replace(PLAN, size=(6, 7), steps=1)
    fit(some, first, tmp_path / "v2.safetensors")
    start, plan = load_network(tmp_path / "v2.safetensors"), replace(PLAN, steps=2, head_steps=3, seed=5)
    fit(some, plan, tmp_path / "new.safetensors", start=start, harmonic=harmony(start, some, plan))
    found = plan_of(tmp_path / "new.safetensors")
    assert found == replace(plan, head_steps=0, size=(6, 7))
    made = table5(*held_out(some, 0.4), found, tmp_path / "runs", widths=(3,), far=0.1)
    assert made.finished
    [kept] = (tmp_path / "runs").glob("table5-3-*.safetensors")
    assert load_network(kept).preparation == start.preparation


def test_wrong_arguments_are_refused(parts: tuple[Examples, Examples], tmp_path: Path) -> None:
    some, test = parts
    with pytest.raises(ValueError, match=r"^table5: test must show nobody who is trained on; got p"):
        table5(some, some, PLAN, tmp_path, widths=(3,))
    with pytest.raises(ValueError, match=r"^table5: widths must be a whole number of at least 1; got 0"):
        table5(some, test, PLAN, tmp_path, widths=(0,))
    with pytest.raises(ValueError, match=r"^table6: shares must be above 0 and at most 1; got 2"):
        table6(some, test, PLAN, tmp_path, shares=(2.0,))
    with pytest.raises(ValueError, match=r"^held_out: share must be between 0 and 1; got 1"):
        held_out(some, 1.0)
    with pytest.raises(ValueError, match=r"^held_out: examples must have more than 3 identities; got 2"):
        held_out(drawn_people(2, 2), 0.5)
