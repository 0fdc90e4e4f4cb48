"""From Settings to the parts of a line: the one place that knows which part has which name."""

from __future__ import annotations

from app.errors import UsageError
from app.settings import Settings
from engines.detect import detectors
from engines.detect.contract import Detector
from engines.identity.source import load_source
from engines.landmarks.facemesh import FaceMesh
from engines.swap import swappers
from rt.audio import AudioBus
from rt.capture import CaptureRequest, open_spec
from rt.capture.contract import Source
from rt.clock import Clock
from rt.options import Look
from rt.sinks.contract import Sink
from rt.sinks.null import NullSink
from rt.sinks.recorder import RecorderSink
from rt.sinks.stream import StreamSink
from rt.sinks.virtual_camera import VirtualCameraSink
from rt.track.options import TrackOptions
from rt.track.tracker import Tracker

DETECTOR = "blazeface-full"
"""Finds most faces from 60 pixels on in a 720p picture; the short-range one needs about 200."""


def detector() -> Detector:
    """The embedded one. Each thread that detects has its own."""
    return detectors[DETECTOR]()


def look(settings: Settings, detector: Detector, mesh: FaceMesh) -> Look:
    """The swapper and the identity it is to draw; nothing is drawn without a source photo."""
    chosen = settings.look
    if not settings.source.photos:
        return Look(opacity=chosen.opacity, on_lost=chosen.on_lost)
    try:
        swapper = swappers[chosen.swapper]()
    except KeyError as error:
        raise UsageError(error.args[0]) from None
    swapper.warm_up()
    faces = load_source(settings.source.photos, settings.source.face, detector, mesh)
    return Look(swapper, swapper.prepare(faces), chosen.opacity, chosen.on_lost)


def source(settings: Settings, clock: Clock) -> Source:
    """Raises ``OptionError`` for a SPEC that means nothing; nothing is opened yet."""
    wanted = settings.input
    request = CaptureRequest(wanted.width, wanted.height, wanted.fps, wanted.fourcc, wanted.loop)
    return open_spec(wanted.spec, request, clock)


def track_options(settings: Settings) -> TrackOptions:
    chosen = settings.look
    return TrackOptions(
        max_faces=chosen.max_faces,
        detect_every=chosen.detect_every,
        hold_frames=chosen.hold_frames,
        smoothing=chosen.smoothing,
    )


def tracker(settings: Settings, detector: Detector, mesh: FaceMesh) -> Tracker:
    return Tracker(detector, mesh, track_options(settings))


def sinks(settings: Settings, clock: Clock, audio: AudioBus) -> list[Sink]:
    """Every output that was asked for. Raises ``SinkError`` or ``OptionError`` for one that cannot be."""
    wanted = settings.output
    built: list[Sink] = []
    for number, url in enumerate(wanted.streams, 1):
        name = url.partition("://")[0].lower() + (f"-{number}" if number > 1 else "")
        built.append(StreamSink(url, audio.subscribe(), clock, name=name, bitrate_bps=wanted.bitrate_bps))
    if wanted.virtual_camera is not None:
        built.append(VirtualCameraSink(clock, wanted.virtual_camera or None))
    if wanted.record is not None:
        built.append(RecorderSink(wanted.record, audio.subscribe(), overwrite=wanted.overwrite, bitrate_bps=wanted.bitrate_bps))
    if wanted.null:
        built.append(NullSink(clock))
    return built
