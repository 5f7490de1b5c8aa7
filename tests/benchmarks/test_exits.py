"""The benchmark of exits checks answers before it times them, and judges what it measured."""

import pytest
import torch

from benchmarks.exits import NETWORK, NEVER, SIZES, check, contestants, demands, leaving, problem
from benchmarks.harness.measurement import Measurement
from likewise.exits import Policy


def test_the_problem_is_answered_rightly_and_a_wrong_answer_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    exits, x = problem()
    x = x[:24]
    policy = leaving(exits, x)
    assert check(exits, policy, x) == []
    found = contestants(exits, policy)["shrinks always"](x)
    assert found.exits.bincount().tolist()[0] == 8
    assert check(exits, Policy(policy.criterion, (2.0,) * 3), x) == ["nobody leaves at some exit"]
    monkeypatch.setattr(type(exits), "never", Policy(policy.criterion, (0.0,) * 3))
    assert check(exits, policy, x) == ["a policy that never exits is not the network"]
    assert torch.equal(exits.run(x, policy=policy).exits, found.exits)


@pytest.mark.parametrize(("ratio", "holds"), [(1.01, True), (1.03, False)])
def test_the_overhead_is_judged(ratio: float, holds: bool) -> None:
    times = [Measurement(NETWORK, size, (1.0,) * 3) for size in SIZES]
    times += [Measurement(NEVER, size, (ratio,) * 3) for size in SIZES]
    assert [demand.holds for demand in demands(times)] == [holds] * len(SIZES)
