"""Softmax replaced in trained networks: how wrong each head gets, and what the network loses, without retraining."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from statistics import fmean

import torch
from jaxtyping import Int
from torch import Generator, Tensor, nn

from likewise.attention import Attend, diagnose, softmax_attention
from likewise.checks import require
from likewise.networks import capture, with_attends
from likewise.networks.attends import Captured
from likewise.progress import Progress, part, silent
from likewise.tour.combinations import BASELINE, NOTHING, WIDEST, combinations
from likewise.tour.learning import Recipe, accuracy, bits_per_byte, digit_images, learn_images, learn_text, library_text

HALF, LOSS = 0.5, 0.02  # the two aims: a part of the baseline's error, and of softmax's bits per byte


@dataclass(frozen=True)
class RealAttentionPlan:
    """How large the networks are, how long they learn, and what is tried on them."""

    text: Recipe
    images: Recipe
    context: int = 512
    sequences: int = 16  # of held-out text, and as many of training text to fit maps on
    text_within: tuple[int, ...] = (32, 128)
    held_out: int = 360  # images, and as many training images to fit maps on
    images_within: tuple[int, ...] = (8, 32)
    widths: tuple[int, ...] = (64, WIDEST)
    draws: int = 2


TOUR = RealAttentionPlan(
    text=Recipe(num_layers=2, num_heads=2, dim=64, steps=400, batch=4, rate=5e-3),
    images=Recipe(num_layers=2, num_heads=4, dim=64, steps=150, batch=32, rate=3e-3),
    sequences=8,
    held_out=120,
    draws=1,
)
STUDY = RealAttentionPlan(
    text=Recipe(num_layers=3, num_heads=4, dim=128, steps=800, batch=2, rate=5e-3),
    images=Recipe(num_layers=3, num_heads=4, dim=64, steps=300, batch=32, rate=3e-3),
    context=1024,
    draws=3,
)


@dataclass(frozen=True)
class Outcome:
    """A map of a width beyond exact weights for pairs less than `within` positions apart, in place of softmax.

    errors: |out - softmax|^2 / |softmax|^2 of every head, first layer first, on what the network with softmax gave it.
    score: of the network when all its layers are replaced. Both are means over draws of the map.
    """

    map: str
    width: int
    within: int
    errors: tuple[float, ...]
    score: float

    @property
    def error(self) -> float:
        """The mean over heads."""
        return fmean(self.errors)

    @property
    def name(self) -> str:
        """What it is.

        >>> Outcome("Positive", 256, 128, (0.5,), 2.0).name
        'Positive, F = 256, exact within 128'
        """
        width = f", F = {self.width}" if self.width else ""
        return f"{self.map}{width}{f', exact within {self.within}' if self.within else ''}"


@dataclass(frozen=True)
class Subject:
    """A trained network: what it can do with softmax, and with everything else in its place."""

    title: str
    scored: str  # what a score is
    more_is_better: bool
    layers: int
    heads: int
    key_dim: int
    length: int
    training_seconds: float
    softmax: float  # its score
    logit_sds: tuple[float, ...]  # of every head, first layer first
    outcomes: tuple[Outcome, ...]
    advice: tuple[str, ...] = ()  # of `diagnose`, for every head

    def of(self, map: str, width: int, within: int = 0) -> Outcome | None:
        """The outcome of a combination, if it was tried."""
        wanted = (map, width, within)
        return next((each for each in self.outcomes if (each.map, each.width, each.within) == wanted), None)

    @property
    def withins(self) -> tuple[int, ...]:
        """How near weights were exact, 0 first."""
        return tuple(sorted({each.within for each in self.outcomes}))

    @property
    def rows(self) -> tuple[tuple[str, int], ...]:
        """The maps and their widths."""
        return tuple(dict.fromkeys((each.map, each.width) for each in self.outcomes))

    @property
    def alone(self) -> Outcome:
        """The feature map of least error, without exact weights."""
        return min((each for each in self._offered if not each.within), key=lambda each: each.error)

    @property
    def best(self) -> Outcome:
        """The combination of least error."""
        return min(self._offered, key=lambda each: each.error)

    @property
    def _offered(self) -> tuple[Outcome, ...]:
        return tuple(each for each in self.outcomes if 0 < each.width <= WIDEST)

    def baseline(self, outcome: Outcome) -> Outcome:
        """FAVOR+ at the same width."""
        found = self.of(BASELINE, outcome.width)
        assert found is not None
        return found

    def ratio(self, outcome: Outcome) -> float:
        """Its error as a part of the baseline's, both as means over heads."""
        return outcome.error / self.baseline(outcome).error

    def head_ratios(self, outcome: Outcome) -> tuple[float, ...]:
        """Its error as a part of the baseline's, head by head."""
        theirs = self.baseline(outcome).errors
        return tuple(mine / other for mine, other in zip(outcome.errors, theirs, strict=True))

    def window_alone(self, outcome: Outcome) -> Outcome | None:
        """The same exact weights and nothing beyond them: what an outcome owes to its map shows beside it."""
        return self.of(NOTHING, 0, outcome.within) if outcome.within else None

    def loss(self, outcome: Outcome) -> float:
        """By what part of softmax's score it is worse."""
        worse = (self.softmax - outcome.score) if self.more_is_better else (outcome.score - self.softmax)
        return worse / self.softmax


@dataclass(frozen=True)
class RealAttention:
    """Both networks, and whether the two aims are reached."""

    text: Subject
    images: Subject
    files: int  # of documented source, from which the text is
    seed: int

    @property
    def subjects(self) -> tuple[Subject, Subject]:
        """The two networks."""
        return self.text, self.images

    @property
    def near(self) -> tuple[Outcome, ...]:
        """Every map with exact weights over the longest stretch, on text."""
        return tuple(each for each in self.text.outcomes if each.width and each.within == self.text.withins[-1])

    @property
    def worst_near(self) -> Outcome:
        """The one of these that loses most."""
        return max(self.near, key=self.text.loss)

    @property
    def nothing_beyond(self) -> Outcome:
        """Exact weights over the same stretch on text, and nothing in place of what is farther away."""
        found = self.text.of(NOTHING, 0, self.worst_near.within)
        assert found is not None
        return found

    @property
    def far_matters(self) -> bool:
        """Whether to leave far positions out costs more than the worst map does; if not, maps are not tested."""
        return self.text.loss(self.nothing_beyond) > self.text.loss(self.worst_near)

    @property
    def half_reached(self) -> bool:
        """Whether on both networks the best combination has at most half of the baseline's error at its width."""
        return all(subject.ratio(subject.best) <= HALF for subject in self.subjects)

    @property
    def loss_reached(self) -> bool:
        """Whether no map with exact weights near by costs more bits than was aimed at."""
        return self.text.loss(self.worst_near) <= LOSS


@dataclass(frozen=True)
class Trained:
    """A network, data to fit maps on, held-out data, and its score on that."""

    title: str
    scored: str
    model: nn.Module
    seconds: float
    fit_on: Tensor
    held_out: Tensor
    score: Callable[[nn.Module], float]


def measure_real_attention(
    *, plan: RealAttentionPlan = TOUR, seed: int = 0, progress: Progress = silent
) -> RealAttention:
    """Train a byte model and a vision transformer with softmax, then put every combination in its place.

    Text: the documentation strings of Python's own library. Images: scikit-learn's digits. Maps that are fitted see
    training data only; every error and score is of held-out data.
    """
    progress(0.0, "reading the documentation of Python's library")
    require(all(width >= 2 for width in plan.widths), "measure_real_attention", "widths", "be 2 or more", plan.widths)
    text = library_text()
    steps = [part(progress, start, stop) for start, stop in ((0.05, 0.5), (0.5, 0.75), (0.75, 0.9), (0.9, 1.0))]

    started = time.perf_counter()
    writer = learn_text(text.train, context=plan.context, recipe=plan.text, seed=seed, progress=steps[0])
    took = time.perf_counter() - started
    known, unknown = (spread(x, plan.context + 1, plan.sequences) for x in (text.train, text.test))
    trained = Trained(
        "a byte model of Python's documentation",
        "bits per byte",
        writer,
        took,
        known[:, :-1],
        unknown[:, :-1],
        lambda model: bits_per_byte(model, unknown),
    )
    by_text = replace_softmax(trained, plan.text_within, plan=plan, seed=seed, progress=steps[1])

    images = digit_images(held_out=plan.held_out, generator=Generator().manual_seed(seed))
    started = time.perf_counter()
    reader = learn_images(images, patch_size=1, recipe=plan.images, seed=seed, progress=steps[2])
    took = time.perf_counter() - started
    trained = Trained(
        "a vision transformer of digits",
        "read right",
        reader,
        took,
        images.train[: plan.held_out],
        images.test,
        lambda model: accuracy(model, images.test, images.test_labels),
    )
    by_sight = replace_softmax(trained, plan.images_within, plan=plan, seed=seed, progress=steps[3])
    return RealAttention(by_text, by_sight, text.files, seed)


@torch.inference_mode()
def replace_softmax(
    trained: Trained, withins: tuple[int, ...], *, plan: RealAttentionPlan, seed: int, progress: Progress = silent
) -> Subject:
    """Every combination in one network."""
    model = trained.model
    known, unknown = capture(model, trained.fit_on), capture(model, trained.held_out)
    _, heads, length, key_dim = unknown[0].q.shape
    outcomes, tried = [], list(combinations(key_dim, plan.widths, withins))
    for number, each in enumerate(tried):
        progress(number / len(tried), f"{trained.title}: {each.map}")
        errors, scores = [], []
        for draw in range(plan.draws):
            generator = Generator().manual_seed(seed + draw)
            attends = [each.make(layer, generator) for layer in known]
            pairs = zip(attends, unknown, strict=True)
            errors.append([error for attend, layer in pairs for error in head_errors(attend, layer)])
            scores.append(trained.score(with_attends(model, attends)))
        by_head = tuple(fmean(of_draws) for of_draws in zip(*errors, strict=True))
        outcomes.append(Outcome(each.map, each.width, each.within, by_head, fmean(scores)))
    progress(1.0, f"{trained.title}: diagnose")
    advice = [text for layer in unknown for text in advised(layer, Generator().manual_seed(seed))]
    return Subject(
        title=trained.title,
        scored=trained.scored,
        more_is_better=trained.scored != "bits per byte",
        layers=len(unknown),
        heads=heads,
        key_dim=key_dim,
        length=length,
        training_seconds=trained.seconds,
        softmax=trained.score(model),
        logit_sds=tuple(sd for layer in unknown for sd in logit_sds(layer)),
        outcomes=tuple(outcomes),
        advice=tuple(advice),
    )


def advised(layer: Captured, generator: Generator) -> list[str]:
    """What `diagnose` advises for every head of a layer."""
    found = diagnose(layer.q, layer.k, layer.v, causal=layer.structure.causal, generator=generator)
    return [head.advice.text for head in found.heads]


def head_errors(attend: Attend, layer: Captured) -> list[float]:
    """|out - softmax|^2 / |softmax|^2 of every head of a layer, over all sequences and positions."""
    target = softmax_attention(*layer[:3], causal=layer.structure.causal).double()
    squares = (attend.attend(*layer) - target).square().sum((0, 2, 3))
    return (squares / target.square().sum((0, 2, 3))).tolist()


def logit_sds(layer: Captured) -> list[float]:
    """The standard deviation of q.k / sqrt(K) of every head, of pairs that see each other, all rows together."""
    logits = layer.q @ layer.k.mT / layer.q.shape[3] ** 0.5
    length = logits.shape[2]
    seen = torch.ones(length, length, dtype=torch.bool).tril() if layer.structure.causal else torch.tensor(True)
    return [head[:, seen.expand(length, length)].std().item() for head in logits.unbind(1)]


def spread(text: Int[Tensor, " n"], length: int, count: int) -> Int[Tensor, "B T"]:
    """Pieces of a text, evenly from its beginning to its end.

    >>> spread(torch.arange(10), 3, 2)
    tensor([[0, 1, 2],
            [7, 8, 9]])
    """
    rule = f"have at least {length} bytes"
    require(len(text) >= length, "spread", "text", rule, len(text))
    starts = torch.linspace(0, len(text) - length, count).long()
    return text[starts[:, None] + torch.arange(length)]
