"""cleanlab's opinion of labels, for `studies.mislabelled`. Runs in the peers' environment.

Takes a file of labels and held-out shares (N, C); writes scores, higher for worse labels, as JSON.
"""

import json
import sys
from importlib.metadata import version

import numpy
from cleanlab.rank import get_label_quality_scores  # ty: ignore[import-not-found]

if __name__ == "__main__":
    with numpy.load(sys.argv[1]) as saved:
        labels, shares = saved["labels"], saved["shares"]
    scores = {
        name: (-get_label_quality_scores(labels, shares, method=name, adjust_pred_probs=adjust)).tolist()
        for name, adjust in (
            ("self_confidence", True),
            ("normalized_margin", True),
            ("confidence_weighted_entropy", False),
        )
    }
    json.dump({"version": version("cleanlab"), "scores": scores}, sys.stdout)
