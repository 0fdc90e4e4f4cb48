"""A camera that was unplugged, an address that went off the air: waited for, opened again, and something shown meanwhile.

Sinks show the last picture they had until another comes. It has a face in it, so a picture stands in that has none: colours of the
last one, so coarse that nobody is known by them (``rt.compose.lost.LastGood`` puts the last good one there where freezing was chosen).
"""

from __future__ import annotations

import logging
import threading
from dataclasses import dataclass, replace
from typing import Any

import cv2
import numpy as np

from rt.audio import AudioBus
from rt.capture.contract import Adjustable, Decodes, Grab, Source
from rt.clock import Clock
from rt.errors import SourceError, SourceLostError
from rt.frame import PlanarPicture, VideoFormat

log = logging.getLogger(__name__)

WAITS_S = (0.5, 1, 2, 4, 8)
"""From one try to the next; the last is repeated. Short at first: a plug that was touched is back at once."""

COARSE_ROWS = 18
"""Of what stands in for a picture: a face that fills it has some six of them, which tells nobody who it is."""

OUTAGES_KEPT = 100
"""In the report; a cable that is loose breaks off more often in an evening than anybody reads."""


@dataclass(frozen=True, slots=True)
class Outage:
    """A time without pictures."""

    begun_ns: int
    why: str
    """What began it."""
    now: str
    """What the last try met."""
    tries: int = 0
    retry_at_ns: int = 0
    """When the next try begins; of what is over already, when the last one did."""
    back_ns: int | None = None
    """When pictures came again; None while they do not."""


class ReconnectingSource:
    """Any live source. What raises ``SourceLostError`` is closed and opened again until it is back."""

    live = True

    def __init__(self, source: Source, clock: Clock, patience_s: float | None = None) -> None:
        """``source`` finds the same device where it is opened again. ``patience_s``: how long it is waited for; None is for ever."""
        self._source = source
        self._clock = clock
        self._patience_s = patience_s
        self._stop = threading.Event()
        self._audio = AudioBus()
        self._video: VideoFormat | None = None
        """What the line was promised, whatever comes back."""
        self._granted: VideoFormat | None = None
        self._coarse = np.zeros((COARSE_ROWS, COARSE_ROWS, 3), np.uint8)
        self._stand_in = np.empty((0, 0, 3), np.uint8)
        self._is_whole = False  # whether what was fetched last is the source's own picture, as large as it gave it
        self._stands_in = False  # what the last grab was, as the next two
        self._last_ns = 0
        self._media_ns = 0
        self._offset_ns = 0  # of the source's own presentation times, since it was opened again
        self._opened_ns = 0
        self._outages: tuple[Outage, ...] = ()  # replaced as a whole: any thread reads it

    # --- Source ---

    def open(self, stop: threading.Event, audio: AudioBus) -> VideoFormat:
        """The first time. What cannot be opened raises, as without this."""
        self._stop, self._audio = stop, audio
        self._video = self._granted = self._source.open(stop, audio)
        self._last_ns = self._opened_ns = self._clock.now_ns()
        return self._video

    def grab(self) -> Grab | None:
        while not self._stop.is_set():
            try:
                if self._is_out and not self._try_again():
                    return self._wait_for_stand_in()
                grab = self._source.grab()
            except SourceLostError as error:
                self._lose(str(error))
                continue
            if grab is not None and self._is_out:
                self._come_back(grab)
            return self._noted(grab)
        return None

    def retrieve(self, into: np.ndarray) -> None:
        self._is_whole = False
        if not self._stands_in:
            try:
                self._is_whole = self._fetch(into)
                self._coarse = into[:: max(1, len(into) // COARSE_ROWS), :: max(1, len(into) // COARSE_ROWS)].copy()
                return
            except SourceLostError as error:
                self._lose(str(error))
        np.copyto(into, self._stand_in)

    def planar(self) -> PlanarPicture | None:
        """As ``rt.capture.contract.Decodes``; what stands in, and what was made to fit, was not decoded so."""
        return self._source.planar() if self._is_whole and isinstance(self._source, Decodes) else None

    def close(self) -> None:
        self._source.close()

    def describe(self) -> dict[str, Any]:
        """Beside what the source says: ``lost`` while it is away, ``outages`` of the whole run; seconds since it was opened."""
        facts, outages = self._source.describe(), self._outages
        if not outages:
            return facts
        told: list[dict[str, Any]] = [
            {"at_s": self._since_open_s(one.begun_ns), "back_s": None if one.back_ns is None else self._since_open_s(one.back_ns)}
            | {"why": one.why, "tries": one.tries}
            for one in outages
        ]
        now = outages[-1]
        if now.back_ns is None:
            wait_s = max(0.0, (now.retry_at_ns - self._clock.now_ns()) / 1e9)
            facts = {**facts, "lost": {"why": now.now, "retry_in_s": round(wait_s, 1), "tries": now.tries}}
        return {**facts, "outages": told}

    def expose(self, exposure_ms: float | None) -> None:
        """See ``rt.capture.contract.Adjustable``; asked for again when it is back. Any thread."""
        if isinstance(self._source, Adjustable):
            self._source.expose(exposure_ms)

    # --- capture thread ---

    @property
    def _is_out(self) -> bool:
        return bool(self._outages) and self._outages[-1].back_ns is None

    def _lose(self, why: str) -> None:
        self._source.close()
        now_ns = self._clock.now_ns()
        if not self._is_out:
            assert self._video is not None
            self._outages = (*self._outages[1 - OUTAGES_KEPT :], Outage(now_ns, why, why))
            self._stand_in = standing_in(self._coarse, self._video)
        self._postpone(why, now_ns)

    def _postpone(self, why: str, now_ns: int) -> None:
        """Until the next try, or for good: raises ``SourceError`` where nobody waits any longer."""
        out = self._outages[-1]
        wait_s = WAITS_S[min(out.tries, len(WAITS_S) - 1)]
        if self._patience_s is not None:
            left_s = self._patience_s - (now_ns - out.begun_ns) / 1e9
            if left_s <= 0:
                raise SourceError(f"{why}; it did not come back within {self._patience_s:g} s")
            wait_s = min(wait_s, left_s)
        self._outages = (*self._outages[:-1], replace(out, now=why, retry_at_ns=now_ns + round(wait_s * 1e9)))
        facts = {"event": "input-retrying" if out.tries else "input-lost", "why": why, "retry_in_s": wait_s, "tries": out.tries}
        log.log(logging.INFO if out.tries else logging.WARNING, "%s; trying again in %g s", why, wait_s, extra={"facts": facts})

    def _try_again(self) -> bool:
        """Whether the time had come, and it could be opened."""
        out = self._outages[-1]
        if self._clock.now_ns() < out.retry_at_ns:
            return False
        self._outages = (*self._outages[:-1], replace(out, tries=out.tries + 1))
        try:
            self._granted = self._source.open(self._stop, self._audio)
        except SourceError as error:
            self._source.close()
            if not self._stop.is_set():
                self._postpone(str(error), self._clock.now_ns())
            return False
        return True

    def _come_back(self, first: Grab) -> None:
        out = self._outages[-1]
        back_ns = self._clock.now_ns()
        self._outages = (*self._outages[:-1], replace(out, back_ns=back_ns))
        self._offset_ns = self._media_ns + max(0, first.captured_ns - self._last_ns) - first.media_ns
        away_s = round((back_ns - out.begun_ns) / 1e9, 1)
        facts = {"event": "input-back", "away_s": away_s, "tries": out.tries, "granted": str(self._granted)}
        log.warning("the input is back after %g s", away_s, extra={"facts": facts})

    def _wait_for_stand_in(self) -> Grab | None:
        """At the pace of the pictures that are missing, and not behind: opening may have taken seconds."""
        assert self._video is not None
        due_ns = max(self._last_ns + self._video.period_ns, self._clock.now_ns())
        if not self._clock.wait_until(due_ns, self._stop):
            return None
        self._stands_in = True
        self._media_ns += due_ns - self._last_ns
        self._last_ns = due_ns
        return Grab(due_ns, self._media_ns, stands_in=True)

    def _noted(self, grab: Grab | None) -> Grab | None:
        self._stands_in = False
        if grab is None:
            return None
        self._last_ns = grab.captured_ns
        self._media_ns = grab.media_ns + self._offset_ns
        return replace(grab, media_ns=self._media_ns) if self._offset_ns else grab

    def _fetch(self, into: np.ndarray) -> bool:
        """Whether the source's picture is there as it is."""
        granted, wanted = self._granted, self._video
        assert granted is not None
        assert wanted is not None
        if (granted.width, granted.height) == (wanted.width, wanted.height):
            self._source.retrieve(into)
            return True
        picture = np.empty((granted.height, granted.width, 3), np.uint8)
        self._source.retrieve(picture)
        fill(picture, into)
        return False

    def _since_open_s(self, at_ns: int) -> float:
        return round((at_ns - self._opened_ns) / 1e9, 3)


def standing_in(coarse: np.ndarray, video: VideoFormat) -> np.ndarray:
    """uint8 [H, W, 3] BGR, as large as ``video``: ``coarse`` (a few pixels a side) smoothed, and darker, so that it is seen to be none."""
    soft = cv2.GaussianBlur(coarse, (0, 0), 1.5)
    large = cv2.resize(soft, (video.width, video.height), interpolation=cv2.INTER_LINEAR)
    return np.asarray(cv2.convertScaleAbs(large, alpha=0.5))


def fill(picture: np.ndarray, into: np.ndarray) -> None:
    """Writes the middle of ``picture`` into ``into``, so large that it is filled; both uint8 [H, W, 3]."""
    height, width = picture.shape[:2]
    scale = min(width / into.shape[1], height / into.shape[0])
    across, down = max(1, round(into.shape[1] * scale)), max(1, round(into.shape[0] * scale))
    left, top = (width - across) // 2, (height - down) // 2
    cv2.resize(picture[top : top + down, left : left + across], into.shape[1::-1], dst=into, interpolation=cv2.INTER_LINEAR)
