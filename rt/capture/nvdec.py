"""``nvdec:FILE``: a file or an address that an NVIDIA GPU decodes, by FFmpeg's own way to it. Not run on a GPU yet.

Each picture comes to the host as well, for whoever finds faces in it; a lane that composes on the GPU takes it where it was decoded.
"""

from __future__ import annotations

import logging
from typing import Any

import av
import av.error
from av.codec.hwaccel import HWAccel

from rt.capture import SourceKind, sources
from rt.capture.media import MediaSource
from rt.capture.request import CaptureRequest
from rt.clock import Clock
from rt.errors import OptionError
from rt.frame import PlanarPicture

log = logging.getLogger(__name__)

PREFIX = "nvdec:"

HELD_MAX = 16
"""Pictures that the line may hold beside those that the decoder needs: a slot of the ring each."""


class NvdecSource(MediaSource):
    """Where the machine refuses its GPU, or the GPU the format, the processor decodes, and ``describe`` says so."""

    def __init__(self, spec: str, request: CaptureRequest, clock: Clock) -> None:
        place = spec[len(PREFIX) :]
        if not place:
            raise OptionError(f"input {spec!r} was given; write {PREFIX}FILE, or {PREFIX} and an address")
        super().__init__(place, request, clock)
        self._refusal = ""
        self._takes_format = True

    def describe(self) -> dict[str, Any]:
        why = self._refusal or ("" if self._takes_format else "the GPU does not decode this format")
        return {**super().describe(), "decoder": f"the processor: {why}" if why else "NVDEC"}

    def planar(self) -> PlanarPicture | None:
        """See ``rt.capture.contract.Decodes``."""
        return self._planar() if self._frame is not None and self._frame.format.name == "cuda" else None

    def _set_threads(self) -> None:
        super()._set_threads()
        if not self._refusal:
            self._container.streams.video[0].codec_context.options = {"extra_hw_frames": str(HELD_MAX)}

    def _open_media(self, place: Any, **how: Any) -> Any:
        if self._refusal:
            return super()._open_media(place, **how)
        try:
            container = super()._open_media(place, hwaccel=HWAccel("cuda", allow_software_fallback=True, is_hw_owned=True), **how)
        except av.error.PermissionError as error:  # what FFmpeg says where there is no GPU, or no driver
            self._refusal = f"the machine refuses its GPU ({error.strerror}); is NVIDIA's driver installed?"
            log.warning("%s is decoded by %s", self._shown, self.describe()["decoder"])
            return super()._open_media(place, **how)  # and a file that may not be read is refused once more
        self._takes_format = not container.streams.video or container.streams.video[0].codec_context.is_hwaccel
        return container


sources.register("nvdec")(SourceKind(lambda spec: spec.startswith(PREFIX), NvdecSource))
