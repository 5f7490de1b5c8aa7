"""Programs that a claim may name: each has sizes, and is counted, never timed. Listing them imports nothing heavy."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import signature
from typing import Any, Literal

from likewise.checks import refuse, require, require_choice
from likewise.claims.programs import attention as attention

Memory = Literal["materialised", "streamed"]
Make = Callable[..., tuple[Any, ...]]


@dataclass(frozen=True)
class Program:
    """A name for a program of given sizes, in one or two variants; or for a number that is counted."""

    name: str
    sizes: tuple[str, ...]
    makes: Mapping[str, Make] = field(repr=False)  # by memory: from sizes to what `likewise.cost.cost` takes
    count: Callable[..., int] | None = field(default=None, repr=False)  # from sizes to a whole number

    @property
    def variants(self) -> tuple[str, ...]:
        return tuple(self.makes)

    def make(self, memory: Memory = "materialised") -> Make:
        """From sizes to a program and its inputs, for `cost(*make(N=2))` and `cost_polynomial(make, sizes)`.

        >>> from likewise.cost import cost
        >>> cost(*program("attention.softmax").make()(N=10, D=3, M=5)).macs
        800
        """
        require(bool(self.makes), "program", self.name, "be a program", "a counter", "Ask for its count.")
        if memory not in self.makes:
            refuse("program", "memory", f"be {' or '.join(self.makes)} for {self.name}", repr(memory))
        return self.makes[memory]


PROGRAMS: dict[str, Program] = {}


def register(
    name: str,
    fn: Callable[..., Any],
    inputs: Callable[..., tuple[Any, ...]],
    variants: Mapping[str, Callable[..., Any]] | None = None,
) -> Program:
    """Give a program a name that claims can use: the parameters of `inputs` are its sizes, what it returns, its inputs.

    variants: "streamed", the same function computed with less memory.

    >>> _ = register("demo.square", lambda x: x @ x, lambda n: empty((n, n)))
    >>> program("demo.square").sizes
    ('n',)
    >>> del PROGRAMS["demo.square"]
    """
    functions = {"materialised": fn, **(variants or {})}
    for memory in functions:
        require_choice("register", "variants", memory, ("materialised", "streamed"))

    makes: dict[str, Make] = {
        memory: lambda function=function, **sizes: (function, *inputs(**sizes))
        for memory, function in functions.items()
    }
    return _add(Program(name, tuple(signature(inputs).parameters), makes))


def register_counter(name: str, count: Callable[..., int]) -> Program:
    """Give a name to a whole number that depends on sizes, the parameters of `count`."""
    return _add(Program(name, tuple(signature(count).parameters), {}, count))


def program(name: str) -> Program:
    """The program of that name.

    >>> program("attention.softmax")
    Program(name='attention.softmax', sizes=('N', 'D', 'M'))
    """
    if name not in PROGRAMS:
        refuse("program", "name", "be registered", repr(name), f"There are {', '.join(PROGRAMS)}.")
    return PROGRAMS[name]


def _add(added: Program) -> Program:
    require(added.name not in PROGRAMS, "register", "name", "be new", repr(added.name))
    PROGRAMS[added.name] = added
    return added


def empty(*shapes: tuple[int, ...]) -> tuple[Any, ...]:
    """Tensors of these shapes and nothing in them: no memory is taken."""
    import torch

    return tuple(torch.empty(shape, device="meta") for shape in shapes)


def _qkv(N: int, D: int, M: int) -> tuple[Any, ...]:
    return empty((N, D), (N, D), (N, M))


def _qkvw(N: int, D: int, M: int, R: int) -> tuple[Any, ...]:
    return empty((N, D), (N, D), (N, M), (R, D))


def _mha_step(b: int, n: int, h: int, k: int, d: int) -> tuple[Any, ...]:
    return empty((b, d), (b, h, n, k), (b, h, n, k), *[(h, d, k)] * 4)


def _mqa_step(b: int, n: int, h: int, k: int, d: int) -> tuple[Any, ...]:
    return empty((b, d), (b, n, k), (b, n, k), (h, d, k), (d, k), (d, k), (h, d, k))


register("attention.softmax", attention.softmax, _qkv, {"streamed": attention.softmax_online})
register("attention.softmax_online", attention.softmax_online, _qkv, {"streamed": attention.softmax_online})
register("attention.kernel", attention.kernel, _qkv, {"streamed": attention.kernel_streamed})
register("attention.quadratic", attention.quadratic, _qkv, {"streamed": attention.quadratic_streamed})
register(
    "attention.random_features", attention.random_features, _qkvw, {"streamed": attention.random_features_streamed}
)
register("attention.causal", attention.causal, _qkvw, {"streamed": attention.causal_streamed})
register("attention.mha_step", attention.mha_step, _mha_step)
register("attention.mqa_step", attention.mqa_step, _mqa_step)

# Parts of these, of which claims speak alone.
register("attention.project", attention.project, lambda N, D, R: empty((N, D), (R, D)))
register("attention.random_map", attention.random_map, lambda N, D, R: empty((N, D), (R, D)))
register("attention.scale_features", attention.scale_features, lambda R: empty((2 * R,), ()))
register("attention.draw_directions", attention.draw_directions, lambda D, R: empty((R, D)))
register("attention.read_state", attention.read_state, lambda M, R: empty((2 * R,), (2 * R, M), (2 * R,)))
register("attention.products", attention.products, lambda N, D: empty((N, D)))
register("attention.quadratic_map", attention.quadratic_map, lambda N, D: empty((N, D)))
register("attention.quadratic_map_short", attention.quadratic_map_short, lambda N, D: empty((N, D)))


def _facenet(name: str) -> Make:
    def make() -> tuple[Any, ...]:
        import torch

        from likewise import networks

        builders = {
            "nn1": networks.nn1,
            "nn2": networks.nn2,
            "nn3": networks.nn3,
            "nn4": networks.nn4,
            "nns1": networks.nns1,
            "nns2": networks.nns2,
        }
        with torch.device("meta"):
            network = builders[name]().eval()
        return network, *empty((1, 3, *network.size))

    return make


def _resnet50(version: Literal["v1", "v1_5"]) -> Make:
    def make() -> tuple[Any, ...]:
        import torch

        from likewise.networks import resnet50

        with torch.device("meta"):
            network = resnet50(version=version, num_classes=1000).eval()
        return network, *empty((1, 3, 224, 224))

    return make


for _name in ("nn1", "nn2", "nn3", "nn4", "nns1", "nns2"):
    _add(Program(f"facenet.{_name}", (), {"materialised": _facenet(_name)}))
for _version in ("v1", "v1_5"):
    _add(Program(f"resnet50.{_version}", (), {"materialised": _resnet50(_version)}))


def _triplets(P: int, K: int) -> int:
    """Anchor, positive and negative of a batch of P identities with K images each: counted, anchor by anchor."""
    labels = [identity for identity in range(P) for _ in range(K)]
    same = [labels.count(label) for label in labels]
    return sum((positives - 1) * (len(labels) - positives) for positives in same)


def _width(name: str) -> Callable[[int], int]:
    """How wide the result of a map is, found by running it."""

    def count(D: int) -> int:
        function, *inputs = PROGRAMS[name].make()(N=1, D=D)
        return function(*inputs).shape[-1]

    return count


def _random_features(R: int) -> int:
    function, *inputs = PROGRAMS["attention.random_map"].make()(N=1, D=1, R=R)
    return function(*inputs).shape[-1]


def _quadratic_features(D: int) -> int:
    """Of our own map, which has every product of two coordinates once."""
    import torch

    from likewise.attention import Quadratic

    return Quadratic(D).queries(torch.zeros(1, 1, 1, D)).shape[-1]


def _cache(name: str) -> Callable[..., int]:
    """Elements of the keys and values that a step reads."""

    def count(b: int, n: int, h: int, k: int) -> int:
        _, _, keys, values, *_ = PROGRAMS[name].make()(b=b, n=n, h=h, k=k, d=h * k)
        return keys.numel() + values.numel()

    return count


def _layers(weighted: bool) -> Callable[[], int]:
    """Rows of FaceNet's Table 1 with its last, L2; or those of them that have weights."""

    def count() -> int:
        network, _ = PROGRAMS["facenet.nn1"].make()()
        return sum(not weighted or any(True for _ in part.parameters()) for _, part in network.segments)

    return count


register_counter("facenet.triplets", _triplets)
register_counter("facenet.nn1_rows", _layers(weighted=False))
register_counter("facenet.nn1_layers", _layers(weighted=True))
register_counter("attention.quadratic_features", _quadratic_features)
register_counter("attention.product_features", _width("attention.products"))
register_counter("attention.ordered_quadratic_features", _width("attention.quadratic_map"))
register_counter("attention.short_quadratic_features", _width("attention.quadratic_map_short"))
register_counter("attention.fourier_features", _random_features)
register_counter("attention.mha_cache", _cache("attention.mha_step"))
register_counter("attention.mqa_cache", _cache("attention.mqa_step"))

OURS = frozenset(PROGRAMS)


def registered_here(name: str) -> bool:
    """Whether a program of that name was registered in this process and belongs to its user."""
    return name in PROGRAMS and name not in OURS
