"""Claims of files as tests: one for each claim, once `claims_files` is set in pytest's settings.

    [tool.pytest.ini_options]
    claims_files = ["docs/*.md", "README.md"]

A refuted claim fails, a malformed one is an error, and an inconclusive one is skipped with its reason, unless
`--claims-strict` makes it fail too. Every pytest where likewise is installed loads this file: it imports nothing of the
package until there is a file of claims.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import pytest

if TYPE_CHECKING:
    from likewise.claims.stated import ClaimSource
    from likewise.claims.verdict import Verdict

FILES = pytest.StashKey[set[Path]]()


def pytest_addoption(parser: pytest.Parser) -> None:
    """One setting and one option."""
    parser.addini("claims_files", "Globs of files whose claims are tests.", type="args", default=[])
    group = parser.getgroup("likewise")
    group.addoption("--claims-strict", action="store_true", help="Let inconclusive claims fail.")


def pytest_configure(config: pytest.Config) -> None:
    """Find the files; they are collected also where `testpaths` does not reach."""
    files: set[Path] = set()
    for glob in config.getini("claims_files"):
        found = (
            {path for path in config.rootpath.glob(glob) if path.is_file()} if not Path(glob).is_absolute() else set()
        )
        if not found:
            raise pytest.UsageError(f"claims_files must match files below {config.rootpath}; got {glob}.")
        files |= found
    config.stash[FILES] = files
    if config.args_source is pytest.Config.ArgsSource.TESTPATHS:
        config.args += map(str, sorted(files))


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> "ClaimsFile | None":
    """A file that one of the globs matches."""
    return ClaimsFile.from_parent(parent, path=file_path) if file_path in parent.config.stash[FILES] else None


class ClaimsFile(pytest.File):
    """A file of claims."""

    def collect(self) -> "Iterable[ClaimItem]":
        """One item for each claim."""
        from likewise.claims.documents import file_claims

        self.verdicts: dict[str, Verdict] = {}
        try:
            stated = file_claims(self.path)
        except ValueError as error:
            raise self.CollectError(str(error)) from None
        names: set[str] = set()
        for claim in stated:
            item = ClaimItem.from_parent(self, name=f"{claim.id}@{claim.line}" if claim.id in names else claim.id)
            item.stated = claim
            names.add(item.name)
            yield item

    def verdict(self, wanted: "ClaimItem") -> "Verdict":
        """The verdict of one claim; the first that is wanted brings those of all others of the file.

        Not where xdist shares the claims out: then other processes bring the others.
        """
        from likewise.claims.checking import check_claims

        if wanted.name not in self.verdicts:
            shared = hasattr(self.config, "workerinput")
            items = [wanted] if shared else [item for item in self.session.items if item.parent is self]
            claims = [item for item in items if isinstance(item, ClaimItem)]
            found = check_claims([item.stated for item in claims])
            self.verdicts |= {item.name: verdict for item, verdict in zip(claims, found, strict=True)}
        return self.verdicts[wanted.name]


class ClaimItem(pytest.Item):
    """One claim."""

    stated: "ClaimSource"

    def setup(self) -> None:
        """A malformed claim is an error before there is anything to test."""
        if self._verdict().outcome == "malformed":
            self._fail()

    def runtest(self) -> None:
        """Pass, fail or skip as the verdict says."""
        outcome = self._verdict().outcome
        if outcome == "open" and not self.config.getoption("--claims-strict"):
            from likewise.text import printable

            pytest.skip(printable(str(self._verdict())))
        if outcome != "passes":
            self._fail()

    def _verdict(self) -> "Verdict":
        assert isinstance(self.parent, ClaimsFile)
        return self.parent.verdict(self)

    def _fail(self) -> NoReturn:
        """The place and the verdict, without a traceback."""
        from likewise.text import printable

        verdict = self._verdict()
        place = ":".join(map(str, [self.path, *(verdict.place or [self.stated.line])]))
        expected = f"expected: {verdict.expect}" if verdict.expect else ""
        lines = [place, printable(str(verdict)), printable(verdict.statement), expected]
        pytest.fail("\n".join(filter(None, lines)), pytrace=False)

    def reportinfo(self) -> tuple[Path, int, str]:
        """File, line from 0, and name."""
        return self.path, max(self.stated.line - 1, 0), f"claim {self.name}"
