"""Early exit or a smaller model? From a trained classifier to an answer, for the tour and for `likewise exits`."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor, nn

from likewise.checks import require
from likewise.cost import cost
from likewise.exits import (
    Answer,
    Clocked,
    Controlled,
    DepthByExit,
    Evaluation,
    MaxProbability,
    Point,
    Policy,
    Splits,
    Timings,
    clocked,
    control_risk,
    depth_by_exit,
    evaluate_exits,
    exits_or_smaller,
    matched_path,
    observe,
    trade_off,
)
from likewise.exits.answer import Clock
from likewise.progress import Progress, part, silent
from likewise.reports.exit_training import Plan, Prepared, accuracy, prepare_exits
from likewise.stats import least_examples

RISKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # beside the one that is asked for
WHOLE = "whole network"
CLOCKS: tuple[Clock, Clock] = ("macs", "seconds")


@dataclass(frozen=True, eq=False)
class ExitStudy:
    """Everything that was chosen and measured.

    counts: examples for training, selection, calibration and test. ladder: policies promised at several risks, the one
    asked for among them. path: accuracy against multiply-adds at every step of thresholds. networks: smaller ones and,
    last, the whole. answers: by multiply-adds and by the clock. notes: what a reader must know of the data and of the
    machine; every output shows them.
    """

    plan: Plan
    counts: tuple[int, ...]
    prepared: Prepared
    controlled: Controlled
    evaluation: Evaluation
    against: DepthByExit | None
    ladder: tuple[Point, ...]
    path: tuple[Point, ...]
    networks: tuple[Point, ...]
    clock: Clocked
    timings: Timings
    answers: tuple[Answer, Answer]
    notes: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"ExitStudy({self.chosen}, {self.whole})\n" + "\n".join(answer.text for answer in self.answers)

    @property
    def chosen(self) -> Point:
        """The policy that was asked for."""
        return next(point for point in self.ladder if point.name == risk_name(self.plan.risk))

    @property
    def whole(self) -> Point:
        """The network without exits."""
        return self.networks[-1]

    @property
    def error(self) -> float:
        """The standard error of an accuracy on the test examples, sqrt(p (1 - p) / n), p being the whole network's."""
        p = self.whole.accuracy
        return (p * (1 - p) / self.counts[3]) ** 0.5

    @property
    def promise(self) -> str:
        """What was done and what is promised of all examples together, in words."""
        return replace(self.controlled, groups=()).text

    @property
    def saving(self) -> tuple[float, float]:
        """How many times fewer multiply-adds and less time the policy takes than the whole network."""
        chosen, whole = self.chosen, self.whole
        assert chosen.seconds is not None and whole.seconds is not None
        return whole.macs / chosen.macs, whole.seconds / chosen.seconds


def risk_name(risk: float) -> str:
    """How a policy is called.

    >>> risk_name(0.005), risk_name(0.2)
    ('risk 0.5%', 'risk 20%')
    """
    return f"risk {100 * risk:.3g}%"


def require_enough(plan: Plan, count: int) -> None:
    """Refuse, before any work, calibration data that cannot show a risk to be so small."""
    least = least_examples(risk=plan.risk, delta=plan.delta)
    rule = f"have at least {least} examples for a risk of {plan.risk:g} at delta {plan.delta:g}"
    hint = "Allow more risk, or hold more examples out."
    require(count >= least, "study_exits", "calibration", rule, count, hint)


def study_exits(
    network: nn.Module,
    parts: Splits,
    *,
    plan: Plan,
    smaller: Mapping[str, nn.Module] | None = None,
    folder: Path | None = None,
    progress: Progress = silent,
) -> ExitStudy:
    """Place and train heads, choose thresholds on calibration data, and measure once on test data.

    network, smaller, folder: as in `prepare_exits`.
    """
    require_enough(plan, len(parts.calibration))
    prepared = prepare_exits(
        network, parts, plan=plan, smaller=smaller or {}, folder=folder, progress=part(progress, 0.0, 0.85)
    )
    return measure_exits(prepared, parts, plan=plan, progress=part(progress, 0.85, 1.0))


def measure_exits(prepared: Prepared, parts: Splits, *, plan: Plan, progress: Progress = silent) -> ExitStudy:
    """Thresholds from calibration data; then, once, everything that test data says."""
    exits, costs, settled = prepared.exits, prepared.costs, prepared.settled
    criterion = MaxProbability()
    progress(0.0, "thresholds")
    path = matched_path(observe(exits, parts.selection, criterion=criterion))
    calibration = observe(exits, parts.calibration, criterion=criterion)
    enough = [risk for risk in RISKS if least_examples(risk=risk, delta=plan.delta) <= len(calibration)]
    found = {
        risk: control_risk(exits, calibration, risk=risk, delta=plan.delta, path=path)
        for risk in sorted({*enough, plan.risk})
    }
    groups = None if settled is None else settled.group(settled.calibration.depth)
    controlled = control_risk(exits, calibration, risk=plan.risk, delta=plan.delta, path=path, groups=groups)
    test, policy = observe(exits, parts.test, criterion=criterion), controlled.policy
    evaluations = {
        risk_name(risk): evaluate_exits(test, policy=each.policy, costs=costs) for risk, each in found.items()
    }
    progress(0.2, "the clock")
    clock = _clock({name: each.policy for name, each in evaluations.items()}, prepared, parts.test.inputs, plan)
    size = clock.sizes[-1]
    ladder = tuple(
        Point(name, each.accuracy, each.macs, *clock.span(name, size), 1 - each.shares[-1])
        for name, each in evaluations.items()
    )
    networks = [
        Point(
            name,
            accuracy(each, parts.test.inputs, parts.test.labels),
            _macs(each, parts.test.inputs),
            *clock.span(name, size),
        )
        for name, each in {**prepared.smaller, WHOLE: exits.network}.items()
    ]
    by_macs, by_clock = (exits_or_smaller(ladder, networks, by=by, examples=len(parts.test)) for by in CLOCKS)
    depths = None if settled is None else settled.test.depth
    return ExitStudy(
        plan,
        tuple(map(len, parts)),
        prepared,
        controlled,
        evaluate_exits(
            test,
            policy=policy,
            costs=costs,
            groups=None if settled is None or depths is None else settled.group(depths),
            delta=plan.delta,
        ),
        None if depths is None else depth_by_exit(test, depths, policy=policy, positions=exits.positions, costs=costs),
        ladder,
        trade_off(test, path, costs=costs),
        tuple(networks),
        clock,
        exits.timings(parts.test.inputs[:size]),
        (by_macs, by_clock),
    )


def _clock(policies: Mapping[str, Policy], prepared: Prepared, x: Tensor, plan: Plan) -> Clocked:
    """Everybody in turn on all test inputs."""

    def leaving(policy: Policy) -> Callable[[Tensor], object]:
        return lambda batch: prepared.exits.run(batch, policy=policy)

    contestants = {name: leaving(policy) for name, policy in policies.items()}
    everybody = {**prepared.smaller, WHOLE: prepared.exits.network, **contestants}
    sizes = dict.fromkeys(min(size, len(x)) for size in plan.sizes)
    return clocked(everybody, x, sizes=tuple(sizes), repeats=plan.repeats)


def _macs(network: nn.Module, x: Tensor) -> int:
    with torch.no_grad():
        return cost(network, x[:1]).macs
