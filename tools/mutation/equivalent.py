"""Mutants that no test can notice, each with its reason; reviewed by hand."""

EQUIVALENT: dict[str, str] = {
    # model/derived.py, merge_locked: body.parent != parent -> True
    "c45ebc78104f": "where the parent stays, the pose put before `inboard` is the identity.",
}
