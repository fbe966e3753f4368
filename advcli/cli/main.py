"""From words to an action and its exit code."""

from __future__ import annotations

import argparse
import atexit
import contextlib
import gc
import itertools
import json
import os
import re
import signal
import sys
import threading
import warnings
from collections.abc import Iterator, Sequence
from datetime import datetime
from types import FrameType
from typing import NoReturn

from hydra._internal.utils import get_args_parser

from .. import config as configuration
from ..config.words import refuse_paths, suggestion, with_options_of_swept_groups, with_own_keys
from ..core import plugins
from ..core.errors import AdvcliError, ConfigError, UnknownNameError
from ..core.files import explained
from ..core.first_use import load_at_first_use
from ..core.streams import forget_output, open_descriptors, standard_streams
from ..results.progress import warning
from . import actions
from .console import say
from .help import configuration as help_configuration
from .help import help_document
from .help import page as help_page
from .help import topics as help_topics
from .help_texts import lazy_help_texts
from .hydra_app import run_hydra
from .task import Task

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it (128 + SIGINT)."""

UNREAD = 141
"""Exit code where the reader of our output (head, less) has left, as shells have it (128 + SIGPIPE)."""


_starts = itertools.count()


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command, the words after the program's name (default ``sys.argv[1:]``), and return its exit code.

    0 done, 1 a cell failed or standard output took nothing, 2 bad input, 130 Ctrl-C, 143 SIGTERM, 129 SIGHUP, 141 the reader of standard
    output has left. A run keeps its results before it prints them, and goes on where nobody reads its progress.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if arguments is None:
        atexit.register(gc.freeze)  # the last collection of a process looks at every object of the libraries: an eighth of a short run
        load_at_first_use("numpy.f2py", "numpy.testing", "pandas", "scipy.stats")  # scikit-learn and SciPy import them for all cases
    number = next(_starts)  # a second command of one process may start in the same second
    os.environ[configuration.STARTED] = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{os.getpid()}" + (f"_{number}" if number else "")
    open_descriptors()
    with standard_streams():
        code = _answered(words)
    forget_output()
    return code


def _answered(words: list[str]) -> int:
    """Run one command; an error that people can cause is one line."""
    try:
        with _ended_as_interrupted(), _seen_through_libraries(), warnings.catch_warnings():
            # Python would name a line of this package, or none ("sys:1")
            warnings.showwarning = lambda message, *_: say(warning(str(message)))
            code = _command(words)
            sys.stdout.flush()  # here and not at the interpreter's end, which knows no exit code
            return code
    except AdvcliError as error:
        lines = error.lines if len(error.lines) > 1 else [plugins.one_line(error)]
        head = lines[0].removesuffix(":")
        say("\n".join([f"{head} [{error.code}]{lines[0][len(head) :]}", *lines[1:]]))
        return error.exit_code
    except BrokenPipeError:
        return UNREAD
    except OSError as error:
        say(explained(error))
        return ConfigError.exit_code
    except KeyboardInterrupt as error:
        say("interrupted")
        return _code(error)
    except Exception as error:
        if not plugins.at_fault(error):
            raise
        say(plugins.one_line(error))  # of a file of the user's own
        return ConfigError.exit_code


class _Ended(KeyboardInterrupt):
    """The end that a signal asks for; its number is the argument."""


def _code(error: KeyboardInterrupt) -> int:
    """Return the exit code of an interruption as shells have it, 128 and the signal."""
    return 128 + error.args[0] if isinstance(error, _Ended) else INTERRUPTED


@contextlib.contextmanager
def _ended_as_interrupted() -> Iterator[None]:
    """Let SIGTERM and SIGHUP, of a scheduler or a closed terminal, end a command as Ctrl-C does; ignored ones (nohup) stay so."""

    def end(number: int, _: FrameType | None) -> None:
        raise _Ended(number)

    if threading.current_thread() is not threading.main_thread():
        yield
        return
    numbers = [getattr(signal, name) for name in ("SIGTERM", "SIGHUP") if hasattr(signal, name)]
    before = {number: signal.getsignal(number) for number in numbers}
    before = {number: handler for number, handler in before.items() if handler == signal.SIG_DFL}
    try:
        for number in before:
            signal.signal(number, end)
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def _seen_through_libraries() -> Iterator[None]:
    """Raise an interruption again that a library has turned into an error of its own.

    OmegaConf puts a place holder into a list before it makes the item, and fails on it if a signal comes in between.
    """
    handled = sys.exception()  # by the caller: its interruptions are none of this command
    try:
        yield
    except Exception as error:
        cause = error.__context__
        while cause is not handled and not isinstance(cause, KeyboardInterrupt | None):
            cause = cause.__context__
        if cause is handled or cause is None:
            raise
        raise cause from None


def _command(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        from ..results.provenance import package_version

        print(f"advcli {package_version()}")
        return 0
    queried = any(word.startswith("query=") for word in words) and any(word in ("-sc", "--shell-completion") for word in words)
    if queried and _complete_action():
        return 0
    if words[:1] == ["help"] or {"-h", "--help"} & set(words):
        return _help(words)
    if words[:1] == ["config"]:
        return _config(words[1:])
    verb, words = _split_verb(words)
    task = actions.get(verb)(words)
    try:
        return _perform(task, verb)
    except Exception as error:
        task.abandoned(error)
        raise


def _help(words: list[str]) -> int:
    """Print the page about an action, a group, a choice or a key (``advcli help WORD``, ``advcli ACTION --help``), or about all actions."""
    if "--json" in words:
        if {*words} - {"help", "-h", "--help", "--json"}:
            raise ConfigError("--json is for advcli --help as a whole, or for advcli config; leave out the other words")
        print(json.dumps(help_document(), ensure_ascii=False))
        return 0
    first, *rest = [word for word in words if word not in ("-h", "--help")] or ["help"]
    asked = _read(rest if first == "help" else [first, *rest])[-1].overrides
    print(help_page(asked if first == "help" else [word for word in [first] if word in actions.names()]))
    return 0


def _config(words: list[str]) -> int:
    """Print all keys of the configuration (``advcli config``), with ``--json`` as a JSON Schema."""
    from ..config.json_schema import json_schema

    rest = [word for word in words if word != "--json"]
    if rest and _read(rest)[-1].overrides:
        raise ConfigError(f"advcli config takes no word but --json, got {rest[0]!r}; advcli help {rest[0]} is about one word")
    print(json.dumps(json_schema(), ensure_ascii=False) if "--json" in words else help_configuration())
    return 0


def _read(words: list[str]) -> tuple[list[str], list[str], argparse.Namespace]:
    """Return options, overrides and what Hydra's parser makes of both; a folder of a user's own files is in use from then on."""
    # argparse reads options and overrides only when they are not mixed
    is_override = [re.match(r"[^-][^=]*=|~", word) is not None for word in words]
    options = [word for word, override in zip(words, is_override, strict=True) if not override]
    overrides = [word for word, override in zip(words, is_override, strict=True) if override]
    flags = _flags([*options, *overrides])
    if flags.config_dir is not None:
        plugins.add_folder(flags.config_dir)
    return options, overrides, flags


def _perform(task: Task, verb: str) -> int:
    options, overrides, flags = _read(task.overrides)
    refuse_paths(overrides)
    _refuse_sweepers(overrides)
    overrides = with_own_keys(overrides)
    if flags.multirun:
        overrides = with_options_of_swept_groups(overrides)
    if task.single and flags.multirun:
        raise ConfigError(f"advcli {verb} does one thing at a time; leave out -m")
    if task.single and not flags.cfg and not flags.shell_completion:
        overrides.append("hydra.mode=RUN")  # a preset given to find its results folder would ask for a sweep
    try:
        with _seen_through_libraries():
            code = run_hydra(task, [*options, *overrides], flags)
            return task.finish() if code is None else code
    except KeyboardInterrupt as error:
        with contextlib.suppress(OSError):
            task.abandoned(error)
            say(task.interrupted())
        return _code(error)


def _refuse_sweepers(overrides: Sequence[str]) -> None:
    """Refuse a sweeper that chooses cells as it goes, before it starts: a sweep of ours checks all of its cells first."""
    for word in overrides:
        key, _, name = word.lstrip("+~").partition("=")
        if key == "hydra/sweeper" and name != "cells":
            remedy = "leave it out, each cell searches its hyper-parameters itself (protocol.stage1, protocol.extend)"
            raise ConfigError(f"{word} is not supported: the cells of a sweep are checked before the first one starts; {remedy}")


def _split_verb(words: list[str]) -> tuple[str, list[str]]:
    """Take a leading action off the words; without one they are overrides of ``run``."""
    if not words or words[0][:1] in ("-", "+", "~") or "=" in words[0]:
        return "run", words
    if words[0] not in actions.names():
        raise UnknownNameError(
            f"unknown action {words[0]!r}; {suggestion(words[0], _first_words(), 'advcli help')} (settings are written KEY=VALUE)"
        )
    return words[0], words[1:]


def _first_words() -> list[str]:
    return [*actions.names(), "config", "help"]


def _flags(words: list[str]) -> argparse.Namespace:
    with lazy_help_texts():
        parser = get_args_parser()

    def refuse(message: str) -> NoReturn:
        raise ConfigError(f"{message}; see advcli --help")

    parser.error = refuse  # type: ignore[method-assign]
    return parser.parse_args(words)


def _complete_action() -> bool:
    """Complete words of actions, and hide them from Hydra, which knows overrides only; return whether an override is impossible there."""
    line = os.environ.get("COMP_LINE", "")
    if not line.strip():
        return False
    program, *words = line.split()
    if line.endswith(" "):
        words.append("")
    if len(words) < 2:
        print(" ".join(name for name in _first_words() if words and name.startswith(words[0])))
        return False
    if words[0] == "help" and len(words) == 2:
        print(" ".join(sorted(name for name in help_topics() if name.startswith(words[1]))))
        return True
    if words[0] in actions.names():
        choices, taken = actions.get(words[0]).complete(words[1:])
        if choices is not None:
            print(" ".join(sorted(name for name in choices if name.startswith(words[-1]))))
            return True
        os.environ["COMP_LINE"] = " ".join([program, *words[1 + taken :]])
    return False
