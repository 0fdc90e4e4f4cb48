"""What all tests share."""

from __future__ import annotations

import functools
import gc
import logging
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from app.session import limit_threads
from engines.build import trial, views
from engines.device.cuda_probe import find_gpus
from engines.identity.photo import open_photo
from rt.compose.kernels.host import HostKernels, find_compiler

ROOT = Path(__file__).parent.parent
ASTRONAUT = ROOT / "assets" / "portraits" / "astronaut.png"
HOPPER = ROOT / "assets" / "portraits" / "hopper.jpg"

limit_threads()


@pytest.fixture(scope="session", autouse=True)
def cache_of_the_tests(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """What is built in a test does not land in the cache of whoever runs them."""
    before = os.environ.get("FFRT_CACHE")
    os.environ["FFRT_CACHE"] = str(tmp_path_factory.mktemp("cache"))
    yield
    if before is None:
        del os.environ["FFRT_CACHE"]
    else:
        os.environ["FFRT_CACHE"] = before


@pytest.fixture(autouse=True)
def no_thread_is_left_behind() -> Iterator[None]:
    """A test that leaves a thread running fails."""
    before = set(threading.enumerate())
    yield
    for thread in set(threading.enumerate()) - before:
        thread.join(timeout=5)
    left = [thread.name for thread in set(threading.enumerate()) - before]
    assert not left, f"threads left behind: {left}"


@pytest.fixture(autouse=True)
def nothing_is_kept() -> Iterator[None]:
    """A program has one window, and loads once and never looks at that again (``app.loading``); here every test is such a program."""
    yield
    if "PySide6.QtWidgets" in sys.modules:
        delete_windows()
    if gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()


@pytest.fixture(autouse=True)
def logging_is_as_before() -> Iterator[None]:
    """A command sets up the logging of its program, to the standard error that is its own."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if handler not in handlers and type(handler) is logging.StreamHandler:
            root.removeHandler(handler)


def delete_windows() -> None:
    """Those that tests have closed. Qt keeps what is connected to them until they are deleted."""
    from PySide6.QtCore import QCoreApplication, QEvent
    from PySide6.QtWidgets import QApplication

    if QApplication.instance() is not None:
        for window in QApplication.topLevelWidgets():
            if window.parent() is None and not window.isVisible():
                window.deleteLater()
        QCoreApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        QCoreApplication.sendPostedEvents()  # what workers had still to hand back


@pytest.fixture(scope="session", autouse=True)
def portraits_are_moved_about_once() -> Iterator[None]:
    """The views that models are tried on are the same every time and take a second; nobody may write into them."""

    @functools.cache
    def kept(*count: int) -> list[views.View]:
        made = views.portrait_views(*count)
        for view in made:
            view.image.flags.writeable = view.points.flags.writeable = False
        return made

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(trial, "portrait_views", kept)
        yield


@pytest.fixture(scope="session")
def shared_data() -> Path:
    """Real photos and clips beside the repository; a test that needs them is skipped where they are not."""
    folder = ROOT.parent / "shared" / "data"
    if not folder.is_dir():
        pytest.skip("no shared/data beside the repository")
    return folder


@pytest.fixture(scope="session")
def astronaut() -> np.ndarray:
    """uint8 [512, 512, 3] BGR, one face."""
    return open_photo(ASTRONAUT)


@pytest.fixture(scope="session")
def kernels(cache_of_the_tests: None) -> HostKernels:
    """The kernels, compiled for the host."""
    if find_compiler() is None:
        pytest.skip("no C++ compiler")
    return HostKernels()


@pytest.fixture(scope="session")
def backwards_kernels(kernels: HostKernels) -> HostKernels:
    """The same, last block and last thread first."""
    return HostKernels(backwards=True)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Where nothing but `gpu` tests was asked for and there must be a GPU, its absence is one sentence and not one for each of them."""
    only_gpu = bool(session.items) and all(item.get_closest_marker("gpu") for item in session.items)
    if only_gpu and os.environ.get("FFRT_REQUIRE_GPU") == "1" and not session.config.option.collectonly:
        count, reason = find_gpus()
        if not count:
            pytest.exit(f"FFRT_REQUIRE_GPU=1, and no NVIDIA GPU can be used here: {reason}", returncode=1)


@pytest.fixture(autouse=True)
def gpu_where_it_is_needed(request: pytest.FixtureRequest) -> None:
    """`gpu` tests are skipped without a GPU, and fail where the machine is said to have one."""
    if request.node.get_closest_marker("gpu") is None:
        return
    count, reason = find_gpus()
    if not count and os.environ.get("FFRT_REQUIRE_GPU") == "1":
        pytest.fail(f"FFRT_REQUIRE_GPU=1 and no GPU: {reason}")
    if not count:
        pytest.skip(f"no GPU: {reason}")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of 1 MB; skipped where none may be mounted."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = shutil.which("mount")
    if (
        sys.platform != "linux"
        or mount is None
        or subprocess.run([mount, "-t", "tmpfs", "-o", "size=1m", "ffrt", folder], check=False, capture_output=True).returncode
    ):
        pytest.skip("no disk may be mounted here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)
