"""Bytes over the network. A transfer that breaks goes on where it stopped, and nothing is written.

No other code of advcli uses the network; for sets of openml.org scikit-learn does.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable

from ..core.errors import DataError

TIMEOUT = 30.0
"""Seconds without an answer."""
PAUSES = (0.5, 2.0, 5.0)
"""Seconds before each further attempt."""
CHUNK = 1 << 13
"""Bytes that are taken at a time; those of one that breaks off are asked for again."""
_AGAIN = (408, 429, 500, 502, 503, 504)  # answers that may differ a moment later

Progress = Callable[[int], None]
"""Takes the number of bytes that have just arrived."""


def download(url: str, sha256: str | None = None, progress: Progress | None = None, remedy: str = "try again") -> bytes:
    """Return the content behind an address; the checksum, where there is one, is compared before anything is used.

    ``remedy`` is what to do without a connection.

    Raises
    ------
    DataError
        No connection, an answer that is an error, or content with another checksum.
    """
    import requests

    got = bytearray()
    for pause in (*PAUSES, None):
        try:
            _receive(url, got, progress)
            break
        except requests.HTTPError as error:
            answer = error.response
            if pause is None or answer is None or answer.status_code not in _AGAIN:
                words = str(error) if answer is None else f"{answer.status_code} {answer.reason}"
                raise DataError(f"cannot fetch {url}: the server answers {words}; {remedy}") from None
        except (requests.RequestException, OSError) as error:
            if pause is None or not _may_pass(error):
                raise DataError(f"cannot fetch {url}: {_trouble(error, len(got))}; {remedy}") from None
        time.sleep(pause)
    if sha256 is not None and hashlib.sha256(got).hexdigest() != sha256:
        raise DataError(f"what {url} sends has not the expected checksum: it was changed or damaged; nothing was written, {remedy}")
    return bytes(got)


def _may_pass(error: Exception) -> bool:
    """Return whether an error is of a transfer that had begun, or of a server that is slow; without a network nothing waits."""
    import requests

    return isinstance(error, (requests.exceptions.ChunkedEncodingError, requests.Timeout)) or "Connection broken" in str(error)


def _trouble(error: Exception, arrived: int) -> str:
    """Say what kept a content from arriving."""
    import requests

    tries = f"{len(PAUSES) + 1} times"
    if isinstance(error, requests.Timeout):
        return f"no answer within {TIMEOUT:g} s, {tries}"
    if _may_pass(error):
        return f"the connection broke off {tries}, at last after {arrived} bytes; nothing was written"
    return f"no connection ({type(error).__name__})"


def _receive(url: str, got: bytearray, progress: Progress | None) -> None:
    """Add to ``got`` what it lacks of the content behind an address."""
    import requests

    # compressed by the server, a part of the content could not be asked for
    headers = {"Accept-Encoding": "identity"} | ({"Range": f"bytes={len(got)}-"} if got else {})
    with requests.get(url, headers=headers, stream=True, timeout=TIMEOUT) as answer:
        answer.raise_for_status()
        if answer.status_code != requests.codes.partial_content:
            got.clear()
        for chunk in answer.iter_content(CHUNK):
            got += chunk
            if progress is not None:
                progress(len(chunk))
