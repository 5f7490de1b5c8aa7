"""The inside of a confined process: give up what code of a claim has no need of, run it, say what came of it.

It is started as a script by `python -I` and imports nothing of ours but a tool that the code is given to, if one is
named; `confinement` is its other side. A layer that the system refuses is reported as missing, so that a verdict can
say so.
"""

import contextlib
import ctypes
import importlib
import json
import os
import platform
import signal
import sys
import sysconfig
import time
import types
from collections.abc import Callable
from typing import Any

MEMORY = 2 << 30  # bytes of address space; torch on the CPU takes 0.6 GB of it
FILES = 64  # open at once
LONGEST = 10_000  # numbers of a result that are sent back
MESSAGE = 400  # characters of an error


def built(spec: dict[str, Any]) -> Any:
    """An input from its description: a number, a list of numbers, or a tensor of seeded normal numbers."""
    if "number" in spec:
        return spec["number"]
    import torch

    if "numbers" in spec:
        return torch.tensor(spec["numbers"], dtype=torch.get_default_dtype())
    return torch.randn(spec["dims"], generator=torch.Generator().manual_seed(spec["seed"]))


def attempt(function: Any, arguments: list[Any], *, is_plain: bool = False) -> dict[str, Any]:
    """What came of a call: what it returned or what it raised, as plain data."""
    try:
        value = function(*arguments)
    except BaseException as error:  # whatever was raised is an outcome, an exit too
        kinds = [str(kind.__name__) for kind in type(error).__mro__]
        with contextlib.suppress(BaseException):  # a message may fail to print
            return {"raised": kinds, "message": str(error)[:MESSAGE]}
        return {"raised": kinds, "message": ""}
    if is_plain:
        return {"returned": value}
    with contextlib.suppress(BaseException):
        return {"returned": encoded(value)}
    return {"returned": {"kind": type(value).__name__, "numbers": None, "scalar": False}}


def encoded(value: Any) -> dict[str, Any]:
    """A result as text: its kind, and its numbers if it is made of some, and of not too many."""
    torch = sys.modules.get("torch")
    kind, scalar = type(value).__name__, type(value) in (bool, int, float)
    if torch is not None and isinstance(value, torch.Tensor):
        kind, scalar = f"{str(value.dtype).removeprefix('torch.')}{list(value.shape)}", value.dim() == 0
        value = value.detach().flatten()[: LONGEST + 1].tolist()
    numbers: list[str] = []
    waiting, lists = [value], 0
    while waiting:
        current = waiting.pop()
        if type(current) in (list, tuple) and len(waiting) + len(current) <= 2 * LONGEST and lists < LONGEST:
            waiting += reversed(current)
            lists += 1  # one that holds itself never ends
        elif type(current) in (bool, int, float) and len(numbers) < LONGEST:
            numbers.append(repr(current if isinstance(current, float) else int(current)))
        else:
            return {"kind": kind[:100], "numbers": None, "scalar": False}
    return {"kind": kind[:100], "numbers": numbers, "scalar": scalar}


def load_package(home: str) -> None:
    """Import our package alone: in an editable install its modules are then found without a look at the checkout."""
    sys.path.insert(0, home)
    importlib.import_module("likewise")
    sys.path.remove(home)


def loaded_tool(home: str, name: str) -> Callable[..., Any]:
    """What `module:function` of our package returns; the folder that holds the package is on the path only for that."""
    module, _, function = name.partition(":")
    sys.path.insert(0, home)
    tool = getattr(importlib.import_module(module), function)()
    sys.path.remove(home)
    return tool


def limit(seconds: float) -> None:
    """Bound time, memory, files and processes of this process."""
    import resource

    bounds = {
        resource.RLIMIT_CPU: int(time.process_time() + seconds) + 1,
        resource.RLIMIT_AS: MEMORY,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: FILES,
        resource.RLIMIT_CORE: 0,
    }
    if hasattr(resource, "RLIMIT_NPROC"):
        bounds[resource.RLIMIT_NPROC] = 0
    for name, most in bounds.items():
        hard = resource.getrlimit(name)[1]
        most = most if hard < 0 else min(most, hard)
        resource.setrlimit(name, (most, most))


def leave_namespaces(libc: ctypes.CDLL) -> bool:
    """User, network and mount namespaces of its own: a network without a way out, and mounts that it may change."""
    new_user, new_network, new_mounts = 0x10000000, 0x40000000, 0x00020000
    user, group = os.getuid(), os.getgid()
    if libc.unshare(new_user | new_network | new_mounts) != 0:
        return False
    with contextlib.suppress(OSError):  # without a mapping `hide_files` fails, and says so
        for name, text in (("setgroups", "deny"), ("uid_map", f"{user} {user} 1"), ("gid_map", f"{group} {group} 1")):
            with open(f"/proc/self/{name}", "w") as file:
                file.write(text)
    return True


def hide_files(libc: ctypes.CDLL, readable: list[str]) -> bool:
    """A root of its own that holds only what is readable: Landlock forbids to open a file, not to see its name."""
    bind, recursive, private, read_only, remount, detach = 4096, 16384, 1 << 18, 1, 32, 2
    folder = os.getcwd()
    root = os.path.join(folder, "root")

    def mount(source: str, target: str, kind: str, flags: int) -> None:
        if libc.mount(source.encode(), target.encode(), kind.encode(), flags, None) != 0:
            raise OSError(ctypes.get_errno(), "mount", target)

    try:
        os.mkdir(root)
        mount("none", "/", "", recursive | private)
        mount("none", root, "tmpfs", 0)
        os.makedirs(root + folder)
        for path in sorted(filter(os.path.exists, readable)):
            target = root + path
            if os.path.lexists(target):  # below one that is there already
                continue
            os.makedirs(target if os.path.isdir(path) else os.path.dirname(target), exist_ok=True)
            if not os.path.isdir(path):
                os.close(os.open(target, os.O_CREAT))
            mount(path, target, "", bind | recursive)
        mount("none", root, "", remount | read_only)
        os.chdir(root)
        if libc.syscall(PIVOT_ROOT[MACHINES[platform.machine()][0]], b".", b".") != 0:
            raise OSError(ctypes.get_errno(), "pivot_root")
        libc.umount2(b".", detach)
    except (OSError, KeyError):
        return False
    finally:
        os.chdir(folder)
    return True


def end_with_parent(libc: ctypes.CDLL, parent: int) -> bool:
    """Die when the process dies that waits for the answer."""
    done = libc.prctl(1, signal.SIGKILL, 0, 0, 0) == 0
    if os.getppid() != parent:  # it died before we asked
        os._exit(1)
    return done


def forbid_files(libc: ctypes.CDLL, readable: list[str]) -> bool:
    """Landlock: no file can be written, made or removed, and none read but Python's own and the system's libraries."""
    create, add_rule, restrict = 444, 445, 446  # the same on every machine
    write, read, read_folder = 2, 4, 8
    version = libc.syscall(create, None, 0, 1)
    if version < 1:
        return False
    rules = ctypes.c_uint64((1 << (13 if version == 1 else 14 if version == 2 else 15)) - 1)  # all it can forbid
    ruleset = libc.syscall(create, ctypes.byref(rules), 8, 0)
    if ruleset < 0:
        return False
    for path in readable:
        with contextlib.suppress(OSError):
            folder = os.open(path, os.O_PATH | os.O_CLOEXEC)
            allowed = read | (read_folder if os.path.isdir(path) else 0) | (write if path == os.devnull else 0)
            rule = ctypes.create_string_buffer(
                allowed.to_bytes(8, sys.byteorder) + folder.to_bytes(4, sys.byteorder), 12
            )
            libc.syscall(add_rule, ruleset, 1, rule, 0)
            os.close(folder)
    done = libc.syscall(restrict, ruleset, 0) == 0
    os.close(ruleset)
    return done


# What a program that only computes never asks the system for: (x86_64, aarch64), None where there is no such call.
FORBIDDEN: dict[str, tuple[int | None, int | None]] = {
    "fork": (57, None), "vfork": (58, None), "clone": (56, 220), "execve": (59, 221), "execveat": (322, 281),
    "socket": (41, 198), "socketpair": (53, 199), "io_uring_setup": (425, 425),
    "kill": (62, 129), "tkill": (200, 130), "tgkill": (234, 131), "rt_sigqueueinfo": (129, 138),
    "rt_tgsigqueueinfo": (297, 240), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "ptrace": (101, 117), "process_vm_readv": (310, 270), "process_vm_writev": (311, 271),
    "prctl": (157, 167), "setpriority": (141, 140), "unshare": (272, 97), "setns": (308, 268),
    "chmod": (90, None), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "chown": (92, None), "fchown": (93, 55), "lchown": (94, None), "fchownat": (260, 54),
    "setxattr": (188, 5), "lsetxattr": (189, 6), "fsetxattr": (190, 7), "utimensat": (280, 88), "utime": (132, None),
    "utimes": (235, None), "futimesat": (261, None), "bpf": (321, 280), "keyctl": (250, 219), "add_key": (248, 217),
    "mount": (165, 40), "umount2": (166, 39), "pivot_root": (155, 41), "chroot": (161, 51), "open_tree": (428, 428),
    "move_mount": (429, 429), "fsopen": (430, 430), "fsmount": (432, 432), "mount_setattr": (442, 442),
    "sched_setaffinity": (203, 122), "sched_setparam": (142, 118), "sched_setscheduler": (144, 119),
    "sched_setattr": (314, 274), "ioprio_set": (251, 30), "migrate_pages": (256, 238), "move_pages": (279, 239),
    "process_madvise": (440, 440), "kcmp": (312, 272),
    "perf_event_open": (298, 241), "userfaultfd": (323, 282), "open_by_handle_at": (304, 265),
    "pidfd_getfd": (438, 438),
    "shmget": (29, 194), "semget": (64, 190), "msgget": (68, 186), "mq_open": (180, 180),
}  # fmt: skip
CLONE3, PRLIMIT, PIVOT_ROOT, FCNTL = (435, 435), (302, 261), (155, 41), (72, 25)
SET_OWNER, SET_SIGNAL, SET_OWNER_EX = 8, 10, 15  # of fcntl: any signal, to any process, when something is in a pipe
MACHINES = {"x86_64": (0, 0xC000003E), "aarch64": (1, 0xC00000B7)}


def forbid_calls(libc: ctypes.CDLL) -> bool:
    """Seccomp: no child, no thread, no program, no socket, no signal, no mount."""
    machine = MACHINES.get(platform.machine())
    if machine is None or sys.byteorder != "little":
        return False
    column, architecture = machine
    load, equal, at_least, end = 0x20, 0x15, 0x35, 0x06
    allow, refuse, unknown = 0x7FFF0000, 0x00050001, 0x00050026  # allow; EPERM; ENOSYS, so that libc asks another way
    program = [(load, 0, 0, 4), (equal, 1, 0, architecture), (end, 0, 0, refuse), (load, 0, 0, 0)]
    program += [(at_least, 0, 1, 0x40000000), (end, 0, 0, refuse)]  # the other way to ask on x86_64
    for calls in FORBIDDEN.values():
        number = calls[column]
        if number is not None:
            program += [(equal, 0, 1, number), (end, 0, 0, refuse)]
    program += [(equal, 0, 1, CLONE3[column]), (end, 0, 0, unknown)]
    first, second, third = 16, 24, 32  # where arguments stand
    program += [(equal, 0, 6, FCNTL[column]), (load, 0, 0, second)]
    program += [(equal, 3, 0, SET_OWNER), (equal, 2, 0, SET_SIGNAL), (equal, 1, 0, SET_OWNER_EX)]
    program += [(end, 0, 0, allow), (end, 0, 0, refuse)]
    program += [(equal, 1, 0, PRLIMIT[column]), (end, 0, 0, allow)]  # its own limits may be read, none be set
    for place in (first, third, third + 4):
        program += [(load, 0, 0, place), (equal, 1, 0, 0), (end, 0, 0, refuse)]
    program += [(end, 0, 0, allow)]
    code = b"".join(c.to_bytes(2, "little") + bytes([yes, no]) + k.to_bytes(4, "little") for c, yes, no, k in program)
    buffer = ctypes.create_string_buffer(code, len(code))

    class Filter(ctypes.Structure):
        _fields_ = (("length", ctypes.c_ushort), ("program", ctypes.c_void_p))

    filter_ = Filter(len(program), ctypes.addressof(buffer))
    return libc.prctl(22, 2, ctypes.byref(filter_), 0, 0) == 0


def confine(seconds: float, parent: int, readable: list[str]) -> dict[str, bool]:
    """Every layer there is, and which of them the system granted; what is readable beyond the system's own is named."""
    if sys.platform != "linux":
        limit(seconds)
        return {"files": False, "names": False, "network": False, "processes": False}
    libc = ctypes.CDLL(None, use_errno=True)
    end_with_parent(libc, parent)
    readable = list(dict.fromkeys([*readable, *PYTHON, *SYSTEM]))
    apart = leave_namespaces(libc)
    names = apart and hide_files(libc, readable)
    limit(seconds)  # after the last file was written
    libc.prctl(38, 1, 0, 0, 0)  # no program it starts may gain a right; what follows asks for this
    files = forbid_files(libc, [os.getcwd(), *readable])
    calls = forbid_calls(libc)
    return {"files": files, "names": names, "network": apart or calls, "processes": calls}


# Not sys.path, where an editable install has the whole of its checkout.
PYTHON = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")] + [
    os.path.join(prefix, "lib") for prefix in (sys.prefix, sys.base_prefix)
]
SYSTEM = (
    "/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/etc/localtime", "/proc/self", "/proc/cpuinfo", "/proc/meminfo",
    "/sys/devices/system", "/dev/null", "/dev/zero", "/dev/urandom", "/dev/random",
)  # fmt: skip


def main() -> None:
    """One request on standard input; two lines on the pipe: the layers, then the outcome."""
    request = json.loads(sys.stdin.read())
    with open(os.devnull) as nothing:
        os.dup2(nothing.fileno(), sys.stdin.fileno())  # or code could go back and read the key
    pipe, home = request["pipe"], request["home"]
    key = request.pop("key")  # code that writes to the pipe does not know it, unless it searches this process for it
    tool = loaded_tool(home, request["tool"]) if request["tool"] else None
    load_package(home)
    _say(pipe, confine(request["seconds"], request["parent"], [os.path.join(home, "likewise")]))
    _say(pipe, {"key": key, "outcome": outcome(request, tool)})
    os._exit(0)


def outcome(request: dict[str, Any], tool: Callable[..., Any] | None) -> dict[str, Any]:
    """Load the source as a module of its own; call the function that was named, or give it to the tool."""
    module = types.ModuleType(request["module"])
    sys.modules[request["module"]] = module
    loaded = attempt(lambda: exec(compile(request["source"], request["file"], "exec"), vars(module)), [])
    if "raised" in loaded:
        return loaded
    function = vars(module).get(request["attribute"])
    if not callable(function):
        return {"missing": True}
    if tool:
        return attempt(tool, [function, request["arguments"]], is_plain=True)
    if "torch" in sys.modules:
        sys.modules["torch"].set_num_threads(1)
    return attempt(function, [built(spec) for spec in request["arguments"]])


def _say(pipe: int, data: dict[str, Any]) -> None:
    rest = json.dumps(data).encode() + b"\n"
    while rest:
        rest = rest[os.write(pipe, rest) :]


if __name__ == "__main__":
    main()
