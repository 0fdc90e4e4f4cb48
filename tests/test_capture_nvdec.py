"""``nvdec:``: what a machine without a GPU says, and that the processor takes over; with one, that both decode alike."""

from __future__ import annotations

import logging
from pathlib import Path

import numpy as np
import pytest
from test_capture_media import Played, numbered, write_clip

from engines.device.cuda_probe import find_gpus
from rt.address import shown
from rt.errors import OptionError, SourceError


@pytest.mark.skipif(find_gpus()[0] > 0, reason="a GPU is here")
def test_a_machine_without_a_gpu_says_so_once_and_shows_the_same_pictures(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write_clip(tmp_path / "clip.mp4", numbered(6), [40 * k for k in range(6)], codec="libx264")
    why = "the processor: the machine refuses its GPU (Operation not permitted); is NVIDIA's driver installed?"
    with caplog.at_level(logging.WARNING):
        played = Played(f"nvdec:{path}", count=11, loop=True)
    plain = Played(path, count=11, loop=True)
    assert [record.message for record in caplog.records] == [f"{path} is decoded by {why}"]
    assert played.said["decoder"] == why
    assert len(played.pictures) == 11
    np.testing.assert_array_equal(played.pictures, plain.pictures)
    assert played.media_ms == plain.media_ms


def test_a_format_that_no_gpu_decodes_is_told(tmp_path: Path) -> None:
    played = Played(f"nvdec:{write_clip(tmp_path / 'clip.mkv', numbered(2), [0, 40])}")
    assert played.said["decoder"] == "the processor: the GPU does not decode this format"


@pytest.mark.parametrize(("spec", "error"), [("nvdec:", OptionError), ("nvdec:/nowhere.mp4", SourceError)])
def test_what_means_nothing_is_told(spec: str, error: type[Exception]) -> None:
    with pytest.raises(error, match=r"nvdec:FILE|/nowhere\.mp4 does not exist"):
        Played(spec)


def test_a_key_and_a_password_in_an_address_are_not_shown() -> None:
    assert shown("nvdec:rtmp://server/app/secret") == "nvdec:rtmp://server/app/***"
    assert shown("nvdec:rtsp://me:secret@camera/1") == "nvdec:" + shown("rtsp://me:secret@camera/1")
    assert "secret" not in shown("nvdec:rtsp://me:secret@camera/1")


@pytest.mark.gpu
def test_the_gpu_decodes_as_the_processor_does(tmp_path: Path) -> None:
    """Both convert the same YUV: a level at most, for rounding."""
    path = write_clip(tmp_path / "clip.mp4", numbered(6, 320, 180), [40 * k for k in range(6)], codec="libx264")
    gpu, processor = Played(f"nvdec:{path}"), Played(path)
    assert gpu.said["decoder"] == "NVDEC"
    for one, other in zip(gpu.pictures, processor.pictures, strict=True):
        assert np.abs(one.astype(int) - other).max() <= 1
