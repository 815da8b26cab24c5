"""Mutants that no test can notice, each with its reason; reviewed by hand."""

EQUIVALENT: dict[str, str] = {
    # model/derived.py, merge_locked: body.parent != parent -> True
    "c45ebc78104f": "where the parent stays, the pose put before `inboard` is the identity.",
    # codegen/cpu/sincos.py: 1e5 -> 2e5
    "2e8d22838634": "the first part of π/2 has 33 bits: both ways have all digits up to 1e6.",
}
