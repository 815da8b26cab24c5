"""References for kernels on a GPU: Pinocchio's results, and the CPU's.

Computed where Pinocchio is and kept in build/gpu, so that the machine with the GPU needs neither.
"""

import importlib.util
import shutil
import sys
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import numpy as np

if importlib.util.find_spec("linkwise") is None:  # the GPU machine has a copy of the repository
    sys.path.insert(0, str(Path(__file__).parent.parent / "src"))

import linkwise as lw
from linkwise.algebra import Expr, H, J, M, bias, mass, phi, tau, vdot

FOLDER = Path(__file__).parent.parent / "build" / "gpu"
FILES = {"panda": "panda.urdf", "solo12": "solo12.urdf", "talos_reduced": "talos_reduced.urdf"}
NODES = {"panda": "panda_link8", "solo12": "FL_FOOT", "talos_reduced": "left_sole_link"}
FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
OPERATIONAL = "operational-space inertia"
QUANTITIES: dict[str, Expr] = {
    "forward dynamics": mass.inv @ (tau - bias),
    "inverse dynamics": mass @ vdot + bias,
    "mass matrix": mass,
    "inverse mass matrix": mass.inv,
    OPERATIONAL: (J @ mass.inv @ J.T).inv,
}
STATES, MATRICES, RUNG = 1024, 64, 70
"""States of vectors, of matrices, and of a rung of the ladder."""


def robot(name: str) -> lw.Mechanism:
    """The mechanism, fingers of the arm locked."""
    path = str(FOLDER / FILES[name])
    mech = lw.load(path, base="fixed" if name == "panda" else "free")
    if name == "panda":
        mech = mech.without(*(c.name for c in mech.couplings)).lock(FINGERS).merge_locked()
    return mech


def nodes_of(name: str, quantity: str) -> tuple[str, ...]:
    """The nodes of a quantity."""
    return (NODES[name],) if quantity == OPERATIONAL else ()


# ---------------------------------------------------------------------------------- Pinocchio


def prepare() -> None:
    """The robots' files, random states, and what Pinocchio makes of them; and the ladder."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    files = metadata.files("example-robot-data") or []
    for name, file in FILES.items():
        shutil.copyfile(next(str(f.locate()) for f in files if f.name == file), FOLDER / file)
        stored = pinocchio_results(name)
        np.savez(FOLDER / f"{name}.npz", **stored)
        print(name, {key: x.shape for key, x in stored.items()}, flush=True)
    np.savez(FOLDER / "ladder.npz", **ladder_results())


def pinocchio_results(name: str) -> dict[str, np.ndarray]:
    """States and Pinocchio's results in our order; the interpreter must agree on a few."""
    import pinocchio as pin
    from kernel import ours_of

    mech = robot(name)
    root = [] if name == "panda" else [pin.JointModelFreeFlyer()]
    model = pin.buildModelFromUrdf(str(FOLDER / FILES[name]), *root)
    if name == "panda":
        ids = [model.getJointId(x) for x in FINGERS]
        model = pin.buildReducedModel(model, ids, pin.neutral(model))
    model.armature[:] = 0.0
    data, layout = model.createData(), lw.convert.pinocchio_layout(mech, model)
    frame = model.getFrameId(NODES[name])
    rng = np.random.default_rng(1)
    q = np.array([mech.random(rng) for _ in range(STATES)]).astype(np.float32).astype(float)
    q = np.array([mech.normalise(x) for x in q])
    given = {"q": q}
    for key in ("v", "tau", "vdot"):  # numbers that both precisions have
        given[key] = rng.standard_normal((STATES, mech.nv)).astype(np.float32).astype(float)
    q_p = layout.q_to(q)
    v_p, t_p, a_p = (layout.v_to(q, given[key]) for key in ("v", "tau", "vdot"))

    def operational(x: np.ndarray) -> np.ndarray:
        inverse = pin.computeMinverse(model, data, x)
        inverse = np.triu(inverse) + np.triu(inverse, 1).T
        jacobian = pin.computeFrameJacobian(model, data, x, frame, pin.ReferenceFrame.LOCAL)
        return np.linalg.inv(jacobian @ inverse @ jacobian.T)

    functions = {
        "forward dynamics": lambda i: pin.aba(model, data, q_p[i], v_p[i], t_p[i]),
        "inverse dynamics": lambda i: pin.rnea(model, data, q_p[i], v_p[i], a_p[i]),
        "mass matrix": lambda i: np.triu(pin.crba(model, data, q_p[i])),
        "inverse mass matrix": lambda i: np.triu(pin.computeMinverse(model, data, q_p[i])),
        OPERATIONAL: lambda i: operational(q_p[i]),
    }
    result = dict[str, np.ndarray]()
    for quantity, function in functions.items():
        count = STATES if quantity.endswith("dynamics") else MATRICES
        rows = [ours_of(np.array(function(i)), layout, q[i]) for i in range(count)]
        result[quantity] = np.array(rows)
        kernel = lw.compile(
            QUANTITIES[quantity], mech, nodes=nodes_of(name, quantity), target="numpy"
        )
        for i in range(3):
            again = kernel(*(given[x][i] for x in kernel.arguments))
            apart = np.abs(again - rows[i]).max() / np.abs(rows[i]).max()
            assert apart < 1e-9, (name, quantity, apart)
    return given | result


# ------------------------------------------------------------------------------------- ladder


@dataclass(frozen=True)
class Rung:
    """A kernel of the ladder.

    Attributes:
        title: What it is.
        mech: The mechanism; the same everywhere, since models are drawn from seeds.
        expr: The expression.
        nodes: Its nodes.
        parameters: Numbers of the mechanism that are inputs.
    """

    title: str
    mech: lw.Mechanism
    expr: Expr
    nodes: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()


def flexible_arm() -> lw.Mechanism:
    """Two links that bend, with a motor behind a gear at each joint."""
    link = {"area": 3e-4, "bending": 2.5e-9, "young": 70e9, "density": 2700.0, "damping": 0.005}
    rotor = lw.SpatialInertia.from_com(0.1, (0, 0, 0.01), (1e-4, 1e-4, 2e-4))
    b, parent = lw.Builder("flexible arm", gravity=(0, -9.81, 0)), "world"
    for name, length in (("upper", 1.0), ("lower", 0.8)):
        beam = lw.flexible.beam(length, **link, modes=2, directions=("y", "rz"))
        beam.add_to(b, name, parent, lw.hinges.Pin((0, 0, 1)), drive=lw.Drive(damping=0.05))
        b.motor(name, rotor, ratio=20.0)
        parent = f"{name}.tip"
    return b.build()


def ladder() -> list[Rung]:
    """Every kind of hinge, trees, parameters, flexible bodies, several expressions."""
    forward, plain = mass.inv @ (tau - bias), (H @ phi @ M @ phi.T @ H.T).inv @ (tau - bias)
    result = list[Rung]()
    for kind in lw.models.HINGE_KINDS:
        mech = lw.models.random_tree(3, 5, hinges=(kind, "pin", kind))
        result.append(Rung(f"hinge {kind}", mech, forward))
    trees = {
        "tree of 6": lw.models.random_tree(6, 1),
        "tree of 9": lw.models.random_tree(9, 5),
        "free base": lw.models.random_tree(7, 2, floating=True),
    }
    for title, mech in trees.items():
        node = (mech.bodies[-1].name,)
        result.append(Rung(f"{title}, forward dynamics", mech, forward))
        result.append(Rung(f"{title}, inverse dynamics", mech, mass @ vdot + bias))
        result.append(Rung(f"{title}, mass matrix", mech, mass))
        result.append(Rung(f"{title}, Jacobian", mech, J, node))
    small = trees["tree of 6"]
    last = small.bodies[-1].name
    result.append(Rung("tree of 6, inverse mass matrix", small, mass.inv))
    result.append(Rung("tree of 6, J mass.inv J.T", small, J @ mass.inv @ J.T, (last,)))
    for title, mech in {"tree of 6": small, "free base": trees["free base"]}.items():
        result.append(Rung(f"{title}, armature given", mech, forward, (), ("armature",)))
        result.append(Rung(f"{title}, locked given", mech, plain, (), ("locked",)))
        names = ("gravity", "inertia", f"payload:{mech.bodies[-1].name}")
        result.append(Rung(f"{title}, gravity, inertia, payload given", mech, plain, (), names))
    arm = flexible_arm()
    result.append(Rung("flexible arm, forward dynamics", arm, forward))
    result.append(Rung("flexible arm, inverse dynamics", arm, mass @ vdot + bias))
    result.append(Rung("flexible arm, J mass.inv J.T", arm, J @ mass.inv @ J.T, ("lower.tip",)))
    result.append(Rung("quadruped, limbs on warps", lw.models.quadruped(), forward))
    result.append(Rung("humanoid, limbs on warps", lw.models.humanoid(), forward))
    return result


def ladder_results() -> dict[str, np.ndarray]:
    """For each rung inputs, results of the processor's kernel, and how much rounding may grow.

    The interpreter must agree on a few; it has no parameters, which tests of the processor's
    kernels compare with changed mechanisms.
    """
    stored = dict[str, np.ndarray]()
    for i, rung in enumerate(ladder()):
        mech, rng = rung.mech, np.random.default_rng(i)
        kernel = lw.compile(rung.expr, mech, nodes=rung.nodes, parameters=rung.parameters)
        given = {"q": np.array([mech.random(rng) for _ in range(RUNG)])}
        for name in kernel.arguments:
            if name not in given:
                given[name] = _drawn(mech, name, rng)
        arrays = [given[x] for x in kernel.arguments]
        expected = kernel(*arrays)
        growth = np.ones(RUNG)
        if rung.title.split(", ")[-1] not in ("inverse dynamics", "mass matrix", "Jacobian"):
            growth = np.array([_condition(mech, given, row) for row in range(RUNG)])
        if not rung.parameters:
            reference = lw.compile(rung.expr, mech, nodes=rung.nodes, target="numpy")
            for row in (0, 1, RUNG - 1):
                again = reference(*(x[row] for x in arrays))
                apart = np.abs(again - expected[row]).max() / max(1.0, np.abs(again).max())
                assert apart < 1e-13 * growth[row], (rung.title, apart, growth[row])
        stored |= {f"{i} {name}": given[name] for name in kernel.arguments}
        stored |= {f"{i} expected": expected, f"{i} growth": growth}
        print(rung.title, expected.shape, f"growth {growth.max():.0f}", flush=True)
    return stored


def _drawn(mech: lw.Mechanism, name: str, rng: np.random.Generator) -> np.ndarray:
    """Random numbers for an input, a row a state."""
    from linkwise.codegen.scalar import parameters

    if name in ("v", "tau", "vdot"):
        return rng.standard_normal((RUNG, mech.nv))
    if name == "locked":
        return (rng.random((RUNG, mech.nv)) < 0.3).astype(float)
    if name.startswith("payload"):
        points, masses = rng.standard_normal((RUNG, 8, 3)), rng.uniform(0.05, 0.2, (RUNG, 8))
        total = np.einsum("sp,spi->si", masses, points)
        second = np.einsum("sp,spi,spj->sij", masses, points, points)
        spread = np.einsum("sii->s", second)[:, None, None] * np.eye(3) - second
        xx, yy, zz, xy, xz, yz = (spread[:, a, b] for a, b in ((0, 0), (1, 1), (2, 2), *PAIRS))
        return np.column_stack([masses.sum(axis=1), total, xx, yy, zz, xy, xz, yz])
    nominal = parameters.nominal(mech, name)
    factors = rng.uniform(0.5, 2.0, (RUNG, 1))
    return factors * (nominal if name != "armature" else nominal + 0.01)


PAIRS = ((0, 1), (0, 2), (1, 2))


def _condition(mech: lw.Mechanism, given: dict[str, np.ndarray], row: int) -> float:
    """Of the mass matrix scaled to a unit diagonal: how much a solution may lose to rounding."""
    from linkwise.algebra.dense import Dense

    matrix = Dense(mech, given["q"][row])(mass)
    size = np.sqrt(np.diag(matrix))
    return max(1.0, float(np.linalg.cond(matrix / np.outer(size, size))))
