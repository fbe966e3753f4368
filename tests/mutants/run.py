"""Are the tests awake? Apply every small wrong change of `listed.py` to a copy of the checkout and see whether the tests it names fail.

    make mutants
    .venv/bin/python tests/mutants/run.py [--only PATTERN] [--jobs N] [--python-only] [--trust]

The user's tree is only read. Each worker has a copy of it in a temporary folder, with the compiled modules that this Python imports; for a
change of a kernel a second copy with the portable level alone, or with the level that the mutant names beside it, where meson and ninja
build again what depends on the changed file. Tests are first run without any change, unless --trust says that they have just passed: what
fails there proves nothing. Printed per mutant:

    killed      the tests fail, or do not end
    survived    they pass: a test is missing (exit code 1)
    equivalent  they pass, and the list says why no test can fail
    stale       the old text is not found exactly once in its file: mend the list (exit code 1)
    broken      the tests fail without the change, or the kernel does not build (exit code 1)
"""

from __future__ import annotations

import argparse
import fnmatch
import importlib
import json
import os
import queue
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from listed import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]
SECONDS = 300.0  # of the tests of one mutant; what takes longer has been made endless
FAILED = (1, 2)  # exit codes of pytest: a test failed, or a module could not be imported

# An editable install rebuilds and imports the user's own checkout, whatever the path says.
SITE = """import sys
sys.meta_path[:] = [finder for finder in sys.meta_path if type(finder).__module__ != "_advcli_editable_loader"]
"""


# Most of a short test's time goes to importing libraries: a parent imports them once, and every run is a child of it.
PARENT = """import contextlib, importlib, json, os, signal, sys, time
for name in ("pytest", "hypothesis", "numpy", "pandas", "scipy.optimize", "scipy.stats", "sklearn.datasets", "sklearn.svm", "clarabel"):
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
print("ready", flush=True)
for line in sys.stdin:
    seconds, words = json.loads(line)
    child = os.fork()
    if child == 0:
        os.setsid()
        empty = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(empty, stream)
        import pytest
        os._exit(int(pytest.main(words)))
    end, status = time.monotonic() + seconds, None
    while status is None and time.monotonic() < end:
        done, code = os.waitpid(child, os.WNOHANG)
        status = os.waitstatus_to_exitcode(code) if done else None
        time.sleep(0.02)
    if status is None:
        os.killpg(child, signal.SIGKILL)
        os.waitpid(child, 0)
    print(json.dumps(status), flush=True)
"""


class Copy:
    """A copy of the checkout in which one mutant after the other lives."""

    def __init__(self, folder: Path, level: str | None, trust: bool) -> None:
        self.level = level
        self.root, self.site, self.trust = folder / "tree", folder / "site", trust
        self.built: dict[Path, bytes] = {}
        self.passed: dict[str, bool] = {}
        for name in _listing():
            target = self.root / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
        self.site.mkdir()
        (self.site / "sitecustomize.py").write_text(SITE)
        for module in _compiled(level):
            target = self.root / "advcli" / "_ext" / module.name
            target.parent.mkdir(exist_ok=True)
            shutil.copy2(module, target)
            self.built[target] = module.read_bytes()
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(self.site), str(self.root)]),
            "PYTHONDONTWRITEBYTECODE": "",  # half of the time of a short test goes to compiling
            "OMP_NUM_THREADS": "1",
            "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        }
        if level is not None:
            self.environment["ADVCLI_SIMD"] = level
            self._call(["meson", "setup", "build", "."], "meson setup")
        self.parent = subprocess.Popen(
            [sys.executable, "-c", PARENT], cwd=self.root, env=self.environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self.parent.stdout is not None
        self.parent.stdout.readline()

    def _call(self, words: list[str], what: str) -> None:
        done = subprocess.run(words, cwd=self.root, env=self.environment, capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(f"{what} failed:\n{(done.stdout + done.stderr)[-2000:]}")

    def build(self, kernels: str) -> None:
        """Build the copy's level of the named modules and put them in their place."""
        for name in kernels.split():
            target = next(path for path in self.built if path.name.startswith(f"{name}_{self.level}."))
            self._call(["ninja", "-C", "build", target.name], f"building {name}")
            shutil.copy2(self.root / "build" / target.name, target)

    def passes(self, tests: str) -> bool:
        """Run tests; True if all of them pass."""
        words = ["-q", "-x", "-n0", "-p", "no:cacheprovider", "--no-header", *shlex.split(tests)]
        assert self.parent.stdin is not None
        assert self.parent.stdout is not None
        self.parent.stdin.write(f"{json.dumps([SECONDS, words])}\n")
        self.parent.stdin.flush()
        code = json.loads(self.parent.stdout.readline())  # None: endless; below 0: a signal, such as that of a crash in compiled code
        if code is not None and code not in (0, *FAILED) and code >= 0:
            raise RuntimeError(f"pytest {tests}: exit code {code}, no test was run")
        return code == 0

    def close(self) -> None:
        """End the parent of the tests."""
        assert self.parent.stdin is not None
        self.parent.stdin.close()
        self.parent.wait()

    def try_out(self, mutant: Mutant) -> str:
        """Apply a mutant, run its tests, take it back; return its fate."""
        file = self.root / mutant.file
        text = file.read_text(encoding="utf-8")
        if text.count(mutant.old) != 1:
            return "stale"
        try:
            if mutant.tests not in self.passed and not self.trust:
                self.passed[mutant.tests] = self.passes(mutant.tests)
            if not self.passed.get(mutant.tests, True):
                return "broken"
            _put(file, text.replace(mutant.old, mutant.new))
            if mutant.kernels:
                self.build(mutant.kernels)
            if not self.passes(mutant.tests):
                return "killed"
            return "survived" if mutant.equivalent is None else "equivalent"
        except RuntimeError as error:
            print(error, file=sys.stderr)
            return "broken"
        finally:
            _put(file, text)
            if mutant.kernels:
                for path, content in self.built.items():
                    path.write_bytes(content)


def _put(file: Path, text: str) -> None:
    """Write a source file and forget its bytecode, which a file of the same size and second would be taken for."""
    file.write_text(text, encoding="utf-8")
    for bytecode in file.parent.glob(f"__pycache__/{file.stem}.*"):
        bytecode.unlink()


def _listing() -> list[str]:
    """Return the files of the checkout, without what git ignores, by their paths in it."""
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"], cwd=ROOT, capture_output=True, text=True, check=True
    )
    return [name for name in done.stdout.split("\0") if name and (ROOT / name).is_file()]


def _compiled(level: str | None) -> list[Path]:
    """Return the compiled modules of this checkout that this Python imports, all of them or those of one level and of portable.

    An editable install of the checkout builds them again where a source is newer. One of another checkout is not asked: it would build
    and hand over the other's modules.
    """
    sys.meta_path[:] = [
        finder for finder in sys.meta_path if ROOT in Path(getattr(finder, "_build_path", ROOT / "build")).resolve().parents
    ]
    sys.path.insert(0, str(ROOT))
    from advcli.core.compiled import LEVELS, usable_levels

    levels = usable_levels() if level is None else ["portable", level]
    kernels = sorted(path.stem for path in (ROOT / "_ext").rglob("*.pyx"))
    found = []
    # `utility` is what all others import
    for name in ("utility", *(f"{kernel}_{level}" for kernel in kernels for level in LEVELS if level in levels)):
        try:
            found.append(Path(str(importlib.import_module(f"advcli._ext.{name}").__file__)))
        except ImportError:  # built at one level only
            continue
    return found


def main() -> int:
    """Try the mutants out and print their fates."""
    parser = argparse.ArgumentParser(description=str(__doc__).split("\n", 1)[0])
    parser.add_argument("--only", default="*", help="mutants whose file, old or new text matches this pattern or holds it")
    parser.add_argument("--jobs", type=int, default=1, help="mutants at a time")
    parser.add_argument("--python-only", action="store_true", help="leave out the kernels, which must be built")
    parser.add_argument("--trust", action="store_true", help="do not run the tests without a change first")
    given = parser.parse_args()
    chosen = [
        mutant
        for mutant in MUTANTS
        if any(given.only in text or fnmatch.fnmatchcase(text, given.only) for text in mutant[:3])
        and not (given.python_only and mutant.kernels)
    ]
    if not chosen:
        print(f"no mutant matches {given.only!r}", file=sys.stderr)
        return 2
    # those with the same tests beside each other, kernels first: they take longest
    chosen.sort(key=lambda mutant: (not mutant.kernels, mutant.tests))
    modules = _compiled(None)
    if not modules:
        print(
            f"{sys.executable} has no compiled modules of {ROOT}; make mutants builds them and takes its .venv/bin/python", file=sys.stderr
        )
        return 2
    missing = [mutant for mutant in chosen if mutant.kernels and not any(f"_{mutant.level}." in module.name for module in modules)]
    chosen = [mutant for mutant in chosen if mutant not in missing]
    if missing:
        print(f"{len(missing)} mutants are left out: this processor or build lacks their level")
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        copies: dict[str | None, queue.SimpleQueue[Copy]] = {}
        for level, wanted in Counter(map(_level, chosen)).items():
            copies[level] = queue.SimpleQueue()
            for number in range(min(given.jobs, wanted)):
                copies[level].put(Copy(Path(folder) / f"{level or 'all'}{number}", level, given.trust))

        def fate(mutant: Mutant) -> tuple[Mutant, str]:
            began, level = time.monotonic(), _level(mutant)
            copy = copies[level].get()
            try:
                found = copy.try_out(mutant)
            finally:
                copies[level].put(copy)
            print(f"{found:10} {time.monotonic() - began:5.0f} s  {mutant.file}: {_short(mutant.old)} -> {_short(mutant.new)}", flush=True)
            return mutant, found

        with ThreadPoolExecutor(given.jobs) as workers:
            fates = list(workers.map(fate, chosen))
        for idle in copies.values():
            while not idle.empty():
                idle.get().close()
    counts = Counter(found for _, found in fates)
    print(f"{len(fates)} mutants: {', '.join(f'{count} {found}' for found, count in sorted(counts.items()))}")
    for mutant, found in fates:
        if found == "killed" and mutant.equivalent:
            print(f"called equivalent, but killed: {mutant.file}: {_short(mutant.old)}; it is not: mend the list")
    return 1 if counts.keys() & {"survived", "stale", "broken"} else 0


def _level(mutant: Mutant) -> str | None:
    """Return the level at which its kernels are built again, None where it has none."""
    return mutant.level if mutant.kernels else None


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= 60 else f"{line[:57]}..."


if __name__ == "__main__":
    sys.exit(main())
