"""What is installed is what was tested: every package has a pin, and a pin says what, never where from."""

import re
from importlib.metadata import PackageNotFoundError, requires

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.house import guards

PIN = re.compile(r"[a-z0-9-]+==[0-9][0-9a-z.]*")
CONSTRAINTS = (guards.ROOT / "constraints.txt").read_text()


def pins(text: str) -> list[str]:
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def pinned_names(text: str) -> set[str]:
    return {canonicalize_name(pin.partition("==")[0]) for pin in pins(text)}


def odd_pins(text: str) -> list[str]:
    """Lines that are more or less than name==version: a host, a path, a local version, a range."""
    return [line for line in pins(text) if not PIN.fullmatch(line)]


def installed_with(name: str, extras: set[str]) -> set[str]:
    """All packages that a package brings in on this machine, itself included."""
    found: set[str] = set()
    waiting = [(name, extras)]
    while waiting:
        name, extras = waiting.pop()
        try:
            requirements = [Requirement(line) for line in requires(name) or []]
        except PackageNotFoundError:
            continue
        for requirement in requirements:
            environments = [{"extra": extra} for extra in extras or {""}]
            wanted = requirement.marker is None or any(map(requirement.marker.evaluate, environments))
            if wanted and canonicalize_name(requirement.name) not in found:
                found.add(canonicalize_name(requirement.name))
                waiting.append((requirement.name, requirement.extras))
    return found


def test_pins_are_names_and_versions() -> None:
    assert odd_pins(CONSTRAINTS) == []
    assert "torch==2.13.0" in pins(CONSTRAINTS)


def test_everything_installed_is_pinned() -> None:
    needed = installed_with("likewise", {"all", "dev"})
    assert {"torch", "sympy", "pluggy"} <= needed
    assert needed - pinned_names(CONSTRAINTS) == set()


def test_an_odd_pin_is_found() -> None:
    odd = ["torch==2.13.0+cpu", "torch @ file:wheel.whl", "torch>=2.13", "--index-url https://example.org", "torch"]
    assert odd_pins("# why\n\nrich==15.0.0\n" + "\n".join(odd)) == odd


def test_a_missing_pin_is_found() -> None:
    assert installed_with("likewise", {"torch"}) - pinned_names("numpy==2.4.6") >= {"torch", "sympy"}


def test_claims_bring_no_torch() -> None:
    needed = installed_with("likewise", set())
    assert "mpmath" in needed
    assert needed & {"torch", "sympy", "jaxtyping", "scikit-learn"} == set()
