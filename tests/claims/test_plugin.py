"""The pytest plugin: silent until it is set up, then one test for each claim."""

import subprocess
import sys

import pytest

from likewise.claims import checking
from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict

pytest_plugins = ["pytester"]

PAGE = """
```claim good
holds
```

```claim bad
refuted
```

```claim kept
refuted refuted
```

```claim open
inconclusive
```

```claim missed
holds refuted
```
"""
SETTINGS = "[pytest]\nclaims_files = *.md\n"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """Every call of check_claims, whose answers are the words of the claims."""
    made: list[list[str]] = []

    def check_claims(stated: list[ClaimSource]) -> list[Verdict]:
        made.append([each.id for each in stated])
        return [answer(each) for each in stated]

    def answer(stated: ClaimSource) -> Verdict:
        word, _, expect = stated.text.strip().partition(" ")
        made_of = {"statement": "assert: \x1b[31m", "expect": expect or None}
        return Verdict(stated.id, word, "undecided", "because \x1b[2J", **made_of)  # ty: ignore[invalid-argument-type]

    monkeypatch.setattr(checking, "check_claims", check_claims)
    return made


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_inprocess("-p", "likewise.pytest_plugin", "-p", "no:xdist", "-rs", *arguments)


def test_nothing_is_collected_until_it_is_set_up(pytester: pytest.Pytester, calls: list[list[str]]) -> None:
    pytester.makefile(".md", page=PAGE)
    run(pytester).assert_outcomes()
    assert calls == []


def test_every_claim_is_a_test(pytester: pytest.Pytester, calls: list[list[str]]) -> None:
    pytester.makefile(".md", page=PAGE)
    pytester.makeini(SETTINGS)
    result = run(pytester)
    result.assert_outcomes(passed=2, failed=2, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*_ claim bad _*",
            "*page.md:5",
            r"refuted  bad  because \x1b?2J  ?undecided?",
            r"assert: \x1b?31m",
            "*_ claim missed _*",
            r"holds  missed  because \x1b?2J  ?undecided?",
            "expected: refuted",
            r"SKIPPED * inconclusive  open  because \x1b?2J  ?undecided?",
        ]
    )
    assert "Traceback" not in result.stdout.str()
    assert "\x1b[2J" not in result.stdout.str()
    assert calls == [["good", "bad", "kept", "open", "missed"]]


@pytest.mark.usefixtures("calls")
def test_strict_lets_what_is_open_fail(pytester: pytest.Pytester) -> None:
    pytester.makefile(".md", page=PAGE)
    pytester.makeini(SETTINGS)
    run(pytester, "--claims-strict").assert_outcomes(passed=2, failed=3)


def test_only_what_is_selected_is_checked(pytester: pytest.Pytester, calls: list[list[str]]) -> None:
    pytester.makefile(".md", page=PAGE)
    pytester.makeini(SETTINGS)
    run(pytester, "-k", "good or kept").assert_outcomes(passed=2, deselected=3)
    run(pytester, "page.md::good").assert_outcomes(passed=1)
    assert calls == [["good", "kept"], ["good"]]


@pytest.mark.usefixtures("calls")
def test_files_beside_the_test_paths_are_found(pytester: pytest.Pytester) -> None:
    pytester.makefile(".md", page=PAGE)
    pytester.mkdir("tests")
    pytester.makeini(SETTINGS + "testpaths = tests\n")
    run(pytester).assert_outcomes(passed=2, failed=2, skipped=1)
    run(pytester, "tests").assert_outcomes()


@pytest.mark.usefixtures("calls")
def test_an_id_that_is_given_twice_is_two_tests(pytester: pytest.Pytester) -> None:
    pytester.makefile(".md", page="```claim a\nholds\n```\n```claim a\nholds\n```\n")
    pytester.makeini(SETTINGS)
    run(pytester, "-v").stdout.fnmatch_lines(["page.md::a PASSED*", "page.md::a@4 PASSED*"])


@pytest.mark.parametrize("glob", ["absent/*.md", "/absent.md"])
def test_a_glob_that_matches_nothing_is_refused(pytester: pytest.Pytester, glob: str) -> None:
    pytester.makeini(f"[pytest]\nclaims_files = {glob}\n")
    result = run(pytester)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: claims_files must match files below *; got {glob.replace('*', '?')}."])


def test_a_file_that_cannot_be_read_is_an_error(pytester: pytest.Pytester) -> None:
    pytester.makefile(".html", page="<p>")
    pytester.makeini("[pytest]\nclaims_files = *.html\n")
    result = run(pytester)
    result.assert_outcomes(errors=1)
    result.stdout.fnmatch_lines(["check: file must end in .md, *; got *page.html."])


def test_engines_answer(pytester: pytest.Pytester) -> None:
    pytester.makefile(".md", page="```claim late\nof: net.py:step\nassert: params == 1\n```\n")
    pytester.makeini(SETTINGS)
    result = run(pytester)
    result.assert_outcomes(skipped=1)
    result.stdout.fnmatch_lines(["SKIPPED * inconclusive  late  code claims are off; *  ?undecided?"])


def test_a_typo_is_an_error_at_its_place(pytester: pytest.Pytester) -> None:
    pytester.makefile(".md", page="- text\n\n  ```claim typo\n  givn: q in R\n  assert: q == q\n  ```\n")
    pytester.makeini(SETTINGS)
    result = run(pytester)
    result.assert_outcomes(errors=1)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(
        ["*page.md:4:3", "malformed  typo  *page.md:4:3: unknown field 'givn'; did you mean given?"]
    )
    assert "Traceback" not in result.stdout.str()


def test_a_process_of_xdist_checks_only_its_own(pytester: pytest.Pytester, calls: list[list[str]]) -> None:
    pytester.makefile(".md", page=PAGE)
    pytester.makeini(SETTINGS)
    pytester.makeconftest("def pytest_configure(config): config.workerinput = {}")
    run(pytester).assert_outcomes(passed=2, failed=2, skipped=1)
    assert calls == [["good"], ["bad"], ["kept"], ["open"], ["missed"]]


def test_loading_the_plugin_loads_nothing_else() -> None:
    code = "import sys, likewise.pytest_plugin; assert [m for m in sys.modules if m.startswith('likewise')] == "
    subprocess.run([sys.executable, "-c", code + "['likewise', 'likewise.pytest_plugin']"], check=True)
