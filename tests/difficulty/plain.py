"""Prediction depth by its definition, all of it, one example at a time; and the defects that were seen elsewhere."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from tests.difficulty import conformance


def features(model: nn.Module, x: Tensor, modules: Sequence[nn.Module]) -> list[Tensor]:
    """Input, outputs of the modules as listed, softmax; float64 rows."""
    seen: dict[nn.Module, Tensor] = {}
    handles = [
        module.register_forward_hook(lambda module, _, out: seen.__setitem__(module, out.clone())) for module in modules
    ]
    with torch.no_grad():
        logits = model(x)
    for handle in handles:
        handle.remove()
    return [x.flatten(1), *(seen[module].flatten(1) for module in modules), logits.softmax(dim=1)]


def order(support: Tensor, query: Tensor, own: int | None = None) -> list[int]:
    """Rows of the support by (distance, index)."""
    squared = (support.double() - query.double()).square().sum(-1).tolist()
    return [index for _, index in sorted(zip(squared, range(len(support)), strict=True)) if index != own]


def vote(labels: Sequence[int]) -> int:
    """Most votes, then the smaller sum of ranks, then the nearest."""
    ranks: dict[int, list[int]] = {}
    for rank, label in enumerate(labels):
        ranks.setdefault(label, []).append(rank)
    return min(ranks, key=lambda label: (-len(ranks[label]), sum(ranks[label]), ranks[label][0]))


def votes(support: Tensor, labels: Tensor, queries: Tensor, k: int, *, same: bool = False) -> list[int]:
    """What the k nearest say of each query."""
    found = []
    for row, query in enumerate(queries):
        near = order(support, query, own=row if same else None)[:k]
        found.append(vote(labels[near].tolist()))
    return found


def depth(answers: Sequence[int], reference: int) -> int:
    """1 + the last probe that disagrees."""
    return 1 + max((place for place, answer in enumerate(answers) if answer != reference), default=-1)


def depths(
    model: nn.Module, modules: Sequence[nn.Module], train: conformance.Set, queries: Tensor, k: int, same: bool = False
) -> list[int]:
    """By the definition."""
    with torch.no_grad():
        reference = model(queries).argmax(dim=1).tolist()
    supports, rows = features(model, train.inputs, modules), features(model, queries, modules)
    columns = [votes(support, train.labels, row, k, same=same) for support, row in zip(supports, rows, strict=True)]
    return [depth([column[i] for column in columns], reference[i]) for i in range(len(queries))]
