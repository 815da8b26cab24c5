"""A plugin for pytest: tries many mutants on tests that were collected once.

For each mutant a child is forked, in which the code of the mutant's function is replaced; the
nearest tests run first. $MUTANTS is a file of JSON with a list of mutants, each with its `module`,
the `path` of its file, `scope`, `text` of the file with the mistake, the test to begin with,
`first`, if one is known, the `names` that near tests contain with weights, for how many seconds of
the processor tests are started, `before` its function was entered and `after` that, the most
seconds, the folder of its kernel cache, and of one that is `plain`. What came out is written
beside it, one line of JSON for each.

Whatever was made while tests were collected was made without the mistake: a survivor is tried again
by itself.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import resource
import time
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest
from tools.mutation.nearest_first import spoken
from tools.mutation.operators import ENTERED

_failed: list[str] = []
_fit: set[str] = set()


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Notes the first test that fails."""
    if report.failed:
        _failed.append(report.nodeid)


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> bool:
    """Instead of running the tests once: some of them, for each mutant."""
    message = Path(os.environ["MUTANTS"])
    actual = {item.nodeid: spoken(item) for item in session.items}
    with message.with_suffix(".out").open("w", encoding="utf-8") as out:
        for mutant in json.loads(message.read_text(encoding="utf-8")):
            result = _forked(session, mutant, actual)
            while result["verdict"] == "killed" and _unfit(session, mutant, result["by"]):
                result = _forked(session, mutant, actual)
            out.write(json.dumps({"key": mutant["key"], **result}) + "\n")
            out.flush()
    return True


def _unfit(session: pytest.Session, mutant: dict[str, Any], test: str) -> bool:
    """Whether a test fails without any mistake too, here and now: it is left out from then on.

    Kernels made with the mistake are not used: on the disk nothing has changed, so neither have
    their keys.
    """
    alone = [item for item in session.items if item.nodeid == test]
    if not alone or test in _fit:
        return False
    result = _forked(
        session, {**mutant, "text": None, "kernels": mutant["plain"]}, {test: frozenset()}, alone
    )
    if result["verdict"] == "survived":
        _fit.add(test)
        return False
    session.items.remove(alone[0])
    return True


def _forked(
    session: pytest.Session,
    mutant: dict[str, Any],
    result: dict[str, frozenset[str]],
    items: list[pytest.Item] | None = None,
) -> dict[str, Any]:
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        try:
            answer = _tried(items or session.items, mutant, result)
        except BaseException as error:
            answer = {"verdict": "alone", "by": repr(error)}
        os.write(write, json.dumps(answer).encode())
        os._exit(0)
    os.close(write)
    text = b""
    while part := os.read(read, 65536):
        text += part
    os.close(read)
    _, status = os.waitpid(child, 0)
    if not text:
        return {"verdict": "killed", "by": f"the process ends ({status})"}
    return json.loads(text)


def _tried(
    items: list[pytest.Item], mutant: dict[str, Any], result: dict[str, frozenset[str]]
) -> dict[str, Any]:
    most = mutant["most"]
    resource.setrlimit(resource.RLIMIT_CPU, (most, most + 1))
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 1), os.dup2(null, 2)
    os.environ["LINKWISE_CACHE"] = mutant["kernels"]
    if mutant["text"] is not None and not _replaced(mutant):
        return {"verdict": "alone", "by": "its code cannot be replaced"}
    entered, ran = None, 0
    ordered = _nearest_first(items, mutant, result)
    for item, after in zip(ordered, [*ordered[1:], None], strict=True):
        item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
        ran += 1
        used = time.process_time()
        if _failed:
            return {"verdict": "killed", "by": _failed[0], "used": used}
        if entered is None and ENTERED in os.environ:
            entered = used
        if used > (mutant["before"] if entered is None else entered + mutant["after"]):
            break
    by = f"{ran} passed" + ("" if entered is not None else ", none enters its function")
    return {"verdict": "survived", "entered": entered is not None, "by": by, "together": True}


def _nearest_first(
    items: list[pytest.Item], mutant: dict[str, Any], result: dict[str, frozenset[str]]
) -> list[pytest.Item]:
    """Of one function, further parameters count less."""
    seen, ranks = dict[str, int](), dict[str, float]()
    for item in items:
        name = item.nodeid.split("[")[0]
        seen[name] = seen.get(name, -1) + 1
        score = sum(w for word, w in mutant["names"].items() if word in result[item.nodeid])
        ranks[item.nodeid] = -score * 0.7 ** (seen[name] // 4)
    return sorted(items, key=lambda item: (item.nodeid != mutant["first"], ranks[item.nodeid]))


def _replaced(mutant: dict[str, Any]) -> bool:
    """Puts the code with the mistake into the functions of that name; False where there is none."""
    importlib.import_module(mutant["module"])
    outer = mutant["scope"].split(".<locals>")[0]
    kernel = compile(mutant["text"], mutant["path"], "exec", dont_inherit=True)
    new = [code for code in _codes(kernel) if code.co_qualname == outer]
    old = [f for f in gc.get_objects() if isinstance(f, FunctionType)]
    places = [
        (f, code)
        for code in new
        for f in old
        if f.__code__.co_filename == mutant["path"]
        and f.__code__.co_qualname == outer
        and f.__code__.co_firstlineno == code.co_firstlineno
    ]
    for f, code in places:
        f.__code__ = code
    return bool(places)


def _codes(code: CodeType) -> list[CodeType]:
    inner = [x for x in code.co_consts if isinstance(x, CodeType)]
    return [code, *(y for x in inner for y in _codes(x))]
