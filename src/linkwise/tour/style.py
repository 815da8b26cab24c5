"""The style sheet of the page: light and dark as the reader's system prefers, and on paper."""

from __future__ import annotations

from linkwise.plot.canvas import DARK, LIGHT, Theme


def style() -> str:
    """The style sheet, in the colours of the pictures."""
    return (
        f":root {{ color-scheme: light dark; {_colours(LIGHT)} }}\n"
        "@media screen and (prefers-color-scheme: dark) {\n"
        f"  :root {{ {_colours(DARK)} }}\n}}\n" + RULES
    )


def _colours(theme: Theme) -> str:
    values = {
        "paper": theme.paper,
        "ink": theme.ink,
        "faint": theme.faint,
        "line": theme.beyond,
        "red": theme.colors[0],
        "blue": theme.colors[1],
        "green": theme.colors[2],
    }
    return " ".join(f"--{name}: {value};" for name, value in values.items())


RULES = """
* { box-sizing: border-box; }
html { scroll-behavior: smooth; -webkit-text-size-adjust: 100%; }
body {
  margin: 0; background: var(--paper); color: var(--ink);
  font: 1.05rem/1.62 Charter, "Bitstream Charter", "Sitka Text", Cambria, Georgia, serif;
  overflow-wrap: break-word;
}
main, header, footer { max-width: 62rem; margin: 0 auto; padding: 0 1.25rem; }
h1, h2, th, nav, figcaption, .figures, .eyebrow, .missing, summary {
  font-family: "Avenir Next", Avenir, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
}
h1 { font-size: 2.3rem; line-height: 1.15; font-weight: 650; margin: 0.2rem 0 0.6rem; }
h2 { font-size: 1.42rem; line-height: 1.3; font-weight: 620; margin: 0 0 0.8rem; }
.eyebrow { color: var(--blue); font-size: 0.85rem; letter-spacing: 0.06em; margin: 2.6rem 0 0; }
.lede { font-size: 1.18rem; }
a { color: var(--blue); text-decoration-thickness: 0.06em; text-underline-offset: 0.16em; }
section { border-top: 1px solid var(--line); padding: 2.2rem 0 0.8rem; }
nav { font-size: 0.95rem; margin: 1.6rem 0 2.4rem; }
nav ol { columns: 2; column-gap: 2rem; margin: 0; padding: 0; list-style: none; }
nav li { break-inside: avoid; padding: 0.12rem 0; }
nav a { text-decoration: none; }
nav a:hover { text-decoration: underline; }
nav .number, h2 .number { color: var(--faint); margin-right: 0.55em; font-weight: 400; }
.figures { display: flex; flex-wrap: wrap; gap: 0.5rem 2.4rem; margin: 1.4rem 0; padding: 0; }
.figures div { min-width: 7rem; }
.figures dt { color: var(--faint); font-size: 0.82rem; }
.figures dd { margin: 0; font-size: 1.35rem; font-weight: 600; }
code, pre {
  font-family: "Cascadia Code", "SF Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace;
}
code { font-size: 0.86em; }
pre {
  font-size: 0.78rem; line-height: 1.5; margin: 0; padding: 0.9rem 1rem;
  white-space: pre-wrap;
  border: 1px solid var(--line); border-radius: 0.5rem;
}
.wide { overflow-x: auto; }
figure.table { margin: 1.1rem 0; }
table { border-collapse: collapse; font-size: 0.88rem; line-height: 1.4; }
figcaption {
  color: var(--faint); font-size: 0.86rem;
  line-height: 1.5; padding: 0.6rem 0 0;
}
th {
  text-align: left; font-weight: 600; font-size: 0.8rem; color: var(--faint);
  white-space: nowrap;
}
th, td { padding: 0.32rem 1.1rem 0.32rem 0; vertical-align: baseline; }
td { border-top: 1px solid var(--line); }
td.tree { white-space: pre; }
td.number, th.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
figure { margin: 1.6rem 0; }
figure img { display: block; max-width: 100%; height: auto; margin: 0 auto; }
.hint { display: none; }
figure iframe {
  display: block; width: 100%; height: 27rem; border: 1px solid var(--line);
  border-radius: 0.5rem; background: var(--paper);
}
math { font-family: "STIX Two Math", "Cambria Math", "Latin Modern Math", "TeX Gyre Termes Math",
  "Libertinus Math", math; font-size: 1.08em; }
math .strong { font-weight: 700; }
math .prime { font-size: 1.25em; }
math mtable.array mtd { text-align: left; padding: 0.14em 0; }
.formula { overflow-x: auto; overflow-y: hidden; padding: 0.15rem 0; }
.formula .remark { color: var(--faint); font-size: 0.88rem; padding-left: 1.6rem; }
.derivation {
  border-left: 3px solid var(--blue); padding: 0.2rem 0 0.2rem 1.1rem; margin: 1.2rem 0;
}
.derivation p { margin: 0.5rem 0 0.1rem; }
.derivation .loop { padding-left: 1.6rem; }
.checks td:first-child { font-weight: 700; white-space: nowrap; }
.good { color: var(--green); }
.bad { color: var(--red); }
.missing {
  border: 1px dashed var(--faint); border-radius: 0.5rem; padding: 0.9rem 1.1rem;
  color: var(--faint); font-size: 0.92rem; margin: 1.2rem 0;
}
footer { color: var(--faint); font-size: 0.9rem; padding-bottom: 4rem; }
@media (max-width: 40rem) {
  body { font-size: 1rem; }
  h1 { font-size: 1.8rem; }
  nav ol { columns: 1; }
  figure iframe { height: 21rem; }
  .sideways { overflow-x: auto; }
  .sideways img { max-width: none; width: 38rem; }
  .hint {
    display: block; margin: 0 0 0.4rem; color: var(--blue); font-size: 0.82rem; text-align: right;
    font-family: "Avenir Next", Avenir, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif;
  }
}
@media print {
  :root { --paper: #ffffff; --ink: #000000; --faint: #555555; --line: #cccccc; }
  body { font-size: 10.5pt; }
  main, header, footer { max-width: none; padding: 0; }
  section, figure, table, pre, .derivation { break-inside: auto; }
  figure, .formula, tr { break-inside: avoid; }
  h2 { break-after: avoid; }
  figure.playback, nav, .hint { display: none; }
  a { color: inherit; text-decoration: none; }
}
"""
