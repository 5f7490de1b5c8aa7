"""A network as a chain of named segments, with heads on the way."""

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any, Literal

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional

from likewise.checks import refuse, require, require_choice, require_count
from likewise.exits.criteria import MaxProbability, Policy
from likewise.exits.running import Always, Compaction, Never, Outcome, Timings, measured_timings, run_exits
from likewise.exits.splits import Ledger

Segment = Callable[[Tensor], Tensor]
Chain = tuple[tuple[str, Segment], ...]


def chain_of(network: nn.Module, segments: Sequence[tuple[str, Segment]] | None = None) -> Chain:
    """The segments given, or those the network offers as `.segments`, or the layers of an nn.Sequential.

    >>> [name for name, _ in chain_of(nn.Sequential(nn.Flatten(), nn.Linear(4, 2)))]
    ['0', '1']
    """
    found = tuple(_offered(network) if segments is None else segments)
    names = [name for name, _ in found]
    distinct = len(set(names)) == len(names) > 0
    require(distinct, "EarlyExit", "segments", "have names, each once", names)
    return found


def _offered(network: nn.Module) -> Sequence[tuple[str, Segment]]:
    offered: Any = getattr(network, "segments", None)
    if offered is not None:
        return offered() if callable(offered) else offered
    hint = "Give segments=[(name, module), ...], first to last."
    require(isinstance(network, nn.Sequential), "EarlyExit", "network", "offer segments", type(network).__name__, hint)
    return list(network.named_children())


def require_same(network: nn.Module, chain: Chain, x: Tensor) -> list[Tensor]:
    """Refuse a chain that is not the network on x, bit for bit; gives what comes out of each segment."""
    outputs = []
    with torch.no_grad(), evaluating(network):
        wanted = network(x)
        for _, segment in chain:
            x = segment(x)
            outputs.append(x)
    if x.shape != wanted.shape or not torch.equal(x, wanted):
        got = tuple(x.shape) if x.shape != wanted.shape else f"differences up to {(x - wanted).abs().max().item():.3g}"
        refuse("EarlyExit", "segments", f"give the network's {tuple(wanted.shape)}, bit for bit", got)
    return outputs


@contextmanager
def evaluating(network: nn.Module) -> Generator[None, None, None]:
    """Evaluation mode for a while; afterwards every part has the mode it had."""
    modes = [(part, part.training) for part in network.modules()]
    network.eval()
    try:
        yield
    finally:
        for part, mode in modes:
            part.training = mode


SIDE = 32  # of the images with which a network is tried when none are given


def pooled(x: Float[Tensor, "B *rest"], grid: int = 1) -> Float[Tensor, "B F"]:
    """What a head sees of a segment: the means of grid x grid parts of an image (B, C, Y, X), the mean over tokens
    (B, T, D), or the row itself.

    >>> pooled(torch.arange(4.0).reshape(1, 2, 1, 2))
    tensor([[0.5000, 2.5000]])
    """
    if x.ndim == 4:
        return x.mean((2, 3)) if grid == 1 else functional.adaptive_avg_pool2d(x, grid).flatten(1)
    return {3: lambda: x.mean(1), 2: lambda: x}[x.ndim]()


class Head(nn.Module):
    """logits = (W f + b) / temperature of f = `pooled(x, grid)`.

    >>> head = Head(2, 3, seed=0)
    >>> head.features(torch.arange(4.0).reshape(1, 2, 1, 2))
    tensor([[0.5000, 2.5000]])
    """

    temperature: Tensor

    def __init__(self, width: int, num_classes: int, *, grid: int = 1, seed: int) -> None:
        super().__init__()
        self.grid = grid
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            self.linear = nn.Linear(width, num_classes)
        self.register_buffer("temperature", torch.ones(()))

    def features(self, x: Float[Tensor, "B *rest"]) -> Float[Tensor, "B F"]:
        """What the head makes its answer of."""
        return pooled(x, self.grid)

    def forward(self, x: Float[Tensor, "B *rest"]) -> tuple[Float[Tensor, "B F"], Float[Tensor, "B C"]]:
        features = self.features(x)
        return features, self.linear(features) / self.temperature


class EarlyExit(nn.Module):
    """A classifier and a head behind each of some segments.

    network: a `likewise.networks` network with classes, an nn.Sequential, any module that offers `.segments`, or any
    module at all with `segments` given as (name, module), first to last; that they are the network is checked on
    `example`, bit for bit. example: a batch of two or more as the network takes it; not needed by our residual
    networks. heads: names of segments, in any order. grid: a head sees the means of so many parts of an image each way;
    1 is the mean over all pixels, which does not know where something is. seed: of the heads' first weights.

    Calling it gives the logits of all heads and, last, of the network: (B, heads + 1, classes). `run` leaves early.

    >>> from likewise.networks import resnet8
    >>> exits = EarlyExit(resnet8(channels=1, num_classes=10), heads=["block2", "block1"]).eval()
    >>> exits.names, exits.places, exits(torch.zeros(5, 1, 8, 8)).shape
    (('block1', 'block2'), (1, 2), torch.Size([5, 3, 10]))

    Paper: BranchyNet, arXiv 1709.01686.
    """

    def __init__(
        self,
        network: nn.Module,
        example: Tensor | None = None,
        *,
        heads: Sequence[str],
        grid: int = 1,
        segments: Sequence[tuple[str, Segment]] | None = None,
        seed: int = 0,
    ) -> None:
        super().__init__()
        require(isinstance(network, nn.Module), "EarlyExit", "network", "be a torch.nn.Module", type(network).__name__)
        require_count("EarlyExit", "grid", grid)
        self.network, self.grid = network, grid
        self.chain = chain_of(network, segments)
        example = _example(network) if example is None else example
        outputs = require_same(network, self.chain, example)
        self.example = torch.zeros_like(example, device="meta")
        last = tuple(outputs[-1].shape)
        fits = len(last) == 2 and last[1] > 1
        require(fits, "EarlyExit", "network", "end in logits of two classes or more, (B, C)", last)
        places = [name for name, _ in self.chain[:-1]]
        for name in heads:
            require(name in places, "EarlyExit", "heads", f"be segments before the last: {', '.join(places)}", name)
        require(len(set(heads)) == len(heads) > 0, "EarlyExit", "heads", "be one or more, each once", list(heads))
        self.num_classes = last[1]
        self.places = tuple(sorted(places.index(name) for name in heads))
        self.heads = nn.ModuleList(
            _head(outputs[place], places[place], self.num_classes, grid=grid, seed=seed + number)
            for number, place in enumerate(self.places)
        )
        self.heads.to(outputs[-1])
        self.ledger = Ledger()
        self._measured: dict[object, Timings] = {}

    @property
    def names(self) -> tuple[str, ...]:
        """The segments that have a head."""
        return tuple(self.chain[place][0] for place in self.places)

    @property
    def segments(self) -> list[Segment]:
        """The segments, without their names."""
        return [segment for _, segment in self.chain]

    @property
    def positions(self) -> tuple[int, ...]:
        """The probe of prediction depth at which each exit stands: 0 is the input, i the output of segment i, and the
        end stands at the softmax behind the last segment.
        """
        return (*(place + 1 for place in self.places), len(self.chain) + 1)

    @property
    def temperatures(self) -> list[Tensor]:
        """What each head divides its logits by."""
        return [head.temperature for head in self.heads if isinstance(head, Head)]

    @property
    def device(self) -> torch.device:
        """Where it runs."""
        return self.temperatures[0].device

    @property
    def never(self) -> Policy:
        """The policy under which nobody leaves early."""
        return Policy(MaxProbability(), (float("inf"),) * len(self.heads))

    def forward(self, x: Tensor) -> Float[Tensor, "B exits C"]:
        return self.features_and_logits(x)[1]

    def features_and_logits(self, x: Tensor) -> tuple[list[Tensor], Float[Tensor, "B exits C"]]:
        """The features of every head, and the logits of every head and of the end."""
        at = dict(zip(self.places, self.heads, strict=True))
        features, logits = [], []
        for number, segment in enumerate(self.segments):
            x = segment(x)
            if number in at:
                seen, answer = at[number](x)
                features.append(seen)
                logits.append(answer)
        return features, torch.stack([*logits, x], dim=1)

    def run(
        self,
        x: Tensor,
        *,
        policy: Policy,
        compact: Compaction | Literal["measured", "always", "never"] = "measured",
    ) -> Outcome:
        """Answer a batch, each example by the first head that is sure enough of it.

        The decision is per example: an example's answer and exit do not depend on the others, up to the rounding of
        kernels that differ with the size of a batch. Heads at which nobody can leave are not run, so a policy that
        never exits is the network. compact: whether rows that have left are dropped: where it pays by measured times
        (`timings`; the first batch of a size is timed for it), always, never, or by a table of your own.
        """
        where = "EarlyExit.run"
        require(not self.training, where, "exits", "be in evaluation mode", "training mode", "Call .eval() first.")
        count = len(self.heads)
        fits = len(policy.thresholds) == count
        require(fits, where, "policy", f"have a threshold for each of {count} heads", len(policy.thresholds))
        if isinstance(compact, str):
            require_choice(where, "compact", compact, ("measured", "always", "never"))
        with torch.no_grad():
            return run_exits(
                x,
                segments=self.segments,
                heads=list(self.heads),
                places=self.places,
                policy=policy,
                compaction=self._compaction(x, policy, compact),
            )

    def timings(self, x: Tensor) -> Timings:
        """The times by which batches like x shrink or do not; measured once per device, shape, and number of threads.

        Numbers of rows are taken up to the next power of two.
        """
        key = (str(x.device), x.dtype, tuple(x.shape[1:]), len(x).bit_length(), torch.get_num_threads())
        if key not in self._measured:
            names = [name for name, _ in self.chain]
            self._measured[key] = measured_timings(x, names=names, segments=self.segments)
        return self._measured[key]

    def _compaction(self, x: Tensor, policy: Policy, compact: Compaction | str) -> Compaction:
        if not isinstance(compact, str):
            return compact
        if compact == "never" or len(x) < 2 or not any(policy.can_exit(head) for head in range(len(self.heads))):
            return Never()
        return Always() if compact == "always" else self.timings(x)


def _example(network: nn.Module) -> Tensor:
    """Images of chance for a network that takes any size."""
    channels = getattr(network, "channels", None)
    if not isinstance(channels, int):
        refuse("EarlyExit", "example", "be a batch as the network takes it", None, f"For {type(network).__name__}.")
    weight = next(network.parameters())
    images = torch.randn(2, channels, SIDE, SIDE, generator=torch.Generator().manual_seed(0))
    return images.to(weight)


def _head(output: Tensor, name: str, num_classes: int, *, grid: int, seed: int) -> Head:
    """A head for the output of a segment; an image of fewer pixels than the grid has parts is seen pixel by pixel."""
    shape = tuple(output.shape)
    rule = "stand behind segments that give (B, C, Y, X), (B, T, D) or (B, F)"
    require(output.ndim in (2, 3, 4), "EarlyExit", "heads", rule, f"{shape} behind {name}")
    grid = min(grid, *shape[2:]) if output.ndim == 4 else 1
    return Head(pooled(output[:1], grid).shape[1], num_classes, grid=grid, seed=seed)
