"""Compiled kernels on disk, in a marked folder that belongs to Linkwise.

The folder is `kernels-1` in `$LINKWISE_CACHE`, or in `linkwise` in `$XDG_CACHE_HOME` or `~/.cache`;
`LINKWISE_CACHE=off` turns it off. It is created together with the file `CACHEDIR.TAG`, and a folder
without that file is left alone. Only files with names of this module are read, written or removed,
and no link is followed. A file is used only if it and the folder belong to the user who runs this
process, nobody else could have written them, and its checksum, which covers its key, is right. If
anything fails, kernels are compiled and kept in memory only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import re
import stat
from collections.abc import Generator
from pathlib import Path

from linkwise.atomic_file import TEMPORARY, write_private

FOLDER = "kernels-1"
"""Of the files of this layout."""

TAG = "CACHEDIR.TAG"
TAG_TEXT = b"""Signature: 8a477f597d28d172789f06886806bc55
# This folder holds compiled kernels of Linkwise, which removes files from it as it needs room.
# It can be deleted at any time. For information about such folders see https://bford.info/cachedir/
"""
"""The mark of the folder; programs that make backups know its first line."""

HEADER = b"linkwise kernel 2\n"
LARGEST_FOLDER = 256 << 20
"""Bytes of the folder above which the least recently used files are removed."""

PART = 64
"""The folder is looked through again when a process has written this part of its largest size."""

UNREADABLE = (ValueError, KeyError, TypeError, IndexError, RuntimeError)
"""What parsing a content may raise; it is then made again."""

_KEY = re.compile(r"[0-9a-f]{64}")
_written = [LARGEST_FOLDER]
"""Bytes written since the folder was looked through: a process begins with that."""


def read(key: str) -> bytes | None:
    """The content filed under a key, or None."""
    with contextlib.suppress(OSError), _folder() as folder:
        if folder is None or not _KEY.fullmatch(key):
            return None
        content = _content(key, folder)
        if content is None:
            return None
        body = content[len(HEADER) + 32 :]
        if not content.startswith(HEADER + _checksum(key, body)):
            return None
        with contextlib.suppress(OSError):
            os.utime(key, dir_fd=folder, follow_symlinks=False)  # used just now
        return body
    return None


def holds(key: str) -> bool:
    """Whether there is a content filed under a key; `read` may still find it damaged."""
    with contextlib.suppress(OSError), _folder() as folder:
        return folder is not None and os.access(key, os.R_OK, dir_fd=folder)
    return False


def write(key: str, body: bytes) -> bool:
    """File a content under a key; False where that is not possible."""
    with contextlib.suppress(OSError), _folder(make=True) as folder:
        if folder is None or not _KEY.fullmatch(key):
            return False
        write_private(key, HEADER + _checksum(key, body) + body, folder)
        _written[0] += len(body)
        if _written[0] > LARGEST_FOLDER // PART:
            _written[0] = 0
            _prune(folder)
        return True
    return False


def path() -> Path | None:
    """The folder, whether it exists or not; None where the cache is off."""
    if not hasattr(os, "geteuid"):
        return None  # the owner of a file is not known on this system
    chosen = os.environ.get("LINKWISE_CACHE", "")
    if chosen.lower() in ("off", "0", "no", "none", "false"):
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if chosen:
            return Path(chosen).expanduser() / FOLDER
        outer = Path(base) if os.path.isabs(base) else Path.home() / ".cache"
        return outer / "linkwise" / FOLDER
    except RuntimeError:  # no home
        return None


def _checksum(key: str, body: bytes) -> bytes:
    """Of the content and the key: a file under another's name is not taken for it."""
    hashed = hashlib.sha256(key.encode("ascii"))
    hashed.update(body)
    return hashed.digest()


def _content(name: str, folder: int) -> bytes | None:
    """All bytes of a file, if it is private and no link."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
    with open(os.open(name, flags, dir_fd=folder), "rb") as stream:
        info = os.fstat(stream.fileno())
        if not _is_private(info, stat.S_ISREG(info.st_mode)) or info.st_size > LARGEST_FOLDER:
            return None
        return stream.read()


@contextlib.contextmanager
def _folder(*, make: bool = False) -> Generator[int | None]:
    """The open folder, if it has the mark and is private."""
    where = path()
    if where is None:
        yield None
        return
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
    if make and not os.path.lexists(where / TAG):
        _make(where)
    folder = os.open(where, flags)
    try:
        info = os.fstat(folder)
        private = _is_private(info, stat.S_ISDIR(info.st_mode))
        yield folder if private and _content(TAG, folder) == TAG_TEXT else None
    finally:
        os.close(folder)


def _make(where: Path) -> None:
    """Make the folder with its mark, in one step; a folder that has files is not taken."""
    where.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    new = where.parent / f".linkwise-{os.urandom(8).hex()}"
    new.mkdir(mode=0o700)
    try:
        folder = os.open(new, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            write_private(TAG, TAG_TEXT, folder)
        finally:
            os.close(folder)
        os.rename(new, where)  # fails if something is there, unless it is an empty folder
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(new / TAG)
        with contextlib.suppress(OSError):
            os.rmdir(new)


def _is_private(info: os.stat_result, right_kind: bool) -> bool:
    """Of the right kind, ours, and writable by nobody else."""
    others = stat.S_IWGRP | stat.S_IWOTH
    return right_kind and info.st_uid == os.geteuid() and not (info.st_mode & others)


def _prune(folder: int) -> None:
    """Remove the least recently used of our files, if there are too many."""
    files = list[tuple[float, int, str]]()
    with os.scandir(folder) as entries:
        for entry in entries:
            if not (_KEY.fullmatch(entry.name) or TEMPORARY.fullmatch(entry.name)):
                continue
            with contextlib.suppress(OSError):
                at = entry.stat(follow_symlinks=False)
                if stat.S_ISREG(at.st_mode):
                    files.append((at.st_mtime, at.st_size, entry.name))
    total = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if total <= LARGEST_FOLDER:
            return
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        total -= size
