"""An old version is a network or no more than its vectors; what is compared was not trained on."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy
import pytest
import torch

from likewise.data import digits
from likewise.metric import Versions, compare_versions
from likewise.networks import Saved, load_network
from likewise.training import (
    FitResult,
    Harmonic,
    TrainingPlan,
    compare_fitted,
    embed_examples,
    fit,
    harmony,
    open_older,
    unseen,
)
from likewise.training.upgrading import StoredVectors, old_vectors, old_width

pytestmark = pytest.mark.filterwarnings("ignore::likewise.metric.FewImpostorsWarning")
WHOLE = digits().take(range(300))
SEEN, HELD = WHOLE.of("0123456"), WHOLE.of("789")
PLAN = TrainingPlan(network="resnet8", embedding_dim=6, steps=1, identities=5, faces=3, random=2)


@pytest.fixture(scope="module")
def fitted(tmp_path_factory: pytest.TempPathFactory) -> list[FitResult]:
    folder = tmp_path_factory.mktemp("fitted")
    return [fit(SEEN, replace(PLAN, seed=seed), folder / f"{seed}.safetensors") for seed in range(3)]


@pytest.fixture(scope="module")
def old(fitted: list[FitResult], tmp_path_factory: pytest.TempPathFactory) -> Saved:
    path = tmp_path_factory.mktemp("old") / "v1.safetensors"
    fit(SEEN, replace(PLAN, seed=9), path)
    return load_network(path)


def stored(old: Saved, path: Path, *, items: bool) -> Path:
    """The vectors of both sets, in an order of their own."""
    found = embed_examples(old.network, old.preparation, WHOLE)
    order = torch.randperm(len(WHOLE), generator=torch.Generator().manual_seed(1))
    names = numpy.array([WHOLE.identities[WHOLE.labels[row]] for row in order])
    if items:
        numpy.savez(path, vectors=found.vectors[order].numpy(), names=names, items=numpy.array(WHOLE.items)[order])
    else:
        numpy.savez(path, vectors=found.vectors[order].numpy(), names=names)
    return path


def same(a: Versions, b: Versions) -> bool:
    rows = ("new", "mixed", "old", "control", "control_mixed")
    return all(getattr(a, row).val == getattr(b, row).val for row in rows)


@pytest.mark.slow
def test_networks_are_compared_by_their_vectors_of_the_same_images(fitted: list[FitResult], old: Saved) -> None:
    new, control, _ = fitted
    parts: list[float] = []
    found = compare_fitted(new, old, HELD, control=control, far=0.05, progress=lambda done, _: parts.append(done))
    vectors = [embed_examples(each.network, each.preparation, HELD).vectors for each in (new, old, control)]
    assert same(found, compare_versions(vectors[0], vectors[1], HELD.labels, vectors[2], far=0.05))
    assert parts == sorted(parts)
    assert parts[-1] == 1.0
    assert compare_fitted(new, old, HELD, far=0.05).control is None


@pytest.mark.slow
def test_stored_vectors_with_their_images_compare_as_the_network_does(
    fitted: list[FitResult], old: Saved, tmp_path: Path
) -> None:
    new, control, _ = fitted
    by_image = open_older(stored(old, tmp_path / "v1.npz", items=True))
    expected = compare_fitted(new, old, HELD, control=control, far=0.05)
    assert same(compare_fitted(new, by_image, HELD, control=control, far=0.05), expected)
    by_name = open_older(stored(old, tmp_path / "names.npz", items=False))
    found = compare_fitted(new, by_name, HELD, control=control, far=0.05)
    assert found.new.val == expected.new.val
    assert found.pairs != expected.pairs  # a row of each, so all of them


def test_only_images_that_every_version_has_are_compared(fitted: list[FitResult], old: Saved) -> None:
    found = embed_examples(old.network, old.preparation, HELD)
    names = tuple(HELD.identities[label] for label in HELD.labels.tolist())
    kept = list(range(0, len(HELD), 2))
    part = StoredVectors(found.vectors[kept], tuple(names[k] for k in kept), tuple(HELD.items[k] for k in kept))
    expected = compare_fitted(fitted[0], old, HELD.take(kept), far=0.1)
    assert compare_fitted(fitted[0], part, HELD, far=0.1).mixed.val == expected.mixed.val


def test_an_image_of_a_batch_meets_its_own_old_vector(old: Saved, tmp_path: Path) -> None:
    by_network = harmony(old, SEEN, PLAN)
    by_image = harmony(open_older(stored(old, tmp_path / "v1.npz", items=True)), SEEN, PLAN)
    assert by_network.rows is not None
    assert by_image.rows is not None
    torch.testing.assert_close(by_image.old[by_image.rows], by_network.old[by_network.rows])
    assert torch.equal(by_image.labels[by_image.rows], SEEN.labels)
    by_name = harmony(open_older(stored(old, tmp_path / "names.npz", items=False)), SEEN, PLAN)
    assert isinstance(by_name, Harmonic)
    assert by_name.rows is None
    assert sorted(by_name.labels.tolist()) == sorted(SEEN.labels.tolist())
    assert old_width(old) == 6


def test_stored_vectors_are_kept_by_name() -> None:
    vectors = torch.nn.functional.normalize(torch.arange(8.0).view(4, 2))
    held = HELD.take(range(5))
    older = StoredVectors(vectors, ("Eve", "9", "7", "9"), ("x", held.items[2], "y", "z"))
    found = old_vectors(older, held)
    assert found.vectors.tolist() == vectors[1:].tolist()
    assert [held.identities[label] for label in found.labels.tolist()] == ["9", "7", "9"]
    assert found.rows.tolist() == [2, -1, -1]
    assert old_width(older) == 2


def test_what_was_trained_on_is_left_out() -> None:
    assert unseen(WHOLE, SEEN).items == HELD.items
    with pytest.raises(ValueError, match="unseen: examples must have two identities not trained on; got 1"):
        unseen(WHOLE, WHOLE.without(["3"]))


def test_wrong_files_are_refused(old: Saved, tmp_path: Path) -> None:
    path = tmp_path / "v1.npz"
    with pytest.raises(ValueError, match="open_older: path must be a file; got"):
        open_older(path)
    numpy.savez(path, vectors=numpy.zeros((2, 6)))
    with pytest.raises(ValueError, match="open_older: path must hold vectors and names; got vectors"):
        open_older(path)
    numpy.savez(path, vectors=numpy.zeros((2, 6)), names=numpy.array(["7"]))
    with pytest.raises(ValueError, match="StoredVectors: names must be one for each of 2 vectors; got 1"):
        open_older(path)
    numpy.savez(path, vectors=numpy.zeros((2, 6)), names=numpy.array(["7", "8"]), items=numpy.array(["x"]))
    with pytest.raises(ValueError, match="StoredVectors: items must be one for each of 2 vectors; got 1"):
        open_older(path)
    with pytest.raises(ValueError, match="StoredVectors: names must be of identities in digits; got none of them"):
        StoredVectors(torch.eye(1, 2), ("Eve",)).of(HELD)
    with pytest.raises(ValueError, match="harmony: embedding_dim must be that of V1, 6; got 7"):
        harmony(old, SEEN, replace(PLAN, embedding_dim=7))


TWO: dict[str, Any] = {"vectors": numpy.eye(2, 6), "names": numpy.array(["7", "8"])}
WHOLE_NPZ = "open_older: path must be a whole .npz with arrays of numbers or texts, no objects; got '.*v1.npz'."


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        (
            {"vectors": numpy.ones(2)},
            r"open_older: vectors must be rows of numbers; got float64 of shape \(2,\) in '.*'",
        ),
        ({"vectors": numpy.array([["a"], ["b"]])}, "open_older: vectors must be rows of numbers; got <U1 of shape"),
        (
            {"names": numpy.array("7")},
            r"open_older: names must be one row of texts; got <U1 of shape \(\) in '.*v1.npz'",
        ),
        ({"items": numpy.array([1, 2])}, r"open_older: items must be one row of texts; got int64 of shape \(2,\) in"),
        ({"names": numpy.array(["7", "8"], object)}, WHOLE_NPZ),
        ({"vectors": numpy.array([[1.0, 0.0], None], object)}, WHOLE_NPZ),
    ],
)
def test_stored_arrays_of_another_kind_are_refused(tmp_path: Path, arrays: dict[str, Any], message: str) -> None:
    numpy.savez(tmp_path / "v1.npz", **{**TWO, **arrays})
    with pytest.raises(ValueError, match=message) as refused:
        open_older(tmp_path / "v1.npz")
    assert "pickle" not in str(refused.value)
    assert refused.value.__context__ is None  # numpy's advice to load it unsafely is not shown either


@pytest.mark.parametrize("packed", [True, False])
def test_damaged_vectors_are_refused_or_whole(tmp_path: Path, packed: bool) -> None:
    path = tmp_path / "v1.npz"
    (numpy.savez_compressed if packed else numpy.savez)(path, **TWO)
    data = path.read_bytes()
    refused = 0
    for place in range(0, len(data), 3):
        for damaged in (data[:place], data[:place] + bytes([data[place] ^ 0x55]) + data[place + 1 :]):
            path.write_bytes(damaged)
            try:
                found = open_older(path)
            except ValueError as error:
                assert str(error).startswith("open_older: path must ")  # noqa: PT017
                refused += 1
            else:
                assert isinstance(found, StoredVectors)
                assert found.vectors.tolist() == TWO["vectors"].tolist()
    assert refused > len(data) // 3
    path.write_text("a diary")
    with pytest.raises(ValueError, match=WHOLE_NPZ):
        open_older(path)


def test_stored_vectors_must_have_length_1() -> None:
    unit = torch.nn.functional.normalize(torch.randn(99, 128, generator=torch.Generator().manual_seed(1)))
    names = ("7",) * 99
    assert len(StoredVectors(unit.half().float(), names).vectors) == 99  # rounded, as stores may be
    for factor, length in ((7.0, "7"), (1.002, "1.002"), (0.0, "0"), (float("nan"), "nan")):
        vectors = unit.clone()
        vectors[42] *= factor
        with pytest.raises(ValueError, match=f"StoredVectors: vectors must have length 1; got {length}. Divide each"):
            StoredVectors(vectors, names)
