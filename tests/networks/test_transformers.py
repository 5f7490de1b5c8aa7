"""Networks of attention: named segments, no look into the future, attention that can be seen and replaced."""

import re
from collections.abc import Callable
from typing import TypeVar

import pytest
import torch
from torch import Generator, Tensor, nn

from likewise.attention import Elu, Exponential, Kernel, Linear, Softmax, Structure, softmax_attention
from likewise.networks import Block, ByteModel, Network, capture, vit, with_attends
from likewise.networks.attends import Recorder, attentions
from tests.tolerance import assert_close

B, C, H, T, K, LAYERS, CLASSES = 2, 3, 5, 11, 7, 3, 13
SIDE, PATCH = 15, 5
DIM = H * K

Model = TypeVar("Model", bound=nn.Module)


def tokens() -> Tensor:
    return torch.randint(256, (B, T), generator=Generator().manual_seed(1))


def images() -> Tensor:
    return torch.randn(B, C, SIDE, SIDE, generator=Generator().manual_seed(2), dtype=torch.float64)


def byte_model() -> ByteModel:
    return drawn(ByteModel(context=T + 2, dim=DIM, num_layers=LAYERS, num_heads=H))


def vision(num_classes: int | None = CLASSES) -> Network:
    return drawn(
        vit(
            SIDE,
            patch_size=PATCH,
            channels=C,
            dim=DIM,
            num_layers=LAYERS,
            num_heads=H,
            num_classes=num_classes,
        )
    )


def drawn(model: Model) -> Model:
    """Weights from a generator of its own, large enough that attention is not flat."""
    generator = Generator().manual_seed(0)
    for weight in model.double().parameters():
        nn.init.normal_(weight.data, std=0.3, generator=generator)
    return model


# A network, what it takes, what it gives.
NETWORKS: dict[str, tuple[Callable[[], Network], Callable[[], Tensor], tuple[int, ...]]] = {
    "ByteModel": (byte_model, tokens, (B, T, 256)),
    "vit": (vision, images, (B, CLASSES)),
    "vit without classes": (lambda: vision(None), images, (B, DIM)),
}
EVERY = pytest.mark.parametrize("name", NETWORKS)


@EVERY
def test_segments_compose_to_the_network(name: str) -> None:
    make, inputs, shape = NETWORKS[name]
    model, x = make(), inputs()
    expected = model(x)
    assert expected.shape == shape
    for _, segment in model.segments:
        x = segment(x)
    assert_close(x, expected)


@EVERY
def test_segments_have_names_and_hold_every_weight_once(name: str) -> None:
    model = NETWORKS[name][0]()
    names = [name for name, _ in model.segments]
    assert len(set(names)) == len(names)
    assert [name for name in names if name.startswith("block")] == [f"block{i + 1}" for i in range(LAYERS)]
    held = {id(weight) for _, segment in model.segments for weight in segment.parameters()}
    assert held == {id(weight) for weight in model.parameters()}


@EVERY
def test_the_embedding_is_as_wide_as_it_says(name: str) -> None:
    make, inputs, _ = NETWORKS[name]
    model, x = make(), inputs()
    for segment_name, segment in model.segments:
        x = segment(x)
        if segment_name == "embedding":
            assert x.shape[-1] == model.embedding_dim == DIM


def test_a_language_model_does_not_see_the_future() -> None:
    model, x = byte_model(), tokens()
    other = x.clone()
    other[:, 4:] = (other[:, 4:] + 1) % 256
    seen, unseen = model(x), model(other)
    assert torch.equal(seen[:, :4], unseen[:, :4])
    assert not torch.isclose(seen[:, 4:], unseen[:, 4:]).any(-1).all(-1).any()


def test_an_image_sees_all_of_itself() -> None:
    model, x = vision(None), images()
    other = x.clone()
    other[:, :, -1, -1] += 1.0
    layers, others = (capture(model, inputs)[-1] for inputs in (x, other))
    assert not torch.isclose(layers.q, others.q).all(-1).any()


def test_a_block_is_its_equation() -> None:
    block = Block(DIM, num_heads=H, causal=True).double()
    x = torch.randn(B, T, DIM, generator=Generator().manual_seed(3), dtype=torch.float64)
    y = x + block.attention(block.attention_norm(x), causal=True)
    assert_close(block(x), y + block.mlp(block.mlp_norm(y)))


def test_the_head_is_the_embedding() -> None:
    model = byte_model()
    assert model.head.weight is model.bytes.weight


@EVERY
def test_the_plain_form_of_softmax_changes_nothing(name: str) -> None:
    make, inputs, _ = NETWORKS[name]
    model, x = make(), inputs()
    other = with_attends(model, [Kernel(Exponential()) for _ in range(LAYERS)])
    assert_close(other(x), model(x), atol=1e-9)  # sums of both signs


@EVERY
def test_another_form_changes_the_copy_and_not_the_network(name: str) -> None:
    make, inputs, _ = NETWORKS[name]
    model, x = make(), inputs()
    before = model(x)
    other = with_attends(model, [Linear(Elu()) for _ in range(LAYERS)])
    assert not torch.isclose(other(x), before).all()
    assert torch.equal(model(x), before)
    assert all(isinstance(layer.attend, Softmax) for layer in attentions(model))


@EVERY
def test_a_copy_with_other_attention_shares_every_weight(name: str) -> None:
    model = NETWORKS[name][0]()
    other = with_attends(model, [Softmax() for _ in range(LAYERS)])
    mine, theirs = dict(model.named_parameters()), dict(other.named_parameters())
    assert list(mine) == list(theirs)
    assert all(mine[key] is theirs[key] for key in mine)


def test_a_copy_is_in_the_mode_of_the_network() -> None:
    model = byte_model().eval()
    other = with_attends(model, [Softmax() for _ in range(LAYERS)])
    assert not any(layer.attend.training for layer in attentions(other))


@EVERY
def test_what_is_captured_is_what_attention_got(name: str) -> None:
    make, inputs, _ = NETWORKS[name]
    model, x = make(), inputs()
    layers = capture(model, x)
    assert len(layers) == LAYERS
    for number, (_, segment) in enumerate(model.segments):
        if not isinstance(segment, Block):
            x = segment(x)
            continue
        q, k, v, structure = layers[number - 2]
        assert structure == Structure(causal=segment.causal)
        heads = softmax_attention(q, k, v, causal=segment.causal)
        after = x + segment.attention.w_o(heads.transpose(1, 2).flatten(2))
        x = after + segment.mlp(segment.mlp_norm(after))
    assert_close(x, model(inputs()), atol=1e-9)  # sums of both signs


def test_capturing_leaves_no_trace() -> None:
    model, x = byte_model(), tokens()
    before = model(x)
    assert not any(layer.q.requires_grad for layer in capture(model, x))
    assert not any(isinstance(module, Recorder) for module in model.modules())
    assert torch.equal(model(x), before)


def test_each_layer_has_an_attention_of_its_own() -> None:
    model = ByteModel(context=T, dim=DIM, num_layers=LAYERS, num_heads=H, attend=lambda: Linear(Elu()))
    assert len({id(layer.attend) for layer in attentions(model)}) == LAYERS


@pytest.mark.usefixtures("without_shape_checks")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: byte_model()(tokens().repeat(1, 2)), "Positions: x must have at most 13 positions; got 22."),
        (
            lambda: with_attends(byte_model(), [Softmax()]),
            "with_attends: attends must be one for each of 3 layers; got 1.",
        ),
        (lambda: vit(8, patch_size=3), "vit: image_size must be a multiple of patch_size = 3; got 8."),
        (lambda: vit(8, patch_size=2, num_classes=0), "vit: num_classes must be a whole number of at least 1; got 0."),
        (lambda: ByteModel(context=0), "ByteModel: context must be a whole number of at least 1; got 0."),
        (lambda: ByteModel(context=5, num_layers=0), "stack: num_layers must be a whole number of at least 1; got 0."),
        (lambda: Block(8, num_heads=2, expansion=0), "Block: expansion must be a whole number of at least 1; got 0."),
    ],
)
def test_bad_input_is_named(call: Callable[[], object], message: str) -> None:
    with pytest.raises(ValueError, match=re.escape(message)):
        call()
