"""What holds in every test: shapes are checked and uninitialised memory is NaN. Nothing is seeded: pass generators.

torch.compile cannot trace the shape checks, and they speak before our own messages do. A test of either asks for them
to be off: `pytestmark = pytest.mark.usefixtures("without_shape_checks")`. A quick run (`--quick`) has no shape checks
and tries fewer examples of a property; the full one (`--full`) tries more.
"""

import gc
import os

import hypothesis
import jaxtyping
import pytest
import torch

import tests.shapes

# The other rooms have no shapes.
ROOMS_WITH_TENSORS = (
    "data",
    "similarity",
    "attention",
    "networks",
    "metric",
    "training",
    "evaluation",
    "gallery",
    "difficulty",
    "exits",
    "tour",
)

# torch.empty and its kin give NaN (the largest value for integers), so that output nobody wrote cannot pass for right.
# torch.use_deterministic_algorithms does the same, but imports the compiler, which takes longer than torch.
torch.set_deterministic_debug_mode("error")

# Examples of a property, where a test does not say how many.
EXAMPLES = {"quick": 10, "usual": 20, "full": 60}
for name, count in EXAMPLES.items():
    hypothesis.settings.register_profile(name, deadline=None, max_examples=count, derandomize="CI" in os.environ)

# Workers share the machine's cores; more threads than cores are slower than one each.
if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--quick", action="store_true", help="no shape checks, fewer examples of each property")
    parser.addoption("--full", action="store_true", help="more examples of each property")


def pytest_configure(config: pytest.Config) -> None:
    """Before the first import of a room with tensors: signatures become checks, here and only here."""
    quick = config.getoption("quick")
    if not quick:
        jaxtyping.install_import_hook([f"likewise.{room}" for room in ROOMS_WITH_TENSORS], "tests.shapes.check")
    full = config.getoption("full")
    hypothesis.settings.load_profile("quick" if quick else "full" if full else "usual")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """A full run leaves out properties that fix how many examples they try: they would only be run twice."""
    if config.getoption("full"):
        repeated = [
            item for item in items if not item.get_closest_marker("full") and _examples(item) != EXAMPLES["full"]
        ]
        config.hook.pytest_deselected(items=repeated)
        left_out = set(repeated)
        items[:] = [item for item in items if item not in left_out]


def _examples(item: pytest.Item) -> int:
    own = getattr(getattr(item, "obj", None), "_hypothesis_internal_use_settings", None)
    return (own or hypothesis.settings()).max_examples


def pytest_collection_finish() -> None:
    """Modules and collected tests live until the end, so the garbage collector need not look at them again."""
    gc.freeze()


@pytest.fixture(autouse=True)
def memory_is_poisoned() -> None:
    """A test that switched the poison off and forgot it would silence every later one."""
    assert torch.empty(1).isnan().all()


@pytest.fixture
def without_shape_checks(monkeypatch: pytest.MonkeyPatch) -> None:
    """The functions as users have them: wrong shapes meet our own messages, torch.compile meets nothing but our code.

    The switch alone is not enough for torch.compile, which can not trace the checks of a class made inside traced code.
    """
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    for owner, name, plain in tests.shapes.checked_functions():
        monkeypatch.setattr(owner, name, plain)
    torch.compiler.reset()
