"""A lane: one device's share of the line. The steps of a frame on it are track → swap → enhance → hide.

Steps are given to the device's streams and ordered by events alone, so the same code drives threads on the host and streams
on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from engines.device.contract import Device
from engines.enhance.contract import BatchEnhancer, Enhancer
from engines.swap.contract import BatchSwapper, Patch, Swapper
from rt.clock import Clock
from rt.compose import host
from rt.compose.lay import lay
from rt.compose.lost import Treatment, treatment
from rt.frame import FaceState, Frame, TrackedFace
from rt.metrics import Metrics
from rt.options import Look, OnLost


class FaceTracker(Protocol):
    """What a lane needs of a tracker (``rt.track.tracker.Tracker``)."""

    def update(self, image: np.ndarray, captured_ns: int) -> tuple[TrackedFace, ...]:
        """The faces of this picture (uint8 [H, W, 3] BGR), called in the order of capture."""
        ...


class Witness(Protocol):
    """Sees each frame before and after the work; called on the lane's compute stream. Must copy what it keeps."""

    def before(self, frame: Frame) -> None: ...

    def after(self, frame: Frame) -> None: ...


class Lane:
    """Takes one frame at a time. ``process`` and ``close`` belong to one thread."""

    def __init__(
        self,
        device: Device,
        tracker: FaceTracker,
        metrics: Metrics,
        clock: Clock,
        *,
        slow_ms: Mapping[str, float] | None = None,
        witness: Witness | None = None,
    ) -> None:
        """``slow_ms``: stage name → milliseconds that the stage is made to take longer, to see the line under overload."""
        self._tracker = tracker
        self._metrics = metrics
        self._clock = clock
        self._slow_ns = {name: round(ms * 1e6) for name, ms in (slow_ms or {}).items()}
        self._witness = witness
        self._streams = {name: device.stream(name) for name in ("upload", "compute", "download")}
        self._known: frozenset[int] = frozenset()  # compute stream: ids of the frame before
        self._last_good: Frame | None = None  # compute stream: retained for the freeze policy

    def process(self, frame: Frame, look: Look) -> None:
        """Works on ``frame`` in place and returns when its pixels may be read. Raises what a step raised."""
        upload, compute, download = self._streams.values()
        upload.enqueue(self._look_at, frame)
        compute.wait(upload.record())
        compute.enqueue(self._step, "track", self._track, frame)
        compute.enqueue(self._step, "swap", self._swap, frame, look)
        if look.enhancer is not None:
            compute.enqueue(self._step, "enhance", self._enhance, frame, look)
        compute.enqueue(self._step, "hide", self._hide, frame, look)
        download.wait(compute.record())
        download.enqueue(self._show, frame)
        download.record().synchronize()

    def close(self) -> None:
        """Ends the streams. May be called twice."""
        for stream in self._streams.values():
            stream.close()
        self._keep_for_freeze(None)

    # --- steps, each on the stream it was given to ---

    def _step(self, name: str, work: Callable[..., None], frame: Frame, *args: object) -> None:
        begin_ns = self._clock.now_ns()
        work(frame, *args)
        self._linger(begin_ns, self._slow_ns.get(name, 0))
        frame.marks[name] = self._clock.now_ns() - begin_ns

    def _linger(self, begin_ns: int, extra_ns: int) -> None:
        until_ns = self._clock.now_ns() + extra_ns
        while extra_ns and self._clock.now_ns() < until_ns:
            pass  # busy on purpose: a slow stage keeps its core

    def _look_at(self, frame: Frame) -> None:
        if self._witness is not None:
            self._witness.before(frame)

    def _show(self, frame: Frame) -> None:
        if self._witness is not None:
            self._witness.after(frame)

    def _track(self, frame: Frame) -> None:
        frame.faces = self._tracker.update(frame.pixels, frame.captured_ns)
        self._metrics.count("lost_frames", any(face.state is not FaceState.SEEN for face in frame.faces))
        self._metrics.high_water("faces", max((face.id for face in frame.faces), default=0))

    def _swap(self, frame: Frame, look: Look) -> None:
        if look.swapper is None or look.identity is None:
            return
        faces = self._faces(frame, look, Treatment.SWAP)
        for face, patch in zip(faces, _patches(look.swapper, frame, faces, look.identity), strict=True):
            if patch is None:  # too small to be drawn, or all but outside: it is not to be shown either
                host.blur_face(frame.pixels, face.points)
            else:
                lay(frame.pixels, face.points, patch, look, look.opacity)
        present = frozenset(face.id for face in frame.faces)
        for gone in self._known - present:
            look.swapper.forget(gone)
        self._known = present

    def _enhance(self, frame: Frame, look: Look) -> None:
        if look.swapper is None or look.identity is None or look.enhancer is None:
            return
        faces = self._faces(frame, look, Treatment.SWAP)
        for face, patch in zip(faces, _enhanced(look.enhancer, frame, faces), strict=True):
            if patch is not None:
                lay(frame.pixels, face.points, patch, look, look.enhancer_opacity)

    def _hide(self, frame: Frame, look: Look) -> None:
        if look.swapper is None or look.identity is None:
            return
        frozen = self._faces(frame, look, Treatment.FREEZE)
        if frozen and self._last_good is not None:
            np.copyto(frame.pixels, self._last_good.pixels)
            frame.repeated = True
            return
        for face in [*frozen, *self._faces(frame, look, Treatment.BLUR)]:
            host.blur_face(frame.pixels, face.points)
        if look.on_lost is OnLost.FREEZE and frame.faces:
            self._keep_for_freeze(frame)

    @staticmethod
    def _faces(frame: Frame, look: Look, what: Treatment) -> list[TrackedFace]:
        return [face for face in frame.faces if treatment(face.state, look.on_lost) is what]

    def _keep_for_freeze(self, frame: Frame | None) -> None:
        if frame is not None and frame.slot is not None:
            frame.slot.retain()
        if self._last_good is not None and self._last_good.slot is not None:
            self._last_good.slot.release()
        self._last_good = frame


def _patches(swapper: Swapper, frame: Frame, faces: Sequence[TrackedFace], identity: Any) -> Iterable[Patch | None]:
    """One for each face: all at once where that is cheaper, else made when it is asked for, since it is valid until the next."""
    if len(faces) > 1 and isinstance(swapper, BatchSwapper):
        return swapper.swap_all(frame.pixels, [face.points for face in faces], identity)
    return (swapper.swap(frame.pixels, face.points, identity, face.id, frame.captured_ns) for face in faces)


def _enhanced(enhancer: Enhancer, frame: Frame, faces: Sequence[TrackedFace]) -> Iterable[Patch | None]:
    """The same of an enhancer."""
    if len(faces) > 1 and isinstance(enhancer, BatchEnhancer):
        return enhancer.enhance_all(frame.pixels, [face.points for face in faces])
    return (enhancer.enhance(frame.pixels, face.points) for face in faces)
