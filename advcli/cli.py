"""The command line: one Hydra application whose first word may name an action, and whose jobs are cells (data set x method).

Hydra composes the configuration, expands sweeps and launches jobs; everything else happens in the package. Two rules keep
Hydra's ways of failing out of sight: the task function never raises and never exits, and every cell of a sweep is composed and
checked before the first one starts. Nothing heavy is imported at the top, because every <TAB> of completion runs this module.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import os
import re
import shlex
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, cast

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, RunMode, TaskFunction
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from . import config as configuration
from .config import Settings, first_line, validate
from .errors import AdvcliError, ConfigError, NotConvergedWarning, ResultsError, nearest
from .paths import conf_dir

if TYPE_CHECKING:
    from .evaluation.runner import CellOutcome
    from .records import ResultsFolder

# Hydra 1.4 drops the parameter that asks 1.3 for the behaviour that both have
_BASE: dict[str, Any] = {"version_base": "1.3"} if hydra.__version__.startswith("1.3.") else {}

INTERRUPTED = 130
"""Exit code after Ctrl-C, as shells have it (128 + SIGINT)."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and return its exit code: 0 done, 1 a cell failed, 2 bad input, 130 interrupted.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the program's name; default ``sys.argv[1:]``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    os.environ[configuration.STARTED] = f"{datetime.now():%Y-%m-%d_%H-%M-%S}_{os.getpid()}"
    try:
        return _command(words)
    except AdvcliError as error:
        _say(" ".join(str(error).split()))
        return error.exit_code
    except BrokenPipeError:
        # the reader of our output (head, less) has left: no second error from the interpreter's last flush
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        _say("interrupted")
        return INTERRUPTED


def _command(words: list[str]) -> int:
    if words[:1] == ["--version"]:
        from . import __version__

        print(f"advcli {__version__}")
        return 0
    queried = any(word.startswith("query=") for word in words) and any(word in ("-sc", "--shell-completion") for word in words)
    if queried and _complete_action():
        return 0
    verb, words = _split_verb(words)
    task = ACTIONS[verb](words)
    words = task.overrides
    # argparse reads options and overrides only when they are not mixed
    is_override = [re.match(r"[^-][^=]*=|~", word) is not None for word in words]
    options = [word for word, override in zip(words, is_override, strict=True) if not override]
    overrides = [word for word, override in zip(words, is_override, strict=True) if override]
    flags = _flags([*options, *overrides])
    if task.single and flags.multirun:
        raise ConfigError(f"advcli {verb} does one thing at a time; leave out -m")
    if task.single and not flags.cfg and not flags.help and not flags.shell_completion:
        overrides.append("hydra.mode=RUN")  # a preset given to find its results folder would ask for a sweep
    try:
        code = _run_hydra(task, [*options, *overrides], flags)
        return task.finish() if code is None else code
    except KeyboardInterrupt:
        _say(task.interrupted())
        return INTERRUPTED


def _split_verb(words: list[str]) -> tuple[str, list[str]]:
    """Take a leading action off the words; without one they are overrides of ``run``."""
    if not words or words[0][:1] in ("-", "+", "~") or "=" in words[0]:
        return "run", words
    if words[0] not in ACTIONS:
        raise ConfigError(f"unknown action {words[0]!r}; {nearest(words[0], ACTIONS)} (settings are written KEY=VALUE)")
    return words[0], words[1:]


def _flags(words: list[str]) -> argparse.Namespace:
    parser = get_args_parser()

    def refuse(message: str) -> NoReturn:
        raise ConfigError(f"{message}; see advcli --help")

    parser.error = refuse  # type: ignore[method-assign]
    return parser.parse_args(words)


# ------------------------------------------------------------------------------------------------------------------ Hydra's side


def _run_hydra(task: Task, words: list[str], flags: argparse.Namespace) -> int | None:
    """Hand the words to Hydra, which calls ``task`` with the composed config.

    Returns
    -------
    int or None
        None when the task ran; an exit code when Hydra only showed something (help, config, completion).
    """
    _register_sweeper()
    application = hydra.main(**_BASE, config_path=str(conf_dir()), config_name="config")(task)
    arguments, full_error = sys.argv, os.environ.get("HYDRA_FULL_ERROR")
    # With this variable Hydra raises its errors, otherwise it prints several lines and exits.
    os.environ["HYDRA_FULL_ERROR"] = "1"
    sys.argv = [arguments[0], *words]
    try:
        with warnings.catch_warnings():
            # -m on top of a preset that sweeps by itself needs no remark
            warnings.filterwarnings("ignore", category=UserWarning, module="hydra")
            application()
    except SystemExit as exit_request:
        return exit_request.code if isinstance(exit_request.code, int) else 0
    except Exception as error:
        if not isinstance(error, HydraException | OmegaConfBaseException) and not _raised_in_hydra(error):
            raise
        raise _explain(error, flags) from error
    finally:
        sys.argv = arguments
        if full_error is None:
            del os.environ["HYDRA_FULL_ERROR"]
        GlobalHydra.instance().clear()
    return 0 if flags.cfg or flags.info or flags.shell_completion else None


def _raised_in_hydra(error: Exception) -> bool:
    frames = traceback.extract_tb(error.__traceback__)
    folders = {Path(hydra.__file__).parent, Path(str(sys.modules["omegaconf"].__file__)).parent}
    return not isinstance(error, AdvcliError) and any(folder in Path(frames[-1].filename).parents for folder in folders)


def _explain(error: Exception, flags: argparse.Namespace) -> ConfigError:
    """Return one line for an error of Hydra: what is wrong and the nearest valid names."""
    if isinstance(error, MissingConfigException) and error.missing_cfg_file and error.options:
        group, _, name = error.missing_cfg_file.rpartition("/")
        return ConfigError(f"unknown {group} {name!r}; {nearest(name, error.options)}")
    if isinstance(error, OverrideParseException):
        if error.override in ACTIONS:
            return ConfigError(f"an action stands first: advcli {error.override} ...")
        return ConfigError(f"cannot read {error.override!r}: settings are written KEY=VALUE, texts with special characters KEY='\"VALUE\"'")
    text = str(error).strip()
    if match := re.search(r"Could not override '([^']+)'", text):
        key = match[1]
        if "No match in the defaults list" in text and "@" not in key:
            return ConfigError(f"{key} is not part of the default config; add it with +{key}=NAME")
        return _unknown_key(key, flags.overrides)
    if match := re.search(r"looks like a config group override, but config group '([^']+)' does not exist", text):
        return _unknown_key(match[1], flags.overrides)
    if match := re.search(r"Could not append to config. An item is already at '([^']+)'", text):
        return ConfigError(f"key {match[1]!r} exists; write it without +")
    if match := re.search(r"Ambiguous value for argument '(.*)'\n|Sweep parameters '(.*)' requires", text):
        return ConfigError(f"'{match[1] or match[2]}' gives several values: add -m for a sweep, or write one value")
    if "Config group override must be a string" in text:
        return ConfigError("a config group takes the name of one of its choices (loss=zero_one), not null or a number")
    cause = error.__cause__ if isinstance(error.__cause__, OmegaConfBaseException) else None
    parts = [first_line(part) for part in (error, cause) if part is not None and str(part).strip()]
    return ConfigError(": ".join(dict.fromkeys(parts)) or f"the configuration cannot be composed ({type(error).__name__})")


def _unknown_key(key: str, overrides: Sequence[str]) -> ConfigError:
    return ConfigError(f"unknown key {key!r}; {_nearest_key(key, _known_keys(overrides))}")


def _nearest_key(key: str, known: Sequence[str]) -> str:
    """Return the clause that names the nearest keys: of the same group, or the same key of any group."""
    parent, _, last = key.rpartition(".")
    if parent in known:
        return nearest(key, [name for name in known if name.rpartition(".")[0] == parent and name != parent])
    same = [name for name in known if name.rpartition(".")[2] == last]
    text = nearest(key, same or [name for name in known if "." not in name])
    return text.replace("choose one of", "did you mean") + "?" if same and "?" not in text else text


def _known_keys(overrides: Sequence[str]) -> list[str]:
    """Return the keys of the config with the chosen group options alone, and the groups that can be added."""
    groups = sorted(folder.name for folder in conf_dir().iterdir() if folder.is_dir() and folder.name not in {"hydra", "__pycache__"})
    chosen = [word for word in overrides if word.partition("=")[0] in configuration.GROUPS and "," not in word]
    for attempt in (chosen, []):
        try:
            with hydra.initialize_config_dir(str(conf_dir()), **_BASE):
                return sorted({*configuration.keys(OmegaConf.to_container(hydra.compose("config", attempt))), *groups})
        except (HydraException, OmegaConfBaseException):
            continue
    return groups


class CellSweeper(Sweeper):
    """The sweep over cells: every combination is a cell, and all are composed and checked before the first one starts.

    Parameters
    ----------
    params : mapping or None
        Values of the sweep that a preset brings: key to ``value1,value2``.
    """

    def __init__(self, params: Mapping[str, str] | None = None) -> None:
        self.params = dict(params or {})

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep what Hydra gives, and make the launcher."""
        self.loader = hydra_context.config_loader
        self.config: DictConfig = config
        self.task = cast(Task, task_function)
        self.launcher: Launcher = Plugins.instance().instantiate_launcher(
            hydra_context=hydra_context, task_function=task_function, config=config
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Expand the sweep, let the task check every cell, then launch them all."""
        # Hydra's search for plugins loads this module anew: a class imported earlier would be another one
        from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

        given = [f"{key}={value}" for key, value in self.params.items()]
        overrides = OverridesParser.create(config_loader=self.loader).parse_overrides([*given, *arguments])
        jobs = BasicSweeper.split_arguments(overrides, max_batch_size=None)[0]
        self.task.plan(self.config, [self.loader.load_sweep_config(self.config, list(job)) for job in jobs])
        try:
            with _interrupts_reach_this_process_only():
                returns = self.launcher.launch(jobs, initial_job_idx=0)
        except BrokenExecutor:
            self.task.collect(None)
            return []
        self.task.collect([job.return_value for job in returns])
        return [returns]


@contextlib.contextmanager
def _interrupts_reach_this_process_only() -> Iterator[None]:
    """Keep Ctrl-C, which a terminal sends to every process of its group, from the workers that are started inside.

    They would each print a traceback; the parent ends them. Workers inherit the set of blocked signals from the thread that starts
    them, so the main thread blocks the interrupt and another thread of this process lets it in; Python then raises KeyboardInterrupt
    in the main thread as usual.
    """
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


def _register_sweeper() -> None:
    """Give Hydra the sweeper under the name in conf/hydra/sweeper/cells.yaml.

    Hydra takes plugins from the package ``hydra_plugins`` only. A file of ours in that shared package would hide those of other
    projects in an editable install, so the module is made here.
    """
    module = ModuleType("hydra_plugins.advcli")
    module.CellSweeper = CellSweeper  # type: ignore[attr-defined]
    CellSweeper.__module__ = module.__name__
    sys.modules[module.__name__] = module
    Plugins.instance().register(CellSweeper)


# ----------------------------------------------------------------------------------------------------------------------- actions


def _say(text: str) -> None:
    """Write whole lines to stderr in one go: lines of several processes do not mix."""
    sys.stderr.flush()
    sys.stderr.write(f"{text}\n" if text.startswith("[") else f"advcli: {text}\n")
    sys.stderr.flush()


def _own(config: DictConfig) -> DictConfig:
    """Return a composed config without Hydra's node."""
    return OmegaConf.masked_copy(config, [str(key) for key in config if key != "hydra"])


def _refuse_added_keys(node: Any) -> None:
    """Refuse ``+key=value`` for a key that no YAML file declares: nobody would read it."""
    words = list(node.overrides.task)
    parsed = OverridesParser.create().parse_overrides(words)
    added = [override for override in parsed if override.is_add() or override.is_force_add()]
    suspects = [override for override in added if override.key_or_group not in node.runtime.choices]
    if not suspects:
        return
    loader = GlobalHydra.instance().config_loader()
    words = [word for word, override in zip(words, parsed, strict=True) if override not in suspects]
    declared = OmegaConf.to_container(_own(loader.load_configuration(node.job.config_name, words, run_mode=RunMode.RUN)))
    known = configuration.keys(declared)
    for override in suspects:
        key = override.key_or_group
        # a YAML file that declares an empty mapping leaves its keys to the user
        parents = [key[:at] for at, letter in enumerate(key) if letter == "."]
        if key not in known and not any(OmegaConf.select(OmegaConf.create(declared), parent) == {} for parent in parents):
            raise ConfigError(f"unknown key {key!r}; {_nearest_key(key, known)}")


class Task:
    """What Hydra calls with a composed config, and what happens before and after; its subclasses are the actions."""

    single = True
    """Whether the action makes no sense in a sweep."""

    def __init__(self, words: list[str]) -> None:
        self.words = words
        self.overrides = words
        self.error: Exception | None = None

    def __call__(self, config: DictConfig) -> Any:
        """Do the action; an error waits for `finish`, because Hydra would print lines of its own."""
        try:
            _refuse_added_keys(HydraConfig.get())
            self.act(validate(config))
        except Exception as error:
            self.error = error

    def act(self, settings: Settings) -> None:
        """Do the action with a composed and checked config."""
        raise NotImplementedError

    def plan(self, master: DictConfig, configs: list[DictConfig]) -> None:
        """Check all cells of a sweep before the first one starts."""
        raise ConfigError("this action does one thing at a time; leave out hydra.mode=MULTIRUN")

    def collect(self, results: list[Any] | None) -> None:
        """Take what the jobs of a sweep returned; None if a worker process died."""

    def interrupted(self) -> str:
        """Return what to say after Ctrl-C."""
        return "interrupted"

    def finish(self) -> int:
        """Do what remains when Hydra is done and return the exit code."""
        if self.error is not None:
            raise self.error
        return 0


class Run(Task):
    """Select, fit and evaluate one cell, or every cell of a sweep.

    The object lives in the parent; a sweep sends a copy of it to each worker, where only `__call__` is used.
    """

    single = False

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        self.started = time.time()
        self.cells = 0
        self.settings: Settings | None = None
        self.config: dict[str, Any] = {}
        self.outcomes: list[CellOutcome] = []
        self.died = ""

    def __call__(self, config: DictConfig) -> Any:
        """Run one cell: in this process if it is the only one, in a worker for a sweep."""
        node = HydraConfig.get()
        if node.mode == RunMode.MULTIRUN:
            return self._run_in_sweep(config, int(node.job.num))
        try:
            _refuse_added_keys(node)
            settings = validate(config)
            self.config = configuration.plain(config)
            made = [path for path in (settings.folder, *settings.folder.parents) if not path.exists()]
            folder = self._prepare([settings], [node])
            self.cells = 1
            try:
                outcome, lines = _run_cell(settings, folder, strict=True)
            except AdvcliError:
                _unmake(made)
                raise
        except Exception as error:
            self.error = error
            return None
        self.outcomes = [outcome]
        _say("\n".join(["[1/1] " + lines[0], *lines[1:]]))
        return None

    def _run_in_sweep(self, config: DictConfig, number: int) -> CellOutcome | None:
        """Run one cell and never raise: an exception here would end up as lines of Hydra."""
        if not self.cells:
            return None  # another sweeper than ours: nothing was checked and no folder is there; `finish` says so
        from .evaluation.runner import CellOutcome
        from .records import ResultsFolder

        label = "a cell"
        try:
            settings = validate(config)
            label = settings.label
            outcome, lines = _run_cell(settings, ResultsFolder(settings.folder), strict=False)
        except Exception as error:
            text = " ".join(f"{'' if isinstance(error, AdvcliError) else type(error).__name__ + ': '}{error}".split())
            outcome, lines = CellOutcome("", label, "", "failed", error=text), [f"{label}: failed: {text}"]
        _say("\n".join([f"[{number + 1}/{self.cells}] {lines[0]}", *lines[1:]]))
        # the rows are on the disk; sending them to the parent again would cost memory
        return dataclasses.replace(outcome, rows=[])

    def plan(self, master: DictConfig, configs: list[DictConfig]) -> None:
        """Check all cells of a sweep and prepare their folder."""
        _refuse_added_keys(configs[0].hydra)
        cells = [validate(_own(config)) for config in configs]
        for key in ("name", "results_dir", "data_dir", "workers", "results"):
            if len({str(getattr(cell, key)) for cell in cells}) > 1:
                raise ConfigError(f"{key} must be the same for all cells of a sweep; give one value")
        options: dict[str, dict[str, Any]] = {}
        for cell in cells:
            name = cell.dataset["name"]
            if options.setdefault(name, cell.dataset) != cell.dataset:
                differing = [key for key, value in cell.dataset.items() if options[name].get(key) != value]
                raise ConfigError(
                    f"dataset.{differing[0]} varies under one name: give each data set its own dataset.name, or its own sweep"
                )
        folder = self._prepare(cells, [config.hydra for config in configs])
        self.cells = len(cells)
        self.config = configuration.plain(_own(master))
        workers = cells[0].workers or os.cpu_count() or 1
        _say(f"{_counted(len(cells))}, {min(workers, len(cells))} at a time; results in {_short(folder.path)}")

    def _prepare(self, cells: list[Settings], nodes: list[Any]) -> ResultsFolder:
        """Check what needs no data, then create the results folder."""
        from . import estimators
        from .evaluation.selection import Protocol, find_axes
        from .records import ResultsFolder

        for cell in cells:
            if cell.results is not None:
                raise ConfigError("the key results is for advcli report; name= and results_dir= say where a run writes")
            ordered = any(cell.dataset.get(key) for key in ("ordered", "order", "cut")) or cell.protocol["splits"] == "author"
            estimators.check_compatible(cell.loss, cell.features, cell.solver, ordered, None)
            find_axes(Protocol.from_mapping(cell.protocol), estimators.hyper_names(cell.features, cell.loss), cell.hyper)
        self.settings = cells[0]
        folder = ResultsFolder(cells[0].folder)
        folder.prepare(_identity(cells, nodes))
        return folder

    def collect(self, results: list[Any] | None) -> None:
        """Keep what became of the cells."""
        if results is None:
            self.died = f"a worker process died (killed, or out of memory); finished cells are kept; {self._resume()} workers=1"
        self.outcomes = [outcome for outcome in results or [] if outcome is not None]

    def interrupted(self) -> str:
        """Say what is kept and how to resume."""
        if self.settings is None:
            return "interrupted; nothing was started"
        kept = len([file for file in self.settings.folder.glob("cells/*.json") if not file.name.endswith(".failed.json")])
        return f"interrupted; finished cells are kept ({kept} in {_short(self.settings.folder)}); {self._resume()}"

    def _resume(self) -> str:
        assert self.settings is not None
        words = ["advcli", *self.words]
        if self.settings.name == os.environ.get(configuration.STARTED):  # nobody named the folder: the next start would make another one
            words.append(f"name={self.settings.name}")
        return f"resume with: {shlex.join(words)}"

    def finish(self) -> int:
        """Merge the rows, write the reports and print them."""
        super().finish()
        if self.settings is None:
            raise ConfigError("a sweep of advcli needs its own sweeper; leave out hydra/sweeper=...")
        from .records import ResultsFolder
        from .reports import write_reports

        settings, folder = self.settings, ResultsFolder(self.settings.folder)
        test, alpha = settings.protocol["test"], settings.protocol["alpha"]
        if self.died:
            _say(self.died)
            if not folder.merge():
                return 1
        summary = write_reports(folder, test=test, alpha=alpha, metric=settings.report["metric"])
        ended = time.time()
        folder.write_provenance(self.config, self.started, ended, {"command": ["advcli", *self.words], "cells": self.cells})
        _print_table(summary, test, alpha)
        if len(self.outcomes) == 1 and self.cells == 1:
            _print_block(self.outcomes[0], settings)
        for note in dict.fromkeys(f"note: {outcome.dataset}: {note}" for outcome in self.outcomes for note in outcome.notes):
            _say(note)
        failed = [outcome for outcome in self.outcomes if outcome.status == "failed"]
        known = sum(outcome.skipped for outcome in self.outcomes)
        parts = [_counted(self.cells) + (", not all done" if self.died else "")]
        parts += [f"{known} already there"] if known else []
        parts += [f"{len(failed)} failed (see the column error of runs.csv)"] if failed else []
        parts += [f"{ended - self.started:.1f} s"]
        print(f"{_short(folder.path)}: {', '.join(parts)}; runs.csv, search.csv, summary.csv, table.md, provenance.json")
        return 1 if failed or self.died else 0


def _unmake(made: list[Path]) -> None:
    """Remove the results folder that this start made, innermost first, unless another process has put a cell into it."""
    if made and not any(made[0].glob("cells/*.json")):
        shutil.rmtree(made[0], ignore_errors=True)
        for parent in made[1:]:
            with contextlib.suppress(OSError):
                parent.rmdir()  # only if empty


def _run_cell(settings: Settings, folder: ResultsFolder, strict: bool) -> tuple[CellOutcome, list[str]]:
    """Run one cell; return its outcome and what to say about it, the first line without a number."""
    from .evaluation.runner import Cell, run_cell
    from .reports.table import shown, title

    cell = Cell(
        dataset=settings.dataset,
        loss=settings.loss,
        features=settings.features,
        solver=settings.solver,
        protocol=settings.protocol,
        hyper=settings.hyper,
        seed=settings.seed,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        outcome = run_cell(cell, folder, settings.data_dir, strict=strict)
    head = f"{outcome.dataset}, {outcome.method}"
    if outcome.status == "failed":
        return outcome, [f"{head}: failed: {outcome.error}"]
    chosen = ", ".join(f"{name}={value:g}" for name, value in outcome.hyper.items())
    result = f"{title(outcome.metric)} {shown(outcome.metric, outcome.mean, outcome.std)}"
    first = f"{head}: {result}, {chosen}, gap {outcome.worst_gap:.1e}"
    first += ", already there" if outcome.skipped else f", {outcome.seconds:.1f} s"
    said = [outcome.warning] if outcome.warning else []
    said += [f"{head}: {edge}" for edge in outcome.edges]
    said += [str(warning.message) for warning in caught if not issubclass(warning.category, NotConvergedWarning)]
    told = [f"advcli: {head}: {outcome.choice}"] if outcome.choice and not outcome.skipped else []
    return outcome, [first, *told, *(f"advcli: warning: {' '.join(text.split())}" for text in dict.fromkeys(said))]


def _identity(cells: list[Settings], nodes: list[Any]) -> dict[str, Any]:
    """Return what all cells of a results folder share, so that its rows can stand in one table.

    Data sets, losses, features and solvers are columns of the rows: a folder may get more of them. Their options count as far as
    the command line sets them, because rows do not tell two files behind ``dataset=csv`` apart.
    """

    def one(values: list[Any]) -> Any:
        distinct = [value for at, value in enumerate(values) if value not in values[:at]]
        return distinct[0] if len(distinct) == 1 else {"each of": distinct}

    identity: dict[str, Any] = {
        "seed": one([cell.seed for cell in cells]),
        "hyper": one([cell.hyper for cell in cells]),
        "solver": one([{key: value for key, value in cell.solver.items() if key != "name"} for cell in cells]),
        # how reports test changes no row
        "protocol": one([{key: value for key, value in cell.protocol.items() if key not in ("test", "alpha")} for cell in cells]),
    }
    options: dict[str, list[Any]] = {}
    for node in nodes:
        for override in OverridesParser.create().parse_overrides(list(node.overrides.task)):
            if override.key_or_group.partition(".")[0] in ("dataset", "loss", "features") and "." in override.key_or_group:
                options.setdefault(override.key_or_group, []).append(override.value())
    return identity | {"options": {key: one(values) for key, values in sorted(options.items())}}


def _print_table(summary: Any, test: str, alpha: float) -> None:
    from .reports import comparison_table

    print(comparison_table(summary, test=test, alpha=alpha, colour=sys.stdout.isatty()))


def _print_block(outcome: CellOutcome, settings: Settings) -> None:
    """Print what a single run chose and reached."""
    from .reports.table import shown, title

    chosen = [f"{name} = {value:g}{' (fixed)' if name in settings.hyper else ''}" for name, value in outcome.hyper.items()]
    print(f"{title(outcome.metric)}: {shown(outcome.metric, outcome.mean, outcome.std)}")
    print(f"hyper-parameters: {', '.join(chosen)}")
    print(f"worst relative gap: {outcome.worst_gap:.1e} (tol {settings.solver['tol']:.0e}), at most {outcome.passes} passes")


def _counted(cells: int) -> str:
    return "1 cell" if cells == 1 else f"{cells} cells"


def _short(path: Path) -> str:
    """Return a path as seen from here if it lies below, so that it can be copied into the next command."""
    with contextlib.suppress(ValueError):
        return str(path.relative_to(Path.cwd()))
    return str(path)


class Report(Task):
    """Make the tables of a finished or partial sweep again, from its rows alone."""

    def act(self, settings: Settings) -> None:
        """Merge, summarise, write and print; or draw the figure that was asked for."""
        if settings.figure is not None:
            self._draw(settings)
            return
        from .records import ResultsFolder
        from .reports import write_reports

        path = settings.results or settings.folder
        if not path.is_dir():
            others = [entry.name for entry in path.parent.iterdir() if entry.is_dir()] if path.parent.is_dir() else []
            hint = f"; {nearest(path.name, others)}" if others else ""
            raise ResultsError(f"no results folder {_short(path)}{hint}")
        folder = ResultsFolder(path)
        test, alpha = _test_of(folder, settings)
        summary = write_reports(folder, test=test, alpha=alpha, metric=settings.report["metric"], full=True, published=settings.published)
        _print_table(summary, test, alpha)
        print(f"{_short(path)}: {', '.join(['runs.csv', 'search.csv', *summary.attrs['files']])}")
        for remark in summary.attrs["remarks"]:
            _say(remark)

    @staticmethod
    def _draw(settings: Settings) -> None:
        """Draw the loss's surface for each true label."""
        from .losses import make_loss
        from .surfaces import draw_surface, loss_surface

        loss = make_loss(settings.loss["name"], 3, **{key: value for key, value in settings.loss.items() if key != "name"})
        for truth in range(3):
            surface = loss_surface(loss, truth)
            path = draw_surface(loss, surface, settings.results_dir / f"loss_surface_{loss.name}_{truth + 1}.png")
            print(f"{_short(path)}: y = {truth + 1}, {surface.pieces} linear pieces")


def _test_of(folder: ResultsFolder, settings: Settings) -> tuple[str, float]:
    """Return test and level: as asked, else as the cells were made with."""
    stored = (folder.read_cell(file.stem) for file in sorted(folder.cells_path.glob("*.json")))
    protocol = next((cell["about"]["cell"]["protocol"] for cell in stored if cell is not None), settings.protocol)
    return settings.report["test"] or protocol["test"], settings.report["alpha"] or protocol["alpha"]


class Bench(Task):
    """Trace the convergence of the listed solvers (and data sets, losses, features), one after the other in this process."""

    single = False

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        # a sweep in one process: solvers that are timed must not share the machine
        self.overrides = [*(word for word in words if word not in ("-m", "--multirun")), "-m", "hydra/launcher=basic"]
        self.rows: list[dict[str, Any]] = []
        self.cells: list[Settings] = []

    def plan(self, master: DictConfig, configs: list[DictConfig]) -> None:
        """Check all problems before the first one starts."""
        from . import estimators

        _refuse_added_keys(configs[0].hydra)
        self.cells = [validate(_own(config)) for config in configs]
        for cell in self.cells:
            ordered = any(cell.dataset.get(key) for key in ("ordered", "order", "cut"))
            estimators.check_compatible(cell.loss, cell.features, cell.solver, ordered, None)
        _say(f"{len(self.cells)} traces, one at a time; results in {_short(self.cells[0].folder)}")

    def __call__(self, config: DictConfig) -> None:
        """Trace one solver on one problem; an error waits for `finish` and ends the rest."""
        if self.error is None and self.cells:
            super().__call__(config)

    def act(self, settings: Settings) -> None:
        """Trace one solver and say where it ended."""
        from .evaluation.convergence import trace

        found = trace(
            settings.dataset,
            settings.loss,
            settings.features,
            settings.solver,
            settings.protocol,
            settings.hyper,
            seed=settings.seed,
            data_dir=settings.data_dir,
            tol=settings.bench["tol"],
            seconds=settings.bench["seconds"],
        )
        self.rows += found
        last = found[-1]
        number = HydraConfig.get().job.num + 1
        result = f"gap {last['relative_gap']:.1e} after {last['passes']:.0f} passes, {last['time']:.2f} s ({last['status']})"
        _say(f"[{number}/{len(self.cells)}] {settings.label} {settings.solver['name']}: {result}")

    def finish(self) -> int:
        """Write the table and the figures of what was traced."""
        super().finish()
        if not self.cells:
            raise ConfigError("advcli bench needs its own sweeper; leave out hydra/sweeper=...")
        from .evaluation.convergence import COLUMNS
        from .reports.convergence import write_convergence

        files = write_convergence(self.rows, COLUMNS, self.cells[0].folder)
        if len(files) == 1:
            _say("no figures: they need matplotlib, pip install 'advcli[report]'")
        print(f"{_short(self.cells[0].folder)}: {', '.join(file.name for file in files)}")
        return 0


class Data(Task):
    """List, show or fetch data sets."""

    choices = ("list", "show", "fetch")

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        what, *rest = words or [""]
        if what not in self.choices:
            unknown = f"unknown action 'data {what}'; {nearest(what, self.choices)}"
            raise ConfigError(unknown if what else "data needs list, show or fetch")
        self.what, self.name, self.url = what, "", None
        if what != "list":
            if not rest or "=" in rest[0] or rest[0].startswith("-"):
                raise ConfigError(f"data {what} needs the name of a data set; advcli data list has them")
            self.name, *rest = rest
        self.overrides = []
        for word in rest:
            if what == "fetch" and word.startswith("url="):
                self.url = word.removeprefix("url=")
            else:
                self.overrides.append(word)
        # what has no file in conf/dataset (data that cannot be loaded yet) can still be shown
        self.composed = what == "show" and ((conf_dir() / "dataset" / f"{self.name}.yaml").is_file() or "--config-dir" in rest)
        if self.composed:
            self.overrides.insert(0, f"dataset={self.name}")

    def act(self, settings: Settings) -> None:
        """Print what the data package says."""
        from tabulate import tabulate

        from . import data

        if self.what == "fetch":
            print(data.fetch(self.name, settings.data_dir, url=self.url).message)
        elif self.what == "show":
            lines = data.show(settings.dataset if self.composed else self.name, settings.data_dir)
            print(tabulate([[f"{key}:", value] for key, value in lines.items()], tablefmt="plain", disable_numparse=True))
        else:
            entries = data.list_datasets(settings.data_dir)
            columns = ("name", "source", "rows", "features", "classes", "task")
            rows = [[*(getattr(entry, column) for column in columns), "yes" if entry.here else "no", entry.command] for entry in entries]
            print(tabulate(rows, [*columns, "here", "command"], tablefmt="simple", missingval="-"))
            print(f"\ndata folder: {settings.data_dir} (data_dir=... or ADVCLI_DATA)")


ACTIONS: dict[str, type[Task]] = {"run": Run, "report": Report, "bench": Bench, "data": Data}


def _complete_action() -> bool:
    """Complete words that belong to actions, and hide those from Hydra's completion, which knows overrides only.

    Returns
    -------
    bool
        Whether the word is complete with this: no override can stand in its place.
    """
    line = os.environ.get("COMP_LINE", "")
    if not line.strip():
        return False
    program, *words = line.split()
    if line.endswith(" "):
        words.append("")
    if len(words) < 2:
        print(" ".join(name for name in ACTIONS if words and name.startswith(words[0])))
        return False
    if words[0] == "data" and len(words) < 4 and not (len(words) == 3 and words[1] == "list"):
        names = Data.choices if len(words) == 2 else [file.stem for file in (conf_dir() / "dataset").glob("*.yaml")]
        print(" ".join(sorted(name for name in names if name.startswith(words[-1]))))
        return True
    if words[0] in ACTIONS:
        kept = words[{"list": 2, "show": 3, "fetch": 3}[words[1]] if words[0] == "data" and words[1] in Data.choices else 1 :]
        os.environ["COMP_LINE"] = " ".join([program, *kept])
    return False


if __name__ == "__main__":
    sys.exit(main())
