"""Folders and archives of image files."""

import os
import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from likewise.checks import require
from likewise.data.examples import Examples, Skipped, examples
from likewise.data.pictures import MAX_BYTES, Pixels, Unreadable, check_picture, decode

HEAD = 1 << 16  # bytes in which most headers say how large a picture is


@dataclass(frozen=True)
class Files:
    """Image files by path."""

    paths: tuple[Path, ...]
    crop: int | None = None

    def read(self, index: int, *, least: int | None = None) -> Pixels:
        return decode(read_bytes(self.paths[index]), crop=self.crop, least=least)


@dataclass(frozen=True)
class Members:
    """Image files inside an archive that is not unpacked: where each starts and how long it is."""

    archive: Path
    spans: tuple[tuple[int, int], ...]
    crop: int | None = None

    def read(self, index: int, *, least: int | None = None) -> Pixels:
        return decode(read_span(self.archive, self.spans[index]), crop=self.crop, least=least)


def folders(path: Path | str) -> Examples:
    """One folder per identity, image files in it, at any depth.

    A file that is no picture, too large, or a link that leads out of the folder is skipped and listed, with the
    reason, in `skipped`. Damage that a header does not show is found when the image is read.
    """
    root = Path(path)
    require(root.is_dir(), "folders", "path", "be a folder with one folder per identity", repr(str(path)))
    real = root.resolve()
    paths, items, names, skipped = [], [], [], []
    for identity in sorted(root.iterdir()):
        for file in sorted(identity.rglob("*")) if identity.is_dir() else [identity]:
            if file.is_dir():
                continue
            item = file.relative_to(root).as_posix()
            why = "belongs to no identity: it stands beside the folders" if file == identity else _why_not(file, real)
            if why:
                skipped.append(Skipped(item, why))
            else:
                paths.append(file)
                items.append(item)
                names.append(identity.name)
    hint = f"The first of {len(skipped)} files was skipped: {skipped[0].why}." if skipped else ""
    require(bool(paths), "folders", "path", "hold folders with images", repr(str(path)), hint)
    return examples(root.name, Files(tuple(paths)), items, names, skipped)


def _why_not(file: Path, root: Path) -> str:
    """Why a file is skipped; nothing, if it is not."""
    if not file.resolve().is_relative_to(root):
        return "a link that leads out of the folder"
    if not file.is_file():
        return "no regular file"
    try:
        with file.open("rb") as opened:
            head = opened.read(HEAD)
        try:
            check_picture(head)
        except Unreadable:
            check_picture(read_bytes(file))
    except (OSError, Unreadable) as error:
        return str(error)
    return ""


def read_bytes(file: Path) -> bytes:
    """A file's bytes, unless it is missing, no regular file (a pipe may never end) or too long for a picture."""
    try:
        size = file.stat().st_size
        if not file.is_file():
            raise Unreadable("no regular file")
        if size > MAX_BYTES:
            raise Unreadable(f"{size:,} bytes; at most {MAX_BYTES:,} are read")
        return file.read_bytes()
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None


def read_span(archive: Path, span: tuple[int, int]) -> bytes:
    """Some bytes of a file; opened anew each time, so that worker processes share no position in it."""
    start, size = span
    try:
        handle = os.open(archive, os.O_RDONLY)
    except OSError as error:
        raise Unreadable(error.strerror or str(error)) from None
    try:
        return os.pread(handle, size, start)
    finally:
        os.close(handle)


def members(archive: Path) -> Iterator[tuple[str, tuple[int, int], str]]:
    """Every file of a tar archive: name, (start, size), and why it must not be used; nothing is unpacked."""
    try:
        with tarfile.open(archive, "r:") as opened:
            for member in opened:
                if member.isdir():
                    continue
                why = "" if member.isreg() and not member.issparse() else "no regular file"
                if is_outside(member.name):
                    why = "a name that leads out of the archive"
                elif member.size > MAX_BYTES:
                    why = f"{member.size:,} bytes; at most {MAX_BYTES:,} are read"
                yield member.name, (member.offset_data, member.size), why
    except tarfile.TarError as error:
        require(False, "members", "archive", "be an uncompressed tar", repr(str(archive)), str(error))


def is_outside(name: str) -> bool:
    """Whether a name, joined to a folder, could lead out of it.

    >>> is_outside("a/b.jpg"), is_outside("../b.jpg"), is_outside("/b.jpg")
    (False, True, True)
    """
    path = PurePosixPath(name.replace("\\", "/"))
    return path.is_absolute() or ".." in path.parts or ":" in path.parts[0] if path.parts else True
