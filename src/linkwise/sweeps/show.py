"""Programs printed as the papers print them: loops over k, and LaTeX."""

from __future__ import annotations

from linkwise.algebra.expr import Symbol
from linkwise.algebra.role import HingeRate
from linkwise.algebra.show import LATEX, UNICODE, Style, raised
from linkwise.model.closure_form import is_form
from linkwise.model.closure_rate import RATES
from linkwise.sweeps.arrangement import is_step
from linkwise.sweeps.program import Block, Pass, Place, Program, Quantity, Statement, Term

LOOPS = {
    "tip_to_base": "for k = tips … base",
    "base_to_tip": "for k = base … tips",
}


def program_text(program: Program) -> str:
    """The passes as plain text."""
    lines = [f"{program.result} = {program.expr}"]
    lines += [f"{result} = {expr}" for expr, result in program.more]
    for step in program.passes:
        before, each = _lines(step, at_once=True), _lines(step, at_once=False)
        lines += ["", *before] if before else []
        lines += (
            ["", LOOPS[step.direction], *(f"    {line}" for line in each), "end"] if each else []
        )
    if program.mirrored:
        lines += ["", f"{program.result} is symmetric: the loops give its upper half"]
    if not program.chosen.is_all:
        lines += ["", f"of {program.result}: {program.chosen}"]
    return "\n".join(lines)


def _lines(step: Pass, *, at_once: bool) -> list[str]:
    """Statements that run at once, before the pass, or those of the pass itself."""
    chosen = [s for s in step.statements if s.at_once == at_once]
    return [line for s in chosen if (line := statement_text(s, UNICODE))]


def program_latex(program: Program) -> str:
    """The passes as LaTeX, one brace a loop."""
    parts = list[str]()
    for step in program.passes:
        loop = r"k = \text{tips} \cdots \text{base}"
        if step.direction == "base_to_tip":
            loop = r"k = \text{base} \cdots \text{tips}"
        rows = [statement_text(s, LATEX) for s in step.statements if s.at_once]
        rows.append(rf"\textbf{{for }} {loop}")
        rows += [rf"\quad {statement_text(s, LATEX)}" for s in step.statements if not s.at_once]
        rows.append(r"\textbf{end loop}")
        body = " \\\\\n".join(rows)
        parts.append("\\left\\{\\begin{array}{l}\n" + body + "\n\\end{array}\\right.")
    return "\n\n".join(parts)


def statement_text(statement: Statement, style: Style) -> str:
    """target(k) = ..."""
    target = _at(statement.target, _home(statement), style)
    if statement.special:
        return f"{target} = {_special(statement, style)}"
    texts = list[str]()
    for term in sorted(statement.terms, key=lambda t: t.number < 0.0):
        sign = "-" if term.number < 0.0 else "+"
        body = _term(term, style, number=statement.target.rows.block == "one")
        size = abs(term.number)
        if size != 1.0:
            body = f"{size:g} {body}"
        texts.append(f"{sign} {body}" if texts or sign == "-" else body)
    return f"{target} = {' '.join(texts) or '0'}"


def _home(statement: Statement) -> str:
    """Blocks of an edge are written (p, k), everything else (k)."""
    key = statement.target.key
    if statement.target.block and isinstance(key, Symbol):
        return "p,k" if is_step(key) else "k"
    return "k"


def _at(quantity: Quantity, place: str, style: Style) -> str:
    name = quantity.name
    if style is LATEX:
        name = (
            quantity.key.latex()
            if quantity.leaf or isinstance(quantity.key, Symbol)
            else _tex(name)
        )
    if place == "p,k":
        name = _edge_name(name)
    nowhere = quantity.rows.block in ("one", "constraint")
    return name if nowhere else f"{name}({place})"


_PLACES = {"k": "k", "c": "c", "p": "p", "all": "·"}
_EDGES = {"E_φ": "φ", "E_ψ": "ψ", r"\mathcal{E}_\phi": r"\phi", r"\mathcal{E}_\psi": r"\psi"}
_GREEK = {
    **{"ε": r"\epsilon", "ν": r"\nu", "λ": r"\lambda", "α": r"\alpha"},
    **{"τ": r"\tau", "v̇": r"\dot{v}"},
}


def _tex(name: str) -> str:
    digits = "₀₁₂₃₄₅₆₇₈₉"
    stem = "".join(c for c in name if c not in digits)
    number = "".join(str(digits.index(c)) for c in name if c in digits)
    prime = "'" if stem.endswith("′") else ""
    stem = stem.removesuffix("′")
    stem = _GREEK.get(stem, stem) + prime
    return f"{stem}_{{{number}}}" if number else stem


def _edge_name(name: str) -> str:
    """E_φ(p, k) is written φ(p, k), as in the papers."""
    for long, short in _EDGES.items():
        if name.startswith(long):
            return short + name[len(long) :]
    return name


def _term(term: Term, style: Style, *, number: bool) -> str:
    parts = [_block(block, style) for block in term.left]
    if term.operand is not None:
        parts.append(_at(term.operand, _PLACES[term.place], style))
    parts += [_block(block, style) for block in term.right]
    inner = " ".join(parts) or "I"
    over = "c" if term.place == "c" else ("k" if number and term.place == "k" else "")
    if over:
        return (rf"\sum_{over} " if style is LATEX else f"Σ_{over} ") + inner
    return inner


def _block(block: Block, style: Style) -> str:
    name = style.leaf(block.symbol)
    if block.step:
        name = _edge_name(name)
    mark = style.minus_one if block.inverse else (style.star if block.adjoint else "")
    if block.inverse and block.adjoint:
        mark = "^{-*}" if style is LATEX else "⁻*"
    places: dict[tuple[bool, Place], str] = {(True, "c"): "k,c", (True, "p"): "p,k"}
    place = places.get((block.step, block.place), block.place)
    return f"{raised(name, mark, style) if mark else name}({place})"


_RATES = {
    **{"Q_rate": ("Q", "X"), "Q_rate_adjoint": ("Q*", "X"), "Y_rate": ("Y", "q")},
    **{"Y_rate_adjoint": ("Y*", "q"), "kappa_X": ("κ", "X"), "kappa_V": ("κ", "V")},
    **{"kappa_q": ("κ", "q"), "kappa_v": ("κ", "v")},
    **{"error_X": ("e", "X"), "error_goal": ("e", "goal")},
}
"""What changes, and by what: X are the poses of nodes, V their velocities."""


def _special(statement: Statement, style: Style) -> str:
    reads = [_at(quantity, _PLACES[place], style) for quantity, place in statement.reads]
    times = r"\times" if style is LATEX else "×"
    match statement.special:
        case "phi(q)" | "Delta_phi(q)":
            return r"\phi(q(k))" if style is LATEX else "shift of the hinge pose at q(k)"
        case "H(q)":
            return r"H(q(k))" if style is LATEX else "hinge map at q(k)"
        case "a":
            H, v = "H^{*}(k)" if style is LATEX else "H*(k)", reads[1]
            rate = r"\dot{H}^{*}(k)" if style is LATEX else "Ḣ*(k)"
            up = r" - \phi^{*}(p,k)\, g \text{ if } p \text{ is the ground}"
            up = up if style is LATEX else " - φ*(p,k) g if p is the ground"
            return f"{reads[0]} {times} {H} {v} + {rate} {v}{up}"
        case "b":
            star = "^{*}" if style is LATEX else "*"
            return f"{reads[0]} {times}{star} M(k) {reads[0]}"
        case "a_g":
            up = r"-\phi^{*}(p,k)\, g \text{ if } p \text{ is the ground, else } 0"
            return up if style is LATEX else "-φ*(p,k) g if p is the ground, else 0"
        case "weight":
            return "-g (h^{*}(k), m(k))" if style is LATEX else "-g (h*(k), m(k))"
        case "X":
            return f"{reads[0]} " + (r"X_{pk}(q(k))" if style is LATEX else "X_pk(q(k))")
        case "X_B":
            return f"{reads[0]} " + (r"X_{k\mathcal{B}}" if style is LATEX else "X_kB")
        case "to_W":
            return r"\phi^{-*}(" + f"{reads[0]})" if style is LATEX else f"φ⁻* of {reads[0]}"
        case "A_V":
            rest = r"\times H^{*}(k) + \dot{H}^{*}(k)" if style is LATEX else "× H*(k) + Ḣ*(k)"
            return f"{reads[0]} {rest}"
        case "B_V":
            star = r"\times^{*} M(k)" if style is LATEX else "×* M(k)"
            return f"{reads[0]} {star}" + (
                r" \text{, factored}" if style is LATEX else ", factored"
            )
        case "cross" | "swap":
            bar = r"\bar{\times}" if style is LATEX else "×̄"
            return f"{reads[0]} {times if statement.special == 'cross' else bar}"
        case "regressor" | "diagonal" | "inertia_of":
            name = {"regressor": "Y", "diagonal": "diag", "inertia_of": "M"}[statement.special]
            return f"{name} of {reads[0]}"
        case "X_rate":
            return f"derivatives of {', '.join(reads)}"
        case "a_g_rate" | "weight_rate" | "weight_gravity":
            of, by = ("a_g" if statement.special[0] == "a" else "weight"), "g"
            return f"∂{of}/∂{'π' if statement.special == 'weight_rate' else by}"
        case "angular":
            return r"\mathrm{diag}(1, 0)" if style is LATEX else "diag(1, 0)"
        case "H_rate":
            key = statement.target.key
            slots = (
                key.role.slots
                if isinstance(key, Symbol) and isinstance(key.role, HingeRate)
                else ()
            )
            if len(slots) == 3 and slots[2] == "column":
                star = style.star if slots[0] == "row" else ""
                return f"∂(H{star}(k) {reads[0]})/∂q(k)"
            return f"derivatives of H{style.star}(k) with {', '.join(reads)}"
        case "coordinate_rate":
            name = r"\mathcal{Q}(k)" if style is LATEX else "𝒬(k)"
            return f"derivatives of {name} with {', '.join(reads)}"
        case "bias_rate_q" | "bias_rate_v":
            rate = r"\dot{H}^{*}(k)" if style is LATEX else "Ḣ*(k)"
            return f"∂({rate} {reads[0]})/∂{statement.special[-1]}(k)"
        case "rot_W":
            return r"\mathrm{rot}(" + f"{reads[0]})" if style is LATEX else f"rot of {reads[0]}"
        case "Q" | "Y" | "Q*" | "Y*":
            star = style.star if statement.special.endswith("*") else ""
            return f"{statement.special[0]}{star} {reads[-1]}"
        case rule if rule.removesuffix("*") in RATES:
            of, by = _RATES[rule.removesuffix("*")]
            x = "" if of in ("κ", "e") else f" {reads[-2]}"
            star = style.star if rule[-1] == "*" else ""
            return f"(∂({of}{x})/∂{by}){star} {reads[-1]}"
        case rule if is_form(rule):
            star = style.star if rule[-1] == "*" else ""
            kind = rule.split()[1]
            of = {"kappa": "κ", "kappa_Y": "κ", "error": "e"}.get(kind, kind)
            return f"(∂[{of}; {', '.join(reads[:-1])}]){star} {reads[-1]}"
        case "kappa":
            text = r"\text{rate of } Q" if style is LATEX else "rate of Q"
            return f"{text} {reads[-1]}"
        case "servo":
            text = r"\ddot{x}_d + k_v (\dot{x}_d - \dot{x}) + k_p e"
            return text if style is LATEX else "ẍ_d + k_v (ẋ_d - ẋ) + k_p e"
        case "task_error":
            return r"\text{error of } " + reads[0] if style is LATEX else f"error of {reads[0]}"
        case "scale":
            return f"diag({reads[0]}) {reads[1]}"
        case "kappa_g":
            text = "lift against the ground"
            return rf"\text{{{text}}}" if style is LATEX else text
        case "gram" | "spread":
            star = style.star if statement.special == "gram" else ""
            return f"{reads[0]}{star} {reads[1]}"
        case _:
            return f"solve({', '.join(reads)})"
