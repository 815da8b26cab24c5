"""Functions of CasADi and motions optimized with them, beside Pinocchio's support for CasADi.

Run with `python benchmarks/casadi_functions.py`; writes benchmarks/results/casadi_functions.md. It
needs a C compiler and, for wheels of Pinocchio without `pinocchio.casadi`, a C++ compiler: the same
templates are then compiled from the wheel's headers, which takes minutes. Results are compared
first.
"""

import importlib.util
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import casadi as ca
import machine
import numpy as np
import pinocchio as pin

import linkwise as lw
from linkwise.convert.casadi import FLAGS
from linkwise.dynamics.derivatives import FORWARD_DERIVATIVES, INVERSE_DERIVATIVES
from linkwise.dynamics.kernels import written

HERE = Path(__file__).parent
RESULTS = HERE / "results" / "casadi_functions.md"
QUANTITIES = ("forward_dynamics", "inverse_dynamics")
DERIVATIVES = tuple(f"{name}_derivatives" for name in QUANTITIES)
ROUNDS, SOLVES = 400, 4
DEFINED = (
    "BOOST_MPL_LIMIT_LIST_SIZE=30",
    "BOOST_MPL_LIMIT_VECTOR_SIZE=30",
    "BOOST_MPL_CFG_NO_PREPROCESSED_HEADERS",
    "BOOST_FUSION_INVOKE_MAX_ARITY=12",
)
HEAD = """# Functions of CasADi

`seven_dof_arm`, 7 degrees of freedom, float64. *Compiled* and *symbolic* are those of
`lw.convert.to_casadi`. *Pinocchio* is its ABA and RNEA on CasADi's scalars, as `pinocchio.casadi`
traces them; *compiled*, the C code that CasADi generates for it and its derivatives. All C code is
compiled with `{flags}`.

{machine}

Load average {load}.
"""
TABLE = """
## One evaluation

Microseconds, best of {rounds} interleaved calls of CasADi's interface. The *Jacobian* is by q, v
and the last input; the *Hessian* is that of a weighted sum of the results, with the Jacobian.
Differences are the largest to the first column, relative to the largest entry.

| quantity | | {routes} | largest difference |
| --- | --- | {rules} | ---: |
"""
MOTION = """
## A motion nearly as fast as motors allow

The program of `examples/time_optimal_arm.py`: 41 knots, 862 variables, 1127 constraints, inverse
dynamics at 81 points; IPOPT with exact Hessians and the same settings. *Derivatives* is the time
inside CasADi's functions, *solver* the time of IPOPT's call [s], best of {solves} interleaved
ones; *making* that of the function and the solver, compilers included.

| inverse dynamics | iterations | duration found [s] | derivatives | solver | making |
| --- | ---: | ---: | ---: | ---: | ---: |
"""
SWING_UP = """
## A cart swings up its pole

The program of `examples/cart_pole_swing_up.py`: collocation in {intervals} intervals, forward
dynamics at {points} points; the same columns, best of {solves} interleaved solutions. *Effort* is
the cost found.

| forward dynamics | iterations | effort [N² s] | derivatives | solver | making |
| --- | ---: | ---: | ---: | ---: | ---: |
"""
COUNTS = """
## Operations

Scalar operations of `seven_dof_arm` for one state: additions, products and functions, without
reading inputs. *Published algorithm* is that of Carpentier and Mansard (Analytical derivatives of
rigid body dynamics algorithms, RSS 2018) as Pinocchio implements it (`computeABADerivatives`,
`computeRNEADerivatives`), on CasADi's scalars, which drop products with zeros and ones;
*differentiated graph* is CasADi's Jacobian of Pinocchio's ABA and RNEA. All three give the
derivatives by q, v and the last input.

| derivatives of | Linkwise | published algorithm | ratio | differentiated graph | ratio |
| --- | ---: | ---: | ---: | ---: | ---: |
"""


def traced(mech: lw.Mechanism, folder: Path, program: Path | None) -> dict[str, ca.Function]:
    """Pinocchio's algorithms on CasADi's scalars."""
    lw.save(mech, folder / "robot.urdf")
    text = (folder / "robot.urdf").read_text(encoding="utf-8")
    # Of a joint without limits it takes cosine and sine as coordinates.
    limits = '<limit lower="-100" upper="100" effort="1e3" velocity="1e3"/></joint>'
    parts = [
        x.replace("continuous", "revolute").replace("</joint>", limits) if "continuous" in x else x
        for x in re.split(r"(?=<joint )", text)
    ]
    (folder / "robot.urdf").write_text("".join(parts), encoding="utf-8")
    model = pin.buildModelFromUrdf(str(folder / "robot.urdf"))
    model.armature = mech.armature
    assert list(model.names[1:]) == [body.hinge_name for body in mech.bodies]
    if program is None:
        return _traced_here(model)
    model.saveToText(str(folder / "robot.txt"))
    subprocess.run([program, folder / "robot.txt", folder], check=True)
    names = (*QUANTITIES, *DERIVATIVES)
    return {name: ca.Function.load(str(folder / f"{name}.casadi")) for name in names}


def tracer(folder: Path) -> Path | None:
    """A program that traces them; None where Pinocchio does it itself."""
    if importlib.util.find_spec("pinocchio.casadi") is not None:
        return None
    prefix, wheel = Path(pin.__file__).parents[4], Path(ca.__file__).parent
    headers = (prefix / "include", wheel / "include", wheel / "include" / "eigen3")
    libraries = (prefix / "lib", wheel)
    program = folder / "pinocchio_casadi"
    command = ["c++", "-std=c++17", "-O0", "-w", *(f"-D{x}" for x in DEFINED)]
    command += [str(HERE / "pinocchio_casadi.cpp"), "-o", str(program)]
    command += [f"-I{x}" for x in headers] + [f"-L{x}" for x in libraries]
    command += [f"-Wl,-rpath,{x}" for x in libraries]
    command += ["-lpinocchio_default", "-lboost_serialization", "-lcasadi"]
    subprocess.run(command, check=True)
    return program


def _traced_here(model: pin.Model) -> dict[str, ca.Function]:
    import pinocchio.casadi as cpin

    symbols = cpin.Model(model)
    q, v, x = (ca.SX.sym(name, model.nv) for name in "qvx")
    values = {
        "forward_dynamics": [cpin.aba(symbols, symbols.createData(), q, v, x)],
        "inverse_dynamics": [cpin.rnea(symbols, symbols.createData(), q, v, x)],
        DERIVATIVES[0]: cpin.computeABADerivatives(symbols, symbols.createData(), q, v, x),
        DERIVATIVES[1]: cpin.computeRNEADerivatives(symbols, symbols.createData(), q, v, x),
    }
    return {name: ca.Function(name, [q, v, x], list(each)) for name, each in values.items()}


def generated(f: ca.Function, folder: Path) -> ca.Function:
    """The same function from the C code that CasADi writes for it and its derivatives."""
    path = folder / f"{f.name()}_generated"
    code = ca.CodeGenerator(path.name + ".c")
    for each in (f, f.jacobian(), f.reverse(1), f.reverse(1).jacobian()):
        code.add(each)
    code.generate(str(folder) + "/")
    library = path.with_suffix(".so")
    flags = [flag for flag in FLAGS if flag != "-std=c99"]
    subprocess.run(["cc", *flags, f"{path}.c", "-o", str(library), "-lm"], check=True)
    return ca.external(f.name(), str(library))


def caller(f: ca.Function, arguments: list[np.ndarray]) -> tuple[Callable[[], None], list[Any]]:
    """A call without conversions, and where its results are."""
    buffer, run = f.buffer()
    inputs = [np.ascontiguousarray(x) for x in arguments]
    inputs += [np.zeros(f.nnz_in(i)) for i in range(len(inputs), f.n_in())]
    outputs = [np.zeros(f.nnz_out(i)) for i in range(f.n_out())]
    for i, x in enumerate(inputs):
        buffer.set_arg(i, memoryview(x))
    for i, x in enumerate(outputs):
        buffer.set_res(i, memoryview(x))
    return run, [inputs, outputs, buffer]


KINDS = {
    "value": lambda f: f,
    "Jacobian": lambda f: f.jacobian(),
    "Hessian": lambda f: f.reverse(1).jacobian(),
}


def evaluations(routes: dict[str, ca.Function], arm: lw.Mechanism) -> list[tuple[Any, ...]]:
    """Rows of the first table: kind, times by route, and the largest difference."""
    q, v, x, w = np.random.default_rng(0).standard_normal((4, arm.nv))
    rows = list[tuple[Any, ...]]()
    for kind, derived in KINDS.items():
        calls, kept, values = {}, [], []
        given = [q, v, x] + ([np.zeros(0), w] if kind == "Hessian" else [])
        for name, f in routes.items():
            each = derived(f)
            calls[name], arrays = caller(each, given)
            kept.append(arrays)
            full = [y if y.size else 0 for y in given] + [0] * (each.n_in() - len(given))
            result = each.call(full)
            values.append(np.concatenate([r.full().ravel() for r in result]))
        off = max(np.abs(y - values[0]).max() for y in values) / np.abs(values[0]).max()
        assert off < 1e-10, (kind, off)
        best = dict.fromkeys(calls, np.inf)
        for _ in range(ROUNDS):
            for name, call in calls.items():
                begin = time.perf_counter()
                call()
                best[name] = min(best[name], time.perf_counter() - begin)
        rows.append((kind, [1e6 * best[name] for name in routes], off))
    return rows


def motions(routes: dict[str, ca.Function], arm: lw.Mechanism) -> dict[str, tuple[Any, ...]]:
    """By route: iterations, duration found, time of derivatives, of IPOPT's call, of making it."""
    solvers, making = dict[str, Any](), dict[str, float]()
    for route, f in routes.items():
        begin = time.perf_counter()
        made, bounds = example().program(arm, f)
        options = example().OPTIONS | {"record_time": True}
        solvers[route] = ca.nlpsol("solver", "ipopt", made, options)
        making[route] = time.perf_counter() - begin
    best = dict[str, tuple[Any, ...]]()
    for _ in range(SOLVES):
        for route, solver in solvers.items():
            begin = time.perf_counter()
            x = solver(**bounds)["x"].full()[:, 0]
            solving, stats = time.perf_counter() - begin, solver.stats()
            assert stats["success"]
            inside = sum(t for key, t in stats.items() if key.startswith("t_wall_nlp_"))
            row = (stats["iter_count"], float(x[-1]), inside, solving, making[route])
            best[route] = min(best.get(route, row), row, key=lambda each: each[3])
    assert np.ptp([row[1] for row in best.values()]) < 1e-6
    return best


def swing_ups(routes: dict[str, ca.Function]) -> dict[str, tuple[Any, ...]]:
    """By route: iterations, effort found, time of derivatives, of IPOPT, of making the solver."""
    module = example("cart_pole_swing_up")
    module.OPTIONS["record_time"] = True
    best = dict[str, tuple[Any, ...]]()
    h = module.DURATION / module.INTERVALS
    for _ in range(SOLVES):
        for route, f in routes.items():
            begin = time.perf_counter()
            _, u, stats = module.optimum(f)
            seconds = time.perf_counter() - begin
            assert stats["success"]
            squares = u**2
            effort = h / 6 * (squares[:-1:2] + 4 * squares[1::2] + squares[2::2]).sum()
            inside = sum(t for key, t in stats.items() if key.startswith("t_wall_nlp_"))
            solving = stats["t_wall_total"]
            row = (stats["iter_count"], float(effort), inside, solving, seconds - solving)
            best[route] = min(best.get(route, row), row, key=lambda each: each[3])
    efforts = [row[1] for row in best.values()]
    assert np.ptp(efforts) < 1e-6 * max(efforts)
    return best


def operations(f: ca.Function) -> int:
    """Scalar operations of a function of symbols."""
    free = (ca.OP_INPUT, ca.OP_OUTPUT, ca.OP_CONST, ca.OP_PARAMETER)
    return sum(f.instruction_id(i) not in free for i in range(f.n_instructions()))


def counts(arm: lw.Mechanism, symbols: dict[str, ca.Function]) -> str:
    """Rows of the table of operations, after a comparison of values."""
    text, (q, v, x) = "", np.random.default_rng(0).standard_normal((3, arm.nv))
    formulas = {DERIVATIVES[0]: FORWARD_DERIVATIVES, DERIVATIVES[1]: INVERSE_DERIVATIVES}
    for name, formula in formulas.items():
        kernel = written(arm, formula)
        ours, theirs = kernel(q, v, x), symbols[name](q, v, x)
        for a, b in zip(ours.values(), theirs, strict=True):
            a, b = np.triu(a), np.triu(b.full())  # of symmetric matrices it writes one half
            assert np.abs(a - b).max() < 1e-9 * np.abs(a).max()
        jacobian = symbols[name.removesuffix("_derivatives")].jacobian()
        each = sum(kernel.ops.values()), operations(symbols[name]), operations(jacobian)
        text += f"| {name.split('_')[0]} dynamics | {each[0]:,} | {each[1]:,} | "
        text += f"{each[1] / each[0]:.1f} | {each[2]:,} | {each[2] / each[0]:.1f} |\n"
    return text


def example(name: str = "time_optimal_arm") -> Any:
    """The example whose program is solved."""
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, HERE.parent / "examples" / f"{name}.py")
        sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


def main() -> None:
    """Compare, measure and write the tables."""
    arm = lw.models.seven_dof_arm()
    text = HEAD.format(
        flags=" ".join(FLAGS),
        machine=machine.description("linkwise", "casadi", "pin", "numpy"),
        load=machine.load(),
    )
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = tracer(folder)
        symbols = traced(arm, folder, program)
        ways = routes_of(arm, symbols, folder)
        functions, making = dict[str, dict[str, ca.Function]](), dict[str, float]()
        for quantity in QUANTITIES:
            functions[quantity] = {}
            for route, make in ways.items():
                begin = time.perf_counter()
                functions[quantity][route] = make(quantity)
                making[route] = time.perf_counter() - begin
        text += TABLE.format(
            rounds=ROUNDS, routes=" | ".join(ways), rules=" | ".join(["---:"] * len(ways))
        )
        for quantity, routes in functions.items():
            for kind, times, off in evaluations(routes, arm):
                shown = " | ".join(f"{t:.2f}" if t < 10 else f"{t:.0f}" for t in times)
                text += f"| {quantity.replace('_', ' ')} | {kind} | {shown} | {off:.0e} |\n"
        text += MOTION.format(solves=SOLVES)
        for route, row in motions(functions["inverse_dynamics"], arm).items():
            count, T, inside, solving, setting = row
            text += (
                f"| {route} | {count} | {T:.6f} | {inside:.2f} | {solving:.2f} | "
                f"{setting + making[route]:.1f} |\n"
            )
        text += swing_up(folder / "cart", program)
        text += COUNTS + counts(arm, symbols)
    RESULTS.write_text(text, encoding="utf-8")
    print(text)


def routes_of(
    mech: lw.Mechanism, symbols: dict[str, ca.Function], folder: Path
) -> dict[str, Callable[[str], ca.Function]]:
    """Ways to make a function."""
    to_casadi = lw.convert.to_casadi
    return {
        "compiled": lambda quantity: to_casadi(quantity, mech, name="f", compiled=True),
        "symbolic": lambda quantity: to_casadi(quantity, mech, name="f"),
        "Pinocchio": lambda quantity: symbols[quantity],
        "Pinocchio, compiled": lambda quantity: generated(symbols[quantity], folder),
    }


def swing_up(folder: Path, program: Path | None) -> str:
    """The section about the cart and its pole."""
    folder.mkdir()
    module = example("cart_pole_swing_up")
    cart = module.cart_pole()
    ways = routes_of(cart, traced(cart, folder, program), folder)
    functions, making = dict[str, ca.Function](), dict[str, float]()
    for route, make in ways.items():
        begin = time.perf_counter()
        functions[route] = make("forward_dynamics")
        making[route] = time.perf_counter() - begin
    n = module.INTERVALS
    text = SWING_UP.format(intervals=n, points=2 * n + 1, solves=SOLVES)
    for route, (count, effort, inside, solving, setting) in swing_ups(functions).items():
        text += f"| {route} | {count} | {effort:.4f} | {inside:.3f} | {solving:.3f} | "
        text += f"{setting + making[route]:.2f} |\n"
    return text


if __name__ == "__main__":
    main()
