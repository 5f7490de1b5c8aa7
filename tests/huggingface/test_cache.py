"""Every way of decoding with a LinearCache gives what full passes without a cache give."""

# ruff: noqa: E402  without transformers, this file is skipped

from typing import Any

import pytest

transformers = pytest.importorskip("transformers", reason="needs likewise[hf]")

import torch

from likewise.huggingface import LinearCache, register
from tests.huggingface.models import llama, tokens
from tests.tolerance import assert_close

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("without_shape_checks")]
register()

FORMS = ["likewise_elu", "likewise_positive", "likewise_exact"]


def full_passes(model: Any, ids: torch.Tensor, **settings: Any) -> torch.Tensor:
    return model.generate(ids, use_cache=False, **{"max_new_tokens": 23, "do_sample": False, **settings})


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("mode", ["greedy", "sampling", "beam", "prompt lookup", "left padding", "chunked prefill"])
def test_every_mode_equals_full_passes(name: str, mode: str) -> None:
    model, ids = llama(name), tokens(1 if mode == "prompt lookup" else 2, 13)
    settings, plain = {}, {}
    if mode == "sampling":
        plain = settings = {"do_sample": True, "temperature": 0.7, "top_k": 11}
    if mode == "beam":
        plain = settings = {"num_beams": 3}
    if mode == "prompt lookup":
        ids = ids.repeat(1, 3)  # so that there is something to look up
        settings = {"prompt_lookup_num_tokens": 7}
    if mode == "left padding":
        mask = torch.ones_like(ids)
        mask[0, :5] = 0
        plain = settings = {"attention_mask": mask}
    if mode == "chunked prefill":
        settings = {"prefill_chunk_size": 5}
    torch.manual_seed(3)
    expected = full_passes(model, ids, **plain)
    torch.manual_seed(3)
    got = model.generate(ids, past_key_values=LinearCache(model), max_new_tokens=23, **{"do_sample": False, **settings})
    assert torch.equal(got, expected)
    assert len(set(expected[0, ids.shape[1] :].tolist())) > 4  # a model that repeats itself would show nothing


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("draft", ["other", "same"])
def test_assisted_decoding_equals_full_passes(name: str, draft: str) -> None:
    model, ids = llama(name), tokens(1, 13)
    assistant = llama(name, num_hidden_layers=1 if draft == "other" else 2)
    got = model.generate(
        ids, assistant_model=assistant, past_key_values=LinearCache(model), max_new_tokens=31, do_sample=False
    )
    assert torch.equal(got, full_passes(model, ids, max_new_tokens=31))


@pytest.mark.parametrize("name", FORMS)
def test_a_conversation_continues_where_it_stopped(name: str) -> None:
    model = llama(name)
    cache = LinearCache(model)
    first = model.generate(tokens(1, 11), past_key_values=cache, max_new_tokens=7, do_sample=False)
    asked = torch.cat([first, tokens(1, 5, seed=1)], dim=1)
    second = model.generate(asked, past_key_values=cache, max_new_tokens=7, do_sample=False)
    assert torch.equal(second, full_passes(model, asked, max_new_tokens=7))


@pytest.mark.parametrize("name", FORMS)
def test_cropped_reordered_and_repeated_rows_continue_alone(name: str) -> None:
    model, ids, later = llama(name), tokens(3, 17), tokens(4, 2, seed=1)
    cache, rows = LinearCache(model), torch.tensor([2, 0])
    with torch.no_grad():
        model(ids[:, :7], past_key_values=cache)
        cache.activate_past_recording()
        model(ids[:, 7:12], past_key_values=cache)
        model(ids[:, 12:], past_key_values=cache)
        cache.crop(-6)
        assert cache.get_seq_length() == 11
        cache.batch_select_indices(rows)
        cache.batch_repeat_interleave(2)
        got = model(later, past_key_values=cache)[0]
        kept = ids[rows, :11].repeat_interleave(2, dim=0)
        assert_close(got, model(torch.cat([kept, later], dim=1))[0][:, 11:])
    with pytest.raises(ValueError, match=r"LinearCache.crop: tokens_to_remove must be at least -2, the positions"):
        cache.crop(-3)


def test_positions_that_were_not_recorded_cannot_be_cropped() -> None:
    model = llama("likewise_elu")
    cache = LinearCache(model)
    model(tokens(1, 5), past_key_values=cache)
    with pytest.raises(ValueError, match=r"must be at least 0, .* Call activate_past_recording\(\) before they come."):
        cache.crop(-1)


def test_a_linear_cache_does_not_grow() -> None:
    sizes = {}
    for name in ("likewise_elu", "likewise_positive", "likewise_exact"):
        model = llama(name, dtype=torch.float32)
        cache, sizes[name] = LinearCache(model), []
        for _ in range(2):
            with torch.no_grad():
                model(tokens(1, 60), past_key_values=cache)
            sizes[name].append(cache.nbytes)
    assert sizes["likewise_elu"] == [2 * 4 * 2 * 10 * (11 + 1)] * 2  # layers, bytes, heads, F, values + sum + scale
    assert sizes["likewise_positive"][0] == sizes["likewise_positive"][1]
    assert sizes["likewise_exact"] == [2 * 4 * 2 * 60 * 20, 2 * 4 * 2 * 120 * 20]
