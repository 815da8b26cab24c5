"""Recordings that were damaged or edited: the right numbers, or an error that names the file."""

from __future__ import annotations

import io
import json
import tracemalloc
import warnings
import zipfile

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ParseError
from linkwise.simulation.files import content
from tests.fuzz import recordings

FORMATS = ("csv", "npz", "parquet", "h5")


@pytest.fixture(autouse=True)
def _packages():
    pytest.importorskip("pyarrow")
    pytest.importorskip("h5py")


def outcomes(first, count, folder):
    """How cases of the fuzzer end; each must be allowed."""
    found = list[str]()
    for number in range(first, first + count):
        try:
            found.append(recordings.use(number, folder))
        except ParseError as error:
            assert f"{folder}/case." in str(error) and error.reason
            found.append("refused")
    return found


def test_damaged_files_are_refused_or_as_saved(tmp_path):
    found = outcomes(0, 150, tmp_path)
    assert found.count("refused") > 100 and "as saved" in found


@pytest.mark.slow
@pytest.mark.parametrize("first", range(1000, 3000, 500))
def test_many_damaged_files(tmp_path, first):
    assert len(outcomes(first, 500, tmp_path)) == 500


@pytest.mark.parametrize("suffix", FORMATS)
def test_every_flipped_number_is_noticed(tmp_path, suffix):
    """A bit of a number that is stored as it is: no library would notice by itself."""
    rec = recordings.recording()
    path = tmp_path / f"run.{suffix}"
    rec.save(path)
    data = path.read_bytes()
    needle = rec.t[5:6].tobytes() if suffix in ("h5", "parquet") else repr(float(rec.t[5])).encode()
    if suffix == "npz":
        needle = data[data.index(b"t.npy") + 5 :][60:64]
    at = data.index(needle)
    path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
    with pytest.raises(ParseError, match=rf"run\.{suffix}"):
        lw.load_recording(path)


def test_a_table_that_was_edited_on_purpose(tmp_path):
    rec = recordings.recording()
    path = tmp_path / "run.csv"
    rec.save(path)
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace(repr(float(rec.q[3, 1])), "0.5"), encoding="utf-8")
    with pytest.raises(ParseError, match=r"damaged or edited .*verify=False\) reads it as it is"):
        lw.load_recording(path)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        back = lw.load_recording(path, verify=False)
    assert back.q[3, 1] == 0.5 != rec.q[3, 1]
    assert np.array_equal(back.v, rec.v)
    back.save(path)  # with a checksum of its own
    assert lw.load_recording(path).q[3, 1] == 0.5


def header_of(path):
    lines = path.read_text(encoding="utf-8").splitlines()
    return json.loads(lines[0][2:]), lines[1:]


def test_files_of_the_first_layout_are_read_with_a_warning(tmp_path):
    rec = recordings.recording()
    path = tmp_path / "run.csv"
    rec.save(path)
    header, rows = header_of(path)
    assert header["format_version"] == 2 and header["checksum"].startswith("sha256:")
    del header["checksum"]
    path.write_text("\n".join(["# " + json.dumps(header), *rows]) + "\n", encoding="utf-8")
    with pytest.raises(ParseError, match="damaged or edited"):  # of this layout all have one
        lw.load_recording(path)
    header["format_version"] = 1
    path.write_text("\n".join(["# " + json.dumps(header), *rows]) + "\n", encoding="utf-8")
    with pytest.warns(UserWarning, match=r"'run.csv' has no checksum") as found:
        back = lw.load_recording(path)
    assert found[0].filename == __file__  # the line that asks
    assert np.array_equal(back.q, rec.q)


@pytest.mark.parametrize("suffix", FORMATS)
def test_the_checksum_covers_names_units_and_notes(tmp_path, suffix):
    rec = recordings.recording()
    whole = content.content_of(rec)
    assert content.checksum(whole) == whole.header["checksum"]
    for key, value in (("steps", 7), ("integrator", "rk5"), ("events", []), ("stopped", "x")):
        other = content.Content({**whole.header, key: value}, whole.t, whole.arrays)
        assert content.checksum(other) != whole.header["checksum"]
    for key, value in (("unit", "mm"), ("about", "?"), ("name", "Q")):
        first = whole.header["channels"][0]
        changed = [{**first, key: value}, *whole.header["channels"][1:]]
        arrays = {**whole.arrays, changed[0]["name"]: whole.arrays["q"]}
        other = content.Content({**whole.header, "channels": changed}, whole.t, arrays)
        assert content.checksum(other) != whole.header["checksum"]
    path = tmp_path / f"run.{suffix}"
    rec.save(path)
    assert lw.load_recording(path, rec.mech).report.notes.not_modelled[0] == "wind"


def test_nan_of_any_sign_comes_back(tmp_path):
    rec = recordings.recording()
    odd = rec.with_channel("odd [m]", np.copysign(np.nan, -1.0) * np.ones(len(rec)))
    for suffix in FORMATS:
        odd.save(tmp_path / f"run.{suffix}")
        assert np.isnan(lw.load_recording(tmp_path / f"run.{suffix}")["odd"]).all()


def test_headers_of_any_length(tmp_path):
    """HDF5 of old has no attributes beyond 64 kB."""
    rec = recordings.recording()
    long = rec.with_channel("many", np.zeros((len(rec), 6000)))
    for suffix in FORMATS:
        long.save(tmp_path / f"run.{suffix}")
        assert len(lw.load_recording(tmp_path / f"run.{suffix}").channels["many"].labels) == 6000


# ------------------------------------------------------------------------------------------ size


def bomb(suffix, path, records=4_000_000, columns=70):
    """A small file that tells of 6.8 GB."""
    header = dict(content.content_of(recordings.recording()).header)
    labels = [str(i) for i in range(columns)]
    one = {"unit": "", "about": "", "labels": labels}
    header["channels"] = [{"name": name, **one} for name in ("q", "v", "tau")]
    header["records"] = records
    text = content.as_text(header)
    if suffix == "csv":
        path.write_text(f"# {text}\nt [s]\n0.0\n", encoding="utf-8")
    elif suffix == "npz":
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            head = io.BytesIO()
            np.lib.format.write_array(head, np.array(text))
            archive.writestr("linkwise.npy", head.getvalue())
            for name, shape in (("t", f"({records},)"), ("channel/q", f"({records}, {columns})")):
                with archive.open(f"{name}.npy", "w") as member:
                    form = {"descr": "<f8", "fortran_order": False, "shape": eval(shape)}
                    np.lib.format.write_array_header_1_0(member, form)
                    for _ in range(32):
                        member.write(bytes(1 << 20))
    elif suffix == "h5":
        import h5py

        with h5py.File(path, "w") as file:
            file.attrs["linkwise"] = np.bytes_(text.encode())
            file.create_dataset("t", (records,), "f8", chunks=True, compression="gzip")
            for name in ("q", "v", "tau"):
                file.create_dataset(f"channels/{name}", (records, columns), "f8", chunks=True)
    else:
        import pyarrow
        import pyarrow.parquet

        schema = pyarrow.schema([pyarrow.field("t", pyarrow.float64())], {b"linkwise": text})
        table = pyarrow.Table.from_arrays([pyarrow.array(np.zeros(1))], schema=schema)
        pyarrow.parquet.write_table(table, path)


@pytest.mark.parametrize("suffix", FORMATS)
def test_small_files_do_not_become_large(tmp_path, suffix):
    path = tmp_path / f"run.{suffix}"
    bomb(suffix, path)
    assert path.stat().st_size < 1 << 20
    tracemalloc.start()
    try:
        with pytest.raises(
            ParseError, match=r"6752 MB of numbers in a file of .*allowed are 268 MB"
        ):
            lw.load_recording(path, verify=False)
        assert tracemalloc.get_traced_memory()[1] < 20 << 20
    finally:
        tracemalloc.stop()


def test_members_longer_than_the_header_says(tmp_path):
    path = tmp_path / "run.npz"
    recordings.recording().save(path)
    with zipfile.ZipFile(path) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for name in ("t.npy", "channel/q.npy"):
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
            for other, data in members.items():
                archive.writestr(other, data + bytes(40 << 20) if other == name else data)
        tracemalloc.start()
        try:
            with pytest.raises(ParseError, match="longer than its header says"):
                lw.load_recording(path)
            assert tracemalloc.get_traced_memory()[1] < 20 << 20
        finally:
            tracemalloc.stop()


@pytest.mark.few(1)
@pytest.mark.parametrize("suffix", FORMATS)
def test_whatever_is_saved_can_be_read(tmp_path, suffix, monkeypatch):
    """A motion at rest packs to next to nothing: then it is not packed."""
    monkeypatch.setattr(content, "LARGEST_PACKED", 1000)
    rec = recordings.recording()
    still = rec.with_channel("still", np.zeros((len(rec), 20_000)))
    still.save(tmp_path / f"run.{suffix}")
    assert np.array_equal(lw.load_recording(tmp_path / f"run.{suffix}")["still"], still["still"])


# ------------------------------------------------------------------------------------ odd files


def test_numbers_in_other_files_are_not_read(tmp_path):
    h5py = pytest.importorskip("h5py")
    rec = recordings.recording()
    path, far = tmp_path / "run.h5", tmp_path / "far.h5"
    rec.save(far)
    for how in ("soft", "external", "raw"):
        rec.save(path)
        with h5py.File(path, "a") as file:
            del file["channels/q"]
            if how == "soft":
                file["channels/q"] = h5py.SoftLink("/channels/v")
            elif how == "external":
                file["channels/q"] = h5py.ExternalLink(str(far), "/channels/q")
            else:
                file["channels"].create_dataset(
                    "q", rec.q.shape, "f8", external=[(str(far), 0, h5py.h5f.UNLIMITED)]
                )
        with pytest.raises(ParseError, match=r"another file"):
            lw.load_recording(path)


def test_files_that_cannot_be_opened(tmp_path, monkeypatch):
    path = tmp_path / "run.csv"
    recordings.recording().save(path)

    def refused(*_, **__):
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(type(path), "open", refused)
    with pytest.raises(ParseError, match=r"run.csv: .*Permission denied"):
        lw.load_recording(path)
    for name in ("nul\0l.csv", f"{'x' * 300}.npz"):
        with pytest.raises(ParseError):
            lw.load_recording(tmp_path / name)
