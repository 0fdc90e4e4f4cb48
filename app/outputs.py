"""The outputs of a run: which sink stands for which of the settings, and what changes while the others go on."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from app.settings import OutputSettings
from rt.audio import AudioBus, AudioQueue
from rt.clock import Clock
from rt.line import Line
from rt.sinks.contract import Sink
from rt.sinks.encoders import AUTO
from rt.sinks.null import NullSink
from rt.sinks.recorder import RecorderSink
from rt.sinks.runner import SinkRunner
from rt.sinks.stream import StreamSink
from rt.sinks.virtual_camera import VirtualCameraSink

LET_GO_S = 2.0
"""How long a change waits for an output that was switched off to let go of its device or file; what takes longer ends behind it."""


class OutputKind(StrEnum):
    STREAM = "stream"
    VIRTUAL_CAMERA = "virtual-camera"
    RECORD = "record"
    NULL = "null"


@dataclass(frozen=True, slots=True)
class Output:
    """One place where pictures go. Settings that hold an equal one keep the sink that runs."""

    kind: OutputKind
    place: str = field(default="", repr=False)
    """Address (with its key), device, or file."""
    bitrate_bps: int | None = None
    encoder: str = AUTO
    """See ``rt.sinks.encoders``."""


def outputs(wanted: OutputSettings) -> tuple[Output, ...]:
    """All that ``wanted`` asks for, each once."""
    found = [Output(OutputKind.STREAM, url, wanted.bitrate_bps, wanted.encoder) for url in wanted.streams]
    if wanted.virtual_camera is not None:
        found.append(Output(OutputKind.VIRTUAL_CAMERA, wanted.virtual_camera))
    if wanted.record is not None:
        found.append(Output(OutputKind.RECORD, str(wanted.record), wanted.bitrate_bps, wanted.encoder))
    if wanted.null:
        found.append(Output(OutputKind.NULL))
    return tuple(dict.fromkeys(found))


@dataclass(frozen=True, slots=True)
class _Outlet:
    sink: Sink
    sound: AudioQueue | None


class Outlets:
    """The sinks of one run. One thread at a time, but for ``runners``, which any thread may ask."""

    def __init__(self, wanted: OutputSettings, clock: Clock, audio: AudioBus) -> None:
        """Raises ``SinkError`` or ``OptionError`` for one that cannot be; nothing is opened yet."""
        self._clock = clock
        self._audio = audio
        self._live: dict[Output, _Outlet] = {}  # replaced as a whole
        self._live = self._made(outputs(wanted), wanted.overwrite)
        self._listen(self._live.values())

    @property
    def sinks(self) -> list[Sink]:
        return [outlet.sink for outlet in self._live.values()]

    def runners(self, line: Line) -> dict[Output, SinkRunner]:
        """What runs each."""
        live, running = self._live, {id(runner.sink): runner for runner in line.runners}
        return {output: running[id(outlet.sink)] for output, outlet in live.items() if id(outlet.sink) in running}

    def prepare(self, wanted: OutputSettings) -> Callable[[Line], None]:
        """Makes what ``wanted`` asks for beyond what runs, and returns what switches over to it: others go on untouched.

        Raises as the constructor does; nothing has changed then.
        """
        asked = outputs(wanted)
        new = self._made((output for output in asked if output not in self._live), wanted.overwrite)

        def switch_over(line: Line) -> None:
            gone = {output: outlet for output, outlet in self._live.items() if output not in asked}
            self._live = {output: new.get(output) or self._live[output] for output in asked}
            leaving = [self._take_off(line, outlet) for outlet in gone.values()]
            for runner in leaving:
                if runner is not None:
                    runner.join(LET_GO_S)
            self._listen(new.values())
            for outlet in new.values():
                line.add(outlet.sink)

        return switch_over

    def _listen(self, outlets: Iterable[_Outlet]) -> None:
        for outlet in outlets:
            if outlet.sound is not None:
                self._audio.attach(outlet.sound)

    def _take_off(self, line: Line, outlet: _Outlet) -> SinkRunner | None:
        if outlet.sound is not None:
            self._audio.detach(outlet.sound)
        return line.remove(outlet.sink)

    def _made(self, wanted: Iterable[Output], overwrite: bool) -> dict[Output, _Outlet]:
        taken = {outlet.sink.name for outlet in self._live.values()}
        made: dict[Output, _Outlet] = {}
        for output in wanted:
            made[output] = self._outlet(output, overwrite, taken)
            taken.add(made[output].sink.name)
        return made

    def _outlet(self, output: Output, overwrite: bool, taken: set[str]) -> _Outlet:
        if output.kind is OutputKind.VIRTUAL_CAMERA:
            return _Outlet(VirtualCameraSink(self._clock, output.place or None), None)
        if output.kind is OutputKind.NULL:
            return _Outlet(NullSink(self._clock), None)
        sound, bitrate_bps, encoder = AudioQueue(), output.bitrate_bps, output.encoder
        if output.kind is OutputKind.RECORD:
            file = Path(output.place)
            return _Outlet(RecorderSink(file, sound, bitrate_bps=bitrate_bps, overwrite=overwrite, encoder=encoder), sound)
        name = _free_name(output.place.partition("://")[0].lower(), taken)
        stream = StreamSink(output.place, sound, self._clock, name=name, bitrate_bps=bitrate_bps, encoder=encoder)
        return _Outlet(stream, sound)


def _free_name(scheme: str, taken: set[str]) -> str:
    """``rtmp``, ``rtmp-2``, …"""
    names = (scheme + (f"-{number}" if number > 1 else "") for number in range(1, len(taken) + 2))
    return next(name for name in names if name not in taken)
