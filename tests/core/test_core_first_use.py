"""Modules that wait for their first use; each test is a process of its own, as what other imports find is changed."""

import subprocess
import sys
from pathlib import Path

import pytest

HEAD = """
import sys
from advcli.core.first_use import load_at_first_use
sys.path.insert(0, {folder!r})
load_at_first_use("waits", "waits.inner", "nowhere")
"""
WAITS = """
import threading, time
print("loaded by", threading.current_thread().name, flush=True)
from waits import inner as itself
early = 1
time.sleep(0.2)
late = 2
def bound(): return __name__
"""


def said(folder: Path, code: str) -> list[str]:
    """Return the lines that code prints in a new process, after a package ``waits`` was told to wait."""
    package = folder / "waits"
    package.mkdir()
    (package / "__init__.py").write_text(WAITS)
    (package / "inner.py").write_text("print('inner')\nfrom waits import early\n")
    (package / "other.py").write_text("from waits import late\nprint('other')\n")
    command = [sys.executable, "-c", HEAD.format(folder=str(folder)) + code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


LOADED = "loaded by MainThread"


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("import waits, waits as w; print(w.__name__, w is waits, w is sys.modules['waits'])", ["waits True True"]),
        ("import waits as w; import waits; print(w.late, w.late, waits.bound())", [LOADED, "2 2 waits"]),
        ("import waits; waits.late; import waits as again; print(again.early, type(again).__name__)", [LOADED, "1 module"]),
        ("from waits import late; print(late)", [LOADED, "2"]),
        ("import waits; import waits.other; print(waits.other.late)", [LOADED, "other", "2"]),
        ("import waits.inner as i; print(i.__name__)", [LOADED, "waits.inner"]),
        ("import waits.inner as i; print(i.early)", [LOADED, "inner", "1"]),
        (
            "import waits\ntry: waits.missing\nexcept AttributeError as error: print(error)",
            [LOADED, "module 'waits' has no attribute 'missing'"],
        ),
        ("import waits; print(hasattr(waits, 'late'), hasattr(waits, 'missing'))", [LOADED, "True False"]),
        ("import pickle, waits; print(pickle.loads(pickle.dumps(waits)).__name__)", ["waits"]),
        ("try: import nowhere\nexcept ImportError as error: print(error)", ["No module named 'nowhere'"]),
        ("import waits; waits.late; load_at_first_use('waits'); import waits; print(waits.late)", [LOADED, "2"]),
    ],
)
def test_a_module_is_loaded_once_and_when_it_is_used(code: str, expected: list[str], tmp_path: Path) -> None:
    assert said(tmp_path, code) == expected


def test_threads_that_use_it_first_wait_for_one_load(tmp_path: Path) -> None:
    code = """
import threading, waits
found = []
threads = [threading.Thread(target=lambda: found.append(waits.late), name=f"T{i}") for i in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print(found)
"""
    first, *rest = said(tmp_path, code)
    assert first.startswith("loaded by T")
    assert rest == [str([2] * 8)]
