"""Functions that tests call in a child process, where they are imported by name."""

import ctypes
import os
import threading
import time
import warnings


def add(one, other):
    return one + other


def hold_the_interpreter(seconds):
    """Sleep in compiled code without giving the interpreter up: no signal handler and no thread of Python runs meanwhile."""
    ctypes.PyDLL(None).sleep(seconds)


def eat(megabytes, seconds):
    """Take memory, in steps, and keep it."""
    hold = [bytearray(b"x") * (10 * 2**20) for _ in range(megabytes // 10)]
    time.sleep(seconds)
    return len(hold)


def crash():
    ctypes.string_at(0)


def fail():
    raise ValueError("no")


def leave():
    os._exit(3)


def lock():
    """Return what no pickle holds."""
    return threading.Lock()


def identity():
    return os.getpid()


def environment(name):
    return os.environ.get(name)


def warn():
    warnings.warn("careful", stacklevel=1)
    return 1
