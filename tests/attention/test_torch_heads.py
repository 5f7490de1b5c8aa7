"""The module with torch's signature equals torch's own with softmax, and keeps its form inside torch's layers."""

import pytest
import torch
from torch import nn

from likewise.attention import Elu, Linear, Softmax, TorchMultiheadAttention, linear_attention
from tests.attention.drawing import seeded
from tests.tolerance import assert_close

B, T, S, D, H = 3, 7, 5, 22, 2
pytestmark = pytest.mark.usefixtures("without_shape_checks")


def own(*, batch_first: bool = True, bias: bool = True) -> nn.MultiheadAttention:
    torch.manual_seed(1)
    return nn.MultiheadAttention(D, H, bias=bias, batch_first=batch_first, dtype=torch.float64).eval()


def drawn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(shape, dtype=torch.float64, generator=seeded(seed))


PADDING = torch.tensor([[False] * S, [False, True] + [False] * (S - 2), [True] * 3 + [False] * (S - 3)])
CAUSAL = torch.ones(T, T, dtype=torch.bool).triu(1)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("padding", [None, PADDING, torch.zeros(B, S).masked_fill(PADDING, -torch.inf)])
@pytest.mark.parametrize("attn_mask", [None, torch.rand(B * H, T, S, generator=seeded(3)) > 0.9])
def test_with_softmax_it_is_torchs_own(
    batch_first: bool, bias: bool, padding: torch.Tensor | None, attn_mask: torch.Tensor | None
) -> None:
    theirs = own(batch_first=batch_first, bias=bias)
    ours = TorchMultiheadAttention.from_torch(theirs, attend=Softmax())
    shapes = [(B, T, D), (B, S, D), (B, S, D)]
    inputs = [drawn(*shape, seed=seed) for seed, shape in enumerate(shapes)]
    inputs = inputs if batch_first else [x.transpose(0, 1) for x in inputs]
    if padding is not None and attn_mask is not None and padding.dtype != torch.bool:
        attn_mask = torch.zeros(attn_mask.shape).masked_fill(attn_mask, -torch.inf)
    settings = {"key_padding_mask": padding, "attn_mask": attn_mask, "need_weights": False}
    if padding is not None and padding.dtype != torch.bool:
        settings = {name: x.double() if isinstance(x, torch.Tensor) else x for name, x in settings.items()}
    assert_close(ours(*inputs, **settings)[0], theirs(*inputs, **settings)[0])


def test_its_weights_are_those_of_the_module_and_have_torchs_names() -> None:
    theirs = own()
    ours = TorchMultiheadAttention.from_torch(theirs, attend=Linear(Elu()))
    assert ours.state_dict().keys() == theirs.state_dict().keys()
    assert ours.in_proj_weight is theirs.in_proj_weight


@pytest.mark.parametrize("causal", [False, True])
def test_torchs_encoder_layer_attends_by_features_in_training_and_in_eval(causal: bool) -> None:
    torch.manual_seed(1)
    layer = nn.TransformerEncoderLayer(D, H, dropout=0.0, batch_first=True, dtype=torch.float64)
    x = drawn(B, T, D)
    q, k, v = (
        y.unflatten(-1, (H, D // H)).transpose(1, 2)
        for y in nn.functional.linear(x, layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias).chunk(3, dim=-1)
    )
    attended = linear_attention(q, k, v, features=Elu(), causal=causal).transpose(1, 2).flatten(2)
    middle = layer.norm1(x + layer.self_attn.out_proj(attended))
    expected = layer.norm2(middle + layer.linear2(layer.linear1(middle).relu()))
    layer.self_attn = TorchMultiheadAttention.from_torch(layer.self_attn, attend=Linear(Elu()))
    for module in (layer.train(), layer.eval(), nn.TransformerEncoder(layer, 1, enable_nested_tensor=False).eval()):
        with torch.no_grad():
            assert_close(module(x, CAUSAL if causal else None), expected)


def test_what_it_cannot_do_is_refused() -> None:
    x, linear = drawn(B, T, D), TorchMultiheadAttention.from_torch(own(), attend=Linear(Elu()))
    with pytest.raises(ValueError, match=r"TorchMultiheadAttention: attn_mask must be bool, or have only 0 and -inf"):
        linear(x, x, x, attn_mask=torch.ones(T, T, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"mask must"):
        linear(x, x, x, attn_mask=CAUSAL.mT)
    with pytest.raises(ValueError, match=r"is_causal must come with attn_mask"):
        linear(x, x, x, is_causal=True)
    with pytest.raises(ValueError, match=r"module must have keys and values as wide as queries"):
        TorchMultiheadAttention.from_torch(nn.MultiheadAttention(D, H, kdim=3), attend=Linear(Elu()))
    with pytest.raises(ValueError, match=r"dropout must be 0 in training; got 0.5"):
        TorchMultiheadAttention(D, H, 0.5, attend=Linear(Elu()))(x, x, x)
