"""Files that are not what `save` wrote: each is refused at load by one line, or predicts; none ends or fills the process."""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import resource
import struct
import subprocess
import sys
import warnings
import zipfile
import zlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import mutated_models, saved_models
from support.mutated_models import mutated, outcome, packed, unpacked, written

from advcli.cli import main
from advcli.core.errors import ModelError
from advcli.models import read, save
from advcli.models.files import _members

BATCH, BATCHES = 144, 10
HARMLESS = {"refused", "failed", "predicted"}
# of a Gaussian kernel over standardised rows, as format 1 was first written
OLD = (
    "c-qZYONbmr816N@c?^LBS<iO*G7-i}zvdN!V~B{dC<C&HNa)mb*G$^<R5jJr<F1npAx96Qh>xQe@gfKwyoJrhgLv>F=rOmTC(#^o2<Tr`{h03E$z?%OL(x^="
    "|ET}*RWYNjW9yrm8t1e}-!_IXu4|f@4M1izz)}0Xgpx%=Hzt(L5H~LB1`6hW6zWoJv<i_o$1Djc0ToN2N=+D;ZL4icO`Px$R4EhiTPb67ia5R!p(F_>A!br3"
    "Mhwj`2XCMSN9)EF;j?YF#2W8#hP()kaU|p<jUtIpFybl00yEfnVpKqn#vDSc8id>n2^{0&Smec7ilrbzvt_-ACerB#m{E@sY!v8WUT0{>iy<8uh-HdV;0g9A"
    "354KvG6_k@ccqAUew14jei$MFop}j|`T(w+Bs78|%O0eh8cWz=p>P@r%eHA+4Si3xgmV^-Q!bBMNXUmS7Io&ku{g}Qv~4Npa}=dg{4VUkUZT1&HsEtLcgh&r"
    "&2@|!Mnu^%`hJpy=%XkrTY|aAm&(YmV~)VvRpE(vOHH(8bVXsLb9KHvUK$iESS|GgIrIDyEV!lUSClDccoOc2w3UI8<>h0>ft0>#z(T14dsR^#%N^J~({!Cd"
    "zt?wd=_*K{B%PvI^+S~hM~H`W>{a1{J9gXdNCY?o4W8m)nWKUisib8ou2JL$W(3laF=e&S>6afig?r}79!s#Z)UCs^$O?lAkR~M4vWNy6)09h2HTFi8N9FeC"
    "i=B^QCFU8JiY*reP1+>h{q)W4H%9NQX>)DS1S0yZc~Ng(n)I73y$PLzt4=)10xa-XQIuf7lj|tPus?6NUTEoi`VmG$h52ZxzJCp?!M}a&m*gI-?p1>q%sz7P"
    "ZcDe17JlP3Hhg&Nr{9O|bEh^x`tqM)w%^b8`#*ekq4)e3e`m>QTDITM_tj({zkK>Z-l?-?vXTx@L#sY<Km7TRZypX`YMqYn>VMW+_1*ceUbzD+F`rwCzIbm|"
    "rf_p?{eNt$27TtYv%lv2S}M7G6rToysW|Uv1iHUp`wmy^3%r``_jevlF2hR9<1isoyVD)Gfo<7N*9x4mHE;$4*EX#lvYZZbtZvZroi6GI{vhb~2BzhhzTX`?"
    "zH4{-*mC-Pw=vpUduH?4>c27hxV@%T{?yd%>MvDkx4nMg-KrbcUy9QB*^LA5M%}o6^Gf4?HxAyzx^<oTrS;w8EABzvMV*JG3wGilE9=(vzLwV4PUc-6ZEZ-="
    "3HW^tjrj4T*!>5g(|+I"
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, dict[str, Any]]:
    """A folder with a model of every kind that takes no table, and the rows that they predict."""
    folder = tmp_path_factory.mktemp("models")
    os.mkfifo(folder / "pipe")
    rows = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fitted, new in saved_models.estimators(folder):
            save(fitted, folder / f"{name}.model")
            rows[name] = new
    return folder, rows


@pytest.fixture
def little_memory() -> Iterator[None]:
    """Memory beside what the process has: `mutated_models.ROOM`."""
    before = resource.getrlimit(resource.RLIMIT_AS)
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + mutated_models.ROOM, before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


@pytest.mark.filterwarnings("ignore::RuntimeWarning", "ignore:Duplicate name")
@pytest.mark.parametrize("first", range(100_000, 100_100, 25))
def test_mutated_files_are_refused_or_harmless(
    first: int, models: tuple[Path, dict[str, Any]], monkeypatch: pytest.MonkeyPatch, little_memory: None
) -> None:
    folder, rows = models
    monkeypatch.chdir(folder)
    array = Counter()
    for i in range(first, first + 25):
        kind, mutation, content = mutated(sorted(rows), folder, i)
        result = outcome(folder, kind, content, rows[kind])
        assert result in HARMLESS, (i, kind, mutation, result)
        array[result] += 1
    assert array["refused"] > 12


@pytest.mark.slow
@pytest.mark.assault("model files: mutated")
@pytest.mark.parametrize("batch", range(BATCHES))
def test_many_mutated_files_of_every_kind_are_refused_or_harmless(batch: int, tally: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """1,440 files in processes of their own: a crash, a hang or a hunger for memory ends the process, and is seen."""
    folder = tmp_path_factory.getbasetemp() / "every"
    if not folder.exists():
        folder.mkdir()
        os.mkfifo(folder / "pipe")
        (folder / "rows.pickle").write_bytes(pickle.dumps(saved_models.save_all(folder)))
    words = [sys.executable, mutated_models.__file__, str(folder), str(batch * BATCH), str(BATCH)]
    done = subprocess.run(words, capture_output=True, text=True, stdin=subprocess.DEVNULL)
    lines = done.stdout.splitlines()
    assert done.returncode == 0, (done.returncode, lines[-1:], done.stderr[-500:])
    array = [(line, base64.b64decode(line.rpartition(" ")[2]).decode()) for line in lines]
    assert len(array) == BATCH
    for line, ended in array:
        tally.count(line, "" if ended in HARMLESS else ended)


# ---- single faults --------------------------------------------------------------------------------------------------
def refused(path: Path) -> str:
    with pytest.raises(ModelError) as caught:
        read(path)
    assert caught.value.exit_code == 2
    assert len(str(caught.value).splitlines()) == 1
    return str(caught.value)


def rewritten(models: tuple[Path, Any], name: str, contents: dict[str, Any] | None = None, /, **changes: Any) -> Path:
    """Return a model with other arrays, and other values of model.json by their dotted names; the checksum fits."""
    folder = models[0]
    members = dict(unpacked(folder / f"{name}.model"))
    document = json.loads(members["model.json"])
    for key, value in changes.items():
        *way, last = key.split("__")
        node = document
        for step in way:
            node = node[step]
        node[last] = value
    members["model.json"] = json.dumps(document).encode()
    members |= {f"arrays/{each}.npy": written(np.asarray(array)) for each, array in (contents or {}).items()}
    (folder / "rewritten").write_bytes(packed([*members.items()]))
    return folder / "rewritten"


@pytest.mark.parametrize(
    ("name", "arrays", "said"),
    [
        ("linear", {"theta": np.zeros((4, 3))}, r"arrays/theta.npy has the shape 4 x 3, not 5 x 3"),
        ("linear", {"theta": np.zeros((5, 3), complex)}, "arrays/theta.npy is neither numbers nor text"),
        ("linear", {"theta": np.full((5, 3), np.nan)}, "arrays/theta.npy holds numbers that are not finite"),
        ("standardised", {"scale": np.zeros(4)}, "arrays/scale.npy holds a 0"),
        ("standardised", {"mean": np.zeros(3)}, "arrays/mean.npy has the shape 3, not 4"),
        ("rbf-sparse", {"rows_indices": np.full(78, 2**31 - 1, np.int32)}, "arrays/rows_indices.npy"),
        ("rbf-sparse", {"rows_indptr": np.arange(37)[::-1].copy()}, "arrays/rows_indptr.npy"),
        ("rbf-sparse", {"rows_shape": np.array([36, 2**40])}, "arrays/rows_shape.npy"),
        ("factored", {"sums_indices_": np.full(83, -5, np.int32)}, "arrays/sums_indices_.npy"),
        ("sets-hsvm", {"positions_": np.array([0, 1, 900])}, "positions_"),
        ("sets-hsvm", {"coef_": np.zeros((3, 5))}, "arrays/coef_.npy has the shape 3 x 5, not 5 x 5"),
        ("kernel-pca", {"features_basis": np.zeros((2, 5))}, "arrays/features_basis.npy has the shape 2 x 5, not 36 x any"),
        ("uma", {"coef_": np.zeros((3, 9))}, "arrays/coef_.npy has the shape 3 x 9, not 3 x 4"),
        ("nhsvm", {"alpha_": -np.ones(5)}, "arrays/alpha_.npy has values from -1 to -1, not at least 0"),
    ],
)
def test_arrays_that_do_not_fit_are_named(models: tuple[Path, Any], name: str, arrays: dict[str, Any], said: str) -> None:
    assert said in refused(rewritten(models, name, arrays))


@pytest.mark.parametrize(
    ("name", "changes", "said"),
    [
        ("linear", {"certificate": None}, "its certificate is missing"),
        ("linear", {"certificate__passes": "many"}, "its certificate has no passes"),
        ("linear", {"parameters__fit_intercept": "yes"}, "its parameter fit_intercept is"),
        ("linear", {"parameters__n_classes": 10**9}, "n_classes is 1000000000"),
        ("linear", {"n_features": 10**12}, "n_features must be a whole number"),
        ("linear", {"codes__type": "<U900000000"}, "codes in model.json have the type <U900000000"),
        ("linear", {"codes__type": "<U500000000"}, "codes in model.json have the type <U500000000"),
        ("linear", {"codes__type": "|V8"}, "codes in model.json have the type |V8"),
        ("linear", {"codes__values": ["a", "a", "b"]}, "not two different labels"),
        ("linear", {"labels": ["a"]}, "labels in model.json are not 3 labels"),
        ("linear", {"encoding": {"columns": [{"name": "x", "categories": None}], "others": [], "separator": ","}}, "makes 1 features"),
        ("linear", {"parameters__features": "rbf"}, "features=rbf need the rows that they keep"),
        ("uma", {"attributes__predict_codes": 5}, "is no attribute of a fitted UMAClassifier"),
        ("uma", {"attributes__of_sets_": True}, "a uma has no sets of labels"),
        ("uma", {"parameters__confusion": "/dev/zero"}, "its confusion is no matrix"),
        ("poly", {"parameters__features_options": {"degree": 10**12}}, "features.degree=1000000000000"),
    ],
)
def test_values_that_do_not_fit_are_named(models: tuple[Path, Any], name: str, changes: dict[str, Any], said: str) -> None:
    assert said in refused(rewritten(models, name, **changes))


@pytest.mark.parametrize("file", ["pipe", "/dev/zero", "costs.csv"])
@pytest.mark.parametrize("base", [False, True])
def test_a_model_opens_no_other_file(models: tuple[Path, Any], file: str, base: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(models[0])
    options = {"base": "general", "options": {"file": file}} if base else {"file": file}
    changed = rewritten(models, "cost-file", parameters__loss="weighted" if base else "general", parameters__loss_options=options)
    assert "its loss reads another file" in refused(changed)


def test_what_is_no_file_is_not_waited_for(models: tuple[Path, Any], capsys: pytest.CaptureFixture[str]) -> None:
    folder = models[0]
    for path in (folder / "pipe", Path("/dev/zero"), folder):
        assert str(path) in refused(path)
    assert main(["predict", f"model={folder / 'pipe'}", f"input={folder / 'costs.csv'}", f"out={folder / 'out.csv'}"]) == 2
    assert "it is a pipe or a device" in capsys.readouterr().err


@pytest.mark.parametrize("content", [b"[]", b"null", b"3", b'"text"', b"[" * 100_000, b'{"format": "advcli model"}'])
def test_documents_that_are_none(content: bytes, models: tuple[Path, Any]) -> None:
    members = dict(unpacked(models[0] / "linear.model")) | {"model.json": content}
    (models[0] / "document").write_bytes(packed([*members.items()]))
    assert "it is not a model of advcli, or damaged" in refused(models[0] / "document")


def test_entries_that_share_their_bytes_are_refused(tmp_path: Path) -> None:
    """Each entry begins with its own heading and ends where all do: together they are forty times as long as the file."""
    names, values = [f"arrays/{i:02}.npy".encode() for i in range(40)], bytes(10_000)
    body = b""
    directory = []
    for i, name in reversed([*enumerate(names)]):
        content = body + values
        sizes = struct.pack("<HHHHHIII", 20, 0, 0, 0, 33, zlib.crc32(content), len(content), len(content)) + struct.pack(
            "<HH", len(name), 0
        )
        directory.insert(0, (sizes, name, i))
        body = b"PK\x03\x04" + sizes + name + body
    step = 30 + len(names[0])
    central = b"".join(
        b"PK\x01\x02" + b"\x14\0" + sizes + struct.pack("<HHHII", 0, 0, 0, 0, i * step) + name for sizes, name, i in directory
    )
    whole = body + values
    end = struct.pack("<HHHHIIH", 0, 0, len(names), len(names), len(central), len(whole), 0)
    (tmp_path / "shared").write_bytes(whole + central + b"PK\x05\x06" + end)
    with zipfile.ZipFile(tmp_path / "shared") as archive:
        assert sum(entry.file_size for entry in archive.infolist()) > 35 * len(whole)
    with pytest.raises(zipfile.BadZipFile, match=r"arrays/00\.npy"):
        _members(tmp_path / "shared")


@pytest.mark.parametrize(
    ("part", "change", "said"),
    [
        ("indices", lambda array: np.where(np.arange(len(array)) == 5, 9004, array), "from 0 to 9004, not 0 to 9003"),
        ("indices", lambda array: array - 3, "not 0 to 9003"),
        ("indptr", lambda array: np.concatenate([array[:3], array[4:2:-1], array[5:]]), "does not say where the rows"),
        ("indptr", lambda array: np.concatenate([[1], array[1:]]), "does not say where the rows"),
        ("indptr", lambda array: np.concatenate([array[:-1], array[-1:] + 1]), "does not say where the rows"),
        ("data", lambda array: array[:-1], "does not say where the rows"),
    ],
)
def test_parts_of_sparse_rows_that_do_not_fit_are_named(models: tuple[Path, Any], part: str, change: Any, said: str) -> None:
    array = dict(unpacked(models[0] / "rbf-sparse.model"))
    changed = change(np.lib.format.read_array(io.BytesIO(array[f"arrays/rows_{part}.npy"])))
    assert said in refused(rewritten(models, "rbf-sparse", {f"rows_{part}": changed}))


def test_entries_beside_those_listed_are_refused(models: tuple[Path, Any]) -> None:
    members = unpacked(models[0] / "linear.model")
    for added, said in ((("arrays/more.npy", members[1][1]), "arrays/more.npy is not listed"), (("x", b""), "x is not listed")):
        (models[0] / "more").write_bytes(packed([*members, added]))
        assert said in refused(models[0] / "more")
    # listed, but nobody's
    assert "arrays/more.npy is no part of such a model" in refused(
        rewritten(models, "linear", {"more": np.ones(3)}, arrays=["more", "theta"])
    )


def test_a_model_of_an_earlier_version_is_read(tmp_path: Path) -> None:
    (tmp_path / "old.model").write_bytes(zlib.decompress(base64.b85decode(OLD)))
    model = read(tmp_path / "old.model")
    assert model.predict(np.array([[0.0, 1.0], [3.0, 1.0]])).tolist() == ["a", "b"]
    np.testing.assert_allclose(model.table(np.array([[0.0, 1.0]]))["potential_a"], 0.362565, atol=1e-6)


def test_rows_whose_scores_overflow_are_named(models: tuple[Path, Any]) -> None:
    from advcli.core.errors import DataError

    model = read(rewritten(models, "linear", {"theta": np.full((5, 3), 1e300)}))
    with pytest.raises(DataError, match="row 2 has scores that are no finite numbers"):
        model.table(np.array([[0.0] * 4, [1e49] * 4]))
