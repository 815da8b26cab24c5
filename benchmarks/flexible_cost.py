"""Operations of inverse and forward dynamics of flexible arms, by lumps, modes, motors and links.

    python benchmarks/flexible_cost.py

Prints the table of docs/how_to/model_flexible_bodies.md.
"""

import linkwise as lw
from linkwise.algebra import bias, mass, tau, vdot

LINK = {"area": 3e-4, "bending": 2.5e-9, "young": 70e9, "density": 2700.0}
FORMS = (mass @ vdot + bias, mass.inv @ (tau - bias))


def arm(links: int = 2, modes: int = 2, lumps: int = 6, *, motors: bool = False) -> lw.Mechanism:
    """Links that bend in a plane."""
    rotor = lw.SpatialInertia.from_com(0.1, (0, 0, 0.01), (1e-4, 1e-4, 2e-4))
    b, parent = lw.Builder("arm"), "world"
    body = lw.flexible.beam(1.0, **LINK, modes=modes, lumps=lumps, directions=("y", "rz"))
    for i in range(links):
        drive = lw.Drive(armature=0.1)
        body.add_to(b, f"link_{i}", parent, lw.hinges.Pin((0, 0, 1)), drive=drive)
        if motors:
            b.motor(f"link_{i}", rotor, ratio=20.0)
        parent = f"link_{i}.tip"
    return b.build()


def main() -> None:
    """Print the table."""
    cases = {
        "two links, 2 modes, 6 lumps each": arm(),
        "one more lump in each": arm(lumps=7),
        "one more link": arm(links=3),
        "a motor at each joint": arm(motors=True),
        "1 mode in each": arm(modes=1),
        "3 modes in each": arm(modes=3),
        **{f"{n} modes, {n + 4} lumps in each": arm(modes=n, lumps=n + 4) for n in (4, 6)},
    }
    print("| arm | inverse dynamics | forward dynamics |\n| --- | ---: | ---: |")
    for name, mech in cases.items():
        counts = [lw.compile(x, mech, target="c").ops.total() for x in FORMS]
        print(f"| {name} | {' | '.join(map(str, counts))} |")


if __name__ == "__main__":
    main()
