"""The command line: `linkwise COMMAND`, one file a command."""

from __future__ import annotations

import argparse
import codecs
import os
import sys
from collections.abc import Sequence

from linkwise.algebra.show import spelt
from linkwise.cli import (
    bench,
    derive,
    export_c,
    identify,
    info,
    ledger,
    optimize,
    plan,
    simulate,
    study,
    tour,
    view,
)
from linkwise.cli.parser import Parser
from linkwise.errors import LinkwiseError

COMMANDS = (
    tour,
    info,
    view,
    simulate,
    optimize,
    identify,
    study,
    derive,
    plan,
    bench,
    ledger,
    export_c,
)


FIRST_STEPS = """first steps:
  linkwise tour                          everything once, on a PUMA 560, with a report
  linkwise tour my_robot.urdf            the same on your robot
  linkwise info my_robot.urdf            its tree, loops, masses, and what is wrong with it
  linkwise view my_robot.urdf            in the browser, with a slider for each joint
  linkwise simulate my_robot.urdf        let it fall, and save or play the motion
  linkwise derive "J mass^-1 J*"         a quantity in its cheapest form, with the proof
  linkwise bench my_robot.urdf           how fast that is on your machine

ROBOT is a URDF or MJCF file, or a built-in mechanism: puma560, seven_dof_arm, "chain(7)" ...
Exit status: 0 if all is well, 1 if a check failed, 2 for an error, which is one clear line.
"""


def parser() -> Parser:
    """The parser with all commands."""
    root = Parser(
        prog="linkwise",
        description="Mechanisms and their mechanics. Every command explains itself with --help.",
        epilog=FIRST_STEPS,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    root.add_argument("--version", action="version", version=_version())
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.add_to(commands)
    return root


def _version() -> str:
    import linkwise

    return f"linkwise {linkwise.__version__}"


def _spelt(error: UnicodeError) -> tuple[str, int]:
    """Symbols that a terminal lacks, spelt out as they can be typed: φ as phi, D⁻¹ as D^-1."""
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return spelt(error.object[error.start : error.end]), error.end


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; exit status 0 when all is well, 1 when a check failed, 2 for an error."""
    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:
        codecs.register_error("linkwise.spell", _spelt)
        reconfigure(errors="linkwise.spell")
    options = parser().parse_args(arguments)
    try:
        status = int(options.run(options))
        sys.stdout.flush()
        return status
    except LinkwiseError as error:
        print(f"linkwise: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except OSError as error:  # a file that cannot be written, a disk that is full
        print(f"linkwise: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("linkwise: interrupted", file=sys.stderr)
        return 130
