"""Describe the faces of LFW by dlib's network: 128 numbers each, into a .npz with vectors, names and items.

Run in the environment of the peers, which has dlib-bin and face-recognition-models:
.peers/bin/python benchmarks/peers/run_dlib.py lfw.tar descriptors.npz [--most 6] [--images 6400] [--part 0/2]

Faces are the centre 114 pixels, as LFW's boxes were enlarged 2.2 times; no detector. Vectors are as dlib gives
them: their length is not 1. About 12 images a second on one core.
"""

import argparse
import importlib
import io
import random
import re
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy
from PIL import Image

FACE = 114  # of 250 pixels
dlib: Any = importlib.import_module("dlib")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--most", type=int, default=6, help="images of one person")
    parser.add_argument("--images", type=int, default=10**6, help="images in all: whole people, in a drawn order")
    parser.add_argument("--part", default="0/1", help="i/n: every n-th image from i on, for several processes")
    options = parser.parse_args()
    part, parts = map(int, options.part.split("/"))
    found = [place for place in map(Path, sys.path) if (place / "face_recognition_models").is_dir()]
    models = found[0] / "face_recognition_models" / "models"
    landmarks = dlib.shape_predictor(str(models / "shape_predictor_5_face_landmarks.dat"))
    network = dlib.face_recognition_model_v1(str(models / "dlib_face_recognition_resnet_model_v1.dat"))
    with tarfile.open(options.archive) as archive:
        people: dict[str, dict[str, tarfile.TarInfo]] = {}
        for member in archive:
            match = re.search(r"([^/]+)/(\1_\d{4})\.jpg$", member.name)
            if match:
                people.setdefault(match[1], {})[f"{match[1]}/{match[2]}.jpg"] = member
        order = sorted(people)
        random.Random(0).shuffle(order)
        wanted = [item for name in order for item in sorted(people[name])[: options.most]]
        vectors, items = [], wanted[: options.images][part::parts]
        for item in items:
            file = archive.extractfile(people[item.partition("/")[0]][item])
            assert file is not None
            pixels = numpy.asarray(Image.open(io.BytesIO(file.read())).convert("RGB"))
            top, left = (pixels.shape[0] - FACE) // 2, (pixels.shape[1] - FACE) // 2
            box = dlib.rectangle(left, top, left + FACE - 1, top + FACE - 1)
            vectors.append(network.compute_face_descriptor(pixels, landmarks(pixels, box)))
            if len(vectors) % 200 == 0:
                print(f"{len(vectors)} of {len(items)} images", file=sys.stderr, flush=True)
                write(options.out, vectors, items)
    write(options.out, vectors, items)


def write(out: Path, vectors: list, items: list[str]) -> None:
    """What there is so far."""
    items = items[: len(vectors)]
    names = [item.partition("/")[0] for item in items]
    numpy.savez(out, vectors=numpy.array(vectors, "f"), names=numpy.array(names), items=numpy.array(items))


main()
