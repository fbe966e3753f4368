"""A normal wheel, installed elsewhere, gives a working `advcli` from any directory: configs and compiled parts travel in the wheel."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread

import pytest

from advcli.core.compiled import LEVELS

ROOT = Path(__file__).resolve().parents[2]


def run(command: list[str | Path], folder: Path, **more: str) -> subprocess.CompletedProcess[str]:
    environment = {key: value for key, value in os.environ.items() if key not in {"PYTHONPATH", "ADVCLI_DATA", "ADVCLI_SIMD"}} | more
    return subprocess.run([str(word) for word in command], cwd=folder, env=environment, capture_output=True, text=True, timeout=1800)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Build from a copy of the sources, so that neither build folders nor caches of the checkout take part."""
    for tool in ("mesonpy", "Cython", "mesonbuild"):
        if importlib.util.find_spec(tool) is None:
            pytest.skip(f"the build tool {tool} is not installed")
    folder = tmp_path_factory.mktemp("wheel")
    source = folder / "source"
    keep_out = shutil.ignore_patterns(".git", ".venv", "build", "dist", "results", "data", "tests", "__pycache__", ".*_cache", "*.so")
    # the ignored names are those of the top folder only: advcli/data and advcli/results stay
    source.mkdir()
    for entry in ROOT.iterdir():
        if entry.name in keep_out(str(ROOT), [item.name for item in ROOT.iterdir()]):
            continue
        if entry.is_dir():
            shutil.copytree(entry, source / entry.name, ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        else:
            shutil.copy2(entry, source)
    bin_folder = str(Path(sys.executable).parent)
    # one instruction set: that each is built by default is asked of meson below, in a hundredth of the time
    # nor does a kernel that is built in a third of the time answer otherwise
    options = ["-Dlevels=portable", "-Doptimization=0"]
    settings = ["--no-deps", "--no-build-isolation", *(f"--config-settings=setup-args={option}" for option in options)]
    done = run(
        [sys.executable, "-m", "pip", "wheel", *settings, "--wheel-dir", folder, source],
        folder,
        PATH=os.pathsep.join([bin_folder, os.environ["PATH"]]),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (built,) = folder.glob("advcli-*.whl")
    return built


@pytest.fixture(scope="module")
def program(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Install the wheel into an environment of its own; the libraries come from this one by a path file, which saves their installation."""
    folder = tmp_path_factory.mktemp("environment")
    venv.EnvBuilder(with_pip=False, symlinks=True).create(folder)
    (site,) = folder.glob("lib/python*/site-packages")
    done = run([sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--target", site, wheel], folder)
    assert done.returncode == 0, done.stdout + done.stderr
    libraries = [path for path in sys.path if path.endswith("site-packages")]
    # A plain .pth adds folders only: the editable install's own .pth there is not run, so the checkout cannot stand in for the wheel.
    (site / "libraries.pth").write_text("\n".join(libraries) + "\n", encoding="utf-8")
    launcher = folder / "bin" / "advcli"
    launcher.write_text(f"#!{folder}/bin/python\nimport sys\nfrom advcli.cli import main\nsys.exit(main())\n", encoding="utf-8")
    launcher.chmod(0o755)
    return launcher


class Silent(SimpleHTTPRequestHandler):
    """Serves a folder and says nothing."""

    def log_message(self, *about: object) -> None:
        pass


@pytest.fixture
def index(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Serve a package index (PEP 503) that holds the wheel, on the loopback."""
    folder = tmp_path_factory.mktemp("index")
    (folder / "simple" / "advcli").mkdir(parents=True)
    shutil.copy2(wheel, folder / "simple" / "advcli")
    server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=str(folder)))
    thread = Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/simple"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.slow
def test_pip_installs_it_from_an_index_by_its_name(index: str, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    venv.EnvBuilder(with_pip=False, symlinks=True).create(environment)
    (site,) = environment.glob("lib/python*/site-packages")
    asked = ["--no-deps", "--no-cache-dir", "--isolated", "--index-url", index, "--target", site, "advcli"]
    done = run([sys.executable, "-m", "pip", "install", *asked], tmp_path, NO_PROXY="127.0.0.1", no_proxy="127.0.0.1")
    assert done.returncode == 0, done.stdout + done.stderr
    (site / "libraries.pth").write_text("\n".join(path for path in sys.path if path.endswith("site-packages")) + "\n", encoding="utf-8")
    program = [environment / "bin" / "python", "-m", "advcli"]
    done = run([*program, "-m", "+experiment=quickstart", "dataset=iris,wine", "protocol.n_splits=2", "workers=1", "name=first"], tmp_path)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "zero_one" in done.stdout
    assert (tmp_path / "results" / "first" / "table.md").is_file()
    assert (site / "bin" / "advcli").is_file()


@pytest.mark.slow  # compiles every kernel
def test_wheel_holds_configs_and_compiled_parts_and_no_tests(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "advcli/cli/actions/run.py" in names
    assert "advcli/conf/config.yaml" in names
    for option in (ROOT / "conf").rglob("*.yaml"):
        assert f"advcli/conf/{option.relative_to(ROOT / 'conf').as_posix()}" in names
    built = {name.split("/")[-1].split(".")[0] for name in names if name.startswith("advcli/_ext/") and name.endswith((".so", ".pyd"))}
    assert built == {"utility"} | {f"{kernel.stem}_portable" for kernel in (ROOT / "_ext").rglob("*.pyx")}
    assert not [name for name in names if name.startswith(("tests/", "results/", "data/"))]
    assert any(name.endswith("entry_points.txt") for name in names)


def test_every_kernel_is_built_for_every_instruction_set_by_default() -> None:
    """Meson reads the build description without configuring it, so options are at their defaults and no compiler is asked."""
    if importlib.util.find_spec("mesonbuild") is None:
        pytest.skip("the build tool mesonbuild is not installed")
    script = [sys.executable, "-m", "mesonbuild.mesonmain", "introspect", "--buildoptions", "meson.build"]
    done = run(script, ROOT)
    assert done.returncode == 0, done.stdout + done.stderr
    (option,) = [option for option in json.loads(done.stdout) if option["name"] == "levels"]
    assert set(option["value"]) == set(LEVELS)


@pytest.mark.slow  # compiles every kernel
def test_installed_program_works_from_another_folder(program: Path, tmp_path: Path) -> None:
    where = run([program.parent / "python", "-c", "import advcli; print(advcli.__file__)"], tmp_path)
    assert str(program.parents[1]) in where.stdout, where.stdout + where.stderr

    small = ["protocol.n_splits=2", "protocol.stage1.regularisation=[1]", "protocol.stage2.regularisation=[1]"]
    sweep = run([program, "-m", "dataset=iris", "loss=zero_one,cs", "name=sweep", "workers=2", *small], tmp_path)
    assert sweep.returncode == 0, sweep.stdout + sweep.stderr
    assert (tmp_path / "results" / "sweep" / "runs.csv").is_file()
    assert (tmp_path / "results" / "sweep" / "table.md").is_file()
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["results"]


@pytest.mark.slow  # compiles every kernel
def test_models_and_own_files_work_with_an_installed_program(program: Path, tmp_path: Path) -> None:
    (tmp_path / "my" / "loss").mkdir(parents=True)
    (tmp_path / "my" / "loss" / "own.yaml").write_text("# Mine.\nname: own\n")
    (tmp_path / "my" / "loss" / "own.py").write_text(
        "from advcli.losses import register\nfrom advcli.losses.zero_one import ZeroOneLoss\n\n\n"
        "@register('own')\nclass Own(ZeroOneLoss):\n    pass\n"
    )
    (tmp_path / "new.csv").write_text("a,b,label\n" + "".join(f"{i % 7},{i * i % 11},{'xyz'[i % 3]}\n" for i in range(60)))
    words = ["dataset=csv", "dataset.path=new.csv", "dataset.target=label", "loss=own", "hyper.C=1", "out=my.model"]
    fitted = run([program, "fit", "--config-dir", "my", *words], tmp_path)
    assert fitted.returncode == 0, fitted.stdout + fitted.stderr
    predicted = run([program, "predict", "--config-dir", "my", "model=my.model", "input=new.csv", "out=out.csv"], tmp_path)
    assert predicted.returncode == 0, predicted.stdout + predicted.stderr
    assert len((tmp_path / "out.csv").read_text().splitlines()) == 61
