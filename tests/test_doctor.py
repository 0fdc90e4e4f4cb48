"""What the doctor says: facts, and a mend for all that is missing."""

from __future__ import annotations

from pathlib import Path

import pytest

from app import doctor
from app.doctor import State, examine


def test_everything_that_is_missing_has_a_mend() -> None:
    findings = examine()
    assert len({finding.name for finding in findings}) == len(findings)
    assert all(finding.what for finding in findings)
    assert all(finding.mend for finding in findings if finding.state is not State.OK)


def test_the_encoder_that_is_needed_opens_and_one_that_does_not_exist_is_told() -> None:
    assert doctor._encoder("libx264", "mend").state is State.OK
    wrong = doctor._encoder("no_such_encoder", "mend")
    assert (wrong.state, wrong.mend) == (State.WARNING, "mend")


def test_without_ffmpeg_srt_is_a_warning(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert [(f.name, f.state) for f in doctor._srt()] == [("SRT", State.WARNING)]


def test_an_ffmpeg_without_srt_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    program = tmp_path / "ffmpeg"
    program.write_text("#!/bin/sh\necho file http rtmp\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/bin:/usr/bin")
    assert "without" in doctor._srt()[0].what
