"""The form for inference: the same values, and a network that is none the worse for it."""

import copy
from collections.abc import Callable

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Generator, Tensor, nn

from likewise.networks import Network, for_inference, inference, nn4, nns2, resnet8, resnet50, vit
from likewise.networks.inception import ResponseNorm
from likewise.networks.inference import ForwardConv, ForwardNorm
from likewise.networks.resnet import embedder
from tests.tolerance import assert_close

LAYOUTS = [torch.contiguous_format, torch.channels_last]
NETWORKS: dict[str, tuple[Callable[[], Network], tuple[int, ...]]] = {
    "nn4": (nn4, (3, 96, 96)),
    "nns2": (nns2, (3, 140, 116)),
    "nns2, batch": (lambda: nns2(norm="batch"), (3, 140, 116)),
    "resnet8": (lambda: resnet8(channels=2, num_classes=5), (2, 17, 13)),
    "resnet50": (resnet50, (3, 33, 32)),
    "embedder": (lambda: embedder("resnet14", embedding_dim=7), (3, 16, 16)),
    "vit": (lambda: vit(8, patch_size=4, channels=1, dim=8, num_layers=2, num_heads=2), (1, 8, 8)),
}


def made(name: str) -> tuple[Network, Tensor]:
    """A network in training mode whose BatchNorms have seen something, and three images."""
    make, shape = NETWORKS[name]
    generator = Generator().manual_seed(0)
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = make()
    for module in network.modules():
        if isinstance(module, nn.BatchNorm2d):
            for tensor in (module.weight, module.bias, module.running_mean, module.running_var):
                assert tensor is not None
                tensor.data = torch.rand(tensor.shape, generator=generator) + 0.5
    return network, torch.rand(3, *shape, generator=generator)


@torch.no_grad()
def in_evaluation(network: Network, x: Tensor) -> Tensor:
    return copy.deepcopy(network).eval()(x)


@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", NETWORKS)
def test_the_values_are_those_of_evaluation(name: str, layout: torch.memory_format) -> None:
    network, x = made(name)
    expected = in_evaluation(network, x)
    ready = for_inference(network.to(memory_format=layout))  # ty: ignore[no-matching-overload]
    x = x.contiguous(memory_format=layout)
    size = expected.abs().max().item()
    for rows in (3, 1, 2):  # the weights were laid out for the first
        assert_close(ready(x[:rows]), expected[:rows], atol=1e-5 * size)


@pytest.mark.slow
@pytest.mark.parametrize("name", NETWORKS)
def test_in_float64_they_are_the_same_to_the_last_digits(name: str) -> None:
    network, x = made(name)
    expected = in_evaluation(network.double(), x.double())
    assert_close(for_inference(network)(x.double()), expected, atol=1e-12 * expected.abs().max().item())


def test_every_convolution_and_norm_is_replaced() -> None:
    network, _ = made("nn4")
    ready = for_inference(network)
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    assert len([module for module in ready.modules() if isinstance(module, ForwardConv)]) == len(convolutions) == 53
    assert len([module for module in ready.modules() if isinstance(module, ForwardNorm)]) == 2
    assert not any(isinstance(module, ResponseNorm | nn.ReLU) for module in ready.modules())
    assert [name for name, _ in ready.segments] == [name for name, _ in network.segments]


@pytest.mark.parametrize("name", ["nns2, batch", "resnet8"])
def test_the_network_stays_as_it_is_and_learns(name: str) -> None:
    network, x = made(name)
    before = copy.deepcopy(network.state_dict())
    ready = for_inference(network)
    assert not ready(x).requires_grad
    assert network.training
    assert network.state_dict().keys() == before.keys()
    assert all(torch.equal(tensor, before[key]) for key, tensor in network.state_dict().items())
    network(x).square().sum().backward()
    assert all(weight.requires_grad and weight.grad is not None for weight in network.parameters())


def test_weights_that_are_not_changed_are_shared() -> None:
    network, _ = made("resnet8")
    ready = for_inference(network)
    assert network.get_parameter("head.weight").data_ptr() == ready.get_parameter("head.weight").data_ptr()


def test_a_form_for_inference_can_be_made_of_one() -> None:
    network, x = made("resnet8")
    ready = for_inference(network)
    expected = ready(x)
    assert_close(for_inference(ready)(x), expected, atol=1e-5)


@given(
    st.tuples(st.integers(0, 5), st.integers(1, 11), st.integers(1, 4), st.integers(1, 3)),
    st.sampled_from(LAYOUTS),
    st.integers(1, 100),
    st.integers(0, 1000),
)
def test_the_norm_is_the_norm_however_few_images_at_a_time(
    shape: tuple[int, ...], layout: torch.memory_format, room: int, seed: int
) -> None:
    x = 30 * torch.randn(shape, generator=Generator().manual_seed(seed), dtype=torch.float64)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(inference, "ROOM", room)
        found = ForwardNorm(0.1)(x.contiguous(memory_format=layout))
    assert_close(found, ResponseNorm(0.1)(x))


def test_weights_that_are_not_finite_are_refused() -> None:
    network, _ = made("resnet8")
    with torch.no_grad():
        network.get_parameter("stem.0.weight")[0, 0, 0, 0] = torch.nan
    with pytest.raises(ValueError, match=r"^for_inference: stem.0.weight must be finite; got 1 of \d+ that are not"):
        for_inference(network)
