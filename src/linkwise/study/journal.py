"""Answers of a search on the disk: one that is killed begins again, and finds what it had computed.

    search.json      what is searched, and the versions
    answers/HASH     one column of some cases, after its checksum; the name is that of the inputs
    designs.jsonl    what was tried, for people

A search is a sequence of random numbers and answers. Both are the same in a second run, up to where
the first one was killed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
from collections.abc import Generator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.arguments import path as checked_path
from linkwise.atomic_file import TEMPORARY, write_file
from linkwise.errors import StudyError, WriteError
from linkwise.spatial.array import Array
from linkwise.study.content import described, differences
from linkwise.study.folder import LOCK, locked, sha256, versions

FILE, ANSWERS, NOTES = "search.json", "answers", "designs.jsonl"


@dataclass(frozen=True, slots=True, eq=False)
class Journal:
    """The folder of a search; without one nothing is kept."""

    path: Path | None = None

    def key(self, first: int, values: Mapping[str, Array]) -> str:
        """The name of an answer, from what it is computed from."""
        if self.path is None:
            return ""
        content = hashlib.sha256(f"{first}".encode())
        for name, x in values.items():
            content.update(f"{name} {len(x)} ".encode())
            content.update(np.ascontiguousarray(x, "<f8").tobytes())
        return content.hexdigest()[:32]

    def read(self, key: str, count: int) -> Array | None:
        """An answer (count,), or None if it is not there or damaged."""
        if self.path is None:
            return None
        try:
            content = (self.path / ANSWERS / key).read_bytes()
        except OSError:
            return None
        checksum, data = content[:64], content[64:]
        if len(data) != 8 * count or sha256(data).encode() != checksum:
            return None
        return np.frombuffer(data, "<f8").astype(np.float64)

    def write(self, key: str, answer: Array) -> None:
        """Keep an answer."""
        if self.path is not None:
            data = np.ascontiguousarray(answer, "<f8").tobytes()
            write_file(self.path / ANSWERS / key, sha256(data).encode() + data)

    def note(self, number: int, content: Mapping[str, Any]) -> None:
        """Keep what step `number` of the search was; steps that are there stay."""
        if self.path is None:
            return
        file = self.path / NOTES
        lines = file.read_text("utf-8").splitlines() if file.exists() else []
        if number >= len(lines):
            write_file(file, "\n".join([*lines, json.dumps(content)]) + "\n")


@contextlib.contextmanager
def journal(
    folder: str | os.PathLike[str] | None, request: Mapping[str, Any]
) -> Generator[Journal]:
    """The folder of a search, held by this process; nowhere for None.

    Args:
        folder: The folder, or None.
        request: What the answers and their order depend on.

    Raises:
        StudyError: The folder holds something else; names what differs.
        WriteError: It cannot be made.
    """
    if folder is None:
        yield Journal()
        return
    path, content = checked_path(folder, "folder"), described(request)
    if path.exists() and not path.is_dir():
        raise StudyError(f"{path} is a file; a search needs a folder. Choose another name.")
    try:
        (path / ANSWERS).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise WriteError(path, error) from error
    with locked(path):
        _check(path, content)
        for name in os.listdir(path / ANSWERS):
            if TEMPORARY.fullmatch(name):  # a crash left it incomplete
                (path / ANSWERS / name).unlink(missing_ok=True)
        yield Journal(path)


def _check(path: Path, content: Any) -> None:
    """Note what is searched, or compare it with what was noted."""
    file = path / FILE
    if not file.exists():
        known = (ANSWERS, LOCK)
        if any(x.name not in known and not TEMPORARY.fullmatch(x.name) for x in path.iterdir()):
            raise StudyError(
                f"{path} is not empty and has no search; choose a new folder, or empty this one."
            )
        text = json.dumps({"request": content, "versions": versions()}, indent=1)
        write_file(file, text + "\n")
        return
    try:
        before = json.loads(file.read_text("utf-8"))["request"]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StudyError(f"{file} cannot be read: {error}.") from None
    lines = list(differences(before, content))
    if lines:
        more = f"; and {len(lines) - 5} more" if len(lines) > 5 else ""
        raise StudyError(
            f"{path} holds another search. {'; '.join(lines[:5])}{more}. Choose another folder "
            "for the new one, or go back to the request of this one."
        )
