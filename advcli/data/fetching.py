"""Getting data sets over the network: the only code of advcli that uses it, and only when asked.

Two ways. A mirror is any web folder that holds the one format (``MANIFEST.csv`` and ``NAME.csv.gz``): its address comes from the
argument ``url`` or from ``ADVCLI_DATA_URL``. Without a mirror the public files of the catalogue are taken at a pinned commit and
converted. Either way the canonical checksum of the catalogue decides whether the right data arrived, and a file appears in the
folder only after that.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..core.errors import ConfigError, DataError, nearest
from ..core.files import write_bytes
from .author_splits import FOLDER, published
from .catalogue import CATALOGUE, Known, Upstream, known_set
from .manifest import FILE, REMEDY, parse_manifest, read_manifest, write_manifest_row
from .registry import entries, sources

if TYPE_CHECKING:
    import pandas as pd

URL_VARIABLE = "ADVCLI_DATA_URL"
_TIMEOUT = 30.0  # seconds without an answer


@dataclass(frozen=True)
class Fetched:
    """What `fetch` did: the files of a data set in the folder, whether any was downloaded, and one line for the user."""

    name: str
    paths: tuple[Path, ...]
    downloaded: bool
    message: str


def fetch(name: str, data_dir: Path, url: str | None = None) -> Fetched:
    """Bring a data set into the folder of data sets, checked; does nothing if it is there and intact.

    Parameters
    ----------
    name : str
        Name of the data set.
    data_dir : Path
        Folder of the data sets; made if it does not exist.
    url : str or None
        Address of a mirror; None takes ``ADVCLI_DATA_URL``, and without it the public addresses of the catalogue.

    Raises
    ------
    DataError
        Unknown name, no address, no connection, or content that is not the data set; nothing is left half-written then.
    ConfigError
        An address that is no http or https address.
    """
    url = url or os.environ.get(URL_VARIABLE) or None
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(f"url={url} must start with http:// or https:// (a local folder is used with data_dir=)")
    facts = known_set(name, "folder")
    if facts is None:
        by_file = {*CATALOGUE["text"], *CATALOGUE["hierarchical"]}
        others = (source for source in sources().values() if source.name != "folder" and name not in by_file)
        if any(entry.name == name for source in others for entry in entries(source, Path())):
            raise DataError(f"data set {name!r} needs no fetching: it comes with advcli or scikit-learn; use dataset={name}")
        if url is None and name not in read_manifest(data_dir) and name not in by_file:
            raise DataError(
                f"no data set is named {name!r}; {nearest(name, CATALOGUE['folder'])} "
                f"(a mirror may have more: advcli data fetch {name} url=http://... or {URL_VARIABLE})"
            )
    table = _intact_table(name, data_dir)
    downloaded = table is None
    if table is None:
        if name in CATALOGUE["hierarchical"]:
            raise DataError(f"data set {name!r} is several files, which nothing fetches; point data_dir= to a folder that has them")
        _make_folder(data_dir)
        table = _from_mirror(name, data_dir, url) if url is not None else _from_upstream(name, data_dir)
    got, files = _author_files(name, data_dir, url)
    message = f"{name}: {'fetched' if downloaded or got else 'already here'}, {', '.join(map(str, [table, *files]))}"
    return Fetched(name, (table, *files), downloaded or got, message)


def has_address(name: str) -> bool:
    """Tell whether `fetch` knows a public address of a data set."""
    facts = known_set(name, "folder")
    return facts is not None and facts.upstream is not None


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise DataError(f"cannot make the folder {folder}: {error.strerror or error}; choose another with data_dir=") from None
    if not os.access(folder, os.W_OK):
        raise DataError(f"cannot write into {folder}; choose another folder with data_dir= or ADVCLI_DATA")


def _intact_table(name: str, data_dir: Path) -> Path | None:
    """Return the file of the set if it is in the folder and intact; None if it has to be fetched."""
    row = read_manifest(data_dir).get(name)
    path = data_dir / (row["file"] if row is not None else f"{name}.csv.gz")
    if not path.is_file():
        return None
    raw = path.read_bytes()
    if row is not None and row["sha256"]:
        return path if hashlib.sha256(raw).hexdigest() == row["sha256"].lower() else None
    facts = known_set(name, "folder")
    if facts is None:
        return path
    # no manifest vouches for the file: it may be somebody's own, which must not be overwritten
    if _fault(facts, path, raw):
        raise DataError(f"{path} exists but is not the published data set {name}; move it away and fetch again")
    return path


def _fault(facts: Known, path: Path, raw: bytes) -> str:
    """Return what tells the content of a file from a set of the catalogue; empty where nothing does."""
    from .tables.table import read_table, table_sha256

    try:
        table = read_table(path, raw=raw)
    except DataError as error:
        return str(error)
    if table_sha256(table) == facts.content:
        return ""
    columns = sum(column not in ("target", "split") for column in table.frame.columns)
    return f"its checksum differs ({len(table.frame)} rows and {columns} features, expected {facts.rows} and {facts.features})"


def _download(url: str, folder: Path, sha256: str | None = None) -> bytes:
    """Return the content behind an address; the checksum is compared before anything is used."""
    import logging

    import pooch
    import requests

    pooch.get_logger().setLevel(logging.ERROR)
    with tempfile.TemporaryDirectory(dir=folder, prefix=".fetch-") as temporary:
        try:
            path = pooch.retrieve(
                url,
                known_hash=None if sha256 is None else f"sha256:{sha256}",
                fname="download",
                path=temporary,
                downloader=pooch.HTTPDownloader(timeout=_TIMEOUT),
            )
            return Path(path).read_bytes()
        except requests.HTTPError as error:
            answer = f"{error.response.status_code} {error.response.reason}" if error.response is not None else str(error)
            raise DataError(f"cannot fetch {url}: the server answers {answer}") from None
        except (requests.RequestException, OSError) as error:
            raise DataError(
                f"cannot fetch {url}: no connection ({type(error).__name__}); try again, or use a mirror: url=http://... or {URL_VARIABLE}"
            ) from None
        except ValueError:
            raise DataError(f"what {url} sends has not the expected checksum: it was changed or damaged; nothing was written") from None


def _from_mirror(name: str, data_dir: Path, url: str) -> Path:
    base = url.rstrip("/")
    manifest = parse_manifest(_download(f"{base}/{FILE}", data_dir), f"{base}/{FILE}")
    if name not in manifest:
        raise DataError(f"the mirror {base} has no data set {name!r}; {nearest(name, manifest)}")
    row = manifest[name]
    raw = _download(f"{base}/{row['file']}", data_dir, row["sha256"].lower())
    facts = known_set(name, "folder")
    if facts is not None:
        _verify(facts, data_dir / row["file"], raw, f"{base}/{row['file']}")
    write_bytes(data_dir / row["file"], raw, REMEDY)
    write_manifest_row(data_dir, row)
    return data_dir / row["file"]


def _from_upstream(name: str, data_dir: Path) -> Path:
    import gzip

    facts = known_set(name, "folder")
    if facts is None or facts.upstream is None:
        raise DataError(
            f"no public address is known for data set {name!r}; fetch it from a mirror: "
            f"advcli data fetch {name} url=http://... (or {URL_VARIABLE}), or point data_dir= to a folder that has it"
        )
    contents = [_download(address, data_dir) for address in facts.upstream.urls()]
    path = data_dir / f"{name}.csv.gz"
    raw = gzip.compress(convert(facts.upstream, contents, name), mtime=0)
    _verify(facts, path, raw, ", ".join(facts.upstream.urls()))
    write_bytes(path, raw, REMEDY)
    row = {key: str(getattr(facts, key)) for key in ("name", "rows", "features", "task")}
    row |= {"file": path.name, "classes": "" if facts.classes is None else str(facts.classes), "sha256": hashlib.sha256(raw).hexdigest()}
    row |= {"source_repo": f"{facts.upstream.repository}@{facts.upstream.commit}", "source_path": ";".join(facts.upstream.paths)}
    row["upstream_citation"] = facts.citation
    write_manifest_row(data_dir, row)
    return path


def _verify(facts: Known, path: Path, raw: bytes, address: str) -> None:
    if fault := _fault(facts, path, raw):
        raise DataError(f"what {address} sends is not data set {facts.name!r}: {fault}; nothing was written")


def convert(upstream: Upstream, contents: Sequence[bytes], name: str) -> bytes:
    """Convert public files to the one CSV format: features, ``split`` where there are two files, ``target``.

    Rows with missing values are left out, as the catalogue's tables have them left out.
    """
    import pandas as pd

    separator = "," if upstream.format == "csv" else None
    parts = []
    for part, raw in zip(("train", "test"), contents, strict=False):
        try:
            frame = _read_arff(raw) if upstream.format == "arff" else _read_plain(raw, separator)
            frame.columns = [*upstream.columns, "target"]
        except Exception as error:  # whatever a changed file makes the readers raise
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise DataError(f"the public file of data set {name!r} is not {upstream.format} as expected: {reason}") from None
        if len(contents) > 1:
            frame.insert(len(frame.columns) - 1, "split", part)
        parts.append(frame)
    table = pd.concat(parts, ignore_index=True)
    return table.to_csv(index=False, lineterminator="\n").encode()


def _read_plain(raw: bytes, separator: str | None) -> pd.DataFrame:
    """Read text without a heading; a first line with text among the features is a heading and left out."""
    import pandas as pd

    lines = [line.split(separator) for line in raw.decode().split("\n") if line.strip()]
    try:
        _ = [float(cell) for cell in lines[0][:-1]]
    except ValueError:
        lines = lines[1:]
    return pd.DataFrame([[cell.strip() for cell in line] for line in lines])


def _read_arff(raw: bytes) -> pd.DataFrame:
    """Read ARFF; rows with missing values are left out."""
    import io

    import pandas as pd
    from scipy.io import arff

    frame = pd.DataFrame(arff.loadarff(io.StringIO(raw.decode()))[0])
    for column in frame.columns:
        if frame[column].dtype.kind == "O":  # SciPy gives nominal values as bytes
            frame[column] = [value.decode() for value in frame[column]]
    missing = frame.isna().any(axis=1) | (frame == "?").any(axis=1)
    return frame[~missing].reset_index(drop=True)


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
        write_bytes(path, _download(address, data_dir, sha256), REMEDY)
        got = True
    return got, paths
