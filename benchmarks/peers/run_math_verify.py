"""Math-Verify on pairs: a line of JSON in, a line of JSON out. It runs in the peers' environment."""

import json
import sys
import time

from math_verify import parse, verify  # ty: ignore[import-not-found] -- in the peers' environment only


def wrapped(text: str) -> str:
    """LaTeX between dollars, as its manual asks for; prose and boxes as they are."""
    return text if any(sign in text for sign in ("$", "boxed", "nswer", "####", "\\[", "\\(")) else f"${text}$"


for line in sys.stdin:
    answer, key = json.loads(line)
    start = time.perf_counter()
    try:
        gold, answers = (parse(wrapped(text)) or parse(text) for text in (key, answer))
        said = "undecided" if not gold or not answers else "equal" if verify(gold, answers) else "different"
    except Exception as error:  # a crash is a result here
        said = f"crash {type(error).__name__}"
    print(json.dumps([said, time.perf_counter() - start]), flush=True)
