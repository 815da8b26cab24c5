"""What computes a study, and what it will need."""

from __future__ import annotations

import os
import shutil
import threading
import types

import numpy as np
import pytest

import linkwise as lw
from linkwise.errors import ModelError, StudyError, StudyWarning, UnknownNameError
from linkwise.study import Rollouts, Study
from tests.study.test_study import ARM, Q, files, small

pytest.importorskip("pyarrow")
pytest.importorskip("cloudpickle")


@pytest.mark.prove
def test_clusters_and_addresses_are_workers(tmp_path):
    """A cluster object, the address of its scheduler, and a client of it."""
    distributed = pytest.importorskip("distributed")
    options = {"processes": False, "threads_per_worker": 2, "dashboard_address": None}
    cloudpickle = pytest.importorskip("cloudpickle")
    study = cloudpickle.loads(cloudpickle.dumps(small(200)))  # compiled anew, as on workers
    study.run(tmp_path / "threads", chunk=16, progress=False)
    with distributed.LocalCluster(n_workers=1, **options) as cluster:
        address = cluster.scheduler_address
        with distributed.Client(cluster) as client:
            for name, workers in {"a": cluster, "b": address, "c": client}.items():
                results = study.run(tmp_path / name, chunk=16, progress=False, workers=workers)
                assert results.done == 200
                assert files(tmp_path / name) == files(tmp_path / "threads")
            assert client.status == "running"  # it is the caller's


def test_workers_and_chunks_are_checked_even_where_nothing_is_left(tmp_path, monkeypatch):
    from linkwise.study import pool

    study = small(40)
    study.run(tmp_path / "a", chunk=16, progress=False)
    for workers in (0, -1, True, 2.5, "four", "", object(), ["tcp://a:1"]):
        with pytest.raises(ModelError, match=r"workers is .*number of processes from 1 to 4096"):
            study.run(tmp_path / "a", workers=workers, progress=False)
    with pytest.raises(StudyError, match=r"chunk is 7, and .* begun with chunks of 16 cases"):
        study.run(tmp_path / "a", chunk=7, progress=False)
    with pytest.raises(StudyError, match=r"chunk is 32, and .* begun with chunks of 16"):
        study.with_cases(80).run(tmp_path / "a", chunk=32, progress=False)
    assert study.run(tmp_path / "a", chunk=16, progress=False).done == 40
    pytest.importorskip("distributed")
    monkeypatch.setattr(pool, "REACHED", 0.2)
    with pytest.raises(StudyError, match=r"tcp://127\.0\.0\.1:9 cannot be reached"):
        study.run(tmp_path / "b", workers="tcp://127.0.0.1:9", progress=False)


def test_lines_of_many_chunks_wait_for_the_disk_once(tmp_path, monkeypatch):
    from linkwise.study import engine
    from linkwise.study.folder import Chunk, opened

    study, waits = small(1600), list[int]()
    monkeypatch.setattr(os, "fsync", lambda handle: waits.append(handle))

    class AllAtOnce:
        """Workers that finish everything that they have in one moment."""

        size, under_way = 50, ()

        def __init__(self, study, folder, workers):
            self.folder = folder

        def submit(self, indices):
            self.under_way = [*self.under_way, *indices]

        def done(self):
            for k in self.under_way:
                yield k, Chunk(k, *self.folder.bounds(k), {}, 0)
            self.under_way = ()

        def close(self):
            pass

    monkeypatch.setattr(engine, "Threads", AllAtOnce)
    study.run(tmp_path, chunk=16, progress=lambda what: waits.append(-1))
    lines = waits[waits.index(-1) + 1 :]  # after the plan: each pass has one, and tells progress
    assert sum(x >= 0 for x in lines) == 1 and opened(tmp_path).count == 100
    assert sorted(opened(tmp_path).lines()) == list(range(100))


def test_a_plan_is_that_of_the_run(tmp_path):
    study, messages = small(100), list[object]()
    plan = study.plan(chunk=16)
    study.run(tmp_path, chunk=16, progress=messages.append)
    assert isinstance(messages[0], lw.study.Plan) and str(plan).startswith("7 chunks of 16 cases")
    assert (plan.chunks, plan.chunk, plan.disk) == (7, 16, messages[0].disk)
    assert 0.5 < plan.memory / messages[0].memory < 2.0 and plan.memory > 30e6
    assert (study.plan(workers=3).processes, study.plan(workers="tcp://a:1").processes) == (3, 0)


def test_too_little_memory_is_said_before_the_run(tmp_path, monkeypatch):
    from linkwise.study import plan

    monkeypatch.setattr(plan, "_available", lambda: 10_000_000)
    with pytest.warns(StudyWarning, match="MB of memory more, and 10 MB are free"):
        plan.check_memory(plan.Plan(1, 16, 10**12, 0))
    plan.check_memory(plan.Plan(1, 16, 10**12, 0, processes=0))  # of machines elsewhere


def test_searches_compute_parts_of_bounded_size(monkeypatch):
    from linkwise.study.response import response

    study, sizes, evaluate = small(50), list[int](), Study.evaluate
    direct = study.evaluate(study.values())
    name = f"max:v[{ARM.velocity_names[1]}]"
    assert np.ptp(direct.columns[name]) > 0.1

    def counted(self, values, **options):
        sizes.append(len(values["damping"]))
        return evaluate(self, values, **options)

    monkeypatch.setattr(Study, "evaluate", counted)
    monkeypatch.setattr(Study, "chunk_size", lambda self, sample: 16)
    with response(study, name) as column:
        assert np.array_equal(column(study.values()), direct.columns[name])
    assert sizes == [16, 16, 16, 2]
    with pytest.raises(UnknownNameError, match="no column called 'speed'"):
        lw.study.rare_event(study, "speed", above=1.0)


@pytest.mark.prove
def test_searches_on_workers_give_the_same(tmp_path):
    distributed = pytest.importorskip("distributed")
    stats = pytest.importorskip("scipy.stats")
    vary = {"gravity[z]": (-9.0, 0.0), "v[1]": stats.norm(0.0, 1.0)}
    work = Rollouts(ARM, Q, duration=0.05, step=1e-2)
    study = Study(work, vary, keep=["max:v"], cases=40, seed=3)
    name, options = f"max:v[{ARM.velocity_names[1]}]", {"above": 7.0, "cases": 100}
    alone = lw.study.rare_event(study, name, **options)
    local = {"processes": False, "threads_per_worker": 2, "dashboard_address": None}
    with distributed.LocalCluster(n_workers=1, **local) as cluster:
        there = lw.study.rare_event(study, name, **options, workers=cluster)
    assert alone.probability == there.probability and alone.levels == there.levels
    assert 0.0 < alone.probability.value < 0.1 and len(alone.levels) > 1


def test_chunks_take_turns_on_the_gpus_of_a_machine(tmp_path, monkeypatch):
    """Three devices are faked: each chunk is moved in the context of its own."""
    from linkwise.study import chunk
    from linkwise.study.variable import extra

    used, now, evaluate = set[int](), threading.local(), Study.evaluate

    class Device:
        def __init__(self, number):
            self.number = number

        def __enter__(self):
            now.device = self.number

        def __exit__(self, *_):
            now.device = None

    def moved(self, values, **options):
        if getattr(now, "device", None) is not None:
            used.add((options["first"] // 16, now.device))
        return evaluate(self, values, **options)

    small(200).run(tmp_path / "cpu", chunk=16, progress=False)
    runtime = types.SimpleNamespace(getDeviceCount=lambda: 3)
    cuda = types.SimpleNamespace(Device=Device, runtime=runtime)
    cupy = types.SimpleNamespace(cuda=cuda)
    monkeypatch.setattr(
        chunk, "extra", lambda *what, **more: cupy if "cupy" in what else extra(*what, **more)
    )
    monkeypatch.setattr(Study, "on_gpu", True)
    monkeypatch.setattr(Study, "evaluate", moved)
    small(200).run(tmp_path / "gpus", chunk=16, progress=False)
    assert used == {(k, k % 3) for k in range(13)}
    assert files(tmp_path / "gpus") == files(tmp_path / "cpu")


def test_a_folder_that_was_made_anew_is_loaded_anew(tmp_path):
    """Workers that live on know the old one."""
    distributed = pytest.importorskip("distributed")
    study, local = small(64), {"processes": False, "threads_per_worker": 1, "n_workers": 1}
    with distributed.LocalCluster(dashboard_address=None, **local) as cluster:
        for chunk in (8, 16):
            results = study.run(tmp_path / "a", workers=cluster, chunk=chunk, progress=False)
            assert results.done == 64 and results["case"].tolist() == list(range(64))
            assert results.folder.chunk == chunk and results.study.digest == study.digest
            shutil.rmtree(tmp_path / "a")


def test_chunks_of_another_study_are_errors(tmp_path, monkeypatch):
    from linkwise.study import engine
    from linkwise.study.folder import Chunk

    class Stale(engine.Threads):
        """Workers that compute other cases."""

        def done(self):
            for index, _ in list(super().done()):
                a, b = self.folder.bounds(index)
                yield index, Chunk(index, a, b + 1, {}, 0)

    monkeypatch.setattr(engine, "Threads", Stale)
    with pytest.raises(StudyError, match=r"as chunk \d: it has another study"):
        small(64).run(tmp_path / "a", chunk=16, progress=False)
