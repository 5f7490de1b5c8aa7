"""`likewise check`: one line or row for each claim, an exit code for all, and nothing that a claim says is obeyed."""

import compileall
import io
import json
import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import likewise
from likewise import cli
from likewise.claims import checking
from likewise.claims.stated import ClaimSource
from likewise.claims.verdict import Verdict
from likewise.cli import verdicts as screen
from likewise.programs import rows
from likewise.programs.jobs import CheckJob, run_check_job

HOLDS = "```claim {}\ngiven: x in R\nassert: x == x\n```\n"
TYPO = "```claim typo\nassert: sin_softmax(q, k) > 0\n```\n"
TYPO_LINE = "malformed  typo  {}: unknown name sin_softmax (nothing assumed); did you mean softmax?"


def run(*arguments: str) -> int:
    with pytest.raises(SystemExit) as stopped:
        cli.main(["check", *arguments])
    assert isinstance(stopped.value.code, int)
    return stopped.value.code


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    """Verdicts by the first word of a claim's text, without engines; the options of every call are kept."""
    calls: list[dict[str, object]] = []

    def check_claims(stated: list[ClaimSource], *, progress: object, **options: object) -> list[Verdict]:
        calls.append(options)
        return [_answer(each) for each in stated]

    monkeypatch.setattr(checking, "check_claims", check_claims)
    return calls


def _answer(stated: ClaimSource) -> Verdict:
    word, _, expect = stated.text.strip().partition(" ")
    details = {"holds": "for every D", "refuted": "x=1: 1 != 2", "inconclusive": "too close", "malformed": "2:1: typo"}
    expected = expect or None
    if stated.error:
        return Verdict(stated.id, "inconclusive", "undecided", stated.error)
    return Verdict(stated.id, word, "proved", details[word], expect=expected, line=stated.line)  # ty: ignore[invalid-argument-type]


def write(path: Path, *answers: str) -> str:
    path.write_text("".join(f"```claim c{place}\n{answer}\n```\n" for place, answer in enumerate(answers)))
    return str(path)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        (["holds"], 0),
        (["holds", "refuted refuted", "inconclusive inconclusive"], 0),
        (["holds", "refuted", "inconclusive"], 1),
        (["holds refuted"], 1),
        (["inconclusive refuted"], 1),
        (["holds inconclusive"], 1),
        (["holds", "inconclusive"], 3),
        ([], 3),
        (["malformed malformed"], 0),
        (["holds", "malformed"], 2),
        (["malformed inconclusive"], 2),
        (["refuted", "malformed", "inconclusive"], 2),
        (["inconclusive malformed"], 1),
    ],
)
@pytest.mark.usefixtures("answers")
def test_the_exit_code_is_the_worst_outcome(said: list[str], code: int, tmp_path: Path) -> None:
    assert run(write(tmp_path / "page.md", *said)) == code
    assert run(write(tmp_path / "page.md", *said), "--json") == code
    assert run(write(tmp_path / "page.md", *said), "--sarif") == code


@pytest.mark.usefixtures("answers")
def test_a_pipe_gets_one_line_for_each_claim(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(write(tmp_path / "page.md", "holds", "refuted refuted"))
    assert (
        capsys.readouterr().out == "holds  c0  for every D  [proved]\nrefuted  c1  x=1: 1 != 2  [proved] (expected)\n"
    )


@pytest.mark.usefixtures("answers")
def test_several_files_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, two = write(tmp_path / "one.md", "holds"), write(tmp_path / "two.md", "holds", "holds")
    assert run(one, two) == 0
    line = "holds  c{}  for every D  [proved]\n"
    assert capsys.readouterr().out == f"{one}:\n{line.format(0)}{two}:\n{line.format(0)}{line.format(1)}"


@pytest.mark.usefixtures("answers")
def test_a_terminal_gets_a_coloured_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")  # rich then takes the captured stream for a terminal
    monkeypatch.setenv("COLUMNS", "120")
    run(write(tmp_path / "page.md", "holds", "refuted", "refuted refuted"))
    shown = capsys.readouterr().out
    assert "\x1b[32m✓ holds" in shown
    assert shown.count("\x1b[1;31m✗ refuted") == 1
    assert shown.count("\x1b[31m✗ refuted") == 1
    assert "1 holds, 2 refuted (1 as expected)" in shown


def test_json_and_sarif_are_what_the_library_gives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.md"
    page.write_text(TYPO)
    assert run(str(page), "--json") == 2
    data = json.loads(capsys.readouterr().out)
    assert (data["schema"], data["outcome"]) == (1, "malformed")
    [found] = data["verdicts"]
    assert (found["id"], found["verdict"], found["line"], found["file"]) == ("typo", "malformed", 1, str(page))
    assert (found["place"], found["nearest"], found["mark"], found["schema"]) == ([2, 9], "softmax", "!", 1)
    assert found["versions"]["likewise"] == "0.1.0"
    assert run(str(page), "--sarif") == 2
    [sarif_run] = json.loads(capsys.readouterr().out)["runs"]
    assert [result["level"] for result in sarif_run["results"]] == ["error"]


def test_the_command_is_one_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    claims, answer, out = tmp_path / "page.md", tmp_path / "answer.md", tmp_path / "page.html"
    claims.write_text(HOLDS.format("a"))
    answer.write_text("So $2 + 2 = 5$, and $\\weird = 3$.")
    found = run_check_job(CheckJob(files=(str(claims), str(answer)), budget=20))
    assert (found.outcome(), found.outcome(strict=True)) == ("fails", "fails")
    assert [verdict.verdict for verdict in found.verdicts] == ["holds"]
    assert [file for file, _ in found.answers] == [str(answer)]
    assert run(str(claims), str(answer), "--json", "--budget", "20") == 1
    said = json.loads(capsys.readouterr().out)
    timed = re.compile(r'"seconds": [^,}]*')
    assert timed.sub("", json.dumps(said)) == timed.sub("", json.dumps(found.to_json()))
    answer.write_text("So $2 + 2 = 4$, and $\\weird = 3$.")
    found = run_check_job(CheckJob(files=(str(answer),), annotate=out))
    assert (found.outcome(), found.outcome(strict=True)) == ("passes", "open")
    assert out.read_text() == found.page(str(answer))


def test_all_kinds_of_files_are_checked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "listed.yaml").write_text("claims: [{id: typo, assert: 'sin_softmax(q, k) > 0'}]")
    (tmp_path / "module.py").write_text(f'"""{TYPO}"""\nraise SystemExit("this was run")\n')
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TYPO.encode())))
    assert run("listed.yaml", "module.py", "module", "-") == 2
    shown = capsys.readouterr().out.splitlines()
    assert shown == [
        "listed.yaml:",
        TYPO_LINE.format("listed.yaml:1:30"),
        "module.py:",
        TYPO_LINE.format("module.py:2:9"),
        str(tmp_path / "module.py") + ":",
        TYPO_LINE.format(str(tmp_path / "module.py") + ":2:9"),
        "-:",
        TYPO_LINE.format("-:2:9"),
    ]


def test_options_reach_the_library(answers: list[dict[str, object]], tmp_path: Path) -> None:
    page = write(tmp_path / "page.md", "holds")
    run(page, "--seed", "7", "--budget", "2.5s", "--allow-code")
    run(page, "--budget", "3")
    run(page)
    assert answers == [
        {"seed": 7, "budget": 2.5, "allow_code": True},
        {"seed": 0, "budget": 3.0, "allow_code": False},
        {"seed": 0, "budget": None, "allow_code": False},
    ]


@pytest.mark.usefixtures("answers")
def test_wrong_usage_is_one_line_and_exits_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = write(tmp_path / "page.md", "holds")
    pipe = str(tmp_path / "pipe.md")
    os.mkfifo(pipe)
    (tmp_path / "empty").mkdir()
    (tmp_path / "wide.md").write_text("text", encoding="utf-16")
    (tmp_path / "list.yaml").write_text("claims: [{assert: 1 == 1}]")
    missing, out = str(tmp_path / "missing.md"), str(tmp_path / "out.html")
    for arguments, message in {
        (): "check: files must be given, or else --catalogue; got neither.",
        (page, "--catalogue"): "check: files must be given, or else --catalogue; got both.",
        (page, "--json", "--sarif"): "check: the output must be one of --json and --sarif; got both.",
        (missing,): f"check: file must exist, or be the name of a module with a source; got {missing}.",
        (missing, "--annotate", out): f"check: file must exist; got {missing}.",
        (str(tmp_path / "empty"),): f"check: {tmp_path / 'empty'} must hold answers (.md, .markdown, .txt, .json); got",
        (pipe,): f"check: file must be a regular file; got a pipe or a device, {pipe}. Redirect it: likewise check - <",
        (pipe, "--annotate", out): f"check: file must be a regular file; got a pipe or a device, {pipe}.",
        (str(tmp_path / "wide.md"),): f"check: file must be text in UTF-8; got {tmp_path / 'wide.md'}.",
        (page, "--budget", "soon"): "check: --budget must be seconds above 0, as in 5s; got soon.",
        (page, "--budget", "0s"): "check: --budget must be seconds above 0, as in 5s; got 0s.",
        (page, "--budget", "nan"): "check: --budget must be seconds above 0, as in 5s; got nan.",
        (page, page, "--annotate", out): f"check: --annotate must have one Markdown file; got {page} {page}.",
        ("--catalogue", "--annotate", out): "check: --annotate must have one Markdown file; got none.",
        (str(tmp_path / "list.yaml"), "--annotate", out): "check: --annotate must have one Markdown file; got",
        (page, "--annotate", str(tmp_path)): "check --annotate: path must be a file; got the folder",
    }.items():
        assert run(*arguments) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.startswith(f"likewise: {message}")
        assert shown.err.count("\n") == 1
    assert run(page, "--seed", "-1") == 2


@pytest.mark.usefixtures("answers")
def test_a_document_without_a_claim_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    full, empty = write(tmp_path / "full.md", "holds"), write(tmp_path / "empty.md")
    assert run(full, empty) == 3
    line = "inconclusive  document  nothing to check: there is no claim  [undecided]"
    assert capsys.readouterr().out.splitlines()[2:] == [f"{empty}:", line]
    assert run(empty, "--annotate", str(tmp_path / "page.html")) == 3
    assert "nothing to check" in (tmp_path / "page.html").read_text()


def test_text_files_and_byte_order_marks_are_read(tmp_path: Path) -> None:
    (tmp_path / "answer.txt").write_text(TYPO.replace("sin_softmax(q, k)", "1"), encoding="utf-8-sig")
    assert run(str(tmp_path / "answer.txt")) == 0


def test_labels_of_any_file_are_in_json_and_in_the_totals(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "list.yaml").write_text(
        "claims:\n"
        "- {id: a, who: model A, noticed: nobody, row: 7, note: said twice, assert: 1 == 2}\n"
        "- {id: b, who: model A, row: 8, assert: 1 == 1}\n"
        "- {id: c, who: model B, noticed: a reader, assert: 2 == 3}\n"
    )
    assert run(str(tmp_path / "list.yaml"), "--json") == 1
    data = json.loads(capsys.readouterr().out)
    labels = [tuple(each[name] for name in ("who", "noticed", "row", "note")) for each in data["verdicts"]]
    assert labels == [
        ("model A", "nobody", "7", "said twice"),
        ("model A", "", "8", ""),
        ("model B", "a reader", "", ""),
    ]
    counted = {
        who: (each["statements"], each["refuted"], each["unnoticed"]) for who, each in data["claims"]["who"].items()
    }
    assert counted == {"model A": (2, 1, 1), "model B": (1, 1, 0)}
    assert data["totals"] == {"rows": 2, "decided": 1, "holds": 1, "refuted": 0, "conditional": 0, "unnoticed": 0}
    assert [row["row"] for row in data["rows"]] == [7, 8]


@pytest.mark.usefixtures("answers")
def test_annotate_writes_the_page(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "page.html"
    assert run(write(tmp_path / "page.md", "holds", "refuted"), "--annotate", str(page)) == 1
    assert page.read_text().count('<div class="finding ') == 2
    assert capsys.readouterr().out.count("\n") == 2


def test_annotate_shows_the_formulas_of_a_text_without_claims(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    page = tmp_path / "page.html"
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"So $2 + 2 = 5$ and $2 + 3 = 5$.")))
    assert run("-", "--annotate", str(page)) == 1
    html = page.read_text()
    assert html.count('<div class="finding s-refuted') == html.count('<div class="finding s-exact') == 1
    assert "2 + 2" in capsys.readouterr().out


ATTACK = "[bold red]x[/] [link=http://example.org]y[/link] \x1b]0;title\x07\x1b[2J\u202e"
SHOWN = r"[bold red]x[/] [link=http://example.org]y[/link] \x1b]0;title\x07\x1b[2J\u202e"


@pytest.mark.parametrize("terminal", [False, True])
def test_neither_markup_nor_terminal_commands_are_obeyed(
    terminal: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    if terminal:
        monkeypatch.setenv("FORCE_COLOR", "1")
        monkeypatch.setenv("NO_COLOR", "1")
        monkeypatch.setenv("COLUMNS", "1000")
    verdict = Verdict(ATTACK, "refuted", ATTACK, ATTACK, statement=ATTACK)
    stated = [ClaimSource(ATTACK, "", file=ATTACK), ClaimSource(ATTACK, "", file="other")]
    screen.show_verdicts(stated, [verdict, verdict])
    shown = capsys.readouterr().out
    assert shown.count(SHOWN) == (2 * 4 + 1 if terminal else 2 * 3 + 1)
    left = shown
    for style in ("\x1b[1m", "\x1b[2m", "\x1b[3m", "\x1b[2;3m", "\x1b[0m"):
        left = left.replace(style, "")
    assert left.replace("\n", "").isprintable()


def catalogue(folder: Path) -> None:
    folder.mkdir()
    (folder / "a.md").write_text("""\
```claim row-2-bare
row: 2
who: 001 somebody
noticed: nobody (praised)
given: x in R
assert: x == x + 1
expect: refuted
```

```claim row-2-right
row: 2
revises: row-2-bare
given: x in R
assert: x == x
```
""")
    (folder / "b.md").write_text("""\
```claim row-1
row: 1
who: 002 \x1b[31m
assert: 1 == 1
```

```claim extra
assert: 2 == 2
```

```claim row-3
row: 3
noticed: human
assert: 3 == 4
expect: refuted
```

```claim row-4
row: 4
assert: 4 == 4
```

```claim row-5
row: 5
noticed: nobody
assert: 5 == 4
expect: refuted
```

```claim row-8
row: 8
assert: z == 4
expect: inconclusive
```

- row 6: a matter of taste
- row 7: history
""")


REFUTED, OPEN = ("row-2-bare", "row-3", "row-5"), ("row-4", "row-8")


def found(stated: list[ClaimSource]) -> list[Verdict]:
    """Every verdict by name, and an engine whose name is told from its id."""
    return [
        Verdict(
            each.id,
            "refuted" if each.id in REFUTED else "inconclusive" if each.id in OPEN else "holds",
            grade="",
            detail="",
            engine=f"e{len(each.id)}",
            expect="refuted" if each.id in REFUTED else "inconclusive" if each.id == "row-8" else None,
            revises="row-2-bare" if each.id == "row-2-right" else None,
        )
        for each in stated
    ]


def test_the_catalogue_is_shown_by_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue(tmp_path / "catalogue")
    monkeypatch.setattr(rows, "FOLDER", tmp_path / "catalogue")
    monkeypatch.setattr(checking, "check_claims", lambda stated, **options: found(stated))
    assert run("--catalogue") == 3
    shown = capsys.readouterr()
    assert shown.out.splitlines() == [
        r"1  002 \x1b[31m  holds  e5  -",
        "2  001 somebody  conditional  e10, e11  nobody (praised)",
        "3    refuted  e5  human",
        "4    inconclusive  e5  -",
        "5    refuted  e5  nobody",
        "8    inconclusive  e5  -",
        "4 of 6 rows are decided by engines as the catalogue has them; 2 more are listed with the reason.",
        "1 hold, 1 need an assumption, 2 are refuted; 1 of these were noticed by nobody.",
    ]
    assert shown.err == "not as expected: inconclusive  row-4  \n"
    assert run("--catalogue", "--json") == 3
    data = json.loads(capsys.readouterr().out)
    assert data["totals"] == {
        "rows": 6,
        "decided": 4,
        "holds": 1,
        "refuted": 2,
        "conditional": 1,
        "unnoticed": 1,
        "listed": 2,
    }
    assert data["rows"][1]["claims"] == ["row-2-bare", "row-2-right"]
    assert len(data["verdicts"]) == 8


TRIVIAL = "```claim trivial\nassert: 1 + 1 == 2\n```\n"
CODE = "import sys; from likewise.cli import main\ntry: main()\nfinally: print(*sys.modules, file=sys.stderr)"


@pytest.mark.slow
def test_a_trivial_claim_is_answered_at_once_and_without_torch(tmp_path: Path) -> None:
    """Seconds of all processes together, which a busy machine does not change; alone it takes no longer than that."""
    page = tmp_path / "page.md"
    page.write_text(TRIVIAL)
    compileall.compile_dir(Path(likewise.__file__).parent, quiet=2)  # once for a checkout, not for a claim
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    done = subprocess.run([sys.executable, "-c", CODE, "check", str(page)], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert done.stdout == "holds  trivial  2 == 2  [arithmetic]\n"
    assert not {"torch", "numpy", "jinja2", "mcp"} & set(done.stderr.split())
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1.5


@pytest.mark.parametrize(
    ("text", "options", "code"),
    [
        ("So $2 + 2 = 4$.", [], 0),
        ("So $2 + 2 = 5$.", [], 1),
        ("So $2 + 2 = 4$ and $x + y = 3$.", [], 0),
        ("So $2 + 2 = 4$ and $x + y = 3$.", ["--strict"], 3),
        ("No formula here.", [], 3),
        (HOLDS.format("a") + "So $2 + 2 = 5$.", [], 0),
        (HOLDS.format("a") + "So $2 + 2 = 5$.", ["--read", "formulas"], 1),
    ],
)
def test_formulas_are_read_where_there_is_no_fence_or_on_request(
    text: str, options: list[str], code: int, tmp_path: Path
) -> None:
    page = tmp_path / "answer.md"
    page.write_text(text)
    assert run(str(page), *options) == code
    assert run(str(page), *options, "--json") == code


def test_a_refuted_formula_is_shown_at_its_place(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "answer.md"
    page.write_text("First.\nSo $2 + 2 = 5$.")
    run(str(page))
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith(f"{page}:2:5  refuted  2 + 2 = 5")
    assert lines[-1] == "1 formulas, 1 statements: 1 understood, 1 claims, 1 decided, 1 refuted."
    run(str(page), "--sarif")
    region = json.loads(capsys.readouterr().out)["runs"][0]["results"][0]["locations"][0]["physicalLocation"]["region"]
    assert region == {"startLine": 2, "startColumn": 5}
