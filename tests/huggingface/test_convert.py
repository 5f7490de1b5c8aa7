"""Converted and distilled models: what is chosen, that it is kept when saved, decoded, resumed."""

# ruff: noqa: E402  without transformers, this file is skipped

from pathlib import Path
from typing import Any

import pytest

transformers = pytest.importorskip("transformers", reason="needs likewise[hf]")

import torch

from likewise.attention import linear_attention
from likewise.attention.masks import Structure
from likewise.huggingface import DistillSettings, LinearCache, convert, distill, register
from likewise.huggingface.distilling import log_weights
from likewise.huggingface.mixed import HeadGroup, LayerPlan, attach
from likewise.huggingface.recording import Call, recorded
from tests.attention.drawing import seeded
from tests.huggingface.models import bert, llama, qwen, tokens
from tests.tolerance import assert_close

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("without_shape_checks")]
register()

QUICK = DistillSettings(num_features=8, exact_within=3, transfer_steps=6, adapter_steps=4, rank=2, rows=16)


def passed(model: Any, ids: torch.Tensor) -> torch.Tensor:
    with torch.no_grad():
        return model(ids)[0]


def texts(count: int, length: int = 30) -> list[torch.Tensor]:
    return [tokens(1, length + number, seed=number)[0] for number in range(count)]


@pytest.mark.parametrize("make", [llama, qwen, bert])
def test_nothing_is_converted_where_no_error_is_allowed(make: Any) -> None:
    model, ids = make("sdpa"), tokens(2, 24)
    before = passed(model, ids)
    conversion = convert(model, ids, max_error=1e-9)
    assert conversion.linear == 0
    assert {choice.map for choice in conversion.choices} == {"softmax"}
    assert_close(passed(model, ids), before)


@pytest.mark.parametrize("make", [llama, bert])
def test_heads_within_the_error_are_linear_and_no_others(make: Any) -> None:
    model, ids = make("sdpa", dtype=torch.float32) if make is llama else make("sdpa").float(), tokens(4, 40)
    errors = [choice.error for choice in convert(make("sdpa"), ids, max_error=1e-9).choices]
    limit = sorted(errors)[len(errors) // 2] * 1.0001
    conversion = convert(model, ids, max_error=limit)
    assert 0 < conversion.linear < len(conversion.choices)
    for choice in conversion.choices:
        assert (choice.map != "softmax") == (choice.error <= limit)
    assert f"{conversion.linear} of {len(conversion.choices)} key-value heads are linear" in str(conversion)
    assert "Attention of a converted model" in conversion.to_html()


@pytest.mark.parametrize("make", [llama, bert])
def test_a_converted_model_is_kept_when_it_is_saved(make: Any, tmp_path: Path) -> None:
    model, ids = make("sdpa"), tokens(4, 40)
    convert(model, ids, max_error=10.0)
    expected = passed(model.float(), ids)
    model.save_pretrained(tmp_path)
    again = type(model).from_pretrained(tmp_path)
    assert again.config._attn_implementation == "likewise_converted"
    assert_close(passed(again, ids), expected, atol=1e-5)
    narrow = type(model).from_pretrained(tmp_path, dtype=torch.bfloat16)
    for name, buffer in narrow.named_buffers():
        if "likewise" in name and buffer.is_floating_point():
            assert buffer.dtype.itemsize >= 4, name


def test_a_converted_model_decodes_as_it_passes() -> None:
    model, ids = llama("sdpa"), tokens(3, 33)
    conversion = convert(model, ids, max_error=10.0, exact_within=4)
    assert conversion.linear > 0
    full, cache = passed(model, ids), LinearCache(model)
    with torch.no_grad():
        parts = [model(ids[:, :20], past_key_values=cache)[0]]
        parts += [model(ids[:, at : at + 1], past_key_values=cache)[0] for at in range(20, 33)]
    assert_close(torch.cat(parts, dim=1), full)
    beams = model.generate(
        ids[:, :9], past_key_values=LinearCache(model), max_new_tokens=5, num_beams=3, do_sample=False
    )
    model.config.use_cache = False
    assert torch.equal(
        beams, model.generate(ids[:, :9], max_new_tokens=5, num_beams=3, do_sample=False, use_cache=False)
    )


def test_mixed_layers_decode_each_head_in_its_own_form() -> None:
    model, ids = llama("sdpa"), tokens(2, 21)
    names = [f"model.layers.{layer}.self_attn" for layer in range(2)]
    plan = LayerPlan(2, 10, 10**-0.5, (HeadGroup((1,), "Positive", 16, 5),))
    attach(model, dict.fromkeys(names, plan))
    model.set_attn_implementation("likewise_converted")
    cache = LinearCache(model)
    with torch.no_grad():
        steps = torch.cat([model(ids[:, at : at + 1], past_key_values=cache)[0] for at in range(21)], dim=1)
    assert_close(steps, passed(model, ids))


def test_a_model_that_was_not_converted_says_so() -> None:
    with pytest.raises(ValueError, match=r"likewise_converted: the model must be a converted one"):
        llama("likewise_converted")(tokens(1, 5))


@pytest.mark.parametrize("causal", [False, True])
def test_the_weights_that_maps_learn_from_are_those_of_linear_attention(causal: bool) -> None:
    q, k, v = (torch.randn(1, heads, 19, 6, generator=seeded(heads)) for heads in (4, 2, 2))
    from likewise.attention import Learned

    phi = Learned(6, num_features=9, kv_heads=2, generator=seeded(0))
    call = Call("", q, k, v, v, 6**-0.5, Structure(causal))
    weights = log_weights(phi, call, torch.arange(19), 4).softmax(-1)
    expected = linear_attention(q, k, v, features=phi, causal=causal, exact_within=4)
    assert_close(weights @ v.repeat_interleave(2, dim=1), expected, atol=1e-5)


def test_recording_leaves_the_model_as_it_was() -> None:
    model, ids, calls = llama("sdpa"), tokens(1, 9), []
    before = passed(model, ids)
    with torch.no_grad(), recorded(model, calls.append):
        assert_close(model(ids)[0], before)
    assert [call.layer for call in calls] == ["model.layers.0.self_attn", "model.layers.1.self_attn"]
    assert model.config._attn_implementation == "sdpa"
    assert_close(passed(model, ids), before)


@pytest.mark.parametrize("make", [llama, bert])
def test_distilling_lowers_both_losses(make: Any) -> None:
    model = make("sdpa", initializer_range=0.2).float()
    longer = DistillSettings(
        num_features=8, exact_within=3, transfer_steps=60, adapter_steps=40, rank=4, rows=30, map_rate=2e-2
    )
    distillation = distill(model, texts(8), settings=longer)
    assert distillation.linear == len(distillation.choices)
    for losses, share in ((distillation.transfer_losses, 0.9), (distillation.adapter_losses, 0.9)):
        assert sum(losses[-10:]) < share * sum(losses[:10])


def test_a_share_of_the_heads_stays_softmax() -> None:
    model = bert("sdpa").float()
    model.embeddings.requires_grad_(False)
    half = DistillSettings(num_features=8, exact_within=3, transfer_steps=2, adapter_steps=1, share=0.5)
    distillation = distill(model, texts(6), settings=half)
    linear = [choice.error for choice in distillation.choices if choice.map == "Learned"]
    exact = [choice.error for choice in distillation.choices if choice.map == "softmax"]
    assert len(linear) == len(exact) == 4
    assert max(linear) <= min(exact)
    frozen = {name for name, parameter in model.named_parameters() if not parameter.requires_grad}
    assert frozen == {f"embeddings.{name}" for name, _ in model.embeddings.named_parameters()}  # as before


@pytest.mark.parametrize("stop", [4, 8])
def test_a_resumed_distillation_ends_in_the_same_weights(stop: int, tmp_path: Path) -> None:
    class Stopped(Exception):
        pass

    def run(out: Path | None, *, resume: bool = False, stop: int | None = None) -> dict[str, torch.Tensor]:
        done = 0

        def tell(share: float, doing: str) -> None:
            nonlocal done
            done += 1
            if done == stop:
                raise Stopped

        model = llama("sdpa", dtype=torch.float32)
        distill(model, texts(7), settings=QUICK, out=out, every=2, resume=resume, progress=tell)
        return model.state_dict()

    whole, file = run(None), tmp_path / "run.checkpoint"
    with pytest.raises(Stopped):
        run(file, stop=stop)
    again = run(file, resume=True)
    assert whole.keys() == again.keys()
    for name, value in whole.items():
        assert torch.equal(value, again[name]), name


def test_what_cannot_be_distilled_is_refused() -> None:
    model = llama("sdpa")
    with pytest.raises(ValueError, match=r"distill: texts must be more than 4; got 2"):
        distill(model, texts(2))
    with pytest.raises(ValueError, match=r"distill: texts\[0\] must be token ids"):
        distill(model, [torch.zeros(1, 5)] * 6)
    with pytest.raises(ValueError, match=r"distill: path must be in a folder that exists; got nowhere"):
        distill(model, texts(7), out="nowhere/run.checkpoint")  # at once, not at the first checkpoint
    with pytest.raises(ValueError, match=r"DistillSettings: share must be above 0 and at most 1; got 2"):
        DistillSettings(share=2)
