"""Early exit or a smaller model? From a trained classifier to heads, thresholds with a guarantee, and an answer."""

import copy
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from jaxtyping import Int64
from torch import Tensor, nn

from likewise.checks import require, require_count
from likewise.cost import cost
from likewise.difficulty import prediction_depth
from likewise.difficulty.results import Depths
from likewise.difficulty.taps import Tap
from likewise.exits.criteria import MaxProbability, Policy
from likewise.exits.early import EarlyExit, chain_of, pooled
from likewise.exits.evaluating import (
    Answer,
    Clock,
    DepthByExit,
    Evaluation,
    ExitCosts,
    Point,
    depth_by_exit,
    evaluate_exits,
    exit_costs,
    exits_or_smaller,
    trade_off,
)
from likewise.exits.fitting import fit_temperatures, train_exits
from likewise.exits.observing import observe
from likewise.exits.placement import Placement, suggest_placement
from likewise.exits.risk import Controlled, control_risk, matched_path
from likewise.exits.running import Clocked, Timings, clocked
from likewise.exits.splits import Split, Splits, split_examples
from likewise.exits.weights import save_exits
from likewise.networks import Network, build_classifier, open_classifier
from likewise.networks.classifiers import Opened
from likewise.networks.weights import weights_hash
from likewise.progress import Progress, part, silent
from likewise.stats import least_examples
from likewise.training import CheckpointPolicy, Cosine, Record, train
from likewise.training.objectives import Logits

EVERY = 100  # steps between checkpoints
SETTLED_SHARES = (0.5, 0.9)  # of the training examples: where the groups of difficulty part
SELECTION, CALIBRATION, TEST = 0.2, 0.4, 0.4  # of the held-out half
SHARES = (0.0, 0.15), (0.15, 0.4), (0.4, 0.5), (0.5, 1.0)  # of the time: depth, heads, depth again, smaller networks


@dataclass(frozen=True)
class ExitPlan:
    """What is promised, how heads are placed and trained, and what is timed.

    risk, delta: as in `control_risk`. heads: at most. grid: as in `EarlyExit`. steps, rate, batch: of training, for the
    heads and for every smaller network. joint: the body is trained with the heads, instead of left as it is. k:
    neighbours of prediction depth; None leaves depth out, and heads stand evenly by cost. support, queries: how many
    training examples, at most, depth compares with, and how many of their own depths place the heads. sizes, repeats:
    of batches on the clock.
    """

    risk: float = 0.01
    delta: float = 0.05
    heads: int = 3
    grid: int = 1
    steps: int = 300
    rate: float = 5e-3
    batch: int = 128
    joint: bool = False
    k: int | None = 30
    support: int = 5000
    queries: int = 1000
    sizes: tuple[int, ...] = (32, 256)
    repeats: int = 5
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("heads", "grid", "steps", "batch", "support", "queries", "repeats"):
            require_count("ExitPlan", name, getattr(self, name))
        for name in ("risk", "delta"):
            require(0 < getattr(self, name) < 1, "ExitPlan", name, "be between 0 and 1", getattr(self, name))


@dataclass(frozen=True, eq=False)
class DepthGroups:
    """Prediction depths of training, calibration and test examples, and the groups of difficulty, cut by the first.

    heads: of the training examples again, by the neighbours in what a head would see. cuts: the depths up to which half
    and nine tenths of the training examples are settled, if they ever are. support: how many training examples
    all were compared with.
    """

    layers: tuple[str, ...]
    train: Depths
    heads: Depths
    calibration: Depths
    test: Depths
    cuts: tuple[int, ...]
    support: int

    @property
    def groups(self) -> tuple[str, ...]:
        """Names of the groups, easiest first."""
        return group_names(self.cuts, self.test.probes)

    def group(self, depths: Int64[Tensor, "N"]) -> Int64[Tensor, "N"]:
        """The number of each depth's group."""
        return torch.bucketize(depths, torch.tensor(self.cuts, dtype=torch.int64))


@dataclass(frozen=True, eq=False)
class Prepared:
    """A classifier with trained heads, and what stands beside it.

    alone: the test accuracy of the network as it came. smaller: trained networks by name.
    """

    exits: EarlyExit
    costs: ExitCosts
    temperatures: tuple[float, ...]
    depth_groups: DepthGroups | None
    placement: Placement | None
    alone: float
    smaller: Mapping[str, nn.Module]


def prepare_exits(
    network: nn.Module,
    parts: Splits,
    *,
    plan: ExitPlan,
    smaller: Mapping[str, nn.Module],
    folder: Path | None = None,
    progress: Progress = silent,
) -> Prepared:
    """Place heads, train them and the smaller networks, and fit temperatures on the selection split.

    network: a classifier trained on parts.train, in evaluation mode; it is left as it was. smaller: new networks by
    name, which are trained in place. folder: where training is kept, so that the same call goes on after a stop.
    """
    steps = [part(progress, start, stop) for start, stop in SHARES]
    alone = accuracy(network, parts.test.inputs, parts.test.labels)
    depth_groups = None if plan.k is None else group_by_depth(network, parts, plan=plan, progress=steps[0])
    body = copy.deepcopy(network) if plan.joint else network
    exits, placement = place_heads(body, parts.train.inputs[:2], depth_groups, plan=plan)
    train_exits(
        exits,
        parts.train.feed(size=plan.batch, seed=plan.seed),
        steps=plan.steps,
        body="joint" if plan.joint else "frozen",
        schedule=Cosine(peak=plan.rate),
        keep=_keep(folder, "heads", exits, parts, plan),
        resume=True,
        seed=plan.seed,
        watch=_watch(steps[1], plan.steps, "heads"),
    )
    if depth_groups is not None and plan.joint:  # of the body as it is now
        depth_groups = group_by_depth(exits.network, parts, plan=plan, progress=steps[2])
    for number, (name, other) in enumerate(smaller.items()):
        turn = part(steps[3], number / len(smaller), (number + 1) / len(smaller))
        train_classifier(other, parts, plan=plan, name=name, folder=folder, progress=turn)
    return Prepared(
        exits,
        exit_costs(exits, parts.train.inputs),
        fit_temperatures(exits, parts.selection),
        depth_groups,
        placement,
        alone,
        smaller,
    )


def group_by_depth(network: nn.Module, parts: Splits, *, plan: ExitPlan, progress: Progress = silent) -> DepthGroups:
    """Prediction depths at every segment, against a part of the training examples if there are many.

    The depths that place the heads are found again from what a head sees of a segment, its mean over pixels: what is
    settled for neighbours of all pixels need not be so for a head.
    """
    assert plan.k is not None
    train, calibration, test = parts.train, parts.calibration, parts.test
    support = train.take(_sorted_sample(len(train), plan.support, plan.seed))
    names = [name for name, _ in chain_of(network, None)]
    ask = partial(
        prediction_depth,
        network,
        (support.inputs, support.labels),
        k=plan.k,
        train_rows=_sorted_sample(len(support), plan.queries, plan.seed).tolist(),
        sample=0,
    )
    see = partial(pooled, grid=plan.grid)
    held = torch.cat([calibration.inputs, test.inputs]), torch.cat([calibration.labels, test.labels])
    steps = part(progress, 0.0, 0.8), part(progress, 0.8, 1.0)
    raw = ask(held, layers=names, progress=steps[0])
    seen = ask(None, layers=[Tap(name, select=see) for name in names], progress=steps[1])
    assert raw.test is not None
    share = raw.train.counts.cumsum(0) / len(raw.train)
    cuts = sorted({int((share < depth_groups).sum()) for depth_groups in SETTLED_SHARES} - {raw.train.probes})
    ends = (0, len(calibration)), (len(calibration), len(raw.test))
    of_calibration, of_test = (_between(raw.test, *each) for each in ends)
    return DepthGroups(raw.layers, raw.train, seen.train, of_calibration, of_test, tuple(cuts), len(support))


def group_names(cuts: tuple[int, ...], last: int) -> tuple[str, ...]:
    """Depths from one cut to the next, and to the last.

    >>> group_names((0, 3), 9)
    ('depth 0', 'depth 1 to 3', 'depth 4 to 9')
    """
    ends = zip((0, *(cut + 1 for cut in cuts)), (*cuts, last), strict=True)
    return tuple(f"depth {low}" if low == high else f"depth {low} to {high}" for low, high in ends)


def place_heads(
    network: nn.Module, example: Tensor, depth_groups: DepthGroups | None, *, plan: ExitPlan
) -> tuple[EarlyExit, Placement | None]:
    """Heads where the depths of training examples pay for them, or else evenly by cost."""
    names = [name for name, _ in chain_of(network, None)][:-1]
    everywhere = exit_costs(EarlyExit(network, example, heads=names, grid=plan.grid).eval(), example)
    placement = None
    if depth_groups is not None:
        head_cost = sum(everywhere.heads) / len(everywhere.heads)
        costs = torch.tensor(everywhere.positions, dtype=torch.float64)
        placement = suggest_placement(depth_groups.heads.counts, costs, heads=plan.heads, head_cost=head_cost)
        placement = placement if placement.positions else None  # no head would pay
    if placement is None:
        chosen = [names[place] for place in spread(everywhere, heads=plan.heads)]
    else:
        chosen = [names[position - 1] for position in placement.positions if position <= len(names)]
    return EarlyExit(network, example, heads=chosen, grid=plan.grid, seed=plan.seed), placement


def spread(costs: ExitCosts, *, heads: int) -> tuple[int, ...]:
    """Segments behind which 1/(K+1), ..., K/(K+1) of all multiply-adds are done, as nearly as can be.

    >>> spread(ExitCosts((10, 20, 30, 40, 0), (), ()), heads=2)  # 10, 30, 60, 100 are done; a third, two thirds
    (1, 2)
    """
    done = costs.positions[1:-2]
    wanted = [costs.full * number / (heads + 1) for number in range(1, heads + 1)]
    return tuple(sorted({min(range(len(done)), key=lambda place: abs(done[place] - want)) for want in wanted}))


def train_classifier(
    network: nn.Module,
    parts: Splits,
    *,
    plan: ExitPlan,
    name: str,
    folder: Path | None = None,
    progress: Progress = silent,
) -> None:
    """Train a network on the training split by cross-entropy; it ends in evaluation mode."""
    train(
        network,
        Logits(),
        parts.train.feed(size=plan.batch, seed=plan.seed),
        steps=plan.steps,
        schedule=Cosine(peak=plan.rate),
        keep=_keep(folder, name, network, parts, plan),
        resume=True,
        seed=plan.seed,
        watch=_watch(progress, plan.steps, name),
    )
    network.eval()


def accuracy(network: nn.Module, inputs: Tensor, labels: Int64[Tensor, "N"], size: int = 256) -> float:
    """How often the network gives the label."""
    with torch.no_grad():
        found = torch.cat([network(batch).argmax(1) for batch in inputs.split(size)])
    return (found == labels).double().mean().item()


def _sorted_sample(count: int, most: int, seed: int) -> Int64[Tensor, "n"]:
    """At most so many rows by chance, in order."""
    return torch.randperm(count, generator=torch.Generator().manual_seed(seed))[:most].sort().values


def _between(depths: Depths, start: int, stop: int) -> Depths:
    rows, labels, predicted = (each[start:stop] for each in (depths.rows, depths.labels, depths.predicted))
    sweep = {k: found[start:stop] for k, found in depths.sweep.items()}
    return replace(depths, rows=rows - start, labels=labels, predicted=predicted, sweep=sweep)


def _keep(folder: Path | None, name: str, start: nn.Module, parts: Splits, plan: ExitPlan) -> CheckpointPolicy | None:
    """Where a training is kept; one from other weights, on other data or by another plan is refused."""
    if folder is None:
        return None
    settings = {
        "name": name,
        "start": weights_hash(start.state_dict(), {}),
        "data": hashlib.sha256(parts.train.ids.numpy().tobytes()).hexdigest(),
        **{key: getattr(plan, key) for key in ("grid", "steps", "rate", "batch", "joint", "seed")},
    }
    return CheckpointPolicy(folder / f"{name}.checkpoint", folder / f"{name}.jsonl", EVERY, settings)


def _watch(progress: Progress, steps: int, name: str) -> Callable[[Record], None]:
    return lambda record: progress((record.step + 1) / steps, f"training {name}, step {record.step + 1} of {steps}")


RISKS = (0.005, 0.01, 0.02, 0.05, 0.1, 0.2)  # beside the one that is asked for
WHOLE = "whole network"
CLOCKS: tuple[Clock, Clock] = ("macs", "seconds")


@dataclass(frozen=True, eq=False)
class ExitStudy:
    """Everything that was chosen and measured.

    counts: examples for training, selection, calibration and test. ladder: policies promised at several risks, the one
    asked for among them. path: accuracy against multiply-adds at every step of thresholds. networks: smaller ones and,
    last, the whole. answers: by multiply-adds and by the clock. title: model and data. notes: what a reader must
    know of the data and of the machine; every output shows them.
    """

    plan: ExitPlan
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
    title: str = ""
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
    def idle(self) -> str:
        """Which policies let no example leave early, in words; empty if all let some."""
        names = [point.name for point in self.ladder if point.early == 0]
        whole = "no example left early: it is the whole network, and its time differs by noise alone."
        return f"With {', '.join(names)} {whole}" if names else ""

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


def require_enough(plan: ExitPlan, count: int) -> None:
    """Refuse, before any work, calibration data that cannot show a risk to be so small."""
    least = least_examples(risk=plan.risk, delta=plan.delta)
    rule = f"have at least {least} examples for a risk of {plan.risk:g} at delta {plan.delta:g}"
    hint = "Allow more risk, or hold more examples out."
    require(count >= least, "study_exits", "calibration", rule, count, hint)


@dataclass(frozen=True)
class ExitJob:
    """Everything that `run_exit_job` is asked for.

    model, data, held_out: as in `likewise.networks.open_classifier`. steps or epochs: of training, instead of those of
    the plan. smaller: names of `build_classifier`, trained and timed beside the model. folder: as in `study_exits`.
    save: where network, heads and thresholds are written, as by `save_exits`.
    """

    model: str
    data: str
    plan: ExitPlan = ExitPlan()
    steps: int | None = None
    epochs: float | None = None
    smaller: Sequence[str] = ()
    held_out: float = 0.2
    folder: Path | None = None
    save: Path | None = None

    def __post_init__(self) -> None:
        one = self.steps is None or self.epochs is None
        require(one, "exits", "epochs", "not be given with steps", self.epochs)

    def planned(self, count: int) -> ExitPlan:
        """The plan, with its steps, for so many training examples."""
        steps = self.plan.steps if self.steps is None else self.steps
        if self.epochs is not None:
            steps = max(1, round(self.epochs * count / min(self.plan.batch, count)))
        return replace(self.plan, steps=steps)


def run_exit_job(job: ExitJob, *, progress: Progress = silent) -> ExitStudy:
    """Open a classifier and its data, split them, study early exit, and save the result if asked."""
    opened = open_classifier(job.model, job.data, held_out=job.held_out)
    require_enough(job.plan, round(CALIBRATION * len(opened.halves.test)))
    parts = split_halves(opened, seed=job.plan.seed)
    options = {"channels": opened.preparation.channels, "num_classes": len(opened.classes)}
    smaller: dict[str, Network] = {name: build_classifier(name, **options, seed=job.plan.seed) for name in job.smaller}
    plan = job.planned(len(parts.train))
    study = study_exits(opened.network, parts, plan=plan, smaller=smaller, folder=job.folder, progress=progress)
    if job.save:
        save_exits(
            study.prepared.exits,
            job.save,
            name=opened.name,
            options=options if opened.name else {},
            policy=study.controlled.policy,
            preparation=opened.preparation,
        )
    title = f"{opened.name or job.model} on {opened.halves.train.title}"
    return replace(study, title=title, notes=_notes(opened))


def split_halves(opened: Opened, *, seed: int) -> Splits:
    """The training half, and selection, calibration and test sets from the other half without images of both."""
    halves = [half.numbered_by(opened.classes) for half in opened.halves[:2]]
    train, test = (Split.read(half, opened.preparation, role="train") for half in halves)
    new, sizes = test.without(train), {"selection": SELECTION, "calibration": CALIBRATION, "test": TEST}
    return split_examples(new.inputs, new.labels, **sizes, seed=seed)._replace(train=train)


def _notes(opened: Opened) -> tuple[str, ...]:
    """How the data was split, and whether the network may have seen held-out images."""
    how = f"Training and held-out examples: {opened.halves.how}."
    if opened.trained_here:
        return (how,)
    if opened.trained_here is None:
        doubt = "The network does not say what it was trained on: if it saw held-out images"
    else:
        doubt = "The network was trained on other examples than this training half: if it saw held-out images"
    return how, f"{doubt}, accuracy is too high and the promise does not hold."


def study_exits(
    network: nn.Module,
    parts: Splits,
    *,
    plan: ExitPlan,
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


def measure_exits(prepared: Prepared, parts: Splits, *, plan: ExitPlan, progress: Progress = silent) -> ExitStudy:
    """Thresholds from calibration data; then, once, everything that test data says."""
    exits, costs, depth_groups = prepared.exits, prepared.costs, prepared.depth_groups
    criterion = MaxProbability()
    progress(0.0, "thresholds")
    path = matched_path(observe(exits, parts.selection, criterion=criterion))
    calibration = observe(exits, parts.calibration, criterion=criterion)
    enough = [risk for risk in RISKS if least_examples(risk=risk, delta=plan.delta) <= len(calibration)]
    found = {
        risk: control_risk(exits, calibration, risk=risk, delta=plan.delta, path=path)
        for risk in sorted({*enough, plan.risk})
    }
    groups = None if depth_groups is None else depth_groups.group(depth_groups.calibration.depth)
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
    depths = None if depth_groups is None else depth_groups.test.depth
    return ExitStudy(
        plan,
        tuple(map(len, parts)),
        prepared,
        controlled,
        evaluate_exits(
            test,
            policy=policy,
            costs=costs,
            groups=None if depth_groups is None or depths is None else depth_groups.group(depths),
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


def _clock(policies: Mapping[str, Policy], prepared: Prepared, x: Tensor, plan: ExitPlan) -> Clocked:
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
