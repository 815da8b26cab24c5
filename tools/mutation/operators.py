"""Small mistakes that a source file could contain: one change of the text for each place.

A mistake is found in the syntax tree and made in the text, so that nothing else of the file
changes. Docstrings, annotations, decorators, messages of errors and formatted text are left alone.
"""

from __future__ import annotations

import ast
import hashlib
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass

FLIPS: dict[type[ast.cmpop], tuple[str, str]] = {
    ast.Lt: ("<", ">="),
    ast.LtE: ("<=", ">"),
    ast.Gt: (">", "<="),
    ast.GtE: (">=", "<"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
}
OTHERS: dict[type[ast.operator], tuple[str, str, str]] = {
    ast.Add: ("+", "-", "sign"),
    ast.Sub: ("-", "+", "sign"),
    ast.Mult: ("*", "/", "factor"),
    ast.Div: ("/", "*", "factor"),
}
ENTERED = "LINKWISE_MUTANT_ENTERED"
"""A variable of the environment that a mutant sets."""

SILENT = {"__repr__", "__str__", "__hash__", "_repr_latex_", "_repr_html_", "__format__"}
"""Functions that only print: no mistakes are made there."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One small mistake.

    Attributes:
        file: Below src/linkwise.
        scope: The function it is in, as Python names it; "" for the module itself.
        kind: Of mistake.
        before: The text that is replaced.
        after: What stands there instead.
        count: Which one of the places with the same five, from 1.
        line: Where it is, from 1.
        span: Where the text starts and ends, in characters.
        scope_hash: Of the text of its function: a result is of this text.
    """

    file: str
    scope: str
    kind: str
    before: str
    after: str
    count: int
    line: int
    span: tuple[int, int]
    scope_hash: str

    @property
    def key(self) -> str:
        """What it is, however its neighbours change."""
        parts = (self.file, self.scope, self.kind, self.before, self.after, str(self.count))
        return digest("\0".join(parts))

    def applied(self, text: str) -> str:
        """The text of the file with this mistake."""
        start, end = self.span
        if text[start:end] != self.before:
            raise ValueError(f"{self.file}:{self.line} does not contain {self.before!r}.")
        return text[:start] + self.after + text[end:]

    def marked(self, text: str) -> str:
        """The same, with a line that tells in the environment that the function was entered."""
        lines = self.applied(text).splitlines(keepends=True)
        body = _body(ast.parse(text), self.scope.replace("<locals>.", "").split("."))
        first = body[1] if len(body) > 1 and _is_text(body[0]) else body[0]
        mark = f'__import__("os").environ["{ENTERED}"] = "1"\n'
        place = min([first.lineno, *(x.lineno for x in getattr(first, "decorator_list", []))])
        changed = [*lines[: place - 1], " " * first.col_offset + mark, *lines[place - 1 :]]
        result = "".join(changed)
        try:
            ast.parse(result)
        except SyntaxError:  # a body on the line of its `def`
            return self.applied(text)
        return result


def _body(module: ast.Module, scope: list[str]) -> list[ast.stmt]:
    body = module.body
    for name in (x for x in scope if x):
        for node in (n for one in body for n in ast.walk(one)):
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name == name:
                body = node.body
                break
    if scope == [""]:  # the module: after its docstring and imports from the future
        rest = [x for x in body if not (isinstance(x, ast.ImportFrom) and x.module == "__future__")]
        return [x for x in rest if not _is_text(x)] or rest
    return body


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def digest(text: str) -> str:
    """A short name of a text."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


class _Reader(ast.NodeVisitor):
    """Collects the mistakes of a file."""

    def __init__(self, file: str, text: str) -> None:
        self.file, self.text = file, text
        self.mutants: list[Mutant] = []
        self.counts = Counter[tuple[str, ...]]()
        self.scope: list[str] = []
        self.bodies: list[str] = []
        self.module = digest(text)
        self.starts = [0]
        for line in text.splitlines(keepends=True):
            self.starts.append(self.starts[-1] + len(line))
        self.lines = text.splitlines(keepends=True)

    # ------------------------------------------------------------------------------------- places

    def at(self, line: int, column: int) -> int:
        """The character at a line (from 1) and a column (in bytes)."""
        text = self.lines[line - 1]
        return self.starts[line - 1] + (
            column if text.isascii() else len(text.encode()[:column].decode())
        )

    def ends(self, node: ast.AST) -> tuple[int, int]:
        """Where a node starts and ends."""
        return (
            self.at(node.lineno, node.col_offset),  # type: ignore[attr-defined]
            self.at(node.end_lineno, node.end_col_offset),  # type: ignore[attr-defined]
        )

    def source(self, node: ast.AST) -> str:
        """The text of a node."""
        start, end = self.ends(node)
        return self.text[start:end]

    def add(self, kind: str, start: int, end: int, after: str) -> None:
        """Notes a mistake."""
        before, scope = self.text[start:end], ".".join(self.scope)
        name = (self.file, scope, kind, before, after)
        self.counts[name] += 1
        line, body = (
            bisect_right(self.starts, start),
            self.bodies[-1] if self.bodies else self.module,
        )
        self.mutants.append(Mutant(*name, self.counts[name], line, (start, end), body))

    def token(self, left: ast.AST, right: ast.AST, sign: str) -> tuple[int, int] | None:
        """Where the sign between two operands is."""
        start, end = self.ends(left)[1], self.ends(right)[0]
        between = re.sub(r"#[^\n]*", lambda m: " " * len(m[0]), self.text[start:end])
        pattern = rf"\b{sign.replace(' ', '[ ]+')}\b" if sign[0].isalpha() else re.escape(sign)
        match = re.search(pattern, between)
        return (start + match.start(), start + match.end()) if match else None

    # ------------------------------------------------------------------------------ what is entered

    def visit_FunctionDef(self, node: ast.FunctionDef) -> None:
        if node.name in SILENT:
            return
        if self.scope and self.bodies and not self.scope[-1].endswith("<locals>"):
            self.scope.append("<locals>")
            self.function(node)
            self.scope.pop()
        else:
            self.function(node)

    def function(self, node: ast.FunctionDef) -> None:
        self.scope.append(node.name)
        outermost = not self.bodies
        self.bodies.append(digest(self.source(node)) if outermost else self.bodies[-1])
        for default in [*node.args.defaults, *node.args.kw_defaults]:
            if default is not None:
                self.visit(default)
        for statement in node.body:
            self.visit(statement)
        self.bodies.pop()
        self.scope.pop()

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.scope.append(node.name)
        for statement in node.body:
            self.visit(statement)
        self.scope.pop()

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)

    def visit_JoinedStr(self, node: ast.JoinedStr) -> None:
        """Formatted text is for people."""

    def visit_Raise(self, node: ast.Raise) -> None:
        """The message of an error is for people; that it is raised is tried by `visit_If`."""

    def visit_Assert(self, node: ast.Assert) -> None:
        """For the type checker."""

    # ------------------------------------------------------------------------------ the mistakes

    def visit_BinOp(self, node: ast.BinOp) -> None:
        words = (ast.JoinedStr, ast.List, ast.Tuple, ast.ListComp)
        of_text = any(
            isinstance(x, words) or (isinstance(x, ast.Constant) and isinstance(x.value, str))
            for x in (node.left, node.right)
        )
        if of_text:
            self.generic_visit(node)
            return
        start, end = self.ends(node)
        if type(node.op) in OTHERS:
            sign, other, kind = OTHERS[type(node.op)]
            place = self.token(node.left, node.right, sign)
            if place:
                self.add(kind, *place, other)
                dropped = "dropped term" if kind == "sign" else "dropped factor"
                self.add(dropped, start, end, self.text[start : place[0]].rstrip())
        if isinstance(node.op, ast.MatMult):
            left, right = self.source(node.left), self.source(node.right)
            place = self.token(node.left, node.right, "@")
            if place and not left.endswith((".T", ".inv")):
                x, y = self.text[start : place[0]].rstrip(), self.text[place[1] : end].lstrip()
                self.add("transpose", start, end, f"({x}).T @ {y}")
            if place and isinstance(node.right, ast.Name | ast.Attribute | ast.Subscript):
                x, y = self.text[start : place[0]].rstrip(), right
                self.add("dropped factor", start, end, x)
        self.generic_visit(node)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.op, ast.Add | ast.Sub) and not isinstance(node.value, ast.List):
            sign = "+=" if isinstance(node.op, ast.Add) else "-="
            place = self.token(node.target, node.value, sign)
            if place:
                self.add("sign", *place, "-=" if sign == "+=" else "+=")
        self.generic_visit(node)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> None:
        start, end = self.ends(node)
        inner = self.text[start:end]
        if isinstance(node.op, ast.USub):
            self.add("sign", start, end, inner[1:].lstrip())
        elif isinstance(node.op, ast.Not):
            self.add("comparison", start, end, inner[3:].lstrip())
        self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> None:
        if len(node.ops) == 1 and type(node.ops[0]) in FLIPS:
            sign, other = FLIPS[type(node.ops[0])]
            place = self.token(node.left, node.comparators[0], sign)
            if place:
                self.add("comparison", *place, other)
        self.generic_visit(node)

    def visit_BoolOp(self, node: ast.BoolOp) -> None:
        if len(node.values) == 2:
            sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
            place = self.token(*node.values, sign)
            if place:
                self.add("logic", *place, other)
        self.generic_visit(node)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        if node.attr == "T":
            start, end = self.ends(node)
            self.add("transpose", start, end, self.text[start : end - 2].rstrip())
        self.generic_visit(node)

    def visit_Subscript(self, node: ast.Subscript) -> None:
        name = self.source(node.value).rsplit(".", 1)[-1]
        start, end = self.ends(node)
        if name in ("parent", "parents") and not isinstance(node.slice, ast.Slice):
            self.add("parent", start, end, self.source(node.slice))
        if self.source(node).endswith("[::-1]"):
            self.add("order", start, end, self.source(node.value))
        else:
            self.number(node.slice)
        self.generic_visit(node)

    def number(self, index: ast.AST) -> None:
        """Whole numbers of an index: one more."""
        inner = [index]
        if isinstance(index, ast.Slice):
            inner = [x for x in (index.lower, index.upper) if x is not None]
        elif isinstance(index, ast.Tuple):
            for x in index.elts:
                self.number(x)
            return
        for x in inner:
            if isinstance(x, ast.Constant) and type(x.value) is int:
                self.add("off by one", *self.ends(x), str(x.value + 1))

    def visit_Call(self, node: ast.Call) -> None:
        name = self.source(node.func).rsplit(".", 1)[-1]
        start, end = self.ends(node)
        plain = not node.keywords and not any(isinstance(x, ast.Starred) for x in node.args)
        if "cross" in name and plain and len(node.args) == 2:
            a, b = (self.ends(x) for x in node.args)
            swapped = self.text[b[0] : b[1]] + self.text[a[1] : b[0]] + self.text[a[0] : a[1]]
            self.add("swapped cross product", a[0], b[1], swapped)
        if name in ("parent", "reversed") and plain and len(node.args) == 1:
            kind = "parent" if name == "parent" else "order"
            self.add(kind, start, end, self.source(node.args[0]))
        if name == "range" and plain and len(node.args) <= 2:
            a, b = self.ends(node.args[-1])
            self.add("off by one", a, b, f"{self.text[a:b]} - 1")
        self.generic_visit(node)

    def visit_If(self, node: ast.If) -> None:
        start, end = self.ends(node.test)
        if self.text[start:end] == "TYPE_CHECKING":
            return
        last = node.body[-1]
        if isinstance(last, ast.Raise) and not node.orelse:
            self.add("skipped check", start, end, "False")
            self.visit(node.test)  # a check may also be wrong
            return
        if isinstance(last, ast.Return | ast.Continue) and not node.orelse:
            self.add("skipped branch", start, end, "False")
        self.generic_visit(node)

    def visit_IfExp(self, node: ast.IfExp) -> None:
        self.add("skipped branch", *self.ends(node.test), "True")
        self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> None:
        if type(node.value) is float and node.value not in (0.0, float("inf")):
            start, end = self.ends(node)
            self.add("constant", start, end, repr(2.0 * node.value))


def mutants(file: str, text: str) -> Iterator[Mutant]:
    """The mistakes of a file, in its order."""
    reader = _Reader(file, text)
    reader.visit(ast.parse(text))
    yield from sorted(reader.mutants, key=lambda m: (m.span, m.kind))
