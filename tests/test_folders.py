"""Folders that the environment names: a place, or one sentence that says what is wrong with it."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from app.doctor import State, examine
from app.folders import config_folder, data_folder
from app.gui.consent import consent_file
from engines.errors import FolderError
from engines.folders import cache_folder, chosen_folder, written_path
from engines.store.shelf import default_folder

NOBODY = "~nobody_who_is_here"

RUN = "import sys; from app.main import main; sys.argv = ['ffrt', *sys.argv[1:]]; main()"


def ffrt(*words: str, folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", RUN, *words],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT), **environment},
        capture_output=True,
        text=True,
        timeout=100,
    )


@pytest.mark.parametrize("folder", [config_folder, data_folder, consent_file])
def test_the_home_of_nobody_is_no_folder_for_settings(folder) -> None:
    with pytest.raises(FolderError, match=rf"FFRT_CONFIG='{NOBODY}/x'.*no folder's path; give one"):
        folder({"FFRT_CONFIG": f"{NOBODY}/x"})


@pytest.mark.parametrize(("folder", "variable"), [(cache_folder, "FFRT_CACHE"), (default_folder, "FFRT_MODELS")])
def test_the_home_of_nobody_is_no_folder(folder, variable, monkeypatch) -> None:
    monkeypatch.setenv(variable, NOBODY)
    with pytest.raises(FolderError, match=variable):
        folder()


def test_a_user_without_a_home_is_told_what_to_set() -> None:
    """What platformdirs gives then: `~` as it stands."""
    with pytest.raises(FolderError, match="no home folder of this user is known; set HOME to one, or FFRT_CACHE to"):
        chosen_folder("FFRT_CACHE", lambda: Path("~/.cache/ffrt"), {})


def test_the_user_s_own_home_is_meant_by_a_tilde(monkeypatch) -> None:
    monkeypatch.setenv("HOME", "/somewhere")
    assert cache_folder({"FFRT_CACHE": "~/ffrt"}) == Path("/somewhere/ffrt")
    assert written_path("~/my face.onnx") == Path("/somewhere/my face.onnx")


@given(st.text(min_size=1))
def test_whatever_the_environment_says_is_a_folder_or_a_sentence(said: str) -> None:
    with suppress(FolderError):
        assert cache_folder({"FFRT_CACHE": said}) == Path(said).expanduser()
    assert isinstance(written_path(said), Path)


@pytest.mark.parametrize(
    ("words", "variable"),
    [
        (("models", "list"), "FFRT_MODELS"),
        (("engines", "list"), "FFRT_CACHE"),
        (("presets", "list"), "FFRT_CONFIG"),
        (("--headless", "--null", "--seconds", "1", "--swapper", "inswapper_128"), "FFRT_MODELS"),
    ],
    ids=lambda value: value if isinstance(value, str) else " ".join(value),
)
def test_a_command_says_it_in_one_sentence_and_makes_nothing(words: tuple[str, ...], variable: str, tmp_path: Path) -> None:
    done = ffrt(*words, folder=tmp_path, **{variable: NOBODY})
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert f"{variable}='{NOBODY}'" in done.stderr
    assert not list(tmp_path.iterdir())


def test_a_model_s_path_may_name_nobody_s_home(tmp_path: Path) -> None:
    done = ffrt("--headless", "--null", "--seconds", "1", "--swapper", f"{NOBODY}/x.onnx", folder=tmp_path)
    assert done.returncode != 0
    assert "Traceback" not in done.stderr
    assert "x.onnx" in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="Windows lets nobody delete a folder that is in use")
@pytest.mark.parametrize("words", [("doctor",), ("models", "list"), ("engines", "list"), ("--headless", "--null", "--seconds", "0.5")])
def test_every_command_works_in_a_folder_that_is_gone(words: tuple[str, ...], tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"import os; os.rmdir({str(gone)!r}); {RUN}"
    done = subprocess.run(
        [sys.executable, "-c", script, *words],
        cwd=gone,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert "Traceback" not in done.stderr
    if words == ("doctor",):
        assert "this folder is gone" in done.stdout
    else:
        assert done.returncode == 0, done.stderr


def test_the_doctor_looks_at_the_folders(monkeypatch, tmp_path: Path) -> None:
    monkeypatch.setenv("FFRT_CACHE", NOBODY)
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("FFRT_MODELS", str(tmp_path / "file" / "models"))
    troubles = {finding.name: finding for finding in examine() if finding.name.startswith("folder")}
    assert set(troubles) == {"folder for cache", "folder for models"}
    assert all(finding.state is State.MISSING for finding in troubles.values())
    assert "is no folder" in troubles["folder for models"].what


REPORTS = {
    "-": "--json prints the report",
    "{tmp}": "which is a folder; give a file, as in",
    "/dev/null": "which is no file",
    "/proc/version/x": "cannot be written",
}


@pytest.mark.parametrize("words", [("--headless", "--null", "--seconds", "9"), ("bench", "parts"), ("bench", "start")], ids=" ".join)
@pytest.mark.parametrize("given", REPORTS)
def test_a_report_that_cannot_be_written_is_told_before_the_run(words: tuple[str, ...], given: str, tmp_path: Path) -> None:
    done = ffrt(*words, f"--report={given.replace('{tmp}', str(tmp_path))}", folder=tmp_path)
    assert done.returncode == 2
    assert REPORTS[given] in done.stderr
    assert not done.stdout
    assert not list(tmp_path.iterdir())
