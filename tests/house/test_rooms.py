"""A room imports only rooms above it."""

from pathlib import Path

import pytest

from tests.house import guards


@pytest.mark.parametrize("path", guards.sources(), ids=guards.module_name)
def test_imports_go_one_way(path: Path) -> None:
    assert guards.wrong_way_imports(guards.module_name(path), path.read_text()) == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("likewise.similarity", "from likewise.attention import linear_attention"),
        ("likewise.similarity", "def late():\n    import likewise.attention.linear"),
        ("likewise.attention.kernels", "from likewise.attention.features import Elu"),
        ("likewise.attention.kernels", "from likewise.attention import features"),
        ("likewise.attention.linear", "from likewise.attention import Elu"),
        ("likewise.attention.linear", "from likewise.attention.linear import linear_attention"),
        ("likewise.attention.linear", "from .kernels import Exponential"),
        ("likewise.attention.linear", "from likewise import reports"),
        ("likewise.attention.linear", "from likewise.utils import pad"),
        ("likewise.attention.extra", "import torch"),
        ("likewise.utils", "import torch"),
        ("likewise.claims.registry", "def late():\n    from likewise.cost import cost"),
        ("likewise.claims.registry", "from likewise.similarity import nearest"),
        ("likewise", "from likewise.attention import Elu"),
    ],
)
def test_a_wrong_way_import_is_found(module: str, text: str) -> None:
    assert len(guards.wrong_way_imports(module, text)) == 1


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("likewise.attention.linear", "import torch\nfrom likewise.attention.kernels import Exponential"),
        ("likewise.attention.linear", "from likewise.checks import require"),
        ("likewise.attention", "from likewise.attention.heads import MultiHeadAttention"),
        ("likewise.cli", "import likewise\nfrom likewise import __version__\nfrom likewise.reports import compare"),
    ],
)
def test_a_right_way_import_is_left_alone(module: str, text: str) -> None:
    assert guards.wrong_way_imports(module, text) == []
