"""VAL at a FAR of several networks (Table 3 of the paper), or of one network on changed images (Table 4)."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import torch
from jaxtyping import Float, Int64
from torch import Tensor

from likewise.checks import require
from likewise.cost import cost
from likewise.data import Examples, Preparation, held
from likewise.evaluation.evaluating import Embedding, embed_subject
from likewise.evaluation.judging import Rates, judge, pair_distances_of, supported_far
from likewise.evaluation.protocols import Everyone, Listed
from likewise.evaluation.shifts import Brightness, Cover, Gamma, Jpeg, Move, Resolution, Shift, Turn, shifted
from likewise.files import finite
from likewise.metric.surveying import shares_at
from likewise.networks import Network
from likewise.progress import Progress, part, parts, silent

HELD = 1 << 30  # bytes of images that are decoded once and kept; more are read anew for every row

COMPRESSED = tuple(Jpeg(quality) for quality in (10, 20, 30, 50, 70, 90))
SIDES = (40, 80, 120, 160, 256)
PAPER_SIDE = 220  # of the images that NN1 takes
SHIFTS: tuple[Shift, ...] = (
    *(Cover(part, "box in the centre") for part in (0.2, 0.4, 0.6)),
    *(Cover(part, "band over the eyes", down=0.38, wide=1.0) for part in (0.1, 0.2, 0.3)),
    *(Cover(part, "band over the mouth", down=0.78, wide=1.0) for part in (0.1, 0.2, 0.3)),
    *(Gamma(power) for power in (0.4, 0.67, 1.5, 2.5)),
    *(Brightness(part) for part in (-0.3, -0.15, 0.15, 0.3)),
    *(Move(part) for part in (0.05, 0.1, 0.2)),
    *(Turn(degrees) for degrees in (5, 10, 20, 40)),
)


@dataclass(frozen=True)
class Row:
    """One line of a table: how much of what, and the rates.

    val_kept, far_kept: VAL and FAR of the judged pairs at the threshold of unchanged images, for whoever does not
    calibrate anew; nan where there is no such threshold. note: what a reader must know besides.
    """

    group: str
    value: float
    val: float
    val_error: float
    threshold: float
    accuracy: float
    accuracy_error: float
    val_kept: float = math.nan
    far_kept: float = math.nan
    note: str = ""

    @property
    def amount(self) -> str:
        """The value as text.

        >>> rates = [0.0] * 5
        >>> Row("pixels", 1600, *rates).amount, Row("gamma", 0.4, *rates).amount
        ('1,600', '0.4')
        """
        whole = float(self.value).is_integer() and abs(self.value) >= 1000
        return f"{self.value:,.0f}" if whole else f"{self.value:g}"


@dataclass(frozen=True)
class Table:
    """VAL at a FAR, row by row, at a threshold found anew for each.

    one_side: whether one image of a pair is changed, or both. finished: False if the work was stopped.
    """

    title: str
    text: str
    protocol: str = ""
    far: float = math.nan
    rows: tuple[Row, ...] = ()
    one_side: bool = False
    finished: bool = True

    def to_json(self) -> dict[str, Any]:
        """As JSON has it."""
        return finite(asdict(self))


def table3(
    networks: Mapping[str, tuple[Network, Preparation]],
    examples: Examples,
    *,
    protocol: Listed | Everyone | None = None,
    far: float | None = None,
    mirror: bool = False,
    workers: int = 0,
    progress: Progress = silent,
) -> Table:
    """VAL at a FAR of several networks on the same images, beside the multiply-adds of each for one image.

    networks: by name; each has its own size of images. Rows are sorted by multiply-adds, biases not included; with
    `mirror` an image is embedded twice and costs twice as many. The other arguments are those of `evaluate`.

    Paper: Schroff et al. 2015, Table 3 and Figure 4: VAL 87.9 for NN1 (1.6 billion) down to 51.9 for NNS2 (20 million).
    """
    require(len(networks) > 0, "table3", "networks", "hold at least one", "none")
    protocol, steps = protocol or Everyone(), parts(progress, len(networks))
    rows: list[Row] = []
    for (name, (network, preparation)), step in zip(networks.items(), steps, strict=True):
        embedding = Embedding(network, preparation, mirror, workers)
        subject = embed_subject(embedding, examples, protocol, part(step, 0.0, 1.0, name))
        far = supported_far(subject.labels, protocol=subject.protocol) if far is None else far
        rates = judge(subject.vectors, subject.labels, protocol=subject.protocol, far=far)
        macs = _macs(network, preparation) * (2 if mirror else 1)
        rows.append(replace(row("multiply-adds", macs, rates), note=name))
    text = "One row for each network, by its multiply-adds for one image."
    rows.sort(key=lambda each: each.value)
    return Table("Table 3: networks", text, protocol.title, far or math.nan, tuple(rows))


def _macs(network: Network, preparation: Preparation) -> int:
    """Multiply-adds of one image."""
    weight = next(network.parameters())
    image = torch.zeros(1, preparation.channels, *preparation.size, dtype=weight.dtype, device=weight.device)
    with torch.no_grad():
        return cost(network, image).macs


def table4(
    network: Network,
    preparation: Preparation,
    examples: Examples,
    *,
    protocol: Listed | Everyone | None = None,
    far: float | None = None,
    mirror: bool = False,
    workers: int = 0,
    progress: Progress = silent,
) -> Table:
    """VAL at a FAR by JPEG quality and by size, of your images: all of them changed, as in the paper.

    Images have the network's size first; they are then encoded and decoded again, or made smaller and back. A row with
    at least as many pixels as the network takes is that of unchanged images; for a network that takes fewer than 80^2
    sizes are the same parts of its own as the paper's of 220^2. Arguments are those of `evaluate`.

    Paper: Schroff et al. 2015, Table 4: VAL 67.3 at quality 10 and 86.5 at 90; 37.8 at 1,600 pixels and 86.4 at 65,536.
    """
    return _swept(
        Embedding(network, preparation, mirror, workers),
        examples,
        protocol or Everyone(),
        far,
        (*COMPRESSED, *reduced(math.prod(preparation.size))),
        Table(
            "Table 4: image quality",
            "Both images of every pair are compressed, or made smaller and then the network's size again.",
        ),
        progress,
    )


def reduced(pixels: int) -> tuple[Resolution, ...]:
    """The sizes of Table 4 for a network that takes so many pixels.

    >>> [size.value for size in reduced(140 * 116)], [size.value for size in reduced(28 * 28)]
    ([1600, 6400, 14400, 25600, 65536], [26, 104, 233, 415, 1062])
    """
    scale = 1 if pixels >= SIDES[1] ** 2 else pixels / PAPER_SIDE**2
    return tuple(Resolution(max(1, round(side * side * scale))) for side in SIDES)


def robustness(
    network: Network,
    preparation: Preparation,
    examples: Examples,
    *,
    shifts: Sequence[Shift] = SHIFTS,
    protocol: Listed | Everyone | None = None,
    far: float | None = None,
    mirror: bool = False,
    workers: int = 0,
    progress: Progress = silent,
) -> Table:
    """VAL at a FAR when one image of each pair is covered, under other light, moved or turned.

    The other image stays as it is, as a stored one does: the same change on both would partly cancel. Arguments are
    those of `evaluate`.
    """
    require(len(shifts) > 0, "robustness", "shifts", "hold at least one", "none")
    return _swept(
        Embedding(network, preparation, mirror, workers),
        examples,
        protocol or Everyone(),
        far,
        shifts,
        Table("Robustness", "The first image of every pair stays as it is; the second is changed.", one_side=True),
        progress,
    )


def _swept(
    embedding: Embedding,
    examples: Examples,
    protocol: Listed | Everyone,
    far: float | None,
    shifts: Sequence[Shift],
    table: Table,
    progress: Progress,
) -> Table:
    """The table with a row for unchanged images and one for every shift."""
    steps = parts(progress, 1 + len(shifts))
    subject = embed_subject(embedding, examples, protocol, part(steps[0], 0.0, 1.0, "unchanged"))
    vectors, labels, protocol = subject.vectors, subject.labels, subject.protocol
    far = supported_far(labels, protocol=protocol) if far is None else far
    clean = judge(vectors, labels, protocol=protocol, far=far)
    first = row("unchanged", 0.0, clean, shares(vectors, labels, None, protocol, clean.threshold))
    images, pixels = subject.examples, math.prod(embedding.preparation.size)
    if len(images) * pixels * embedding.preparation.channels <= HELD:
        images = held(images, embedding.preparation, workers=embedding.workers)
    rows = [first]
    for number, shift in enumerate(shifts, start=1):
        if isinstance(shift, Resolution) and shift.value >= pixels:
            note = f"as the {pixels:,} pixels that the network takes"
            rows.append(replace(first, group=shift.group, value=shift.value, note=note))
            continue
        told = part(steps[number], 0.0, 1.0, f"{shift.group} {shift.value:g}")
        changed = embedding(shifted(images, embedding.preparation, shift), told).vectors
        one, two = (vectors, changed) if table.one_side else (changed, None)
        rates = judge(one, labels, two, protocol=protocol, far=far)
        rows.append(row(shift.group, shift.value, rates, shares(one, labels, two, protocol, clean.threshold)))
    return replace(table, protocol=protocol.title, far=far, rows=tuple(rows))


def row(group: str, value: float, rates: Rates, kept: tuple[float, float] = (math.nan, math.nan)) -> Row:
    """A line of a table from the rates under its condition."""
    return Row(group, value, rates.val, rates.val_error, rates.threshold, rates.accuracy, rates.accuracy_error, *kept)


def shares(
    vectors: Float[Tensor, "N E"],
    labels: Int64[Tensor, "N"],
    others: Float[Tensor, "N E"] | None,
    protocol: Listed | Everyone,
    threshold: float,
) -> tuple[float, float]:
    """VAL and FAR of the judged pairs at a threshold."""
    if isinstance(protocol, Everyone):
        return shares_at(vectors, labels, others, threshold=threshold)
    accepted = pair_distances_of(vectors, others, protocol) <= threshold
    kinds = (protocol.judged & protocol.same, protocol.judged & ~protocol.same)
    val, far = (accepted[kind].double().mean().item() for kind in kinds)
    return val, far
