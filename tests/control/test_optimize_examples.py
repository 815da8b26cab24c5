"""Examples of optimised motions: each asserts what it claims."""

import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).parents[2] / "examples"


@pytest.mark.prove
@pytest.mark.parametrize("name", ["quadruped_jump", "reach_within_limits", "two_arms_carry"])
def test_example(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    picture = tmp_path / "picture.png"
    arguments = [name]
    if importlib.util.find_spec("matplotlib") is not None:
        arguments.append(str(picture))
    monkeypatch.setattr("sys.argv", arguments)
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.main()
    assert len(arguments) == 1 or picture.stat().st_size > 10_000
