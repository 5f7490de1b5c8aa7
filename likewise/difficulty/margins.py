"""How far an input is from another answer, to first order."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from likewise.checks import require, require_count
from likewise.difficulty.activations import device_of, require_evaluation
from likewise.difficulty.labelled import BATCH


def output_margin(logits: Float[Tensor, "N C"]) -> Float[Tensor, "N"]:
    """The largest logit minus the second largest.

    >>> output_margin(torch.tensor([[1.0, 4.0, 2.0]]))
    tensor([2.])
    """
    require(logits.shape[-1] > 1, "output_margin", "logits", "be of two classes or more", logits.shape[-1])
    first, second = logits.topk(2, dim=1).values.unbind(1)
    return first - second


def input_margin(model: nn.Module, x: Float[Tensor, "N *input"], *, batch: int = BATCH) -> Float[Tensor, "N"]:
    """min over j != i of (z_i - z_j) / |grad_x (z_i - z_j)|: the distance to another class than i, to first order.

    i is the predicted class. Where no logit depends on x the margin is infinite; on a boundary it is 0. One backward
    pass for each class; for a linear model it is the distance itself.

    >>> model = nn.Linear(2, 2, bias=False).eval()
    >>> _ = model.load_state_dict({"weight": torch.tensor([[3.0, 0.0], [0.0, 4.0]])})
    >>> input_margin(model, torch.tensor([[5.0, 0.0]]))  # 15 over the length of (3, -4)
    tensor([3.])

    Paper: Jiang et al., arXiv 1810.00113; beside depth in Baldock et al., arXiv 2106.09647.
    """
    where = "input_margin"
    require_evaluation(where, model)
    require_count(where, "batch", batch)
    found = [torch.zeros(0, dtype=x.dtype)]
    for some in x.split(batch):
        inputs = some.detach().to(device_of(model)).requires_grad_()
        with torch.enable_grad():
            logits = model(inputs)
            require(logits.shape[-1] > 1, where, "model", "have two classes or more", logits.shape[-1])
            best, predicted = logits.max(dim=1, keepdim=True)
            least = torch.full_like(best[:, 0], torch.inf)
            for other in range(logits.shape[1]):
                gap = best[:, 0] - logits[:, other]
                (slope,) = torch.autograd.grad(gap.sum(), inputs, retain_graph=True)
                margin = gap.detach() / slope.flatten(1).norm(dim=1)
                margin = margin.masked_fill(gap == 0, 0.0).masked_fill(predicted[:, 0] == other, torch.inf)
                least = torch.minimum(least.detach(), margin)
        found.append(least.cpu())
    return torch.cat(found)
