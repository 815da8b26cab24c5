"""Episodes of many robots: ends, time limits, resets and seeds, as Gymnasium defines them."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.simulation import VectorEnv

BATCH, LIMIT = 4, 6


@pytest.fixture(scope="module")
def arm():
    return lw.models.pendulum(1)


def simulator(arm, **options):
    return lw.Simulator(arm, batch=BATCH, step=1e-2, integrator="euler", **options)


def reward(sim, action):
    return -(sim["q"][:, 0] ** 2) - 0.1 * action[:, 0] ** 2


def far(sim):
    return abs(sim["q"][:, 0]) > 0.5


def anywhere(rng, mask):
    assert mask.shape == (BATCH,) and mask.any()
    return 0.1 * rng.standard_normal((BATCH, 1)), np.zeros((BATCH, 1))


def environment(arm, **options):
    given = {"reward": reward, "terminated": far, "reset": anywhere, "time_limit": LIMIT}
    return VectorEnv(simulator(arm), **(given | options))


def pushed(env, steps, seed=0):
    """All results of some steps, of which robot 1 is pushed out of its range."""
    seen, _ = env.reset(seed=seed)
    action = np.zeros((BATCH, 1))
    action[1] = 150.0
    return [(seen, None, None, None, {}), *(env.step(action) for _ in range(steps))]


def test_an_episode_ends_and_the_next_step_begins_another(arm):
    results = pushed(environment(arm), LIMIT + 1)
    ends = np.array([x[2] for x in results[1:]])
    late = np.array([x[3] for x in results[1:]])
    first = int(np.argmax(ends[:, 1]))
    assert ends[first, 1] and 0 < first < LIMIT - 1
    assert abs(results[first + 1][0][1, 0]) > 0.5  # the last observation of the episode
    begun = results[first + 2]
    assert abs(begun[0][1, 0]) < 0.5 and begun[0][1, 1] == 0.0 and begun[1][1] == 0.0
    assert not begun[2][1] and not begun[3][1]
    others = [0, 2, 3]
    assert (
        late[LIMIT - 1, others].all() and late[:, others].sum() == 3 and not ends[:, others].any()
    )
    assert (results[LIMIT + 1][0][others, 1] == 0.0).all()  # at rest again
    moving = results[1][0]
    np.testing.assert_allclose(results[1][1][0], -(moving[0, 0] ** 2))


def test_an_episode_can_end_and_begin_in_one_step(arm):
    results = pushed(environment(arm, autoreset="same_step"), LIMIT)
    first = next(i for i, x in enumerate(results) if x[2] is not None and x[2][1])
    seen, _, _, _, info = results[first]
    assert info["_final_obs"].tolist() == [False, True, False, False]
    assert abs(info["final_obs"][1, 0]) > 0.5 > abs(seen[1, 0]) and seen[1, 1] == 0.0
    np.testing.assert_array_equal(info["final_obs"][[0, 2, 3]], seen[[0, 2, 3]])


def test_without_autoreset_the_caller_begins(arm):
    env = environment(arm, autoreset="disabled")
    results = pushed(env, LIMIT + 2)
    assert results[-1][2][1] and results[-1][3][0]
    mask = np.array([True, False, False, False])
    before = results[-1][0]
    seen, _ = env.reset(options={"reset_mask": mask})
    assert seen[0, 1] == 0.0 and np.array_equal(seen[1:], before[1:])


def test_seeds_repeat_episodes_and_results_are_not_reused(arm):
    env = environment(arm)
    one, two, other = (pushed(env, 10, seed) for seed in (3, 3, 4))
    for a, b in zip(one, two, strict=True):
        assert all(np.array_equal(x, y) for x, y in zip(a[:4], b[:4], strict=True))
    assert not np.array_equal(one[0][0], other[0][0])
    assert len({id(x[0].base if x[0].base is not None else x[0]) for x in one}) == len(one)


def test_a_failed_motion_is_terminated(arm):
    action = np.array([[0.0], [np.nan], [0.0], [0.0]])
    seen, gained, ends, _, _ = environment(arm, terminated=None).step(action)
    assert ends.tolist() == [False, True, False, False]
    assert gained[1] == 0.0 and not seen[1].any()


def test_tensors_stay_tensors(arm):
    torch = pytest.importorskip("torch")

    def begin(rng, mask):
        assert isinstance(rng, torch.Generator) and isinstance(mask, torch.Tensor)
        return torch.randn(BATCH, 1, generator=rng), torch.zeros(BATCH, 1)

    sim = simulator(arm, dtype="float32", library="torch")
    env = VectorEnv(
        sim,
        reward=lambda sim, action: -sim["q"][:, 0].square(),
        terminated=lambda sim: sim["v"][:, 0].abs() > 3.0,
        observe=lambda sim: torch.cat([sim["q"].sin(), sim["v"]], dim=1),
        reset=begin,
        command=lambda action: 2.0 * action,
        time_limit=3,
    )
    first, _ = env.reset(seed=1)
    for _ in range(5):
        results = env.step(torch.ones(BATCH, 1))
    assert all(isinstance(x, torch.Tensor) for x in results[:4])
    assert results[0].dtype == torch.float32 and results[2].dtype == torch.bool
    assert torch.equal(env.reset(seed=1)[0], first)
    np.testing.assert_array_equal(sim.inputs["tau"].numpy(), 2.0)


def test_gymnasium_takes_it(arm):
    gym = pytest.importorskip("gymnasium")
    inner = environment(arm, command=lambda a: 5.0 * a)
    env = inner.gymnasium()
    assert isinstance(env, gym.vector.VectorEnv)
    assert env.metadata["autoreset_mode"] is gym.vector.AutoresetMode.NEXT_STEP
    assert env.single_action_space == gym.spaces.Box(-1.0, 1.0, (1,), np.float64)
    counted = gym.wrappers.vector.RecordEpisodeStatistics(env)
    seen, info = counted.reset(seed=5)
    env.action_space.seed(5)
    assert seen in env.observation_space and info == {}
    lengths = list[int]()
    for _ in range(20):
        seen, gained, ends, late, info = counted.step(env.action_space.sample())
        assert seen in env.observation_space and gained.shape == ends.shape == late.shape
        lengths += [int(n) for n in np.asarray(info.get("episode", {}).get("l", [])) if n]
    assert lengths.count(LIMIT) >= BATCH


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"autoreset": "never"}, "autoreset='never'"),
        ({"time_limit": 0}, "time_limit"),
        ({"actions": 3}, "command="),
    ],
)
def test_what_is_no_environment_is_refused(arm, options, message):
    with pytest.raises(lw.LinkwiseError, match=message):
        environment(arm, **options)


def test_functions_of_the_user_return_one_number_for_each_robot(arm):
    with pytest.raises(lw.errors.ShapeError, match="reward"):
        environment(arm, reward=lambda sim, action: 1.0).step(np.zeros((BATCH, 1)))
    with pytest.raises(lw.errors.ShapeError, match="observe"):
        environment(arm, observe=lambda sim: sim.q[0])
    with pytest.raises(lw.LinkwiseError, match="batch=1"):
        VectorEnv(lw.Simulator(arm, integrator="euler"), reward=reward)
