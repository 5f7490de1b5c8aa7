"""What holds in every test: shapes are checked and uninitialised memory is NaN. Nothing is seeded: pass generators.

torch.compile cannot trace the shape checks, and they speak before our own messages do. A test of either asks for them
to be off: `pytestmark = pytest.mark.usefixtures("without_shape_checks")`.
"""

import os

import hypothesis
import jaxtyping
import pytest
import torch

import tests.shapes

# Before the first import of likewise: signatures become checks, here and only here. The other rooms have no shapes.
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
    "reports",
)
jaxtyping.install_import_hook([f"likewise.{room}" for room in ROOMS_WITH_TENSORS], "tests.shapes.check")

# torch.empty and its kin give NaN (the largest value for integers), so that output nobody wrote cannot pass for right.
torch.use_deterministic_algorithms(True)

hypothesis.settings.register_profile("here", deadline=None)
hypothesis.settings.register_profile("ci", deadline=None, derandomize=True)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "here")

# Workers share the machine's cores; more threads than cores are slower than one each.
if "PYTEST_XDIST_WORKER" in os.environ:
    torch.set_num_threads(1)


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
