"""The study of real attention: what is judged is never learned from, and the same seed gives the same."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import Generator

from likewise.attention import Exponential, Kernel, Positive, Structure, kernel_attention, softmax_attention
from likewise.networks import ByteModel, capture
from likewise.networks.attends import Captured
from likewise.tour import combinations as offered
from likewise.tour.combinations import BASELINE, MEAN, NOTHING, Mean, Window, combinations, linear
from likewise.tour.learning import Recipe, bits_per_byte, digit_images, docstrings, learn_text, library_text
from likewise.tour.real_attention import (
    Outcome,
    RealAttention,
    Subject,
    Trained,
    head_errors,
    logit_sds,
    measure_real_attention,
    replace_softmax,
)
from tests.tolerance import assert_close
from tests.tour.plans import TINY as SMALL


def files(folder: Path, count: int) -> Path:
    for number in range(count):
        (folder / f"m{number:02}.py").write_text(f'"""Module {number} of several."""\nraise SystemExit("run")\n')
    return folder


@pytest.fixture(scope="module")
def small(tmp_path_factory: pytest.TempPathFactory) -> RealAttention:
    return measured(tmp_path_factory.mktemp("library"))


def measured(folder: Path, progress: list[float] | None = None) -> RealAttention:
    text = library_text(files(folder, 23))
    seen = [] if progress is None else progress
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("likewise.tour.real_attention.library_text", lambda: text)
        return measure_real_attention(plan=SMALL, seed=3, progress=lambda done, doing: seen.append(done))


def layer(*, causal: bool) -> Captured:
    q, k, v = torch.randn(3, 2, 3, 11, 5, generator=Generator().manual_seed(0), dtype=torch.float64)
    return Captured(q, k, v, Structure(causal=causal))


def test_docstrings_are_read_and_never_run(tmp_path: Path) -> None:
    text = library_text(files(tmp_path, 3))
    assert bytes(text.test.tolist()).decode() == "Module 0 of several."
    assert bytes(text.train.tolist()).decode() == "Module 1 of several.\n\nModule 2 of several."


def test_text_is_held_out_by_file(tmp_path: Path) -> None:
    text = library_text(files(tmp_path, 23))
    held_out = bytes(text.test.tolist()).decode().split("\n\n")
    assert held_out == [f"Module {number} of several." for number in (0, 10, 20)]
    assert not set(held_out) & set(bytes(text.train.tolist()).decode().split("\n\n"))
    assert text.files == 23


def test_foreign_and_undocumented_files_are_left_out(tmp_path: Path) -> None:
    for folder in ("site-packages", "test", "own"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.py").write_text(f'"""From {folder}."""')
    (tmp_path / "bare.py").write_text("x = 1")
    (tmp_path / "broken.py").write_text('"""Broken."""\n(')
    assert library_text(files(tmp_path, 2)).files == 3
    assert docstrings("(") == ""


@pytest.mark.full
def test_python_has_enough_to_say() -> None:
    text = library_text()
    assert min(len(text.train), len(text.test)) > 50_000
    assert b"Return" in bytes(text.test.tolist())


def test_too_little_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="library_text: folder must hold two documented Python files or more; got 1"):
        library_text(files(tmp_path, 1))


def test_images_are_held_out() -> None:
    images = digit_images(held_out=17, generator=Generator().manual_seed(0))
    assert len(images.test) == len(images.test_labels) == 17
    assert len(images.train) + 17 == 1797
    assert (images.train.min(), images.train.max()) == (-1, 1)
    with pytest.raises(ValueError, match="digit_images: held_out must be below the number of images, 1797; got 1797"):
        digit_images(held_out=1797, generator=Generator())


def test_a_model_that_knows_nothing_needs_eight_bits() -> None:
    text = torch.randint(256, (2, 8), generator=Generator().manual_seed(0))
    model = ByteModel(context=7, dim=4, num_layers=1, num_heads=1)
    for weight in model.parameters():
        weight.data.zero_()
    assert bits_per_byte(model, text) == pytest.approx(8.0)


def test_training_lowers_the_bits_and_leaves_the_global_generator_alone() -> None:
    text, before = torch.tensor(list(b"likewise ") * 30), torch.get_rng_state()
    bits = []
    for steps in (1, 30):
        recipe = Recipe(num_layers=1, num_heads=1, dim=8, steps=steps, batch=3, rate=1e-2)
        bits.append(bits_per_byte(learn_text(text, context=9, recipe=recipe, seed=0), text[None, :10]))
    assert bits[1] < bits[0] - 1
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("causal", [False, True])
def test_the_mean_is_the_mean_of_what_a_row_sees(causal: bool) -> None:
    q, k, v, structure = layer(causal=causal)
    counts = torch.arange(1, 12, dtype=v.dtype)[:, None]
    expected = v.cumsum(2) / counts if causal else v.mean(2, keepdim=True).expand_as(v)
    assert_close(Mean().attend(q, k, v, structure), expected, atol=1e-12)


@pytest.mark.parametrize("causal", [False, True])
def test_a_window_sees_what_is_near(causal: bool) -> None:
    q, k, v, structure = layer(causal=causal)
    place = torch.arange(11)
    near = ((place[:, None] - place).abs() < 3)[None, None]
    expected = kernel_attention(q, k, v, kernel=Exponential(), causal=causal, mask=near)
    assert_close(Window(3).attend(q, k, v, structure), expected, atol=1e-12)


def test_softmax_itself_has_no_error_and_each_head_its_own() -> None:
    given = layer(causal=True)
    assert head_errors(Kernel(Exponential()), given) == pytest.approx([0.0] * 3, abs=1e-20)
    out, target = Mean().attend(*given), softmax_attention(*given[:3], causal=True)
    expected = [((out - target)[:, h].norm() / target[:, h].norm()).item() ** 2 for h in range(3)]
    assert head_errors(Mean(), given) == pytest.approx(expected)


def test_the_spread_of_logits_is_that_of_pairs_that_see_each_other() -> None:
    given = layer(causal=True)
    pairs = [(q @ k / 5**0.5).item() for b in range(2) for i in range(11) for q in given.q[b, 1, i : i + 1]
             for k in given.k[b, 1, : i + 1]]  # fmt: skip
    assert logit_sds(given)[1] == pytest.approx(torch.tensor(pairs).std().item(), rel=1e-5)


@pytest.mark.slow
def test_everything_offered_is_tried_alone_and_near(small: RealAttention) -> None:
    assert small.text.withins == (0, 3, 7)
    assert small.images.withins == (0, 5)
    for subject in small.subjects:
        for name in offered.MAPS:
            assert all(subject.of(name, width, within) for width in SMALL.widths for within in subject.withins)
        assert all(subject.of(NOTHING, 0, within) for within in subject.withins[1:])
        taylor = [each for each in subject.outcomes if each.map == "Taylor"]
        assert [each.width for each in taylor] == [21]  # 1 + 5 + 5 6 / 2
        assert subject.baseline(taylor[0]).width == 21
        assert subject.of(MEAN, 0)
        assert len({each.name for each in subject.outcomes}) == len(subject.outcomes)


def test_wide_maps_are_not_offered() -> None:
    assert "Taylor" not in {each.map for each in combinations(32, (64,), ())}


def test_every_head_has_an_error(small: RealAttention) -> None:
    for subject in small.subjects:
        heads = subject.layers * subject.heads
        assert len(subject.logit_sds) == heads
        assert all(len(each.errors) == heads and min(each.errors) >= 0 for each in subject.outcomes)


@pytest.mark.parametrize("causal", [False, True])
def test_exact_weights_over_everything_are_softmax(causal: bool) -> None:
    features = Positive(5, num_features=7, generator=Generator().manual_seed(1))
    errors = {within: head_errors(linear(features, within), layer(causal=causal)) for within in (0, 10, 11)}
    assert errors[11] == pytest.approx([0.0] * 3, abs=1e-20)
    assert min(errors[0]) > min(errors[10]) > 0


@pytest.mark.full
def test_the_same_seed_gives_the_same_numbers(small: RealAttention, tmp_path: Path) -> None:
    seen: list[float] = []
    again = measured(tmp_path, seen)
    for one, other in zip(small.subjects, again.subjects, strict=True):
        assert replace(one, training_seconds=0.0) == replace(other, training_seconds=0.0)
    assert seen == sorted(seen)
    assert (seen[0], seen[-1]) == (0.0, 1.0)


def test_maps_are_fitted_on_training_data_only(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    recipe = Recipe(num_layers=1, num_heads=2, dim=10, steps=1, batch=1, rate=1e-3)
    text = torch.arange(60) % 7
    model = learn_text(text, context=13, recipe=recipe, seed=0)
    known, unknown = text[None, :13], text[None, 20:33]
    given: list[Captured] = []

    def make(seen: Captured, width: int, generator: Generator) -> offered.FeatureMap:
        given.append(seen)
        return offered.Positive(5, num_features=width, generator=generator)

    monkeypatch.setattr(offered, "MAPS", {"Positive": make})
    trained = Trained("", "bits per byte", model, 0.0, known, unknown, lambda model: 1.0)
    replace_softmax(trained, (), plan=SMALL, seed=0)
    assert given
    assert all(torch.equal(seen.q, capture(model, known)[0].q) for seen in given)


def outcome(map: str, width: int, within: int, error: float, score: float) -> Outcome:
    return Outcome(map, width, within, (error, 3 * error), score)


def subject(*outcomes: Outcome, scored: str = "bits per byte") -> Subject:
    return Subject("t", scored, scored != "bits per byte", 1, 2, 5, 11, 0.0, 2.0, (1.0, 1.0), outcomes)


@pytest.mark.parametrize(("error", "score", "half", "loss"), [(0.2, 2.03, True, True), (0.26, 2.05, False, False)])
def test_the_aims_are_judged_by_the_numbers(error: float, score: float, half: bool, loss: bool) -> None:
    tried = subject(
        outcome(NOTHING, 0, 9, 0.001, 9.0),
        outcome(BASELINE, 8, 0, 0.5, 3.0),
        outcome(BASELINE, 512, 0, 0.001, 2.0),
        outcome("Hyperbolic", 8, 0, 0.4, 2.5),
        outcome("Hyperbolic", 8, 9, error, score),
        outcome(BASELINE, 8, 9, 0.45, 2.0),
    )
    result = RealAttention(tried, tried, 3, 0)
    assert tried.best.name == "Hyperbolic, F = 8, exact within 9"
    assert tried.alone.name == "Hyperbolic, F = 8"
    assert tried.ratio(tried.best) == pytest.approx(error / 0.5)
    assert tried.head_ratios(tried.alone) == pytest.approx((0.8, 0.8))
    assert result.worst_near == tried.best
    assert (result.half_reached, result.loss_reached) == (half, loss)
    assert result.far_matters
    useless = replace(tried, outcomes=(outcome(NOTHING, 0, 9, 0.001, 2.0), *tried.outcomes[1:]))
    assert not RealAttention(useless, tried, 3, 0).far_matters


def test_a_map_stands_beside_its_window_alone() -> None:
    near, alone, elsewhere = (
        outcome("Elu", 5, 32, 0.1, 2.1),
        outcome(NOTHING, 0, 32, 0.1, 2.2),
        outcome(NOTHING, 0, 8, 1, 3),
    )
    far = outcome("Elu", 5, 0, 0.3, 2.4)
    network = subject(near, elsewhere, alone, far)
    assert network.window_alone(near) == alone
    assert network.window_alone(far) is None


def test_a_loss_is_positive_when_the_score_is_worse() -> None:
    assert subject().loss(outcome("", 8, 0, 0.0, 2.1)) == pytest.approx(0.05)
    assert subject(scored="read right").loss(outcome("", 8, 0, 0.0, 1.9)) == pytest.approx(0.05)


def test_a_width_of_one_is_refused() -> None:
    with pytest.raises(ValueError, match="measure_real_attention: widths must be 2 or more; got"):
        measure_real_attention(plan=replace(SMALL, widths=(1,)))
