"""Devices by name: what is accepted, what is missing, and a session over several."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import HOPPER
from hypothesis import example, given
from hypothesis import strategies as st

from app.doctor import examine
from app.session import LiveSession
from app.settings import InputSettings, OutputSettings, RunSettings, Settings, SourceSettings
from engines.device import cuda_networks
from engines.device.cuda_networks import problem
from engines.device.cuda_probe import current_gpu, find_gpus
from engines.device.host import HostDevice
from engines.device.kinds import ACCEPTED, check_name, open_device, split_names
from engines.errors import DeviceError


@given(st.lists(st.one_of(st.just("host"), st.integers(0, 99).map("cuda:{}".format)), min_size=1, max_size=5))
def test_what_is_meant_is_what_was_given(names: list[str]) -> None:
    assert split_names(" , ".join(names)) == tuple(names)


@given(st.text(max_size=12).filter(lambda text: not re.fullmatch(r"\s*(host|kernels|cuda(-kernels)?(:[0-9]*)?)\s*", text)))
@example("cuda:-1")
@example("host:0")
@example("cuda:٣")
def test_any_other_text_is_told_what_is_accepted(text: str) -> None:
    with pytest.raises(ValueError, match=re.escape(ACCEPTED)):
        check_name(text)


def test_cuda_alone_is_the_first_gpu() -> None:
    assert check_name("cuda") == "cuda:0"


@pytest.mark.parametrize(
    ("gpus", "index", "said"),
    [
        ((0, "No module named 'cuda'"), 0, "the package cuda-python is not installed; run `pip install 'ffrt[gpu]'`"),
        (
            (0, "cudaErrorInsufficientDriver"),
            0,
            "no NVIDIA GPU with a driver was found (cudaErrorInsufficientDriver); install NVIDIA's driver",
        ),
        ((1, ""), 1, "cuda:0 is the only GPU here; choose"),
        ((3, ""), 7, "the GPUs here are cuda:0 to cuda:2; choose"),
        ((3, ""), 2, ""),
    ],
)
def test_one_sentence_names_what_is_missing(gpus: tuple[int, str], index: int, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_networks, "find_gpus", lambda: gpus)
    assert problem(index).startswith(said)
    assert bool(problem(index)) == bool(said)
    if said:
        with pytest.raises(DeviceError, match=rf"^cuda:{index} was asked for, and the|^cuda:{index} was asked for, and (no|cuda)"):
            open_device(f"cuda:{index}")


def test_the_processor_is_always_there() -> None:
    assert isinstance(open_device("host"), HostDevice)


def test_without_cuda_every_thread_means_the_first_gpu() -> None:
    if not find_gpus()[0]:
        assert current_gpu() == 0


@pytest.mark.skipif(find_gpus()[0] > 0, reason="a GPU is here")
def test_the_doctor_and_a_run_name_what_is_missing() -> None:
    (finding,) = (finding for finding in examine() if finding.name == "GPU")
    assert finding.what == f"--device cuda:0 cannot be used: {problem(0)}"
    command = [sys.executable, "-c", "from app.main import main; main()", "--headless", "--null", "--device", "cuda:0"]
    run = subprocess.run(command, check=False, capture_output=True, text=True, cwd=Path(__file__).parent.parent)
    assert run.returncode == 1
    assert run.stderr.strip() == f"ffrt: cuda:0 was asked for, and {problem(0)}"


def test_a_session_over_two_devices_draws_on_both_and_takes_another_look() -> None:
    settings = Settings(
        source=SourceSettings(photos=(HOPPER,)),
        input=InputSettings(spec="synthetic:size=320x180,fps=60"),
        output=OutputSettings(null=True),
        run=RunSettings(devices=("host", "host"), slow_ms={"swap": 25}),  # too slow for one alone
    )
    session = LiveSession(settings)
    session.start()
    try:
        lanes = session.line.lanes
        while not all(lane["frames"] > 3 for lane in lanes.facts().values()):
            assert not session.wait(0.01)
        session.update(settings.model_copy(update={"source": SourceSettings()}))
        done = sum(lane["frames"] for lane in lanes.facts().values())
        while sum(lane["frames"] for lane in lanes.facts().values()) < done + 5:
            assert not session.wait(0.01)
    finally:
        session.close()
    report = session.report()
    assert report["error"] is None
    assert list(report["lanes"]) == ["host", "host 2"]
    assert json.loads(json.dumps(report["settings"]))["run"]["devices"] == ["host", "host"]
    assert sum(lane["frames"] for lane in report["lanes"].values()) == report["frames_out"] + report["dropped"].get("late", 0)
