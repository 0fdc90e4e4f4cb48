"""A lane: one device's share of the line. The steps of a frame on it are track → swap → enhance → hide.

Steps are given to the device's streams and ordered by events alone, so the same code drives threads on the host and streams
on a GPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import Any, Protocol

import numpy as np

from engines.device.contract import Device, Stream
from engines.enhance.contract import BatchEnhancer, Enhancer
from engines.mask.contract import Cover
from engines.swap.contract import BatchSwapper, Patch
from rt.clock import Clock
from rt.compose import host
from rt.compose.lay import covers_of, lay
from rt.compose.layers import Layers
from rt.compose.lost import Treatment, treatments
from rt.frame import FaceState, Frame, TrackedFace
from rt.metrics import Metrics
from rt.options import Look, OnLost
from rt.ring import Slot


class FaceTracker(Protocol):
    """What a lane needs of a tracker (``rt.track.tracker.Tracker``), with or without ``rt.track.people.People`` before it."""

    patience: int
    """Set between two updates, see ``Look.patience``."""

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
        self._device = device
        self._images: dict[Slot, Any] = {}  # the thread of process: where the device works on a slot's picture
        self._known: frozenset[int] = frozenset()  # compute stream: ids of the frame before
        self._layers = Layers()  # compute stream
        self._worn: list[list[TrackedFace]] = []  # compute stream: faces of this frame that were swapped, in the order of that
        self._covers: dict[int, tuple[Cover, ...]] = {}  # compute stream: what the masks said of each
        self._last_good: tuple[Frame, Any] | None = None  # compute stream: retained for the freeze policy
        self._streams: dict[str, Stream] = {}
        try:
            for name in ("upload", "compute", "download"):
                self._streams[name] = device.stream(name)
        except BaseException:  # raised on: no stream is left behind
            self.close()
            raise

    def slot_memory(self, shape: tuple[int, int, int]) -> np.ndarray:
        """What a ring's slots are best made of for this device. Any thread, before the first frame."""
        return self._device.pinned(shape)

    def process(self, frame: Frame, look: Look) -> None:
        """Works on ``frame`` in place and returns when its pixels may be read. Raises what a step raised.

        After an error the pixels may still be written to until ``close`` has returned.
        """
        upload, compute, download = self._streams.values()
        pixels, image = frame.pixels, self._image(frame)
        if self._witness is not None:
            upload.enqueue(self._witness.before, frame, reads=(pixels,))
        upload.upload(pixels, image)
        compute.wait(upload.record())
        for name, step in self._steps(look):
            compute.enqueue(self._step, name, step, frame, image, look, reads=(image,), writes=(image,))
        download.wait(compute.record())
        download.download(image, pixels)
        if self._witness is not None:
            download.enqueue(self._witness.after, frame, reads=(pixels,))
        download.record().synchronize()

    def close(self) -> None:
        """Finishes what was given and ends every stream, also where one of them fails; that error is raised. May be called twice."""
        with ExitStack() as stack:
            stack.callback(self._keep_for_freeze, None)
            for stream in self._streams.values():
                stack.callback(stream.close)

    def _image(self, frame: Frame) -> Any:
        if frame.slot is None:
            return self._device.mirror(frame.pixels)
        if frame.slot not in self._images:
            self._images[frame.slot] = self._device.mirror(frame.pixels)
        return self._images[frame.slot]

    def _steps(self, look: Look) -> list[tuple[str, Callable[[Frame, Any, Look], None]]]:
        enhance = [("enhance", self._enhance)] if look.enhancer is not None else []
        return [("track", self._track), ("swap", self._swap), *enhance, ("hide", self._hide)]

    # --- steps, each on the stream it was given to ---

    def _step(self, name: str, work: Callable[[Frame, Any, Look], None], frame: Frame, image: Any, look: Look) -> None:
        begin_ns = self._clock.now_ns()
        work(frame, image, look)
        self._linger(begin_ns, self._slow_ns.get(name, 0))
        frame.marks[name] = self._clock.now_ns() - begin_ns

    def _linger(self, begin_ns: int, extra_ns: int) -> None:
        until_ns = self._clock.now_ns() + extra_ns
        while extra_ns and self._clock.now_ns() < until_ns:
            pass  # busy on purpose: a slow stage keeps its core

    def _track(self, frame: Frame, image: Any, look: Look) -> None:
        self._tracker.patience = look.patience
        frame.faces = self._tracker.update(image, frame.captured_ns)
        for face, what in treatments(frame.faces, look):
            face.treatment = what
        self._metrics.count("lost_frames", any(face.state is not FaceState.SEEN for face in frame.faces))
        self._metrics.high_water("faces", max((face.id for face in frame.faces), default=0))

    def _swap(self, frame: Frame, image: Any, look: Look) -> None:
        self._worn = []
        if look.swapper is None or not look.swaps:
            return
        faces = _faces(frame, Treatment.SWAP)
        self._worn = self._layers.of(faces)
        self._covers = dict(zip((face.id for face in faces), covers_of(look.masks, image, [face.points for face in faces]), strict=True))
        for layer in self._worn:
            for face, patch in _patches(look, frame, image, layer):
                if patch is None:  # too small to be drawn, or all but outside: it is not to be shown either
                    host.blur_face(image, face.points)
                else:
                    lay(image, patch, self._covers[face.id], look.blending, look.opacity)
        present = frozenset(face.id for face in frame.faces)
        for gone in self._known - present:
            look.swapper.forget(gone)
        self._known = present

    def _enhance(self, frame: Frame, image: Any, look: Look) -> None:
        if look.enhancer is None:
            return
        for layer in self._worn:
            for face, patch in zip(layer, _enhanced(look.enhancer, image, layer), strict=True):
                if patch is not None:
                    lay(image, patch, self._covers[face.id], look.blending, look.enhancer_opacity)

    def _hide(self, frame: Frame, image: Any, look: Look) -> None:
        frozen = _faces(frame, Treatment.FREEZE)
        if frozen and self._last_good is not None:
            np.copyto(image, self._last_good[1])
            frame.repeated = True
            return
        for face in [*frozen, *_faces(frame, Treatment.BLUR)]:
            host.blur_face(image, face.points)
        if look.on_lost is OnLost.FREEZE and look.swaps and frame.faces:
            self._keep_for_freeze((frame, image))

    def _keep_for_freeze(self, good: tuple[Frame, Any] | None) -> None:
        for kept, change in ((good, Slot.retain), (self._last_good, Slot.release)):
            if kept is not None and kept[0].slot is not None:
                change(kept[0].slot)
        self._last_good = good


def _faces(frame: Frame, what: Treatment) -> list[TrackedFace]:
    return [face for face in frame.faces if face.treatment == what]


def _patches(look: Look, frame: Frame, image: Any, faces: Sequence[TrackedFace]) -> Iterator[tuple[TrackedFace, Patch | None]]:
    """Each face with its patch: those that wear the same at once where that is cheaper, else made when it is asked for, since it is
    valid until the next."""
    swapper = look.swapper
    assert swapper is not None
    for identity, wearers in _by_identity(look, faces):
        if len(wearers) > 1 and isinstance(swapper, BatchSwapper):
            yield from zip(wearers, swapper.swap_all(image, [face.points for face in wearers], identity), strict=True)
        else:
            for face in wearers:
                yield face, swapper.swap(image, face.points, identity, face.id, frame.captured_ns)


def _by_identity(look: Look, faces: Sequence[TrackedFace]) -> list[tuple[Any, list[TrackedFace]]]:
    found: dict[int, tuple[Any, list[TrackedFace]]] = {}
    for face in faces:
        identity = look.role(face).identity
        found.setdefault(id(identity), (identity, []))[1].append(face)
    return list(found.values())


def _enhanced(enhancer: Enhancer, image: Any, faces: Sequence[TrackedFace]) -> Iterable[Patch | None]:
    """The same of an enhancer."""
    if len(faces) > 1 and isinstance(enhancer, BatchEnhancer):
        return enhancer.enhance_all(image, [face.points for face in faces])
    return (enhancer.enhance(image, face.points) for face in faces)
