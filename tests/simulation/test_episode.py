"""Random forces and conditions in rollouts: against counters in NumPy, and formulas."""

from dataclasses import replace

import numpy as np
import pytest

import linkwise as lw
from linkwise.algebra import mass, v
from linkwise.codegen.stepping.chance import Chance
from linkwise.codegen.stepping.kernel import MotionKernel
from linkwise.codegen.stepping.noise import SCALE, drawn, words
from linkwise.errors import LinkwiseError, ModelError
from linkwise.simulation import ContactPoint, Ground
from linkwise.simulation.episode import Episode, checked_stop
from linkwise.simulation.motion_request import MotionRequest
from linkwise.simulation.rollout_kernel import motion_kernel
from tests.simulation.moving import Given

H = 1e-3


def slider():
    b = lw.Builder("sliders", gravity=(0.0, 0.0, -9.81))
    inertia = lw.SpatialInertia.solid_box(2.0, (0.1, 0.1, 0.1))
    b.body("x", hinge=lw.hinges.Prismatic((1, 0, 0)), inertia=inertia)
    b.body("z", "x", lw.hinges.Prismatic((0, 0, 1)), inertia=inertia)
    return b.build()


def test_philox_is_that_of_its_authors():
    """Known answers of Random123."""
    zero, full = np.zeros(4, np.int64), np.full(4, 0xFFFFFFFF)
    assert [hex(x) for x in words(zero, 0)] == [
        "0x6627e8d5", "0xe169c58d", "0xbc57ac4c", "0x9b00dbd8"
    ]  # fmt: skip
    assert [hex(x) for x in words(full, -1)] == [
        "0x408f276d", "0x41c83b0e", "0xa20bc7c6", "0x6d5451fd"
    ]  # fmt: skip


def test_numbers_are_nearly_normal_and_independent():
    z = drawn(Chance("tau", 3), 7, 100, 400)
    assert abs(z.mean()) < 0.01 and abs(z.std() - 1.0) < 0.01 and np.abs(z).max() < 4.9
    assert abs((z**4).mean() - (3.0 - 1.2 / 8.0)) < 0.05
    flat = z.reshape(-1, 3)
    assert np.abs(np.corrcoef(flat.T) - np.eye(3)).max() < 0.02
    assert abs((z[:, 1:] * z[:, :-1]).mean()) < 0.01 and abs((z[1:] * z[:-1]).mean()) < 0.01
    assert np.abs(drawn(Chance("tau", 3), 8, 100, 400) - z).min(axis=(0, 1)).max() < 1.0
    assert not np.array_equal(drawn(Chance("push:x", 3), 7, 100, 400), z)


@pytest.mark.parametrize("integrator", ["implicit", "rk4"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_forces_are_those_of_the_counters(integrator, dtype):
    """Thirteen motions fill vectors and leave some over; forces follow from the velocities."""
    mech, sigma = slider(), np.array([0.5, 2.0])
    options = {"duration": 0.02, "step": H, "integrator": integrator, "dtype": dtype, "seed": 11}
    q = np.zeros((13, 2))
    runs = lw.rollout(mech, q, noise={"tau": sigma}, **options)
    z = drawn(Chance("tau", 2), 11, 13, 20)
    forces = np.diff(np.asarray(runs.v, float), axis=1) / H * [4.0, 2.0] + [0.0, 2.0 * 9.81]
    atol = 1e-9 if dtype is np.float64 else 3e-3
    np.testing.assert_allclose(forces, sigma * z, rtol=0, atol=atol)
    alone = lw.rollout(mech, q[:3], noise={"tau": sigma}, **options)
    np.testing.assert_allclose(alone.v, runs.v[:3], rtol=1e-5, atol=1e-6)  # whatever the batch


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_numbers_are_the_same_to_the_last_bit(dtype):
    """Of vectors, single motions and NumPy: a kernel that shows its random numbers."""
    mech, chance, size = slider(), Chance("tau", 2, 3, 2), np.dtype(dtype).itemsize
    request = MotionRequest(mech, "euler", itemsize=size, episode=Episode((chance,)))
    plain = request.stepping("cpu")
    shown = replace(plain, shown=((chance.register, 2),))
    kernel = MotionKernel(Given(mech, shown, size))
    seed, q = (1 << 40) + 5, np.zeros((19, 2))
    held = {"tau": np.zeros(2), "noise:tau": np.ones(2)}
    done = kernel(q, q, held, step=H, steps=30, every=1, seed=seed).more[:, 1:]
    z = drawn(chance, seed, 19, 30)
    # one rounding: of the product of an integer and a constant
    expected = np.rint(z / SCALE).astype(dtype) * dtype(SCALE)
    np.testing.assert_array_equal(done, expected)


def test_pushes_act_for_a_while_in_world_axes():
    mech, every = slider(), np.array([3.0, 0.0, 1.0])
    runs = lw.rollout(
        mech, np.zeros(2), duration=0.03, step=H, noise={"push:z": (every, 0.01, 0.004)}, seed=3
    )
    z = drawn(Chance("push:z", 3, 10, 4), 3, 1, 30)[0]
    forces = np.diff(runs.v, axis=0) / H * [4.0, 2.0] + [0.0, 2.0 * 9.81]
    np.testing.assert_allclose(forces, z[:, [0, 2]] * every[[0, 2]], rtol=0, atol=1e-9)
    assert (z[4:10] == 0.0).all() and (z[0] == z[3]).all() and np.abs(z[10]).min() > 0.0


def ball():
    b = lw.Builder("ball")
    inertia = lw.SpatialInertia.solid_sphere(1.0, 0.1)
    return b.body("ball", hinge=lw.hinges.Free(), inertia=inertia).build()


@pytest.mark.parametrize("integrator", ["implicit", "rk4", "variational"])
@pytest.mark.parametrize("every", [1, 7])
def test_a_motion_that_stops_keeps_its_last_state(integrator, every):
    mech, heights = ball(), np.linspace(0.4, 1.2, 9)
    q = np.array([[1.0, 0, 0, 0, 0, 0, z] for z in heights])
    free = lw.rollout(mech, q, duration=0.4, step=1e-2, integrator=integrator)
    stop = {"base_height": (0.3, np.inf)}
    runs = lw.rollout(
        mech, q, duration=0.4, step=1e-2, integrator=integrator, stop=stop, record_every=every
    )
    low = free.q[:, 1:, 6] < 0.3
    last = np.where(low.any(axis=1), low.argmax(axis=1), -1)
    assert (last >= 0).any() and (last < 0).any()
    np.testing.assert_array_equal(runs.failed_step, last)
    np.testing.assert_array_equal(runs.stopped, np.where(last < 0, -1, 0))
    assert runs.conditions == ("base_height",) and "stopped by 'base_height'" in str(runs)
    for i, n in enumerate(last):
        at = np.array([*range(0, 40, every), 40])
        until = at if n < 0 else np.minimum(at, n + 1)
        np.testing.assert_allclose(runs.q[i], free.q[i, until], rtol=0, atol=1e-14)
        np.testing.assert_allclose(runs.v[i], free.v[i, until], rtol=0, atol=1e-14)


def test_conditions_may_be_expressions_and_contacts():
    mech = ball()
    point = ContactPoint("c", "ball", radius=0.1, ground=Ground())
    runs = lw.rollout(
        mech, [1.0, 0, 0, 0, 0, 0, 0.5], duration=0.5, step=H, integrator="implicit",
        contacts=[point], stop={"kinetic": (v.T @ mass @ v, -1.0, 4.0), "v": (-9.0, 9.0)},
    )  # fmt: skip
    assert runs.stopped == 0 and abs(runs.failed_step * H - 2.0 / 9.81) < 2e-3
    assert np.isfinite(runs.q).all() and runs.v[-1, 5] ** 2 > 4.0


def test_the_source_for_a_gpu_has_the_same():
    noise, stop = (Chance("tau", 2, 5, 2),), {"q": (-1.0, 1.0)}
    episode = Episode(noise, checked_stop(slider(), stop, 4))
    request = MotionRequest(slider(), "implicit", itemsize=4, episode=episode)
    source = motion_kernel(request, "cuda").source
    assert "i64 count, i64 seed, i64 first, i64 past)" in source
    assert f"{noise[0].channel}u, 1u, seed)" in source
    assert "while (record < records)" in source


@pytest.mark.parametrize(
    ("options", "text"),
    [
        ({"noise": {"torque": 1.0}}, "torque"),
        ({"noise": {"tau": -1.0}}, "not negative"),
        ({"noise": {"tau": (1.0, 2.5e-3)}}, "multiple of"),
        ({"noise": {"push:z": (1.0, 2e-3, 3e-3)}}, "shorten"),
        ({"noise": {"tau": [1.0, 2.0, 3.0]}}, "rows have 2"),
        ({"stop": {"height": (0.0, 1.0)}}, "height"),
        ({"stop": {"q": (1.0, 0.0)}}, "nothing is between"),
        ({"stop": {"q": 1.0}}, "it is \\(low, high\\)"),
        ({"noise": {"tau": 1.0}, "integrator": "variational"}, "does not act"),
    ],
)
def test_what_does_not_fit_is_refused(options, text):
    with pytest.raises(LinkwiseError, match=text):
        lw.rollout(slider(), np.zeros(2), duration=0.01, step=H, **options)


def test_random_motions_have_no_gradient():
    runs = lw.rollout(slider(), np.zeros(2), duration=0.01, step=H, noise={"tau": 1.0})
    with pytest.raises(ModelError, match="with noise or conditions"):
        runs.gradient(q=np.ones(2))
