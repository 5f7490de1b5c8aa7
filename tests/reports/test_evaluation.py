"""The pictures of an evaluation show its numbers, and a page escapes what others wrote."""

import base64
import io
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import numpy
import pytest
import torch
from PIL import Image

from likewise.data.examples import Stored, examples
from likewise.evaluation import Table, evaluate
from likewise.evaluation.results import Histogram, Worst
from likewise.evaluation.sweeps import Row
from likewise.metric.rates import Roc
from likewise.reports.evaluation import evaluation_page, histogram_figure, roc_figure, small_picture
from tests.evaluation.faces import PREPARATION, Looking, drawn_people

pytestmark = pytest.mark.filterwarnings("ignore::likewise.metric.FewImpostorsWarning")


def points(svg: str, look: str) -> list[tuple[float, float]]:
    [wide, _narrow] = ElementTree.fromstring(svg)
    [group] = [g for g in wide.iter("g") if g.get("class") == look]
    [line] = group.iter("polyline")
    return [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.get("points", "").split())]


def test_the_curve_stands_on_a_logarithmic_axis() -> None:
    far = torch.tensor([0.0, 1e-3, 1e-2, 1e-1, 1.0], dtype=torch.float64)
    val = torch.tensor([0.1, 0.2, 0.5, 0.9, 1.0], dtype=torch.float64)
    svg = roc_figure(Roc(torch.arange(5.0), far, val), far=0.02, pairs=1000)
    line = points(svg, "curve")
    steps = [b[0] - a[0] for a, b in pairwise(line[1:])]
    assert steps == pytest.approx([steps[0]] * 3, abs=0.2)
    heights = [y for _, y in line[1:]]
    assert (heights[0] - heights[1]) / (heights[1] - heights[2]) == pytest.approx(0.3 / 0.4, abs=0.01)
    assert "50.0% at FAR 0.020" in svg


def test_a_histogram_is_of_shares_and_ends_with_the_last_pair() -> None:
    counts = torch.tensor([[3, 1, 0, 0, 0, 0, 0, 0], [0, 0, 5, 5, 0, 0, 0, 0]])
    shape = Histogram(torch.arange(1.0, 9) / 2, *counts)
    svg = histogram_figure(shape, threshold=0.6)
    same, different = points(svg, "same"), points(svg, "different")
    base = same[0][1]
    assert (base - same[1][1]) / (base - same[3][1]) == pytest.approx(3, abs=0.05)
    assert (base - different[-2][1]) / (base - same[1][1]) == pytest.approx(0.5 / 0.75, abs=0.02)
    assert different[-1][0] == pytest.approx(720 - 14, abs=0.5)  # at the right end: 2.0
    assert "threshold 0.600" in svg


@pytest.mark.parametrize("channels", [1, 3])
def test_a_small_picture_is_a_jpeg_of_the_image(channels: int) -> None:
    pixels = numpy.zeros((20, 40, channels), numpy.uint8)
    pixels[:, 20:] = 255
    head, data = small_picture(pixels).split(",")
    assert head == "data:image/jpeg;base64"
    picture = numpy.asarray(Image.open(io.BytesIO(base64.b64decode(data))).convert("L"))
    assert picture.shape == (56, 112)
    assert picture[28, 10] < 20
    assert picture[28, 100] > 235


def test_names_of_others_are_escaped_and_missing_images_are_borne() -> None:
    some = drawn_people(8, 4)
    found = evaluate(Looking(), PREPARATION, some, far=0.2, worst=1)
    names = ["<script>a", "b"]
    both = examples("x", Stored(numpy.zeros((2, 4, 4, 1), numpy.uint8)), names, ["a", "b"])
    found = replace(found, worst_same=(Worst(names[0], "b", 1.25),), worst_different=())
    table = Table("T", "text", "all", 0.1, (Row("g", 1234, 0.5, 0.01, 1.0, 0.75, 0.02, note="<b>"),))
    page = evaluation_page(found, both, title="<i>", tables=[table], about=[("network", "<u>")])
    for text in ("<script>", "<b>&", "<u>", "<i>:"):
        assert text not in page
    assert "&lt;script&gt;a" in page
    assert "1.25" in page
    assert "1,234" in page
    assert "50.0% ± 1.0" in page
    assert "threshold kept" not in page


def test_a_page_of_tables_alone() -> None:
    row = Row("pixels", 9, float("nan"), float("nan"), float("nan"), float("nan"), float("nan"), note="failed: no")
    page = evaluation_page(None, None, title="t", tables=[Table("Five", "text", "all", 0.1, (row,), finished=False)])
    assert "Stopped before the end" in page
    assert "failed: no" in page
    assert "Worst pairs" not in page


def test_few_pairs_get_wide_bins() -> None:
    counts = torch.zeros(2, 128, dtype=torch.int64)
    counts[:, ::4] = 2
    svg = histogram_figure(Histogram(torch.arange(1.0, 129) / 32, *counts), threshold=9.0)
    assert len(points(svg, "same")) == 2 * 16 + 2  # 64 pairs of each kind
    assert "threshold" not in svg
