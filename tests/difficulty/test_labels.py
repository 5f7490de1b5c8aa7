"""Wrong labels come first, and the flag is the rule of confident learning."""

import pytest
import torch

from likewise.difficulty import class_probabilities, labelled, rank_labels
from tests.tolerance import assert_close


def noisy(count: int, wrong: int) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Probabilities of three classes near the true one, labels of which the first `wrong` are another class."""
    generator = torch.Generator().manual_seed(0)
    truth = torch.randint(3, (count,), generator=generator)
    logits = 3 * torch.nn.functional.one_hot(truth, 3) + torch.randn(count, 3, generator=generator)
    labels = truth.clone()
    labels[:wrong] = (labels[:wrong] + 1) % 3
    return logits.softmax(1), labels, truth


def test_wrong_labels_come_first() -> None:
    probabilities, labels, truth = noisy(211, 23)
    ranking = rank_labels(probabilities, labels)
    wrong = labels != truth
    assert wrong[ranking.order[:23]].double().mean() > 0.9
    assert wrong[ranking.flagged].double().mean() > 0.9
    assert ranking.flagged[:23].double().mean() > 0.7
    assert (ranking.suggested == truth).double().mean() > 0.9


def test_the_flag_is_the_rule_written_plainly() -> None:
    probabilities, labels, _ = noisy(101, 13)
    p = probabilities.double()
    thresholds = [
        sum(p[i, c].item() for i in range(101) if labels[i] == c) / int((labels == c).sum()) for c in range(3)
    ]
    for i, flagged in enumerate(rank_labels(probabilities, labels).flagged.tolist()):
        confident = [c for c in range(3) if p[i, c].item() >= thresholds[c]]
        assert flagged == bool(confident and max(confident, key=lambda c: p[i, c].item()) != labels[i])


def test_equal_scores_keep_their_order() -> None:
    assert rank_labels(torch.full((5, 2), 0.5), torch.tensor([0, 1, 0, 1, 0])).order.tolist() == [0, 1, 2, 3, 4]


def test_a_class_without_labels_is_never_suggested_by_the_flag() -> None:
    ranking = rank_labels(torch.tensor([[0.2, 0.0, 0.8], [0.9, 0.1, 0.0]]), torch.tensor([0, 1]))
    assert ranking.flagged.tolist() == [False, True]


@pytest.mark.parametrize(
    ("probabilities", "labels", "words"),
    [
        (torch.ones(2, 2), torch.tensor([0, 1]), "probabilities must be at least 0 and sum to 1 in each row"),
        (torch.full((2, 2), 0.5), torch.tensor([0, 2]), "labels must be from 0 to 1; got 0 to 2"),
        (torch.full((2, 2), 0.5), torch.tensor([0]), r"probabilities must be \(N, C\) for labels"),
        (torch.full((2, 2), torch.nan), torch.tensor([0, 1]), "probabilities must be"),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_wrong_input_is_refused(probabilities: torch.Tensor, labels: torch.Tensor, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        rank_labels(probabilities, labels)


def test_probabilities_are_the_softmax_of_the_model_in_order() -> None:
    model = torch.nn.Sequential(torch.nn.Linear(2, 3)).eval()
    inputs = torch.randn(7, 2, generator=torch.Generator().manual_seed(0))
    found = class_probabilities(model, labelled((inputs, torch.zeros(7, dtype=torch.int64)), batch=3))
    assert_close(found, model(inputs).double().softmax(1))
