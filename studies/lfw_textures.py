"""The classical way, for comparison: histograms of texture, principal components, and the two-covariance model."""

import math
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from likewise.data import Examples
from likewise.data.batches import GREY
from likewise.data.examples import Stored
from likewise.metric import two_covariance
from likewise.metric.two_covariance import TwoCovariance

FACE = (slice(12, 138), slice(27, 123))  # of 150 x 150: 126 rows, 96 columns
SCALES = (1.0, 0.7, 0.5)
CHUNK = 128
NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, 1), (1, 1), (1, 0), (1, -1), (0, -1))
KINDS = ("gradients", "patterns")


def patterns(x: Tensor, cell: int = 10) -> Tensor:
    """Histograms of uniform local binary patterns in cells of so many pixels; roots, so that they compare by cosine.

    Paper: Ahonen, Hadid and Pietikainen, Face Recognition with Local Binary Patterns, ECCV 2004.
    """
    around, (rows, columns) = functional.pad(x, (1, 1, 1, 1), mode="replicate"), x.shape[-2:]
    code = torch.zeros(x.shape, dtype=torch.int64)
    for bit, (down, across) in enumerate(NEIGHBOURS):
        neighbour = around[..., 1 + down : 1 + down + rows, 1 + across : 1 + across + columns]
        code |= (neighbour >= x).long() << bit
    kind = _uniform()[code]
    kind = kind[..., : rows // cell * cell, : columns // cell * cell]
    cells = functional.unfold(kind.float(), cell, stride=cell).long()  # B, pixels of a cell, cells
    counts = torch.zeros(len(x), 59, cells.shape[2]).scatter_add_(1, cells, torch.ones(cells.shape))
    return (counts / cell**2).sqrt().flatten(1)


def _uniform() -> Tensor:
    """A number for each of the 58 codes with at most two changes around the circle, and one for all others."""
    changes = [(code ^ (code >> 1 | (code & 1) << 7)).bit_count() for code in range(256)]
    numbers = iter(range(58))
    return torch.tensor([next(numbers) if count <= 2 else 58 for count in changes])


def gradients(x: Tensor, cell: int = 8, bins: int = 16) -> Tensor:
    """Histograms of the directions of gradients around points so many pixels apart, by their length.

    Paper: Dalal and Triggs, Histograms of Oriented Gradients for Human Detection, CVPR 2005.
    Differs: directions of a whole turn; one normalisation, by the 3 x 3 cells around.
    """
    around = functional.pad(x, (1, 1, 1, 1), mode="replicate")
    across, down = around[..., 1:-1, 2:] - around[..., 1:-1, :-2], around[..., 2:, 1:-1] - around[..., :-2, 1:-1]
    length, angle = torch.hypot(across, down), torch.atan2(down, across) / (2 * math.pi) * bins
    low = angle.floor()
    share, low = angle - low, low.long() % bins
    planes = torch.zeros(len(x), bins, *x.shape[2:]).scatter_(1, low, length * (1 - share))
    planes.scatter_add_(1, (low + 1) % bins, length * share)
    ramp = (torch.arange(cell) + 0.5) / cell
    weight = torch.cat([ramp, ramp.flip(0)])
    for axis in (2, 3):  # a tent of two cells' width, along each axis in turn
        shape = (1, 1, -1, 1) if axis == 2 else (1, 1, 1, -1)
        stride, pad = ((cell, 1), (cell // 2, 0)) if axis == 2 else ((1, cell), (0, cell // 2))
        flat = planes.flatten(0, 1)[:, None]
        planes = functional.conv2d(flat, weight.reshape(shape), stride=stride, padding=pad)
        planes = planes[:, 0].unflatten(0, (len(x), bins))
    energy = planes.square().sum(1, keepdim=True)
    energy = functional.avg_pool2d(energy, 3, 1, 1, count_include_pad=False).sqrt()
    cut = (planes / (3 * energy + 0.255)).clamp(max=0.3)
    return (cut / (cut.norm(dim=1, keepdim=True) + 1e-2)).sqrt().flatten(1)


def textures(some: Examples) -> dict[str, Tensor]:
    """Both descriptors at three scales, each summed with that of the mirror image; float16."""
    assert isinstance(some.source, Stored)
    grey = torch.tensor(GREY)
    found: dict[str, list[Tensor]] = {kind: [] for kind in KINDS}
    for start in range(0, len(some), CHUNK):
        pixels = torch.from_numpy(some.source.images[start : start + CHUNK])[:, *FACE].float()
        face = (pixels @ grey)[:, None]
        for kind, describe in zip(KINDS, (gradients, patterns), strict=True):
            sides = [_scaled(side, describe) for side in (face, face.flip(3))]
            found[kind].append((sides[0] + sides[1]).half())
    return {kind: torch.cat(parts) for kind, parts in found.items()}


def _scaled(face: Tensor, describe) -> Tensor:
    parts = [face] + [
        functional.interpolate(face, scale_factor=scale, mode="bilinear", antialias=True) for scale in SCALES[1:]
    ]
    return torch.cat([describe(part) for part in parts], 1)


@dataclass(frozen=True, eq=False)
class Texture:
    """Descriptors -> whitened principal components of one length -> how likely two are of one person."""

    mean: Tensor
    axes: Tensor
    model: TwoCovariance

    def scores(self, first: Tensor, second: Tensor) -> Tensor:
        """The log of how much likelier one person is than two, for each row."""
        return self.model.ratios(*(_white(rows, self.mean, self.axes) for rows in (first, second)))


def learned(descriptors: Tensor, labels: Tensor, *, components: int = 300, rounds: int = 6, seed: int = 0) -> Texture:
    """The components and the model of some people's images."""
    x = descriptors.float()
    mean = x.mean(0)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        _, sizes, axes = torch.svd_lowrank(x - mean, q=components + 20, niter=2)
    axes = axes[:, :components] / (sizes[:components] / math.sqrt(len(x)))
    return Texture(mean, axes, two_covariance(_white(x, mean, axes), labels, rounds=rounds))


def _white(descriptors: Tensor, mean: Tensor, axes: Tensor) -> Tensor:
    return functional.normalize((descriptors.float() - mean) @ axes) * math.sqrt(axes.shape[1])
