"""Models and engines as jobs: what `ffrt models pull` and `ffrt engines build` do, beside everything else."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from app.jobs import Job, Jobs
from app.models import Models
from engines.store.stopping import Stop


def fetch_model(jobs: Jobs, name: str, fetched: Callable[[], None], models: Models | None = None, mirrors: Sequence[str] = ()) -> Job:
    """Pulls ``name``. ``fetched``: called once it is here, on the job's thread. ``mirrors``: beside those of the environment."""
    stop = Stop()

    def work(job: Job) -> None:
        from engines.store.pull import mirrors_from_environment  # here, where nobody waits for what it loads

        (models or Models()).pull(name, (*mirrors, *mirrors_from_environment()), job.report, stop)
        fetched()

    return jobs.run(name, work, stop.now, unit="B")


def build_engine(jobs: Jobs, model: str, precision: str = "fp16") -> Job:
    """Builds the engine of ``model`` for the cards of its runtime."""
    cancelled = threading.Event()

    def work(job: Job) -> None:
        from app.engine_builds import Request, build  # here, where nobody waits for what it loads
        from engines.build.child import Progress

        def report(progress: Progress) -> None:
            job.report(progress.done, progress.total, progress.what)

        build(Request(model, precision=precision), report, cancelled.is_set)

    return jobs.run(model, work, cancelled.set)
