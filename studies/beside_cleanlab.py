"""cleanlab's opinion of labels, for `studies.mislabelled`. Runs in the peers' environment.

Takes a file of labels and held-out shares (N, C); writes scores, higher for worse labels, as JSON.
"""

import json
import sys
from importlib.metadata import version

import numpy
from cleanlab.rank import get_label_quality_scores  # ty: ignore[import-not-found]

METHODS = ("self_confidence", "normalized_margin", "confidence_weighted_entropy")  # the last cannot be adjusted

if __name__ == "__main__":
    with numpy.load(sys.argv[1]) as saved:
        labels, shares = saved["labels"], saved["shares"]
    scores = {
        name + (", adjusted" if adjust else ""): -get_label_quality_scores(
            labels, shares, method=name, adjust_pred_probs=adjust
        )
        for adjust, names in ((False, METHODS), (True, METHODS[:2]))
        for name in names
    }
    scores = {name: values.tolist() for name, values in scores.items()}
    json.dump({"version": version("cleanlab"), "scores": scores}, sys.stdout)
