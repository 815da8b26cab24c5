"""The server behind a page: on which port it listens, and which clients it accepts.

viser serves one page and one socket. By default it takes the next port when one is busy, hangs on
an address of another machine, lets a page of any web site talk to the socket, and opens a tunnel to
the internet when a client requests one. This module prevents all of that.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import html
import importlib
import ipaddress
import logging
import socket
import threading
from collections.abc import Generator
from typing import Any, SupportsIndex
from urllib.parse import urlsplit

from linkwise.errors import MissingExtraError, ViewerError


def viser(purpose: str = "the viewer") -> Any:
    """The package viser; raises with the extra's name."""
    try:
        return importlib.import_module("viser")
    except ImportError:
        raise MissingExtraError(purpose, package="viser", extra="viewer") from None


@contextlib.contextmanager
def quiet() -> Generator[None]:
    """Suppress viser's output on the terminal."""
    console: Any = importlib.import_module("rich").get_console()
    before = console.quiet
    console.quiet = True
    try:
        yield
    finally:
        console.quiet = before


def address(host: str) -> str:
    """The address of a host; "localhost" is the loopback address."""
    if not isinstance(host, str) or not host:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ViewerError(f"host is {host!r}; it must be an address, like '127.0.0.1'.")
    return "127.0.0.1" if host == "localhost" else host


def check_port(host: str, port: int) -> None:
    """Raise ViewerError if a port is busy or not allowed, or the address is not of this machine."""
    if isinstance(port, bool) or not isinstance(port, SupportsIndex) or not 0 <= port <= 65535:  # pyright: ignore[reportUnnecessaryIsInstance]
        raise ViewerError(f"port is {port!r}; it must be from 1 to 65535, or 0 for a free one.")
    try:
        addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
        family, kind, protocol, _, where = addresses[0]
    except (OSError, UnicodeError):
        raise ViewerError(
            f"host is {host!r}, which is not an address; use '127.0.0.1' for this machine, or "
            "'0.0.0.0' to be visible to others."
        ) from None
    try:
        with socket.socket(family, kind, protocol) as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(where)
    except PermissionError:
        raise ViewerError(
            f"port {port} is not allowed for this user; use a port from 1024 on, or port=0."
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
            f"port {port} of {host} is busy: another viewer or program listens there{other}. Use "
            "another port, or port=0 for a free one."
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
    """A viser server at this address that accepts no foreign pages.

    Raises:
        MissingExtraError: viser is not installed.
        ViewerError: The port or the address cannot be used.
    """
    package = viser()
    check_port(host, port)
    with quiet(), guarded(host, label) as met:
        server = package.ViserServer(host=host, port=port, label=label, verbose=False)
        server.request_share_url = _no_tunnel
        taken = server.get_port()
    if not met:
        version = getattr(package, "__version__", "of this version")
        stop(server)
        raise ViewerError(
            f"viser {version} opens its socket in an unknown way, so other web sites could "
            "connect; install a supported version: pip install 'viser>=1.1,<1.2'."
        )
    if port not in (0, taken):  # someone was quicker
        stop(server)
        raise ViewerError(f"port {port} of {host} is busy; port {taken} was free just now.")
    return server


def stop(server: Any) -> None:
    """Stop a server; its port is free afterwards."""
    with quiet():
        server.stop()


def _no_tunnel(verbose: bool = True) -> None:
    """The answer to a client that wants to publish the page: nothing."""


@contextlib.contextmanager
def guarded(host: str, label: str) -> Generator[list[bool]]:
    """While viser starts, make its socket check the origin of connections.

    A browser lets any page connect to a socket of this machine, and sends the page's address in the
    header Origin; other programs send none. Foreign pages are refused in the handshake, with status
    403, and nothing they send is read. viser has no setting for that, so the function that opens
    its socket is replaced while it starts.

    Yields:
        A list that becomes non-empty when the socket was opened in that way.
    """
    module: Any = importlib.import_module("websockets.asyncio.server")
    log = logging.getLogger("linkwise.viewer.socket")
    log.setLevel(logging.CRITICAL)  # connections that end early are normal
    met = list[bool]()
    with _STARTING:
        serve = module.serve

        def kept(handler: Any, *args: Any, **options: Any) -> Any:
            if not str(getattr(handler, "__module__", "")).startswith("viser."):
                return serve(handler, *args, **options)
            inner, title = options.get("process_request"), _Titled(label)

            def request(connection: Any, requested: Any) -> Any:
                if not _welcome(requested.headers, host):
                    return connection.respond(403, "This page may not talk to the viewer.\n")
                return title(None if inner is None else inner(connection, requested))

            met.append(True)
            return serve(handler, *args, **{**options, "process_request": request, "logger": log})

        module.serve = kept
        try:
            yield met
        finally:
            module.serve = serve


_STARTING = threading.Lock()


class _Titled:
    """Answers of viser, with the robot's name for the title of the page."""

    def __init__(self, label: str) -> None:
        self._title = f"<title>{html.escape(label)}</title>".encode("utf-8", "replace")
        self._known = dict[bytes, bytes]()

    def __call__(self, answer: Any) -> Any:
        if answer is None or not str(answer.headers.get("Content-Type", "")).startswith(
            "text/html"
        ):
            return answer
        packed = answer.headers.get("Content-Encoding") == "gzip"
        key = hashlib.sha256(answer.body).digest()
        if key not in self._known:
            page = gzip.decompress(answer.body) if packed else bytes(answer.body)
            page = page.replace(b"<title>Viser</title>", self._title, 1)
            self._known[key] = gzip.compress(page, 6) if packed else page
        answer.body = self._known[key]
        del answer.headers["Content-Length"]
        answer.headers["Content-Length"] = str(len(answer.body))
        return answer


def _welcome(headers: Any, host: str) -> bool:
    """Whether a request comes from no page, or from a page of this server."""
    origins, hosts = headers.get_all("Origin"), headers.get_all("Host")
    if not origins:
        return True
    if len(origins) > 1 or len(hosts) != 1:
        return False
    return own_page(origins[0], hosts[0], host)


def own_page(origin: str | None, requested: str | None, host: str) -> bool:
    """Whether a connection is allowed: from no page (`origin` None), or from a page of this server.

    The page must come from the host and port that it connects to. The host must be an address, a
    name of this machine or the one that the server listens at: the owner of any other name could
    make it resolve to this machine.
    """
    if origin is None:
        return True
    try:
        page = urlsplit(origin.lower())
        name = page.hostname
    except ValueError:
        return False
    if page.scheme not in ("http", "https") or not name or page.netloc != (requested or "").lower():
        return False
    return is_address(name) or name in (host.lower(), *_own_names())


def _own_names() -> tuple[str, ...]:
    """Names of this machine."""
    short = socket.gethostname().lower().split(".")[0]
    return ("localhost", socket.gethostname().lower(), short, f"{short}.local")


def is_address(name: str) -> bool:
    """Whether a host is a numeric address."""
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def is_loopback(host: str) -> bool:
    """Whether an address is of this machine alone: 127.0.0.0/8 and ::1."""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def url(host: str, port: int) -> str:
    """The address of the page for a browser on this machine."""
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
    return f"http://{shown}:{port}"
