"""Saved models with one thing wrong in each, and what becomes of them: `python tests/support/mutated_models.py FOLDER FIRST COUNT`.

A mutation is refused by one line when it is loaded, or the model predicts. The checksum is made to fit where the mutation is meant to
pass it: whoever changes a file can do so as well.
"""

from __future__ import annotations

import base64
import io
import json
import os
import pickle
import resource
import signal
import struct
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from advcli.core.errors import AdvcliError, ModelError
from advcli.models import predict_file, read
from advcli.models.files import _checksum

SECONDS = 30
ROOM = 2**28  # bytes beside what the process has when it begins
Members = list[tuple[str, bytes]]
HERE = "mutated.model"

VALUES: list[Any] = [
    *(None, True, False, -1, 0, 1, 2, 7, 2**31, 2**62, 10**30, -(2**63), 0.5, -0.5, 1e308, -1e308, 1e-320),
    *(float("nan"), float("inf"), float("-inf"), "", "x", "\0", "a\nb", "x" * 5000, "1", "linear", "rbf", "zero_one", "general", "highs"),
    *(
        "/dev/zero",
        "pipe",
        "costs.csv",
        [],
        {},
        [[]],
        [None],
        [1, 2, 3],
        [[0, 1], [1, 0]],
        {"a": 1},
        {"file": "/dev/zero"},
        {"file": "pipe"},
    ),
    *([0] * 3000, {"edges": [["a", "b"], ["b", "a"]]}, [["r", "a"]], "column", {"gamma": -1.0}, {"degree": 10**9}, {"memory_mb": 1e-9}),
]
NUMBERS = [np.nan, np.inf, -np.inf, -1, 0, 1, 3, 1e308, -1e308, 1e200, 2**31 - 1, 2**31, 2**62, -(2**31), 1e-320]
SHAPES = [
    "(4611686018427387904,)",
    "(2147483648, 2147483648)",
    "(-1,)",
    "(0,)",
    "()",
    "(1, 1, 1)",
    "(3.0,)",
    "(True,)",
    "(99999999999999,)",
]
TYPES = [
    "<f4",
    "<f2",
    "<f8",
    ">f8",
    "<i8",
    "<i4",
    "<i2",
    "|i1",
    "|u1",
    "<u8",
    "|b1",
    "<c16",
    "<U3",
    "|S2",
    "<U0",
    "|V4",
    "|O",
    "<M8[s]",
    "<f16",
]


def unpacked(path: Path) -> Members:
    with zipfile.ZipFile(path) as archive:
        return [(name, archive.read(name)) for name in archive.namelist()]


def packed(members: Members, compression: int = zipfile.ZIP_STORED, checked: bool = True) -> bytes:
    """Return the archive of these entries with the checksum that fits."""
    if checked:
        members = [each for each in members if each[0] != "sha256"]
        members.append(("sha256", _checksum(dict(members)).encode()))
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", compression) as archive:
        for name, content in members:
            archive.writestr(zipfile.ZipInfo(name) if compression == zipfile.ZIP_STORED else name, content)
    return file.getvalue()


def pick(rng: np.random.Generator, values: Any) -> Any:
    return values[int(rng.integers(len(values)))]


# ---- bytes of the file ----------------------------------------------------------------------------------------------
def flipped(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    found = bytearray(whole)
    for at in rng.integers(len(whole), size=int(pick(rng, [1, 1, 2, 8]))):
        found[at] ^= int(rng.integers(1, 256))
    return bytes(found)


def cut(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    first, last = sorted(rng.integers(len(whole), size=2).tolist())
    return pick(rng, [whole[:first], whole[first:], whole[:first] + whole[last:], whole[:last] + whole[first:]])


def blanked(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    first, last = sorted(rng.integers(len(whole), size=2).tolist())
    last = min(last, first + 64)
    return whole[:first] + pick(rng, [b"\0", b"\xff"]) * (last - first) + whole[last:]


# ---- entries --------------------------------------------------------------------------------------------------------
def exchanged(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    """Entries without one, with one more, one twice, or with the contents of two exchanged."""
    names = [name for name, _ in members]
    at, other = rng.permutation(len(members))[:2].tolist()
    found = list(members)
    what = pick(rng, ["without", "more", "twice", "swap", "swap", "rename"])
    if what == "without":
        del found[at]
    elif what == "more":
        found.append((pick(rng, ["arrays/more_.npy", "../evil", "arrays/../x.npy", "model.json/", "arrays/rows.npy"]), members[other][1]))
    elif what == "twice":
        found.append((names[at], members[other][1]))
    elif what == "swap":
        found[at], found[other] = (names[at], members[other][1]), (names[other], members[at][1])
    else:
        found[at] = (names[other] + "x", members[at][1])
    return packed(found)


def listed(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    """An array more or less, and model.json says so."""
    found, document = dict(members), json.loads(dict(members)["model.json"])
    arrays = [name for name in found if name.startswith("arrays/")]
    chosen = pick(rng, arrays)
    if rng.random() < 0.5:
        del found[chosen]
    else:
        known = [
            "rows",
            "mean",
            "scale",
            "set_to_one",
            "features_basis",
            "features_centre",
            "predict",
            "coef_",
            "classes_",
            "metric_",
            "__class__",
        ]
        name = pick(rng, [*known, "sums_data_", "scale_", "x_", "rows_data", "theta"])
        found[f"arrays/{name}.npy"] = found[pick(rng, arrays)]
    document["arrays"] = sorted(name[7:-4] for name in found if name.startswith("arrays/"))
    return packed([*(found | {"model.json": json.dumps(document).encode()}).items()])


def overlapping(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    """A directory whose entries share their bytes, are longer than they are, or are compressed."""
    if rng.random() < 0.3:
        return packed([*members, ("arrays/zeros.npy", bytes(2**20))], zipfile.ZIP_DEFLATED)
    found = bytearray(whole)
    places = [at for at in range(len(found) - 4) if found[at : at + 4] == b"PK\x01\x02"]
    at, other = pick(rng, places), pick(rng, places)
    field = pick(rng, [42, 42, 20, 24, 10, 8])
    if field == 42:
        found[at + 42 : at + 46] = found[other + 42 : other + 46]
    else:
        width = 4 if field >= 20 else 2
        found[at + field : at + field + width] = struct.pack("<Q", int(pick(rng, [0, 1, 8, 2**15, 2**31, 2**32 - 1])))[:width]
    return bytes(found)


# ---- model.json -----------------------------------------------------------------------------------------------------
def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """Return the paths of all values within a document."""
    found = [above] if above else []
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        found += places(each, (*above, key))
    return found


def edited(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    """A document with another value in one or two places, one removed, or a list longer, shorter or turned."""
    found = dict(members)
    document = json.loads(found["model.json"])
    for _ in range(int(pick(rng, [1, 1, 2]))):
        spots = [each for each in places(document) if each[0] != "about" and each[0] not in ("format", "advcli")]
        *way, last = pick(rng, spots)
        node = document
        for step in way:
            node = node[step]
        old = node[last]
        what = pick(rng, ["value", "value", "value", "remove", "turn", "more", "number"])
        if what == "remove":
            del node[last]
        elif what == "turn" and isinstance(old, list):
            old.reverse()
        elif what == "more" and isinstance(old, list):
            old.append(old[0] if old else 1)
        elif what == "more" and isinstance(old, dict):
            old[pick(rng, ["file", "matrix", "x", "coef_", "predict_codes", "predict_"])] = pick(rng, VALUES)
        elif what == "number" and isinstance(old, (int, float)):
            node[last] = pick(rng, [old + 1, -old, old * 10**6, float(old) + 0.5])
        else:
            node[last] = pick(rng, VALUES)
    found["model.json"] = json.dumps(document).encode()
    return packed([*found.items()])


def aimed(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    """A document with files in the place of what was read from them, or with amounts that nobody has."""
    found = dict(members)
    document = json.loads(found["model.json"])
    own, file = document["parameters"], pick(rng, ["/dev/zero", "pipe", "costs.csv", "/dev/stdin"])
    many = [f"class {at}" for at in range(30_000)]
    pick(
        rng,
        [
            lambda: own.update(loss="general", loss_options={"file": file}),
            lambda: own.update(loss="convex", loss_options={"file": file}),
            lambda: own.update(loss="weighted", loss_options={"base": "general", "options": {"file": file}}),
            lambda: own.update(loss=None, loss_options={"matrix": None, "file": file}),
            lambda: own.update(confusion=file),
            lambda: own.update(hierarchy=file),
            lambda: document.update(n_features=pick(rng, [2**27, 2**31, 2**62, 10**12])),
            lambda: document["codes"].update(type=pick(rng, ["<U900000000", "<U0", "|V8", "|S3", "<i1", "O", "f8,f8", "x", "<M8[ns]"])),
            lambda: document.update(codes={"type": "<U12", "values": many}, classes=many, labels=many),
            lambda: own.update(n_classes=10**9),
            lambda: own.update(features="poly", features_options={"degree": 10**12}),
            lambda: own.update(features=pick(rng, ["rbf", "threshold", "kernel_pca", "precomputed", "rbf_threshold", "nystroem"])),
            lambda: own.update(loss="power", loss_options={"p": 1e308}),
            lambda: own.update(loss="general", loss_options={"matrix": [[0, 1e308, -1e308], [1, 0, 1], [1, 1, 0]], "backend": "highs"}),
            lambda: own.update(
                hierarchy={"edges": [[str(at), str(at + 1)] for at in range(4000)] + [["0", each] for each in ("a", "bb", "ccc")]}
            ),
            lambda: document.update(
                estimator=pick(rng, ["uma", "hierarchical", "nhsvm", "ssvm", "flat", "SurrogateClassifier", "x", "os.system"])
            ),
            lambda: document["attributes"].update(of_sets_=True),
            lambda: document["attributes"].update({pick(rng, ["predict_codes", "metric_", "potentials", "__class__", "_x_"]): 5}),
            lambda: document.update(format_version=pick(rng, [0, 2, True, 1.0, "1", None, [1]])),
        ],
    )()
    found["model.json"] = json.dumps(document).encode()
    return packed([*found.items()])


def replaced(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    """Another document altogether."""
    texts = [b"[]", b"null", b"3", b'"x"', b"", b"{}", b"{", b"[" * 100_000, b'{"a":' * 50_000, b"9" * 10_000, b"\xff\xfe", b"NaN"]
    twice = dict(members)["model.json"].replace(b'"n_features"', b'"n_features": 3,\n "n_features"', 1)
    return packed([*(dict(members) | {"model.json": pick(rng, [*texts, twice, twice])}).items()])


# ---- arrays ---------------------------------------------------------------------------------------------------------
def written(array: Any) -> bytes:
    file = io.BytesIO()
    np.lib.format.write_array(file, array, allow_pickle=True)
    return file.getvalue()


def changed(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    """An array with other values, or of another shape or type."""
    found = dict(members)
    name = pick(rng, [each for each in found if each.startswith("arrays/")])
    array = np.lib.format.read_array(io.BytesIO(found[name]))
    what = pick(rng, ["value", "value", "value", "shape", "shape", "type", "scale", "object"])
    with np.errstate(all="ignore"):
        if what == "value" and array.size:
            array.flat[int(rng.integers(array.size))] = np.array(pick(rng, NUMBERS)).astype(array.dtype)
        elif what == "scale" and array.dtype.kind == "f":
            array = array * pick(rng, [1e300, -1.0, 0.0, np.nan, 1e-300])
        elif what == "type":
            chosen = pick(rng, [each for each in TYPES if each != "|O"])
            array = np.zeros(array.shape, chosen) if np.dtype(chosen).kind in "UVSM" else array.astype(chosen)
        elif what == "object":
            array = np.array([{"a": 1}], dtype=object)
        else:
            longer = np.concatenate([array, array[-1:]]) if array.ndim and len(array) else array
            shapes = [
                array[:-1] if array.ndim else array,
                longer,
                array.ravel(),
                array.T,
                array[..., None],
                array[:0] if array.ndim else array,
            ]
            array = pick(rng, [*shapes, np.float64(3.0), np.asfortranarray(array)])
    found[name] = written(np.asarray(array))
    return packed([*found.items()])


def misheaded(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    """An array whose heading is not that of its values."""
    found = dict(members)
    name = pick(rng, [each for each in found if each.startswith("arrays/")])
    content = found[name]
    length = struct.unpack("<H", content[8:10])[0]
    heading, values = content[10 : 10 + length].decode(), content[10 + length :]
    given = np.lib.format.read_array(io.BytesIO(content))
    what = pick(rng, ["shape", "shape", "type", "type", "text", "version", "long"])
    if what == "shape":
        heading = f"{{'descr': '{given.dtype.str}', 'fortran_order': False, 'shape': {pick(rng, SHAPES)}, }}"
    elif what == "type":
        heading = f"{{'descr': '{pick(rng, [*TYPES, '<U536870911', '|V2147483647'])}', 'fortran_order': False, 'shape': {given.shape}, }}"
    elif what == "text":
        heading = pick(
            rng, ["", "{", "None", "[" * 9000, "{'descr': [('a', '<f8')], 'fortran_order': 1, 'shape': (1,)}", "__import__('os')"]
        )
    elif what == "long":
        values = pick(rng, [values[:-1], values + b"\0", values * 2, b""])
    version = pick(rng, [b"\x02\x00", b"\x03\x00", b"\x00\x00"]) if what == "version" else b"\x01\x00"
    text = heading.encode() + b"\n"
    found[name] = b"\x93NUMPY" + version + struct.pack("<H", len(text)) + text + values
    return packed([*found.items()])


def smuggled(whole: bytes, members: Members, rng: np.random.Generator) -> bytes:
    """A pickle in the place of an entry."""
    found = dict(members)
    found[pick(rng, list(found))] = pickle.dumps(print)
    return packed([*found.items()])


MUTATIONS: list[Callable[[bytes, Members, np.random.Generator], bytes]] = [
    *(flipped, cut, blanked, exchanged, listed, overlapping, edited, edited, edited, edited, aimed, aimed, aimed),
    *(replaced, changed, changed, changed, changed, misheaded, misheaded, smuggled),
]


def mutated(kinds: list[str], folder: Path, at: int) -> tuple[str, str, bytes]:
    """Return the kind of model, the mutation and the content of the file of this number."""
    rng = np.random.default_rng([15, at])
    kind, mutation = kinds[at % len(kinds)], pick(rng, MUTATIONS)
    path = folder / f"{kind}.model"
    return kind, mutation.__name__, mutation(path.read_bytes(), unpacked(path), rng)


def outcome(folder: Path, kind: str, content: bytes, rows: Any) -> str:
    """Return what becomes of a file: refused, failed (at predicting, by one line) or predicted; whatever else is raised goes on."""
    broken = folder / HERE
    broken.write_bytes(content)
    try:
        model = read(broken)
    except ModelError as error:
        return "refused" if len(str(error).splitlines()) == 1 and HERE in str(error) and error.exit_code == 2 else f"said: {error}"
    try:
        if rows is None and model.encoding is not None:
            source = folder / f"{kind}.csv"
            assert predict_file(model, source, folder / "out.csv").rows == len(source.read_text().splitlines()) - 1
            return "predicted"
        if rows is None:
            rows = np.ones((3, model.estimator.n_features_in_))
        if rows.shape[1] != model.estimator.n_features_in_:
            return "refused"  # by scikit-learn, in words
        table = model.table(rows)
        assert len(table) == rows.shape[0]
        assert len(model.predict(rows)) == rows.shape[0]
    except AdvcliError as error:
        return "failed" if len(str(error).splitlines()) == 1 else f"said: {error}"
    return "predicted"


def _said(error: BaseException) -> str:
    return f"{type(error).__name__}: {' '.join(str(error).split())[:200]}"


def main(folder: Path, first: int, count: int) -> None:
    rows = pickle.loads((folder / "rows.pickle").read_bytes())
    os.chdir(folder)
    with open("/proc/self/statm") as file:
        pages = int(file.read().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + ROOM,) * 2)
    kinds = sorted(rows)
    for at in range(first, first + count):
        kind, mutation, content = mutated(kinds, folder, at)
        print(json.dumps({"at": at, "kind": kind, "mutation": mutation}), end=" ", flush=True)
        signal.alarm(SECONDS)  # ends the process, wherever it is
        try:
            found = outcome(folder, kind, content, rows[kind])
        except Exception as error:  # told to the test, which fails
            found = _said(error)
        signal.alarm(0)
        print(base64.b64encode(found.encode()).decode(), flush=True)


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
