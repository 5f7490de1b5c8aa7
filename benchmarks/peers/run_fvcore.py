"""fvcore's counts, for benchmarks/cost_peers.py. Runs in the peers' environment."""

import json
import logging
from importlib.metadata import version

import torch
from fvcore.nn import FlopCountAnalysis  # ty: ignore[import-not-found] -- installed in the peers' environment only

from benchmarks.cost_problem import PROBLEMS

if __name__ == "__main__":
    logging.disable()
    counts = {}
    for name, make in PROBLEMS.items():
        module, inputs, _ = make()
        with torch.no_grad():
            try:
                counts[name] = round(FlopCountAnalysis(module, inputs).total())
            except Exception as error:  # what it cannot count is part of the answer
                counts[name] = type(error).__name__
    print(json.dumps({"version": version("fvcore"), "counts": counts}))
