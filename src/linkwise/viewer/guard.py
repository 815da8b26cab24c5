"""The server behind a page: on which port it listens, and whom it answers.

viser serves one page and one socket. Left to itself it takes the next port when one is busy, waits
for ever on an address that is none of this machine's, lets a page of any web site talk to the
socket, and opens a tunnel to the outside when a client asks for it. Here none of that happens.
"""

from __future__ import annotations

import contextlib
import importlib
import socket
from collections.abc import Generator
from typing import Any
from urllib.parse import urlsplit

from linkwise.errors import MissingExtraError, ViewerError

LOOPBACK = ("127.0.0.1", "::1", "localhost")


def viser(asked: str = "the viewer") -> Any:
    """The package viser; raises with the extra's name."""
    try:
        return importlib.import_module("viser")
    except ImportError:
        raise MissingExtraError(asked, package="viser", extra="viewer") from None


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Without viser's own lines on the terminal."""
    console: Any = importlib.import_module("rich").get_console()
    before = console.quiet
    console.quiet = True
    try:
        yield
    finally:
        console.quiet = before


def address(host: str) -> str:
    """A host as an address: a name that means this machine alone is the loopback address."""
    if not str(host):
        raise ViewerError(f"host is {host!r}; it must be an address, like '127.0.0.1'.")
    return "127.0.0.1" if host == "localhost" else host


def check_port(host: str, port: int) -> None:
    """Raises, with what to do, if a port cannot be listened on.

    Args:
        host: An address of this machine.
        port: 1 to 65535, or 0 for any free one.

    Raises:
        ViewerError: It is busy, not allowed, or the address is none of this machine's.
    """
    if str(port) != str(int(port)) or not 0 <= port <= 65535:
        raise ViewerError(f"port is {port!r}; it must be from 1 to 65535, or 0 for a free one.")
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = found[0]
    except (OSError, UnicodeError):
        raise ViewerError(
            f"host is {host!r}, which is no address; give '127.0.0.1' for this machine alone, or "
            "'0.0.0.0' to be seen by others."
        ) from None
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except PermissionError:
        raise ViewerError(
            f"port {port} may not be used by this user; ports from 1024 on may, or port=0."
        ) from None
    except OSError as error:
        if port == 0:
            raise ViewerError(
                f"nothing can listen at {host!r} here ({error.strerror}); it must be an address of "
                "this machine, like '127.0.0.1'."
            ) from None
        free = _free(host)
        other = f"; port {free} is free" if free else ""
        raise ViewerError(
            f"port {port} of {host} is busy: another viewer or program listens there{other}. Give "
            "another port, or port=0 for any that is free."
        ) from None


def _free(host: str) -> int | None:
    try:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        with socket.socket(family, socket.SOCK_STREAM) as probe:
            probe.bind((host, 0))
            return int(probe.getsockname()[1])
    except OSError:
        return None


def start(host: str, port: int, label: str) -> Any:
    """A viser server at this address, closed to strangers.

    Raises:
        MissingExtraError: viser is not installed.
        ViewerError: The port or the address cannot be used.
    """
    package = viser()
    check_port(host, port)
    with quiet():
        server = package.ViserServer(host=host, port=port, label=label, verbose=False)
        server.request_share_url = _no_tunnel
        taken = server.get_port()
        if port not in (0, taken):  # someone was quicker
            server.stop()
            raise ViewerError(f"port {port} of {host} is busy; port {taken} was free just now.")
    _answer_only_own_pages(server, host)
    return server


def stop(server: Any) -> None:
    """Stop a server; its port is free afterwards."""
    with quiet():
        server.stop()


def _no_tunnel(verbose: bool = True) -> None:
    """What a client gets that asks for the page to be published: nothing."""


def _answer_only_own_pages(server: Any, host: str) -> None:
    """Close sockets that pages of other web sites open.

    A browser lets any page connect to a socket of this machine and tells from where it came in the
    header Origin. Programs that are no browser send none.
    """
    sockets: Any = getattr(server, "_websock_server", None)
    if not (hasattr(sockets, "_live_connections") and hasattr(sockets, "_client_connect_cb")):
        version = getattr(viser(), "__version__", "of this version")
        stop(server)
        raise ViewerError(
            f"viser {version} does not say from where a page connects, so that other web sites "
            "could not be kept out; install one that does: pip install 'viser>=1.1,<1.2'."
        )

    async def check(client: Any) -> None:
        connection = sockets._live_connections.get(client.client_id)
        headers: Any = getattr(getattr(connection, "request", None), "headers", {})
        if not own_page(headers.get("Origin"), headers.get("Host"), host):
            await connection.close(1008, "this page may not talk to the viewer")

    sockets._client_connect_cb.insert(0, check)


def own_page(origin: str | None, asked: str | None, host: str) -> bool:
    """Whether a socket may be opened: by no page, or by one that this server has served.

    Args:
        origin: The header Origin, "http://127.0.0.1:8080"; None from what is no browser.
        asked: The header Host, "127.0.0.1:8080".
        host: The address that the server listens at.
    """
    if origin is None:
        return True
    page = urlsplit(origin)
    if page.hostname in LOOPBACK or page.hostname == host:
        return True
    listens_to_all = host in ("0.0.0.0", "::")
    return listens_to_all and page.netloc == (asked or "")


def url(host: str, port: int) -> str:
    """The address of the page for a browser on this machine."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"
