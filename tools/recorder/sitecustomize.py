"""Python imports this at its start when the folder is on PYTHONPATH: it notes each file of the package that runs.

A call made while a module is imported (a decorator, a dataclass, a table that is built) does not count. A file is
written down the moment its first function runs, so that a process which is killed has already said what it did.
"""

import os
import sys
import threading
from types import FrameType

_package = os.environ["LIKEWISE_WALK_PACKAGE"] + os.sep
_out = os.open(os.environ["LIKEWISE_WALK_OUT"], os.O_WRONLY | os.O_APPEND)
_seen: set[str] = set()


def _note(frame: FrameType, event: str, argument: object) -> None:
    file = frame.f_code.co_filename
    if event != "call" or file in _seen or not file.startswith(_package) or not file.endswith(".py"):
        return  # templates become functions, too, but a template is no file of code
    if not _importing(frame):
        _seen.add(file)
        os.write(_out, f"{file}\n".encode())


def _importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith(_package):
            return True
        frame = frame.f_back
    return False


sys.setprofile(_note)
threading.setprofile(_note)
