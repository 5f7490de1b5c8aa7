"""Files that may be anything -> pixels, or one sentence that says why not.

A picture is refused before it is decoded when its header announces more pixels than MAX_PIXELS: a file of a few
kilobytes can ask for gigabytes. Only common formats are tried, and only the first frame of a film.
"""

import io
import warnings

import numpy
from jaxtyping import UInt8
from PIL import Image, ImageOps

MAX_PIXELS = 40_000_000  # decoded, 120 MB
MAX_BYTES = 100_000_000
FORMATS = ("JPEG", "PNG", "PPM", "BMP", "GIF", "WEBP", "TIFF")
EXIF_ORIENTATION = 0x0112

Pixels = UInt8[numpy.ndarray, "Y X C"]


class Unreadable(ValueError):
    """A file that gives no picture; the message says why."""


def check_picture(data: bytes) -> None:
    """Refuse what is no picture, or too large a one, by its header alone.

    >>> check_picture(b"a diary")
    Traceback (most recent call last):
        ...
    likewise.data.pictures.Unreadable: no picture in a known format
    """
    with _opened(data):
        pass


def decode(data: bytes, *, crop: int | None = None, least: int | None = None) -> Pixels:
    """The picture in red, green and blue, upright, without transparency.

    crop: side of the square to keep, from the centre. least: rows and columns that will be asked for, so that a JPEG
    much larger than that is decoded at a half, a quarter or an eighth of its size, which is several times faster.
    Transparent pixels lie on white; 16 bits become 8. Greys in floating point or in 32 bits do not say what white is:
    it is the first of 1 (floating point only), 255 and 65,535 that no value exceeds, and an image with larger values,
    or with negative or non-finite ones, is refused. It is never the image's own maximum, which differs between images.

    >>> file = io.BytesIO()
    >>> Image.new("L", (3, 2), 7).save(file, "PNG")
    >>> decode(file.getvalue()).shape, decode(file.getvalue())[0, 0].tolist()
    ((2, 3, 3), [7, 7, 7])
    """
    with _opened(data) as picture:
        try:
            width = picture.width
            if least is not None and picture.format == "JPEG":
                wanted = _drafted(picture.size, crop, least)
                picture.draft(picture.mode, wanted)
            side = None if crop is None else max(1, round(crop * picture.width / width))
            return numpy.asarray(_centre(_colours(_upright(picture)), side))
        except Unreadable:
            raise
        except Exception as error:  # Pillow's plugins raise nearly anything on damaged data
            raise Unreadable(f"damaged: {str(error).strip() or type(error).__name__}") from None


def decode_picture(picture: Image.Image) -> Pixels:
    """A Pillow image as `decode` gives it: upright, in red, green and blue, without transparency."""
    if picture.width * picture.height > MAX_PIXELS:
        raise Unreadable(f"{picture.width * picture.height:,} pixels; at most {MAX_PIXELS:,} are decoded")
    try:
        return numpy.asarray(_colours(_upright(picture)))
    except Unreadable:
        raise
    except Exception as error:  # as in `decode`: Pillow loads late
        raise Unreadable(f"damaged: {str(error).strip() or type(error).__name__}") from None


def _upright(picture: Image.Image) -> Image.Image:
    return picture if picture.getexif().get(EXIF_ORIENTATION, 1) == 1 else ImageOps.exif_transpose(picture)


def _opened(data: bytes) -> Image.Image:
    if len(data) > MAX_BYTES:
        raise Unreadable(f"{len(data):,} bytes; at most {MAX_BYTES:,} are read")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # Pillow warns of large pictures; they are refused below
            picture = Image.open(io.BytesIO(data), formats=FORMATS)
    except Image.DecompressionBombError:
        raise Unreadable(f"too many pixels; at most {MAX_PIXELS:,} are decoded") from None
    except Exception:
        raise Unreadable("no picture in a known format") from None
    pixels = picture.width * picture.height
    if pixels > MAX_PIXELS:
        raise Unreadable(f"{pixels:,} pixels; at most {MAX_PIXELS:,} are decoded")
    return picture


def _drafted(size: tuple[int, int], crop: int | None, least: int) -> tuple[int, int]:
    """To what size at least the whole must be decoded for the kept part to have `least` rows and columns."""
    kept = min(*size, crop or min(size))
    share = min(1.0, least / kept)
    return max(1, -int(-size[0] * share // 1)), max(1, -int(-size[1] * share // 1))


def _colours(picture: Image.Image) -> Image.Image:
    if picture.mode.startswith("I;16"):
        return Image.fromarray((numpy.asarray(picture) // 257).astype(numpy.uint8)).convert("RGB")
    if picture.mode in ("F", "I"):
        return _greys(picture).convert("RGB")
    if picture.mode in ("RGBA", "LA", "PA", "RGBa", "La") or "transparency" in picture.info:
        picture = picture.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", picture.size, "white"), picture).convert("RGB")
    return picture.convert("RGB")


def _greys(picture: Image.Image) -> Image.Image:
    """An image of floating-point or 32-bit greys in 8 bits; see `decode` for what is white."""
    values = numpy.asarray(picture).astype(numpy.float64)
    low, high = values.min().item(), values.max().item()
    # Pillow has scaled a PGM's greys to 65,535 already.
    whites = (65_535,) if picture.format == "PPM" and picture.mode == "I" else (1, 255, 65_535)[picture.mode == "I" :]
    white = next((white for white in whites if high <= white), None)
    if white is None or not low >= 0:  # NaN is neither
        raise Unreadable(f"greys from {low:g} to {high:g}; they must be from 0 to 1, 255 or 65,535")
    return Image.fromarray((values * (255 / white)).round().astype(numpy.uint8))


def _centre(picture: Image.Image, side: int | None) -> Image.Image:
    if side is None:
        return picture
    across, down = min(side, picture.width), min(side, picture.height)
    left, top = (picture.width - across) // 2, (picture.height - down) // 2
    return picture.crop((left, top, left + across, top + down))
