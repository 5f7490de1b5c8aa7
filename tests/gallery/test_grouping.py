"""Clusters of a gallery: the incremental form is the batch, corrections hold for ever, scores against the truth."""

import os
from pathlib import Path

import numpy
import pytest
import torch

from likewise.gallery import Embedder, Gallery, Limits
from likewise.gallery import grouping as grouping_module
from likewise.gallery.grouping import Grouping
from likewise.gallery.store import Correction
from likewise.metric import cluster, cluster_scores
from likewise.similarity import squared_distances
from tests.gallery.engines import new_postgres
from tests.gallery.people import people

THRESHOLD = 0.6


def parts(found: Grouping) -> set[frozenset[int]]:
    """The groups as sets of template numbers."""
    return {frozenset(each.template for each in group.members) for group in found.groups}


def batch(gallery: Gallery, threshold: float = THRESHOLD) -> set[frozenset[int]]:
    """Everything clustered at once, with all corrections."""
    vectors, _, numbers = (
        numpy.concatenate(each)
        for each in zip(*(part for model in gallery.store.models() for part in gallery.store.rows(model)), strict=True)
    )
    place = {number: row for row, number in enumerate(numbers.tolist())}
    pairs = {
        same: [(place[each.one], place[each.two]) for each in gallery.store.corrections() if each.same is same]
        for same in (True, False)
    }
    table = squared_distances(torch.from_numpy(vectors), torch.from_numpy(vectors))
    labels = cluster(table, threshold=threshold, same=pairs[True], different=pairs[False])
    return {frozenset(numbers[labels == label].tolist()) for label in labels.unique().tolist()}


@pytest.mark.parametrize("engine", ["sqlite", pytest.param("postgres", marks=pytest.mark.full)])
def test_enrolment_one_by_one_gives_the_clusters_of_the_batch(engine: str, tmp_path: Path) -> None:
    url = tmp_path / "a.db" if engine == "sqlite" else new_postgres()
    draw = numpy.random.default_rng(5)
    rows = numpy.concatenate(list(people(11, 4, spread=0.2).values()))[draw.permutation(44)]
    with Gallery.open(url, model="v1") as gallery:
        for start in range(0, len(rows), 11):
            gallery.enrol(None, rows[start : start + 11])
            found = gallery.cluster(threshold=THRESHOLD)
            assert parts(found) == batch(gallery)
            assert found.exact
            numbers = [each.template for group in found.groups for each in group.members]
            one, two = draw.choice(numbers, 2, replace=False).tolist()
            try:
                gallery.correct(one, two, same=bool(draw.random() < 0.5))
            except ValueError:
                continue
            assert parts(gallery.cluster(threshold=THRESHOLD)) == batch(gallery)
        assert len(gallery.store.corrections()) > 3
    with Gallery.open(url, model="v1") as again:  # for ever
        assert parts(again.cluster(threshold=THRESHOLD)) == batch(again)


def test_a_person_merges_splits_and_names(tmp_path: Path) -> None:
    rows = people(3, 4, spread=0.05)
    with Gallery.open(tmp_path / "a.db", model="v1") as gallery:
        gallery.enrol(None, numpy.concatenate(list(rows.values())))
        one, two, three = ([each.template for each in g.members] for g in gallery.cluster(threshold=THRESHOLD).groups)
        gallery.merge([*one, *two])
        assert frozenset(one + two) in parts(gallery.cluster(threshold=THRESHOLD))
        gallery.split(three[:1])
        after = parts(gallery.cluster(threshold=THRESHOLD))
        assert {frozenset(three[:1]), frozenset(three[1:])} <= after
        with pytest.raises(ValueError, match="must be different only if they are not the same"):
            gallery.split(two)
        assert parts(gallery.cluster(threshold=THRESHOLD)) == after == batch(gallery)
        gallery.assign(one + two, "ann")
        groups = gallery.cluster(threshold=THRESHOLD).groups
        assert groups[0].identities == ("ann",)
        assert len(gallery) == 1 + len(three)
        assert gallery.identify(rows["person 1"][0])[0].candidates[0].identity == "ann"
        with pytest.raises(ValueError, match=r"templates must be in the gallery; got \[1000000\]"):
            gallery.assign([10**6], "bob")
        with pytest.raises(ValueError, match="templates must leave some in the group; got all of it"):
            gallery.split(three[1:])
        with pytest.raises(ValueError, match="template must be in the gallery; got 1000000"):
            gallery.correct(one[0], 10**6, same=True)


def test_what_others_write_is_followed_and_what_is_forgotten_leaves_memory(tmp_path: Path) -> None:
    rows = people(5, 3, spread=0.05)
    with Gallery.open(tmp_path / "a.db", model="v1") as one, Gallery.open(tmp_path / "a.db", model="v1") as two:
        for name in list(rows)[:4]:
            one.enrol(name, rows[name])
        first = one.cluster(threshold=THRESHOLD)
        assert first.scores().bcubed_f == 1
        two.enrol("person 4", rows["person 4"])
        numbers = {g.identities[0]: [m.template for m in g.members] for g in two.cluster(threshold=THRESHOLD).groups}
        two.correct(numbers["person 0"][0], numbers["person 4"][0], same=True)
        assert parts(one.cluster(threshold=THRESHOLD)) == batch(one)
        two.forget("person 0")
        found = one.cluster(threshold=THRESHOLD)
        assert parts(found) == batch(one)
        assert found.templates == 12
        assert one._grouped is not None
        forgotten = torch.from_numpy(rows["person 0"]).double()
        assert not (squared_distances(forgotten, one._grouped.clusters.vectors) < 1e-9).any()


def test_bounds_are_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grouping_module, "LARGEST", 20)
    with Gallery.open(tmp_path / "a.db", model="v1", limits=Limits(clustered=50)) as gallery:
        with pytest.raises(ValueError, match="cluster: gallery must hold templates; got none"):
            gallery.cluster(threshold=1.0)
        gallery.enrol(None, people(1, 30)["person 0"])
        found = gallery.cluster(threshold=THRESHOLD)
        assert not found.exact
        assert "More than 20 templates are connected" in found.warnings[0]
        settled = gallery.cluster(threshold=THRESHOLD, settle=True)
        assert settled.exact
        assert parts(settled) == batch(gallery)
        with pytest.raises(ValueError, match="threshold must be given where none is calibrated; got None"):
            gallery.cluster()
        gallery.enrol(None, people(1, 30)["person 0"])
        with pytest.raises(ValueError, match="gallery must hold at most 50 templates; got 60"):
            gallery.cluster(threshold=THRESHOLD)


@pytest.mark.parametrize("compatible", [True, False])
def test_corrections_outlive_enrolling_anew(compatible: bool, tmp_path: Path) -> None:
    rows = people(6, 2, spread=0.05)
    with Gallery.open(tmp_path / "a.db", model="v1") as gallery:
        for name, vectors in rows.items():
            gallery.enrol(name, vectors)
        before = numbers(gallery)
        gallery.cluster(threshold=THRESHOLD)
        gallery.merge([before["person 0"][1], before["person 1"][0]])
        gallery.split([before["person 2"][0]])
        groups = named(gallery, gallery.cluster(threshold=THRESHOLD))
        said = len(gallery.store.corrections())
        newer = Embedder(None, "v2")
        if compatible:
            assert gallery.upgrade(newer, people(60, 4, seed=1), old=people(60, 4, seed=1), far=0.05).compatible
        gallery.reenrol(rows, embed=newer)
        after = numbers(gallery)
        assert {number for each in before.values() for number in each}.isdisjoint(
            number for each in after.values() for number in each
        )
        assert len(gallery.store.corrections()) == said == 2
        found = gallery.cluster(threshold=THRESHOLD)
        assert parts(found) == batch(gallery)
        assert named(gallery, found) == groups


def numbers(gallery: Gallery) -> dict[str, tuple[int, ...]]:
    """Numbers of the templates of each identity."""
    return {
        name: each.numbers
        for name in gallery.identities()
        for each in gallery.store.templates(gallery.store.number(name))
    }


def named(gallery: Gallery, found: Grouping) -> set[frozenset[tuple[str, int]]]:
    """The groups as sets of (identity, place of the template in it)."""
    places = {number: (name, place) for name, each in numbers(gallery).items() for place, number in enumerate(each)}
    return {frozenset(places[member.template] for member in group.members) for group in found.groups}


@pytest.mark.full
def test_real_descriptors_and_300_corrections(tmp_path: Path) -> None:
    """2,000 descriptors, threshold from other people: B-cubed F, and what a person's answers near it add."""
    path = os.environ.get("LIKEWISE_DESCRIPTORS")
    if not path:
        pytest.skip("LIKEWISE_DESCRIPTORS is not set: real descriptors are measured with it")
    with numpy.load(path) as found:
        vectors, names = found["vectors"].astype(numpy.float32), found["names"]
    labels = numpy.unique(names, return_inverse=True)[1]
    draw = numpy.random.default_rng(0)
    rank = draw.permutation(labels.max() + 1)[labels]  # people in a random order
    counts = numpy.bincount(rank).cumsum()
    mine = rank <= numpy.searchsorted(counts, 2000)
    others = ~mine & (rank <= numpy.searchsorted(counts, 3500))
    unit = torch.nn.functional.normalize(torch.from_numpy(vectors[others]), dim=1)
    table, truth = squared_distances(unit, unit), torch.from_numpy(labels[others])
    thresholds = [0.01 * step for step in range(8, 24, 2)]
    threshold = max(thresholds, key=lambda each: cluster_scores(cluster(table, threshold=each), truth).bcubed_f)
    with Gallery.open(tmp_path / "a.db", model="dlib") as gallery:
        gallery.enrol(names[mine].tolist(), vectors[mine])
        first = gallery.cluster(threshold=threshold)
        assert parts(first) == batch(gallery, threshold)
        rows, owners, numbers = (
            numpy.concatenate(each) for each in zip(*gallery.store.rows(gallery.store.models()[0]), strict=True)
        )
        distances = squared_distances(torch.from_numpy(rows), torch.from_numpy(rows)).numpy()
        one, two = numpy.triu_indices(len(rows), 1)
        asked = numpy.argsort(abs(distances[one, two] - threshold))[:300]
        pairs = zip(one[asked].tolist(), two[asked].tolist(), strict=True)
        gallery.store.correct(
            [Correction(int(numbers[a]), int(numbers[b]), bool(owners[a] == owners[b])) for a, b in pairs]
        )
        found = gallery.cluster(threshold=threshold)
        group = {each.template: number for number, g in enumerate(found.groups) for each in g.members}
        assert len(gallery.store.corrections()) == 300
        assert all((group[each.one] == group[each.two]) is each.same for each in gallery.store.corrections())
    before, after = first.scores().bcubed_f, found.scores().bcubed_f
    assert before >= 0.94
    assert after >= before + 0.005
