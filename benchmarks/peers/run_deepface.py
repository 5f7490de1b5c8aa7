"""deepface's build and find on a folder of images, the embedder's time taken out.

Takes a folder of images, one of probes and an output .json. Run in an environment that has deepface and tf-keras
(`pip install deepface tf-keras pandas werkzeug opencv-python-headless`); nothing is downloaded: the embedder is a fixed
projection of 16 x 16 pixels to 128 numbers, as in benchmarks/gallery.py, and detection is off. deepface still loads,
resizes and hashes each image, as it does with any model.
"""

import json
import sys
import time
from importlib.metadata import version
from pathlib import Path

import numpy
from deepface import DeepFace  # ty: ignore[import-not-found]
from deepface.models.FacialRecognition import FacialRecognition  # ty: ignore[import-not-found]
from deepface.modules import modeling  # ty: ignore[import-not-found]

WIDTH, SIDE = 128, 16
OPTIONS = {"model_name": "Dlib", "detector_backend": "skip", "enforce_detection": False, "silent": True}


class Projection(FacialRecognition):
    """The embedder, and how long it took so far."""

    def __init__(self) -> None:
        self.model, self.model_name, self.input_shape, self.output_shape = None, "Dlib", (SIDE, SIDE), WIDTH
        self.matrix = numpy.random.default_rng(0).normal(size=(SIDE * SIDE * 3, WIDTH))
        self.seconds = 0.0

    def forward(self, img: numpy.ndarray) -> list:
        start = time.perf_counter()
        found = ((img.reshape(-1, SIDE * SIDE * 3) - 0.5) @ self.matrix).tolist()
        self.seconds += time.perf_counter() - start
        return found[0] if len(found) == 1 else found


def main() -> None:
    """Build the file of representations, find every probe with and without the check for changed images."""
    folder, probes, out = sys.argv[1], sorted(Path(sys.argv[2]).iterdir()), Path(sys.argv[3])
    embedder = Projection()
    modeling.cached_models = {task: {} for task in modeling.AVAILABLE_MODELS}
    modeling.cached_models["facial_recognition"]["Dlib"] = embedder

    def taken(probe: Path, *, refresh: bool) -> float:
        start, before = time.perf_counter(), embedder.seconds
        [found] = DeepFace.find(str(probe), folder, refresh_database=refresh, similarity_search=True, k=10, **OPTIONS)
        seconds = time.perf_counter() - start - (embedder.seconds - before)
        assert Path(found["identity"][0]).name == probe.name, "the probe is one of the images"
        return seconds

    build = taken(probes[0], refresh=True)
    find = [[taken(probe, refresh=refresh) for probe in probes] for refresh in (True, False)]
    facts = {"build": build, "find": min(find[0]), "find, no check of files": min(find[1])}
    out.write_text(json.dumps({"version": version("deepface"), **facts}))


main()
