"""The sink that a window looks at: makes a picture of the size that the window shows, so that a slow window holds nobody.

A frame's slot goes back as soon as its pixels were converted. That is one pass over them (0.1 ms at 720p), as much as a plain copy
takes, and it is the sink's thread that does it: neither the line nor the window's event loop. Keeping the slot until the window has
painted would save that pass and take two more slots from the ring, one of them for as long as the window likes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np

from rt.delivery import NOTHING, Delivery
from rt.frame import Frame, Place, TrackedFace, VideoFormat

BEFORES_MAX = 4
"""Pictures kept from before the work: of the frames that may be between the lane and this sink, and one."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the window shows at the moment; replaced as a whole."""

    visible: bool = True
    """False makes nothing at all: the window is hidden."""
    before: bool = False
    """The picture as it was filmed, too. Costs the lane one copy a frame, so it is off until somebody looks."""
    fit: tuple[int, int] | None = None
    """Width and height, pixels of the screen, that the picture is scaled to lie within; None leaves its size."""
    mirrored: bool = False


@dataclass(frozen=True, slots=True)
class Picture:
    """One frame as a window gets it. Its pixels are valid until the next ``PreviewSink.take``."""

    pixels: np.ndarray
    """uint8 [h, w, 4] BGRX, scaled and mirrored as was wanted."""
    before: np.ndarray | None
    """The same frame as it was filmed, where that was wanted."""
    mirrored: bool
    """Whether left and right are exchanged in ``pixels`` and ``before``; ``faces`` never are."""
    size: tuple[int, int]
    """Width and height of the frame: ``faces`` lie in its pixels."""
    faces: tuple[TrackedFace, ...]
    seq: int
    captured_ns: int


class _Canvas:
    """Memory for one picture, used again and again."""

    def __init__(self) -> None:
        self._memory: dict[str, np.ndarray] = {}

    def paint(self, pixels: np.ndarray, wanted: Wanted) -> np.ndarray:
        """``pixels``: uint8 [H, W, 3] BGR. Returns uint8 [h, w, 4], valid until the next call."""
        height, width = pixels.shape[:2]
        made = cv2.cvtColor(pixels, cv2.COLOR_BGR2BGRA, dst=self._room("whole", (width, height)))
        if wanted.fit is not None:
            made = self._scale(made, fitted_size((width, height), wanted.fit))
        if wanted.mirrored:
            made = cv2.flip(made, 1, dst=self._room("turned", (made.shape[1], made.shape[0])))
        return made

    def _scale(self, made: np.ndarray, size: tuple[int, int]) -> np.ndarray:
        """Halves first: OpenCV is quick at that and slow at other areas, and a line or two of four would be left out without."""
        number = 0
        while made.shape[1] >= 2 * size[0] and made.shape[0] >= 2 * size[1]:
            number += 1
            half = (made.shape[1] // 2, made.shape[0] // 2)
            made = cv2.resize(made, half, dst=self._room(f"half {number}", half), interpolation=cv2.INTER_AREA)
        if (made.shape[1], made.shape[0]) == size:
            return made
        return cv2.resize(made, size, dst=self._room("scaled", size), interpolation=cv2.INTER_LINEAR)

    def _room(self, name: str, size: tuple[int, int]) -> np.ndarray:
        width, height = size
        kept = self._memory.get(name)
        if kept is None or kept.shape[:2] != (height, width):
            kept = self._memory[name] = np.empty((height, width, 4), np.uint8)
        return kept


class _Page:
    """A picture with and without the work."""

    def __init__(self) -> None:
        self.after, self.before = _Canvas(), _Canvas()
        self.picture: Picture | None = None


class PreviewSink:
    """A sink, and the line's witness where the picture before the work is wanted too. ``take`` is any one thread's."""

    name = "preview"
    lossless = False

    def __init__(self) -> None:
        self.wanted = Wanted()
        """Replaced by the window, read at the start of every frame."""
        self.on_picture: Callable[[], None] = _nobody
        """Called on the sink's thread when there is something to take and there was nothing before. Must return at once."""
        self._lock = threading.Lock()
        self._free = [_Page(), _Page(), _Page()]  # guarded by _lock, as is all below: one is painted, one is newest, one is taken
        self._newest: _Page | None = None
        self._taken: _Page | None = None
        self._befores: dict[int, np.ndarray] = {}
        self._spare: list[np.ndarray] = []
        self._made = 0

    def take(self) -> Picture | None:
        """The newest picture that was not taken yet, or None. What was taken before is given back. Never waits for the line."""
        with self._lock:
            if self._newest is None:
                return None
            if self._taken is not None:
                self._free.append(self._taken)
            self._taken, self._newest = self._newest, None
            return self._taken.picture

    def clear(self) -> None:
        """Gives everything back; the thread that takes, once it shows nothing any more."""
        with self._lock:
            self._free += [page for page in (self._taken, self._newest) if page is not None]
            self._taken = self._newest = None

    # --- witness: the track thread ---

    def before(self, frame: Frame) -> None:
        wanted = self.wanted
        if not (wanted.before and wanted.visible):
            return
        with self._lock:
            while len(self._befores) >= BEFORES_MAX:  # of frames that never came here
                self._spare.append(self._befores.pop(min(self._befores)))
            copy = self._spare.pop() if self._spare else np.empty_like(frame.pixels)
        if copy.shape != frame.pixels.shape:
            copy = np.empty_like(frame.pixels)
        np.copyto(copy, frame.pixels)
        with self._lock:
            self._befores[frame.seq] = copy

    def after(self, frame: Frame) -> None:
        """Nothing: the sink gets it."""

    def wants(self, place: Place | None) -> Delivery:
        """As ``rt.delivery.Selective``: pixels, while the window is looked at."""
        return Delivery() if self.wanted.visible else NOTHING

    # --- sink: the runner's thread ---

    def open(self, video: VideoFormat) -> None:
        """Nothing to open."""

    def write(self, frame: Frame) -> None:
        wanted = self.wanted
        if not wanted.visible:
            return
        with self._lock:
            page = self._free.pop()
            before = self._befores.pop(frame.seq, None)
        self._paint(page, frame, before, wanted)
        with self._lock:
            if before is not None:
                self._spare.append(before)
            replaced, self._newest = self._newest, page
            if replaced is not None:
                self._free.append(replaced)
            self._made += 1
        if replaced is None:
            self.on_picture()

    def deadline_ns(self) -> int | None:
        return None

    def idle(self, now_ns: int) -> None:
        """Never called."""

    def close(self) -> None:
        with self._lock:
            self._befores.clear()
            self._spare.clear()

    def statistics(self) -> dict[str, Any]:
        with self._lock:
            return {"pictures": self._made}

    def _paint(self, page: _Page, frame: Frame, before: np.ndarray | None, wanted: Wanted) -> None:
        page.picture = Picture(
            page.after.paint(frame.pixels, wanted),
            None if before is None else page.before.paint(before, wanted),
            wanted.mirrored,
            (frame.width, frame.height),
            frame.faces,
            frame.seq,
            frame.captured_ns,
        )


def fitted_size(size: tuple[int, int], within: tuple[int, int]) -> tuple[int, int]:
    """Width and height of ``size`` scaled to lie within ``within``, in whole pixels, at least one each."""
    scale = min(within[0] / size[0], within[1] / size[1])
    return max(1, round(size[0] * scale)), max(1, round(size[1] * scale))


def _nobody() -> None:
    """Nobody waits for pictures."""
