"""Settings shared by all tests.

Hypothesis profiles: the default one, and `nightly` with many more examples, chosen by
`HYPOTHESIS_PROFILE=nightly make test`; `quick` is that of `make mutants`. Time limits for single
examples are off: a loaded machine is no failure of the code.
"""

import os

import pytest
from hypothesis import settings


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="write the golden files anew instead"
    )


settings.register_profile("usual", deadline=None, print_blob=True)
settings.register_profile("nightly", deadline=None, print_blob=True, max_examples=2000)
settings.register_profile("quick", deadline=None, print_blob=True, max_examples=15)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))
