"""Describe the faces of LFW by dlib's network: 128 numbers each, into a .npz with vectors, names and items.

Run in the environment of the peers, which has dlib-bin and face-recognition-models:
.peers/bin/python benchmarks/peers/run_dlib.py lfw.tar descriptors.npz [--most 6]

Faces are the centre 114 pixels, as LFW's boxes were enlarged 2.2 times; no detector. Vectors are as dlib gives
them: their length is not 1. About 12 images a second on one core.
"""

import argparse
import io
import re
import sys
import tarfile
from collections import Counter
from pathlib import Path

import dlib  # ty: ignore[import-not-found]
import numpy
from PIL import Image

FACE = 114  # of 250 pixels


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("archive", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--most", type=int, default=6, help="images of one person")
    options = parser.parse_args()
    found = [place for place in map(Path, sys.path) if (place / "face_recognition_models").is_dir()]
    models = found[0] / "face_recognition_models" / "models"
    landmarks = dlib.shape_predictor(str(models / "shape_predictor_5_face_landmarks.dat"))
    network = dlib.face_recognition_model_v1(str(models / "dlib_face_recognition_resnet_model_v1.dat"))
    vectors, names, items, seen = [], [], [], Counter()
    with tarfile.open(options.archive) as archive:
        wanted = {}
        for member in archive:
            match = re.search(r"([^/]+)/(\1_\d{4})\.jpg$", member.name)
            if match:
                wanted[f"{match[1]}/{match[2]}.jpg"] = member
        for item in sorted(wanted):
            name = item.partition("/")[0]
            seen[name] += 1
            file = archive.extractfile(wanted[item]) if seen[name] <= options.most else None
            if file is None:
                continue
            pixels = numpy.asarray(Image.open(io.BytesIO(file.read())).convert("RGB"))
            top, left = (pixels.shape[0] - FACE) // 2, (pixels.shape[1] - FACE) // 2
            box = dlib.rectangle(left, top, left + FACE - 1, top + FACE - 1)
            vectors.append(network.compute_face_descriptor(pixels, landmarks(pixels, box)))
            names.append(name)
            items.append(item)
            if len(items) % 500 == 0:
                print(f"{len(items)} images", file=sys.stderr, flush=True)
    numpy.savez(options.out, vectors=numpy.array(vectors, "f"), names=numpy.array(names), items=numpy.array(items))


main()
