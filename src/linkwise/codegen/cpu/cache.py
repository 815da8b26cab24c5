"""Compiled kernels on disk, in a folder of the user's own.

The folder is `$LINKWISE_CACHE`, or `linkwise` in `$XDG_CACHE_HOME` or `~/.cache`;
`LINKWISE_CACHE=off` turns it off. A file is taken only if it and the folder belong to the user who
runs this process, nobody else could have written them, and its checksum is right. Files are written
under another name and put in place by renaming, so that processes never see half a file. Where
anything fails, kernels are compiled and kept in memory only.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import secrets
import stat
from collections.abc import Generator
from pathlib import Path

HEADER = b"linkwise kernel 1\n"
LARGEST_FOLDER = 256 << 20
"""Bytes of the folder above which the files not used for longest are removed."""


def read(key: str) -> bytes | None:
    """The content filed under a key, or None."""
    with contextlib.suppress(OSError), _folder() as folder:
        if folder is None:
            return None
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
        file = os.open(key, flags, dir_fd=folder)
        with open(file, "rb") as stream:
            if not _is_private(os.fstat(file), stat.S_ISREG):
                return None
            content = stream.read()
        body = content[len(HEADER) + 32 :]
        whole = HEADER + hashlib.sha256(body).digest()
        if content[: len(whole)] != whole:
            return None
        with contextlib.suppress(OSError):
            os.utime(key, dir_fd=folder, follow_symlinks=False)  # used just now
        return body
    return None


def write(key: str, body: bytes) -> bool:
    """File a content under a key; False where that is not possible."""
    with contextlib.suppress(OSError), _folder(make=True) as folder:
        if folder is None:
            return False
        temporary = f"{key}.{secrets.token_hex(8)}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        file = os.open(temporary, flags, 0o600, dir_fd=folder)
        try:
            with open(file, "wb") as stream:
                stream.write(HEADER + hashlib.sha256(body).digest() + body)
            os.replace(temporary, key, src_dir_fd=folder, dst_dir_fd=folder)
        except OSError:
            with contextlib.suppress(OSError):
                os.unlink(temporary, dir_fd=folder)
            raise
        _prune(folder)
        return True
    return False


def path() -> Path | None:
    """The folder, whether it exists or not; None where there is to be none."""
    if not hasattr(os, "geteuid"):
        return None  # who could have written a file cannot be told here
    asked = os.environ.get("LINKWISE_CACHE", "")
    if asked.lower() in ("off", "0", "no", "none", "false"):
        return None
    base = os.environ.get("XDG_CACHE_HOME", "")
    try:
        if asked:
            return Path(asked).expanduser()
        return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "linkwise"
    except RuntimeError:  # no home
        return None


@contextlib.contextmanager
def _folder(*, make: bool = False) -> Generator[int | None]:
    """The open folder, if it is private."""
    where = path()
    if where is None:
        yield None
        return
    if make:
        where.mkdir(mode=0o700, parents=True, exist_ok=True)
    folder = os.open(where, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield folder if _is_private(os.fstat(folder), stat.S_ISDIR) else None
    finally:
        os.close(folder)


def _is_private(found: os.stat_result, is_kind: object) -> bool:
    """Of the right kind, ours, and writable by nobody else."""
    assert callable(is_kind)
    others = stat.S_IWGRP | stat.S_IWOTH
    return (
        bool(is_kind(found.st_mode))
        and found.st_uid == os.geteuid()
        and not (found.st_mode & others)
    )


def _prune(folder: int) -> None:
    """Remove the files not used for longest, if there are too many."""
    files = list[tuple[float, int, str]]()
    with os.scandir(folder) as entries:
        for entry in entries:
            with contextlib.suppress(OSError):
                at = entry.stat(follow_symlinks=False)
                files.append((at.st_mtime, at.st_size, entry.name))
    total = sum(size for _, size, _ in files)
    for _, size, name in sorted(files):
        if total <= LARGEST_FOLDER:
            return
        with contextlib.suppress(OSError):
            os.unlink(name, dir_fd=folder)
        total -= size
