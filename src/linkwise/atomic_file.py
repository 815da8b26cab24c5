"""How Linkwise writes files: completely, or not at all.

New content goes to a temporary file in the same folder, which replaces the old file in one step
when it is complete. If anything fails (a full disk, an interrupt, a read-only folder), the old file
is unchanged and the temporary file is removed.
"""

from __future__ import annotations

import contextlib
import errno
import os
import re
import stat
from collections.abc import Generator, Iterable, Mapping
from pathlib import Path
from typing import TypeAlias

from linkwise.errors import WriteError

Content: TypeAlias = str | bytes | Iterable[bytes | memoryview]
"""Content of a file: text (UTF-8), bytes, or parts produced while they are written."""

TEMPORARY = re.compile(r"\.linkwise-[0-9a-f]{16}")
"""Names of files that are not complete."""

_CREATE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
_CREATE |= getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)


def write_file(path: str | os.PathLike[str], content: Content) -> None:
    """Write one file; see `write_files`."""
    write_files({Path(path): content})


def write_files(contents: Mapping[Path, Content]) -> None:
    """Write several files; none is replaced before all are complete.

    An existing file keeps its permissions; a new one gets those of the umask. A symbolic link is
    followed. A device or a pipe cannot be replaced and is written directly.

    Raises:
        WriteError: A file cannot be written; says which and why.
    """
    staged = list[tuple[Path, str, str]]()
    try:
        for path, content in contents.items():
            if _is_direct(path):
                with _reported(path), open(path, "wb") as file:
                    file.writelines(_parts(content))
                continue
            with _reported(path):
                target, mode = _target(path)
                temporary = os.path.join(os.path.dirname(target), _temporary_name())
                handle = os.open(temporary, _CREATE, 0o600)
            staged.append((path, temporary, target))
            try:
                for part in _parts(content):
                    with _reported(path):
                        _write(handle, part)
                with _reported(path):
                    _permit(handle, temporary, target, mode)
                    os.fsync(handle)  # else a crash could leave the new name without its content
            finally:
                os.close(handle)
        while staged:
            path, temporary, target = staged[0]
            with _reported(path):
                os.replace(temporary, target)
            staged.pop(0)
    finally:
        for _, temporary, _ in staged:
            with contextlib.suppress(OSError):
                os.unlink(temporary)


def write_private(name: str, content: bytes, folder: int) -> None:
    """Write a file readable by the user only into an open folder, following no links.

    It does not wait for the disk: for files with a checksum, such as those of a cache.

    Raises:
        OSError: It cannot be written.
    """
    temporary = _temporary_name()
    handle = os.open(temporary, _CREATE, 0o600, dir_fd=folder)
    try:
        try:
            _write(handle, content)
        finally:
            os.close(handle)
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=folder)
        raise


def check_writable(path: str | os.PathLike[str]) -> None:
    """Refuse a file that `write_file` could not write; leaves no trace.

    Raises:
        WriteError: Says why.
    """
    if _is_direct(path):
        return
    with _reported(path):
        target, _ = _target(path)
        temporary = os.path.join(os.path.dirname(target), _temporary_name())
        os.close(os.open(temporary, _CREATE, 0o600))
        os.unlink(temporary)


def _is_direct(path: str | os.PathLike[str]) -> bool:
    """Whether this is not a regular file: a device, a pipe, an open stream."""
    if os.path.abspath(path).startswith(("/dev/std", "/dev/fd/", "/proc/")):
        return True  # an open file must stay the same one
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # it does not exist, or the name is invalid
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _target(path: str | os.PathLike[str]) -> tuple[str, os.stat_result | None]:
    """The file that a path means, with links resolved, and its status if it exists."""
    target = os.path.realpath(path)
    if os.path.islink(target):  # a cycle of links
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
    try:
        there = os.stat(target)
    except FileNotFoundError:
        return target, None
    if stat.S_ISDIR(there.st_mode):
        raise OSError(errno.EISDIR, os.strerror(errno.EISDIR))
    if not os.access(target, os.W_OK):  # os.replace would succeed anyway
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))
    return target, there


def _permit(handle: int, temporary: str, target: str, there: os.stat_result | None) -> None:
    """Give the new file the owner and permissions of the old one, or those of the umask."""
    mode = 0o666 & ~_umask() if there is None else stat.S_IMODE(there.st_mode)
    if there is not None and hasattr(os, "fchown"):
        with contextlib.suppress(PermissionError):
            os.fchown(handle, there.st_uid, there.st_gid)
    os.chmod(temporary, mode)


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _parts(content: Content) -> Iterable[bytes | memoryview]:
    if isinstance(content, str):
        return (content.encode("utf-8"),)
    return (content,) if isinstance(content, bytes) else content


def _write(handle: int, part: bytes | memoryview) -> None:
    rest = memoryview(part)
    while rest:
        rest = rest[os.write(handle, rest) :]


def _temporary_name() -> str:
    return f".linkwise-{os.urandom(8).hex()}"


@contextlib.contextmanager
def _reported(path: str | os.PathLike[str]) -> Generator[None]:
    """System errors, with the file name that the caller gave."""
    try:
        yield
    except (OSError, ValueError) as error:  # ValueError: a null byte in the name
        raise WriteError(path, error) from error
