"""Taps read what a network computes and leave the network as it was."""

import re
from operator import itemgetter
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from likewise.difficulty import Taps
from likewise.difficulty.taps import Tap
from likewise.networks import resnet8

B = 3
LOGITS = "output of the model must be logits of shape (B, C)"


class Branching(nn.Module):
    """Registered first and last are executed last and first; one module runs twice, one gives two tensors."""

    def __init__(self) -> None:
        super().__init__()
        self.head, self.pair, self.turn, self.stem = nn.Linear(5, 2), Pair(), nn.Linear(5, 5), nn.Linear(7, 5)
        self.idle = nn.Linear(1, 1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.turn(self.turn(self.stem(x)).relu())
        left, right = self.pair(x)
        return self.head(left + right)


class Pair(nn.Module):
    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return x, -3 * x


def inputs(*shape: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(sum(shape)))


def hooks(model: nn.Module) -> int:
    return sum(len(module._forward_hooks) + len(module._forward_pre_hooks) for module in model.modules())


def test_features_come_in_order_of_execution_and_repeated_calls_are_numbered() -> None:
    model, x = Branching().eval(), inputs(B, 7)
    with Taps(model, [Tap("pair", select=itemgetter(1)), "turn", "head", "stem"]) as taps, torch.no_grad():
        logits = model(x)
    assert list(taps.features) == ["input", "stem", "turn", "turn#2", "pair", "head", "softmax"]
    stem = model.stem(x)
    expected = [x, stem, model.turn(stem), model.turn(model.turn(stem).relu())]
    for found, right in zip(taps.features.values(), [*expected, -3 * expected[-1], logits], strict=False):
        assert torch.equal(found, right)
    assert taps.logits is not None
    assert torch.equal(taps.logits, logits)
    assert torch.equal(taps.features["softmax"], logits.softmax(dim=1))


def test_a_new_forward_pass_begins_anew() -> None:
    model = nn.Sequential(nn.Linear(7, 5), nn.Linear(5, 2)).eval()
    with Taps(model) as taps:
        model(inputs(B, 7))
        model(inputs(1, 7))
    assert {name: tuple(each.shape) for name, each in taps.features.items()} == {
        "input": (1, 7),
        "0": (1, 5),
        "softmax": (1, 2),
    }


def test_segments_of_our_networks_are_taps_without_the_logits() -> None:
    model = resnet8(channels=1, num_classes=4).eval()
    with Taps(model) as taps, torch.no_grad():
        model(inputs(B, 1, 8, 8))
    assert list(taps.features) == ["input", "stem", "block1", "block2", "block3", "embedding", "softmax"]
    with Taps(model, ["head", "block2", "blocks.0.branch.0"]) as taps, torch.no_grad():
        model(inputs(B, 1, 8, 8))
    assert list(taps.features) == ["input", "blocks.0.branch.0", "block2", "head", "softmax"]


def test_nothing_that_happens_in_place_changes_a_feature() -> None:
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(7, 5), nn.ReLU(inplace=True), nn.Linear(5, 2)).eval()
    x = inputs(B, 7)
    with Taps(model) as taps, torch.no_grad():
        model(x.clone())
    assert torch.equal(taps.features["input"], x)
    before = model[1](x.relu())
    assert torch.equal(taps.features["1"], before)
    assert (before < 0).any()
    assert torch.equal(taps.features["2"], before.relu())


def test_the_model_gives_what_it_gives_alone_and_learns_as_it_would() -> None:
    model, x = resnet8(channels=1, num_classes=4), inputs(B, 1, 8, 8)
    state = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    alone = model(x)
    gradient = torch.autograd.grad(alone.sum(), list(model.parameters()))
    model.load_state_dict(state)
    with Taps(model) as taps:
        tapped = model(x)
    assert torch.equal(tapped, alone)
    for one, other in zip(torch.autograd.grad(tapped.sum(), list(model.parameters())), gradient, strict=True):
        assert torch.equal(one, other)
    assert not any(feature.requires_grad for feature in taps.features.values())
    assert hooks(model) == 0


def test_hooks_are_gone_after_an_error() -> None:
    model = Branching().eval()
    with Taps(model, ["stem"]):
        assert hooks(model) == 3
    with pytest.raises(RuntimeError), Taps(model, ["stem"]):
        model(inputs(B, 3))
    assert hooks(model) == 0


def test_hooks_of_others_stay() -> None:
    model, seen = nn.Sequential(nn.Linear(7, 2)).eval(), []
    model[0].register_forward_hook(lambda *_: seen.append(1))
    with Taps(model):
        model(inputs(B, 7))
    model(inputs(B, 7))
    assert seen == [1, 1]


def test_modules_called_input_and_softmax_keep_apart_from_the_probes() -> None:
    class Named(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.input, self.softmax = nn.Linear(7, 5), nn.Linear(5, 2)

        def forward(self, x: Tensor) -> Tensor:
            return 2 * self.softmax(self.input(x))

    model, x = Named().eval(), inputs(B, 7)
    with Taps(model) as taps:
        model(x)
    assert list(taps.features) == ["input", "module input", "module softmax", "softmax"]
    assert torch.equal(taps.features["input"], x)


def test_a_last_layer_that_was_asked_for_stays() -> None:
    model = nn.Sequential(nn.Linear(7, 2)).eval()
    with Taps(model, ["0"]) as taps:
        model(inputs(B, 7))
    assert list(taps.features) == ["input", "0", "softmax"]


class Wrong(nn.Module):
    """Gives what it is told."""

    def __init__(self, output: Any) -> None:
        super().__init__()
        self.output = output

    def forward(self, *_: Tensor) -> Any:
        return self.output


@pytest.mark.parametrize(
    ("layers", "message"),
    [
        (["stme"], "layers must be modules of the model, such as head, pair, turn, stem, idle; got 'stme'."),
        ([""], "layers must be modules of the model, such as head, pair, turn, stem, idle; got ''."),
        (["stem", Tap("stem")], "layers must be different modules; got 'stem' again."),
        (["idle"], "layers must take part in the forward pass; got nothing from 'idle'."),
        (["pair"], "output of 'pair' must be a tensor; got tuple. Say which part: Tap('pair', select=...)."),
    ],
)
def test_layers_that_cannot_be_tapped_are_refused(layers: list, message: str) -> None:
    model = Branching().eval()
    with pytest.raises(ValueError, match=f"^Taps: {re.escape(message)}$"), Taps(model, layers):
        model(inputs(B, 7))
    assert hooks(model) == 0


@pytest.mark.parametrize(
    ("output", "arguments", "message"),
    [
        ({"logits": 1}, 1, "output of the model must be logits of shape (B, C); got dict. Wrap the model."),
        (
            inputs(B, 2, 2),
            1,
            "output of the model must be logits of shape (B, C); got shape (3, 2, 2). Wrap the model.",
        ),
        (inputs(B, 2), 2, "input must be one tensor; got Tensor, Tensor."),
        (inputs(B, 2), 0, "input must be one tensor; got none."),
    ],
)
def test_models_that_are_no_classifiers_are_refused(output: Any, arguments: int, message: str) -> None:
    model = Wrong(output).eval()
    with pytest.raises(ValueError, match=f"^Taps: {re.escape(message)}$"), Taps(model):
        model(*[inputs(B, 7)] * arguments)
    assert hooks(model) == 0
