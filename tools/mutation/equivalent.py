"""Mutants that no test can notice, each with its reason; reviewed by hand."""

EQUIVALENT: dict[str, str] = {
    # model/derived.py, merge_locked: body.parent != parent -> True
    "c45ebc78104f": "where the parent stays, the pose put before `inboard` is the identity.",
    # model/hinges/plane_hinges.py, PointOnPlane.bias: 0.0 * linear -> 0.0
    "d819ec18366c": "a zero is broadcast to the zeros that stood there.",
    # model/hinges/custom.py, CustomHinge._generic: 0.4 -> 0.8
    "2296c85a1608": "any configuration of no special symmetry serves.",
    # models/macro_mini.py, planar_rpp: 1.0 -> 2.0
    "d22c73a7f35b": "a prismatic hinge takes the direction of its axis alone.",
    # algebra/evidence.py, _pose: -1.5 -> 1.5
    "a4a6adfab1bc": "mechanisms are drawn at random, and frames turned by other angles serve too.",
    # codegen/cpu/sincos.py: 1e5 -> 2e5
    "2e8d22838634": "the first part of π/2 has 33 bits: both ways have all digits up to 1e6.",
}
