"""New vectors against old ones, as lines and as JSON."""

from typing import TYPE_CHECKING, Any

from likewise.files import finite

if TYPE_CHECKING:
    from likewise.metric import Versions
    from likewise.metric.versions import Match

NAMES = {
    "new": "v2-v2",
    "mixed": "v2-v1",
    "old": "v1-v1",
    "control": "control: v2-v2",
    "control_mixed": "control: v2-v1",
}


def versions_json(found: "Versions") -> dict[str, Any]:
    """All numbers, by the names of `likewise.metric.Versions`."""
    rows = {key: _row(match) for key in NAMES if (match := getattr(found, key)) is not None}
    facts = {"far": found.far, "pairs": found.pairs, "ordered": found.ordered, "price": found.price}
    return {**facts, **rows, "warnings": list(found.warnings)}


def show_versions(found: "Versions", title: str) -> None:
    """A table, and what it says. With stored vectors only, each row has pairs of its own, so it says how many."""
    print(f"\n{title}: as many same as different pairs of identities not trained on")
    kept = "VAL, FAR at v1's threshold"
    print(f"{'':16}{'same pairs':>12}{f'VAL at FAR {found.far:g}':>22}{'accuracy':>18}{kept:>30}")
    for key, name in NAMES.items():
        match = getattr(found, key)
        if match is not None:
            rates = match.rates
            val, accuracy = (
                f"{rates.val:.4f} ± {rates.val_error:.4f}",
                f"{rates.accuracy:.4f} ± {rates.accuracy_error:.4f}",
            )
            shares = f"{match.val_kept:.4f}, {match.far_kept:.4f}"
            print(f"{name:16}{match.pairs:>12,}{val:>22}{accuracy:>18}{shares:>30}")
    for text in found.warnings:
        print(f"warning: {text}")
    print(f"VAL of v2-v2 above v2-v1 above v1-v1: {'yes' if found.ordered else 'no'}")
    if found.price is not None:
        print(
            f"Price of compatibility: {found.price:+.4f} of VAL, control less v2, both after the same steps and images"
        )


def _row(match: "Match") -> dict[str, float | int | None]:
    rates = match.rates
    numbers = {
        "val": rates.val,
        "val_error": rates.val_error,
        "far_found": rates.far_found,
        "accuracy": rates.accuracy,
        "accuracy_error": rates.accuracy_error,
        "area": rates.roc.area,
        "threshold": rates.threshold,
        "val_kept": match.val_kept,
        "far_kept": match.far_kept,
        "pairs": match.pairs,
    }
    return finite(numbers)
