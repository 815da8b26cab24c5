"""The server: on this machine alone, one port each, freed at the end; and what it shows."""

import asyncio
import gzip
import http.client
import importlib.metadata
import socket
import threading
import time
import webbrowser
from itertools import pairwise

import numpy as np
import pytest

from tests.waiting import PATIENCE, until

pytest.importorskip("viser")

import linkwise as lw
from linkwise.errors import MissingExtraError, UnknownNameError, ViewerError
from linkwise.spatial import quaternion
from linkwise.viewer.guard import own_page


@pytest.fixture
def viewer():
    with lw.view(lw.models.puma560(), open_browser=False, quiet=True) as made:
        yield made


def bodies(viewer):
    """Poses of the page's frames (rot, p) by index of the body."""
    frames = viewer._stage._frames
    return {
        k: (quaternion.to_matrix(np.array(f.wxyz)), np.array(f.position))
        for k, f in frames.items()
        if k >= 0
    }


def get(viewer, path):
    """A raw request: clients tidy paths up, an attacker does not."""
    with socket.create_connection((viewer.host, viewer.port), timeout=PATIENCE) as s:
        s.sendall(f"GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n".encode())
        answer = b""
        while chunk := s.recv(65536):
            answer += chunk
    return answer


def is_free(port):
    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


# ------------------------------------------------------------------------------------- safety


def test_it_listens_on_this_machine_alone(viewer):
    assert viewer.url == f"http://127.0.0.1:{viewer.port}"
    sockets = []
    for family, where in ((socket.AF_INET, "0.0.0.0"), (socket.AF_INET, "127.0.0.2")):
        s = socket.socket(family)
        sockets.append(s)
        s.bind((where, 0))
    # The port is taken at 127.0.0.1 and nowhere else.
    with socket.socket() as other:
        other.bind(("127.0.0.2", viewer.port))
    for s in sockets:
        s.close()


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../../../../../etc/passwd",
        "//etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%2f..%2f..%2f..%2f..%2f..%2f..%2f..%2fetc/passwd",
        "/..\\..\\..\\..\\..\\..\\..\\etc\\passwd",
        "/....//....//....//etc/passwd",
        "file:///etc/passwd",
        "/etc/passwd",
        "/../../__init__.py",
        "/%00/etc/passwd",
    ],
)
def test_no_file_of_the_machine_is_reachable(viewer, path):
    answer = get(viewer, path)
    assert b"root:" not in answer and b"import" not in answer[:2000]
    assert b" 200 " not in answer[:20]


def test_the_page_itself_is_served(viewer):
    connection = http.client.HTTPConnection(viewer.host, viewer.port, timeout=PATIENCE)
    connection.request("GET", "/")
    answer = connection.getresponse()
    assert answer.status == 200 and b"<html" in answer.read().lower()


@pytest.mark.parametrize(
    ("origin", "address", "host", "allowed"),
    [
        (None, "127.0.0.1:80", "127.0.0.1", True),
        ("http://127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", True),
        ("http://localhost:8080", "localhost:8080", "127.0.0.1", True),
        ("http://LOCALHOST:8080", "localhost:8080", "127.0.0.1", True),
        ("http://127.0.0.2:8080", "127.0.0.2:8080", "127.0.0.2", True),
        ("http://[::1]:8080", "[::1]:8080", "::1", True),
        ("http://evil.example", "127.0.0.1:8080", "127.0.0.1", False),
        ("http://evil.example:8080", "evil.example:8080", "127.0.0.1", False),  # DNS rebinding
        ("http://evil.example:8080", "evil.example:8080", "0.0.0.0", False),
        ("http://localhost:3000", "localhost:8080", "127.0.0.1", False),  # another program's page
        ("http://localhost:3000", "127.0.0.1:8080", "127.0.0.1", False),
        ("http://127.0.0.1", "127.0.0.1:8080", "127.0.0.1", False),
        ("http://127.0.0.1.evil.example:8080", "127.0.0.1:8080", "127.0.0.1", False),
        ("http://evil@127.0.0.1:8080", "127.0.0.1:8080", "127.0.0.1", False),
        ("null", "127.0.0.1:8080", "127.0.0.1", False),
        ("file://", "", "127.0.0.1", False),
        ("http://[::1", "[::1", "127.0.0.1", False),
        ("http://[::1]:8080", None, "::1", False),
        ("http://robot:8080", "robot:8080", "0.0.0.0", True),
        ("http://robot.lan:8080", "robot.lan:8080", "0.0.0.0", True),
        ("http://robot.local:8080", "robot.local:8080", "0.0.0.0", True),
        ("http://192.168.1.7:8080", "192.168.1.7:8080", "0.0.0.0", True),
        ("http://arm.example:8080", "arm.example:8080", "arm.example", True),
        ("http://evil.example", "robot.lan:8080", "0.0.0.0", False),
    ],
)
def test_pages_that_may_talk_to_it(monkeypatch, origin, address, host, allowed):
    monkeypatch.setattr(socket, "gethostname", lambda: "robot.lan")
    assert own_page(origin, address, host) is allowed


def test_socket_is_closed_to_pages_of_other_sites(viewer, monkeypatch):
    """What a stranger sends is not even read: the handshake fails."""
    import msgspec
    from websockets.asyncio.client import connect
    from websockets.exceptions import InvalidStatus

    sockets, heard = viewer._server._websock_server, []
    handle = sockets._handle_incoming_message

    async def spy(client, message):
        heard.append(type(message).__name__)
        await handle(client, message)

    monkeypatch.setattr(sockets, "_handle_incoming_message", spy)
    ours = viewer.url

    async def talk(origin, more=()):
        protocol = f"viser-v{importlib.metadata.version('viser')}"
        address = viewer.url.replace("http", "ws")
        try:
            async with connect(
                address, subprotocols=[protocol], origin=origin, compression=None, max_size=None,
                additional_headers=list(more),
            ) as client:  # fmt: skip
                await client.send(msgspec.msgpack.encode({"type": "ShareUrlRequest"}))
                got = len(await asyncio.wait_for(client.recv(), PATIENCE)) > 0
                await asyncio.sleep(0.2)
                return got
        except InvalidStatus as refused:
            return refused.response.status_code

    for origin in ("http://evil.example", "null", "http://localhost:3000", "http://[::1"):
        assert asyncio.run(talk(origin)) == 403, origin
    assert asyncio.run(talk(ours, [("Host", "evil.example")])) == 403
    assert asyncio.run(talk(ours, [("Origin", "http://evil.example")])) == 403
    assert heard == [] and viewer.clients == 0
    assert asyncio.run(talk(None)) is True and asyncio.run(talk(ours)) is True
    assert heard == ["ShareUrlRequest"] * 2


def test_early_end_of_a_connection_is_no_news(viewer, caplog, capfd):
    for sent in (b"", b"GET", b"\x16\x03\x01\x00\x00", b"GET / HTTP/1.1\r\nHost: x\r\n"):
        with socket.create_connection((viewer.host, viewer.port), timeout=PATIENCE) as s:
            s.sendall(sent)
    time.sleep(0.3)
    assert b" 200 " in get(viewer, "/")[:20]
    message = capfd.readouterr()
    assert message.err == "" and message.out == "" and caplog.text == ""


def test_title_of_the_page_is_the_robot(viewer):
    for packed in ("identity", "gzip"):
        connection = http.client.HTTPConnection(viewer.host, viewer.port, timeout=PATIENCE)
        connection.request("GET", "/", headers={"Accept-Encoding": packed})
        answer = connection.getresponse()
        page = answer.read()
        page = gzip.decompress(page) if packed == "gzip" else page
        assert answer.getheader("Content-Encoding") == packed
        assert b"<title>puma560</title>" in page and page.rstrip().endswith(b"</html>")


def test_viser_that_opens_its_socket_in_another_way_is_refused(monkeypatch):
    import websockets
    from viser.infra import _infra
    from websockets.asyncio import server

    class Kept:
        serve, ServerConnection = staticmethod(server.serve), server.ServerConnection

    class Asyncio:
        server = Kept

    class Package:
        asyncio, datastructures = Asyncio, websockets.datastructures
        exceptions = websockets.exceptions

    monkeypatch.setattr(_infra, "websockets", Package)
    with pytest.raises(ViewerError, match="opens its socket in an unknown way"):
        lw.view(lw.models.pendulum(1), open_browser=False)


def test_nobody_can_ask_for_a_tunnel(viewer):
    assert viewer._server.request_share_url() is None
    assert viewer._server._share_tunnel is None


# ---------------------------------------------------------------------------------------- ports


def test_busy_port_is_told_with_a_free_one(viewer):
    with pytest.raises(ViewerError, match=f"port {viewer.port} of 127.0.0.1 is busy") as message:
        lw.view(lw.models.pendulum(1), port=viewer.port, open_browser=False)
    free = int(str(message.value).split("; port ")[1].split()[0])
    with lw.view(lw.models.pendulum(1), port=free, open_browser=False, quiet=True) as other:
        assert other.port == free


def test_several_at_once_and_ports_are_freed():
    many = [lw.view(lw.models.pendulum(n), open_browser=False, quiet=True) for n in (1, 2, 3)]
    ports = [v.port for v in many]
    assert len(set(ports)) == 3 and not any(is_free(p) for p in ports)
    many[1].set([0.1, 0.2])
    assert np.allclose(many[2].q, 0.0)
    many[0].close()
    assert is_free(ports[0]) and not is_free(ports[1])
    for v in many:
        v.close()  # a second time is no error
    assert all(is_free(p) for p in ports)


@pytest.mark.parametrize("port", [-1, 70000, 2.5, "abc", "8080", np.nan, None, True, 8080.0])
def test_port_that_is_none(port):
    with pytest.raises(ViewerError, match="must be from 1 to 65535, or 0"):
        lw.view(lw.models.pendulum(1), port=port, open_browser=False)


@pytest.mark.parametrize("host", ["no such host", "192.0.2.1", "", None, 127])
def test_address_of_another_machine(host):
    """192.0.2.0/24 is kept for documentation: it is nobody's address."""
    with pytest.raises(ViewerError, match="address"):
        lw.view(lw.models.pendulum(1), host=host, open_browser=False)


def test_others_of_the_loopback_are_this_machine_too():
    with lw.view(lw.models.pendulum(1), host="127.0.0.2", open_browser=False, quiet=True) as viewer:
        assert viewer.greeting == f"pendulum_1: http://127.0.0.2:{viewer.port}"
    with lw.view(lw.models.pendulum(1), host="0.0.0.0", open_browser=False, quiet=True) as viewer:
        assert "beyond this machine" in viewer.greeting


def test_closed_viewer_says_so(viewer):
    viewer.close()
    assert "closed" in repr(viewer) and viewer.closed
    with pytest.raises(ViewerError, match=r"was closed; lw\.view opens another"):
        viewer.set(np.zeros(6))


# ---------------------------------------------------------------------------- nothing to show on


def test_without_viser_the_extra_is_named(monkeypatch):
    import sys

    monkeypatch.setitem(sys.modules, "viser", None)
    for call in (
        lambda: lw.view(lw.models.pendulum(1)),
        lambda: lw.viewer.html_page(lw.models.pendulum(1)),
    ):
        with pytest.raises(MissingExtraError, match=r"pip install 'linkwise\[viewer\]'"):
            call()


def test_no_browser_is_no_error(monkeypatch, capsys):
    def nothing(url):
        raise webbrowser.Error("could not locate runnable browser")

    monkeypatch.setattr(webbrowser, "open", nothing)
    with lw.view(lw.models.pendulum(1), open_browser=True) as viewer:
        message = capsys.readouterr().out
        assert message.splitlines()[0] == f"pendulum_1: {viewer.url}"
        assert f"no browser could be started; open {viewer.url}" in message


def test_no_display_opens_nothing(monkeypatch, capsys):
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "CI", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setattr(webbrowser, "open", lambda url: pytest.fail("a browser was opened"))
    with lw.view(lw.models.pendulum(1)) as viewer:
        assert capsys.readouterr().out == f"pendulum_1: {viewer.url}\n"


def test_wrong_words(viewer):
    with pytest.raises(UnknownNameError, match="did you mean 'belted'"):
        viewer.show("belt")
    with pytest.raises(lw.ModelError, match="theme is 'blue'"):
        lw.view(lw.models.pendulum(1), theme="blue")
    with pytest.raises(UnknownNameError, match="flange"):
        lw.view(lw.models.puma560(), nodes="flang", open_browser=False)


# ------------------------------------------------------------------------------ what is shown


def test_bodies_stand_where_forward_kinematics_says(viewer):
    q = np.array([0.4, -0.6, 0.3, 0.2, -0.5, 0.1])
    viewer.set(q)
    exact = lw.forward_kinematics(viewer.mech, q)
    shown = bodies(viewer)
    assert len(shown) == 6
    for k, (rot, p) in shown.items():
        assert np.allclose(rot, exact.rot[k], atol=1e-9) and np.allclose(p, exact.p[k], atol=1e-9)
    sliders = [float(s.value) for s in viewer._controls._sliders.values()]
    assert np.allclose(sliders, q)
    with pytest.raises(lw.ShapeError, match=r"one configuration is \(6,\)"):
        viewer.set(np.zeros((2, 6)))


def test_buttons(viewer):
    viewer.random(seed=1)
    assert np.allclose(viewer.q, viewer.mech.random(seed=1))
    viewer.neutral()
    assert np.allclose(viewer.q, 0.0)
    viewer.set(np.full(6, 0.1))
    viewer.reset()
    assert np.allclose(viewer.q, 0.0)


def test_a_slider_of_a_loop_takes_the_others_along():
    mech = lw.models.four_bar()
    with lw.view(mech, open_browser=False, quiet=True, show=("shapes", "forces", "axes")) as viewer:

        def crank(angle):
            return lambda q: np.array([angle, *q[1:]])

        viewer.dial("crank_pin", crank(0.7))
        assert (
            viewer.q[0] == 0.7 and np.abs(lw.loops.constraint_error(mech, viewer.q)).max() < 1e-10
        )
        before = viewer.q
        viewer.dial("rocker_pin", lambda q: np.array([q[0], q[1], -2.5]))
        assert np.array_equal(viewer.q, before)  # it cannot, and says so
        assert (
            viewer._controls._message.visible
            and "cannot go there" in viewer._controls._message.content
        )
        viewer.dial("crank_pin", crank(0.8))
        assert not viewer._controls._message.visible


def test_forces_of_loops_and_of_contacts_have_one_scale():
    """A contact that pushes half as hard as a loop has an arrow of half its length."""
    mech = lw.models.four_bar()
    q = lw.loops.assemble(mech, [0.7, 0.0, 0.0], hold=["crank_pin"]).required()
    v = np.zeros((2, mech.nv))
    loop = lw.loops.constraint_forces(mech, q, v[0], v[0])
    pull = float(np.linalg.norm(lw.loops.loop_forces(mech, q, loop)[mech.loops[0].name][3:]))
    rec = lw.Recording.of(mech, [0.0, 1.0], [q, q], v, tau=v)
    rec = rec.with_channel("contact.coupler.force", [(0.0, 0.0, 0.5 * pull)] * 2)
    with lw.view(rec, open_browser=False, quiet=True, show=("shapes", "forces")) as viewer:
        viewer.pause()
        viewer.seek(0.0)
        (arrows,) = viewer._stage._handles["forces"]
        at_b, at_a, contact = np.linalg.norm(arrows.points[:, 1] - arrows.points[:, 0], axis=1)
    assert pull > 1.0 and np.isclose(at_a, at_b, rtol=1e-5)
    assert np.isclose(contact, 0.5 * at_a, rtol=1e-5)


@pytest.mark.parametrize("name", ["humanoid", "stewart", "random_tree", "four_bar"])
def test_every_layer_of_several_mechanisms(name):
    make = getattr(lw.models, name)
    mech = make(8, seed=1) if name == "random_tree" else make()
    motion = np.stack([mech.neutral()] * 3)
    every = tuple(x for x in lw.viewer.look.LAYERS if x != "belted" or mech.nv < 10)
    with lw.view(mech, motion, show=every, open_browser=False, quiet=True) as viewer:
        viewer.pause()
        for layer in every:
            viewer.show(layer, False)
            assert not viewer.shows(layer)
        assert not any(h.visible for hs in viewer._stage._handles.values() for h in hs)
        viewer.show("frames")
        assert viewer.shows("frames")


def test_names_cannot_write_into_the_page():
    b = lw.Builder("<script>alert(1)</script>")
    b.body(
        "a/../b",
        "world",
        lw.hinges.Pin((0, 0, 1)),
        inertia=lw.SpatialInertia.solid_sphere(1.0, 0.1),
    )
    mech = b.build()
    page = lw.viewer.html_page(mech)
    assert "<script>alert(1)" not in page and "&lt;script&gt;alert(1)" in page
    with lw.view(mech, open_browser=False, quiet=True, show=("shapes", "names")) as viewer:
        viewer._controls.tell("<b>x</b>")
        assert "<b>" not in viewer._controls._message.content


# --------------------------------------------------------------------------------------- motion


def wave(mech, seconds=1.0, records=61):
    t = np.linspace(0.0, seconds, records)
    turn = np.sin(2.0 * np.pi * t)[:, None] * np.ones(mech.nv)
    q = np.stack([mech.integrate(mech.neutral(), 0.3 * row) for row in turn])
    return t, q


def test_playback_plays_beside_the_program():
    mech = lw.models.humanoid()
    t, q = wave(mech, 1.0)
    with lw.view(mech, q, t=1e5 * t, open_browser=False, quiet=True, loop=False) as viewer:
        assert viewer.playing  # it does not wait for the motion, which takes a day
    with lw.view(mech, q, t=t, open_browser=False, quiet=True, loop=False) as viewer:
        until(lambda: not viewer.playing)
        assert viewer.time == pytest.approx(1.0)
        assert np.allclose(viewer.q, q[-1])
        viewer.seek(0.25)
        assert np.allclose(viewer.q, q[15])
        exact = lw.forward_kinematics(mech, q[15])
        for k, (rot, p) in bodies(viewer).items():
            assert np.allclose(p, exact.p[k], atol=1e-6) and np.allclose(
                rot, exact.rot[k], atol=1e-6
            )
        assert viewer._controls._time.value == pytest.approx(0.25)
        viewer.resume()
        viewer.pause()
        assert not viewer.playing


def test_playback_loops_and_ends_with_the_viewer():
    mech = lw.models.pendulum(2)
    before = threading.active_count()
    t, q = wave(mech, 0.1, 7)
    viewer = lw.view(mech, q, t=t, open_browser=False, quiet=True, speed=2.0)
    seen = []

    def looped() -> bool:
        seen.append(viewer.time)
        return any(later < earlier for earlier, later in pairwise(seen))

    until(looped, lambda _: time.sleep(0.01))
    assert viewer.playing and max(seen) <= 0.1
    viewer.close()
    assert not any(thread.name == "playback" for thread in threading.enumerate())
    assert threading.active_count() <= before + 34  # viser's workers end with the program


def test_another_motion_in_the_same_viewer(viewer):
    t, q = wave(viewer.mech)
    assert not viewer.has("traces")
    viewer.play(viewer.mech, q, t)
    assert viewer.motion is not None and viewer.has("traces")
    viewer.show("traces")
    viewer.pause()
    with pytest.raises(ViewerError, match=r"2 bodies and 2 coord.*Use lw\.view"):
        viewer.play(lw.models.pendulum(2), np.zeros((3, 2)))
    with pytest.raises(ViewerError, match="another hinge, 'link_1' for 'joint_1'"):
        viewer.play(lw.models.chain(6), np.zeros((3, 6)))
    viewer.play(lw.models.puma560(), q)  # the same mechanism, made again
    with pytest.raises(lw.ModelError, match="speed is 0"):
        viewer.playback.speed = 0.0


def test_time_is_that_of_the_recording(tmp_path):
    mech = lw.models.pendulum(2)
    rec = lw.simulate(mech, [2.0, 1.0], [0.0, 0.0], duration=2.0, start=5.0, record_every=50)
    with lw.view(rec, open_browser=False, quiet=True, speed=0.3) as viewer:
        viewer.pause()
        bar = viewer._controls._time
        assert (bar.min, bar.max) == pytest.approx((5.0, 7.0))
        viewer.seek(6.013)  # between two records
        assert viewer.time == bar.value == pytest.approx(6.013)
        exact = rec.at(6.013)[0]
        assert np.allclose(viewer.q, exact)
        for k, (_, p) in bodies(viewer).items():
            assert np.allclose(p, mech.poses(exact).p[k], atol=1e-9)
        viewer.seek(0.0)
        assert viewer.time == 5.0
        viewer.seek(100.0)
        assert viewer.time == 7.0
        viewer.resume()
        assert viewer.time < 6.0  # from the beginning
        viewer.pause()
        for wrong in (np.nan, np.inf, "x", "6", None, [1.0, 2.0]):
            with pytest.raises(lw.ModelError, match=r"must be a number of seconds, from 5 to 7"):
                viewer.seek(wrong)
        handles = viewer._server.gui._gui_input_handle_from_uuid.values()
        (box,) = [h for h in handles if getattr(h, "label", "") == "speed"]
        assert box.value == "0.3×" and "1×" in box.options
    for wrong in ("x", np.nan, None, -1.0):
        with pytest.raises(lw.ModelError, match="speed is"):
            lw.view(rec, open_browser=False, quiet=True, speed=wrong)


def test_exported_motion_is_that_of_the_recording(monkeypatch):
    """Also of a mechanism as small as what its positions used to be rounded to."""
    from linkwise.viewer.stage import Stage

    seen, place = [], Stage.place

    def watched(self, turned, placed, *, force=False):
        seen.append(np.array(placed))
        place(self, turned, placed, force=force)

    monkeypatch.setattr(Stage, "place", watched)
    small = 1e-4
    b = lw.Builder("small")
    for i, parent in enumerate(("world", "link0")):
        inertia = lw.SpatialInertia.solid_sphere(1e-9, 0.1 * small)
        b.body(f"link{i}", parent, lw.hinges.Pin((0, 1, 0)), inertia=inertia,
               inboard=lw.Pose.translation((0, 0, -small * i)))  # fmt: skip
    mech = b.build()
    t = np.linspace(3.0, 4.0, 6)
    v = np.full((6, 2), 0.7)
    rec = lw.Recording.of(mech, t, 0.7 * (t - 3.0)[:, None] * np.ones(2), v)
    lw.viewer.html_page(rec, fps=20.0)
    exact = [mech.poses(rec.at(x)[0]).p for x in np.linspace(3.0, 4.0, 21)]
    assert np.allclose(seen[-21:], exact, rtol=0.0, atol=1e-5 * small)


def test_notebook(viewer):
    frame = viewer._repr_html_()
    assert frame.startswith("<iframe") and viewer.url in frame
    page = lw.viewer.embedded(lw.models.pendulum(1), height=300)
    inside = page._repr_html_()
    assert 'height="300"' in inside and "srcdoc" in inside and "<script" not in inside
    assert "MB" in repr(page)
