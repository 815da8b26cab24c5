"""Mutants that no test can notice, each with its reason; reviewed by hand."""

EQUIVALENT: dict[str, str] = {
    # model/derived.py, merge_locked: body.parent != parent -> True
}
