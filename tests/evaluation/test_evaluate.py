"""An evaluation is made of distances that can be counted by hand, and each image is embedded once."""

import json
import math
import os
import warnings
from dataclasses import asdict
from itertools import combinations
from pathlib import Path

import pytest
import torch

from likewise.data import Examples, Preparation, folders, lfw
from likewise.data.lfw import Pair, lfw_protocol
from likewise.data.pair_lists import PairList, read_pairs
from likewise.evaluation import evaluate, judge
from likewise.evaluation.protocols import Everyone, Listed, lfw_pairs, own_pairs
from likewise.metric import FewImpostorsWarning, quantised
from likewise.metric.clusters import cluster, cluster_scores
from likewise.metric.rates import Roc
from likewise.metric.templates import template_distances
from likewise.networks import build_network
from likewise.similarity import squared_distances
from tests.data.drawing import people
from tests.evaluation.faces import PREPARATION, Looking, drawn_people, plain_vectors

pytestmark = pytest.mark.filterwarnings("ignore::likewise.metric.FewImpostorsWarning")


def brute(people: Examples, vectors: torch.Tensor) -> list[tuple[float, bool, str, str]]:
    """Every pair: distance, same, and the two items."""
    rows = combinations(range(len(people)), 2)
    return [
        (
            (vectors[i].double() - vectors[j].double()).square().sum().item(),
            bool(people.labels[i] == people.labels[j]),
            people.items[i],
            people.items[j],
        )
        for i, j in rows
    ]


def test_all_pairs_of_drawn_people() -> None:
    people, network = drawn_people(14, 4, noise=55.0), Looking()
    found = evaluate(network, PREPARATION, people, protocol=Everyone(3), far=0.05, worst=3, clusters=True)
    assert network.shown == len(people) == found.images
    assert found.identities == 14
    vectors = plain_vectors(people, network)
    assert found.rates == judge(vectors, people.labels, protocol=Everyone(3), far=0.05)
    pairs = brute(people, vectors)
    same, other = ([pair for pair in pairs if pair[1] == kind] for kind in (True, False))
    for worst, expected in (
        (found.worst_same, sorted(same, reverse=True)[:3]),
        (found.worst_different, sorted(other)[:3]),
    ):
        assert [(pair.first, pair.second) for pair in worst] == [pair[2:] for pair in expected]
        assert [pair.distance for pair in worst] == pytest.approx([pair[0] for pair in expected], rel=1e-5)
    assert int(found.histogram.same.sum()) == len(same) == found.rates.same
    assert int(found.histogram.different.sum()) == len(other) == found.rates.different
    accepted = sum(pair[0] <= found.rates.threshold for pair in other)
    assert found.independent.accepted == accepted <= 0.05 * len(other)
    assert found.independent.threshold == found.rates.threshold
    assert found.interval.threshold == found.rates.limit
    assert found.interval.far == sum(pair[0] <= found.rates.limit for pair in other) / len(other)
    assert found.interval.identities == 14
    wins = [(s[0] < o[0]) for s in same for o in other]
    assert found.roc.area == pytest.approx(sum(wins) / len(wins), abs=0.01)
    assert (found.roc.far.diff() >= 0).all()
    assert (found.roc.val.diff() >= 0).all()
    groups = cluster(squared_distances(vectors, vectors), threshold=found.rates.threshold)
    assert found.clusters == cluster_scores(groups, people.labels)


def test_templates_of_bytes_are_judged_like_vectors() -> None:
    people, network = drawn_people(10, 4, noise=70.0), Looking()
    drawn = Everyone(2).draw(people.labels)
    found = evaluate(network, PREPARATION, people, protocol=drawn, far=0.1)
    q = quantised(plain_vectors(people, network))
    d = template_distances(q[drawn.rows[:, 0]], q[drawn.rows[:, 1]])
    accepted = d[~drawn.same] <= found.templates.rates.threshold
    assert accepted.double().mean() <= 0.1
    assert found.templates.bytes == 16
    assert found.templates.loss == pytest.approx(found.rates.val - found.templates.rates.val)
    assert found.templates.rates.threshold != found.rates.threshold
    assert found.templates.rates.accuracy == pytest.approx(found.rates.accuracy, abs=0.05)


def test_what_bytes_lose_is_val_before_less_val_after() -> None:
    people, network = drawn_people(40, 6, noise=70.0), Looking()
    found = evaluate(network, PREPARATION, people, protocol=Everyone(1), far=0.02)
    small = quantised(plain_vectors(people, network)).double()
    after = judge(small / small.norm(dim=1, keepdim=True), people.labels, protocol=Everyone(1), far=0.02)
    assert found.templates.rates.val == after.val < found.rates.val
    assert found.templates.loss == pytest.approx(found.rates.val - after.val)


def test_a_list_embeds_only_its_images_and_once() -> None:
    people, network = drawn_people(12, 4, noise=55.0), Looking()
    drawn = Everyone(2).draw(people.take(range(24)).labels)
    found = evaluate(network, PREPARATION, people, protocol=drawn, far=0.1, worst=2)
    assert network.shown == found.images == len(drawn.rows.unique()) <= 24
    vectors = plain_vectors(people, network)
    assert found.rates == judge(vectors, people.labels, protocol=drawn, far=0.1)
    d = (vectors[drawn.rows[:, 0]] - vectors[drawn.rows[:, 1]]).square().sum(-1)
    worst = drawn.rows[drawn.same][d[drawn.same].argmax()].tolist()
    assert (found.worst_same[0].first, found.worst_same[0].second) == (people.items[worst[0]], people.items[worst[1]])
    assert found.worst_different[0].distance == pytest.approx(d[~drawn.same].min().item())
    assert int(found.histogram.same.sum()) == int(drawn.same.sum())


def test_one_fold_shows_only_its_own_pairs() -> None:
    people, network = drawn_people(12, 4, noise=55.0), Looking()
    drawn = Everyone(3).draw(people.labels)
    alone = Listed("one", drawn.rows, drawn.same, drawn.folds, 1)
    found = evaluate(network, PREPARATION, people, protocol=alone, far=0.1, worst=1000)
    mine = alone.judged
    shown = {(pair.first, pair.second) for pair in (*found.worst_same, *found.worst_different)}
    assert shown == {(people.items[i], people.items[j]) for i, j in drawn.rows[mine].tolist()}
    assert found.independent.impostors == int((~mine & ~drawn.same).sum())
    assert found.independent.threshold == found.rates.threshold
    assert int(found.histogram.different.sum()) == int((mine & ~drawn.same).sum())
    assert math.isnan(found.rates.val_error)


def test_mirror_images_are_averaged() -> None:
    people, network = drawn_people(8, 4, noise=55.0), Looking()
    found = evaluate(network, PREPARATION, people, mirror=True, far=0.2)
    assert found.mirror
    assert network.shown == 2 * len(people)
    with torch.no_grad():
        images = torch.stack([PREPARATION(people.read(row)) for row in range(len(people))])
        vectors = torch.nn.functional.normalize(network(images) + network(images.flip(-1)))
    assert found.rates.threshold == pytest.approx(judge(vectors, people.labels, protocol=Everyone(), far=0.2).threshold)


def test_unreadable_images_take_their_pairs_with_them(tmp_path: Path) -> None:
    root = people(tmp_path / "faces", {"Ann": 4, "Bo": 4, "Cy": 4})
    names = sorted(path.relative_to(root).as_posix() for path in root.rglob("*.jpg"))
    lines = [f"{a}\t{b}\t{int(a[:2] == b[:2])}\n" for a, b in combinations(names, 2)]
    (root / "pairs.txt").write_text("".join(lines))
    damaged = root / "Bo" / "Bo_0002.jpg"
    damaged.write_bytes(damaged.read_bytes()[:400])
    listed = read_pairs(root / "pairs.txt")
    network = build_network("resnet8", {"channels": 3, "embedding_dim": 5}).eval()
    found = evaluate(network, Preparation((9, 9)), listed.examples, protocol=own_pairs(listed, folds=3), far=0.1)
    assert found.left_out == 11
    assert [file.item for file in found.skipped] == ["Bo/Bo_0002.jpg"]
    assert found.rates.same + found.rates.different == 66 - 11
    whole = evaluate(network, Preparation((9, 9)), folders(root), far=0.1)
    assert whole.images == 11
    assert {file.item for file in whole.skipped} == {"Bo/Bo_0002.jpg", "pairs.txt"}


def test_what_was_found_can_be_written_down() -> None:
    people, parts = drawn_people(8, 4), []
    found = evaluate(
        Looking(), PREPARATION, people, far=0.2, progress=lambda done, doing: parts.append((done, doing)), worst=2
    )
    plain = json.loads(json.dumps(found.to_json(), allow_nan=False))
    assert plain["unit"] == "squared Euclidean distance"
    assert plain["rates"]["val"] == found.rates.val
    assert plain["worst_same"] == [asdict(pair) for pair in found.worst_same]
    assert plain["clusters"] is None
    assert [done for done, _ in parts] == sorted(done for done, _ in parts)
    assert parts[0][1] == "embedding images"
    assert parts[-1] == (0.9, "looking for the worst pairs")


def test_a_curve_by_fewer_points_keeps_its_ends_and_its_heights() -> None:
    far = torch.linspace(0, 1, 5001, dtype=torch.float64)
    roc = Roc(far * 4, far, far.sqrt())
    few = roc.thinned(50)
    assert 20 < len(few.far) <= 50
    assert (few.far[0], few.far[-1], few.val[-1]) == (0, 1, 1)
    assert torch.equal(few.val, few.far.sqrt())
    assert few.thinned(50) is few


def test_a_far_beyond_the_pairs_is_refused() -> None:
    people = drawn_people(6, 2)
    with pytest.raises(ValueError, match=r"^evaluate: far must be at least 3 / 60 different pairs; got 0.01\."):
        evaluate(Looking(), PREPARATION, people, protocol=Everyone(1), far=0.01)
    drawn = Everyone(1).draw(people.labels)
    with pytest.raises(ValueError, match=r"^evaluate: far must be at least 3 / 6 different pairs; got 0.01\."):
        evaluate(Looking(), PREPARATION, people, protocol=drawn, far=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(FewImpostorsWarning, match="60 different pairs are fewer than 30 / far, 300; see the"):
            evaluate(Looking(), PREPARATION, people, protocol=Everyone(1), far=0.1)
    with pytest.raises(ValueError, match=r"^evaluate: worst must be a whole number of at least 0; got -1\."):
        evaluate(Looking(), PREPARATION, people, worst=-1)
    with pytest.raises(ValueError, match=r"^evaluate: examples must not be empty; got 0\."):
        evaluate(Looking(), PREPARATION, people.take([]))


def test_warnings_are_part_of_the_result() -> None:
    people = drawn_people(6, 2)
    found = evaluate(Looking(), PREPARATION, people, protocol=Everyone(1), far=0.1, trained_on=[people.origin])
    seen, few = found.warnings
    assert seen == "These are the images that the network was trained on: the rates say nothing of other people."
    assert few == "evaluate: 60 different pairs are fewer than 30 / far, 300; see the interval."
    assert found.to_json()["warnings"] == [seen, few]
    halves = people.take(range(6)), people.take(range(6, 12))
    parts = [evaluate(Looking(), PREPARATION, half, far=0.3, trained_on=[halves[0].origin]) for half in halves]
    assert [seen in part.warnings for part in parts] == [True, False]
    part = evaluate(Looking(), PREPARATION, people, far=0.1, trained_on=[halves[0].origin])
    assert part.warnings[0].startswith("The network was trained on 6 of these 12 images: the rates are too good")
    assert evaluate(Looking(), PREPARATION, drawn_people(40, 3), protocol=Everyone(1), far=0.1).warnings == ()


def test_too_many_images_to_cluster_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    from likewise.evaluation import evaluating

    monkeypatch.setattr(evaluating, "MOST_CLUSTERED", 10)
    with pytest.raises(ValueError, match=r"^evaluate: images must be at most 10 for clusters; got 32\."):
        evaluate(Looking(), PREPARATION, drawn_people(8, 4), far=0.2, clusters=True)


def test_no_pair_that_can_be_read_is_refused(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.jpg").write_bytes(b"no picture")
    (tmp_path / "pairs.txt").write_text("a.jpg\tb.jpg\t1\n")
    listed: PairList = read_pairs(tmp_path / "pairs.txt")
    assert listed.pairs == (Pair("a.jpg", "b.jpg", True),)
    with pytest.raises(ValueError, match=r"^evaluate: pairs must have images that can be read; got none\."):
        evaluate(Looking(), PREPARATION, listed.examples, protocol=own_pairs(listed, folds=1), far=0.1)


@pytest.mark.full
@pytest.mark.skipif("LIKEWISE_LFW" not in os.environ, reason="LIKEWISE_LFW is not set")
def test_lfw_by_its_pixels() -> None:
    """Eigenfaces have 60 %; pixels of 12 x 12 through a random matrix are no better, and not at chance either."""
    path = os.environ["LIKEWISE_LFW"]
    people, protocol = lfw(path), lfw_protocol(path)
    found = evaluate(Looking(64), PREPARATION, people, protocol=lfw_pairs(people, protocol))
    assert (found.rates.same, found.rates.different, len(found.rates.folds)) == (3000, 3000, 10)
    assert 0.55 < found.rates.accuracy < 0.7
    assert 0.003 < found.rates.accuracy_error < 0.02
    assert found.images == 7701
    assert found.rates.far == 1e-3
