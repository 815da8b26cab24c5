"""LLVM's language, written as text while it is made: types, values, functions, a builder.

    module = Module()
    square = Function(module, FunctionType(DOUBLE, [DOUBLE]), "square")
    build = IRBuilder(square.append_basic_block("entry"))
    build.ret(build.fmul(square.args[0], square.args[0]))
    str(module)

Each instruction becomes one line at once, so that a kernel of 50,000 instructions costs little more
than its text. Pointers know what they point to, for loads and addresses; LLVM itself does not need
that and gets `ptr`. Nothing is checked here: LLVM verifies every module.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from typing import Any, Final

# ------------------------------------------------------------------------------------------ types


class Type:
    """A type; the same one is the same object.

    Attributes:
        text: As LLVM writes it.
    """

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text

    def as_pointer(self) -> PointerType:
        """The type of an address of such values."""
        return _pointer(self)


class IntType(Type):
    """An integer of `width` bits."""

    __slots__ = ("width",)

    def __init__(self, width: int) -> None:
        super().__init__(f"i{width}")
        self.width = width


class PointerType(Type):
    """The address of something."""

    __slots__ = ("pointee",)

    def __init__(self, pointee: Type) -> None:
        super().__init__("ptr")
        self.pointee = pointee


class VectorType(Type):
    """`count` numbers in a register."""

    __slots__ = ("count", "element")

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"<{count} x {element.text}>")
        self.element, self.count = element, count


class ArrayType(Type):
    """`count` contiguous values in memory."""

    __slots__ = ("count", "element")

    def __init__(self, element: Type, count: int) -> None:
        super().__init__(f"[{count} x {element.text}]")
        self.element, self.count = element, count


class FunctionType(Type):
    """What a function takes and returns."""

    __slots__ = ("arguments", "result")

    def __init__(self, result: Type, arguments: Sequence[Type]) -> None:
        super().__init__(f"{result.text} ({', '.join(a.text for a in arguments)})")
        self.result, self.arguments = result, tuple(arguments)


DOUBLE: Final = Type("double")
FLOAT: Final = Type("float")
VOID: Final = Type("void")
BIT: Final = IntType(1)
BYTE: Final = IntType(8)
INT32: Final = IntType(32)
INT: Final = IntType(64)


@cache
def _pointer(pointee: Type) -> PointerType:
    return PointerType(pointee)


@cache
def vector(element: Type, count: int) -> VectorType:
    """The type of `count` numbers in a register."""
    return VectorType(element, count)


# ----------------------------------------------------------------------------------------- values


class Value:
    """Something with a type: an argument, or the result of an instruction.

    Attributes:
        type: Its type.
        text: How instructions name it.
    """

    __slots__ = ("text", "type")

    def __init__(self, type: Type, text: str) -> None:
        self.type, self.text = type, text


class Constant(Value):
    """A number, the same in all lanes of a vector, or one for each lane.

    Attributes:
        constant: The number, or the numbers.
    """

    __slots__ = ("constant",)

    def __init__(self, type: Type, constant: float | Sequence[float] | None) -> None:
        super().__init__(type, _constant_text(type, constant))
        self.constant = constant


def undefined(type: Type) -> Value:
    """A value that may be anything."""
    return Value(type, "undef")


def _constant_text(type: Type, constant: float | Sequence[float] | None) -> str:
    if constant is None:
        return "null"
    if isinstance(constant, Sequence):
        assert isinstance(type, VectorType | ArrayType)
        element = type.element
        parts = [_number_text(element, x) for x in constant]
        inside = ", ".join(f"{element.text} {x}" for x in parts)
        return f"[{inside}]" if isinstance(type, ArrayType) else f"<{inside}>"
    if isinstance(type, VectorType):
        return f"splat ({type.element.text} {_number_text(type.element, constant)})"
    return _number_text(type, constant)


def _number_text(type: Type, value: float) -> str:
    """Integers as digits, other numbers by their bits as doubles, which also name floats."""
    if isinstance(type, IntType):
        return str(int(value))
    if type is FLOAT:
        (value,) = struct.unpack("f", struct.pack("f", value))
    return f"0x{struct.unpack('Q', struct.pack('d', value))[0]:016X}"


class Argument(Value):
    """An argument of a function."""

    __slots__ = ("attributes",)

    def __init__(self, type: Type, text: str) -> None:
        super().__init__(type, text)
        self.attributes = ""

    def add_attribute(self, word: str) -> None:
        """Such as `noalias`."""
        self.attributes += f" {word}"


class Phi(Value):
    """A value that depends on the block control came from."""

    __slots__ = ("incoming",)

    def __init__(self, type: Type, text: str) -> None:
        super().__init__(type, text)
        self.incoming = list[str]()

    def add_incoming(self, value: Value, block: Block) -> None:
        """It is `value` for control that comes from `block`."""
        self.incoming.append(f"[{value.text}, %{block.name}]")

    def __str__(self) -> str:
        return f"  {self.text} = phi {self.type.text} {', '.join(self.incoming)}"


class Switch:
    """A branch by an integer."""

    __slots__ = ("cases", "value")

    def __init__(self, value: Value, default: Block) -> None:
        self.value, self.cases = value, [f"label %{default.name} ["]

    def add_case(self, number: Constant, block: Block) -> None:
        """Go to `block` for this number."""
        self.cases.append(f"    {number.type.text} {number.text}, label %{block.name}")

    def __str__(self) -> str:
        cases = "\n".join(self.cases)
        return f"  switch {self.value.type.text} {self.value.text}, {cases}\n  ]"


# --------------------------------------------------------------------------- modules and functions


class Block:
    """Instructions without a branch between them."""

    __slots__ = ("function", "lines", "name")

    def __init__(self, function: Function, name: str) -> None:
        self.function, self.name = function, name
        self.lines = list[str | Phi | Switch]()


class Module:
    """Functions and global variables, by name."""

    def __init__(self) -> None:
        self.globals = dict[str, Function | GlobalVariable]()

    def unique_name(self, stem: str) -> str:
        """A name that no function or variable has yet."""
        name, number = stem, 0
        while name in self.globals:
            number += 1
            name = f"{stem}.{number}"
        return name

    def __str__(self) -> str:
        return "\n".join(str(x) for x in self.globals.values())


class GlobalVariable(Value):
    """A variable of the module; as a value it is its address."""

    __slots__ = ("initializer", "name")

    def __init__(self, module: Module, kind: Type, name: str, initializer: Constant) -> None:
        super().__init__(kind.as_pointer(), f"@{name}")
        self.name, self.initializer = name, initializer
        module.globals[name] = self

    def __str__(self) -> str:
        return f"{self.text} = global {self.initializer.type.text} {self.initializer.text}"


class Function(Value):
    """A function of the module; without blocks, one that is only declared.

    Attributes:
        module: Where it is.
        kind: What it takes and returns.
        args: Its arguments.
        blocks: Its body.
    """

    __slots__ = ("args", "attributes", "blocks", "kind", "linkage", "module", "names")

    def __init__(
        self,
        module: Module,
        kind: FunctionType,
        name: str,
        *,
        internal: bool = False,
        noinline: bool = False,
    ) -> None:
        super().__init__(kind.as_pointer(), f"@{name}")
        self.module, self.kind = module, kind
        self.linkage = "internal " if internal else ""
        self.attributes = " noinline" if noinline else ""
        self.args = [Argument(t, f"%a{i}") for i, t in enumerate(kind.arguments)]
        self.blocks = list[Block]()
        self.names = 0
        module.globals[name] = self

    def append_basic_block(self, name: str) -> Block:
        """A new block behind all others."""
        block = Block(self, f"{name}.{len(self.blocks)}")
        self.blocks.append(block)
        return block

    def __str__(self) -> str:
        result = self.kind.result.text
        if not self.blocks:
            taken = ", ".join(t.text for t in self.kind.arguments)
            return f"declare {result} {self.text}({taken})"
        taken = ", ".join(f"{a.type.text}{a.attributes} {a.text}" for a in self.args)
        lines = [f"define {self.linkage}{result} {self.text}({taken}){self.attributes}", "{"]
        for block in self.blocks:
            lines.append(f"{block.name}:")
            lines += [line if isinstance(line, str) else str(line) for line in block.lines]
        return "\n".join([*lines, "}"])


def declared(module: Module, name: str, kind: FunctionType) -> Function:
    """A function of another module, declared once."""
    known = module.globals.get(name)
    if known is None:
        return Function(module, kind, name)
    assert isinstance(known, Function)
    return known


# ---------------------------------------------------------------------------------------- builder

_SIGNS: Final = {"<": "lt", "<=": "le", ">": "gt", ">=": "ge", "==": "eq", "!=": "ne"}


def _binary(word: str) -> Callable[[IRBuilder, Value, Value], Value]:
    def build(self: IRBuilder, a: Value, b: Value) -> Value:
        return self.binary(word, a, b)

    return build


def _compared(word: str, kind: str) -> Callable[[IRBuilder, str, Value, Value], Value]:
    """A comparison of signed or unsigned integers, or ordered or unordered numbers."""
    prefix = {sign: f"{word} {kind}{x}" for sign, x in _SIGNS.items()}
    if word == "icmp":
        prefix |= {"==": "icmp eq", "!=": "icmp ne"}

    def build(self: IRBuilder, sign: str, a: Value, b: Value) -> Value:
        return self.compare(prefix[sign], a, b)

    return build


def _converted(word: str) -> Callable[[IRBuilder, Value, Type], Value]:
    def build(self: IRBuilder, a: Value, kind: Type) -> Value:
        return self.convert(word, a, kind)

    return build


class IRBuilder:
    """Writes instructions at the end of a block.

    Attributes:
        block: The block; another one after `if_then`.
    """

    __slots__ = ("block",)

    def __init__(self, block: Block) -> None:
        self.block = block

    @property
    def function(self) -> Function:
        """The function of the block."""
        return self.block.function

    @property
    def module(self) -> Module:
        """The module of the function."""
        return self.block.function.module

    def _put(self, type: Type, instruction: str) -> Value:
        function = self.block.function
        function.names = number = function.names + 1
        name = f"%v{number}"
        self.block.lines.append(f"  {name} = {instruction}")
        return Value(type, name)

    def _do(self, instruction: str) -> None:
        self.block.lines.append(f"  {instruction}")

    # ------------------------------------------------------------------------- arithmetic

    def binary(self, word: str, a: Value, b: Value) -> Value:
        """An instruction with two operands of one type, by its word."""
        return self._put(a.type, f"{word} {a.type.text} {a.text}, {b.text}")

    def fadd(self, a: Value, b: Value, flags: str = "") -> Value:
        """a + b of numbers."""
        return self.binary(f"fadd {flags}", a, b)

    def fmul(self, a: Value, b: Value, flags: str = "") -> Value:
        """a b of numbers."""
        return self.binary(f"fmul {flags}", a, b)

    def fneg(self, a: Value) -> Value:
        """-a of numbers."""
        return self._put(a.type, f"fneg {a.type.text} {a.text}")

    fsub, fdiv = _binary("fsub"), _binary("fdiv")  # of numbers
    add, sub, mul, sdiv = _binary("add"), _binary("sub"), _binary("mul"), _binary("sdiv")
    and_, or_ = _binary("and"), _binary("or")  # bit by bit

    # ------------------------------------------------------------------------ comparisons

    def compare(self, word: str, a: Value, b: Value) -> Value:
        """A comparison by its word."""
        kind = vector(BIT, a.type.count) if isinstance(a.type, VectorType) else BIT
        return self._put(kind, f"{word} {a.type.text} {a.text}, {b.text}")

    icmp_signed, icmp_unsigned = _compared("icmp", "s"), _compared("icmp", "u")  # of integers
    fcmp_ordered, fcmp_unordered = _compared("fcmp", "o"), _compared("fcmp", "u")  # NaN: no, yes

    def select(self, condition: Value, a: Value, b: Value) -> Value:
        """a where the condition holds, b elsewhere."""
        of = f"{condition.type.text} {condition.text}"
        return self._put(a.type, f"select {of}, {a.type.text} {a.text}, {b.type.text} {b.text}")

    # ------------------------------------------------------------------------ conversions

    def convert(self, word: str, a: Value, kind: Type) -> Value:
        """A conversion by its word."""
        return self._put(kind, f"{word} {a.type.text} {a.text} to {kind.text}")

    def bitcast(self, a: Value, kind: Type) -> Value:
        """The same bits as another type; of addresses, as that of another thing."""
        if isinstance(kind, PointerType):
            return Value(kind, a.text)
        return self.convert("bitcast", a, kind)

    fptosi, sitofp = _converted("fptosi"), _converted("sitofp")  # between numbers and integers
    sext, zext = _converted("sext"), _converted("zext")  # longer integers, with a sign or without
    inttoptr, ptrtoint = _converted("inttoptr"), _converted("ptrtoint")

    # ---------------------------------------------------------------------------- vectors

    def insert_element(self, a: Value, x: Value, lane: Value) -> Value:
        """A vector with one lane changed."""
        parts = (f"{y.type.text} {y.text}" for y in (a, x, lane))
        return self._put(a.type, f"insertelement {', '.join(parts)}")

    def extract_element(self, a: Value, lane: Value) -> Value:
        """One lane of a vector."""
        assert isinstance(a.type, VectorType)
        of = f"{a.type.text} {a.text}, {lane.type.text} {lane.text}"
        return self._put(a.type.element, f"extractelement {of}")

    def shuffle_vector(self, a: Value, b: Value, lanes: Value) -> Value:
        """Lanes of a (first numbers) and b (those behind), in any order and number."""
        assert isinstance(a.type, VectorType) and isinstance(lanes.type, VectorType)
        parts = (f"{y.type.text} {y.text}" for y in (a, b, lanes))
        kind = vector(a.type.element, lanes.type.count)
        return self._put(kind, f"shufflevector {', '.join(parts)}")

    # ----------------------------------------------------------------------------- memory

    def alloca(self, kind: Type, size: int = 1) -> Value:
        """Room for values on the stack."""
        return self._put(kind.as_pointer(), f"alloca {kind.text}, i64 {size}")

    def gep(self, address: Value, indices: Sequence[Value]) -> Value:
        """The address of an entry; a second index goes into an array."""
        assert isinstance(address.type, PointerType)
        kind = address.type.pointee
        at = ", ".join(f"{i.type.text} {i.text}" for i in indices)
        if len(indices) > 1:
            assert isinstance(kind, ArrayType)
            entry: Type = kind.element
        else:
            entry = kind
        return self._put(entry.as_pointer(), f"getelementptr {kind.text}, ptr {address.text}, {at}")

    def load(self, address: Value, align: int = 0, atomic: str = "") -> Value:
        """The value at an address."""
        assert isinstance(address.type, PointerType)
        kind = address.type.pointee
        aligned = f", align {align}" if align else ""
        word = "load atomic" if atomic else "load"
        order = f" {atomic}" if atomic else ""
        return self._put(kind, f"{word} {kind.text}, ptr {address.text}{order}{aligned}")

    def store(self, value: Value, address: Value, align: int = 0) -> None:
        """Put a value at an address."""
        aligned = f", align {align}" if align else ""
        self._do(f"store {value.type.text} {value.text}, ptr {address.text}{aligned}")

    # ---------------------------------------------------------------------------- control

    def phi(self, kind: Type) -> Phi:
        """A value that depends on where control came from; first in its block."""
        function = self.block.function
        function.names += 1
        phi = Phi(kind, f"%v{function.names}")
        self.block.lines.append(phi)
        return phi

    def branch(self, block: Block) -> None:
        """Go to a block."""
        self._do(f"br label %{block.name}")

    def cbranch(self, condition: Value, yes: Block, no: Block) -> None:
        """Go to one block or the other."""
        self._do(f"br i1 {condition.text}, label %{yes.name}, label %{no.name}")

    def switch(self, value: Value, default: Block) -> Switch:
        """Go to a block by a number."""
        switch = Switch(value, default)
        self.block.lines.append(switch)
        return switch

    @contextmanager
    def if_then(self, condition: Value) -> Generator[None]:
        """What is built inside runs only where the condition holds."""
        inside = self.function.append_basic_block("if")
        behind = self.function.append_basic_block("endif")
        self.cbranch(condition, inside, behind)
        self.block = inside
        yield
        self.branch(behind)
        self.block = behind

    def call(self, function: Value, arguments: Sequence[Value]) -> Value:
        """Call a function, or the code at an address."""
        assert isinstance(function.type, PointerType)
        kind = function.type.pointee
        assert isinstance(kind, FunctionType)
        given = ", ".join(f"{x.type.text} {x.text}" for x in arguments)
        call = f"call {kind.result.text} {function.text}({given})"
        if kind.result is VOID:
            self._do(call)
            return Value(VOID, "void")
        return self._put(kind.result, call)

    def ret(self, value: Value) -> None:
        """Return a value."""
        self._do(f"ret {value.type.text} {value.text}")

    def ret_void(self) -> None:
        """Return."""
        self._do("ret void")


@dataclass(frozen=True, slots=True)
class Unit:
    """A module of LLVM text, ready to be compiled."""

    text: str  # the text
    lanes: int  # states done together
    itemsize: int  # bytes of a number
    work: int  # numbers of scratch memory that a thread needs
    # arrays that the module reads, by the names of the pointers to them
    tables: tuple[tuple[str, Any], ...] = ()
