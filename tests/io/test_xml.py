"""The XML layer: what is read, what is refused, and with which words."""

from __future__ import annotations

import os

import numpy as np
import pytest

from linkwise.errors import ModelError, ParseError
from linkwise.io import xml
from linkwise.io.xml import Element, choice, number, numbers, parse_xml, read_xml, required
from linkwise.io.xml_write import digits, make, row, xml_text
from tests.effort import at_most


def message(source: str | bytes) -> str:
    with pytest.raises(ParseError) as caught:
        parse_xml(source, "robot.urdf")
    return str(caught.value)


def test_elements_know_their_line_and_file():
    root = parse_xml("<?xml version='1.0'?>\n<a x='1'>\n  <b/>hello <c\n y='2'/>\n</a>", "f.urdf")
    assert (root.tag, root.attrib, root.line, root.file) == ("a", {"x": "1"}, 2, "f.urdf")
    assert [(c.tag, c.line) for c in root.children] == [("b", 3), ("c", 3)]
    assert root.text == "hello"
    assert root.find("c") is root.children[1]
    assert root.find("d") is None
    assert [e.tag for e in root.walk()] == ["a", "b", "c"]


def test_prefixes_need_no_declaration():
    assert parse_xml("<a><drake:b value='1'/></a>").children[0].tag == "drake:b"


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "latin-1", "cp1252"])
def test_declared_encodings(encoding: str):
    declared = "utf-8" if encoding == "utf-8-sig" else encoding
    text = f'<?xml version="1.0" encoding="{declared}"?><a name="é"/>'
    assert parse_xml(text.encode(encoding)).attrib == {"name": "é"}


def test_text_ignores_the_encoding_it_declares():
    assert parse_xml('<?xml version="1.0" encoding="latin-1"?><a name="é"/>').attrib["name"] == "é"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("", "robot.urdf:1: the file is empty; a model file has one root element"),
        (b" \n\t ", "robot.urdf:1: the file is empty; a model file has one root element"),
        (
            "<a>\n<b></a>",
            "robot.urdf:2: this is not well-formed XML: mismatched tag, column 6",
        ),
        (
            b"<a>\n caf\xe9</a>",
            "robot.urdf:2: this is not well-formed XML: not well-formed (invalid token), column 5; "
            "byte 0xe9 does not fit the encoding: save the file as UTF-8",
        ),
        (
            b"\x7fELF\x02\x01\x00\x00",
            "robot.urdf:1: this is not well-formed XML: not well-formed (invalid token), column 1; "
            "the file looks binary: give a text file in URDF or MJCF",
        ),
        (
            '<!DOCTYPE r [\n<!ENTITY a "ha">\n]><r>&a;</r>',
            "robot.urdf:1: an internal DTD subset is refused; remove [...] from <!DOCTYPE>",
        ),
        (
            '<!DOCTYPE r SYSTEM "file:///etc/passwd"><r/>',
            "robot.urdf:1: an external DTD is refused; remove the <!DOCTYPE> line",
        ),
        (
            "<r>\n&unknown;</r>",
            "robot.urdf:2: this is not well-formed XML: undefined entity, column 1",
        ),
        (
            b'<?xml version="1.0" encoding="shift_jis"?><r/>',
            "robot.urdf:1: the encoding of this file cannot be used (multi-byte encodings are not "
            "supported); save it as UTF-8",
        ),
        (
            b'<?xml version="1.0" encoding="klingon"?><r/>',
            "robot.urdf:1: the encoding of this file cannot be used (unknown encoding: klingon); "
            "save it as UTF-8",
        ),
        ("<a>" * 3000, "robot.urdf:1: <a> is nested deeper than 2000 levels"),
        ("<a/><b/>", "robot.urdf:1: this is not well-formed XML: junk after document element"),
    ],
)
def test_refused(source: str | bytes, expected: str):
    assert message(source).startswith(expected)


def test_entity_bomb_is_refused_before_it_grows():
    rows = "".join(f'<!ENTITY l{i} "{f"&l{i - 1};" * 10}">' for i in range(1, 20))
    bomb = f'<!DOCTYPE r [<!ENTITY l0 "lol">{rows}]><r>&l19;</r>'
    with at_most(1e3):
        assert "internal DTD subset is refused" in message(bomb)


def test_plain_doctype_is_harmless():
    assert parse_xml("<!DOCTYPE robot><robot/>").tag == "robot"


def test_too_many_elements(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(xml, "MAX_ELEMENTS", 100)
    assert parse_xml("<r>" + "<a/>" * 99 + "</r>").tag == "r"
    assert "more than 100 elements" in message("<r>" + "<a/>" * 100 + "</r>")


def test_files_that_cannot_be_read(tmp_path: os.PathLike[str], monkeypatch: pytest.MonkeyPatch):
    def says(path: object) -> str:
        with pytest.raises(ParseError) as caught:
            read_xml(path)  # pyright: ignore[reportArgumentType]
        return caught.value.reason

    assert says(tmp_path) == "this is a directory; give the path of a model file"
    assert says(f"{tmp_path}/none.urdf") == "there is no such file; check the path"
    reason = says("a\0b")  # Python words the rest, and has changed it
    assert reason.startswith("the file cannot be read: ") and "embedded null" in reason
    os.mkfifo(f"{tmp_path}/pipe")
    assert says(f"{tmp_path}/pipe") == "this is not a regular file; give the path of a file"
    with open(f"{tmp_path}/large.urdf", "wb") as file:
        file.truncate(xml.MAX_BYTES + 1)  # sparse
    assert says(f"{tmp_path}/large.urdf").startswith(f"the file has {xml.MAX_BYTES + 1} bytes")


@pytest.mark.parametrize("text", ["1 2 3", " 1\t2\n3 ", "+1 .2e1 3.", "1e0 20E-1 3"])
def test_numbers(text: str):
    result = numbers(Element("a", {"xyz": text}), "xyz", 3)
    assert result.dtype == np.float64
    assert result.tolist() == [1.0, 2.0, 3.0]


@pytest.mark.parametrize(
    ("text", "bad"),
    [
        ("1 nan 3", "nan"),
        ("1 2 -inf", "-inf"),
        ("1 2 infinity", "infinity"),
        ("1_0 2 3", "1_0"),
        ("0x10 2 3", "0x10"),
        ("1 2 1e999", "1e999"),
        ("1 2 ${pi}", "${pi}"),
        ("1,5 2 3", "1,5"),
        ("1 2 ١", "١"),
        ("1 2 3e", "3e"),
        ("1 2 --3", "--3"),
    ],
)
def test_numbers_that_are_none(text: str, bad: str):
    element = Element("origin", {"xyz": text}, line=7, file="f.urdf")
    with pytest.raises(ParseError) as caught:
        numbers(element, "xyz", 3)
    assert str(caught.value) == (
        f"f.urdf:7: <origin>: 'xyz' is '{text}', and '{bad}' is not a finite decimal number; "
        "it takes 3 finite numbers"
    )


def test_wrong_count_and_missing():
    element = Element("origin", {"xyz": "1 2"}, line=7, file="f.urdf")
    with pytest.raises(ParseError, match="which has 2 numbers; it takes 3 finite numbers"):
        numbers(element, "xyz", 3)
    with pytest.raises(ParseError, match="'rpy' is missing; it takes 1 to 3 finite numbers"):
        numbers(element, "rpy", (1, 3))
    assert numbers(element, "rpy", 3, (0, 0, 1)).tolist() == [0.0, 0.0, 1.0]
    assert numbers(element, "xyz").tolist() == [1.0, 2.0]
    with pytest.raises(ParseError, match="which has 2 numbers; it takes 1 finite number"):
        number(element, "xyz")
    assert number(element, "none", 4.0) == 4.0


def test_long_lists_of_numbers_are_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(xml, "MAX_NUMBERS", 10)
    with pytest.raises(ParseError, match="has 11 characters; at most 10 are read as numbers"):
        numbers(Element("a", {"x": "1 2 3 4 5 6"}), "x")


def test_required_and_choice():
    element = Element("joint", {"name": "j", "type": "ball", "blank": " "}, line=3, file="f")
    assert required(element, "name") == "j"
    with pytest.raises(ParseError, match="f:3: <joint name=\"j\">: attribute 'blank' is empty"):
        required(element, "blank")
    with pytest.raises(ParseError, match="attribute 'type' is 'ball'; allowed are pin, fixed"):
        choice(element, "type", ("pin", "fixed"))
    assert choice(element, "other", ("pin", "fixed"), "pin") == "pin"


@pytest.mark.parametrize(
    "value", [0.1, 1e-300, -2.0, 1 / 3, 5e-324, 1.7976931348623157e308, 123456789.125, 1e22, -0.0]
)
def test_digits_read_back_the_same(value: float):
    assert number(Element("a", {"x": digits(value)}), "x", largest=np.inf) == value


def test_digits_refuse_infinity():
    with pytest.raises(ModelError, match="cannot hold the number inf"):
        digits(np.inf)


def test_written_text_reads_back():
    names = ['a "b" <c> & d', "tab\tline\nreturn\r", "Ünïcode ☃", "]]>"]
    root = make("r", {}, *(make("e", {"name": name, "xyz": row((1, 0.1))}) for name in names))
    root.children.append(Element("t", text="<&>"))
    back = parse_xml(xml_text(root, comment="a -- b"))
    assert [e.attrib.get("name") for e in back.children[:-1]] == names
    assert back.children[-1].text == "<&>"


def test_names_that_xml_cannot_hold():
    with pytest.raises(ModelError, match="which XML cannot hold; rename it"):
        xml_text(make("r", {"name": "a\x00b"}))
