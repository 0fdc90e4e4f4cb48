"""Which encoder a sink takes: the GPU's where it opens, else the processor's, and that is said; also when one breaks while live."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import get_args

import av
import numpy as np
import pytest
from av.container import OutputContainer
from test_sink_stream import VIDEO, Publisher

from app.outputs import Output, OutputKind, outputs
from app.settings import EncoderName, OutputSettings
from engines.device.cuda_probe import find_gpus
from rt.audio import AudioQueue
from rt.clock import MonotonicClock
from rt.errors import OptionError, SinkError, SinkRetryError
from rt.frame import Frame, Place, VideoFormat
from rt.sinks.encode import Coding, EncoderError, Tracks
from rt.sinks.encoders import AUTO, EncoderChoice, check_encoder, encoders, refusal
from rt.sinks.recorder import RecorderSink
from rt.sinks.stream import StreamSink

SMALL = VideoFormat(320, 180, 30)

NVENC = [name for name in encoders if name.endswith("_nvenc")]

without_a_gpu = pytest.mark.skipif(find_gpus()[0] > 0, reason="a GPU is here")


def options_of(name: str) -> list[Mapping[str, str]]:
    known = encoders[name]
    return [known.live, {**known.file, **known.quality}]


def frames(count: int, video: VideoFormat = SMALL) -> Iterable[Frame]:
    for number in range(count):
        pixels = np.full((video.height, video.width, 3), 40 + 5 * number, np.uint8)
        yield Frame(pixels, number, number * video.period_ns)


# --- names and options ---


def test_the_settings_name_the_encoders_that_there_are() -> None:
    assert set(get_args(EncoderName)) == {AUTO, *encoders}
    assert check_encoder(AUTO) == AUTO
    with pytest.raises(OptionError, match="'h265' was given; choose auto, h264_nvenc"):
        check_encoder("h265")


@pytest.mark.parametrize("name", [name for name in encoders if not name.endswith("_nvenc")])
def test_the_processor_s_encoders_open_with_what_they_are_given(name: str) -> None:
    for options in options_of(name):
        assert refusal(name, SMALL, options) == ""


@without_a_gpu
@pytest.mark.parametrize("name", NVENC)
def test_the_gpu_s_encoders_are_in_this_ffmpeg_and_know_every_option(name: str) -> None:
    """FFmpeg reads options before it looks for a GPU: one that it knows is refused for a value of nonsense, one that it does not know
    is not."""
    for options in options_of(name):
        assert refusal(name, SMALL, options) == "the machine refuses its GPU; is NVIDIA's driver installed?"
        for option in options:
            assert "does not open" in refusal(name, SMALL, {**options, option: "nonsense"}), f"{name} has no option {option}"
    assert "does not open" not in refusal(name, SMALL, {"no-such-option": "nonsense"}), "what this test relies on"


@pytest.mark.parametrize("name", list(encoders))
def test_no_picture_waits_for_later_ones(name: str) -> None:
    for options in options_of(name):
        if name in NVENC:
            assert (options["bf"], options["rc-lookahead"], options["delay"], options["zerolatency"]) == ("0", "0", "0", "1")
        else:
            assert options["tune"] == "zerolatency"


# --- the choice ---


class Machine:
    """Refuses what it is told to."""

    def __init__(self, **refused: str) -> None:
        self.refused = refused
        self.asked: list[tuple[str, VideoFormat]] = []

    def __call__(self, name: str, video: VideoFormat, options: Mapping[str, str], place: Place | None = None) -> str:
        self.asked.append((name, video))
        return self.refused.get(name, "")


@pytest.mark.parametrize(
    ("asked", "refused", "chosen"),
    [
        (AUTO, (), "h264_nvenc"),
        (AUTO, ("h264_nvenc",), "libx264"),
        ("libx264", (), "libx264"),
        ("h264_nvenc", (), "h264_nvenc"),
        ("h264_nvenc", ("h264_nvenc",), "libx264"),
        ("hevc_nvenc", (), "hevc_nvenc"),
        ("hevc_nvenc", ("hevc_nvenc",), "libx265"),
        ("libx265", ("h264_nvenc", "hevc_nvenc"), "libx265"),
    ],
)
def test_the_first_that_opens_is_taken(asked: str, refused: tuple[str, ...], chosen: str, caplog: pytest.LogCaptureFixture) -> None:
    machine = Machine(**dict.fromkeys(refused, "no"))
    choice = EncoderChoice(asked, machine)
    with caplog.at_level(logging.WARNING):
        assert choice.choose(SMALL, lambda encoder: encoder.live) is encoders[chosen]
    asked_for = {name for name, _ in machine.asked}
    said = [f"pictures are encoded by {chosen} (not {asked}: no)"] if asked in refused else []
    assert choice.statistics() == {"encoder": chosen, "encoders_refused": dict.fromkeys(set(refused) & asked_for, "no")}
    assert [record.message for record in caplog.records] == said
    assert all(video == SMALL for _, video in machine.asked), "it is opened at the size that is meant"


def test_what_refused_is_asked_again_and_what_broke_is_not() -> None:
    machine = Machine(h264_nvenc="no session is free")
    choice = EncoderChoice(AUTO, machine)
    assert choice.choose(SMALL, lambda encoder: encoder.live) is encoders["libx264"]
    machine.refused.clear()
    assert choice.choose(SMALL, lambda encoder: encoder.live) is encoders["h264_nvenc"]
    assert isinstance(choice.error("cannot stream", OSError(5, "the GPU is gone")), SinkRetryError)
    assert choice.choose(SMALL, lambda encoder: encoder.live) is encoders["libx264"]
    assert choice.rejected == {"h264_nvenc": "it broke (the GPU is gone)"}
    failed = choice.error("cannot stream", OSError(5, "why ever"))
    assert not isinstance(failed, SinkRetryError), "there is none after it"


# --- the sinks ---


@without_a_gpu
@pytest.mark.parametrize(("encoder", "codec"), [(AUTO, "h264"), ("h264_nvenc", "h264"), ("hevc_nvenc", "hevc"), ("libx265", "hevc")])
def test_a_recording_of_a_machine_that_refuses_is_whole(tmp_path: Path, encoder: str, codec: str) -> None:
    path = tmp_path / "clip.mp4"
    sink = RecorderSink(path, AudioQueue(1), encoder=encoder)
    sink.open(SMALL)
    for frame in frames(12):
        sink.write(frame)
    sink.close()
    with av.open(str(path)) as container:
        pictures = [picture.to_ndarray(format="bgr24") for picture in container.decode(video=0)]
        assert container.streams.video[0].codec_context.name == codec
        assert not container.streams.video[0].codec_context.has_b_frames
    assert len(pictures) == 12
    np.testing.assert_allclose([picture.mean() for picture in pictures], 40 + 5 * np.arange(12), atol=4)
    said = sink.statistics()
    assert said["encoder"] == {"h264": "libx264", "hevc": "libx265"}[codec]
    assert said["encoders_refused"] == ({} if encoder == "libx265" else {NVENC[codec == "hevc"]: refusal("h264_nvenc", SMALL, {})})


@pytest.mark.parametrize("encoder", ["libx265", "hevc_nvenc"])
def test_hevc_does_not_go_over_rtmp(encoder: str) -> None:
    with pytest.raises(OptionError, match=f"{encoder} was asked for, and few servers take HEVC over RTMP"):
        StreamSink("rtmp://127.0.0.1/live/x", AudioQueue(1), MonotonicClock(), encoder=encoder)
    StreamSink("udp://127.0.0.1:9", AudioQueue(1), MonotonicClock(), encoder=encoder)


def test_outputs_are_told_their_encoder() -> None:
    wanted = OutputSettings(streams=("udp://127.0.0.1:9",), record=Path("a.mp4"), encoder="libx265", null=True)
    assert [output.encoder for output in outputs(wanted)] == ["libx265", "libx265", AUTO]
    assert outputs(wanted)[1] == Output(OutputKind.RECORD, "a.mp4", None, "libx265")


@without_a_gpu
def test_an_encoder_that_does_not_open_after_all_is_left_out_at_the_next_try() -> None:
    """It opened when it was asked, and another program was faster."""
    publisher = Publisher("udp://127.0.0.1:9")
    publisher.sink._choice = EncoderChoice("h264_nvenc", Machine())
    with pytest.raises(SinkRetryError, match=r"with h264_nvenc, it broke \(Operation not permitted\); the next try takes libx264"):
        publisher.sink.open(VIDEO)
    publisher.sink.close()
    publisher.sink.open(VIDEO)
    publisher.write(range(3))
    publisher.sink.close()
    assert publisher.sink.statistics()["encoder"] == "libx264"


class Breaking(Tracks):
    """The processor's encoder in the place of a GPU's, which fails at the third picture."""

    def __init__(self, container: OutputContainer, video: VideoFormat, coding: Coding) -> None:
        super().__init__(container, video, replace(coding, encoder="libx264", options=dict(encoders["libx264"].file)))
        self._left = 2

    def picture(self, picture: av.VideoFrame, pts: int) -> None:
        if not self._left:
            raise EncoderError(5, "the GPU is gone")
        self._left -= 1
        super().picture(picture, pts)


def test_a_stream_whose_encoder_breaks_while_live_goes_on_with_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    publisher = Publisher("udp://127.0.0.1:9")
    publisher.sink._choice = EncoderChoice("h264_nvenc", Machine())
    with monkeypatch.context() as patched:
        patched.setattr("rt.sinks.stream.Tracks", Breaking)
        publisher.sink.open(VIDEO)
        with pytest.raises(SinkRetryError, match=r"cannot stream to udp://127\.0\.0\.1:9 with h264_nvenc, it broke \(the GPU is gone\)"):
            publisher.write(range(3))
        publisher.sink.close()
    publisher.sink.open(VIDEO)
    publisher.write(range(3, 6))
    publisher.sink.close()
    said = publisher.sink.statistics()
    assert (said["encoder"], said["encoders_refused"]) == ("libx264", {"h264_nvenc": "it broke (the GPU is gone)"})


def test_a_recording_whose_encoder_breaks_ends_and_stays_playable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One file holds one kind of picture, so there is no going on in it."""
    path = tmp_path / "clip.mkv"
    sink = RecorderSink(path, AudioQueue(1), encoder="h264_nvenc")
    sink._choice = EncoderChoice("h264_nvenc", Machine())
    monkeypatch.setattr("rt.sinks.recorder.Tracks", Breaking)
    sink.open(SMALL)
    first, second, third = frames(3)
    sink.write(first)
    sink.write(second)
    with pytest.raises(SinkError, match=r"the GPU is gone") as raised:
        sink.write(third)
    assert not isinstance(raised.value, SinkRetryError)
    sink.close()
    with av.open(str(path)) as container:
        assert len(list(container.decode(video=0))) == 2


@pytest.mark.gpu
@pytest.mark.parametrize("name", NVENC)
def test_a_gpu_encodes_what_it_is_given(tmp_path: Path, name: str) -> None:
    path = tmp_path / "clip.mp4"
    sink = RecorderSink(path, AudioQueue(1), encoder=name)
    sink.open(VideoFormat(640, 360, 30))
    for frame in frames(30, VideoFormat(640, 360, 30)):
        sink.write(frame)
    sink.close()
    assert sink.statistics()["encoder"] == name, sink.statistics()["encoders_refused"]
    with av.open(str(path)) as container:
        means = [picture.to_ndarray(format="bgr24").mean() for picture in container.decode(video=0)]
    np.testing.assert_allclose(means, 40 + 5 * np.arange(30), atol=4)
