"""The command line: one Hydra application whose first word may name an action, and whose jobs are cells (data set x method).

Hydra composes the configuration, expands sweeps and launches jobs; everything else happens in the package. Two rules keep
Hydra's ways of failing out of sight: the task function never raises and never exits, and every cell of a sweep is composed and
checked before the first one starts. Nothing heavy is imported at the top, because every <TAB> of completion runs this module.
"""

from __future__ import annotations

import argparse
import contextlib
import copy
import dataclasses
import logging
import os
import pickle
import re
import shlex
import shutil
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import BrokenExecutor
from datetime import datetime
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, NoReturn, cast

import hydra
from hydra._internal.utils import get_args_parser
from hydra.core.config_loader import ConfigLoader
from hydra.core.global_hydra import GlobalHydra
from hydra.core.hydra_config import HydraConfig
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.plugins import Plugins
from hydra.core.utils import JobReturn, JobStatus
from hydra.errors import HydraException, MissingConfigException, OverrideParseException
from hydra.plugins.launcher import Launcher
from hydra.plugins.sweeper import Sweeper
from hydra.types import HydraContext, RunMode, TaskFunction
from omegaconf import DictConfig, OmegaConf, open_dict, read_write
from omegaconf.errors import OmegaConfBaseException

from . import config as configuration
from . import plugins
from .config import Settings, first_line, validate
from .errors import AdvcliError, ConfigError, NotConvergedWarning, ResultsError, nearest
from .limits import end_with_parent
from .paths import conf_dir
from .progress import Journal, Progress

if TYPE_CHECKING:
    from .evaluation.runner import CellOutcome
    from .records import ResultsFolder

# Hydra 1.4 drops the parameter that asks 1.3 for the behaviour that both have
_BASE: dict[str, Any] = {"version_base": "1.3"} if hydra.__version__.startswith("1.3.") else {}

JOBS_PER_WORKER = 32
"""Jobs that the launcher gets for each worker at most: enough to share out evenly, few enough that starting them does not count."""

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
    if flags.config_dir is not None:
        plugins.add_folder(flags.config_dir)
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
    _register_plugins()
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
        if group == "hydra/launcher" and name.startswith("submitit"):
            return ConfigError(f'hydra/launcher={name} needs submitit; install it with: pip install "advcli[scale]"')
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
    same = [name for name in same if name.partition(".")[0] in configuration.GROUPS] or same
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
            hydra_context=HydraContext(config_loader=cast(ConfigLoader, JobLoader()), callbacks=hydra_context.callbacks),
            task_function=task_function,
            config=config,
        )

    def sweep(self, arguments: list[str]) -> Any:
        """Expand the sweep, let the task check every cell, then launch them all."""
        # Hydra's search for plugins loads this module anew: a class imported earlier would be another one
        from hydra._internal.core_plugins.basic_sweeper import BasicSweeper

        given = [f"{key}={value}" for key, value in self.params.items()]
        overrides = OverridesParser.create(config_loader=self.loader).parse_overrides([*given, *arguments])
        cells = BasicSweeper.split_arguments(overrides, max_batch_size=None)[0]
        try:
            with (
                self.task.plan(self.config, cells, lambda words: self.loader.load_sweep_config(self.config, list(words))) as jobs,
                _interrupts_reach_this_process_only(),
            ):
                returns = self.launcher.launch(jobs, initial_job_idx=0)
        except Exception as error:
            # joblib and Ray, submitit: a job ended without an answer
            if not isinstance(error, BrokenExecutor) and type(error).__module__.partition(".")[0] != "submitit":
                raise
            self.task.collect(None)
            return []
        self.task.collect([job.return_value for job in returns])
        return [returns]


class JobLoader:
    """What launchers ask for the config of a job: the sweep's own, because the plan brings the cells, composed and checked.

    Composing again in the worker would take longer than a small cell.
    """

    def load_sweep_config(self, master_config: DictConfig, sweep_overrides: list[str]) -> DictConfig:
        """Return a copy of the sweep's config that names the overrides of the job's first cell."""
        config = copy.deepcopy(master_config)
        with read_write(config), open_dict(config):
            config.hydra.overrides.task = list(sweep_overrides)
        return config


class RayLauncher(Launcher):
    """Runs the jobs of a sweep as tasks of Ray; the parameters stand in conf/hydra/launcher/ray.yaml.

    The published launcher of this kind asks for a cloudpickle that joblib refuses.
    """

    def __init__(self, address: str | None, num_cpus: int | None, cpus_per_job: float, object_store_memory: int) -> None:
        here = {"num_cpus": num_cpus, "object_store_memory": object_store_memory, "include_dashboard": False}
        self.options: dict[str, Any] = {"address": address} if address else {"address": "local", **here}
        self.cpus_per_job = cpus_per_job

    def setup(self, *, hydra_context: HydraContext, task_function: TaskFunction, config: DictConfig) -> None:
        """Keep the task."""
        self.task = cast(Run, task_function)

    def launch(self, job_overrides: Sequence[Sequence[str]], initial_job_idx: int) -> Sequence[JobReturn]:
        """Run all jobs and wait for them."""
        try:
            import ray
        except ImportError as error:
            raise ConfigError('hydra/launcher=ray needs Ray; install it with: pip install "advcli[scale]"') from error
        started = not ray.is_initialized()
        if started:
            ray.init(**self.options, log_to_driver=False, logging_level=logging.ERROR)
        try:
            task = ray.put(self.task)
            work = ray.remote(num_cpus=self.cpus_per_job)(_run_job)
            jobs = [work.remote(task, initial_job_idx + at) for at in range(len(job_overrides))]
            return [JobReturn(_return_value=done, status=JobStatus.COMPLETED) for done in ray.get(jobs)]
        except ray.exceptions.RayError as error:
            raise BrokenExecutor(first_line(error)) from error
        finally:
            if started:
                ray.shutdown()


def _run_job(task: Run, job: int) -> Any:
    return task.run_job(job)


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


def _register_plugins() -> None:
    """Give Hydra our plugins under their names in conf/hydra.

    Hydra takes plugins from the package ``hydra_plugins`` only. A file of ours in that shared package would hide those of other
    projects in an editable install, so the module is made here.
    """
    module = ModuleType("hydra_plugins.advcli")
    sys.modules[module.__name__] = module
    for plugin in (CellSweeper, RayLauncher):
        setattr(module, plugin.__name__, plugin)
        plugin.__module__ = module.__name__
        Plugins.instance().register(plugin)


# ----------------------------------------------------------------------------------------------------------------------- actions


def _say(text: str) -> None:
    """Write whole lines to stderr in one go: lines of several processes do not mix."""
    sys.stderr.flush()
    sys.stderr.write(f"{text}\n" if text.startswith(("[", "advcli: ")) else f"advcli: {text}\n")
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


def _scalar_override(text: str) -> tuple[str, Any] | None:
    """Return (key, value) of an override that sets a key to a scalar, None for any other."""
    key, _, value = text.partition("=")
    if re.fullmatch(r"[A-Za-z_][\w.]*", key) is None or "$" in value or "?" in value:
        return None
    if re.fullmatch(r"0|[1-9]\d*", value):  # without the parser, which takes a millisecond
        return key, int(value)
    (override,) = OverridesParser.create().parse_overrides([text])
    read = override.value()
    return (key, read) if read is None or isinstance(read, bool | int | float | str) else None


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

    def plan(
        self, master: DictConfig, cells: list[list[str]], compose: Callable[[Sequence[str]], DictConfig]
    ) -> contextlib.AbstractContextManager[list[list[str]]]:
        """Check all cells of a sweep before the first one starts; the context gives the jobs to launch."""
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
        self.session: Path | None = None
        self.parent = os.getpid()
        self.told: set[int] = set()

    def __call__(self, config: DictConfig) -> Any:
        """Run one cell: in this process if it is the only one, in a worker for a sweep."""
        node = HydraConfig.get()
        if node.mode == RunMode.MULTIRUN:
            return self.run_job(int(node.job.num))
        try:
            _refuse_added_keys(node)
            settings = validate(config)
            self.config = configuration.plain(config)
            made = [path for path in (settings.folder, *settings.folder.parents) if not path.exists()]
            folder = self._prepare([settings], [list(node.overrides.task)])
            self.cells = 1
            try:
                with folder.session() as session, Progress(session, 1, _say, settings.quiet):
                    journal = Journal(session)
                    journal.started(0)
                    outcome, lines = _run_cell(settings, folder, strict=True)
                    journal.finished(0, outcome.status, outcome.skipped, lines)
            except AdvcliError:
                _unmake(made)
                raise
        except Exception as error:
            self.error = error
            return None
        self.outcomes = [outcome]
        return None

    def run_job(self, job: int) -> list[tuple[int, CellOutcome, list[str]]]:
        """Run the cells of one job and never raise: an exception here would end up as lines of Hydra.

        Returns
        -------
        list of (number, outcome, lines)
            The lines are what the journal was told, for the case that it could not take them.
        """
        if self.session is None:
            return []  # another sweeper than ours: nothing was checked and no folder is there; `finish` says so
        from .evaluation import parts
        from .evaluation.runner import CellOutcome
        from .records import ResultsFolder

        end_with_parent(self.parent)
        journal = Journal(self.session)
        with open(self.session / f"job{job}.pickle", "rb") as file:
            planned: list[tuple[int, Settings]] = pickle.load(file)
        folder = ResultsFolder(planned[0][1].folder)
        done = []
        lost: ResultsError | None = None
        with parts.shared_data(self.session):
            for number, settings in planned:
                journal.started(number)
                try:
                    if lost is not None:
                        raise lost  # what cannot be kept is not computed
                    outcome, lines = _run_cell(settings, folder, strict=False)
                except Exception as error:
                    lost = error if isinstance(error, ResultsError) else lost
                    text = " ".join(f"{'' if isinstance(error, AdvcliError) else type(error).__name__ + ': '}{error}".split())
                    outcome, lines = CellOutcome("", settings.label, "", "failed", error=text), [f"{settings.label}: failed: {text}"]
                journal.finished(number, outcome.status, outcome.skipped, lines)
                # the rows are on the disk; sending them to the parent again would cost memory
                done.append((number, dataclasses.replace(outcome, rows=[]), lines))
        return done

    @contextlib.contextmanager
    def plan(self, master: DictConfig, cells: list[list[str]], compose: Callable[[Sequence[str]], DictConfig]) -> Iterator[list[list[str]]]:
        """Check all cells of a sweep, prepare their folder and share them out among the jobs of the launcher.

        The cells of a job are given to it in a file: the launcher composes a config for each job, which takes longer than a small
        cell, so a long sweep has fewer jobs than cells. A job gets every so many-th cell, because neighbours are alike long.
        """
        first = compose(cells[0])
        _refuse_added_keys(first.hydra)
        plans = configuration.compose_all(cells, lambda words: configuration.plain(_own(compose(words))), _scalar_override)
        settled = [configuration.check(values) for values in plans]
        for key in ("name", "results_dir", "data_dir", "workers", "cells_per_job", "quiet", "results"):
            if len({str(getattr(cell, key)) for cell in settled}) > 1:
                raise ConfigError(f"{key} must be the same for all cells of a sweep; give one value")
        options: dict[str, dict[str, Any]] = {}
        for cell in settled:
            name = cell.dataset["name"]
            if options.setdefault(name, cell.dataset) != cell.dataset:
                differing = [key for key, value in cell.dataset.items() if options[name].get(key) != value]
                raise ConfigError(
                    f"dataset.{differing[0]} varies under one name: give each data set its own dataset.name, or its own sweep"
                )
        folder = self._prepare(settled, cells)
        self.cells = len(cells)
        self.config = configuration.plain(_own(master))
        workers = settled[0].workers or os.cpu_count() or 1
        jobs = min(len(cells), -(-len(cells) // settled[0].cells_per_job) if settled[0].cells_per_job else JOBS_PER_WORKER * workers)
        ranks = {name: rank for rank, name in enumerate(options)}
        batches = [sorted(range(job, len(cells), jobs), key=lambda at: ranks[settled[at].dataset["name"]]) for job in range(jobs)]
        here = str(OmegaConf.select(first, "hydra.launcher._target_")).endswith("JoblibLauncher")
        if not settled[0].quiet:
            many = f", {min(workers, len(cells))} at a time" if here else ""
            _say(f"{_counted(len(cells))}{many}; results in {_short(folder.path)}")
        with folder.session() as self.session:
            try:
                for job, batch in enumerate(batches):
                    (self.session / f"job{job}.pickle").write_bytes(pickle.dumps([(at, settled[at]) for at in batch]))
            except OSError as error:
                raise ResultsError(
                    f"cannot write into {folder.path}: {error.strerror}; free space or choose another results_dir"
                ) from error
            progress = Progress(self.session, len(cells), _say, settled[0].quiet)
            try:
                with progress:
                    yield [cells[batch[0]] for batch in batches]
            finally:
                self.told = progress.done

    def _prepare(self, cells: list[Settings], words: list[list[str]]) -> ResultsFolder:
        """Check what needs no data, each different combination once, then create the results folder."""
        from . import estimators
        from .data.label_noise import check_noise
        from .evaluation.selection import Protocol, find_axes, split_hyper
        from .records import ResultsFolder

        checked: set[str] = set()
        used: set[str] = set()
        unused: dict[str, dict[str, Settings]] = {}
        for cell in cells:
            if cell.results is not None:
                raise ConfigError("the key results is for advcli report; name= and results_dir= say where a run writes")
            ordered = any(cell.dataset.get(key) for key in ("ordered", "order", "cut")) or cell.protocol["splits"] == "author"
            combination = repr((cell.loss, cell.features, cell.solver, ordered, cell.protocol, cell.hyper, cell.noise))
            if combination in checked:
                continue
            checked.add(combination)
            estimators.check_compatible(cell.loss, cell.features, cell.solver, ordered, None)
            check_noise(cell.noise)
            names = estimators.hyper_names(cell.features, cell.loss)
            own, others = split_hyper(names, cell.hyper)
            find_axes(Protocol.from_mapping(cell.protocol), names, own)
            used |= set(own)
            for key in others:
                unused.setdefault(key, {})[f"{cell.loss['name']} {cell.features['name']}"] = cell
        for key, methods in unused.items():
            if key not in used:  # by no method of the sweep: the error of one of them
                cell = next(iter(methods.values()))
                find_axes(Protocol.from_mapping(cell.protocol), estimators.hyper_names(cell.features, cell.loss), cell.hyper)
            elif not cells[0].quiet:
                _say(f"note: hyper.{key} is no hyper-parameter of {', '.join(methods)}: no part of these cells")
        self.settings = cells[0]
        folder = ResultsFolder(cells[0].folder)
        folder.prepare(_identity(cells, words))
        return folder

    def collect(self, results: list[Any] | None) -> None:
        """Keep what became of the cells."""
        if results is None:
            self.died = f"a worker process died (killed, or out of memory); finished cells are kept; {self._resume()} workers=1"
        for number, outcome, lines in (cell for job in results or [] for cell in job):
            self.outcomes.append(outcome)
            if number not in self.told and outcome.status == "failed":  # the journal could not take it
                _say("\n".join(lines))

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
        failed = [outcome for outcome in self.outcomes if outcome.status == "failed"]
        if settings.quiet:
            return 1 if failed or self.died else 0
        if len(self.outcomes) == 1 and self.cells == 1:
            _print_block(self.outcomes[0], settings)
        for note in dict.fromkeys(f"note: {outcome.dataset}: {note}" for outcome in self.outcomes for note in outcome.notes):
            _say(note)
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
    from .estimators import hyper_names
    from .evaluation.runner import Cell, run_cell
    from .evaluation.selection import split_hyper
    from .reports.table import shown, title

    cell = Cell(
        dataset=settings.dataset,
        loss=settings.loss,
        features=settings.features,
        solver=settings.solver,
        protocol=settings.protocol,
        hyper=split_hyper(hyper_names(settings.features, settings.loss), settings.hyper)[0],
        seed=settings.seed,
        noise=None if settings.noise["name"] == "none" else settings.noise,
    )
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        outcome = run_cell(cell, folder, settings.data_dir, strict, **settings.limits)
    head = f"{outcome.dataset}, {outcome.method}"
    if outcome.status == "failed":
        return outcome, [f"{head}: failed: {outcome.error}"]
    chosen = ", ".join(f"{name}={value:g}" for name, value in outcome.hyper.items())
    result = f"{title(outcome.metric)} {shown(outcome.metric, outcome.mean, outcome.std)}"
    gap = f"gap {outcome.worst_gap:.1e}" if outcome.worst_gap == outcome.worst_gap else ""  # no certificate, no gap
    first = f"{head}: {', '.join(part for part in (result, chosen, gap) if part)}"
    first += ", already there" if outcome.skipped else f", {outcome.seconds:.1f} s"
    said = [outcome.warning] if outcome.warning else []
    said += [f"{head}: {edge}" for edge in outcome.edges]
    said += [str(warning.message) for warning in caught if not issubclass(warning.category, NotConvergedWarning)]
    if outcome.choice and not outcome.skipped:
        first += f"; {outcome.choice}"
    return outcome, [first, *(f"advcli: warning: {' '.join(text.split())}" for text in dict.fromkeys(said))]


def _identity(cells: list[Settings], words: list[list[str]]) -> dict[str, Any]:
    """Return what all cells of a results folder share, so that its rows can stand in one table.

    Data sets, losses, features and solvers are columns of the rows: a folder may get more of them. Their options count as far as
    the command line sets them, because rows do not tell two files behind ``dataset=csv`` apart.
    """

    from .records import canonical_json

    def one(values: list[Any]) -> Any:
        distinct = list({canonical_json(value): value for value in reversed(values)}.values())[::-1]
        return distinct[0] if len(distinct) == 1 else {"each of": distinct}

    identity: dict[str, Any] = {
        "seed": one([cell.seed for cell in cells]),
        "hyper": one([cell.hyper for cell in cells]),
        "solver": one([{key: value for key, value in cell.solver.items() if key != "name"} for cell in cells]),
        # how reports test changes no row
        "protocol": one([{key: value for key, value in cell.protocol.items() if key not in ("test", "alpha")} for cell in cells]),
    }
    options: dict[str, list[Any]] = {}
    groups = ("dataset.", "loss.", "features.", "noise.")
    for text in dict.fromkeys(text for cell in words for text in cell if text.lstrip("+~").startswith(groups)):
        (override,) = OverridesParser.create().parse_overrides([text])
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
    if chosen:
        print(f"hyper-parameters: {', '.join(chosen)}")
    if outcome.worst_gap == outcome.worst_gap:
        print(f"worst relative gap: {outcome.worst_gap:.1e} (tol {settings.solver['tol']:.0e}), at most {outcome.passes} passes")
    if outcome.choice:
        print(outcome.choice)


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

        path = _existing_folder(settings)
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


def _existing_folder(settings: Settings) -> Path:
    """Return the results folder that was asked for."""
    path = settings.results or settings.folder
    if not path.is_dir():
        others = [entry.name for entry in path.parent.iterdir() if entry.is_dir()] if path.parent.is_dir() else []
        hint = f"; {nearest(path.name, others)}" if others else ""
        raise ResultsError(f"no results folder {_short(path)}{hint}")
    return path


def _test_of(folder: ResultsFolder, settings: Settings) -> tuple[str, float]:
    """Return test and level: as asked, else as the cells were made with."""
    stored = (folder.read_cell(file.stem) for file in sorted(folder.cells_path.glob("*.json")))
    protocol = next((cell["about"]["cell"]["protocol"] for cell in stored if cell is not None), settings.protocol)
    return settings.report["test"] or protocol["test"], settings.report["alpha"] or protocol["alpha"]


class Check(Task):
    """Compare the rows of a results folder with a baseline: exit code 1 if a cell moved or is missing."""

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        # people write flags: --update is update=true
        self.overrides = ["update=true" if word == "--update" else word for word in words]
        self.code = 0

    def act(self, settings: Settings) -> None:
        """Print one line per cell that is not as it was; write the JUnit file and the new baseline if they were asked for."""
        if settings.baseline is None:
            raise ConfigError("advcli check needs baseline=FILE.csv; with --update it writes one")
        from .records import ResultsFolder, write_text
        from .reports import check

        folder = ResultsFolder(_existing_folder(settings))
        previous = check.read_baseline(settings.baseline) if settings.baseline.exists() or not settings.update else None
        if previous is not None:
            test, alpha = settings.report["test"] or check.TEST, settings.report["alpha"] or check.ALPHA
            changes = check.check_folder(folder, settings.baseline, test=test, alpha=alpha)
            print(check.changes_text(changes), end="")
            if settings.junit is not None:
                with contextlib.suppress(OSError):  # the next line says what is wrong
                    settings.junit.parent.mkdir(parents=True, exist_ok=True)
                text = check.junit_xml(changes, f"advcli check {settings.baseline.name}")
                write_text(settings.junit, text, "choose another junit=FILE.xml")
            self.code = int(not settings.update and any(change.failed for change in changes))
        elif settings.junit is not None:
            raise ConfigError(f"junit=... needs a baseline to compare with, and {_short(settings.baseline)} is not there yet; leave it out")
        if settings.update:
            self._update(settings.baseline, check.folder_baseline(folder, previous=previous))

    def _update(self, path: Path, baseline: Any) -> None:
        from .reports import check

        check.write_baseline(path, baseline)
        print(f"{_short(path)}: {_counted(len(baseline))}, kept for later checks")
        for cell in baseline.attrs["left_out"]:
            _say(f"{cell}: left out of the baseline, as not every split has a result; run the experiment again, then update")
            self.code = 1

    def finish(self) -> int:
        """Return 1 if the check failed."""
        super().finish()
        return self.code


class Fit(Task):
    """Fit one method to a whole data set and save it."""

    def act(self, settings: Settings) -> None:
        """Search, fit, save; print what was chosen and the certificate."""
        if settings.out is None:
            raise ConfigError("advcli fit needs out=FILE, the model file to write")
        if settings.noise["name"] != "none":
            raise ConfigError(f"advcli fit learns from the labels of the data; leave out noise={settings.noise['name']}")
        _refuse_unwritable(settings.out, settings.dataset.get("path"))
        from . import models
        from .evaluation import Cell

        parts = ("dataset", "loss", "features", "solver", "protocol", "hyper", "seed")
        began = time.perf_counter()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("default")
            model = models.fit(Cell(**{part: getattr(settings, part) for part in parts}), settings.data_dir)
        models.save(model, settings.out)
        about, certificate = model.about, model.certificate
        said = [f"note: {about['dataset']}: {note}" for note in about["notes"]]
        said += [f"warning: {edge}" for edge in about["edges"]]
        said += [f"warning: {warning.message}" for warning in caught if not issubclass(warning.category, NotConvergedWarning)]
        if certificate is not None and not certificate.converged:
            said.append(f"warning: not converged ({certificate.status}); raise solver.max_passes or solver.tol")
        for remark in dict.fromkeys(said):
            _say(" ".join(remark.split()))
        chosen = [f"{name} = {value:g}{' (fixed)' if name in settings.hyper else ''}" for name, value in about["hyper"].items()]
        if about["searched"] is not None:
            chosen.append(f"cross-validated {about['metric']} {about['searched']:.4g}")
        print(f"{settings.label}: {about['rows']} rows, {model.estimator.n_features_in_} features, {len(model.classes)} classes")
        if chosen:
            print(f"hyper-parameters: {', '.join(chosen)}")
        if certificate is not None:
            bounds = f"objective {certificate.primal:.6g}, dual {certificate.dual:.6g}, relative gap {certificate.relative_gap:.1e}"
            print(f"certificate: {bounds} (tol {settings.solver['tol']:.0e}), {certificate.passes:.0f} passes")
        if certificate is not None and certificate.game_value == certificate.game_value:
            print(f"guarantee: expected loss at most {certificate.game_value:.4g} under every label distribution that the moments allow")
        print(f"{_short(settings.out)}: the model, {time.perf_counter() - began:.1f} s")


class Predict(Task):
    """Apply a saved model to a CSV file."""

    keys = ("model", "input", "out", "chunk_rows")

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        for word in words:
            key, equals, _ = word.partition("=")
            if equals and not key.startswith("-") and key.lstrip("+") not in self.keys:
                raise ConfigError(f"advcli predict takes {', '.join(self.keys)}; everything else stands in the model, leave out {word}")

    def act(self, settings: Settings) -> None:
        """Read, predict and write, some rows at a time."""
        for key, what in (("model", "the file that advcli fit wrote"), ("input", "the CSV file of new rows"), ("out", "the file to write")):
            if getattr(settings, key) is None:
                raise ConfigError(f"advcli predict needs {key}=FILE, {what}")
        assert settings.model is not None
        assert settings.input is not None
        assert settings.out is not None
        _refuse_unwritable(settings.out, settings.input, settings.model)
        from . import models

        done = models.predict_file(models.load(settings.model), settings.input, settings.out, settings.chunk_rows)
        if done.ignored:
            _say(f"note: not used by the model: {', '.join(done.ignored)}")
        abstained = f", {done.abstained} of them abstaining" if done.abstained else ""
        print(f"{_short(settings.out)}: {done.rows} predictions{abstained}")


def _refuse_unwritable(path: Path, *inputs: str | Path | None) -> None:
    """Refuse an output that cannot be written, or would replace an input, before the work is done."""
    for other in inputs:
        if other is not None and path.exists() and Path(other).expanduser().exists() and path.samefile(Path(other).expanduser()):
            raise ConfigError(f"out={_short(path)} is also an input; choose another file")
    if path.is_dir():
        raise ConfigError(f"out={_short(path)} is a folder; give the name of a file")
    if not path.parent.is_dir():
        raise ConfigError(f"out={_short(path)}: there is no folder {_short(path.parent)}; make it first")
    if not os.access(path.parent, os.W_OK):
        raise ConfigError(f"out={_short(path)}: the folder {_short(path.parent)} cannot be written; choose another one")


class Bench(Task):
    """Trace the convergence of the listed solvers (and data sets, losses, features), one after the other in this process."""

    single = False

    def __init__(self, words: list[str]) -> None:
        super().__init__(words)
        # a sweep in one process: solvers that are timed must not share the machine
        self.overrides = [*(word for word in words if word not in ("-m", "--multirun")), "-m", "hydra/launcher=basic"]
        self.rows: list[dict[str, Any]] = []
        self.cells: list[Settings] = []

    @contextlib.contextmanager
    def plan(self, master: DictConfig, cells: list[list[str]], compose: Callable[[Sequence[str]], DictConfig]) -> Iterator[list[list[str]]]:
        """Check all problems before the first one starts."""
        from . import estimators

        _refuse_added_keys(compose(cells[0]).hydra)
        self.cells = [validate(_own(compose(words))) for words in cells]
        for cell in self.cells:
            ordered = any(cell.dataset.get(key) for key in ("ordered", "order", "cut"))
            estimators.check_compatible(cell.loss, cell.features, cell.solver, ordered, None)
        _say(f"{len(self.cells)} traces, one at a time; results in {_short(self.cells[0].folder)}")
        yield cells

    def __call__(self, config: DictConfig) -> None:
        """Trace one solver on one problem; an error waits for `finish` and ends the rest."""
        if self.error is None and self.cells:
            try:
                self.act(self.cells[HydraConfig.get().job.num])
            except Exception as error:
                self.error = error

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


ACTIONS: dict[str, type[Task]] = {
    "run": Run,
    "report": Report,
    "check": Check,
    "bench": Bench,
    "fit": Fit,
    "predict": Predict,
    "data": Data,
}


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
