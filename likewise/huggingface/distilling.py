"""Train linear attention to stand for softmax attention in a pretrained model: learned maps, then low-rank adapters."""

import math
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from likewise.attention import Exponential, Learned
from likewise.checks import require, require_count, require_number
from likewise.files import finite, json_hash, require_place
from likewise.huggingface.converting import Conversion, HeadChoice
from likewise.huggingface.mixed import IMPLEMENTATION, HeadGroup, LayerPlan, attach
from likewise.huggingface.plugging import register
from likewise.huggingface.recording import Call, recorded, run
from likewise.networks.weights import load_tensors, save_tensors
from likewise.progress import Progress, silent

KIND = "distillation"
CHECKED = 4  # texts that choose the heads, and are not trained on
FITTED = 4  # texts whose keys the landmarks are chosen from
LEAST = 0.1  # how much a key without attention counts there, beside the mean of all keys


@dataclass(frozen=True)
class DistillSettings:
    """What is trained, and for how long; one step is one text.

    share: of the key-value heads that become linear, those with the smallest error after the maps were learned.
    exact_within: pairs less than so many positions apart keep the kernel itself. rows: query rows of each text that the
    maps learn from. rank: of the adapters on the linear layers inside attention; they are added to the weights at
    the end. rates: of Adam, for maps and for adapters; they fall to a tenth along a half cosine.
    """

    share: float = 1.0
    num_features: int = 64
    exact_within: int = 64
    transfer_steps: int = 200
    adapter_steps: int = 200
    rank: int = 8
    rows: int = 256
    rows_at_once: int = 128
    map_rate: float = 2e-3
    adapter_rate: float = 5e-4
    seed: int = 0

    def __post_init__(self) -> None:
        where = "DistillSettings"
        require(0 < self.share <= 1, where, "share", "be above 0 and at most 1", self.share)
        for name in ("num_features", "exact_within", "rank", "rows", "rows_at_once"):
            require_count(where, name, getattr(self, name))
        for name in ("transfer_steps", "adapter_steps", "seed"):
            require_count(where, name, getattr(self, name), least=0)
        for name in ("map_rate", "adapter_rate"):
            require_number(where, name, getattr(self, name))


@dataclass(frozen=True)
class Distillation(Conversion):
    """A converted model, the error of every head, and the losses on the way: of the maps and of the adapters.

    transfer_losses: mean over heads of KL(softmax weights, linear weights), by step. adapter_losses: KL of the
    next-token distributions of the model before and after; of models without them, the relative squared error of the
    last hidden states.
    """

    transfer_losses: tuple[float, ...] = ()
    adapter_losses: tuple[float, ...] = ()

    def to_json(self) -> dict[str, Any]:
        losses = {"transfer_losses": self.transfer_losses, "adapter_losses": self.adapter_losses}
        return super().to_json() | finite(losses)


def distill(
    model: PreTrainedModel,
    texts: Sequence[Tensor],
    *,
    settings: DistillSettings | None = None,
    out: Path | str | None = None,
    every: int = 50,
    resume: bool = False,
    progress: Progress = silent,
) -> Distillation:
    """Replace softmax attention, in place, by learned linear attention beside an exact window, and train it on texts.

    First every layer learns on its own (attention transfer): its maps are fitted to the first text, then trained so
    that their weights have a small KL divergence from softmax's, on the inputs that the model itself gives. Of all
    key-value heads the `share` with the smallest error on texts left aside becomes linear. Then adapters and maps are
    trained together so that the model's output stays what it was before (`Distillation`).

    texts: token ids (T,) of each, as the model takes them, at least 5; the last 4 are not trained on. out: a file for
    checkpoints, written after every so many steps; `resume` goes on from it, to the same weights as without a break.
    The batches are single texts: nothing is padded.

    Paper: attention transfer, Hedgehog, arXiv 2402.04347; adapters after it, LoLCATs, arXiv 2410.10254.
    """
    where = "distill"
    settings = settings or DistillSettings()
    require(len(texts) > CHECKED, where, "texts", f"be more than {CHECKED}", len(texts))
    for number, text in enumerate(texts):
        right = isinstance(text, Tensor) and text.dim() == 1 and not text.is_floating_point() and len(text) > 1
        require(right, where, f"texts[{number}]", "be token ids (T,), at least 2", repr(text)[:60])
    require_count(where, "every", every)
    require(not resume or out is not None, where, "out", "name a checkpoint to resume", "None")
    if out is not None:
        require_place(where, Path(out))
    register()
    model.eval()
    learning = [parameter for parameter in model.parameters() if parameter.requires_grad]
    model.requires_grad_(False)
    run_ = _Run(model, texts, settings, None if out is None else Path(out), every, progress)
    try:
        run_.begin(resume=resume)
        run_.transfer()
        run_.adapt()
        return run_.finish()
    finally:
        for parameter in learning:
            parameter.requires_grad_(True)


class _Run:
    """The state of one distillation."""

    def __init__(
        self,
        model: PreTrainedModel,
        texts: Sequence[Tensor],
        settings: DistillSettings,
        out: Path | None,
        every: int,
        progress: Progress,
    ) -> None:
        self.model, self.settings, self.out, self.every, self.progress = model, settings, out, every, progress
        self.train, self.aside = texts[:-CHECKED], texts[-CHECKED:]
        self.before = model.config._attn_implementation
        self.maps: dict[str, Learned] = {}
        self.scales: dict[str, float] = {}
        self.adapters: dict[str, _Adapter] = {}
        self.plans: dict[str, LayerPlan] = {}
        self.errors: dict[str, Tensor] = {}
        self.losses: dict[str, list[float]] = {"transfer": [], "adapt": []}
        self.phase, self.step = "transfer", 0
        self.optimizer: torch.optim.Optimizer | None = None

    # What a run is made of, for checkpoints.

    def facts(self) -> dict[str, Any]:
        """What must be the same for a checkpoint to go on."""
        lengths = [len(text) for text in self.train]
        sums = [int(text.long().sum()) for text in self.train]
        return {"settings": asdict(self.settings), "texts": json_hash([lengths, sums])}

    def begin(self, *, resume: bool) -> None:
        """Make maps with landmarks among the keys of the first texts, or take all from the checkpoint."""
        calls: dict[str, list[Call]] = {}
        with torch.no_grad(), recorded(self.model, lambda call: calls.setdefault(call.layer, []).append(call)):
            for text in self.train[: 1 if resume else FITTED]:
                run(self.model.base_model, text[None])
        for number, (layer, same) in enumerate(calls.items()):
            generator = torch.Generator().manual_seed(self.settings.seed * 1000 + number)
            first, self.scales[layer] = same[0], same[0].scale
            features = Learned(
                first.k.shape[3],
                num_features=self.settings.num_features,
                scale=first.scale,
                kv_heads=first.k.shape[1],
                generator=generator,
            )
            if not resume:
                q, k = (torch.cat([getattr(call, name) for call in same], dim=2) for name in "qk")
                counts = torch.cat([attention_received(call, self.settings.exact_within) for call in same], dim=2)
                features.fit(q, k, counts=counts / counts.mean() + LEAST, generator=generator)
            self.maps[layer] = features
        if resume:
            self._load()

    def _load(self) -> None:
        assert self.out is not None
        tensors, facts = load_tensors(self.out, kind=KIND)
        require(facts["run"] == self.facts(), "distill", "out", "be of the same texts and settings", str(self.out))
        self.losses, self.phase, self.step = facts["losses"], facts["phase"], facts["step"]
        if self.phase == "adapt":
            self.errors = {layer: tensors[f"errors/{layer}"] for layer in self.maps}
            self._attach()
        with torch.no_grad():
            for name, parameter in self._named().items():
                parameter.copy_(tensors[f"weights/{name}"])
        self._restored = {key: value for key, value in tensors.items() if key.startswith("optimizer/")}

    def _save(self) -> None:
        if self.out is None or self.step % self.every:
            return
        named = self._named()
        tensors: dict[str, Tensor] = {f"weights/{name}": parameter for name, parameter in named.items()}
        tensors |= {f"errors/{layer}": error for layer, error in self.errors.items()}
        assert self.optimizer is not None
        for name, parameter in named.items():
            for key, value in self.optimizer.state[parameter].items():
                tensors[f"optimizer/{name}/{key}"] = torch.as_tensor(value)
        facts = {"kind": KIND, "run": self.facts(), "losses": self.losses, "phase": self.phase, "step": self.step}
        save_tensors(self.out, tensors, facts)

    def _named(self) -> dict[str, nn.Parameter]:
        """Every parameter that is trained in this phase."""
        named = {}
        if self.phase == "transfer":
            for layer, features in self.maps.items():
                named |= {f"{layer}.{name}": parameter for name, parameter in features.named_parameters()}
            return named
        for name, adapter in self.adapters.items():
            named |= {f"{name}.down": adapter.down, f"{name}.up": adapter.up}
        for layer in self.plans:
            mixed = self.model.get_submodule(layer).get_submodule("likewise")
            named |= {f"{layer}.likewise.{name}": parameter for name, parameter in mixed.named_parameters()}
        return named

    def _start(self, groups: list[dict[str, Any]], steps: int) -> Callable[[int], None]:
        """The optimizer of a phase, as it was at the checkpoint; what sets its rates before a step."""
        self.optimizer = torch.optim.Adam(groups)
        restored, self._restored = getattr(self, "_restored", {}), {}
        for name, parameter in self._named().items() if restored else ():
            prefix = f"optimizer/{name}/"
            state = {key.removeprefix(prefix): value for key, value in restored.items() if key.startswith(prefix)}
            if state:
                self.optimizer.state[parameter] = state
        rates = [group["lr"] for group in groups]

        def set_rates(step: int) -> None:
            assert self.optimizer is not None
            factor = 0.55 + 0.45 * math.cos(math.pi * step / max(1, steps))
            for group, rate in zip(self.optimizer.param_groups, rates, strict=True):
                group["lr"] = rate * factor

        return set_rates

    def _steps(self, steps: int, doing: str, begin: float, end: float) -> Iterator[Tensor]:
        """The texts of the steps that are left, in an order drawn anew for each pass over them."""
        while self.step < steps:
            epoch, at = divmod(self.step, len(self.train))
            order = torch.randperm(len(self.train), generator=torch.Generator().manual_seed(self.settings.seed + epoch))
            yield self.train[int(order[at])]
            self.step += 1
            self._save()
            self.progress(begin + (end - begin) * self.step / steps, doing)

    # Attention transfer.

    def transfer(self) -> None:
        """Train the maps, layer by layer, on the model's own queries and keys."""
        if self.phase != "transfer":
            return
        settings = self.settings
        parameters = [p for features in self.maps.values() for p in features.parameters()]
        set_rates = self._start([{"params": parameters, "lr": settings.map_rate}], settings.transfer_steps)
        assert self.optimizer is not None
        for text in self._steps(settings.transfer_steps, "attention transfer", 0.0, 0.5):
            set_rates(self.step)
            calls: list[Call] = []
            with torch.no_grad(), recorded(self.model, calls.append):
                run(self.model.base_model, text[None])
            generator = torch.Generator().manual_seed(settings.seed * 1_000_003 + self.step)
            order = torch.randperm(len(text), generator=generator)
            far = order[order >= settings.exact_within] if calls[0].structure.causal else order
            losses: list[Tensor] = []
            for rows in (far if len(far) else order)[: settings.rows].split(settings.rows_at_once):
                self.optimizer.zero_grad()
                for call in calls:
                    features = self.maps[call.layer]
                    loss = transfer_loss(features, call, rows, settings.exact_within)
                    loss.sum().backward()
                    nn.utils.clip_grad_norm_(features.parameters(), 1.0)
                    losses.append(loss.detach())
                self.optimizer.step()
            self.losses["transfer"].append(float(torch.cat(losses).mean()))
        self._measure()
        self.phase, self.step, self._restored = "adapt", 0, {}
        self._attach()

    def _measure(self) -> None:
        """The error of every key-value head, that of its worst query head, as the mean over the texts left aside."""
        totals: dict[str, Tensor] = {}

        def look(call: Call) -> None:
            log = log_weights(self.maps[call.layer], call, torch.arange(call.q.shape[2]), self.settings.exact_within)
            values = call.v.float().repeat_interleave(call.q.shape[1] // call.v.shape[1], dim=1)
            difference = (log.softmax(-1) @ values - call.out.float()).square().sum((0, 2, 3))
            error = difference / call.out.float().square().sum((0, 2, 3))
            worst = error.unflatten(0, (call.k.shape[1], -1)).amax(dim=1)
            totals[call.layer] = totals.get(call.layer, torch.zeros_like(worst)) + worst / len(self.aside)

        with torch.no_grad(), recorded(self.model, look):
            for text in self.aside:
                run(self.model.base_model, text[None])
        self.errors = totals

    def _attach(self) -> None:
        """Put the maps of the heads with the smallest errors into the model."""
        every = torch.cat([self.errors[layer] for layer in self.maps])
        count = max(1, round(self.settings.share * len(every)))
        limit = every.sort().values[count - 1]
        for layer, features in self.maps.items():
            heads = tuple((self.errors[layer] <= limit).nonzero().flatten().tolist())
            group = HeadGroup(heads, "Learned", self.settings.num_features, self.settings.exact_within)
            key_dim = features.key_dim or 0
            plan = LayerPlan(len(self.errors[layer]), key_dim, self.scales[layer], (group,) if heads else ())
            self.plans[layer] = plan
        attach(self.model, self.plans)
        with torch.no_grad():
            for layer, plan in self.plans.items():
                if plan.groups:
                    at = torch.tensor(plan.groups[0].heads)
                    target = self.model.get_submodule(layer).get_submodule("likewise.forms.0.features")
                    for name, parameter in target.named_parameters():
                        parameter.copy_(getattr(self.maps[layer], name)[at])
        self._adapt_layers()

    # Adapters.

    def _adapt_layers(self) -> None:
        generator = torch.Generator().manual_seed(self.settings.seed)
        for layer in self.plans:
            for name, module in self.model.get_submodule(layer).named_modules():
                if isinstance(module, nn.Linear):
                    self.adapters[f"{layer}.{name}"] = _Adapter(module, self.settings.rank, generator)

    def adapt(self) -> None:
        """Train adapters and maps so that the output stays that of softmax attention."""
        settings = self.settings
        if settings.adapter_steps == 0:
            return
        for parameter in self._named().values():
            parameter.requires_grad_(True)
        down_up = [p for adapter in self.adapters.values() for p in (adapter.down, adapter.up)]
        maps = [p for name, p in self._named().items() if ".likewise." in name]
        groups = [{"params": down_up, "lr": settings.adapter_rate}, {"params": maps, "lr": settings.map_rate / 10}]
        set_rates = self._start([group for group in groups if group["params"]], settings.adapter_steps)
        assert self.optimizer is not None
        for text in self._steps(settings.adapter_steps, "adapters", 0.5, 1.0):
            set_rates(self.step)
            with torch.no_grad(), self._as_before():
                target = run(self.model, text[None])
            with self._adapted():
                loss = output_loss(run(self.model, text[None]), target)
            self.optimizer.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_([*down_up, *maps], 1.0)
            self.optimizer.step()
            self.losses["adapt"].append(float(loss.detach()))

    @contextmanager
    def _as_before(self) -> Generator[None]:
        """The model without adapters, with its own attention."""
        self.model.set_attn_implementation(self.before)
        yield
        self.model.set_attn_implementation(IMPLEMENTATION)

    @contextmanager
    def _adapted(self) -> Generator[None]:
        self.model.set_attn_implementation(IMPLEMENTATION)
        for adapter in self.adapters.values():
            adapter.on = True
        yield
        for adapter in self.adapters.values():
            adapter.on = False

    def finish(self) -> Distillation:
        """The model with the adapters in its weights."""
        for adapter in self.adapters.values():
            adapter.merge()
        self.model.set_attn_implementation(IMPLEMENTATION)
        for module in self.model.modules():
            if isinstance(module, Learned):
                module.requires_grad_(True)
        self.progress(1.0, "distilled")
        positions = max(len(text) for text in self.aside)
        choices, largest = [], 0.0
        for layer, plan in self.plans.items():
            linear = plan.groups[0].heads if plan.groups else ()
            values = plan.key_dim
            window = 2 * plan.key_dim * self.settings.exact_within
            macs = 2 * self.settings.num_features * (plan.key_dim + values + 1) + window
            softmax = positions * plan.key_dim
            for head, error in enumerate(self.errors[layer].tolist()):
                if head in linear:
                    largest = max(largest, error)
                    features, within = self.settings.num_features, self.settings.exact_within
                    choices.append(HeadChoice(layer, head, "Learned", features, within, error, macs, softmax))
                else:
                    choices.append(HeadChoice(layer, head, "softmax", None, None, error, softmax, softmax))
        losses = tuple(self.losses["transfer"]), tuple(self.losses["adapt"])
        return Distillation(self.model, largest, positions, tuple(choices), *losses)


class _Adapter:
    """y + up down x behind a linear layer: LoRA, arXiv 2106.09685, kept outside the model until it is merged."""

    def __init__(self, linear: nn.Linear, rank: int, generator: torch.Generator) -> None:
        self.linear, self.on = linear, False
        drawn = torch.randn(rank, linear.in_features, generator=generator) / math.sqrt(linear.in_features)
        self.down = nn.Parameter(drawn.to(linear.weight.dtype))
        self.up = nn.Parameter(torch.zeros(linear.out_features, rank, dtype=linear.weight.dtype))
        self.hook = linear.register_forward_hook(self._add)

    def _add(self, module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> Tensor:
        return output + inputs[0] @ self.down.mT @ self.up.mT if self.on else output

    @torch.no_grad()
    def merge(self) -> None:
        """Add the product to the weight, and stop."""
        self.hook.remove()
        self.linear.weight += self.up @ self.down


def attention_received(call: Call, within: int) -> Tensor:
    """The softmax attention that each key gets from query rows outside the window, of a sample of them, (B, G, S)."""
    rows = torch.arange(0, call.q.shape[2], 8)
    k = call.k.float().repeat_interleave(call.q.shape[1] // call.k.shape[1], dim=1)
    logits = call.scale * (call.q[:, :, rows].float() @ k.mT)
    at, positions = rows[:, None] + (k.shape[2] - call.q.shape[2]), torch.arange(k.shape[2])
    if call.structure.causal:
        logits = logits.masked_fill(positions > at, -torch.inf)
    weights = logits.softmax(-1) * ((at - positions).abs() >= within)
    return weights.sum(2).unflatten(1, (call.k.shape[1], -1)).sum(2)


def log_weights(features: Learned, call: Call, rows: Tensor, within: int) -> Tensor:
    """Logarithms of the similarities of these query rows with all keys, -inf where they do not see them, (B, H, n, S).

    Pairs within the window have the kernel's; the plain form of `linear_attention(..., exact_within=within)`.
    """
    q, k = call.q[:, :, rows].float(), call.k.float()
    repeats = q.shape[1] // k.shape[1]
    queries, keys = features.split_queries(q).log, features.split_keys(k).log
    assert queries is not None
    assert keys is not None
    top = keys.detach().amax(dim=2, keepdim=True)  # of every feature: exponentials stay at most 1
    queries, keys = queries + top.repeat_interleave(repeats, dim=1), keys - top
    peak = queries.detach().amax(dim=-1, keepdim=True)
    products = (queries - peak).exp() @ keys.exp().repeat_interleave(repeats, dim=1).mT
    far = products.clamp(min=1e-30).log() + peak
    kernel = features.kernel
    assert isinstance(kernel, Exponential)
    near = kernel.log(q, k.repeat_interleave(repeats, dim=1))
    at, positions = rows[:, None] + (k.shape[2] - call.q.shape[2]), torch.arange(k.shape[2])
    joined = torch.where((at - positions).abs() < within, near, far)
    return joined.masked_fill(positions > at, -torch.inf) if call.structure.causal else joined


def transfer_loss(features: Learned, call: Call, rows: Tensor, within: int) -> Tensor:
    """KL(softmax weights, linear weights), the mean over rows, of every query head, (H,)."""
    ours = log_weights(features, call, rows, within).log_softmax(dim=-1)
    k = call.k.float().repeat_interleave(call.q.shape[1] // call.k.shape[1], dim=1)
    logits = call.scale * (call.q[:, :, rows].float() @ k.mT)
    logits = logits.masked_fill(ours == -torch.inf, -torch.inf)
    target = logits.log_softmax(dim=-1)
    terms = (target.exp() * (target - ours)).masked_fill(ours == -torch.inf, 0)
    return terms.sum(-1).mean(dim=(0, 2))


def output_loss(outputs: Any, target: Any) -> Tensor:
    """KL of the distributions that logits give; of a model without logits the squared error of its hidden states."""
    logits, wanted = getattr(outputs, "logits", None), getattr(target, "logits", None)
    if logits is None or wanted is None:
        ours, theirs = outputs.last_hidden_state, target.last_hidden_state
        return (ours - theirs).square().sum() / theirs.square().sum()
    ours, theirs = logits.float().log_softmax(-1), wanted.float().log_softmax(-1)
    return functional.kl_div(ours, theirs, reduction="none", log_target=True).sum(-1).mean()
