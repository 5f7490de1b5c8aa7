"""A room imports only rooms above it, and files import each other in no circle."""

import pytest

from tests.house import guards

SOURCES = {guards.module_name(path): path.read_text() for path in guards.sources()}


def test_imports_go_one_way() -> None:
    assert [found for module, text in SOURCES.items() for found in guards.wrong_way_imports(module, text)] == []


def test_imports_form_no_circle() -> None:
    assert guards.import_cycle(guards.import_graph(SOURCES)) == []


def test_a_file_with_one_user_says_why() -> None:
    assert guards.unexplained_files(SOURCES) == []


@pytest.mark.parametrize(
    ("module", "text"),
    [
        ("likewise.similarity", "from likewise.attention import linear_attention"),
        ("likewise.similarity", "def late():\n    import likewise.attention.linear"),
        ("likewise.attention.linear", "from .kernels import Exponential"),
        ("likewise.attention.linear", "from likewise import reports"),
        ("likewise.attention.linear", "from likewise.utils import pad"),
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
        ("likewise.cli", "import likewise\nfrom likewise import __version__\nfrom likewise.reports import exits_page"),
    ],
)
def test_a_right_way_import_is_left_alone(module: str, text: str) -> None:
    assert guards.wrong_way_imports(module, text) == []


ROOM = "from likewise.room.first import f\nfrom likewise.room.last import g"


@pytest.mark.parametrize(
    ("first", "last", "circle"),
    [
        ("def late():\n    from likewise.room import last", "import likewise.room.first", {"first", "last"}),
        ("from likewise.room import g", "", {"first"}),  # the name comes out of the room's __init__
        ("from likewise.room.first import f", "", {"first"}),
        ("", "from likewise.room.first import f", set()),
    ],
)
def test_a_circle_is_found(first: str, last: str, circle: set[str]) -> None:
    graph = guards.import_graph({"likewise.room": ROOM, "likewise.room.first": first, "likewise.room.last": last})
    files = {name.removeprefix("likewise.room").removeprefix(".") for name in guards.import_cycle(graph)}
    assert files - {""} == circle


def test_a_file_without_a_reason_is_found() -> None:
    many = {f"likewise.room.{user}": "from likewise.room.shared import f" for user in "ab"}
    texts = {"likewise.room.shared": "", "likewise.room.alone": "", "likewise.room.apart": '"""Why."""', **many}
    texts["likewise.cli"] = "import likewise.room.alone, likewise.room.apart, likewise.room.a, likewise.room.b"
    assert [found.partition(" ")[0] for found in guards.unexplained_files(texts)] == [
        "likewise.room.alone",
        "likewise.room.a",
        "likewise.room.b",
    ]
    assert "one user, likewise.cli" in guards.unexplained_files(texts)[0]
