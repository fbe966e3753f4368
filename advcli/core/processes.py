"""Calls under a limit of time and memory, each in a process that the caller can end; and worker processes that end with their parent.

A limit must hold inside compiled code that never looks at signals, and a crash must not take the sweep along; so the call runs in a child
process that the caller watches from outside. The child comes from a fork server: a process that has imported the libraries once and has no
threads, so that forking it is safe and takes milliseconds.
"""

from __future__ import annotations

import contextlib
import importlib
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from multiprocessing import connection
from typing import Any

from .errors import KilledError

MEGABYTE = 2**20
_FOREVER = 1e6  # seconds: about as long as the system's waits can be
POLL_SECONDS = 0.02  # pause between two looks at the child's memory: the child exceeds its limit for no longer than this


def call_limited(
    function: Callable[..., Any],
    arguments: tuple[Any, ...] = (),
    *,
    seconds: float | None = None,
    memory_mb: float | None = None,
    preload: Sequence[str] = (),
) -> Any:
    """Return ``function(*arguments)``, or raise its error, computed in a child process that is killed when it takes too much.

    ``seconds`` of wall time count from the moment that the child begins to compute; ``memory_mb`` is resident memory in units of 2**20
    bytes: a limit of the address space (RLIMIT_AS) would count what libraries reserve and never use. The fork server imports the modules of
    ``preload`` once for all children. `KilledError` names the limit that was reached or the signal that ended the process.
    """
    forks = "forkserver" in multiprocessing.get_all_start_methods()  # Windows has no fork server: every child starts from nothing
    context: Any = multiprocessing.get_context("forkserver" if forks else "spawn")
    if forks:
        context.set_forkserver_preload(["__main__", *preload])
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_serve, args=(sender, function, arguments, tuple(preload), dict(os.environ)), daemon=True)
    try:
        process.start()
        sender.close()
        _receive(process, receiver, None, memory_mb)  # it begins to compute
        result, error = _receive(process, receiver, seconds, memory_mb)
    finally:
        if process.pid is not None:
            process.kill()
            process.join()
        receiver.close()
    if error is not None:
        raise error
    return result


def _receive(process: Any, receiver: Any, seconds: float | None, memory_mb: float | None) -> Any:
    """Return what a child sends next, or raise `KilledError` for a limit that it reached before or its end."""
    deadline = time.monotonic() + (float("inf") if seconds is None else seconds)
    while True:
        pause = min(POLL_SECONDS if memory_mb is not None else float("inf"), deadline - time.monotonic())
        ready = connection.wait([receiver, process.sentinel], None if pause > _FOREVER else max(pause, 0.0))
        # before the sentinel: a child that has answered may be gone already
        if receiver in ready or (ready and receiver.poll()):
            try:
                return receiver.recv()
            except (EOFError, OSError):
                raise _crash(process) from None
        if ready:
            raise _crash(process)
        if time.monotonic() >= deadline:
            raise KilledError(f"ended after {seconds:g} seconds, its limit; raise limits.seconds, or null")
        if memory_mb is not None and (resident := _resident_mb(process)) > memory_mb:
            raise KilledError(f"ended at {resident:.0f} MB of memory, its limit is {memory_mb:g}; raise limits.memory_mb, or null")


def _resident_mb(process: Any) -> float:
    import psutil

    with contextlib.suppress(psutil.Error):
        return float(psutil.Process(process.pid).memory_info().rss / MEGABYTE)
    return 0.0


def _crash(process: multiprocessing.process.BaseProcess) -> KilledError:
    process.join()
    code = process.exitcode or 0
    if code < 0:
        name = next((entry.name for entry in signal.Signals if entry.value == -code), f"signal {-code}")
        hint = "out of memory, or ended by somebody" if name == "SIGKILL" else "a crash of compiled code"
        return KilledError(f"its process was ended by {name} ({hint}); the other cells are not affected, the same command tries it again")
    return KilledError(f"its process left with exit code {code} and without a result; the same command tries it again")


def _serve(
    sender: connection.Connection,
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    preload: tuple[str, ...],
    environment: dict[str, str],
) -> None:
    """Compute in the child and send back (result, error)."""
    # a child inherits the environment of the fork server, which lacks what the caller has set since, such as folders of plug-ins
    os.environ.clear()
    os.environ.update(environment)
    # Ctrl-C reaches every process of a terminal; the caller ends this one
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_die_with_caller, daemon=True).start()
    for name in preload:  # a fork server that an earlier call started may lack these modules
        importlib.import_module(name)
    sender.send("started")
    result, error = None, None
    try:
        result = function(*arguments)
    except Exception as caught:
        error = caught
    try:
        answer = pickle.dumps((result, error))
        pickle.loads(answer)
    except Exception as caught:
        answer = pickle.dumps((None, RuntimeError(f"{error or caught!r}")))
    sender.send_bytes(answer)
    sender.close()


@contextlib.contextmanager
def interrupts_reach_this_process_only() -> Iterator[None]:
    """Keep Ctrl-C, which a terminal sends to every process of its group, from the workers that are started inside."""
    usual = threading.excepthook

    def hook(failure: threading.ExceptHookArgs) -> None:
        # a pool's manager thread may miss the pool that Ctrl-C took away
        if failure.thread is None or not failure.thread.name.startswith("ExecutorManager"):
            usual(failure)

    threading.excepthook = hook
    if not hasattr(signal, "pthread_sigmask") or threading.current_thread() is not threading.main_thread():
        yield
        return
    done = threading.Event()
    receiver = threading.Thread(target=done.wait, name="interrupts", daemon=True)
    receiver.start()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
        done.set()


def bound_to_this_process() -> dict[str, Any]:
    """Return joblib's options that bind workers to this process from their first moment: importing what a job needs takes seconds."""
    here = threading.current_thread() is threading.main_thread()
    # joblib reuses a pool for a later call with equal arguments; the folder among them keeps a pool from serving after a change of folder
    return {"initializer": end_with_parent, "initargs": (os.getpid(), here, os.getcwd())}


def end_with_parent(parent: int, by_signal: bool, folder: str | None = None) -> None:
    """Bind a worker of a pool to its parent: it ends when the parent ends, at once if that has ended already, and leaves Ctrl-C to it.

    ``by_signal``: Linux may send the signal, which no computation can delay, where the parent's main thread started the worker: it comes
    when the starting thread ends. Otherwise a thread looks for the parent twice a second. ``folder`` is the working folder.
    """
    if folder is not None:
        os.chdir(folder)
    if threading.current_thread() is threading.main_thread():
        # the blocked signals that a worker inherits do not last: starting a resource tracker lets them in again
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    bound = by_signal and _signalled_by_parent()
    if os.getppid() != parent:  # the parent ended before this call or during it
        os._exit(1)

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    if not bound:
        threading.Thread(target=watch, name="parent", daemon=True).start()


def _signalled_by_parent() -> bool:
    """Ask the system to end this process with its parent; return whether it will."""
    if sys.platform != "linux":
        return False
    import ctypes

    set_death_signal = 1  # PR_SET_PDEATHSIG of linux/prctl.h
    return ctypes.CDLL(None).prctl(set_death_signal, int(signal.SIGKILL), 0, 0, 0) == 0


def _die_with_caller() -> None:
    """End this process when the caller is gone: a killed sweep must leave nothing behind."""
    caller = multiprocessing.parent_process()
    if caller is not None:
        connection.wait([caller.sentinel])
        os._exit(1)
