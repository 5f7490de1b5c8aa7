"""The diagnosis as a file's reading, as JSON and as a picture."""

import json
import math
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest
import torch
from safetensors.torch import save_file

from likewise.attention import Elu, Positive, diagnose
from likewise.attention.diagnose import Diagnosis, read_tensors
from likewise.reports.diagnosis import SHADES, diagnosis_picture
from tests.attention.drawing import Sizes, draw, seeded

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def found() -> Diagnosis:
    maps = {"a < b": Positive(5, num_features=7, generator=seeded(0)), "elu": Elu()}
    return diagnose(*draw(Sizes(T=11, S=11), seeded(3), size=0.3), maps, exact_within=11, wanted_error=0.02)


def test_tensors_without_a_batch_are_one_entry_of_it(tmp_path: Path) -> None:
    q, k, v = draw(Sizes(B=1), seeded(3))
    mask = torch.rand(1, 11, generator=seeded(0)) > 0.5
    whole = {"q": q, "k": k, "v": v, "mask": mask}
    save_file(whole, tmp_path / "whole")
    save_file({name: x[0].contiguous() for name, x in whole.items()}, tmp_path / "single")
    for name in ("whole", "single"):
        read = read_tensors(tmp_path / name)
        assert read.keys() == whole.keys()
        assert all(torch.equal(read[key], whole[key]) for key in whole)


def test_json_holds_every_number_and_nothing_infinite(found: Diagnosis) -> None:
    told = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert told["wanted_error"] == 0.02
    assert told["softmax_macs"] == found.softmax_macs
    assert "maps" not in told
    for head, heard in zip(found.heads, told["heads"], strict=True):
        assert heard["advice"]["text"] == head.advice.text
        assert heard["mean_of_values_error"] == head.mean_of_values_error
        for m, n in zip(head.measurements, heard["measurements"], strict=True):
            assert n["squared_error"] == m.squared_error
            assert n["log10_variance"] == (None if m.log10_variance == -math.inf else m.log10_variance)


def cells(found: Diagnosis) -> dict[str, ElementTree.Element]:
    """The cells of a picture by what they say when pointed at."""
    drawn = ElementTree.fromstring(diagnosis_picture(found))
    titled = ((rect.findtext(f"{SVG}title"), rect) for rect in drawn.iter(f"{SVG}rect"))
    return {title: rect for title, rect in titled if title}


def test_the_picture_has_a_cell_for_every_error(found: Diagnosis) -> None:
    drawn = cells(found)
    assert len(drawn) == 6 * (2 + 3)
    for head in found.heads:
        errors = {m.label: m.squared_error for m in head.measurements}
        for name, error in {"mean of V": head.mean_of_values_error, "Taylor-2": head.taylor_error, **errors}.items():
            cell = drawn[f"head {head.head}, {name}: {error:.3g}"]
            [colour] = [
                colour
                for low, (high, _, colour, _) in zip((-1, *(shade[0] for shade in SHADES)), SHADES, strict=False)
                if low * 0.02 < error <= high * 0.02
            ]
            assert cell.get("fill") == colour


def test_the_advised_cell_has_a_frame(found: Diagnosis) -> None:
    drawn, places = ElementTree.fromstring(diagnosis_picture(found)), cells(found)
    frames = [(rect.get("x"), rect.get("y")) for rect in drawn.iter(f"{SVG}rect") if rect.get("stroke")]
    advised = [head for head in found.heads if head.advice.map is not None]
    assert len(advised) > 0
    assert len(frames) == len(advised) + 1  # and that of the legend
    for head, frame in zip(advised, frames, strict=False):
        cell = places[f"head {head.head}, {head.shown.label}: {head.shown.squared_error:.3g}"]
        assert frame == (cell.get("x"), cell.get("y"))


def test_an_infinite_error_is_drawn_as_the_worst(found: Diagnosis) -> None:
    head = found.heads[0]
    broken = replace(head.measurements[0], squared_error=math.inf)
    one = replace(found, heads=(replace(head, measurements=(broken, *head.measurements[1:])),))
    assert cells(one)[f"head 0, {broken.label}: inf"].get("fill") == SHADES[-1][2]
    assert one.to_json()["heads"][0]["measurements"][0]["squared_error"] is None
