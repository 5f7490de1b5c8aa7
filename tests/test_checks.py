"""The house's wording of an argument error."""

import re
from collections.abc import Callable

import pytest

from likewise.checks import refuse, require, require_choice, require_count
from likewise.data import Preparation
from likewise.difficulty import Taps
from likewise.exits import EarlyExit
from likewise.gallery import Gallery
from likewise.metric import IdentitySampler
from likewise.training import Cosine, Hardest, Harmonic, SemiHard, TrainingPlan


def test_refusal_says_where_what_rule_and_what_came() -> None:
    with pytest.raises(ValueError, match=r"^verb: width must be odd; got 4\.$"):
        refuse("verb", "width", "be odd", 4)


def test_refusal_ends_in_the_next_step_where_there_is_one() -> None:
    with pytest.raises(ValueError, match=r"^verb: width must be odd; got 4\. Pass width=5\.$"):
        refuse("verb", "width", "be odd", 4, "Pass width=5.")
    with pytest.raises(ValueError, match=r"^verb: width must be odd; got 4\. Pass width=5\.$"):
        require(False, "verb", "width", "be odd", 4, "Pass width=5.")


def test_requirement_refuses_only_what_breaks_it() -> None:
    require(True, "verb", "width", "be odd", 5)
    with pytest.raises(ValueError, match=r"^verb: width must be odd; got 4\.$"):
        require(False, "verb", "width", "be odd", 4)


@pytest.mark.parametrize(("value", "least"), [(1, 1), (7, 1), (2, 2), (0, 0), (10**30, 1)])
def test_whole_numbers_from_the_least_on_are_counts(value: int, least: int) -> None:
    require_count("verb", "rows", value, least=least)


@pytest.mark.parametrize(
    ("value", "least", "got"),
    [(0, 1, "0"), (-3, 1, "-3"), (1, 2, "1"), (True, 1, "True"), (2.0, 1, "2.0"), ("2", 1, "'2'"), (None, 1, "None")],
)
def test_anything_else_is_no_count(value: object, least: int, got: str) -> None:
    message = f"verb: rows must be a whole number of at least {least}; got {got}."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        require_count("verb", "rows", value, least=least)


def test_counts_start_at_1_unless_said_otherwise() -> None:
    require_count("verb", "rows", 1)
    with pytest.raises(ValueError, match=r"^verb: rows must be a whole number of at least 1; got 0\.$"):
        require_count("verb", "rows", 0)


def test_choices_are_taken() -> None:
    for choice in ("first", "last"):
        require_choice("verb", "order", choice, ("first", "last"))


@pytest.mark.parametrize(
    ("value", "got"), [("frist", "'frist'"), ("First", "'First'"), ("", "''"), (None, "None"), (0, "0")]
)
def test_anything_else_is_no_choice(value: object, got: str) -> None:
    message = f"verb: order must be one of 'first', 'last'; got {got}."
    with pytest.raises(ValueError, match=f"^{re.escape(message)}$"):
        require_choice("verb", "order", value, ("first", "last"))


@pytest.mark.parametrize(
    ("make", "given", "message"),
    [
        (Taps, {"model": 3}, "Taps: model must be a torch.nn.Module; got int."),
        (EarlyExit, {"network": "net", "heads": ["a"]}, "EarlyExit: network must be a torch.nn.Module; got str."),
        (IdentitySampler, {"labels": [0, 1]}, "IdentitySampler: labels must be a tensor of one dimension; got list."),
        (Preparation, {"size": 32}, "Preparation: size must be (rows, columns); got 32."),
        (Gallery.open, {"url": 5}, "Gallery.open: url must be a path or an address; got 5."),
        (SemiHard, {"margin": -1}, "SemiHard: margin must be a positive number; got -1."),
        (Hardest, {"margin": "wide"}, "Hardest: margin must be a positive number; got 'wide'."),
        (
            Harmonic,
            {"old": 3, "labels": 4},
            "Harmonic: old must be a matrix of vectors, with a tensor of labels; got int.",
        ),
        (Cosine, {"peak": "high"}, "Cosine: peak must be a positive number; got 'high'."),
        (TrainingPlan, {"identities": 0}, "TrainingPlan: identities must be a whole number of at least 1; got 0."),
        (TrainingPlan, {"seed": "x"}, "TrainingPlan: seed must be a whole number of at least 0; got 'x'."),
        (TrainingPlan, {"chunk": 0}, "TrainingPlan: chunk must be a whole number of at least 1; got 0."),
        (TrainingPlan, {"rate": "x"}, "TrainingPlan: rate must be a positive number; got 'x'."),
    ],
)
@pytest.mark.usefixtures("without_shape_checks")
def test_constructors_refuse_what_they_cannot_use(
    make: Callable[..., object], given: dict[str, object], message: str
) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        make(**given)
