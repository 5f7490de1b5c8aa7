"""The depth benchmark's own parts, small: the drawn images, the comparison with scikit-learn, the demands."""

import pytest
import torch

from benchmarks import depth
from likewise.difficulty import labelled, prediction_depth
from likewise.difficulty.depth import plan_depth
from likewise.networks import Network, resnet8


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> Network:
    monkeypatch.setattr(depth, "COMPARED", "block3")
    monkeypatch.setattr(depth, "K", 5)
    return resnet8(num_classes=depth.CLASSES).eval()


def test_drawn_images_have_their_class_in_them() -> None:
    some = depth.drawn(40, 0)
    assert some.labels.bincount().tolist() == [4] * depth.CLASSES
    assert some.fingerprint == depth.drawn(40, 0).fingerprint
    pixels = torch.stack([torch.from_numpy(some.read(row)).double().flatten() for row in range(40)])
    pixels -= pixels.mean(dim=0)
    same = some.labels[:, None] == some.labels
    products = pixels @ pixels.mT
    assert products[same & ~torch.eye(40, dtype=torch.bool)].mean() > 0 > products[~same].mean()


def test_ours_is_checked_against_scikit_learn(small: Network, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="scikit-learn is the peer")
    train, test = (labelled(depth.drawn(*each), preparation=depth.PREPARATION) for each in ((60, 0), (20, 1)))
    theirs, ours, complaints = depth.peer_seconds(small, train, test)
    assert theirs > 0 < ours
    assert complaints == []
    right = depth.nearest

    def wrong(x: torch.Tensor, y: torch.Tensor, *, k: int) -> object:
        return right(x, -y, k=k)

    monkeypatch.setattr(depth, "nearest", wrong)
    assert depth.peer_seconds(small, train, test)[2] == [
        "distances of neighbours differ from scikit-learn's in float64"
    ]


def test_demands_are_judged_at_full_size_only(small: Network) -> None:
    train, test = (labelled(depth.drawn(*each), preparation=depth.PREPARATION) for each in ((60, 0), (20, 1)))
    found = prediction_depth(small, train, test, k=5, train_rows=())
    assert [each.holds for each in depth.demands(found, 7 * 10**9, part=10)] == [None] * 3
    assert [each.holds for each in depth.demands(found, 7 * 10**9, part=1)][:2] == [True, False]
    assert found.test is not None
    assert depth.facts(found)["depths"] == found.test.counts.tolist()


def test_the_probes_have_the_width_of_the_promise() -> None:
    model = depth.resnet20(num_classes=depth.CLASSES).eval()
    sets = [labelled(depth.drawn(*each), preparation=depth.PREPARATION) for each in ((40, 0), (10, 1))]
    plan = plan_depth(model, *sets, layers=depth.LAYERS)
    assert sum(layer.width for layer in plan.layers) == 105_482
