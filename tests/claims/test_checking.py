"""From texts to verdicts: seeds, budgets, places, what a caller registered."""

from collections.abc import Callable, Generator
from typing import Any

import pytest

from likewise.claims import ClaimSource, R, check, check_claims, check_document, checking, engines, register, worker
from likewise.claims.language.claim import Claim
from likewise.claims.language.parser import parse
from likewise.claims.registry import programs


@pytest.fixture
def squaring() -> Generator[None]:
    def matrices(n: int) -> tuple:
        import torch

        return (torch.empty(n, n),)

    register("mine.square", lambda x: x @ x, matrices)
    yield
    del programs()["mine.square"]


@pytest.mark.usefixtures("squaring")
def test_a_program_of_the_caller_is_counted() -> None:
    claims = [
        "of: mine.square\nsizes: n\nunit: mac\nassert: cost == n^3",
        "sizes: n\nunit: mac\nassert: cost(mine.square) <= n^2",
    ]
    first, second, third = check_claims(
        [ClaimSource(str(i), text) for i, text in enumerate([*claims, "assert: 1 == 1"])]
    )
    assert str(first) == "holds  0  n^3 mac  [counted, 4+4 runs]"
    assert second.verdict == "refuted"
    assert third.verdict == "holds"


def test_a_program_that_nobody_registered_is_unknown() -> None:
    detail = check("of: mine.square\nsizes: n\nunit: mac\nassert: cost == n^3").detail
    assert detail == "unknown program mine.square; --allow-code counts a function of your own file"


def test_given_declares_variables() -> None:
    assert str(R) == "R"
    found = check("dot(q, k) == dot(k, q) + sum(x)*0", given={"q": R["D"], "k": R["D"], "x": R["N", "D"]})
    assert found.statement.startswith("given: q in R^D; k in R^D; x in R^(N, D)")
    assert found.verdict == "holds"


def test_a_seed_belongs_to_the_claim_and_to_the_caller() -> None:
    first, again, other, edited = check("1 == 1"), check("1 == 1"), check("1 == 1", seed=1), check("1 == 1.0")
    assert first.seed == again.seed == edited.seed != other.seed
    assert check("assert: 1 == 1\nseed: 7", seed=3).seed == 7


def test_a_verdict_says_what_it_was_made_with() -> None:
    found = check("assert: 2^(1/2) < 1.5\nbudget: 3s", budget=2.0)
    assert found.budget == 2.0
    assert {"likewise", "python"} <= dict(found.versions).keys()
    assert found.to_json()["versions"] == dict(found.versions)
    assert found.seconds >= 0


def test_the_caller_is_the_ceiling_of_a_budget() -> None:
    assert check("assert: 1 == 1\nbudget: 500s").budget == checking.CEILING
    assert check("assert: 1 == 1\nbudget: 500s", budget=100.0).budget == 100.0


@pytest.mark.slow
def test_a_search_that_finds_nothing_does_not_hold() -> None:
    found = check(
        "given: x in R^n\nassert: prod(1 + exp(x))*prod(1 + exp(-x)) == prod(2 + exp(x) + exp(-x))\nbudget: 4"
    )
    assert "no counterexample at 8 points" in found.detail
    assert (found.verdict, found.grade, found.mark) == ("inconclusive", "searched", "~")
    assert (found.outcome, found.as_expected) == ("open", False)


@pytest.mark.parametrize("answer", [{}, {"finding": None}, {"finding": {"verdict": "maybe"}}])
def test_an_answer_of_another_form_is_no_verdict(answer: dict, monkeypatch: pytest.MonkeyPatch) -> None:
    class Odd:
        def ask_all(self, questions, answered, *, seconds, gone) -> None:
            answered(0, answer)

    monkeypatch.setattr(checking, "shared_pool", Odd)
    found = check("1 == 1")
    assert (found.verdict, found.detail) == ("inconclusive", "its worker's answer was not understood")


def test_a_text_that_is_kept_unread_on_purpose_passes() -> None:
    assert check("assert: sin_softmax(1) > 0\nexpect: malformed").as_expected
    for expect in ("inconclusive", "refuted", "holds", "malformd"):
        assert check(f"assert: sin_softmax(1) > 0\nexpect: {expect}").outcome == "malformed"
    assert check("assert: 1 == 1\nexpect: malformed").outcome == "fails"


def test_a_malformed_claim_has_a_place_and_a_name() -> None:
    found = check("givn: q in R\nassert: q == q", id="typo")
    assert str(found) == "malformed  typo  line 1, column 1: unknown field 'givn'; did you mean given?"
    assert (found.place, found.nearest, found.mark, found.outcome) == ((1, 1), "given", "!", "malformed")
    data = found.to_json()
    assert (data["schema"], data["place"], data["nearest"], data["outcome"]) == (1, [1, 1], "given", "malformed")


def test_the_place_is_one_of_the_text_that_was_given() -> None:
    assert check("dot(q, qq) == 1", given={"q": R["D"]}).place == (1, 8)
    assert check("assert: dot(q, qq) == 1", given={"q": R["D"]}).place == (1, 16)
    assert check("x == 1").place == (1, 1)


def test_what_is_too_large_is_inconclusive() -> None:
    found = check(f"{'9' * 65} > 1")
    assert (found.verdict, found.grade, found.place) == ("inconclusive", "undecided", None)


def test_a_document_without_a_claim_is_no_pass() -> None:
    [found] = check_document("# Text\n\n```python\nassert 1 == 1\n```\n")
    assert (found.verdict, found.outcome) == ("inconclusive", "open")
    assert found.detail == "nothing to check: there is no claim"


def test_wrong_options_are_refused() -> None:
    with pytest.raises(ValueError, match="check: seed must be a whole number of at least 0; got -1"):
        check("1 == 1", seed=-1)
    with pytest.raises(ValueError, match="check: budget must be a number of seconds above 0; got 0"):
        check("1 == 1", budget=0)


@pytest.mark.parametrize(
    ("text", "link", "part"),
    [
        ("assert: 1 == 1 == 2", 2, "1 == 2 fails: 1 != 2"),
        ("assert: 3 < 2 < 4", 1, "3 < 2 fails: 3 >= 2"),
        ("given: x, y in R\nassert: x + y == y + x == x - y", 2, "y + x == x - y fails: x=0 y=1: 1 != -1"),
        ("given: x in R\nassume: x > 0\nassert: 0 < x < 2*x < x + 1", 3, "2*x < x + 1 fails: x=1: 2 >= 2"),
        ("sizes: N\nassert: N <= N^2 <= 4*N", 2, "N^2 <= 4*N fails: N=5: 25 > 20"),
    ],
)
def test_a_refuted_chain_names_the_comparison_that_fails(text: str, link: int, part: str) -> None:
    found = check(text)
    assert (found.verdict, found.link) == ("refuted", link)
    assert found.detail.startswith(part)
    assert found.to_json()["link"] == link


def test_a_single_comparison_has_no_link() -> None:
    assert check("assert: 1 == 2").link == 0


def test_each_claim_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []

    def counting(text: str, *, id: str) -> Claim:
        parsed.append(text)
        return parse(text, id=id)

    class InProcess:
        """A pool whose worker is this process."""

        def ask_all(
            self,
            questions: list[Any],
            answered: Callable[[int, Any], None],
            *,
            seconds: float,
            gone: Any,
        ) -> None:
            for place, (_, question, _) in enumerate(questions):
                answered(place, worker.answer(question))

    monkeypatch.setattr("likewise.claims.language.parser.parse", counting)
    monkeypatch.setattr(checking, "parse", counting)
    monkeypatch.setattr(checking, "shared_pool", InProcess)
    assert check("assert: 1 == 1").verdict == "holds"
    assert parsed == ["assert: 1 == 1"]
    assert not any(hasattr(module, "parse") for module in (worker, engines))


def test_a_misspelt_program_is_malformed_and_named() -> None:
    verdict = check("sizes: N, D, M\nof: attention.sofmax\nassert: cost in O(N^2*D)")
    assert (verdict.verdict, verdict.nearest, verdict.place) == ("malformed", "attention.softmax", (2, 5))
    assert verdict.detail == "line 2, column 5: unknown program attention.sofmax; did you mean attention.softmax?"


def test_a_point_of_the_judge_is_shown_with_both_sides_in_numbers() -> None:
    """The shapes refute it (D = 1 is impossible beside a value of three entries); the judge gives the point."""
    given = "given: k in R^D\nq = [1, 1, 2]\nphi(x) = [1, sqrt(2)*x, x*x]\n"
    claim = given + "assert: dot(phi(q), phi(k)) == (dot(q, k) + 1)^2"
    assert check(claim).detail == "D=3 k=(1,1,1): 15 != 25"
