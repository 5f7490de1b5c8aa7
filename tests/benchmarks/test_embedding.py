"""The embedding benchmark's own checks: a wrong vector is found, and rates are compared per multiply-add."""

import pytest
import torch
from torch import Tensor

from benchmarks.embedding import OURS, PEER, demands, wrong_answers
from benchmarks.embedding_forms import SIDE, network, plain_network
from benchmarks.embedding_problem import AS_MADE, LAST, images
from benchmarks.harness.measurement import Measurement


class Answering:
    """Stands where a process would: vectors by task."""

    def __init__(self, answers: dict[str, Tensor]) -> None:
        self.answers, self.last = answers, torch.zeros(0)

    def seconds(self, task: str, length: int) -> None:
        self.last = self.answers[task]

    def last_rows(self, rows: int) -> tuple[Tensor]:
        return (self.last.double(),)


@pytest.fixture(scope="module")
def vectors() -> Tensor:
    return torch.nn.functional.normalize(torch.randn(8, 5, generator=torch.Generator().manual_seed(0)))


@torch.inference_mode()
def test_the_plain_network_is_the_same_function() -> None:
    (x,) = images(2, SIDE)
    torch.testing.assert_close(network()(x), plain_network()(x), atol=1e-5, rtol=0)


def test_wrong_vectors_are_found(vectors: Tensor) -> None:
    right, theirs = Answering({LAST: vectors, AS_MADE: vectors}), Answering({AS_MADE: vectors})
    wrong = Answering({LAST: vectors + 1e-3, AS_MADE: vectors})
    assert wrong_answers(right, theirs) == []  # ty: ignore[invalid-argument-type]
    assert wrong_answers(wrong, None) == [f"{OURS} is wrong by 0.001"]  # ty: ignore[invalid-argument-type]
    longer = Answering({AS_MADE: 2 * vectors})
    assert len(wrong_answers(right, longer)) == 1  # ty: ignore[invalid-argument-type]


def test_each_is_judged_by_its_own_multiply_adds() -> None:
    found = [
        Measurement(OURS, 8, (1.0,) * 3, task=LAST),
        Measurement(OURS, 64, (1.0,) * 3, task=LAST),  # not the batch that it chooses
        Measurement(PEER, 8, (1.0,) * 3, task=AS_MADE),
        Measurement(PEER, 16, (1.0,) * 3, task=AS_MADE),
        Measurement(PEER, 16, (0.5,) * 3, task=LAST),
    ]
    made, last = demands(found, {OURS: 100, PEER: 25}, chosen=8)
    assert (made.measured, made.holds) == (2.0, True)  # 800 against 400
    assert (last.measured, last.holds) == (1.0, True)  # against 800
    assert demands(found, {OURS: 99, PEER: 25}, chosen=8)[1].holds is False
