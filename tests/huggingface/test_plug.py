"""Models of transformers with our attention: padding, packing, grouped heads, and what is refused."""

# ruff: noqa: E402  without transformers, this file is skipped

from typing import Any

import pytest

transformers = pytest.importorskip("transformers", reason="needs likewise[hf]")

import torch
from transformers import AttentionInterface

from likewise.huggingface import LinearCache, register
from tests.huggingface.models import bert, llama, qwen, tokens
from tests.tolerance import assert_close

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("without_shape_checks")]
register()

LINEAR = ["likewise_elu", "likewise_positive", "likewise_hyperbolic"]


def padded(ids: torch.Tensor, pad: int, side: str) -> tuple[torch.Tensor, torch.Tensor]:
    zeros = torch.zeros(ids.shape[0], pad, dtype=ids.dtype)
    parts = [zeros, ids] if side == "left" else [ids, zeros]
    marks = [torch.zeros_like(zeros), torch.ones_like(ids)]
    return torch.cat(parts, dim=1), torch.cat(marks if side == "left" else marks[::-1], dim=1)


@pytest.mark.parametrize("make", [llama, qwen, bert])
def test_the_plug_with_exact_attention_is_the_models_own_attention(make: Any) -> None:
    ids, mask = padded(tokens(2, 11), 3, "right")
    with torch.no_grad():
        ours, own = (make(name)(ids, attention_mask=mask)[0] for name in ("likewise_exact", "sdpa"))
    assert_close(ours[:, :11], own[:, :11])


@pytest.mark.parametrize("name", LINEAR)
@pytest.mark.parametrize("side", ["left", "right"])
@pytest.mark.parametrize("make", [llama, bert])
def test_padding_changes_nothing(make: Any, name: str, side: str) -> None:
    model, ids = make(name), tokens(2, 11)
    more, mask = padded(ids, 3, side)
    at = slice(3, None) if side == "left" else slice(0, 11)
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        alone, beside = model(ids)[0], model(more, attention_mask=mask, position_ids=positions)[0][:, at]
        naive = model(more, position_ids=positions)[0][:, at]
    assert_close(beside, alone)
    if side == "left" or make is bert:
        assert (naive - alone).abs().max() > 1e-3  # the mask is what makes them equal


@pytest.mark.parametrize("name", [*LINEAR, "likewise_exact"])
def test_packed_sequences_do_not_see_each_other(name: str) -> None:
    model, (first, second) = llama(name), (tokens(1, 7), tokens(1, 5, seed=1))
    packed = torch.cat([first, second], dim=1)
    positions = torch.cat([torch.arange(7), torch.arange(5)])[None]
    with torch.no_grad():
        together = model(packed, position_ids=positions, use_cache=False)[0]
        apart = torch.cat([model(first)[0], model(second)[0]], dim=1)
    assert_close(together, apart)


def test_the_models_own_scaling_reaches_the_map() -> None:
    ids, outputs = tokens(1, 9), []
    for factor in (1.0, 3.0):
        model = llama("likewise_exact")
        for layer in model.model.layers:
            layer.self_attn.scaling *= factor
        with torch.no_grad():
            exact = model(ids)[0]
            model.set_attn_implementation("sdpa")
            assert_close(exact, model(ids)[0])
        outputs.append(exact)
    assert (outputs[0] - outputs[1]).abs().max() > 1e-3


def mistral(**settings: Any) -> Any:
    config = transformers.MistralConfig(
        vocab_size=97, hidden_size=40, intermediate_size=53, num_hidden_layers=2, num_attention_heads=4,
        num_key_value_heads=2, head_dim=10, **settings
    )  # fmt: skip
    config._attn_implementation = "likewise_elu"
    return transformers.MistralForCausalLM(config).eval()


def test_a_sliding_window_is_refused_by_its_setting() -> None:
    with pytest.raises(ValueError, match=r"config.sliding_window must be None; got 5. Set it to None before .* or use"):
        mistral(sliding_window=5)(tokens(1, 9))
    assert mistral(sliding_window=None)(tokens(1, 9))[0].shape == (1, 9, 97)


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"softcap": 30.0}, r"likewise_elu: config.attn_logit_softcapping must be None; got 30.0"),
        ({"s_aux": torch.zeros(4)}, r"likewise_elu: the attention sinks \(s_aux\) must be None; got a tensor"),
        ({"position_bias": torch.zeros(1, 4, 3, 3)}, r"likewise_elu: the position bias must be None; got a tensor"),
        ({"output_attentions": True}, r"likewise_elu: output_attentions must be None; got True"),
    ],
)
def test_settings_that_linear_attention_does_not_have_are_refused(setting: dict[str, object], message: str) -> None:
    attend, q = AttentionInterface()["likewise_elu"], torch.ones(1, 4, 3, 5)
    assert attend(torch.nn.Module(), q, q, q, None, softcap=None, output_attentions=False)[0].shape == (1, 3, 4, 5)
    with pytest.raises(ValueError, match=message):
        attend(torch.nn.Module(), q, q, q, None, **setting)


@pytest.mark.parametrize("kind", ["Gemma2", "GptOss"])
def test_models_with_softcaps_or_sinks_are_refused(kind: str) -> None:
    config = getattr(transformers, f"{kind}Config")(
        vocab_size=97, hidden_size=40, intermediate_size=53, num_hidden_layers=2, head_dim=10, num_attention_heads=4,
        num_key_value_heads=2, **({"num_local_experts": 2, "num_experts_per_tok": 1} if kind == "GptOss" else {}),
    )  # fmt: skip
    config._attn_implementation = "likewise_elu"
    with pytest.raises(ValueError, match=r"likewise_elu: .* must be None; got .*, or use attn_implementation=\"sdpa\""):
        getattr(transformers, f"{kind}ForCausalLM")(config).eval()(tokens(1, 5))


def test_dropout_four_dimensional_masks_and_weights_are_refused() -> None:
    ids = tokens(1, 5)
    with pytest.raises(ValueError, match=r"attention dropout must be 0; got 0.1. Set config.attention_dropout"):
        llama("likewise_elu", attention_dropout=0.1).train()(ids)
    assert llama("likewise_elu", attention_dropout=0.1)(ids)[0].shape == (1, 5, 97)
    with pytest.raises(ValueError, match=r"attention_mask must have 2 dimensions; got 4. Give padding as"):
        llama("likewise_elu")(ids, attention_mask=torch.ones(1, 1, 5, 5, dtype=torch.bool))


def test_fitted_maps_by_name_are_refused_with_what_to_use() -> None:
    with pytest.raises(
        ValueError, match=r"likewise_fitted: the maps must be fitted .* Call likewise.huggingface.convert"
    ):
        llama("likewise_fitted")(tokens(1, 5))


def test_a_static_cache_is_refused_before_the_first_token() -> None:
    with pytest.raises(ValueError, match=r"the cache must be dynamic or a LinearCache; got a static cache. Leave out"):
        llama("likewise_elu").generate(tokens(1, 5), max_new_tokens=3, cache_implementation="static")


def test_a_linear_cache_is_refused_to_other_attention() -> None:
    with pytest.raises(ValueError, match=r"LinearCache: model must use an attention of likewise; got 'sdpa'"):
        LinearCache(llama("sdpa"))
