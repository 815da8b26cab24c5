"""Recordings in files: to the last bit, and errors for what is no recording."""

import csv
import json

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, ParseError
from linkwise.simulation import Channel, Event, Recording


@pytest.fixture(scope="module")
def mech():
    return lw.models.quadruped()


@pytest.fixture(scope="module")
def rec(mech):
    rng = np.random.default_rng(1)
    t = np.cumsum(rng.random(30))
    q = np.stack([mech.random(rng) for _ in t])
    v, tau = rng.normal(size=(30, mech.nv)), rng.normal(size=(30, mech.nv))
    odd = np.array([1e-308, -0.0, 1 / 3, np.nan, np.inf, *np.zeros(25)])
    channels = [
        Channel("height of the hand", "m", "a probe, of ½ µm", odd),
        Channel("a/b 100%, \"c\"", ("N m", ""), "odd name", rng.normal(size=(30, 2)), ("x,y", "π")),
        Channel("none", "", "", np.zeros((30, 0))),
    ]  # fmt: skip
    return Recording.of(
        mech, t, q, v, tau, integrator="rk4", step=1e-3, steps=12345, stopped="slipped",
        events=[Event(t[3], "contact", "foot", "touched", 2.5), Event(t[4], "watch", "reach")],
        channels=channels, work_error=0.5, not_modelled=("wind",), wall=0.25,
    )  # fmt: skip


def test_comes_back_to_the_last_bit(rec, mech, tmp_path):
    path = tmp_path / "run.npz"
    rec.save(path)
    assert [x.name for x in tmp_path.iterdir()] == [path.name]  # nothing half is left
    back = lw.load_recording(path, mech)
    assert back.t.tobytes() == rec.t.tobytes()
    assert list(back.channels) == list(rec.channels)
    for name, channel in rec.channels.items():
        result = back.channels[name]
        assert result.values.shape == channel.values.shape
        assert result.values.tobytes() == channel.values.tobytes()
        assert (result.units, result.labels, result.about) == (
            channel.units, channel.labels, channel.about)  # fmt: skip
    kept = ("name", "integrator", "step", "steps", "stopped")
    assert all(getattr(back, x) == getattr(rec, x) for x in kept)
    assert [str(x) for x in back.events] == [str(x) for x in rec.events]
    assert back.events[0].value == 2.5 and np.isnan(back.events[1].value)
    assert str(back) == str(rec)
    middle = 0.5 * (rec.t[3] + rec.t[4])
    assert np.array_equal(back.at(middle)[0], rec.at(middle)[0])


def test_is_read_without_the_mechanism(rec, tmp_path):
    path = tmp_path / "run.npz"
    rec.save(path)
    back = lw.load_recording(path)
    assert back.mech is None and back.name == "quadruped"
    assert np.array_equal(back["q"], rec.q) and str(back) == str(rec)
    with pytest.raises(ModelError, match=r"lw.load_recording\(path, mech\)"):
        back.at(rec.t[1])
    again = tmp_path / "again.npz"
    back.save(again)  # what was loaded can be saved
    assert str(lw.load_recording(again)) == str(rec)


@pytest.mark.parametrize("suffix", ("csv", "npz"))
def test_the_same_run_gives_the_same_bytes(rec, tmp_path, suffix):
    rec.save(tmp_path / f"a.{suffix}")
    rec.save(tmp_path / f"b.{suffix}")
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_refuses_suffixes_and_folders(rec, tmp_path):
    with pytest.raises(ModelError, match=r"'run.mat'; its suffix must be one of .npz, .csv"):
        rec.save(tmp_path / "run.mat")
    with pytest.raises(ModelError, match=r"there is no folder '.*deep'. Make it first"):
        rec.save(tmp_path / "deep" / "run.csv")
    (tmp_path / "folder.npz").mkdir()
    with pytest.raises(ModelError, match="is a folder; name a file in it"):
        rec.save(tmp_path / "folder.npz")
    with pytest.raises(ParseError, match="it is a folder"):
        lw.load_recording(tmp_path / "folder.npz")
    with pytest.raises(ParseError, match="there is no such file"):
        lw.load_recording(tmp_path / "none.npz")
    with pytest.raises(ModelError, match="suffix"):
        lw.load_recording(tmp_path / "none.csv")
    with pytest.raises(ModelError, match=r"lw.load makes a mechanism"):
        lw.load_recording(tmp_path / "none.npz", "arm.urdf")


NONSENSE = (b"", b"hello\n", b"\x93NUMPY nonsense", b"PK\x03\x04", b"\xff\xfe\x00")


@pytest.mark.parametrize("content", NONSENSE)
def test_files_that_are_no_recordings(tmp_path, content):
    path = tmp_path / "run.npz"
    path.write_bytes(content)
    with pytest.raises(ParseError, match=r"run.npz: .*not a recording of Linkwise"):
        lw.load_recording(path)


@pytest.mark.parametrize("part", (0.3, 0.6, 0.95))
def test_files_that_were_cut_short(rec, tmp_path, part):
    path = tmp_path / "run.npz"
    rec.save(path)
    full = path.read_bytes()
    path.write_bytes(full[: int(part * len(full))])
    with pytest.raises(ParseError, match=r"run\.npz"):
        lw.load_recording(path)


def test_another_mechanism_is_refused_or_warned_of(rec, mech, tmp_path):
    path = tmp_path / "run.npz"
    rec.save(path)
    with pytest.raises(ModelError, match=r"recording of 'quadruped', .* not fit 'puma560': q has"):
        lw.load_recording(path, lw.models.puma560())
    heavier = mech.with_payload(mech.bodies[-1].name, lw.SpatialInertia.from_com(3.0, (0, 0, 0)))
    with pytest.warns(UserWarning, match="recorded with another 'quadruped'") as result:
        back = lw.load_recording(path, heavier)
    assert result[0].filename == __file__  # the line that asks
    assert np.array_equal(back["energy.total"], rec["energy.total"])


ODD = (
    *(" x ", "x\n", "a\nb", "", "[", "]", "x [m]", "x[", "x[0]", "linkwise", "a/b", "..", "."),
    *(
        "channel/q",
        "\ud800",
        "\0",
        "# c",
        '"',
        "a,b",
        "\r",
        "\u2028",
        "%2F",
        "x\t",
        "\ufeffx",
        "%0A",
    ),
)


def test_names_of_any_letters_come_back(tmp_path):
    """Names, labels, units, what a channel is about, and what happened."""
    t = np.arange(4.0)
    mech = lw.models.pendulum(1)
    rng = np.random.default_rng(2)
    names = [x for x in ODD if "[" not in x]  # those are for labels, and refused
    channels = [Channel(f"of {i}", x, x, rng.normal(size=4)) for i, x in enumerate(ODD)]
    channels += [Channel(x, "", "", rng.normal(size=4)) for x in names]
    channels.append(Channel("labelled", "m", "", rng.normal(size=(4, len(ODD))), ODD))
    events = [Event(float(i % 4), "watch", x, x, 0.5) for i, x in enumerate(ODD)]
    rec = Recording.of(mech, t, t[:, None], t[:, None], channels=channels, events=events)
    rec.save(tmp_path / "run.npz")
    back = lw.load_recording(tmp_path / "run.npz")
    assert list(back.channels) == list(rec.channels)
    for name, channel in rec.channels.items():
        result = back.channels[name]
        assert np.array_equal(result.values, channel.values)
        assert (result.units, result.labels, result.about) == (
            channel.units, channel.labels, channel.about)  # fmt: skip
    assert back.events == rec.events


def test_two_columns_of_one_name_are_refused(tmp_path):
    t = np.arange(4.0)
    times = [Channel("t", "s", "", t)]
    alike = [Channel("a\n", "", "", t), Channel("a%0A", "", "", t)]
    for channels in (times, alike):
        q = t[:, None]
        rec = Recording.of(lw.models.pendulum(1), t, q, q, channels=channels)
        with pytest.raises(ModelError, match="two columns of its table would be called"):
            rec.save(tmp_path / "run.csv")


def test_a_table_for_other_programs(rec, tmp_path):
    rec.save(tmp_path / "run.csv")
    lines = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()
    titles = next(csv.reader(lines[:1]))
    columns = [
        f"{a} [{b}]" for x in rec.channels.values() for a, b in zip(x.columns, x.units, strict=True)
    ]
    assert titles == ["t [s]", *columns] and len(lines) == 31
    table = np.loadtxt(lines[1:], delimiter=",")
    assert np.array_equal(table[:, 0], rec.t)
    place = titles.index(f"{rec.channels['q'].columns[7]} [rad]")
    assert np.array_equal(table[:, place], rec.q[:, 7])
    place = titles.index("height of the hand [m]")
    assert table[:, place].tobytes() == rec["height of the hand"].tobytes()


def test_other_archives_and_layouts(rec, tmp_path):
    path = tmp_path / "run.npz"
    rec.save(path)
    with np.load(path) as archive:
        arrays = dict(archive)
    assert np.array_equal(arrays["channel/v"], rec.v)  # as other programs read it
    header = json.loads(str(arrays["linkwise"]))
    for change, message in (
        ({"format_version": 4}, r"layout 4, .*reads layout 3"),
        ({"format": "another"}, "not a recording"),
        ({"channels": header["channels"][:2]}, "not a recording"),
        ({"notes": {"wind": 1}}, "not a recording"),
    ):
        np.savez(path, **{**arrays, "linkwise": np.array(json.dumps({**header, **change}))})
        with pytest.raises(ParseError, match=message):
            lw.load_recording(path)
    np.savez(path, **{**arrays, "t": rec.t[:-1]})
    with pytest.raises(ParseError, match="30 records; there are 29 times"):
        lw.load_recording(path)
    for other in ({"t": rec.t}, {"linkwise": np.array([{"a": 1}], dtype=object)}):
        np.savez(path, **other)
        with pytest.raises(ParseError, match="not a recording of Linkwise"):
            lw.load_recording(path)


def test_every_flipped_bit_is_noticed_or_harmless(rec, tmp_path):
    path = tmp_path / "run.npz"
    rec.save(path)
    data, rng = path.read_bytes(), np.random.default_rng(4)
    noticed = 0
    for place in rng.integers(len(data), size=60):
        path.write_bytes(data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :])
        try:
            back = lw.load_recording(path)
        except ParseError:
            noticed += 1
        else:
            assert all(back[x].tobytes() == rec[x].tobytes() for x in rec.channels)
    assert noticed > 30
