"""Mutants that no test can notice, each with its reason; reviewed by hand."""

EQUIVALENT: dict[str, str] = {
    # model/derived.py, merge_locked: body.parent != parent -> True
    "c45ebc78104f": "where the parent stays, the pose put before `inboard` is the identity.",
    # model/hinges/point_on_plane.py, PointOnPlane.bias: 0.0 * linear -> 0.0
    "d819ec18366c": "a zero is broadcast to the zeros that stood there.",
    # model/hinges/custom.py, CustomHinge._generic: 0.4 -> 0.8
    "2296c85a1608": "any configuration of no special symmetry serves.",
    # models/planar_rpp.py, planar_rpp: 1.0 -> 2.0
    "d22c73a7f35b": "a prismatic hinge takes the direction of its axis alone.",
    # algebra/sample.py, _pose: -1.5 -> 1.5
    "a4a6adfab1bc": "mechanisms are drawn at random, and frames turned by other angles serve too.",
    # dynamics/inverse_kinematics/target.py, _log: 1e-300 -> 2e-300
    "73d0c4a5b97a": "it keeps a zero out of a quotient that is taken above 1e-12 alone.",
    # dynamics/inverse_kinematics/solve.py, solve: and -> or
    "1505f05e0eaa": "without `first_only` a target has one sample, done when it is there.",
    # simulation/march.py, March._done: tau @ rate[1] -> (tau).T @ rate[1]
    "7a8796e36e65": "a vector is its own transpose.",
    # codegen/cpu/sincos.py: 1e5 -> 2e5
    "2e8d22838634": "the first part of π/2 has 33 bits: both ways have all digits up to 1e6.",
    # codegen/cpu/llvm_rolled.py, _part_tables: -1 -> 1
    "dd3f2e012eb1": "lanes behind the last wanted column are computed, and never stored.",
}
