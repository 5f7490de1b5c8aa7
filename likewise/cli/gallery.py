"""`likewise embed`, `enrol`, `verify`, `identify`, `forget`, `calibrate`, `upgrade`: a gallery of identities."""

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from likewise.checks import require, require_package
from likewise.cli.terminal import Json, examples, progress_bar
from likewise.cli.train import STOPPED, interruptible
from likewise.cli.versions import show_versions, versions_json
from likewise.files import finite, require_place, write_whole
from likewise.text import aligned, printable

if TYPE_CHECKING:
    from likewise.data import Skipped
    from likewise.gallery import Calibration, Gallery, Identified
    from likewise.gallery.answers import Enrolled
    from likewise.gallery.upgrading import Upgrade

EMBED_EXAMPLES = examples("likewise embed faces/ --model model.safetensors --out vectors.npz")
ENROL_EXAMPLES = examples(
    "likewise enrol people.db faces/ --model model.safetensors",
    "likewise enrol people.db vectors.npz --codes",
    "likewise enrol people.db faces/ --model mine.py:embed",
)
VERIFY_EXAMPLES = examples("likewise verify people.db 'Ann Lee' photo.jpg --model model.safetensors")
IDENTIFY_EXAMPLES = examples(
    "likewise identify people.db photo.jpg --model model.safetensors",
    "likewise identify people.db inbox/ --model model.safetensors --out answers.html",
)
FORGET_EXAMPLES = examples("likewise forget people.db 'Ann Lee'")
CALIBRATE_EXAMPLES = examples(
    "likewise calibrate people.db held-out/ --model model.safetensors --far 0.001",
    "likewise calibrate people.db --strangers others/ --model model.safetensors --fpir 0.01 --out thresholds.html",
)
UPGRADE_EXAMPLES = examples(
    "likewise upgrade people.db held-out/ --model v2.safetensors --old v1.safetensors",
    "likewise upgrade people.db held-out/ --model v2.safetensors --old v1.safetensors --images faces/",
    "likewise upgrade people.db held-out/ --model other.py:embed --old v1.safetensors --images faces/ --replace",
)
SHOWN = 10  # skipped files, candidates
Database = Annotated[Path, typer.Argument(metavar="GALLERY", help="The gallery's file; made if it is not there.")]
Known = Annotated[Path, typer.Argument(metavar="GALLERY", help="The gallery's file.")]
ModelOption = Annotated[
    str | None, typer.Option("--model", help="A network of likewise train, or file.py:function; none for vectors.")
]
FacesOption = Annotated[
    str | None, typer.Option("--faces", help="Cut out the largest face first: centre, dlib, or file.py:function.")
]
Out = Annotated[Path | None, typer.Option(help="Where to write the page.")]


def embed(
    data: Annotated[str, typer.Argument(help='Folder of identities, LFW, idx, CIFAR-10 or "digits".')],
    model: Annotated[str, typer.Option("--model", help="A network of likewise train, or file.py:function.")],
    faces: FacesOption = None,
    out: Annotated[Path, typer.Option(help="Where to write vectors, names and items.")] = Path("vectors.npz"),
    as_json: Json = False,
) -> None:
    """Turn images into vectors: a .npz that `enrol` and `train --harmonic-with` read."""
    from likewise.gallery.jobs import embed_people

    with progress_bar() as progress:
        found = embed_people(data, model, out, faces=faces, progress=progress)
    if as_json:
        _print({"vectors": str(out), **asdict(found)})
        return
    print(f"{found.templates:,} vectors of {found.identities:,} identities in {out}")
    _show_skipped(found.skipped)


def enrol(
    gallery: Database,
    data: Annotated[str, typer.Argument(help="Folder of identities, LFW, digits, or a .npz of likewise embed.")],
    model: ModelOption = None,
    faces: FacesOption = None,
    codes: Annotated[bool, typer.Option("--codes", help="One byte a number; of a new gallery.")] = False,
    add: Annotated[bool, typer.Option("--add", help="Add to identities that are there already.")] = False,
    as_json: Json = False,
) -> None:
    """Enrol a data set; the same command goes on after Ctrl-C."""
    from likewise.gallery.jobs import People, enrol_people

    with _opened(gallery, model, faces, new=True, codes=codes) as opened, interruptible() as stopped:
        people = People(data)
        with progress_bar() as progress:
            found = enrol_people(
                opened, people, add=add, skipped=people.skipped, progress=progress, interrupted=stopped
            )
        if as_json:
            _print({**asdict(found), "gallery": str(gallery), "in_gallery": opened.store.count()})
        else:
            added = found.added
            print(f"Enrolled {added.identities:,} identities with {added.templates:,} templates: {opened!r}")
            if found.already:
                print(f"{found.already:,} identities were there already; --add adds to them.")
            _show_skipped(added.skipped)
    if not found.finished:
        print("likewise: stopped; the same command goes on", file=sys.stderr)
        raise typer.Exit(STOPPED)


def verify(
    gallery: Known,
    identity: Annotated[str, typer.Argument(help="Who it should be.")],
    image: Annotated[Path, typer.Argument(help="The probe.")],
    model: ModelOption = None,
    faces: FacesOption = None,
    as_json: Json = False,
) -> None:
    """Ask whether an image shows an identity; without a calibration the answer is a distance."""
    with _opened(gallery, model, faces) as opened:
        found = opened.verify(identity, image)
    if as_json:
        _print({**asdict(found), "odds": found.odds})
        return
    words = {True: "the same", False: "somebody else", None: "undecided"}
    limit = "" if found.threshold is None else f", threshold {found.threshold:.4f}"
    print(f"{printable(identity)}: {words[found.same]}. Squared distance {found.squared:.4f}{limit}; {found.odds}.")
    _show_warnings(found.warnings)


def identify(
    gallery: Known,
    images: Annotated[list[Path], typer.Argument(help="Image files, or folders of them.")],
    model: ModelOption = None,
    faces: FacesOption = None,
    top: Annotated[int, typer.Option(min=1, help="Identities to list for each image.")] = 5,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Ask who is on each image; unknown is an answer."""
    from likewise.gallery.jobs import probe_files

    if out is not None:
        require_package("identify", "jinja2")
        require_place("identify", out)
    with _opened(gallery, model, faces) as opened:
        files = probe_files(images)
        with progress_bar() as progress:
            found = opened.identify(files, top=top, progress=progress)
        if out is not None:
            from likewise.reports.gallery import gallery_page

            sources = {each.identity: opened.sources(each.identity) for answer in found for each in answer.candidates}
            write_whole(out, gallery_page(gallery.name, found, opened.calibration, sources))
    if as_json:
        _print(
            {"answers": [{**asdict(each), "odds": each.odds} for each in found], "report": str(out) if out else None}
        )
        return
    _show_answers(found)
    if out is not None:
        print(f"The report is {out}")


def forget(
    gallery: Known,
    identity: Annotated[str, typer.Argument(help="Whom to forget.")],
    prove: Annotated[bool, typer.Option(help="Search every file for the bytes of the templates.")] = True,
    as_json: Json = False,
) -> None:
    """Erase an identity from the gallery, its log, free pages, backups and dumps, and prove it."""
    with _opened(gallery, None) as opened:
        found = opened.forget(identity, prove=prove)
    if as_json:
        _print(asdict(found))
    else:
        print(f"{printable(identity)}: {found.templates} templates {found.status}.")
        if found.found is not None:
            total = sum(size for _, size in found.searched)
            print(f"Searched {len(found.searched)} files, {total:,} bytes: {found.found} templates found.")
        _show_warnings(found.warnings)
    if found.status == "pending" or found.found:
        raise typer.Exit(1)


def calibrate(
    gallery: Known,
    data: Annotated[
        str | None, typer.Argument(help="People to compare, not trained on; the gallery's own templates unless given.")
    ] = None,
    model: ModelOption = None,
    faces: FacesOption = None,
    far: Annotated[float, typer.Option(help="False accept rate of verify.")] = 1e-3,
    strangers: Annotated[
        str | None, typer.Option(help="People who are not enrolled: sets identify's threshold.")
    ] = None,
    fpir: Annotated[float, typer.Option(help="Share of strangers that identify may take for somebody.")] = 0.01,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Find the thresholds of a gallery on your own people, with intervals, and keep them with it."""
    from likewise.gallery.jobs import People, calibrate_gallery

    if out is not None:
        require_package("calibrate", "jinja2")
        require_place("calibrate", out)
    with _opened(gallery, model, faces) as opened, progress_bar() as progress:
        people, others = (None if each is None else People(each) for each in (data, strangers))
        found = calibrate_gallery(opened, people, others, far=far, fpir=fpir, progress=progress)
        if out is not None:
            from likewise.reports.gallery import gallery_page

            write_whole(out, gallery_page(gallery.name, (), found, {}))
    if as_json:
        _print(
            {
                "verify": asdict(found.verify) if found.verify else None,
                "identify": asdict(found.identify) if found.identify else None,
            }
        )
        return
    _show_calibration(found)
    if out is not None:
        print(f"The report is {out}")


def upgrade(
    gallery: Known,
    held_out: Annotated[str, typer.Argument(metavar="HELD_OUT", help="People that neither model was trained on.")],
    model: Annotated[str, typer.Option("--model", help="The new model.")],
    old: Annotated[str, typer.Option("--old", help="The model that the gallery has now.")],
    faces: FacesOption = None,
    images: Annotated[str | None, typer.Option(help="Images of everybody: enrol anew, resumable.")] = None,
    replace: Annotated[
        bool, typer.Option("--replace", help="Enrol anew with a model that is not compatible, too; drops thresholds.")
    ] = False,
    far: Annotated[float | None, typer.Option(help="As calibrated unless given, else 0.001.")] = None,
    as_json: Json = False,
) -> None:
    """Declare a new model compatible with the gallery's templates, if held-out pairs prove it.

    With --images everybody is enrolled anew; the same command goes on after Ctrl-C.
    """
    from likewise.gallery.jobs import People, open_model, upgrade_gallery

    newer = open_model(model, faces)
    with _opened(gallery, old, faces) as opened, interruptible() as stopped, progress_bar() as progress:
        again = People(images) if images is not None else None
        verdict, added = upgrade_gallery(
            opened,
            newer,
            People(held_out),
            far=far,
            images=again,
            replace=replace,
            progress=progress,
            interrupted=stopped,
        )
        waiting = len(opened.outdated(newer))
    compatible = verdict is None or verdict.compatible
    if as_json:
        facts = {"reasons": verdict.reasons, **versions_json(verdict.versions)} if verdict else {}
        enrolled = asdict(added) if added else None
        _print({"compatible": compatible, **facts, "enrolled": enrolled, "outdated": waiting})
    else:
        _show_upgrade(verdict, added, waiting)
    if added is not None and waiting and stopped():
        print("likewise: stopped; the same command goes on", file=sys.stderr)
        raise typer.Exit(STOPPED)
    if not compatible and (added is None or waiting):
        raise typer.Exit(1)


def _show_upgrade(verdict: "Upgrade | None", added: "Enrolled | None", waiting: int) -> None:
    if verdict is None:
        print("This model was judged before; enrolling anew goes on.")
    else:
        show_versions(verdict.versions, "Held-out people")
        for reason in verdict.reasons:
            print(reason)
        print("Compatible: the gallery takes the new model from now on." if verdict.compatible else "Not compatible.")
    if added is not None:
        print(f"Enrolled {added.identities:,} identities anew with {added.templates:,} templates.")
        _show_skipped(added.skipped)
    if verdict is None or verdict.compatible or added is not None:
        print(f"{waiting:,} identities still have templates of the old model.")


def _opened(
    path: Path, model: str | None, faces: str | None = None, *, new: bool = False, codes: bool = False
) -> "Gallery":
    from likewise.gallery import Gallery
    from likewise.gallery.jobs import open_model

    require(new or path.is_file(), "likewise", "gallery", "be a file of likewise enrol", repr(str(path)))
    require(model is not None or faces is None, "likewise", "--faces", "go with --model, which takes images", faces)
    return Gallery.open(path, open_model(model, faces) if model else None, codes=codes)


def _print(facts: dict[str, Any]) -> None:
    print(json.dumps(finite({"schema": 1, **facts})))


def _show_warnings(warnings: Sequence[str]) -> None:
    for text in warnings:
        print(f"warning: {printable(text)}")


def _show_skipped(skipped: "Sequence[Skipped]") -> None:
    for item, why in skipped[:SHOWN]:
        print(f"skipped {printable(item)}: {printable(why)}")
    if len(skipped) > SHOWN:
        print(f"and {len(skipped) - SHOWN:,} more files")


def _show_answers(found: "Sequence[Identified]") -> None:
    rows = [("image", "outcome", "nearest", "distance", "")]
    for answer in found:
        nearest = answer.candidates[0] if answer.candidates else None
        who = printable(nearest.identity) if nearest else ""
        far = f"{nearest.squared:.4f}" if nearest else ""
        rows.append((printable(Path(answer.source).name), answer.outcome, who, far, answer.odds if nearest else ""))
    print(aligned(rows, left=(0, 1, 2, 4)))
    _show_warnings(list(dict.fromkeys(text for answer in found for text in answer.warnings)))


def _show_calibration(found: "Calibration") -> None:
    if found.verify is not None:
        each = found.verify
        print(
            f"verify: threshold {each.threshold:.4f} for FAR {each.far:g}; true FAR {each.low:.2g} to {each.high:.2g} "
            f"with {each.confidence:.0%} confidence, from {each.pairs:,} pairs of {each.people:,} people"
        )
        if each.val is not None and each.val_codes is not None:
            lost = 100 * (each.val - each.val_codes)
            print(f"VAL {each.val:.4f} in float, {each.val_codes:.4f} in codes of one byte a number: {lost:.2f} points")
    if found.identify is not None:
        each = found.identify
        print(
            f"identify: threshold {each.threshold:.4f} for {each.fpir:g} of strangers; "
            f"{each.low:.2g} to {each.high:.2g}, from {each.strangers:,} strangers and {each.templates:,} templates"
        )
    _show_warnings(found.warnings)
