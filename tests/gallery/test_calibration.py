"""Thresholds: what they accept, what they promise, when they are refused."""

import math
from pathlib import Path

import numpy
import pytest
import torch

from likewise.gallery import Gallery
from likewise.gallery.calibration import IdentifyThreshold, identify_threshold, odds, verify_threshold
from tests.gallery.people import people

EVERYBODY = people(60, 4, spread=0.15)


def filled(folder: Path, *, codes: bool = False, names: slice = slice(0, 40)) -> Gallery:
    gallery = Gallery.open(folder / "a.db", codes=codes)
    kept = list(EVERYBODY)[names]
    listed = [name for name in kept for _ in range(4)]
    gallery.enrol(listed, numpy.concatenate([EVERYBODY[name] for name in kept]))
    return gallery


def impostors(rows: dict[str, numpy.ndarray]) -> numpy.ndarray:
    """Squared distances of all pairs of two people."""
    found = [
        ((a[:, None] - b) ** 2).sum(-1).ravel()
        for first, a in enumerate(rows.values())
        for b in list(rows.values())[first + 1 :]
    ]
    return numpy.concatenate(found).astype(numpy.float64)


@pytest.mark.parametrize("codes", [False, True])
def test_the_threshold_accepts_the_share_it_says(codes: bool, tmp_path: Path) -> None:
    with filled(tmp_path, codes=codes) as gallery:
        found = gallery.calibrate(EVERYBODY, far=0.01).verify
        assert found is not None
        assert gallery.calibration.verify == found
        share = (impostors(EVERYBODY) <= found.threshold).mean()
        assert share == pytest.approx(0.01, abs=2e-3 if codes else 2e-4)
        assert (found.pairs, found.people) == (60 * 59 // 2 * 16, 60)
        assert found.low < found.found <= 0.01 < found.high
        assert found.val is not None
        assert found.val_codes is not None
        assert abs(found.val - found.val_codes) < 0.02
        assert found.rate(found.threshold) == pytest.approx(0.01, rel=0.05)
        assert found.rate(-1.0) == 1 / found.pairs
    with Gallery.open(tmp_path / "a.db") as again:
        assert again.calibration.verify == found


def test_a_verdict_says_how_rare_a_false_accept_is(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        gallery.calibrate(EVERYBODY, far=0.01)
        same = gallery.verify("person 3", EVERYBODY["person 3"][0])
        other = gallery.verify("person 3", EVERYBODY["person 5"][0])
        assert (same.same, other.same) == (True, False)
        assert same.threshold is not None
        assert gallery.calibration.verify is not None
        assert same.threshold < gallery.calibration.verify.threshold  # four templates are four chances
        assert (same.unseen, other.unseen) == (True, False)  # nearer than any impostor: the rate is a bound
        assert same.odds.startswith("false accept at most about 1 in ")
        assert other.odds.startswith("false accept about 1 in ")
        assert other.rate is not None
        assert same.rate is not None
        assert same.rate < 0.01 < other.rate


def test_the_gallery_itself_and_listed_pairs_calibrate(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        own = gallery.calibrate(far=0.01).verify
        given = gallery.calibrate(dict(list(EVERYBODY.items())[:40]), far=0.01).verify
        assert own is not None
        assert given is not None
        assert own.threshold == pytest.approx(given.threshold, rel=1e-6)
        names = list(EVERYBODY)
        pairs = [(a, EVERYBODY[a][0], b, EVERYBODY[b][1]) for a in names[:30] for b in names[30:]]
        pairs += [(a, EVERYBODY[a][0], a, EVERYBODY[a][1]) for a in names]
        listed = gallery.calibrate(pairs, far=0.05).verify
        assert listed is not None
        assert (listed.pairs, listed.people) == (900, 60)
        assert listed.val is not None


def test_strangers_set_the_threshold_of_identification(tmp_path: Path) -> None:
    draw = numpy.random.default_rng(1)
    strangers = draw.normal(size=(1500, 13))
    with filled(tmp_path) as gallery:
        found = gallery.calibrate(strangers=strangers[:1000], fpir=0.05)
        assert found.verify is None
        assert found.identify is not None
        assert found.identify.templates == 160
        fresh = gallery.identify(strangers[1000:])
        share = sum(each.outcome == "known" for each in fresh) / len(fresh)
        assert 0.02 < share < 0.09
        [known] = gallery.identify(EVERYBODY["person 7"][1] + 0.01)
        assert (known.outcome, known.identity) == ("known", "person 7")
        assert any(each.outcome == "unknown" and each.identity is None for each in fresh)
        listed = [name for name in list(EVERYBODY)[40:] for _ in range(4)]
        gallery.enrol(listed, numpy.concatenate([EVERYBODY[name] for name in list(EVERYBODY)[40:]]))
        [grown] = gallery.identify(strangers[0])
        assert "is for 160 templates and 0.05 of strangers; with 240 it lets in about 0.074" in grown.warnings[-1]


def test_intervals_of_fresh_people_are_wider() -> None:
    rows = torch.from_numpy(numpy.concatenate(list(EVERYBODY.values())))
    labels = torch.arange(60).repeat_interleave(4)
    found = verify_threshold(rows, labels, codes=False, unit=True, far=0.01)
    low, high = found.interval(60)
    assert low < found.low < found.high < high
    assert math.log(high / found.found) == pytest.approx(math.sqrt(2) * math.log(found.high / found.found))


def test_expected_strangers_grow_with_the_gallery() -> None:
    found = IdentifyThreshold(0.01, 1.0, 0.01, 0.005, 0.02, 0.95, 3000, 1000)
    assert found.expected(1000) == pytest.approx(0.01)
    assert found.expected(2000) == pytest.approx(1 - 0.99**2)
    assert found.outgrown(1190) == ""
    assert "Calibrate again" in found.outgrown(1300)


@pytest.mark.parametrize(
    ("pairs", "message"),
    [
        ({"ann": numpy.eye(13), "bob": numpy.eye(13)}, r"far must be at least 3 / 169 different pairs; got 0.001"),
        ({"ann": numpy.eye(13)}, "pairs must be of two people at least; got 1"),
        ([("ann", numpy.ones(13), "bob")], r"pairs must be rows of \(name, image, name, image\)"),
        ([], r"pairs must be rows of \(name, image, name, image\)"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_what_cannot_be_shown_is_refused(pairs: object, message: str, tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        with pytest.raises(ValueError, match=message):
            gallery.calibrate(pairs)  # ty: ignore[invalid-argument-type]
        assert gallery.calibration.verify is None


def test_few_people_and_few_strangers_are_warned_of(tmp_path: Path) -> None:
    with filled(tmp_path) as gallery:
        found = gallery.calibrate(dict(list(EVERYBODY.items())[:10]), far=0.02, strangers=numpy.eye(13), fpir=0.3)
        assert any("10 people are too few for an interval by people" in text for text in found.warnings)
        assert any("13 strangers are fewer than 30 / FPIR, 100" in text for text in found.warnings)
    with Gallery.open(tmp_path / "b.db") as gallery, pytest.raises(ValueError, match="gallery must hold identities"):
        gallery.calibrate()


def test_odds_and_order_statistics() -> None:
    assert odds(0.004) == "false accept about 1 in 250"
    found = identify_threshold(torch.arange(1.0, 3001.0), templates=10, fpir=0.01)
    assert (found.found, found.strangers) == (0.01, 3000)
    assert found.threshold == pytest.approx(31.0)
    assert found.rate(31.5) == pytest.approx(31 / 3000, rel=0.05)
