"""Getting data sets into the folder of data sets, over the network and only when asked.

Three ways. A mirror is any web folder that holds the one format (``MANIFEST.csv`` and ``NAME.csv.gz``): its address comes from the
argument ``url`` or from ``ADVCLI_DATA_URL``. Without one, the sets that the repository of advcli ships come from its folder ``data`` at the
release. All others come from the public files of the catalogue, at a pinned commit, and are converted here (`advcli.data.recipes`). The
checksums of the catalogue decide whether the right data arrived, and a file appears in the folder only after that.
"""

from __future__ import annotations

import hashlib
import os
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version
from pathlib import Path

from ..core.errors import ConfigError, DataError, nearest
from ..core.files import write_bytes
from . import recipes
from .author_splits import FOLDER, published
from .catalogue import CATALOGUE, Known, stored_set
from .downloading import Progress, download
from .manifest import FILE, REMEDY, parse_manifest, read_manifest, write_manifest_row
from .registry import entries, sources

URL_VARIABLE = "ADVCLI_DATA_URL"
HOME = "https://raw.githubusercontent.com/advcli/advcli/v{version}/data"
"""The folder ``data`` of the repository at the installed release: a placeholder until the repository is public."""


@dataclass(frozen=True)
class Fetched:
    """What `fetch` did: the files of a data set in the folder, whether any was downloaded, and one line for the user."""

    name: str
    paths: tuple[Path, ...]
    downloaded: bool
    message: str


Began = Callable[[Known], Progress | None]
"""Takes the facts of a data set before its download, and returns what takes its progress."""


def fetch(name: str, data_dir: Path, url: str | None = None, began: Began | None = None) -> Fetched:
    """Bring a data set into the folder of data sets, checked; does nothing if it is there and intact.

    Parameters
    ----------
    name : str
        Name of the data set.
    data_dir : Path
        Folder of the data sets; made if it does not exist.
    url : str or None
        Address of a mirror; None takes ``ADVCLI_DATA_URL``, and without it the repository of advcli and the public files of the catalogue.
    began : callable or None
        Called before a download of a set of the catalogue (`Began`).

    Raises
    ------
    DataError
        Unknown name, no connection, or content that is not the data set; nothing is left half-written then.
    ConfigError
        An address that does not begin with http:// or https://.
    """
    url = url or os.environ.get(URL_VARIABLE) or None
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(f"url={url} must start with http:// or https:// (a local folder is used with data_dir=)")
    facts = stored_set(name)
    if facts is None:
        _refuse_unknown(name, data_dir, url)
    paths = _intact(name, facts, data_dir)
    downloaded = paths is None
    if paths is None:
        _make_folder(data_dir)
        progress = began(facts) if began is not None and facts is not None else None
        files = ", ".join(facts.files) if facts is not None else f"{name}.csv.gz"
        remedy = f"put {files} into {data_dir}, or use a mirror: url=http://... or {URL_VARIABLE}"
        paths = _get(name, facts, data_dir, url, partial(download, progress=progress, remedy=remedy))
    got, splits = _author_files(name, data_dir, url)
    message = f"{name}: {'fetched' if downloaded or got else 'already here'}, {', '.join(map(str, [*paths, *splits]))}"
    return Fetched(name, (*paths, *splits), downloaded or got, message)


def _refuse_unknown(name: str, data_dir: Path, url: str | None) -> None:
    """Refuse a name that nothing of the catalogue has, if no mirror and no manifest may have it."""
    if name in CATALOGUE["unavailable"]:
        raise DataError(f"data set {name!r} is not available: {CATALOGUE['unavailable'][name].note}")
    if any(entry.name == name for source in sources().values() if source.files is None for entry in entries(source, Path())):
        raise DataError(f"data set {name!r} needs no fetching: it comes with advcli or scikit-learn; use dataset={name}")
    if url is None and name not in read_manifest(data_dir):
        names = [known for sets in CATALOGUE.values() for known, facts in sets.items() if facts.files]
        remedy = f"{nearest(name, names)} (a mirror may have more: advcli data fetch {name} url=http://... or {URL_VARIABLE})"
        raise DataError(f"no data set is named {name!r}; {remedy}")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {folder}: {error.strerror or error}; choose another with data_dir=") from None
    if not os.access(folder, os.W_OK):
        raise DataError(f"cannot write into {folder}; choose another folder with data_dir= or ADVCLI_DATA")


def _intact(name: str, facts: Known | None, data_dir: Path) -> list[Path] | None:
    """Return the files of the set if all are in the folder and intact; None if it has to be fetched."""
    row = read_manifest(data_dir).get(name)
    table = data_dir / (row["file"] if row is not None else f"{name}.csv.gz")
    paths = [table] if facts is None else [table, *(data_dir / file for file in list(facts.files)[1:])]
    if not all(path.is_file() for path in paths):
        return None
    raw = table.read_bytes()
    if row is not None and row["sha256"] and hashlib.sha256(raw).hexdigest() != row["sha256"].lower():
        return None
    if facts is None:
        return paths
    for path, file in zip(paths, facts.files, strict=True):
        if _sha256_of_plain(path.read_bytes()) == facts.files[file]:
            continue
        if row is None and path == table:  # no manifest vouches for the file: it may be somebody's own, which must not be overwritten
            raise DataError(f"{path} exists but is not the published data set {name}; move it away and fetch again")
        if path != table:
            return None
    return paths


def _sha256_of_plain(raw: bytes) -> str:
    """Return the checksum of the content of a gzip file; empty where it is none."""
    try:
        return hashlib.sha256(zlib.decompress(raw, wbits=31)).hexdigest()
    except zlib.error:
        return ""


def _get(name: str, facts: Known | None, data_dir: Path, url: str | None, get: Callable[..., bytes]) -> list[Path]:
    """Bring a set from the mirror, else from the repository where it ships the set, else from the public files."""
    if url is not None or facts is None:
        assert url is not None, "a name that no mirror was asked for was refused"
        return _from_mirror(name, facts, data_dir, url.rstrip("/"), get)
    if not facts.shipped:
        return _from_upstream(facts, data_dir, get)
    try:
        return _from_mirror(name, facts, data_dir, HOME.format(version=version("advcli")), get)
    except DataError as error:
        if facts.upstream is None:
            raise DataError(f"{error} (the address is a placeholder until the repository of advcli is public)") from None
        return _from_upstream(facts, data_dir, get)


def _from_mirror(name: str, facts: Known | None, data_dir: Path, base: str, get: Callable[..., bytes]) -> list[Path]:
    manifest = parse_manifest(get(f"{base}/{FILE}", progress=None), f"{base}/{FILE}")
    if name not in manifest:
        has = nearest(name, manifest) if manifest else f"its {FILE} names none"
        raise DataError(f"the mirror {base} has no data set {name!r}; {has}")
    row = manifest[name]
    contents = {row["file"]: get(f"{base}/{row['file']}", row["sha256"].lower())}
    if facts is not None:
        contents |= {file: get(f"{base}/{file}") for file in list(facts.files)[1:]}
        for file, raw, sha256 in zip(contents, contents.values(), facts.files.values(), strict=True):
            if _sha256_of_plain(raw) != sha256:
                raise DataError(f"what {base}/{file} sends is not data set {name!r}: its checksum differs; nothing was written")
    return _written(contents, row, data_dir)


def _from_upstream(facts: Known, data_dir: Path, get: Callable[..., bytes]) -> list[Path]:
    upstream = facts.upstream
    assert upstream is not None, "a set that is not shipped has public files"
    plain = recipes.convert(upstream, [get(address) for address in upstream.urls()], facts.name)
    for file, content in plain.items():
        if hashlib.sha256(content).hexdigest() != facts.files[file]:
            addresses = ", ".join(upstream.urls())
            raise DataError(f"what {addresses} sends is not data set {facts.name!r}: the checksum of {file} differs; nothing was written")
    packed = {file: recipes.pack(content) for file, content in plain.items()}
    table, raw = next(iter(packed.items()))
    row = {key: str(getattr(facts, key)) for key in ("name", "rows", "task")} | {"file": table, "sha256": hashlib.sha256(raw).hexdigest()}
    row |= {key: "" if getattr(facts, key) is None else str(getattr(facts, key)) for key in ("features", "classes")}
    row |= {"source_repo": f"{upstream.repository}@{upstream.commit}", "source_path": ";".join(upstream.paths)}
    return _written(packed, row | {"upstream_citation": facts.citation}, data_dir)


def _written(contents: Mapping[str, bytes], row: Mapping[str, str], data_dir: Path) -> list[Path]:
    """Write the files of a set, then their line of the manifest; a line that has this checksum already is kept as it is."""
    for file, raw in contents.items():
        write_bytes(data_dir / file, raw, REMEDY)
    if read_manifest(data_dir).get(row["name"], {}).get("sha256", "").lower() != row["sha256"].lower():
        write_manifest_row(data_dir, row)
    return [data_dir / file for file in contents]


def _author_files(name: str, data_dir: Path, url: str | None) -> tuple[bool, list[Path]]:
    """Bring the authors' splits, where they exist; return whether anything was downloaded, and their files."""
    authors = published(name)
    if authors is None:
        return False, []
    got, paths = False, []
    for file, sha256 in authors.files.items():
        path = data_dir / FOLDER / file
        paths.append(path)
        if path.is_file() and hashlib.sha256(path.read_bytes()).hexdigest() == sha256:
            continue
        address = f"{authors.folder}/{file}" if url is None else f"{url.rstrip('/')}/{FOLDER}/{file}"
        _make_folder(path.parent)
        write_bytes(path, download(address, sha256), REMEDY)
        got = True
    return got, paths
