"""Nothing a text says reaches an attribute, an import or a file, and nothing it says takes longer than it may."""

import subprocess
import sys
import time

import pytest

from likewise.claims import ClaimSource, check_claims
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unparsed
from tests.claims.attacks import UNDECIDED, UNPARSED

# What the interpreter reports of opening, importing, compiling, starting and connecting.
WATCHED = """
import sys
from likewise.claims.engines import decide
from likewise.claims.language.parser import parse
from likewise.claims.language.tokens import Unparsed
from tests.claims.attacks import UNDECIDED, UNPARSED

TELLING = ("open", "exec", "compile", "import", "os.", "subprocess.", "socket.", "ctypes.", "shutil.", "object.")
seen = []

def telling(event, arguments):
    handle = event == "ctypes.cdata/buffer" and arguments[1] == 8  # z3 copies a handle of its own
    return event.startswith(TELLING) and not handle

def attempt(text):
    try:
        decide(parse(text + "\\nbudget: 0.3s" if "budget" not in text else text))
    except Unparsed:
        pass
    except Exception as error:
        print("raised", type(error).__name__, error)

TEXTS = [text for text in UNPARSED + UNDECIDED if "of:" not in text and "run(" not in text and "cost(" not in text]
TEXTS = [text for text in TEXTS if len(text) < 300]
for text in TEXTS:  # what engines load when they are first asked is loaded
    attempt(text)
sys.addaudithook(lambda event, arguments: seen.append((event, arguments)) if telling(event, arguments) else None)
for text in TEXTS:
    attempt(text)
print(len(TEXTS), "texts;", [(event, str(arguments)[:80]) for event, arguments in seen])
"""


@pytest.mark.parametrize("text", UNPARSED, ids=range(len(UNPARSED)))
def test_what_is_no_claim_is_never_read_as_one(text: str) -> None:
    with pytest.raises(Unparsed):
        parse(text)


def test_no_attack_gets_a_verdict_or_more_than_its_time() -> None:
    stated = [ClaimSource(f"attack-{place}", text) for place, text in enumerate(UNPARSED + UNDECIDED)]
    started = time.monotonic()
    verdicts = check_claims(stated, budget=1.0)
    assert [str(verdict) for verdict in verdicts if verdict.verdict not in ("inconclusive", "malformed")] == []
    assert [verdict.detail for verdict in verdicts if "internal error" in verdict.detail] == []
    assert all(verdict.detail for verdict in verdicts)
    assert time.monotonic() - started < 3.0 * len(UNDECIDED)


@pytest.mark.full
def test_engines_open_import_and_compile_nothing_for_a_text() -> None:
    done = subprocess.run([sys.executable, "-c", WATCHED], capture_output=True, text=True, timeout=300, check=True)
    assert done.stdout.strip().endswith("texts; []"), done.stdout
    assert int(done.stdout.split()[0]) > 30
