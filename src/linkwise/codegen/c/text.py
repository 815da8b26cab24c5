"""The text of C and CUDA: names, comments, numbers and operations.

Names and comments are safe whatever a model file calls its robot and joints.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Iterable

import numpy as np

from linkwise.algebra.show import spelt
from linkwise.errors import LoweringError, ModelError

LONGEST_IDENTIFIER = 63
"""Letters of an identifier that C99 promises to tell apart."""

LONGEST_NAME = 60
"""Names longer than this [characters] are cut in comments."""

# C99 and C++ (the header serves both), math.h, and what the source itself says.
RESERVED = frozenset(
    """
    auto break case char const continue default do double else enum extern float for goto if inline
    int long register restrict return short signed sizeof static struct switch typedef union
    unsigned void volatile while _Bool _Complex _Imaginary
    alignas alignof and and_eq asm bitand bitor bool catch char8_t char16_t char32_t class co_await
    co_return co_yield compl concept const_cast consteval constexpr constinit decltype delete
    dynamic_cast explicit export false friend module mutable namespace new noexcept not not_eq
    nullptr operator or or_eq private protected public reinterpret_cast requires static_assert
    static_cast template this thread_local throw true try typeid typename using virtual wchar_t xor
    xor_eq errno assert NULL EOF main printf stdin stdout stderr linux unix i386
    acos asin atan atan2 cos sin tan acosh asinh atanh cosh sinh tanh exp exp2 expm1 frexp ilogb
    ldexp log log10 log1p log2 logb modf scalbn scalbln cbrt fabs hypot pow sqrt erf erfc lgamma
    tgamma ceil floor nearbyint rint lrint llrint round lround llround trunc fmod remainder remquo
    copysign nan nextafter nexttoward fdim fmax fmin fma j0 j1 jn y0 y1 yn signgam gamma
    fpclassify isfinite isinf isnan isnormal signbit isgreater isgreaterequal isless islessequal
    islessgreater isunordered FMA FMS FNMA NAN INFINITY HUGE_VAL FP_FAST_FMA FP_FAST_FMAF
    out i s sine cosine angle status worst failed apart spare difference
    """.split()
)


def identifier(text: str) -> str:
    """A C identifier that reads like the text: "my robot (v2)" gives my_robot_v2."""
    plain = re.sub(r"[^A-Za-z0-9]+", "_", spelt(text)).strip("_")[:LONGEST_IDENTIFIER].strip("_")
    if not plain or not plain[0].isalpha():
        plain = f"robot_{plain}".rstrip("_")
    return f"{plain}_" if _taken(plain) else plain


def check_identifier(name: str) -> str:
    """The name, if a function of the C file can have it.

    Raises:
        ModelError: It cannot; says why and offers one that can.
    """
    offer = f"use for instance {identifier(name)!r}"
    if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", name, re.ASCII):
        raise ModelError(
            f"{name[:80]!r} cannot be the name of a C function: a letter, then letters, digits and "
            f"underscores; {offer}."
        )
    if len(name) > LONGEST_IDENTIFIER:
        raise ModelError(
            f"the name has {len(name)} letters, C allows {LONGEST_IDENTIFIER}; {offer}."
        )
    if _taken(name):
        raise ModelError(f"{name!r} means something else in C already; {offer}.")
    return name


def _taken(name: str) -> bool:
    """Words of the language and its library, their float forms, and the source's own variables."""
    return (
        name in RESERVED
        or (name[-1:] in "fl" and name[:-1] in RESERVED)
        or re.fullmatch(r"[a-z]\d+", name) is not None
    )


def distinct(names: Iterable[str], taken: Iterable[str] = ()) -> list[str]:
    """Identifiers for the names, all different, and different from those taken."""
    seen, identifiers = set(taken), list[str]()
    for name in names:
        plain = identifier(name)
        choice, count = plain, 2
        while choice.casefold() in seen:
            choice, count = f"{plain}_{count}", count + 1
        seen.add(choice.casefold())  # sizes are macros in capitals
        identifiers.append(choice)
    return identifiers


def plain(text: str) -> str:
    """One line of ASCII that neither ends nor opens a comment, joins lines nor is a trigraph."""
    line = re.sub(r"[^ -~]|\\", "?", re.sub(r"\s", " ", spelt(text)))
    return re.sub(r"(?<=\*)(?=/)|(?<=/)(?=\*)|(?<=\?)(?=\?)", " ", line)


def plain_name(name: str) -> str:
    """A name for a comment, cut if it is long."""
    line = " ".join(plain(name).split())
    return line if len(line) <= LONGEST_NAME else f"{line[: LONGEST_NAME - 3]}..."


def comment(lines: Iterable[str], width: int = 100) -> str:
    """A block comment; long lines are broken, with their indent kept."""
    out = ["/*"]
    for line in lines:
        indent = " " * (len(line) - len(line.lstrip(" ")))
        broken = textwrap.wrap(
            plain(line),
            width - 3,
            subsequent_indent=indent + "    ",
            break_long_words=False,
            break_on_hyphens=False,
        )
        out += [f" * {part}".rstrip() for part in broken or [""]]
    return "\n".join([*out, " */"])


def number(value: float, dtype: str) -> str:
    """A C constant with exactly this value, or the nearest float."""
    if dtype == "float32":
        with np.errstate(over="ignore"):
            short = np.float32(value)
        text = f"{np.format_float_scientific(short, trim='0')}f" if short else "0.0f"
        value = float(short)
    else:
        text = repr(float(value))
    if not math.isfinite(value):
        raise LoweringError(f"the constant {value} of this mechanism is not finite in {dtype}.")
    return text


def condition(name: str, low: float, high: float, dtype: str) -> str:
    """low < x < high as a C expression; empty where neither bound is finite."""
    bounds = [(">", low), ("<", high)]
    return " && ".join(f"{name} {s} {number(x, dtype)}" for s, x in bounds if math.isfinite(x))


def operation(op: str, names: list[str], zero: str, reciprocal: str, root: str) -> str:
    """An operation of a graph; `reciprocal` and `root` are formats.

    Raises:
        LoweringError: It has no form in C.
    """
    forms = {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "gate": f"{{}} > {zero} ? {{}} : {zero}",
        "neg": "-{}",
        "inv": reciprocal,
        "sqrt": root,
    }
    if op not in forms:
        raise LoweringError(f"the operation {op!r} has no form in C.")
    return forms[op].format(*names)
