"""A tree as text, for witnesses and for what was read."""

from likewise.grading.parsing import bare
from likewise.reading.expressions import Node


def shown(node: Node) -> str:
    """A tree as text, for witnesses and for what was read."""
    node_ = bare(node)
    parts = [shown(part) for part in node_.parts]
    match node_.kind:
        case "number" | "name":
            return node_.text
        case "+" | "-":
            right = (
                f"({parts[1]})" if node_.kind == "-" and bare(node_.parts[1]).kind in ("+", "-", "neg") else parts[1]
            )
            return f"{parts[0]} {node_.kind} {right}"
        case "neg":
            return f"-{_wrapped(node_.parts[0])}"
        case "product":
            return "*".join(map(_wrapped, node_.parts))
        case "/":
            return f"{_wrapped(node_.parts[0])}/{_wrapped(node_.parts[1], slash=True)}"
        case "^":
            return f"{_wrapped(node_.parts[0], slash=True)}^{_wrapped(node_.parts[1], slash=True)}"
        case "transpose":
            return f"{_wrapped(node_.parts[0])}'"
        case "call" | "order" | "law" | "floor" | "ceil" | "abs" | "norm" | "root" | "choose" | "pm":
            return f"{node_.text or node_.kind}({', '.join(parts)})"
        case "index":
            return f"{node_.text}_{{{', '.join(parts)}}}"
        case "!" | "%":
            return f"{_wrapped(node_.parts[0])}{node_.kind}"
        case "degrees":
            return f"{_wrapped(node_.parts[0])} degrees"
        case "unit":
            return f"{_wrapped(node_.parts[0])} {node_.text}"
        case "set":
            return "{" + ", ".join(parts) + "}"
        case "interval":
            return f"{node_.text[0]}{', '.join(parts)}{node_.text[1]}"
        case "chain" | "inequality":
            return parts[0] + "".join(f" {sign} {part}" for sign, part in zip(node_.joined, parts[1:], strict=True))
        case "list":
            return ", ".join(parts)
        case "vector":
            return f"({', '.join(parts)})"
        case "einsum":
            return node_.text
    return f"{node_.kind}({', '.join(parts)})"


def _wrapped(node: Node, slash: bool = False) -> str:
    kinds = ("+", "-", "neg", "/", "product") if slash else ("+", "-", "neg")
    return f"({shown(node)})" if bare(node).kind in kinds else shown(node)
