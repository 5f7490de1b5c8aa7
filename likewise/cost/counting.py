"""Run a program without values, on torch's meta device, and count what it would do."""

import functools
import gc
import inspect
import linecache
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_map_only

from likewise.cost.operations import Tally, is_free, is_view, reads_number, require_known, tally, tensors

NOT_THE_PROGRAM = (str(Path(torch.__file__).parent), str(Path(__file__).parent), "<")


@dataclass(frozen=True)
class Operation:
    """One operation of a run: what it computed and moved, and how many elements were alive when it was done."""

    name: str
    macs: int
    elementwise: int
    traffic: int
    copies: int
    live: int
    place: str  # file and line of the program
    path: int = field(repr=False, compare=False)  # the same for every turn of a loop
    source: str = field(default="", repr=False, compare=False)  # the text of that line, where it can be read


@dataclass(frozen=True)
class Cost:
    """What a program costs: exact counts of elements and operations, for one run forward.

    params: of the module, or of those that a function names. macs: multiply-adds of products, without biases.
    elementwise: one for every element that any other operation writes. traffic: elements read and written, operation
    by operation; `copies` of them only change a layout, and their number depends on the version of torch.
    fused_traffic: without those of tensors that the program makes and uses up itself. peak: the most elements alive at
    a time, inputs and parameters included. saved: elements kept for the backward pass, inputs and parameters included,
    each once; `peak` is without those that only the backward pass needs.
    """

    params: int
    macs: int
    elementwise: int
    traffic: int
    peak: int
    saved: int
    fused_traffic: int
    copies: int
    operations: tuple[Operation, ...] = field(repr=False, compare=False)

    @property
    def flops(self) -> int:
        """2 for each multiply-add."""
        return 2 * self.macs


def cost(program: Callable[..., Any], *inputs: Any) -> Cost:
    """Count what `program(*inputs)` does, exactly, without doing it: no values are computed and nothing is changed.

    Inputs and parameters may be anywhere; only their shapes matter. Gradients are prepared for what requires them, or,
    if neither an input nor a parameter does, for every floating input. An operation that stands in no table raises
    `Uncounted`.

    >>> x, y = torch.empty(2, 3), torch.empty(3, 5)
    >>> cost(lambda x, y: (x @ y).relu(), x, y)  # 6 + 15 inputs, 10 products, 10 results; x, y and the result are kept
    Cost(params=0, macs=30, elementwise=10, traffic=51, peak=41, saved=31, fused_traffic=31, copies=0)
    """
    modules = _modules_of(program)
    parameters = list({id(p): p for module in modules for p in module.parameters()}.values())
    asked = any(x.requires_grad for x in [*tensors(inputs), *parameters])
    arguments = tree_map_only(Tensor, lambda x: _argument(x, x.requires_grad or not asked), inputs)
    counter = _Counter()
    hooks = torch.autograd.graph.saved_tensors_hooks(counter.pack, counter.unpack)
    with _same_everywhere(), _without_values(modules) as state, counter, hooks:
        for tensor in [*tensors(arguments), *state]:
            counter.address(tensor)
        results = tensors(program(*arguments))
    return counter.total(sum(parameter.numel() for parameter in parameters), results)


def _modules_of(program: Callable[..., Any]) -> list[nn.Module]:
    """The module that is the program, whose method it is, or to which a function refers by name."""
    if isinstance(program, nn.Module):
        return [program]
    if inspect.ismethod(program):
        return [program.__self__] if isinstance(program.__self__, nn.Module) else []
    if not inspect.isfunction(program):
        return []
    names = inspect.getclosurevars(program)
    return [value for value in [*names.nonlocals.values(), *names.globals.values()] if isinstance(value, nn.Module)]


def _argument(tensor: Tensor, with_gradient: bool) -> Tensor:
    """A tensor of the same layout without values; never a leaf, which no program may write to."""
    with torch.enable_grad():
        like = _like(tensor)
        return like.requires_grad_().clone() if with_gradient and like.is_floating_point() else like


def _like(tensor: Tensor) -> Tensor:
    """The layout of a tensor on the meta device, where nothing has values."""
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


@contextmanager
def _without_values(modules: list[nn.Module]) -> Generator[list[Tensor], None, None]:
    """For a while, modules hold only the layouts of their parameters and buffers, which are yielded."""
    owners = [part for module in modules for part in module.modules()]
    held: list[tuple[dict[str, Any], dict[str, Any]]] = [
        (names, dict(names)) for part in owners for names in (part._parameters, part._buffers)
    ]
    layouts: dict[int, Tensor] = {}  # by the tensor they stand for: what is shared stays shared
    for names, before in held:
        for name, tensor in before.items():
            if tensor is not None:
                like = _like(tensor)
                like = nn.Parameter(like, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else like
                names[name] = layouts.setdefault(id(tensor), like)
    try:
        yield list(layouts.values())
    finally:
        for names, before in held:
            names.update(before)


@functools.cache
def _warm_up() -> None:
    """The first operation on the meta device loads parts of torch, and that keeps its argument alive."""
    torch.empty(1, device="meta").sin()


@contextmanager
def _same_everywhere() -> Generator[None, None, None]:
    """Settings under which counts do not depend on what is installed or on who calls."""
    _warm_up()
    collects = gc.isenabled()
    gc.disable()  # what is alive would depend on when it runs
    try:
        with torch.enable_grad(), torch.backends.opt_einsum.flags(enabled=False):
            yield
    finally:
        if collects:
            gc.enable()


class _Storage:
    """The elements behind a tensor and its views. A weak reference: watching does not keep them alive."""

    def __init__(self, tensor: Tensor, inside: bool) -> None:
        storage = tensor.untyped_storage()
        self.reference = StorageWeakRef(storage)
        self.elements = storage.nbytes() // tensor.element_size()
        self.inside = inside  # made by the program


class _Counter(TorchDispatchMode):
    """Sees every operation, replaces tensors with values by ones without, and keeps the books."""

    def __init__(self) -> None:
        super().__init__()
        self.depth = len(_calls()) - 1  # down to the one who asks for the cost
        self.storages: dict[int, _Storage] = {}  # by address, which stays taken while the weak reference lives
        self.alive: list[_Storage] = []  # of those made by the program
        self.saved: set[int] = set()
        self.moves: list[tuple[int, int, bool]] = []  # address, elements, whether written
        self.operations: list[Operation] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        require_known(func, args)
        if is_view(func) or reads_number(func):
            return func(*args, **kwargs)
        if any(argument.name == "device" for argument in func._schema.arguments):
            kwargs = {**kwargs, "device": torch.device("meta"), "pin_memory": None}
        out = func(*tree_map_only(Tensor, _on_meta, args), **tree_map_only(Tensor, _on_meta, kwargs))
        for tensor in tensors((args, kwargs)):
            self.address(tensor)
        for tensor in tensors(out):
            self.address(tensor, inside=True)
        if not is_free(func):
            self.record(str(func), tally(func, args, kwargs, out))
        return out

    def address(self, tensor: Tensor, inside: bool = False) -> int:
        """Where the elements of a tensor are; they are watched from now on."""
        address = tensor.untyped_storage()._cdata
        if address not in self.storages:
            self.storages[address] = _Storage(tensor, inside)
            self.alive += [self.storages[address]] if inside else []
        return address

    def record(self, name: str, known: Tally) -> None:
        """One operation, and what is alive after it."""
        self.moves += [(self.address(tensor), count, False) for tensor, count in known.reads]
        self.moves += [(self.address(tensor), count, True) for tensor, count in known.writes]
        self.alive = [storage for storage in self.alive if not storage.reference.expired()]
        traffic = sum(count for _, count in [*known.reads, *known.writes])
        live = sum(storage.elements for storage in self.alive)
        place, path, source = self.where()
        copies = traffic if known.copies else 0
        counts = (known.macs, known.elementwise, traffic, copies, live)
        self.operations.append(Operation(name, *counts, place, path, source))

    def where(self) -> tuple[str, int, str]:
        """The line of the program that runs, a number that tells its path of calls from others, and its text."""
        calls = _calls()[: -self.depth]
        own = [(file, line) for file, line, _ in calls if not file.startswith(NOT_THE_PROGRAM)]
        place = f"{Path(own[0][0]).name}:{own[0][1]}" if own else ""
        return place, hash(tuple(calls)), linecache.getline(*own[0]).strip() if own else ""

    def pack(self, tensor: Tensor) -> tuple[Any, ...]:
        """Note what autograd keeps, and let it go: `saved` counts it, `peak` does not."""
        self.saved.add(self.address(tensor))
        return tensor.shape, tensor.stride(), tensor.dtype

    def unpack(self, packed: tuple[Any, ...]) -> Tensor:
        """A program that goes backward itself finds the shapes it needs."""
        shape, stride, dtype = packed
        return torch.empty_strided(shape, stride, dtype=dtype, device="meta")

    def total(self, params: int, results: list[Tensor]) -> Cost:
        """The sums of a run that gave these results."""
        leaving = {self.address(tensor) for tensor in results}
        given = sum(storage.elements for storage in self.storages.values() if not storage.inside)
        operations = tuple(replace(operation, live=operation.live + given) for operation in self.operations)
        return Cost(
            params=params,
            macs=sum(operation.macs for operation in operations),
            elementwise=sum(operation.elementwise for operation in operations),
            traffic=sum(operation.traffic for operation in operations),
            peak=max([given, *(operation.live for operation in operations)]),
            saved=sum(self.storages[address].elements for address in self.saved),
            fused_traffic=sum(
                count
                for address, count, written in self.moves
                if not self.storages[address].inside or (written and address in leaving)
            ),
            copies=sum(operation.copies for operation in operations),
            operations=operations,
        )


def _calls() -> list[tuple[str, int, int]]:
    """The file, line and instruction of every call that led here, innermost first.

    No frame is kept: one in a list that it can see itself would keep what the program has let go.
    """
    frame, calls = sys._getframe(1), []
    while frame is not None:
        calls.append((frame.f_code.co_filename, frame.f_lineno, frame.f_lasti))
        frame = frame.f_back
    return calls


def _on_meta(tensor: Tensor) -> Tensor:
    """The tensor itself if it has no values, else its layout."""
    return tensor if tensor.is_meta else _like(tensor)
