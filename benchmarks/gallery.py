"""The gallery: exact search against FAISS, opening, enrolling and forgetting; build and find against deepface.

Run it as `python -m benchmarks.gallery`, on a machine that does nothing else (three minutes, 5 GB of memory).
`--peers` names a Python with faiss-cpu, `--deepface` one with deepface (and LIKEWISE_LFW the images); what is left out
is said to be. Answers are compared first. Exit code 1: an answer is wrong.
"""

import json
import os
import re
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy
import torch
import typer

from benchmarks.harness.measurement import machine
from benchmarks.harness.worker import PEERS_PYTHON, RESULTS
from likewise.gallery import Gallery
from likewise.gallery.jobs import People, enrol_people
from likewise.gallery.search import Matrix
from likewise.gallery.store import Person
from likewise.metric import quantised

ROWS, WIDTH, K = 1_000_000, 128, 10
IMAGES, SIDE = 2000, 16  # against deepface
PROJECTED = numpy.random.default_rng(0).normal(size=(SIDE * SIDE * 3, WIDTH))
SPENT: list[float] = []  # seconds in the embedder
BATCHES = (1, 64, 1000)
AIMS = {  # name -> at most
    "float / FAISS, batch 1": 1.0,
    "float / FAISS, batch 64": 1.1,
    "float / FAISS, batch 1000": 1.1,
    "codes / float, memory": 0.3,
    "codes / float, batch 1": 1 / 3,
    "open, s": 0.6,
    "10,000 enrolments in one call, s": 0.3,
    "one by one, s each": 1 / 3000,
    "forget, s": 0.02,
}


def least(call: Callable[[], object], times: int) -> float:
    """The least of several times, after one that does not count."""
    call()
    found = []
    for _ in range(times):
        start = time.perf_counter()
        call()
        found.append(time.perf_counter() - start)
    return min(found)


def vectors(count: int, seed: int) -> numpy.ndarray:
    """Random unit vectors."""
    drawn = torch.randn(count, WIDTH, generator=torch.Generator().manual_seed(seed))
    return torch.nn.functional.normalize(drawn, dim=1).numpy()


def by_definition(queries: numpy.ndarray, rows: numpy.ndarray) -> numpy.ndarray:
    """The ten nearest rows by float64 distances."""
    found = []
    for query in queries:
        near = numpy.argpartition(-(rows @ query), 200)[:200]
        squared = ((rows[near].astype(numpy.float64) - query) ** 2).sum(1)
        found.append(near[numpy.lexsort((near, squared))][:K])
    return numpy.array(found)


def faiss_times(peers: Path, rows: numpy.ndarray, queries: numpy.ndarray, folder: Path) -> dict[str, Any]:
    """What run_faiss.py measured."""
    numpy.save(folder / "rows.npy", rows)
    numpy.save(folder / "queries.npy", queries)
    names = [str(folder / name) for name in ("rows.npy", "queries.npy", "faiss.npz")]
    subprocess.run([str(peers), "benchmarks/peers/run_faiss.py", *names], check=True)
    with numpy.load(folder / "faiss.npz") as found:
        return dict(found)


def search(peers: Path | None, folder: Path) -> tuple[dict[str, Any], dict[str, float]]:
    """Times of search by batch, and the figures that have aims."""
    rows, queries = vectors(ROWS, 0), vectors(max(BATCHES), 1)
    owners = numpy.arange(1, ROWS + 1)
    floats, codes = Matrix(WIDTH, codes=False, unit=True), Matrix(WIDTH, codes=True, unit=True)
    floats.put(0, rows, owners)
    codes.put(0, quantised(torch.from_numpy(rows)).numpy(), owners)
    coded = quantised(torch.from_numpy(queries)).numpy()
    right = by_definition(queries[:64], rows)
    for batch in (1, 3, 64):
        if not (floats.nearest(queries[:batch], k=K).rows == right[:batch]).all():
            sys.exit(f"The search is wrong at batch {batch}.")
    same = float((codes.nearest(coded, k=1).rows == floats.nearest(queries, k=1).rows).mean())
    seconds = {"float": {}, "codes": {}}
    for batch in BATCHES:
        times = 9 if batch == 1 else 3
        seconds["float"][batch] = least(lambda batch=batch: floats.nearest(queries[:batch], k=K), times)
        seconds["codes"][batch] = least(lambda batch=batch: codes.nearest(coded[:batch], k=K), times)
    figures = {
        "codes / float, memory": sum(b.nbytes for b in (*codes.blocks, *codes.factors))
        / floats.blocks[0].nbytes
        / len(floats.blocks),
        "codes / float, batch 1": seconds["codes"][1] / seconds["float"][1],
    }
    facts: dict[str, Any] = {"seconds": seconds, "top-1 of codes as float": same}
    if peers is not None:
        found = faiss_times(peers, rows, queries, folder)
        if not (numpy.sort(found["found"], 1) == numpy.sort(right, 1)).mean() > 0.999:
            sys.exit("FAISS finds something else.")
        facts["faiss"] = str(found["version"])
        for batch in BATCHES:
            theirs = found[f"seconds_{batch}"].tolist()
            seconds.setdefault("FAISS FlatIP", {})[batch] = theirs
            figures[f"float / FAISS, batch {batch}"] = seconds["float"][batch] / min(theirs)
    return facts, figures


def store(folder: Path) -> dict[str, float]:
    """Times of the embedded store with a million templates."""
    rows, path, figures = vectors(ROWS, 0), folder / "gallery.db", {}
    with Gallery.open(path) as gallery:
        gallery.enrol("first", rows[:1])
        model = gallery.store.current()
        assert model is not None
        for start in range(1, ROWS, 50_000):
            some = rows[start : start + 50_000]
            people = [Person(f"person {start + n}", some[n : n + 1], ("",)) for n in range(len(some))]
            gallery.store.add(people, model)

    def opened() -> None:
        with Gallery.open(path) as gallery:
            gallery.identify(rows[:1], top=1)

    figures["open and answer once, s"] = least(opened, 3)
    with Gallery.open(path) as gallery:
        start = time.perf_counter()
        gallery.store.nearest(rows[:1], model, k=1)
        first = time.perf_counter() - start
        figures["open, s"] = figures["open and answer once, s"]
        figures["first search, s"] = first
        names = [f"new {number}" for number in range(10_000)]
        start = time.perf_counter()
        gallery.enrol(names, vectors(10_000, 2))
        figures["10,000 enrolments in one call, s"] = time.perf_counter() - start
        some = vectors(2000, 3)
        start = time.perf_counter()
        for number in range(2000):
            gallery.enrol(f"single {number}", some[number : number + 1])
        figures["one by one, s each"] = (time.perf_counter() - start) / 2000
        start = time.perf_counter()
        for number in range(50):
            assert gallery.forget(f"single {number}").status == "erased"
        figures["forget, s"] = (time.perf_counter() - start) / 50
        [found] = gallery.identify(some[77], top=1)
        assert found.candidates[0].identity == "single 77"
    figures["file, MB"] = path.stat().st_size / 1e6
    return figures


def projection(images: list[numpy.ndarray]) -> numpy.ndarray:
    """The embedder of run_deepface.py: 16 x 16 pixels to 128 numbers."""
    start = time.perf_counter()
    small = numpy.stack([image[7::16, 7::16][:SIDE, :SIDE] for image in images]).reshape(len(images), -1)
    found = (small / 255 - 0.5) @ PROJECTED
    SPENT.append(time.perf_counter() - start)
    return found


def against_deepface(python: Path, archive: Path, folder: Path) -> dict[str, Any]:
    """Seconds to build a gallery of 2,000 images and to find one, without the embedder's, on both sides."""
    images, probes = folder / "images", folder / "probes"
    with tarfile.open(archive) as opened:
        members = sorted((m for m in opened if re.search(r"\d{4}\.jpg$", m.name)), key=lambda m: m.name)[:IMAGES]
        for number, member in enumerate(members):
            name, data = Path(member.name).name, opened.extractfile(member)
            assert data is not None
            pixels = data.read()
            for place in (images / name[:-9], *([probes] if number % (IMAGES // 10) == 0 else [])):
                place.mkdir(parents=True, exist_ok=True)
                (place / name).write_bytes(pixels)
    with Gallery.open(folder / "faces.db", projection, model="projection") as gallery:
        start = time.perf_counter()
        enrolled = enrol_people(gallery, People(images)).added
        build = time.perf_counter() - start - sum(SPENT)
        assert enrolled.templates == len(members), enrolled
        find = []
        for probe in sorted(probes.iterdir()):
            before, start = sum(SPENT), time.perf_counter()
            [found] = gallery.identify(probe, top=10)
            find.append(time.perf_counter() - start - (sum(SPENT) - before))
            assert found.candidates[0].identity == probe.name[:-9], "the probe is one of the images"
    ours = {"build": build, "find": min(find)}
    command = [str(python), "benchmarks/peers/run_deepface.py", *map(str, (images, probes, folder / "deepface.json"))]
    subprocess.run(command, check=True, env={**os.environ, "DEEPFACE_HOME": str(folder), "TF_CPP_MIN_LOG_LEVEL": "3"})
    theirs = json.loads((folder / "deepface.json").read_text())
    return {"images": len(members), "likewise": ours, "deepface": theirs}


def main(
    peers: Annotated[Path | None, typer.Option(help="A Python with faiss-cpu.")] = None,
    deepface: Annotated[Path | None, typer.Option(help="A Python with deepface.")] = None,
    out: Annotated[Path, typer.Option(help="Where to write the numbers.")] = RESULTS / "gallery.json",
) -> None:
    """Measure, print every figure beside its aim, and write them."""
    python = peers or (PEERS_PYTHON if PEERS_PYTHON.exists() else None)
    with tempfile.TemporaryDirectory(dir=Path.cwd()) as folder:
        facts, figures = search(python, Path(folder))
        figures |= store(Path(folder))
        lfw, notes = os.environ.get("LIKEWISE_LFW"), []
        if python is None:
            notes.append("FAISS was not there to compare with.")
        if deepface is None or lfw is None:
            notes.append("deepface or its images (LIKEWISE_LFW) were not there to compare with.")
        else:
            facts["against deepface"] = against_deepface(deepface, Path(lfw), Path(folder))
        notes.append(f"Load of the machine when it ended: {os.getloadavg()[0]:.1f} (one minute).")
    for name, value in figures.items():
        aim = AIMS.get(name)
        verdict = "" if aim is None else f"  at most {aim:.3g}: {'kept' if value <= aim else 'MISSED'}"
        print(f"{name:<40}{value:>12.4g}{verdict}")
    print(json.dumps(facts))
    facts = {"machine": machine(), "aims": AIMS, "figures": figures, **facts, "notes": notes}
    out.write_text(json.dumps(facts, indent=1) + "\n")


if __name__ == "__main__":
    typer.run(main)
