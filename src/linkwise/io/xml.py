"""XML model files as a tree of elements that know their file and line.

Expat, the parser of the standard library, reads the text; the elements keep file and line, so that
every later message can name them. Model files come from anywhere, so constructs that a robot
description never needs are refused: entity declarations, internal DTD subsets, external references,
deep nesting, and files of unreasonable size.
"""

from __future__ import annotations

import math
import os
import re
import stat
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from xml.parsers import expat

import numpy as np
from numpy.typing import NDArray

from linkwise.errors import MissingFileError, ParseError

MAX_BYTES: Final = 64 * 2**20
"""Largest file that is read [bytes]."""
MAX_DEPTH: Final = 2000
"""Deepest nesting of elements."""
MAX_ELEMENTS: Final = 500_000
"""Most elements in one file; reading them takes about a second."""
MAX_NUMBERS: Final = 4 * 2**20
"""Longest text that is read as a list of numbers [characters]."""

MAX_SIZE: Final = 1e50
"""Largest number accepted by default: products of three of them are finite."""

# float() also takes 'nan', 'inf', '1_0' and Arabic digits; these characters rule all of them out.
_DECIMAL = re.compile(r"[-+0-9.eE\s]*", re.ASCII)
_UNSET: Final[Any] = object()


@dataclass(slots=True)
class Element:
    """One XML element.

    Attributes:
        tag: Name as written, with its prefix if it has one (`drake:rotor_inertia`).
        attrib: Attributes as written.
        children: Child elements in file order.
        text: Character data directly inside the element, stripped.
        line: Line of the start tag, from 1.
        file: The file that contains the element, as named by the caller.
    """

    tag: str
    attrib: dict[str, str] = field(default_factory=lambda: {})
    children: list[Element] = field(default_factory=lambda: [])
    text: str = ""
    line: int = 0
    file: str = "<string>"

    def find(self, tag: str) -> Element | None:
        """First child called `tag`, or None."""
        for child in self.children:
            if child.tag == tag:
                return child
        return None

    def findall(self, tag: str) -> list[Element]:
        """Children called `tag`, in file order."""
        return [child for child in self.children if child.tag == tag]

    def walk(self) -> Iterator[Element]:
        """This element and all below it, in file order (without recursion)."""
        stack: list[Element] = [self]
        while stack:
            element = stack.pop()
            yield element
            stack.extend(reversed(element.children))

    def get(self, attr: str, default: str | None = None) -> str | None:
        """Attribute text as written, or `default`."""
        return self.attrib.get(attr, default)

    @property
    def label(self) -> str:
        """The start tag, shortened to what identifies it: `<joint name="elbow">`."""
        for key in ("name", "link", "joint", "class"):
            if key in self.attrib:
                return f'<{self.tag} {key}="{shorten(self.attrib[key])}">'
        return f"<{self.tag}>"

    def error(self, message: str) -> ParseError:
        """A ParseError about this element, to be raised by the caller."""
        return ParseError(f"{self.label}: {message}", file=self.file, line=self.line)


def shorten(text: str, limit: int = 60) -> str:
    """`text` on one line, cut to `limit` characters for use in a message."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else flat[: limit - 3] + "..."


def read_xml(path: str | os.PathLike[str]) -> Element:
    """Root element of an XML file.

    Args:
        path: A regular file of at most `MAX_BYTES`.

    Raises:
        ParseError: No such file, not a file, unreadable, too large, or not acceptable XML.
    """
    name = os.fspath(path)
    return parse_xml(read_bytes(path), file=str(name))


def read_bytes(path: str | os.PathLike[str], *, limit: int = MAX_BYTES) -> bytes:
    """Content of a regular file; raises ParseError with the reason if it cannot be read."""
    name = os.fspath(path)
    try:
        status = os.stat(name)  # before opening: opening a pipe would wait for its writer
        if stat.S_ISDIR(status.st_mode):
            raise ParseError("this is a directory; give the path of a model file", file=name)
        if not stat.S_ISREG(status.st_mode):
            raise ParseError("this is not a regular file; give the path of a file", file=name)
        if status.st_size > limit:
            raise ParseError(
                f"the file has {status.st_size} bytes; at most {limit} are read", file=name
            )
        with Path(name).open("rb") as stream:
            data = stream.read(min(limit, status.st_size) + 1)  # it reserves as much at once
    except ParseError:
        raise
    except FileNotFoundError:
        raise MissingFileError("there is no such file; check the path", file=name) from None
    except (OSError, ValueError) as problem:  # ValueError: a zero byte in the path
        reason = getattr(problem, "strerror", None) or str(problem)
        raise ParseError(f"the file cannot be read: {reason}", file=name) from None
    if len(data) > limit:
        raise ParseError(f"the file has more than {limit} bytes, the most that is read", file=name)
    return data


def parse_xml(source: str | bytes, file: str = "<string>") -> Element:
    """Root element of XML text.

    Args:
        source: Text, or bytes in the encoding their XML declaration names (UTF-8 without one).
        file: Name used in messages.

    Raises:
        ParseError: Not well-formed, a refused construct, or beyond the limits above.
    """
    encoding = None
    if isinstance(source, str):
        # A str has no encoding: a declaration inside the text is ignored.
        source, encoding = source.encode("utf-8", errors="surrogatepass"), "utf-8"
    if not source.strip():
        raise ParseError("the file is empty; a model file has one root element", file=file, line=1)
    return _TreeBuilder(file, encoding).parse(source)


class _TreeBuilder:
    """Collects expat's events into a tree and refuses what `parse_xml` refuses."""

    def __init__(self, file: str, encoding: str | None) -> None:
        self.file = file
        self.root: Element | None = None
        self.stack: list[Element] = []
        self.texts: list[list[str]] = []
        self.count = 0
        parser = expat.ParserCreate(encoding)
        parser.buffer_text = True
        parser.StartElementHandler = self.start
        parser.EndElementHandler = self.end
        parser.CharacterDataHandler = self.data
        parser.StartDoctypeDeclHandler = self.doctype
        parser.EntityDeclHandler = self.entity
        parser.ExternalEntityRefHandler = self.external
        self.parser = parser

    def parse(self, source: bytes) -> Element:
        try:
            self.parser.Parse(source, True)
        except expat.ExpatError as problem:
            raise ParseError(
                self.explain(problem, source), file=self.file, line=problem.lineno
            ) from None
        except (LookupError, ValueError) as problem:
            if isinstance(problem, ParseError):
                raise
            raise ParseError(  # an encoding that Python does not know, or that is multi-byte
                f"the encoding of this file cannot be used ({problem}); save it as UTF-8",
                file=self.file,
                line=1,
            ) from None
        if self.root is None:
            raise ParseError("no root element found", file=self.file, line=1)
        return self.root

    def explain(self, problem: expat.ExpatError, source: bytes) -> str:
        reason = expat.ErrorString(problem.code) or "unknown error"
        offset = max(self.parser.ErrorByteIndex, 0)
        bad = source[offset : offset + 1]
        message = f"this is not well-formed XML: {reason}, column {problem.offset + 1}"
        if bad >= b"\x80":
            message += f"; byte 0x{bad.hex()} does not fit the encoding: save the file as UTF-8"
        elif b"\x00" in source[:4096]:
            message += "; the file looks binary: give a text file in URDF or MJCF"
        return message

    def refuse(self, message: str) -> ParseError:
        return ParseError(message, file=self.file, line=self.parser.CurrentLineNumber)

    def start(self, tag: str, attrib: dict[str, str]) -> None:
        self.count += 1
        if self.count > MAX_ELEMENTS:
            raise self.refuse(f"the file has more than {MAX_ELEMENTS} elements, the most allowed")
        if len(self.stack) >= MAX_DEPTH:
            raise self.refuse(f"<{shorten(tag)}> is nested deeper than {MAX_DEPTH} levels")
        element = Element(tag, attrib, line=self.parser.CurrentLineNumber, file=self.file)
        if self.stack:
            self.stack[-1].children.append(element)
        else:
            self.root = element
        self.stack.append(element)
        self.texts.append([])

    def end(self, tag: str) -> None:
        del tag
        self.stack.pop().text = "".join(self.texts.pop()).strip()

    def data(self, text: str) -> None:
        self.texts[-1].append(text)

    def doctype(self, name: str, system: str | None, public: str | None, subset: bool) -> None:
        del name
        if subset:
            raise self.refuse("an internal DTD subset is refused; remove [...] from <!DOCTYPE>")
        if system is not None or public is not None:
            raise self.refuse("an external DTD is refused; remove the <!DOCTYPE> line")

    def entity(self, name: str, *_: object) -> None:
        raise self.refuse(f"the entity declaration '{shorten(name)}' is refused; write its text")

    def external(self, *_: object) -> bool:
        raise self.refuse("an external entity is refused; write its text in the file")


def required(element: Element, attr: str) -> str:
    """Attribute text, or a ParseError if it is missing or blank."""
    value = element.attrib.get(attr)
    if value is None:
        raise element.error(f"attribute '{attr}' is missing")
    if not value.strip():
        raise element.error(f"attribute '{attr}' is empty")
    return value


def choice(element: Element, attr: str, allowed: Sequence[str], default: str | None = None) -> str:
    """Attribute text that has to be one of `allowed`; `default` when absent, or required."""
    if default is not None and attr not in element.attrib:
        return default
    value = required(element, attr)
    if value not in allowed:
        raise element.error(
            f"attribute '{attr}' is '{shorten(value)}'; allowed are " + ", ".join(allowed)
        )
    return value


def numbers(
    element: Element,
    attr: str,
    count: int | tuple[int, int] | None = None,
    default: Sequence[float] | NDArray[np.float64] | float = _UNSET,
    *,
    largest: float = MAX_SIZE,
) -> NDArray[np.float64]:
    """Finite decimal numbers written in an attribute, separated by white space.

    Args:
        element: Where to look.
        attr: Attribute name.
        count: How many there have to be: a number, a (least, most) pair, or None for any.
        default: Used when the attribute is absent; without one it is required.
        largest: Largest size of a number.

    Returns:
        A new array of shape (n,).

    Raises:
        ParseError: Missing, not numbers, nan or infinite, or too few or too many of them.
    """
    text = element.attrib.get(attr)
    if text is None:
        if default is _UNSET:
            raise element.error(f"attribute '{attr}' is missing; it takes {_expected(count)}")
        return np.array(default, dtype=np.float64, ndmin=1)
    return np.array(parse_numbers(element, attr, text, count, largest), dtype=np.float64)


def number(
    element: Element, attr: str, default: float = _UNSET, *, largest: float = MAX_SIZE
) -> float:
    """One finite decimal number written in an attribute; see `numbers`."""
    text = element.attrib.get(attr)
    if text is None:
        if default is _UNSET:
            raise element.error(f"attribute '{attr}' is missing; it takes {_expected(1)}")
        return default
    return parse_numbers(element, attr, text, 1, largest)[0]


def parse_numbers(
    element: Element,
    where: str,
    text: str,
    count: int | tuple[int, int] | None = None,
    largest: float = MAX_SIZE,
) -> list[float]:
    """Finite decimal numbers in `text`, the content of `where` in `element`; see `numbers`."""
    if len(text) > MAX_NUMBERS:
        raise element.error(
            f"'{where}' has {len(text)} characters; at most {MAX_NUMBERS} are read as numbers"
        )
    words = text.split()
    least, most = count if isinstance(count, tuple) else (count, count)
    values: list[float] | None = None
    if _DECIMAL.fullmatch(text):
        try:
            values = [float(word) for word in words]
        except ValueError:
            values = None
    if values is None or not all(map(math.isfinite, values)):
        bad = next((word for word in words if not _is_decimal(word)), text)
        raise element.error(
            f"'{where}' is '{shorten(text)}', and '{shorten(bad)}' is not a "
            f"finite decimal number; it takes {_expected(count)}"
        )
    if (least is not None and len(values) < least) or (most is not None and len(values) > most):
        raise element.error(
            f"'{where}' is '{shorten(text)}', which has {len(values)} numbers; "
            f"it takes {_expected(count)}"
        )
    if values and not -largest <= min(values) <= max(values) <= largest:
        raise element.error(
            f"'{where}' is '{shorten(text)}'; numbers larger than {largest:g} are refused"
        )
    return values


def _is_decimal(word: str) -> bool:
    try:
        return _DECIMAL.fullmatch(word) is not None and math.isfinite(float(word))
    except ValueError:
        return False


def _expected(count: int | tuple[int, int] | None) -> str:
    if count is None:
        return "finite numbers"
    if count == 1:
        return "1 finite number"
    if isinstance(count, int):
        return f"{count} finite numbers"
    return f"{count[0]} to {count[1]} finite numbers"
