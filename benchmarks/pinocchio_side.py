"""Pinocchio's side of the comparison: the same robots, the best route to each quantity."""

from collections.abc import Callable
from importlib import metadata

import numpy as np
import pinocchio as pin

import linkwise as lw

Array = np.ndarray
LOCAL = pin.ReferenceFrame.LOCAL


def models(file: str, base: str, locked: tuple[str, ...]) -> tuple[lw.Mechanism, pin.Model]:
    """The robot in both libraries, fingers locked."""
    files = metadata.files("example-robot-data") or []
    path = next(str(f.locate()) for f in files if f.name == file)
    mech = lw.load(path, base=base)
    if locked:
        mech = mech.without(*(c.name for c in mech.couplings)).lock(locked).merge_locked()
    root = [pin.JointModelFreeFlyer()] if base == "free" else []
    model = pin.buildModelFromUrdf(path, *root)
    if locked:
        ids = [model.getJointId(name) for name in locked]
        model = pin.buildReducedModel(model, ids, pin.neutral(model))
    model.armature[:] = 0.0
    return mech, model


def routes(
    quantity: str, model: pin.Model, node: str, arrays: list[Array]
) -> tuple[Callable[..., Array], Callable[[], object]]:
    """The function for one state, and the one for the batch on one thread.

    A batch keeps all its results, so a loop in Python puts each into its row.
    """
    data = model.createData()
    batch, nv = len(arrays[0]), model.nv
    if quantity in ("forward dynamics", "inverse dynamics"):
        pool, columns = pin.ModelPool(model), [np.asfortranarray(x.T) for x in arrays]
        out = np.zeros((nv, batch), order="F")
        if quantity == "forward dynamics":
            return (
                lambda q, v, t: pin.aba(model, data, q, v, t),
                lambda: pin.abaInParallel(1, pool, *columns, out),
            )
        return (
            lambda q, v, a: pin.rnea(model, data, q, v, a),
            lambda: pin.rneaInParallel(1, pool, *columns, out),
        )
    single = _matrix(quantity, model, data, node, arrays[0][0])
    rows = np.empty((batch, *single(arrays[0][0]).shape))

    def loop() -> None:
        for i, q in enumerate(arrays[0]):
            rows[i] = single(q)

    return single, loop


def _matrix(
    quantity: str, model: pin.Model, data: pin.Data, node: str, q: Array
) -> Callable[[Array], Array]:
    frame = model.getFrameId(node)
    if quantity == "mass matrix":
        return lambda q: pin.crba(model, data, q)
    if quantity == "inverse mass matrix":
        return lambda q: pin.computeMinverse(model, data, q)
    if quantity == "Jacobian":
        return lambda q: pin.computeFrameJacobian(model, data, q, frame, LOCAL)
    return fastest(operational_routes(model, data, frame), q)


def operational_routes(
    model: pin.Model, data: pin.Data, frame: int
) -> list[Callable[[Array], Array]]:
    """Every way to the operational-space inertia at a node."""
    place = model.frames[frame]
    constraint = pin.RigidConstraintModel(
        pin.ContactType.CONTACT_6D, model, place.parentJoint, place.placement, LOCAL
    )
    models_, records = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    models_.append(constraint)
    records.append(constraint.createData())
    cholesky = pin.ConstraintCholeskyDecomposition(model, data, models_, records)

    def products(q: Array) -> Array:
        inverse = pin.computeMinverse(model, data, q)
        jacobian = pin.computeFrameJacobian(model, data, q, frame, LOCAL)
        return np.linalg.inv(jacobian @ inverse @ jacobian.T)

    def delassus(q: Array) -> Array:
        return np.linalg.inv(pin.computeDelassusMatrix(model, data, q, models_, records, 0.0))

    def by_cholesky(q: Array) -> Array:
        pin.crba(model, data, q, pin.Convention.WORLD)
        models_[0].calc(model, data, records[0])
        cholesky.compute(model, data, models_, records, 0.0)
        return cholesky.getOperationalSpaceInertiaMatrix()

    return [products, delassus, by_cholesky]


def fastest(functions: list[Callable[[Array], Array]], q: Array) -> Callable[[Array], Array]:
    """The quickest of several that agree."""
    import timeit

    expected = functions[0](q)
    scale = np.abs(expected).max()
    right = [f for f in functions if np.abs(f(q) - expected).max() < 1e-8 * scale]
    return min(right, key=lambda f: min(timeit.repeat(lambda: f(q), number=200, repeat=5)))
