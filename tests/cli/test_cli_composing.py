"""Hydra composes the config once for a command, and looks for the mode where a file may choose one."""

import pytest
from hydra._internal.config_loader_impl import ConfigLoaderImpl
from omegaconf import OmegaConf

from advcli.cli import main
from advcli.core.paths import conf_dir


@pytest.mark.parametrize(
    ("words", "once"),
    [
        (["dataset=iris"], True),
        (["dataset=iris", "hydra.mode=RUN"], True),
        (["dataset=iris", "hydra.mode=MULTIRUN"], False),
        (["+experiment=quickstart"], False),
    ],
)
def test_a_command_composes_once_where_the_mode_is_known(words, once, monkeypatch, tmp_path, capsys) -> None:
    compose, times = ConfigLoaderImpl.load_configuration, []
    monkeypatch.setattr(ConfigLoaderImpl, "load_configuration", lambda *given, **named: times.append(1) or compose(*given, **named))
    assert main([*words, "dry_run=true", f"results_dir={tmp_path}"]) == 0
    assert "nothing is computed" in capsys.readouterr().out
    assert (len(times) == 1) == once


def test_only_presets_of_the_package_choose_a_mode() -> None:
    files = [file for file in conf_dir().rglob("*.yaml") if file.parent.name != "experiment"]
    assert len(files) > 20
    for file in files:
        text = file.read_text(encoding="utf-8")
        chosen = OmegaConf.to_container(OmegaConf.create(text), resolve=False) if "mode" in text else {}
        assert "mode" not in (chosen.get("hydra") or {}), file
        assert file.parent.name != "hydra" or "mode" not in chosen, file


def test_a_file_of_a_user_may_choose_the_mode(tmp_path, capsys) -> None:
    folder = tmp_path / "mine" / "features"
    folder.mkdir(parents=True)
    sweep = "hydra:\n  mode: MULTIRUN\n  sweeper:\n    params:\n      hyper.C: 1,2\n"
    (folder / "twice.yaml").write_text(f"# @package _global_\ndefaults: [/features/linear, _self_]\n{sweep}", encoding="utf-8")
    words = ["--config-dir", str(tmp_path / "mine"), "dataset=iris", "features=twice", "dry_run=true", f"results_dir={tmp_path}"]
    assert main(words) == 0
    assert "2 cells" in capsys.readouterr().out
