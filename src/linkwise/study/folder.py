"""The folder of a study: its request, its chunks with checksums, and what is still missing.

    manifest.json       the request, versions, digest of the mechanism, seed, columns, chunk size
    study.pickle        the study itself, for workers and for `lw.study.load`
    chunks.jsonl        one line for each finished chunk: its cases, its files and their checksums
    table/*.parquet     numbers: one row for each case
    trajectories/NAME   records: a Zarr array (cases, times, entries), one Zarr chunk a chunk

Each file is written completely or not at all (`atomic_file.py`), and a line of `chunks.jsonl` is
appended after all files of its chunk are on the disk. After a crash at any moment, a chunk either
has its line, and is checked against it, or is computed again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import platform
import shutil
import warnings
from collections.abc import Generator, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any

from linkwise.atomic_file import TEMPORARY, write_file, write_files
from linkwise.errors import StudyError, StudyWarning, WriteError, caller
from linkwise.study.content import differences
from linkwise.study.kept import Evaluated
from linkwise.study.sampling import EXTENSIBLE
from linkwise.study.study import Study
from linkwise.study.variable import extra

MANIFEST, CHUNKS, PICKLE, LOCK = "manifest.json", "chunks.jsonl", "study.pickle", ".lock"
TABLE, TRAJECTORIES = "table", "trajectories"
FORMAT = 1
PACKAGES = ("linkwise", "numpy", "llvmlite", "scipy", "pyarrow", "dask")


@dataclass(frozen=True, slots=True)
class Chunk:
    """A finished chunk, as its line says.

    Attributes:
        index: Its number.
        begin: Its first case.
        end: The case after its last one.
        files: Checksums of its files, by path within the folder.
        failed: How many of its cases failed.
        seconds: How long it took.
    """

    index: int
    begin: int
    end: int
    files: Mapping[str, str]
    failed: int
    seconds: float = 0.0

    @property
    def line(self) -> str:
        """Its line."""
        parts = {
            "chunk": self.index, "begin": self.begin, "end": self.end,
            "failed": self.failed, "seconds": round(self.seconds, 4), "files": dict(self.files),
        }  # fmt: skip
        return json.dumps(parts) + "\n"


@dataclass(frozen=True, slots=True, eq=False)
class Folder:
    """The folder of a study and what is in it.

    Attributes:
        path: The folder.
        manifest: What `manifest.json` says.
    """

    path: Path
    manifest: dict[str, Any] = field(default_factory=dict[str, Any])

    @property
    def cases(self) -> int:
        """How many cases were requested."""
        return int(self.manifest["request"]["cases"])

    @property
    def chunk(self) -> int:
        """Cases of a chunk."""
        return int(self.manifest["chunk"])

    def bounds(self, index: int) -> tuple[int, int]:
        """The cases of a chunk: its first one, and the one after its last."""
        return index * self.chunk, min((index + 1) * self.chunk, self.cases)

    @property
    def count(self) -> int:
        """How many chunks there are."""
        return -(-self.cases // self.chunk)

    @property
    def stamp(self) -> str:
        """The checksum of `manifest.json`: of the request, its cases and the size of its chunks."""
        return sha256((self.path / MANIFEST).read_bytes())

    # ------------------------------------------------------------------------------- chunks

    def lines(self) -> dict[int, Chunk]:
        """Finished chunks by number: the last line of each; a torn line is passed over."""
        known = dict[int, Chunk]()
        try:
            text = (self.path / CHUNKS).read_text("utf-8", errors="replace")
        except FileNotFoundError:
            return known
        for line in text.splitlines():
            try:
                x = json.loads(line)
                chunk = Chunk(
                    x["chunk"], x["begin"], x["end"], x["files"], x["failed"], x["seconds"]
                )
            except (ValueError, KeyError, TypeError):
                continue  # torn by a crash: the chunk is computed again
            known[chunk.index] = chunk
        return {k: x for k, x in known.items() if (x.begin, x.end) == self.bounds(k)}

    def finished(self, *, check: bool = True) -> dict[int, Chunk]:
        """Chunks whose files are there, with the right checksums; warns about others."""
        bad = self.problems(check=check)
        if bad:
            reasons = list(bad.values())
            more = f" and {len(bad) - 3} more" if len(bad) > 3 else ""
            warnings.warn(
                f"{len(bad)} chunks of {self.path} are damaged and will be computed again: "
                f"{'; '.join(reasons[:3])}{more}.",
                StudyWarning,
                stacklevel=caller(),
            )
        return {k: x for k, x in self.lines().items() if k not in bad}

    def problems(self, *, check: bool = True) -> dict[int, str]:
        """What is wrong with files of finished chunks, by their numbers.

        Args:
            check: Whether checksums count, for which all files are read.
        """
        each = {k: self._problem(x, check) for k, x in self.lines().items()}
        return {k: reason for k, reason in each.items() if reason}

    def _problem(self, chunk: Chunk, check: bool) -> str:
        for name, checksum in chunk.files.items():
            if problem := self.problem(name, checksum if check else ""):
                return problem
        return ""

    def problem(self, name: str, checksum: str = "") -> str:
        """What is wrong with a file, "" for nothing; without a checksum whether it is there."""
        try:
            if checksum and sha256((self.path / name).read_bytes()) != checksum:
                return f"{name} does not have its checksum"
            if not checksum and not (self.path / name).is_file():
                return f"{name} is missing"
        except FileNotFoundError:
            return f"{name} is missing"
        except OSError as error:
            return f"{name} cannot be read ({error.strerror})"
        return ""

    def damaged(self, reason: str) -> StudyError:
        """The error for a chunk that cannot be read."""
        return StudyError(
            f"{self.path} has a chunk that cannot be read: {reason}. Run the study again with the "
            "same command: chunks without their checksum are computed again."
        )

    def append(self, chunks: Sequence[Chunk]) -> None:
        """Note finished chunks; returns when their lines are on the disk, all by one wait."""
        if not chunks:
            return
        try:
            with open(self.path / CHUNKS, "ab") as file:
                if file.tell() and not _ends_with_newline(self.path / CHUNKS):
                    file.write(b"\n")  # after a torn line
                file.write("".join(x.line for x in chunks).encode())
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise WriteError(self.path / CHUNKS, error) from error

    def store(self, files: Mapping[str, memoryview]) -> None:
        """Write files of a chunk, by paths within the folder; all or none."""
        for name in files:
            (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        write_files({self.path / name: (content,) for name, content in files.items()})

    @property
    def free(self) -> int:
        """Bytes that are free on its disk."""
        return shutil.disk_usage(self.path).free

    def clean(self) -> None:
        """Remove files that a crash left incomplete, at any depth."""
        places = [(str(self.path), os.listdir(self.path))]
        for part in (TABLE, TRAJECTORIES):
            places += [(place, names) for place, _, names in os.walk(self.path / part)]
        for place, names in places:
            for name in filter(TEMPORARY.fullmatch, names):
                with contextlib.suppress(OSError):
                    os.unlink(os.path.join(place, name))


def made(path: Path) -> None:
    """Make the folder, unless it is there.

    Raises:
        StudyError: It has files of others.
        WriteError: It cannot be made.
    """
    if path.exists() and not path.is_dir():
        raise StudyError(f"{path} is a file; a study needs a folder. Choose another name.")
    if not (path / MANIFEST).exists() and path.exists() and not _is_unused(path):
        raise StudyError(
            f"{path} is not empty and has no study; choose a new folder, or empty this one."
        )
    try:
        (path / TABLE).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(path, error) from error


@contextlib.contextmanager
def locked(path: Path) -> Generator[None]:
    """Only one process runs a study in a folder; the system frees it even after kill -9.

    Raises:
        StudyError: Another process has it.
        WriteError: The folder is read-only.
    """
    try:
        file = open(path / LOCK, "a+b")
    except OSError as error:
        raise WriteError(path / LOCK, error) from error
    with file:
        try:
            import fcntl
        except ImportError:  # Windows: nothing is locked
            yield
            return
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise StudyError(
                f"{path} is in use by another process that runs a study there; wait for it, or "
                "choose another folder."
            ) from None
        yield


def opened(path: str | os.PathLike[str]) -> Folder:
    """The folder of a study that was begun.

    Raises:
        StudyError: There is no study, or one of another format.
    """
    place = Path(path)
    try:
        manifest = json.loads((place / MANIFEST).read_text("utf-8"))
    except FileNotFoundError:
        raise StudyError(f"{place} has no study: there is no {MANIFEST}.") from None
    except (OSError, ValueError) as error:
        raise StudyError(f"{place / MANIFEST} cannot be read: {error}.") from None
    if manifest.get("format") != FORMAT:
        raise StudyError(
            f"{place} has format {manifest.get('format')}; this version reads format {FORMAT}."
        )
    return Folder(place, manifest)


def prepared(study: Study, path: Path, chunk: int | None, sample: Evaluated) -> Folder:
    """The folder for a run: a new one, or that of the same study, perhaps with fewer cases.

    Raises:
        StudyError: It holds another study, or its chunks have another size; names what differs.
    """
    if (path / MANIFEST).exists():
        old = opened(path)
        _check_same(study, old)
        if chunk is not None and chunk != old.chunk:
            raise StudyError(
                f"chunk is {chunk}, and {path} was begun with chunks of {old.chunk} cases, which "
                "stay as they are. Leave chunk out, or choose another folder."
            )
        if study.cases == old.cases:
            _check_versions(old)
            return old
        manifest: dict[str, Any] = old.manifest | {
            "request": study.description,
            "digest": study.digest,
        }
    else:
        manifest = manifest_of(study, chunk, sample)
    pickled = extra("cloudpickle", "cloudpickle", "a study").dumps(study)
    write_file(path / PICKLE, pickled)
    for name, about in manifest["trajectories"].items():
        _write_zarr(path / TRAJECTORIES / name, about, study.cases, manifest["chunk"])
    write_file(path / MANIFEST, json.dumps(manifest, indent=1, ensure_ascii=False) + "\n")
    return Folder(path, manifest)


def manifest_of(study: Study, chunk: int | None, sample: Evaluated) -> dict[str, Any]:
    """What a new folder is described by, from one case that was computed."""
    return {
        "format": FORMAT,
        "request": study.description,
        "digest": study.digest,
        "versions": versions(),
        "machine": platform.machine(),
        "chunk": chunk or study.chunk_size(sample),
        "columns": list(sample.columns),
        "times": sample.t.tolist(),
        "trajectories": {
            name: {"shape": list(x.shape[1:]), "labels": list(sample.labels[name])}
            for name, x in sample.trajectories.items()
        },
    }


def _is_unused(path: Path) -> bool:
    """Whether a folder is empty, or has what a run leaves that is killed before its manifest."""
    if not path.is_dir():
        return False
    ours = (TABLE, TRAJECTORIES, PICKLE, LOCK)
    names = [x.name for x in path.iterdir() if not TEMPORARY.fullmatch(x.name)]
    parts = path / TABLE
    return all(x in ours for x in names) and not (parts.exists() and any(parts.iterdir()))


def _check_same(study: Study, old: Folder) -> None:
    before = old.manifest["request"]
    same = study
    if study.cases > old.cases and study.sampling.sampler in EXTENSIBLE:
        same = study.with_cases(old.cases)
    lines = list(differences(before, same.description))
    if lines:
        more = f"; and {len(lines) - 5} more" if len(lines) > 5 else ""
        raise StudyError(
            f"{old.path} holds another study. {'; '.join(lines[:5])}{more}. Choose another folder "
            "for the new one, or go back to the request of this one; only more cases extend a "
            "study."
        )


def _check_versions(old: Folder) -> None:
    now, before = versions(), old.manifest["versions"]
    changed = [f"{k} {before.get(k)}, now {x}" for k, x in now.items() if before.get(k) != x]
    if changed:
        warnings.warn(
            f"{old.path} was begun with other versions: {'; '.join(changed)}. New cases may differ "
            "in their last bits from those that older versions would give.",
            StudyWarning,
            stacklevel=caller(),
        )


def versions() -> dict[str, str]:
    """Python and the packages that results come from."""
    known = {"python": platform.python_version()}
    for name in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            known[name] = metadata.version(name)
    return known


def _write_zarr(place: Path, about: Mapping[str, Any], cases: int, chunk: int) -> None:
    """`zarr.json` of an array (cases, times, entries), Zarr format 3."""
    shape = [cases, *about["shape"]]
    data = {
        "zarr_format": 3,
        "node_type": "array",
        "shape": shape,
        "data_type": "float64",
        "chunk_grid": {
            "name": "regular",
            "configuration": {"chunk_shape": [chunk, *about["shape"]]},
        },
        "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
        "fill_value": "NaN",
        "codecs": [{"name": "bytes", "configuration": {"endian": "little"}}],
        "attributes": {"labels": about["labels"]},
        "dimension_names": ["case", "time", "entry"],
    }
    place.mkdir(parents=True, exist_ok=True)
    write_file(place / "zarr.json", json.dumps(data, indent=1) + "\n")


def sha256(content: bytes | memoryview) -> str:
    """A checksum, 64 hexadecimal digits."""
    return hashlib.sha256(content).hexdigest()


def _ends_with_newline(path: Path) -> bool:
    with open(path, "rb") as file:
        file.seek(-1, os.SEEK_END)
        return file.read() == b"\n"
