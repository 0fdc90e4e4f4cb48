"""A lane: one device's share of the line. The steps of a frame on it are swap → enhance → hide; its faces were found before.

Steps are given to the device's streams and ordered by events alone, so the same code drives threads on the host and streams
on a GPU. Lanes know nothing of each other: what must see every frame in order (``rt.tracking``, ``rt.compose.lost.LastGood``) is none
of theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from engines.crop_model import works_on_crops
from engines.device.contract import Device, Event, Stream
from engines.enhance.contract import BatchEnhancer, Enhancer
from engines.mask.contract import Cover
from engines.parking import Parks
from engines.swap.contract import BatchSwapper, FadesAtSeam, MatchesColours, Patch
from rt.clock import Clock
from rt.compose import host
from rt.compose.contract import Compositor
from rt.compose.lay import covers_of, lay
from rt.compose.layers import Layers, by_identity
from rt.compose.lost import Treatment, treatments
from rt.delivery import Delivery
from rt.frame import Frame, Place, TrackedFace
from rt.options import Look, OnLost
from rt.ring import Slot
from rt.stage import Stages


@dataclass(slots=True)
class LaneCount:
    """What a lane did in all. Written by the thread of ``process``; any thread may read it."""

    frames: int = 0
    busy_ns: int = 0
    """Of the device, by its own events: from the beginning of a frame's first step to the end of its last."""
    bytes_up: int = 0
    """Of pictures, from the host's memory to the device's."""
    bytes_down: int = 0


class Lane:
    """Takes one frame at a time. ``process`` and ``close`` belong to one thread."""

    def __init__(
        self,
        device: Device,
        clock: Clock,
        *,
        slow_ms: Mapping[str, float] | None = None,
        compositor: Compositor | None = None,
    ) -> None:
        """``slow_ms``: as ``rt.stage.Stages`` takes it. ``compositor``: of this device; None has the processor compose. Raises
        ``DeviceError``."""
        self.name = device.name
        self.count = LaneCount()
        self._stages = Stages(clock, slow_ms)
        self._compositor = compositor
        self._device = device
        self._images: dict[Slot, Any] = {}  # the thread of process: where the device works on a slot's picture
        self._known: frozenset[int] = frozenset()  # compute stream: ids of the frame before
        self._layers = Layers()  # compute stream
        self._worn: list[list[TrackedFace]] = []  # compute stream: faces of this frame that were swapped, in the order of that
        self._covers: dict[int, tuple[Cover, ...]] = {}  # compute stream: what the masks said of each
        self._aside: Parks | None = None  # the thread of process: an enhancer that was given up for lack of memory
        self._streams: dict[str, Stream] = {}
        self.open()

    def open(self) -> None:
        """Makes the streams; also again, after ``close``, of a device that failed. Raises ``DeviceError``, and is closed then."""
        self._images.clear()
        try:
            for name in ("upload", "compute", "download"):
                self._streams[name] = self._device.stream(name)
        except BaseException:  # raised on: no stream is left behind
            self.close()
            raise

    @property
    def wants_slots(self) -> bool:
        """Whether ``slot_memory`` is worth more to this device than any other memory."""
        return self._device.pins

    def slot_memory(self, shape: tuple[int, int, int]) -> np.ndarray:
        """What a ring's slots are best made of for this device. Any thread, before the first frame."""
        return self._device.pinned(shape)

    @property
    def place(self) -> Place | None:
        """Where it can leave composed pictures for who reads them there; None where it leaves pixels alone."""
        return None if self._compositor is None else self._compositor.place

    def process(self, frame: Frame, look: Look, delivery: Delivery = Delivery()) -> None:  # noqa: B008 - it cannot be changed
        """Works on ``frame`` in place and returns when what ``delivery`` asks for may be read. Raises what a step raised.

        After an error the pixels may still be written to until ``settle`` or ``close`` has returned.
        """
        self._take_back(look)
        upload, compute, download = self._streams.values()
        pixels, image = frame.pixels, self._image(frame)
        is_there = self._take_planar(upload, frame, image)
        if not is_there:
            upload.upload(pixels, image)
        compute.wait(upload.record())
        points = [("", compute.mark())]
        for name, give in self._given(frame, image, look):
            give(compute)
            points.append((name, compute.mark()))
        if delivery.matrix is not None:
            self._pack(compute, frame, image, delivery.matrix)
        download.wait(compute.record())
        comes_down = delivery.pixels or image is pixels
        if comes_down:
            download.download(image, pixels)
        download.record().synchronize()
        if not comes_down:
            frame.is_here, frame.pixels = False, np.broadcast_to(np.uint8(0), pixels.shape)  # those are of who was filmed
        frame.marks |= {name: _ns(begin, end) for (_, begin), (name, end) in pairwise(points)}
        frame.planar = None  # given back to its decoder
        moved = 0 if image is pixels else pixels.nbytes
        self._note(_ns(points[0][1], points[-1][1]), 0 if is_there else moved, moved if comes_down else 0)

    def _take_planar(self, upload: Stream, frame: Frame, image: Any) -> bool:
        """Whether the picture need not go up, since it was decoded where the lane works; ``upload`` unpacks it then."""
        if self._compositor is None or frame.planar is None:
            return False
        with self._device.current():
            return self._compositor.unpack(upload, frame.planar, image)

    def _pack(self, stream: Stream, frame: Frame, image: Any, matrix: int) -> None:
        assert self._compositor is not None, "asked for by who was told its place"
        with self._device.current():
            frame.composed = self._compositor.pack(stream, image, matrix)

    def _note(self, busy_ns: int, up: int, down: int) -> None:
        count = self.count
        count.frames, count.busy_ns = count.frames + 1, count.busy_ns + busy_ns
        count.bytes_up, count.bytes_down = count.bytes_up + up, count.bytes_down + down

    def set_aside(self, part: Any) -> None:
        """Frees what ``part``, which only this lane uses, holds of the device, until a look has it again. After ``settle``, on the thread
        of ``process``."""
        if isinstance(part, Parks):
            with self._device.current():
                part.park()
            self._aside = part

    def _take_back(self, look: Look) -> None:
        """Raises ``DeviceMemoryError`` where there is no room for it yet."""
        if self._aside is not None and look.enhancer is self._aside:
            with self._device.current():
                self._aside.unpark()
            self._aside = None

    def settle(self) -> None:
        """After an error: returns when nothing of what was given is under way any more. Raises what the device fails with then."""
        for stream in self._streams.values():
            stream.record().synchronize()
        self._device.trim()

    def close(self) -> None:
        """Finishes what was given and ends every stream, also where one of them fails; that error is raised. May be called twice."""
        with ExitStack() as stack:
            if self._compositor is not None and self._streams:
                stack.callback(self._compositor.clear)  # last: when nothing is under way
            for stream in self._streams.values():
                stack.callback(stream.close)
            self._streams.clear()
            self._images.clear()

    def _image(self, frame: Frame) -> Any:
        if frame.slot is None:
            return self._device.mirror(frame.pixels)
        if frame.slot not in self._images:
            self._images[frame.slot] = self._device.mirror(frame.pixels)
        return self._images[frame.slot]

    def _given(self, frame: Frame, image: Any, look: Look) -> Iterator[tuple[str, Callable[[Stream], None]]]:
        """What the compute stream is given, by the stages' names, each when its turn has come."""
        if self._compositor is not None:
            yield "compose", lambda stream: self._compose(stream, frame, image, look)
            return
        for name, step in self._steps(look):
            yield name, partial(_enqueue, self._stages, name, step, frame, image, look)

    def _compose(self, stream: Stream, frame: Frame, image: Any, look: Look) -> None:
        assert self._compositor is not None
        _say_for_freeze(frame, look)
        with self._device.current():
            self._compositor.compose(stream, frame, image, look)

    def _steps(self, look: Look) -> list[tuple[str, Callable[[Frame, Any, Look], None]]]:
        enhance = [("enhance", self._enhance)] if look.enhancer is not None else []
        badge = [("badge", self._badge)] if look.badge is not None and look.swaps else []
        return [("swap", self._swap), *enhance, ("hide", self._hide), *badge]

    # --- steps, each on the stream it was given to ---

    def _swap(self, frame: Frame, image: Any, look: Look) -> None:
        for face, what in treatments(frame.faces, look):
            face.treatment = what
        self._worn = []
        if look.swapper is None or not look.swaps:
            return
        if isinstance(look.swapper, MatchesColours):
            look.swapper.colour_match = look.colour_match
        if isinstance(look.swapper, FadesAtSeam):
            look.swapper.seam_width = look.seam_width
        faces = _faces(frame, Treatment.SWAP)
        self._worn = self._layers.of(faces)
        self._covers = dict(zip((face.id for face in faces), covers_of(look.masks, image, [face.points for face in faces]), strict=True))
        filmed = image if len(self._worn) < 2 or works_on_crops(look.swapper) else image.copy()  # as on a device: see Swapper.swap
        for layer in self._worn:
            for face, patch in _patches(look, frame, filmed, layer):
                if patch is None:  # too small to be drawn, or all but outside: it is not to be shown either
                    host.blur_face(image, face.points)
                else:
                    lay(image, patch, self._covers[face.id], look.blending, look.opacity, **_finish(look, last=look.enhancer is None))
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
                    lay(image, patch, self._covers[face.id], look.blending, look.enhancer_opacity, **_finish(look, last=True))

    def _hide(self, frame: Frame, image: Any, look: Look) -> None:
        frozen = _faces(frame, Treatment.FREEZE)
        for face in [*frozen, *_faces(frame, Treatment.BLUR)]:
            host.blur_face(image, face.points)
        _say_for_freeze(frame, look)

    def _badge(self, frame: Frame, image: Any, look: Look) -> None:
        assert look.badge is not None
        look.badge.stamp(image)


def _enqueue(stages: Stages, name: str, step: Callable[..., None], frame: Frame, image: Any, look: Look, stream: Stream) -> None:
    stream.enqueue(stages.slowed, name, step, frame, image, look, reads=(image,), writes=(image,))


def _say_for_freeze(frame: Frame, look: Look) -> None:
    """Whether ``frame`` may be shown again, or another one is to be shown for it."""
    treated = [what for _, what in treatments(frame.faces, look)]
    frame.wants_good = Treatment.FREEZE in treated or (frame.stands_in and look.on_lost is OnLost.FREEZE)
    frame.is_good = look.on_lost is OnLost.FREEZE and look.swaps and bool(treated) and not frame.wants_good


def _ns(begin: Event, end: Event) -> int:
    return round(end.elapsed_ms(begin) * 1e6)


def _finish(look: Look, last: bool) -> dict[str, float]:
    """What ``lay`` is told of the look; ``last``: nothing more is laid over, so this is what is sharpened."""
    sharpness = look.sharpness if last else 0.0
    return {"colour_match": look.colour_match, "colour_transfer": look.colour_transfer, "sharpness": sharpness}


def _faces(frame: Frame, what: Treatment) -> list[TrackedFace]:
    return [face for face in frame.faces if face.treatment == what]


def _patches(look: Look, frame: Frame, image: Any, faces: Sequence[TrackedFace]) -> Iterator[tuple[TrackedFace, Patch | None]]:
    """Each face with its patch: those that wear the same at once where that is cheaper, else made when it is asked for, since it is
    valid until the next."""
    swapper = look.swapper
    assert swapper is not None
    for identity, wearers in by_identity(look, faces):
        if len(wearers) > 1 and isinstance(swapper, BatchSwapper):
            yield from zip(wearers, swapper.swap_all(image, [face.points for face in wearers], identity), strict=True)
        else:
            for face in wearers:
                yield face, swapper.swap(image, face.points, identity, face.id, frame.captured_ns)


def _enhanced(enhancer: Enhancer, image: Any, faces: Sequence[TrackedFace]) -> Iterable[Patch | None]:
    """The same of an enhancer."""
    if len(faces) > 1 and isinstance(enhancer, BatchEnhancer):
        return enhancer.enhance_all(image, [face.points for face in faces])
    return (enhancer.enhance(image, face.points) for face in faces)
