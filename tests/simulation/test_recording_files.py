"""Recordings in files: to the last bit in every format, and errors for what is no recording."""

import json
import re
import sys
import zipfile

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import MissingExtraError, ModelError, ParseError
from linkwise.simulation import Channel, Event, Recording

FORMATS = ("parquet", "h5", "hdf5", "csv", "npz")
NEEDS = {"parquet": "pyarrow", "h5": "h5py", "hdf5": "h5py"}


@pytest.fixture(autouse=True)
def _packages(request):
    """Formats whose package is not installed are left out."""
    suffix = getattr(request.node, "callspec", None) and request.node.callspec.params.get("suffix")
    if suffix in NEEDS:
        pytest.importorskip(NEEDS[suffix])


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


@pytest.mark.parametrize("suffix", FORMATS)
def test_comes_back_to_the_last_bit(rec, mech, tmp_path, suffix):
    path = tmp_path / f"run.{suffix}"
    rec.save(path)
    assert [x.name for x in tmp_path.iterdir()] == [path.name]  # nothing half is left
    back = lw.load_recording(path, mech)
    assert back.t.tobytes() == rec.t.tobytes()
    assert list(back.channels) == list(rec.channels)
    for name, channel in rec.channels.items():
        found = back.channels[name]
        assert found.values.shape == channel.values.shape
        assert found.values.tobytes() == channel.values.tobytes()
        assert (found.units, found.labels, found.about) == (
            channel.units, channel.labels, channel.about)  # fmt: skip
    kept = ("name", "integrator", "step", "steps", "stopped")
    assert all(getattr(back, x) == getattr(rec, x) for x in kept)
    assert [str(x) for x in back.events] == [str(x) for x in rec.events]
    assert back.events[0].value == 2.5 and np.isnan(back.events[1].value)
    assert str(back) == str(rec)
    middle = 0.5 * (rec.t[3] + rec.t[4])
    assert np.array_equal(back.at(middle)[0], rec.at(middle)[0])


@pytest.mark.parametrize("suffix", FORMATS)
def test_is_read_without_the_mechanism(rec, tmp_path, suffix):
    path = tmp_path / f"run.{suffix}"
    rec.save(path)
    back = lw.load_recording(path)
    assert back.mech is None and back.name == "quadruped"
    assert np.array_equal(back["q"], rec.q) and str(back) == str(rec)
    with pytest.raises(ModelError, match=r"lw.load_recording\(path, mech\)"):
        back.at(rec.t[1])
    again = tmp_path / f"again.{suffix}"
    back.save(again)  # what was loaded can be saved
    assert str(lw.load_recording(again)) == str(rec)


def test_other_programs_can_read_the_tables(rec, tmp_path):
    """Names and units are where readers of each format look for them."""
    h5py = pytest.importorskip("h5py")
    parquet = pytest.importorskip("pyarrow.parquet")
    first = rec.channels["q"].columns[7]
    for suffix in FORMATS:
        rec.save(tmp_path / f"run.{suffix}")
    table = parquet.read_table(tmp_path / "run.parquet")
    assert np.array_equal(table[first].to_numpy(), rec.q[:, 7])
    assert table.schema.field(first).metadata[b"unit"] == b"rad"
    told = json.loads(table.schema.metadata[b"linkwise"])
    assert (told["linkwise"], told["mechanism"]["name"]) == (lw.__version__, "quadruped")
    with h5py.File(tmp_path / "run.h5") as file:
        assert np.array_equal(file["channels/q"][:, 7], rec.q[:, 7])
        assert file["channels/energy.total"].attrs["unit"] == "J"
        assert list(file["channels/q"].attrs["labels"]) == list(rec.channels["q"].labels)
    with np.load(tmp_path / "run.npz") as archive:
        assert np.array_equal(archive["channel/v"], rec.v)
    lines = (tmp_path / "run.csv").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 32 and lines[0].startswith("# {")
    assert lines[1].startswith("t [s],") and f"{first} [rad]" in lines[1]
    assert float(lines[2].split(",")[0]) == rec.t[0]


@pytest.mark.parametrize("suffix", ("csv", "npz"))
def test_the_same_run_gives_the_same_bytes(rec, tmp_path, suffix):
    rec.save(tmp_path / f"a.{suffix}")
    rec.save(tmp_path / f"b.{suffix}")
    assert (tmp_path / f"a.{suffix}").read_bytes() == (tmp_path / f"b.{suffix}").read_bytes()


def test_refuses_suffixes_and_folders(rec, tmp_path):
    with pytest.raises(ModelError, match=r"'run.mat'; its suffix must be one of .parquet, .h5"):
        rec.save(tmp_path / "run.mat")
    with pytest.raises(ModelError, match=r"there is no folder '.*deep'. Make it first"):
        rec.save(tmp_path / "deep" / "run.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(ModelError, match="is a folder; name a file in it"):
        rec.save(tmp_path / "folder.csv")
    with pytest.raises(ParseError, match="it is a folder"):
        lw.load_recording(tmp_path / "folder.csv")
    with pytest.raises(ParseError, match="there is no such file"):
        lw.load_recording(tmp_path / "none.npz")
    with pytest.raises(ModelError, match="suffix"):
        lw.load_recording(tmp_path / "none")
    with pytest.raises(ModelError, match=r"lw.load makes a mechanism"):
        lw.load_recording(tmp_path / "none.npz", "arm.urdf")


NONSENSE = (
    *(b"", b"hello\n", b"\x93NUMPY nonsense", b"PK\x03\x04", b"PAR1"),
    *(b"\x89HDF\r\n\x1a\n", b"# {}\nt\n", b"\xff\xfe\x00"),
)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("content", NONSENSE)
def test_files_that_are_no_recordings(tmp_path, suffix, content):
    path = tmp_path / f"run.{suffix}"
    path.write_bytes(content)
    with pytest.raises(ParseError, match=f"run.{suffix}: .*not a recording of Linkwise"):
        lw.load_recording(path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_other_tables_of_the_same_format(tmp_path, suffix):
    path = tmp_path / f"run.{suffix}"
    if suffix == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.table({"t": [1.0]}), path)
    elif suffix == "csv":
        path.write_text("t,x\n1,2\n")
    elif suffix == "npz":
        np.savez(path, t=np.zeros(3))
    else:
        import h5py

        with h5py.File(path, "w") as file:
            file["t"] = np.zeros(3)
    with pytest.raises(ParseError, match="not a recording of Linkwise"):
        lw.load_recording(path)


@pytest.mark.parametrize("suffix", FORMATS)
@pytest.mark.parametrize("part", (0.3, 0.6, 0.95))
def test_files_that_were_cut_short(rec, tmp_path, suffix, part):
    path = tmp_path / f"run.{suffix}"
    rec.save(path)
    whole = path.read_bytes()
    path.write_bytes(whole[: int(part * len(whole))])
    with pytest.raises(ParseError, match=f"run.{suffix}"):
        lw.load_recording(path)


def test_files_that_were_edited(rec, tmp_path):
    path = tmp_path / "run.csv"
    rec.save(path)
    lines = path.read_text(encoding="utf-8").splitlines()

    def reading(*new):
        path.write_text("\n".join(new) + "\n", encoding="utf-8")
        return lw.load_recording(path)

    assert np.array_equal(reading(*lines).q, rec.q)
    with pytest.raises(ParseError, match="30 records were written, 29 are there"):
        reading(*lines[:-1])
    with pytest.raises(ParseError, match=r"run.csv:4: .*not a number"):
        reading(*lines[:3], re.sub(r"^[^,]*", "abc", lines[3]), *lines[4:])
    with pytest.raises(ParseError, match=r"run.csv:3: 1 numbers; the others have"):
        reading(*lines[:2], "1.0", *lines[3:])
    with pytest.raises(ParseError, match=r"the column 'energy.total' .* is missing"):
        reading(lines[0], lines[1].replace("energy.total [J]", "energy.sum [J]"), *lines[2:])
    newer = lines[0].replace('"format_version": 2', '"format_version": 3')
    with pytest.raises(ParseError, match=r"layout 3, .*use a newer one"):
        reading(newer, *lines[1:])
    header = json.loads(lines[0][2:])
    del header["notes"]
    with pytest.raises(ParseError, match="checksum does not fit"):
        reading("# " + json.dumps(header), *lines[1:])
    with pytest.raises(ParseError, match="header is incomplete"):
        lw.load_recording(path, verify=False)


def test_archives_with_pickles_are_not_opened(tmp_path):
    path = tmp_path / "run.npz"
    np.savez(path, linkwise=np.array([{"a": 1}], dtype=object))
    assert zipfile.is_zipfile(path)
    with pytest.raises(ParseError, match="the array 'linkwise' is object"):
        lw.load_recording(path)


def test_another_mechanism_is_refused_or_warned_of(rec, mech, tmp_path):
    path = tmp_path / "run.npz"
    rec.save(path)
    with pytest.raises(ModelError, match=r"recording of 'quadruped', .* not fit 'puma560': q has"):
        lw.load_recording(path, lw.models.puma560())
    heavier = mech.with_payload(mech.bodies[-1].name, lw.SpatialInertia.from_com(3.0, (0, 0, 0)))
    with pytest.warns(UserWarning, match="recorded with another 'quadruped'") as found:
        back = lw.load_recording(path, heavier)
    assert found[0].filename == __file__  # the line that asks
    assert np.array_equal(back["energy.total"], rec["energy.total"])


@pytest.mark.parametrize(("suffix", "package"), [("parquet", "pyarrow"), ("h5", "h5py")])
def test_a_missing_package_is_named_with_its_extra(rec, tmp_path, monkeypatch, suffix, package):
    path = tmp_path / f"run.{suffix}"
    rec.save(path)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*linkwise\[record\]"):
        lw.load_recording(path)
    with pytest.raises(MissingExtraError, match=rf"'{package}'.*linkwise\[record\]"):
        rec.save(path)
    assert path.stat().st_size > 0  # what was there is there still


def test_what_was_there_stays_when_writing_fails(rec, tmp_path, monkeypatch):
    path = tmp_path / "run.csv"
    rec.save(path)
    before = path.read_bytes()

    def fails(*_):
        raise OSError("no space left")

    monkeypatch.setattr("linkwise.simulation.files.csv.flat_columns", fails)
    with pytest.raises(OSError, match="no space"):
        rec.save(path)
    assert path.read_bytes() == before and len(list(tmp_path.iterdir())) == 1


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


@pytest.mark.parametrize("suffix", ("parquet", "h5", "csv", "npz"))
def test_names_of_any_letters_come_back(tmp_path, suffix):
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
    rec.save(tmp_path / f"run.{suffix}")
    back = lw.load_recording(tmp_path / f"run.{suffix}")
    assert list(back.channels) == list(rec.channels)
    for name, channel in rec.channels.items():
        found = back.channels[name]
        assert np.array_equal(found.values, channel.values)
        assert (found.units, found.labels, found.about) == (
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
