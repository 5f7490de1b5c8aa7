"""Any file gives upright colours or one sentence, and never takes the machine."""

import io
import struct
import tracemalloc
import zlib

import numpy
import pytest
from PIL import Image

from likewise.data import Unreadable, decode
from likewise.data.pictures import MAX_BYTES, MAX_PIXELS, check_picture
from tests.data.drawing import encoded, picture


def bomb(side: int) -> bytes:
    """A PNG of a few bytes whose header announces side x side pixels."""
    header = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(b"\0" * 100)), (b"IEND", b"")]
    body = b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


@pytest.mark.parametrize("side", [6_400, 12_000, 40_000])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(side: int) -> None:
    tracemalloc.start()
    for attempt in (check_picture, decode):
        with pytest.raises(Unreadable, match="pixels; at most 40,000,000 are decoded"):
            attempt(bomb(side))
    assert tracemalloc.get_traced_memory()[1] < 1_000_000
    tracemalloc.stop()
    assert side**2 > MAX_PIXELS


def test_a_long_file_is_refused() -> None:
    with pytest.raises(Unreadable, match="bytes; at most 100,000,000 are read"):
        decode(bytes(MAX_BYTES + 1))


@pytest.mark.parametrize("data", [b"", b"a diary", b"GIF89a", b"\x89PNG\r\n\x1a\n" + bytes(50), b"%PDF-1.7"])
def test_what_is_no_picture_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable, match="no picture in a known format"):
        decode(data)


@pytest.mark.parametrize("kind", ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"])
def test_a_truncated_picture_is_refused(kind: str) -> None:
    data = encoded(picture(size=(60, 80)), kind=kind)
    with pytest.raises(Unreadable):
        decode(data[: len(data) // 2])


@pytest.mark.parametrize("mode", ["RGB", "L", "1", "P", "CMYK", "RGBA", "LA", "I;16", "YCbCr"])
def test_every_mode_becomes_the_same_colours(mode: str) -> None:
    colours = picture(mode="L") if mode in ("L", "1", "LA", "I;16") else picture()
    if mode == "I;16":
        image = Image.fromarray(numpy.asarray(colours).astype(numpy.uint16) * 257)
    elif mode == "1":
        image = colours = colours.convert("1")
    elif mode == "P":
        image = colours.quantize(256)
    else:
        image = colours.convert(mode)
    found = decode(encoded(image, kind="TIFF"))
    assert found.shape == (20, 30, 3)
    assert found.dtype == numpy.uint8
    difference = numpy.abs(found.astype(int) - numpy.asarray(colours.convert("RGB")).astype(int))
    assert difference.mean() < (4 if mode in ("P", "YCbCr") else 0.5)


@pytest.mark.parametrize(
    ("dtype", "white"), [("float32", 1), ("float32", 255), ("float32", 65_535), ("int32", 255), ("int32", 65_535)]
)
def test_greys_of_32_bits_are_read_by_the_least_white_that_holds_them(dtype: str, white: int) -> None:
    greys = numpy.asarray(picture(mode="L")).astype(numpy.float64)
    greys[0, 0] = 255.0
    image = Image.fromarray((greys * (white / 255)).astype(dtype))
    assert image.mode in ("F", "I")
    found = decode(encoded(image, kind="TIFF"))
    assert numpy.abs(found - greys[..., None]).max() <= 1.0


def test_a_dark_image_stays_dark() -> None:
    dark = Image.fromarray(numpy.full((2, 3), 0.2, numpy.float32))
    assert decode(encoded(dark, kind="TIFF"))[0, 0].tolist() == [51, 51, 51]
    grey = b"P5 1 1 65535\n" + struct.pack(">H", 200)  # a PGM says what white is
    assert decode(grey)[0, 0].tolist() == [1, 1, 1]


@pytest.mark.parametrize(
    ("values", "span"), [([-1.0, 0.5], "-1 to 0.5"), ([0.0, 70_000.0], "0 to 70000"), ([0.5, numpy.nan], "nan to nan")]
)
def test_greys_without_a_known_white_are_refused(values: list[float], span: str) -> None:
    image = Image.fromarray(numpy.array([values], numpy.float32))
    with pytest.raises(Unreadable, match=f"greys from {span}; they must be from 0 to 1, 255 or 65,535"):
        decode(encoded(image, kind="TIFF"))


def test_transparency_lies_on_white() -> None:
    assert decode(encoded(Image.new("RGBA", (1, 1), (0, 100, 200, 0))))[0, 0].tolist() == [255, 255, 255]
    assert decode(encoded(Image.new("RGBA", (1, 1), (0, 100, 200, 255))))[0, 0].tolist() == [0, 100, 200]


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_camera_held_askew_changes_nothing(orientation: int) -> None:
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # Image.Transpose that puts the picture as the camera saw it
    upright = picture()
    exif = Image.Exif()
    exif[0x0112] = orientation
    stored = upright if orientation == 1 else upright.transpose(Image.Transpose(undo[orientation]))
    file = io.BytesIO()
    stored.save(file, "PNG", exif=exif)
    assert numpy.array_equal(decode(file.getvalue()), numpy.asarray(upright))


def test_the_centre_is_kept() -> None:
    whole = decode(encoded(picture(size=(21, 30))))
    assert numpy.array_equal(decode(encoded(picture(size=(21, 30))), crop=7), whole[7:14, 11:18])
    assert decode(encoded(picture(size=(4, 30))), crop=7).shape == (4, 7, 3)


@pytest.mark.parametrize(("least", "rows"), [(None, 400), (100, 100), (101, 200), (51, 100), (1, 50), (999, 400)])
def test_a_large_jpeg_is_decoded_no_smaller_than_asked(least: int | None, rows: int) -> None:
    data = encoded(picture(size=(400, 560)), kind="JPEG")
    found = decode(data, least=least)
    assert found.shape[0] == rows
    near = numpy.asarray(picture(size=(400, 560)).resize(found.shape[1::-1], Image.Resampling.BOX)).astype(int)
    assert numpy.abs(found - near).mean() < 6


def test_a_crop_is_of_the_same_place_at_every_scale() -> None:
    data = encoded(picture(size=(400, 400)), kind="JPEG")
    full, half = decode(data, crop=200), decode(data, crop=200, least=100)
    assert (full.shape, half.shape) == ((200, 200, 3), (100, 100, 3))
    near = numpy.asarray(Image.fromarray(full).resize((100, 100), Image.Resampling.BOX)).astype(int)
    assert numpy.abs(half - near).mean() < 6
