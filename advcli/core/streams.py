"""Standard output and standard error that no closed pipe, full disk or narrow encoding turns into a traceback."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
from collections.abc import Iterator
from typing import Any

from .errors import OutputError


class Stream:
    """A text stream around another one, which writes escapes; without a ``name`` for messages nobody needs to know its losses.

    An error that a caller of `write` has caught, such as a handler of the module logging, is raised again by `flush`.
    """

    def __init__(self, stream: Any, name: str = "") -> None:
        self._stream, self._name = stream, name
        self._lost: OSError | None = None

    def __getattr__(self, attribute: str) -> Any:
        return getattr(self._stream, attribute)

    def write(self, text: str) -> int:
        """Write a text; BrokenPipeError or `OutputError` where a stream with a name takes nothing."""
        with self._losses():
            try:
                self._stream.write(text)
            except UnicodeEncodeError:
                encoding = self._stream.encoding
                self._stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
        return len(text)

    def flush(self) -> None:
        """Hand on what is buffered; for errors see `write`."""
        with self._losses():
            if self._lost is not None:
                raise self._lost
            self._stream.flush()

    @contextlib.contextmanager
    def _losses(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            self._lost = error
            if self._name and isinstance(error, BrokenPipeError):
                raise
            if self._name:
                raise OutputError(f"cannot write to {self._name}: {error.strerror or error}; send it elsewhere") from error


@contextlib.contextmanager
def standard_streams(output: str = "standard output") -> Iterator[None]:
    """Put a `Stream` around standard output, under a name for messages, and one without a name around standard error.

    The module logging prints no traceback for a message that its handler cannot write meanwhile.
    """
    before, raising = (sys.stdout, sys.stderr), logging.raiseExceptions
    with open(os.devnull, "w", encoding="utf-8") as nowhere:
        sys.stdout, sys.stderr = Stream(sys.stdout or nowhere, output), Stream(sys.stderr or nowhere)
        logging.raiseExceptions = False
        try:
            yield
        finally:
            sys.stdout, sys.stderr = before
            logging.raiseExceptions = raising


def open_descriptors() -> None:
    """Open the null device under the numbers of the standard streams that are closed: worker processes inherit them."""
    with contextlib.suppress(OSError):
        while (number := os.open(os.devnull, os.O_RDWR)) <= 2:  # the lowest free one
            os.set_inheritable(number, True)
        os.close(number)


def forget_output() -> None:
    """Drop what the standard streams hold and cannot write: the interpreter flushes them at its end, and would complain."""
    for stream in (sys.stdout, sys.stderr):
        try:
            if stream is not None:
                stream.flush()
        except OSError:
            with contextlib.suppress(OSError), open(os.devnull, "wb") as nowhere:
                os.dup2(nowhere.fileno(), stream.fileno())
