"""The configuration files and their check: every option is explained, composes, and means what it says."""

from __future__ import annotations

import copy
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path

import hydra
import pytest
import yaml
from omegaconf import DictConfig, OmegaConf

from advcli.cli import main
from advcli.config import GROUPS, validate
from advcli.core.errors import ConfigError
from advcli.core.paths import conf_dir

CONF = conf_dir()
FILES = sorted(path for path in CONF.rglob("*.yaml") if "hydra" not in path.relative_to(CONF).parts)
CHOICES = [
    f"{group}={path.relative_to(CONF / group).with_suffix('')}" for group in GROUPS for path in sorted((CONF / group).glob("*.yaml"))
]


def compose(*overrides: str) -> DictConfig:
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        return hydra.compose("config", list(overrides))


@cache
def options_of(path: Path) -> dict[str, bool]:
    """Return the options that a file sets, and whether a comment stands above each (Hydra's own keys left out)."""
    lines = path.read_text(encoding="utf-8").splitlines()
    found: dict[str, bool] = {}
    for at, line in enumerate(lines):
        if line.startswith("hydra:"):
            break
        key = re.match(r" *([A-Za-z_]\w*):", line)
        if key is not None and key[1] not in ("defaults", "name", "source"):
            above = lines[at - 1].strip()
            found[key[1]] = found.get(key[1], False) or above.startswith("#") or "#" in line
    return found


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(CONF)))
def test_every_option_is_explained(path: Path) -> None:
    """In the file itself, in another choice of the group that this one starts from, or in one that both start from."""
    assert path.read_text(encoding="utf-8").startswith("#"), "the file says in its first line what it is"
    explained = {
        name
        for other in [*path.parent.glob("*.yaml"), *(CONF / "base").glob("*.yaml")]
        for name, comment in options_of(other).items()
        if comment
    }
    bare = set(options_of(path)) - explained - set(GROUPS) - {"stage1", "stage2"}
    assert not bare, f"{path.name}: no comment explains {sorted(bare)}"


@pytest.fixture(scope="module")
def defaults() -> DictConfig:
    config = compose("name=x")
    OmegaConf.set_struct(config, False)
    return config


@pytest.mark.parametrize("choice", CHOICES)
def test_every_choice_composes_and_is_valid(choice: str, defaults: DictConfig) -> None:
    """The choice is composed alone and put in the place of its group: all groups again for each of 150 choices is most of the time."""
    group, _, name = choice.partition("=")
    text = (CONF / group / f"{name}.yaml").read_text(encoding="utf-8")
    prefers = "override /" in text  # another group's choice, which alone it does not have
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        alone = hydra.compose("config", [choice, "name=x"]) if prefers else hydra.compose(f"{group}/{name}")
    config = copy.copy(defaults)
    config[group] = alone[group]
    settings = validate(config)
    # a file may be another name of a choice, and says so
    chosen = settings.protocol.name if group == "protocol" else getattr(settings, group).get("name", name)
    assert chosen == name or "another name of" in text.lower()


@pytest.mark.parametrize("group", GROUPS)
def test_a_choice_alone_is_the_choice_among_the_others(group: str, defaults: DictConfig) -> None:
    choice = next(each for each in reversed(CHOICES) if each.startswith(f"{group}="))
    with hydra.initialize_config_dir(str(CONF), version_base="1.3"):
        alone = hydra.compose(choice.replace("=", "/"))
    assert OmegaConf.to_container(alone[group], resolve=False) == OmegaConf.to_container(compose(choice, "name=x")[group], resolve=False)


def test_every_preset_composes() -> None:
    for path in (CONF / "experiment").glob("*.yaml"):
        config = compose(f"+experiment={path.stem}")
        if config.get("plugins"):  # a folder of the source code, which an installed package does not have
            config.plugins = str(Path(__file__).parents[2] / config.plugins)
        assert validate(config).name == path.stem


def test_defaults_are_those_of_the_protocol_in_the_papers() -> None:
    settings = validate(compose("name=x"))
    assert (settings.dataset["name"], settings.loss["name"], settings.features["name"]) == ("iris", "zero_one", "linear")
    standard, protocol = settings.protocol, validate(compose("name=x", "protocol=papers")).protocol
    assert (standard.search, standard.standard_errors) == ("every_split", 0.25)
    assert standard.stage1["regularisation"] == [2.0**i for i in (-9, -6, -3, 0, 3)]
    assert standard.extend == {"regularisation": [2.0**-18, 2.0**18], "gamma": [2.0**-18, 2.0**6], "tolerance": [2.0**-6, 2.0**3]}
    assert (protocol.search, protocol.standard_errors, protocol.extend) == ("first_split", 0.0, {})
    assert protocol.stage1["regularisation"] == [2.0**i for i in (0, 3, 6, 9, 12)]
    assert protocol.stage1["gamma"] == [2.0**i for i in (-12, -9, -6, -3, 0)]
    for name in ("regularisation", "gamma"):
        assert standard.stage2[name] == protocol.stage2[name] == [2.0**i for i in range(-2, 3)]
    assert (protocol.n_splits, protocol.folds, protocol.train_size, protocol.alpha) == (20, 5, 0.7, 0.05)
    assert (settings.solver["tol"], settings.solver["search_tol"]) == (1e-3, 1e-2)
    ordinal = validate(compose("name=x", "protocol=ordinal")).protocol
    assert ordinal.stage1["regularisation"] == [2.0**i for i in range(-1, -14, -2)]
    assert ordinal.stage2["regularisation"] == pytest.approx([2 ** (i / 2) for i in range(3, -4, -1)], rel=1e-15)
    assert (ordinal.metric, ordinal.regularisation) == ("mae", "lambda")
    tests = {name: validate(compose("name=x", f"protocol={name}")).protocol.test for name in ("fathony2016", "fathony2018")}
    assert tests == {"fathony2016": "ttest", "fathony2018": "wilcoxon"}


def test_author_splits_may_be_loosened_on_the_command_line() -> None:
    tight, loose = compose("protocol=author_splits", "name=x"), compose("protocol=author_splits", "solver.tol=1e-2", "name=x")
    assert validate(tight).protocol.splits == "author"
    assert validate(tight).protocol.n_splits == 20
    assert validate(tight).solver["tol"] == 1e-5
    assert validate(loose).solver["tol"] == 1e-2


def test_values_are_converted_to_their_types() -> None:
    settings = validate(compose("name=2026", "solver.tol=1", "hyper.C=1024", "protocol.stage1.regularisation=[1,2]"))
    assert settings.name == "2026"
    assert settings.solver["tol"] == 1.0
    assert isinstance(settings.solver["tol"], float)
    assert settings.hyper == {"C": 1024.0}
    assert all(isinstance(value, float) for value in settings.protocol.stage1["regularisation"])


def test_unknown_keys_of_a_closed_group_are_refused() -> None:
    config = compose("name=x")
    OmegaConf.set_struct(config, False)
    config.protocol.fold = 3
    with pytest.raises(ConfigError, match=r"unknown key 'protocol\.fold'; did you mean protocol\.folds"):
        validate(config)


@pytest.mark.usefixtures("elsewhere")
def test_options_of_a_loss_from_a_file_of_the_users_are_kept(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """A new loss is one YAML file and one Python file: the check must not know its options."""
    (tmp_path / "loss").mkdir()
    (tmp_path / "loss" / "mine.yaml").write_text("name: mine\nslack: 0.3\n", encoding="utf-8")
    assert main(["--config-dir", str(tmp_path), "loss=mine", "--cfg", "job"]) == 0
    shown = yaml.safe_load(capfd.readouterr().out)
    assert shown["loss"] == {"name": "mine", "slack": 0.3}
    config = compose("name=x")
    OmegaConf.set_struct(config, False)
    config.loss = {"name": "mine", "slack": 0.3}
    assert validate(config).loss == {"name": "mine", "slack": 0.3}


def test_cfg_shows_the_composed_config(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["dataset=wine", "loss=cs", "hyper.C=2", "--cfg", "job"]) == 0
    out, err = capfd.readouterr()
    shown = yaml.safe_load(out)
    assert (shown["dataset"]["name"], shown["loss"]["name"], shown["hyper"]["C"]) == ("wine", "cs", 2)
    assert err == ""


WORDS = [
    ["hyper.C=3"],
    ["dataset=wine", "loss=cs", "seed=4"],
    ["loss=cs", "dataset=wine", "features.name=x", "hydra/launcher=cores"],
    ["+experiment=quickstart", "loss=ww"],
    ["dataset=csv", "dataset.path=a.csv", "+dataset.more={a: 1}", "~protocol.folds"],
    ["loss={name: mine}"],
]


def test_what_the_tests_keep_of_compositions_is_what_hydra_composes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """`quick_hydra` at the first time, at a later one, and a process without it."""
    monkeypatch.chdir(tmp_path)
    code = f"from advcli.cli import main\nfor words in {WORDS!r}: main(['--cfg', 'all', *words])"
    plain = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ)).stdout
    assert plain.count("config_sources") == len(WORDS)
    for _ in range(2):
        for words in WORDS:
            main(["--cfg", "all", *words])
        assert capfd.readouterr().out == plain


def test_version(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["--version"]) == 0
    assert re.fullmatch(r"advcli \d+\.\d+\.\d+\S*\n", capfd.readouterr().out)


@pytest.mark.parametrize(
    ("line", "offers", "hides"),
    [
        ("advcli data", ["data", "data_dir=", "dataset="], ["loss="]),
        ("advcli loss=", ["loss=zero_one", "loss=cs"], ["loss="]),
        ("advcli solver.to", ["solver.tol="], []),
        ("advcli report res", ["results=", "results_dir="], ["report"]),
        ("advcli help ", ["fit", "loss", "hyper.C", "protocol.n_splits"], ["loss=", "seed="]),
        ("advcli help hy", ["hyper", "hyper.C"], ["fit"]),
        ("advcli he", ["help"], ["fit"]),
        ("advcli data ", ["list", "show", "fetch"], ["loss="]),
        ("advcli data show ir", ["iris"], ["wine"]),
        ("advcli data list data_", ["data_dir="], []),
        ("advcli +exp", ["+experiment="], []),
        ("advcli dataset=iris dataset.s", ["dataset.source=", "dataset.sizes."], []),
    ],
)
def test_completion(
    line: str, offers: list[str], hides: list[str], monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COMP_LINE", line)
    assert main(["-sc", "query=bash"]) == 0
    words = capfd.readouterr().out.split()
    assert set(offers) <= set(words)
    assert not set(hides) & set(words)


def test_completion_script_is_printed(capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["-sc", "install=bash"]) == 0
    assert "complete -o nospace" in capfd.readouterr().out


def test_cli_stays_light() -> None:
    """Each <TAB> starts the program: the libraries of the work must not load with it."""
    code = "import sys, advcli.cli; print([n for n in ('numpy', 'pandas', 'scipy', 'sklearn', 'joblib') if n in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, env=dict(os.environ))
    assert done.stdout.strip() == "[]"


def test_a_run_loads_no_library_that_it_does_not_use(tmp_path: Path) -> None:
    """scikit-learn imports scipy.stats for all cases, which takes longer than a small run; a table of one method has no test in it."""
    command = [sys.executable, "-X", "importtime", "-m", "advcli", "dataset=iris", "protocol.n_splits=2", f"results_dir={tmp_path}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=dict(os.environ), cwd=tmp_path)
    loaded = {line.rpartition("|")[2].strip() for line in done.stderr.splitlines() if line.startswith("import time:")}
    assert {"pandas.core.frame", "sklearn.base"} <= loaded
    assert not loaded & {
        "scipy.stats._stats_py",
        "sklearn.model_selection",
        "sklearn.metrics",
        "numpy.f2py.f2py2e",
    }


def test_data_actions(capfd: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["data", "list", "data_dir=here"]) == 0
    out = capfd.readouterr().out
    here, _, rest = out.partition("Not here")
    assert re.search(r"^digits +1797 +64 +10 +multiclass$", here, re.M)
    assert re.search(r"^glass +214 +multiclass +3.4 kB +CC BY 4.0$", rest, re.M)
    assert str(tmp_path / "here") in out
    assert main(["data", "show", "wine"]) == 0
    assert re.search(r"^rows: +178$", capfd.readouterr().out, re.M)
    (tmp_path / "my.csv").write_text("a,label\n" + "1,x\n2,y\n" * 10, encoding="utf-8")
    assert main(["data", "show", "csv", "dataset.path=my.csv", "dataset.target=label"]) == 0
    assert re.search(r"^rows: +20$", capfd.readouterr().out, re.M)
    assert main(["data", "fetch", "iris", "url=ftp://nowhere"]) == 2
    assert "url=ftp://nowhere must start with http" in capfd.readouterr().err
