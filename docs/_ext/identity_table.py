"""A Sphinx extension: the directive `{identities}`, a table of rules written from the rules.

Its argument is the name of a list in `linkwise.algebra.rules`, or DERIVATIVES. The proof of every
theorem is looked for while the page is built; one that is not found is a warning, which fails the
build.
"""

from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective

logger = logging.getLogger(__name__)


class Identities(SphinxDirective):
    """One table, a row a rule."""

    required_arguments = 1

    def run(self):
        """The nodes of the table."""
        from linkwise.algebra import differential_recursion, differential_rules, rules

        if self.arguments[0] == "DERIVATIVES":
            lines = ["| variation of a leaf | by | because |", "| --- | --- | --- |"]
            for rule in differential_rules.RULES.values():
                lines.append(f"| `{rule}` | {_text(rule.wrt)} | {_text(rule.source)} |")
            by = "q, inertia, armature"
            for rule in differential_recursion.RULES:
                lines.append(f"| `{rule}` | {by} | {_text(rule.source)} |")
            return self.parse_text_to_nodes(StringList(lines, source=__file__))
        chosen = getattr(rules, self.arguments[0])
        lines = ["| identity | holds on | source | proof |", "| --- | --- | --- | --- |"]
        for rule in chosen:
            lines.append(f"| {statement(rule)} | {rule.domain} | {rule.source} | {proof(rule)} |")
        return self.parse_text_to_nodes(StringList(lines, source=__file__))


def statement(rule) -> str:
    """Name and equation, as the terminal prints it: readable without a mathematics server."""
    return f"{_text(rule.name)} <br> `{rule.left} = {rule.right}`"


def proof(rule) -> str:
    """Kind, or the number of steps of the proof and what it rests on."""
    from linkwise.algebra.prove import inverse_proof_of, proof_of

    if rule.kind != "theorem":
        return rule.kind
    derivation = inverse_proof_of(rule) or proof_of(rule)
    if derivation is None:
        logger.warning("no proof was found for the rule %r", rule.name)
        return "none was found"
    used = dict.fromkeys(step.identity for step in derivation if step.identity != "collected")
    how = "by multiplying out, " if derivation.result is not rule.right else ""
    steps = "1 step" if len(derivation) == 1 else f"{len(derivation)} steps"
    return f"{how}{steps}: {_text(', '.join(used))}"


def _text(name: str) -> str:
    """A name as plain text: its stars are adjoints, not emphasis."""
    return name.replace("*", r"\*")


def setup(app) -> dict[str, bool]:
    """Add the directive."""
    app.add_directive("identities", Identities)
    return {"parallel_read_safe": True}
