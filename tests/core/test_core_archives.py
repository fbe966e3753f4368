"""Archives of arrays are read as they were written; what would unpack to more than a limit is refused by its directory and headings."""

from __future__ import annotations

import tracemalloc
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advcli.core.errors import DataError, ModelError, ResultsError
from advcli.core.files import most_unpacked
from advcli.data.tables.table import read_frame
from advcli.evaluation.foreign_weights import read_weights
from advcli.results.arrays import read_archive, read_arrays, write_arrays

HEADING = "{{'descr': '<f8', 'fortran_order': False, 'shape': {}, }}"


def member(shape: str, content: int, version: bytes = b"\x01\x00") -> list[bytes]:
    """Return a file in NumPy's format of so many zeros, whose heading says another shape."""
    text = HEADING.format(shape).encode()
    text += b" " * (118 - len(text) - 1) + b"\n"
    return [b"\x93NUMPY" + version + len(text).to_bytes(2, "little") + text, content * b"\0"]


def bomb(path: Path, name: str = "coef.npy", size: int = 2**31) -> None:
    """Write an archive of about 2 MB whose one entry has ``size`` bytes."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive, archive.open(name, "w", force_zip64=True) as entry:
        entry.write(member(f"({size // 8},)", 0)[0])
        for _ in range(size >> 22):
            entry.write(bytes(2**22))


def memory(call: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        call()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("name", ["coef.npy", "xl/workbook.xml"])
def test_a_small_file_that_unpacks_to_much_is_refused_before_it_is_read(name: str, tmp_path: Path) -> None:
    size = 2**28 + 2**26
    path = tmp_path / "small.xlsx"
    bomb(path, name, size)
    assert path.stat().st_size < 2**22
    said = f"unpack to .*, of which {2**28} are read at most"
    readers: list[tuple[type[Exception], Callable[[], object]]] = [
        (ResultsError, lambda: read_arrays(path)),
        (ModelError, lambda: read_weights(path)),
        (DataError, lambda: read_frame(path, "excel")),
    ]
    for error, reader in readers:

        def refused(reader: Callable[[], object] = reader, error: type[Exception] = error) -> None:
            with pytest.raises(error, match=said):
                reader()

        assert memory(refused) < 2**23


@pytest.mark.parametrize("shape", ["(1000000000, 1000)", "(-1, -4)", "(3,)", "(5,)", "(2, 3)"])
def test_a_heading_of_another_size_than_its_entry_is_refused(shape: str, tmp_path: Path) -> None:
    path = tmp_path / "a.npz"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.npy", b"".join(member(shape, 32)))
    with pytest.raises(ResultsError, match="is damaged"):
        read_arrays(path)
    with pytest.raises(ValueError, match="longer or shorter than its heading"):
        read_archive(path)


@pytest.mark.parametrize("array", [np.array([None, 1]), np.zeros(2, dtype=[("a", "f8")]), np.zeros(2, dtype="M8[s]"), np.zeros(2, complex)])
def test_arrays_of_neither_numbers_nor_text_are_refused(array: np.ndarray, tmp_path: Path) -> None:
    np.savez(tmp_path / "a.npz", a=array)
    with pytest.raises(ValueError, match=r"neither numbers nor text"):
        read_archive(tmp_path / "a.npz")


@given(seed=st.integers(0, 10**6), order=st.sampled_from("CF"))
@settings(max_examples=20, deadline=None)
def test_arrays_are_read_as_they_were_written(seed: int, order: str, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("arrays") / "in" / "a.npz"
    random = np.random.default_rng(seed)
    shape = tuple(random.integers(0, 4, random.integers(0, 4)))
    arrays = {
        "f": np.asarray(random.normal(size=shape), order=order),
        "i": random.integers(0, 9, shape),
        "b": np.asarray(random.random(shape) < 0.5),
        "U": np.array(["a", "bcd"]),
    }
    write_arrays(path, arrays)
    found = read_arrays(path)
    assert list(found) == list(arrays)
    for name, array in arrays.items():
        assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
        assert (found[name] == array).all()


def test_what_compresses_beyond_the_limit_is_written_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert most_unpacked(2**30) == 2**35
    monkeypatch.setattr("advcli.core.files.most_unpacked", lambda size: 32 * size)
    monkeypatch.setattr("advcli.results.arrays.most_unpacked", lambda size: 32 * size)
    for arrays, packed in (({"a": np.zeros(10**6)}, False), ({"a": np.arange(10**6) % 9973}, True)):
        write_arrays(tmp_path / "a" / "a.npz", arrays)
        assert (read_arrays(tmp_path / "a" / "a.npz")["a"] == arrays["a"]).all()
        assert ((tmp_path / "a" / "a.npz").stat().st_size < arrays["a"].nbytes) == packed
