"""Random MJCF models that MuJoCo accepts, made of everything that decides tree and masses."""

from __future__ import annotations

import random

SHAPES = ("sphere", "capsule", "cylinder", "ellipsoid", "box")
N_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}


class RandomModel:
    """One model for each seed."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.classes = ["c0", "c1", "c2"]
        self.count = 0
        self.scalar_joints: list[str] = []
        self.bodies: list[str] = []
        self.radian = self.chance(0.5)

    def text(self) -> str:
        bodies = "".join(self.body(0, free=self.chance(0.3)) for _ in range(self.rng.randint(1, 3)))
        return (
            f"<mujoco>{self.compiler()}{self.option()}{self.defaults()}"
            f"<worldbody>{self.maybe(0.5, self.geom)}{self.maybe(0.5, self.site)}"
            f"{bodies}</worldbody>{self.equality()}</mujoco>"
        )

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    def maybe(self, p: float, make, *args) -> str:
        return make(*args) if self.chance(p) else ""

    def numbers(self, n: int, low: float = -1.0, high: float = 1.0) -> str:
        return " ".join(f"{self.rng.uniform(low, high):.4g}" for _ in range(n))

    def name(self, prefix: str) -> str:
        self.count += 1
        return f"{prefix}{self.count}"

    def compiler(self) -> str:
        pick = self.rng.choice
        options = {
            "angle": "radian" if self.radian else "degree",
            "eulerseq": "".join(pick("xyzXYZ") for _ in range(3)),
            "autolimits": "true",
            "inertiafromgeom": pick(["auto", "auto", "true"]),
            "inertiagrouprange": pick(["0 5", "0 2"]),
            "boundmass": pick(["0", "0.1"]),
            "boundinertia": pick(["0", "0.05"]),
            "settotalmass": pick(["-1", "-1", "5"]),
            "balanceinertia": "true",
        }
        return "<compiler " + " ".join(f'{k}="{v}"' for k, v in options.items()) + "/>"

    def option(self) -> str:
        return self.maybe(0.5, lambda: f'<option gravity="{self.numbers(3)}"/>')

    def defaults(self) -> str:
        def inside(main: bool = False) -> str:
            joint = geom = ""
            if main or self.chance(0.6):
                # Armature for all: joints of one body may move it alike, which no spring resolves.
                joint = f'<joint armature="0.3" {self.joint_attributes(self.chance(0.5))}/>'
            if main or self.chance(0.6):
                # Three sizes for all, so that an element of any class has enough of them.
                geom = (
                    f'<geom density="{self.numbers(1, 1, 9)}" size="{self.numbers(3, 0.1, 0.5)}" '
                    f'type="{self.rng.choice(SHAPES)}" {self.maybe(0.4, self.orientation)}/>'
                )
            return joint + geom + self.maybe(0.3, lambda: f'<site pos="{self.numbers(3)}"/>')

        return (
            f'<default>{inside(True)}<default class="c0">{inside()}<default class="c1">{inside()}'
            f'</default></default><default class="c2">{inside()}</default></default>'
        )

    def orientation(self) -> str:
        angle = 3.0 if self.radian else 170.0
        return self.rng.choice(
            [
                f'quat="{self.numbers(4)}"',
                f'axisangle="{self.numbers(3)} {self.numbers(1, -angle, angle)}"',
                f'euler="{self.numbers(3, -angle, angle)}"',
                f'xyaxes="{self.numbers(6)}"',
                f'zaxis="{self.numbers(3)}"',
            ]
        )

    def place(self) -> str:
        pos = self.maybe(0.8, lambda: f'pos="{self.numbers(3)}" ')
        return pos + self.maybe(0.7, self.orientation)

    def joint_attributes(self, ranged: bool) -> str:
        unit = 1.0 if self.radian else 57.0
        number = self.numbers
        result = [
            self.maybe(0.5, lambda: f'axis="{number(3)}"'),
            self.maybe(0.5, lambda: f'pos="{number(3)}"'),
            self.maybe(0.4, lambda: f'ref="{number(1, -unit, unit)}"'),
            self.maybe(0.4, lambda: f'stiffness="{number(1, 0, 5)}"'),
            self.maybe(0.4, lambda: f'springref="{number(1, -unit, unit)}"'),
            self.maybe(0.4, lambda: f'damping="{number(1, 0, 5)}"'),
            self.maybe(0.3, lambda: f'frictionloss="{number(1, 0, 1)}"'),
            self.maybe(0.15, lambda: f'springdamper="{number(2, 0.1, 1)}"'),
            f'range="{number(1, -unit, 0)} {number(1, 0.1, unit)}"' if ranged else "",
        ]
        return " ".join(filter(None, result))

    def of_class(self) -> str:
        return self.maybe(0.3, lambda: f'class="{self.rng.choice(self.classes)}" ')

    def joints(self) -> str:
        names = [self.name("j") for _ in range(self.rng.choice([1, 1, 1, 2, 3]))]
        result: list[str] = []
        for i, name in enumerate(names):
            kind = self.rng.choice(["hinge", "slide", "hinge", "ball"])
            if kind == "ball" and i < len(names) - 1:
                kind = "slide"
            more = self.joint_attributes(kind != "ball" and self.chance(0.5))
            more += self.maybe(0.4, lambda: f' armature="{self.numbers(1, 0.1, 1)}"')
            if kind == "ball":
                more += ' limited="false"'  # a class may give a range that no ball joint takes
            else:
                self.scalar_joints.append(name)
            result.append(f'<joint name="{name}" type="{kind}" {self.of_class()}{more}/>')
        return "".join(result)

    def geom(self) -> str:
        kind = self.rng.choice(SHAPES)
        size = self.numbers(N_SIZES[kind], 0.1, 0.5)
        place = self.place()
        weight = self.rng.choice(["", f'mass="{self.numbers(1, 0.1, 3)}"', 'density="300"'])
        group = self.maybe(0.4, lambda: f'group="{self.rng.randint(0, 5)}"')
        shell = self.maybe(0.2, lambda: 'shellinertia="true"') if kind != "ellipsoid" else ""
        return (
            f'<geom type="{kind}" size="{size}" {self.of_class()}{place} {weight} {group} {shell}/>'
        )

    def site(self) -> str:
        return f'<site name="{self.name("s")}" {self.of_class()}{self.place()}/>'

    def inertial(self) -> str:
        diagonal = " ".join(f"{self.rng.uniform(1, 1.9):.4g}" for _ in range(3))
        axes = self.maybe(0.6, self.orientation)
        moments = f'diaginertia="{diagonal}" {axes}'
        if self.chance(0.5):
            moments = f'fullinertia="{diagonal} {self.numbers(3, -0.1, 0.1)}"'
        return f'<inertial pos="{self.numbers(3)}" mass="{self.numbers(1, 0.5, 2)}" {moments}/>'

    def body(self, depth: int, *, free: bool = False) -> str:
        name = self.name("b")
        self.bodies.append(name)
        joints = "<freejoint/>" if free else self.maybe(0.75, self.joints)
        inside = joints + self.maybe(0.3, self.inertial)
        inside += '<geom size="0.2 0.2 0.2"/>' + "".join(
            self.maybe(0.7, self.geom) for _ in range(3)
        )
        inside += self.maybe(0.5, self.site)
        if self.chance(0.3):
            inner = self.geom() + self.site()
            if not free and self.chance(0.5):
                joint = self.name("j")
                inner += f'<joint name="{joint}" type="slide" axis="{self.numbers(3)}"/>'
                # After a ball joint MuJoCo takes slides only, and the order of joints counts.
            inside += f"<frame {self.place()}>{inner}{self.maybe(0.4, self.child, depth)}</frame>"
        inside += "".join(self.maybe(0.6, self.child, depth) for _ in range(2))
        childclass = self.maybe(0.3, lambda: f'childclass="{self.rng.choice(self.classes)}" ')
        return f'<body name="{name}" {childclass}{self.place()}>{inside}</body>'

    def child(self, depth: int) -> str:
        return self.body(depth + 1) if depth < 4 else ""

    def equality(self) -> str:
        result: list[str] = []
        if len(self.bodies) > 1 and self.chance(0.5):
            one, two = self.rng.sample(self.bodies, 2)
            result.append(f'<connect body1="{one}" body2="{two}" anchor="{self.numbers(3)}"/>')
        if self.bodies and self.chance(0.5):
            result.append(f'<weld body1="{self.rng.choice(self.bodies)}"/>')
        if len(self.scalar_joints) > 1 and self.chance(0.5):
            one, two = self.rng.sample(self.scalar_joints, 2)
            result.append(f'<joint joint1="{one}" joint2="{two}" polycoef="{self.numbers(5)}"/>')
        return f"<equality>{''.join(result)}</equality>"
