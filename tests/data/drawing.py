"""Pictures made on the spot: nothing of anybody's face is in a test."""

import io
import tarfile
from pathlib import Path

import numpy
from PIL import Image


def picture(*, size: tuple[int, int] = (20, 30), seed: int = 0, mode: str = "RGB") -> Image.Image:
    """A smooth coloured picture of (rows, columns)."""
    rows, columns = numpy.mgrid[: size[0], : size[1]]
    waves = [numpy.sin(rows / (3 + seed + c)) + numpy.cos(columns / (5 + c)) for c in range(3)]
    pixels = ((numpy.stack(waves, -1) + 2) * 63).astype(numpy.uint8)
    return Image.fromarray(pixels).convert(mode)


def encoded(image: Image.Image, *, kind: str = "PNG", quality: int = 95) -> bytes:
    file = io.BytesIO()
    image.save(file, kind, quality=quality)
    return file.getvalue()


def face(seed: int, *, size: tuple[int, int] = (20, 30)) -> bytes:
    return encoded(picture(seed=seed, size=size), kind="JPEG")


def people(root: Path, counts: dict[str, int], *, size: tuple[int, int] = (20, 30)) -> Path:
    """Folders of identities in LFW's names."""
    for number, (name, count) in enumerate(counts.items()):
        (root / name).mkdir(parents=True)
        for image in range(1, count + 1):
            data = face(10 * number + image, size=size)
            (root / name / f"{name}_{image:04d}.jpg").write_bytes(data)
    return root


def archive(file: Path, members: dict[str, bytes]) -> Path:
    with tarfile.open(file, "w") as opened:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            opened.addfile(info, io.BytesIO(data))
    return file
