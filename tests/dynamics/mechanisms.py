"""As in `tests.cases`."""

from tests.cases import (
    TREES as TREES,
    close as close,
    state as state,
    states as states,
    tree as tree,
)
