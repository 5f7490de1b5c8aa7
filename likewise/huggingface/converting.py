"""Replace softmax attention by linear attention in the heads of a pretrained model in which the error stays small."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from transformers import PreTrainedModel

from likewise.attention import Fitted, Linear, diagnose
from likewise.attention.diagnose import Diagnosis, Measurement
from likewise.checks import require, require_count
from likewise.files import finite
from likewise.huggingface.mixed import IMPLEMENTATION, HeadGroup, LayerPlan, MixedHeads, attach, restore
from likewise.huggingface.plugging import register
from likewise.huggingface.recording import Call, recorded, run
from likewise.page import render
from likewise.progress import Progress, silent
from likewise.text import aligned


@dataclass(frozen=True)
class HeadChoice:
    """What one key-value head of one layer became, and why.

    map: "softmax" for a head that was left as it is. error: relative squared error against softmax of the chosen map on
    the calibration batch, the worst of the query heads; of the best map where none was chosen. macs: multiply-adds per
    token of the chosen form and of softmax at the length of the calibration batch.
    """

    layer: str
    head: int
    map: str
    features: int | None
    within: int | None
    error: float
    macs: int
    softmax_macs: int


@dataclass(frozen=True, repr=False)
class Conversion:
    """A converted model, and the choice made for every head."""

    model: PreTrainedModel = field(compare=False)
    max_error: float
    positions: int
    choices: tuple[HeadChoice, ...]

    @property
    def linear(self) -> int:
        """The number of key-value heads that were made linear."""
        return sum(choice.map != "softmax" for choice in self.choices)

    @property
    def summary(self) -> str:
        """One line."""
        return (
            f"{self.linear} of {len(self.choices)} key-value heads are linear: relative squared error at most"
            f" {self.max_error:g} against softmax on {self.positions} positions"
        )

    def __str__(self) -> str:
        rows = [("layer", "head", "attention", "within", "error", "MACs", "softmax MACs")]
        for c in self.choices:
            form = c.map if c.features is None else f"{c.map} {c.features}"
            within = "" if c.within is None else str(c.within)
            rows.append((c.layer, str(c.head), form, within, f"{c.error:.2g}", f"{c.macs:,}", f"{c.softmax_macs:,}"))
        return f"{self.summary}\n{aligned(rows, left=(0, 2))}"

    __repr__ = __str__

    def to_json(self) -> dict[str, Any]:
        """All of it but the model."""
        choices = [vars(choice) for choice in self.choices]
        return finite({"max_error": self.max_error, "positions": self.positions, "heads": choices})

    def to_html(self) -> str:
        """A page with the table."""
        return render("reports/templates/conversion.html", {"conversion": self})


def convert(
    model: PreTrainedModel,
    calibration: Tensor | Mapping[str, Tensor],
    *,
    max_error: float = 0.1,
    exact_within: int | None = None,
    rows: int = 256,
    seed: int = 0,
    progress: Progress = silent,
) -> Conversion:
    """Make linear, in place, every key-value head whose error against softmax is at most `max_error`.

    calibration: token ids (B, T), or what a tokenizer gives with padding; from the texts that the model will see, and
    as long. `diagnose` measures Taylor, Positive, Hyperbolic and Fitted at three widths, without a window and within
    `exact_within` (64 unless given), for every layer. A head takes the form with the fewest multiply-adds per token of
    those within `max_error`, the worst of its query heads counting, and stays softmax if there is none. rows: query
    rows that are measured in each text.

    `model.save_pretrained(folder)` keeps the result; `from_pretrained(folder)` loads it after `register()`.
    """
    require(max_error > 0, "convert", "max_error", "be a positive number", max_error)
    require_count("convert", "rows", rows)
    register()
    chosen: dict[str, LayerPlan] = {}
    samples: dict[str, list[tuple[HeadGroup, Tensor, Tensor]]] = {}
    choices: list[HeadChoice] = []
    inputs = calibration if isinstance(calibration, Tensor) else dict(calibration)
    ids = inputs if isinstance(inputs, Tensor) else inputs["input_ids"]
    layers = max(1, getattr(model.config.get_text_config(), "num_hidden_layers", 1))

    def look(call: Call) -> None:
        progress(len(chosen) / (layers + 1), call.layer)
        mask = call.structure.mask
        diagnosis = diagnose(
            call.q,
            call.k,
            call.v,
            causal=call.structure.causal,
            mask=mask,
            exact_within=exact_within,
            rows=rows,
            generator=torch.Generator().manual_seed(seed),
        )
        groups = choose(diagnosis, max_error)
        chosen[call.layer] = LayerPlan(call.k.shape[1], call.k.shape[3], call.scale, tuple(groups))
        choices.extend(_choices(call.layer, diagnosis, groups))
        samples[call.layer] = [(group, *_heads_of(call, group)) for group in groups if group.map == "Fitted"]
        masks[call.layer] = mask

    masks: dict[str, Tensor | None] = {}
    model.eval()
    with torch.no_grad(), recorded(model, look):
        run(model, inputs)
    attach(model, chosen)
    modules = dict(model.named_modules())
    for layer, fits in samples.items():
        mixed = modules[layer].get_submodule("likewise")
        assert isinstance(mixed, MixedHeads)
        fit_maps(mixed, chosen[layer], {group: (q, k) for group, q, k in fits}, masks[layer])
    model.set_attn_implementation(IMPLEMENTATION)
    progress(1.0, "converted")
    return Conversion(model, max_error, ids.shape[1], tuple(choices))


def choose(diagnosis: Diagnosis, max_error: float) -> list[HeadGroup]:
    """The groups of key-value heads that a map serves within the error, at the fewest multiply-adds."""
    groups: dict[tuple[str, int, int | None], list[int]] = {}
    for head in sorted({d.kv_head for d in diagnosis.heads}):
        best = _best(diagnosis, head, max_error)
        if best is not None:
            name = type(diagnosis.maps[best.map]).__name__
            groups.setdefault((name, best.width, best.exact_within), []).append(head)
    return [HeadGroup(tuple(heads), name, width, within) for (name, width, within), heads in groups.items()]


def _best(diagnosis: Diagnosis, kv_head: int, max_error: float) -> Measurement | None:
    """The cheapest measurement that serves all query heads of a key-value head; its error is that of the worst."""
    worst = [m for m in _worst(diagnosis, kv_head) if m.squared_error <= max_error and m.negative_share == 0]
    return min(worst, key=lambda m: (m.macs, m.squared_error), default=None)


def _worst(diagnosis: Diagnosis, kv_head: int) -> list[Measurement]:
    """For every map and window the measurement of the query head with the largest error, or one that is no use.

    A map that is no better than the mean of the values is no use, whatever its error.
    """
    heads = [head for head in diagnosis.heads if head.kv_head == kv_head]
    found = []
    for same in zip(*(head.measurements for head in heads), strict=True):
        useful = all(m.squared_error < h.mean_of_values_error for m, h in zip(same, heads, strict=True))
        worst = max(same, key=lambda m: (m.negative_share > 0, m.squared_error))
        if useful:
            found.append(worst)
    return found


def _choices(layer: str, diagnosis: Diagnosis, groups: list[HeadGroup]) -> list[HeadChoice]:
    """The report's lines of a layer."""
    kinds = {head: group for group in groups for head in group.heads}
    lines = []
    for head in sorted({d.kv_head for d in diagnosis.heads}):
        group = kinds.get(head)
        worst = _worst(diagnosis, head)
        if group is None:
            error = min((m.squared_error for m in worst), default=math.inf)
            lines.append(
                HeadChoice(layer, head, "softmax", None, None, error, diagnosis.softmax_macs, diagnosis.softmax_macs)
            )
            continue
        same = (group.features, group.within, group.map)
        one = next(m for m in worst if (m.width, m.exact_within, type(diagnosis.maps[m.map]).__name__) == same)
        lines.append(
            HeadChoice(
                layer,
                head,
                group.map,
                group.features,
                group.within,
                one.squared_error,
                one.macs,
                diagnosis.softmax_macs,
            )
        )
    return lines


def _heads_of(call: Call, group: HeadGroup) -> tuple[Tensor, Tensor]:
    """The queries and keys of a group's heads."""
    at = torch.tensor(group.heads, device=call.q.device)
    queries = call.q.unflatten(1, (call.k.shape[1], -1)).index_select(1, at).flatten(1, 2)
    return queries, call.k.index_select(1, at)


def fit_maps(
    mixed: MixedHeads, plan: LayerPlan, samples: Mapping[HeadGroup, tuple[Tensor, Tensor]], mask: Tensor | None
) -> None:
    """Fit the `Fitted` maps of a layer to queries and keys, with statistics rounded to what is saved."""
    for group, form in zip(plan.groups, mixed.forms, strict=False):
        if group in samples:
            assert isinstance(form, Linear)
            assert isinstance(form.features, Fitted)
            form.features.fit(*samples[group], mask=mask)
            restore(form.features)
