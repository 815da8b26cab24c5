"""LaTeX as the algebra prints it, converted to MathML, which browsers display by themselves.

It knows the commands that expressions, derivations and programs use: letters, scripts, accents,
brackets, words, tables.
"""

from __future__ import annotations

import re
from html import escape

_TOKEN = re.compile(r"\\[A-Za-z]+|\\.|\d+(?:\.\d+)?|[{}^_&]|\s+|.", re.DOTALL)

LETTERS = {
    **{"alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "theta": "θ"},
    **{"kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν", "xi": "ξ", "rho": "ρ", "sigma": "σ"},
    **{"tau": "τ", "phi": "φ", "psi": "ψ", "omega": "ω"},
    **{"Gamma": "Γ", "Delta": "Δ", "Lambda": "Λ", "Xi": "Ξ", "Pi": "Π", "Sigma": "Σ"},
    **{"Upsilon": "Υ", "Phi": "Φ", "Psi": "Ψ", "Omega": "Ω"},
}
SIGNS = {"times": "×", "cdot": "·", "cdots": "⋯", "sum": "∑", "ldots": "…"}
ACCENTS = {"dot": "˙", "ddot": "¨", "tilde": "˜", "hat": "ˆ", "bar": "―", "overline": "―"}
PRIME = '<mo class="prime" lspace="0" rspace="0">′</mo>'
SPACES = {"quad": "1em", ",": "0.17em", ";": "0.28em", " ": "0.25em"}
HOLES = {
    **{"𝒝": "ℬ", "𝒠": "ℰ", "𝒡": "ℱ", "𝒣": "ℋ", "𝒤": "ℐ", "𝒧": "ℒ", "𝒨": "ℳ", "𝒭": "ℛ"},
    **{"𝔆": "ℭ", "𝔋": "ℌ", "𝔌": "ℑ", "𝔕": "ℜ", "𝔝": "ℨ"},
}
"""Letters that Unicode keeps outside of its script and Fraktur alphabets."""


def mathml(latex: str) -> str:
    """A `<math>` element for the LaTeX of `Expr.latex`, `Derivation.latex` or `Program.latex`."""
    return f"<math>{_Reader(latex).row(())}</math>"


class _Reader:
    """Reads tokens from left to right."""

    def __init__(self, latex: str) -> None:
        self.tokens = _TOKEN.findall(latex)
        self.at = 0

    def peek(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def next(self) -> str:
        token = self.peek()
        self.at += 1
        return token

    def skip(self) -> bool:
        """Skip white space; return whether there was any."""
        start = self.at
        while self.peek().isspace():
            self.at += 1
        return self.at > start

    # ----------------------------------------------------------------------------- structure

    def row(self, ends: tuple[str, ...]) -> str:
        """Everything up to one of these tokens, which is not consumed."""
        parts = list[str]()
        after_atom = False
        while True:
            gap = self.skip()
            token = self.peek()
            if token == "" or token in ends:
                return "".join(parts)
            part, is_atom = self.scripted()
            if gap and after_atom and is_atom:  # H φ M: a little space between factors
                parts.append('<mspace width="0.14em"></mspace>')
            parts.append(part)
            after_atom = is_atom

    def scripted(self) -> tuple[str, bool]:
        """An atom with its scripts, and whether it is a factor."""
        base, is_atom = self.atom()
        below, above = "", ""
        while True:
            self.skip_if_script()
            token = self.peek()
            if token == "_":
                self.next()
                below += self.argument()
            elif token == "^":
                self.next()
                above += self.argument()
            elif token == "'":
                self.next()
                above += PRIME
            else:
                break
        # A prime is raised by its own shape: as a superscript it would be too small to read.
        primes = above.count(PRIME)
        if primes:
            above = above.replace(PRIME, "")
            base = _one(base + primes * PRIME)
        if below and above:
            return f"<msubsup>{base}{_one(below)}{_one(above)}</msubsup>", is_atom
        if below:
            return f"<msub>{base}{_one(below)}</msub>", is_atom
        return (f"<msup>{base}{_one(above)}</msup>" if above else base), is_atom

    def skip_if_script(self) -> None:
        ahead = self.at
        while ahead < len(self.tokens) and self.tokens[ahead].isspace():
            ahead += 1
        if ahead < len(self.tokens) and self.tokens[ahead] in ("_", "^"):
            self.at = ahead

    def argument(self) -> str:
        """A group, or one token."""
        self.skip()
        if self.peek() == "{":
            return self.group()
        return self.atom()[0]

    def group(self) -> str:
        """The contents of braces."""
        self.next()
        inside = self.row(("}",))
        self.next()
        return inside

    def raw(self) -> str:
        """{ ... } as raw text."""
        self.skip()
        self.next()
        depth, text = 1, ""
        while self.peek():
            token = self.next()
            depth += (token == "{") - (token == "}")
            if depth == 0:
                break
            text += token
        return text

    # --------------------------------------------------------------------------------- atoms

    def atom(self) -> tuple[str, bool]:
        """One atom, and whether it is a factor (not a sign)."""
        token = self.next()
        if token == "{":
            self.at -= 1
            return _one(self.group()), True
        if token.startswith("\\"):
            return self.command(token[1:])
        if token[0].isdigit():
            return f"<mn>{token}</mn>", True
        if token.isalpha():
            return f"<mi>{escape(token)}</mi>", True
        if token in "()[]":
            return f'<mo stretchy="false">{token}</mo>', False
        sign = {"-": "−", "*": "∗"}.get(token, token)
        return f"<mo>{escape(sign)}</mo>", False

    def command(self, name: str) -> tuple[str, bool]:
        if name in LETTERS:
            return f"<mi>{LETTERS[name]}</mi>", True
        if name == "prime":
            return PRIME, False
        if name in SIGNS:
            return f"<mo>{SIGNS[name]}</mo>", False
        if name in SPACES:
            return f'<mspace width="{SPACES[name]}"></mspace>', False
        if name in ACCENTS:
            inside = _one(self.argument())
            # No `accent`: fonts without mathematics tables would put it into the letter.
            return f"<mover>{inside}<mo>{ACCENTS[name]}</mo></mover>", True
        match name:
            case "mathcal":
                return f"<mi>{_styled(self.raw(), 0x1D49C, 0x1D4B6)}</mi>", True
            case "mathfrak":
                return f"<mi>{_styled(self.raw(), 0x1D504, 0x1D51E)}</mi>", True
            case "mathrm":
                return f'<mi mathvariant="normal">{escape(self.raw())}</mi>', True
            case "text" | "textbf":
                return _words(self.raw(), bold=name == "textbf"), False
            case "left":
                return self.bracket(), True
            case "begin":
                return self.table(), False
            case _:
                return f"<mtext>\\{escape(name)}</mtext>", True

    def bracket(self) -> str:
        """The contents of a pair of brackets."""
        opening = self.next()
        inside = self.row(("\\right",))
        self.next()
        closing = self.next()
        left, right = (
            "" if side == "." else f"<mo>{escape(side.removeprefix(chr(92)))}</mo>"
            for side in (opening, closing)
        )
        return f"<mrow>{left}{inside}{right}</mrow>"

    def table(self) -> str:
        """An environment, row by row and cell by cell."""
        name = self.raw()
        if name == "array":
            self.raw()  # its column specification
        rows, cells = list[str](), list[str]()
        while True:
            cells.append(self.row(("&", "\\\\", "\\end")))
            token = self.next()
            if token == "&":
                continue
            if any(cells):
                rows.append("".join(f"<mtd>{cell}</mtd>" for cell in cells))
            cells = []
            if token != "\\\\":
                break
        self.raw()
        body = "".join(f"<mtr>{row}</mtr>" for row in rows)
        return f'<mtable class="{escape(name)}">{body}</mtable>'


def _one(inside: str) -> str:
    """Several elements as one."""
    return f"<mrow>{inside}</mrow>"


def _styled(text: str, upper: int, lower: int) -> str:
    """Letters of another alphabet, whose A and a have these code points."""
    letters = [
        chr(upper + ord(c) - 65) if "A" <= c <= "Z" else chr(lower + ord(c) - 97)
        for c in text
        if c.isascii() and c.isalpha()
    ]
    return "".join(HOLES.get(c, c) for c in letters)


def _words(text: str, *, bold: bool) -> str:
    """Words, with formulas between dollars."""
    pieces = text.replace("\\_", "_").split("$")
    parts = list[str]()
    for i, piece in enumerate(pieces):
        if i % 2:
            parts.append(_Reader(piece).row(()))
        elif piece:
            shown = escape(piece).replace(" ", "\u00a0")
            kind = ' class="strong"' if bold else ""
            parts.append(f"<mtext{kind}>{shown}</mtext>")
    return "".join(parts)
