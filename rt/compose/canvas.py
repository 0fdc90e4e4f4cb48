"""One frame on a device while it is composed: what goes up for it, and the launches that draw on it."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from engines.device.contract import Step, Stream
from engines.device.graphs import Graphs
from engines.device.memory import address_of
from engines.face import Patch
from engines.mask.contract import Cover, Mask, NetworkMask, ShapeMask
from engines.mask.lower import SIDE
from engines.mask.shapes import Shapes, limit_all
from engines.mesh.regions import OVAL
from rt.compose import host
from rt.compose.kernels import records
from rt.compose.kernels.contract import Kernels, Size
from rt.compose.kernels.declared import KERNELS
from rt.compose.launches import MATCHING
from rt.compose.memory import Fields, Memory, Parcel
from rt.compose.seam import SEAM_CELLS
from rt.frame import Frame, TrackedFace
from rt.options import Blending

WALK = (512, 256, 1)
"""Threads for a box whose size the device alone knows: they walk on until it is done, so that one recorded launch does for all sizes."""

MAKE = (32 * 48, 48, 1)
"""Threads that make a patch: see ``patch.cuh``."""

SEGMENTS, SHAPES, MASKS = 120, 12, 16
"""Room for what masks draw in one box, four hands and a mouth, and for those of networks."""

BATCH = 16
"""Faces whose crops are taken at once: their records are one piece."""

BOX: Fields = {"face": (records.FACE, (1,))}
DRAWING: Fields = {"segments": (np.float32, (SEGMENTS, 6)), "shapes": (np.float32, (SHAPES, 6))}
MADE: Fields = {"masks": (np.float32, (MASKS, 8))}
FINISH: Fields = {"finish": (np.float32, (3 + records.RADIUS_MAX,))}
HIDING: Fields = {"face": (records.FACE, (1,)), "segments": (np.float32, (len(OVAL), 6)), "ramp": (np.float32, (4,))}


SCRATCH = 8 * 4096
"""Floats that matching colours needs: see ``seam.cu``."""

Limit = tuple[Any, Any, Any, Any, Any]
"""What masks leave, as kernels take it (``Limit`` in ``shapes.cuh``); None for what there is none of."""


@dataclass(frozen=True, slots=True)
class MadeMask:
    """What a network left to be seen of a face."""

    number: int
    """Among the masks that networks made in this frame, which lie on the device together."""
    matrix: np.ndarray
    """float32 [2, 3]: pixels of the picture → of the mask."""


@dataclass
class Masking:
    """What masks say of one face."""

    shapes: list[Shapes] = field(default_factory=list)
    """To be drawn."""
    covers: list[Cover] = field(default_factory=list)
    """Of masks that can only be asked."""
    made: list[MadeMask] = field(default_factory=list)
    """By networks, on the device."""

    def lower(self, patch: Patch) -> None:
        """All that is not on the device, by the processor."""
        for cover in self.covers:
            cover(patch)
        limit_all(patch, self.shapes)


def masking_of(masks: Sequence[Mask], pixels: np.ndarray, faces: Sequence[TrackedFace]) -> dict[int, Masking]:
    """By the faces' ids. ``pixels``: uint8 [H, W, 3] BGR, as they were filmed. Every mask looks once; those of networks are left to
    ``rt.compose.masks``."""
    said = {face.id: Masking() for face in faces}
    points = [face.points for face in faces]
    for mask in masks:
        if isinstance(mask, NetworkMask):
            continue
        if isinstance(mask, ShapeMask):
            for face, shapes in zip(faces, mask.shapes(pixels, points), strict=True):
                said[face.id].shapes += shapes
        else:
            for face, cover in zip(faces, mask.covers(pixels, points), strict=True):
                said[face.id].covers.append(cover)
    return said


class Canvas:
    """Of one frame; one thread."""

    def __init__(self, kernels: Kernels, memory: Memory, frame: Frame, image: Any, masking: Mapping[int, Masking]) -> None:
        self.memory = memory
        self.pixels = frame.pixels
        """uint8 [H, W, 3] BGR on the host, as they were filmed; only read."""
        self.captured_ns = frame.captured_ns
        self.blending = Blending.SOFT
        self.opacity = 1.0
        self.colour_match = 1.0
        self.colour_transfer = 0.0
        self.sharpness = 0.0
        """As in ``rt.options.Look``, of what is painted now."""
        self.made_masks: Any = None
        """u8 [N, S, S] on the device, S being ``engines.mask.lower.SIDE``: what networks made."""
        self._kernels = kernels
        self._image = image
        self._masking = masking
        self._pixel_count = frame.height * frame.width
        self._sends: list[tuple[np.ndarray, Any]] = []
        self._steps: list[Step] = []

    # --- for painters ---

    @property
    def frame(self) -> tuple[Any, int, int, int]:
        """The first arguments of kernels that work on the picture."""
        height, width = self.pixels.shape[:2]
        return self._image, width, height, self._image.strides[0]

    def launch(self, name: str, threads: Size, *args: Any) -> None:
        """A kernel, after all that was asked for before."""
        arrays = tuple(value for value in args if hasattr(value, "strides"))
        self._steps.append(Step(self._kernels.launch, (KERNELS[name], threads, *args), arrays, arrays))

    def call(self, work: Callable[..., Any], *args: Any) -> None:
        """Something else that works on the device's arrays: a network."""
        arrays = tuple(value for value in args if hasattr(value, "strides"))
        self._steps.append(Step(work, args, arrays, arrays))

    def parcel(self, kind: str, fields: Fields) -> Parcel:
        """Memory for what goes up, before any launch. Fill its ``host`` side."""
        parcel = self.memory.parcel(kind, fields)
        self._sends.append((parcel.staging, parcel.memory))
        return parcel

    def crops(self, count: int) -> Parcel:
        """Records of ``count`` faces whose crops are taken at once."""
        return self.parcel(f"crops of {count}", {"faces": (records.FACE, (count,))})

    def sent(self, values: np.ndarray) -> Any:
        """The values of a box (contiguous; left as they are until the frame is done), which go up before any launch."""
        channels = values.shape[2] if values.ndim == 3 else 1
        array = self.per_pixel(f"sent {len(self._sends)}, {channels}", values.dtype, channels)
        self._sends.append((values.reshape(-1), array[: values.size]))
        return array

    def per_pixel(self, name: str, dtype: Any, channels: int = 1, *, zeroed: bool = False) -> Any:
        """Memory for a box, however large."""
        return self.memory.array(name, self._pixel_count * channels, dtype, zeroed=zeroed)

    def masking(self, face_id: int) -> Masking:
        """What the masks said of that face."""
        return self._masking.get(face_id, Masking())

    @property
    def is_direct(self) -> bool:
        """Whether it is enough to draw onto the picture; else a patch is made, and laid by ``lay``."""
        return self.blending is Blending.SOFT and not self.sharpness and not self.colour_transfer

    def limit(self, parcel: Parcel, face_id: int) -> Limit:
        """What masks leave to be seen in the box of ``parcel``, as kernels take it."""
        masking, record = self.masking(face_id), parcel.host["face"]
        left, top, width, height = (int(record[name][0]) for name in ("left", "top", "width", "height"))
        shapes = [each for each in masking.shapes if each.box(left, top, left + width, top + height) is not None]
        drawing = self.parcel("drawing", DRAWING) if shapes else None
        is_drawn = drawing is not None and records.set_shapes(record, shapes, drawing.host["segments"], drawing.host["shapes"])
        sent, made = None, self.made_limit(parcel, face_id)
        if masking.covers or (shapes and not is_drawn):
            record["shapes"], drawing = 0, None
            sent = self._sent_limit(masking, left, top, width, height)
        if drawing is None:
            return sent, None, None, *made
        return sent, drawing.device["segments"], drawing.device["shapes"], *made

    def made_limit(self, parcel: Parcel, face_id: int) -> tuple[Any, Any]:
        """The last two of the same: what masks of networks leave."""
        made = [(mask.number, mask.matrix) for mask in self.masking(face_id).made]
        if not made:
            return None, None
        table = self.parcel("made masks", MADE)
        records.set_masks(parcel.host["face"], made, SIDE, table.host["masks"])
        return self.made_masks, table.device["masks"]

    def patch(self) -> tuple[Any, Any, Any]:
        """Where a patch may be made that ``lay`` is to lay: u8 [h, w, 3], u8 [h, w], and its cells, or None where nothing is matched."""
        return self.per_pixel("patch", np.uint8, 3), self.per_pixel("alpha", np.uint8), self.cells()

    def cells(self) -> Any:
        """Where what is to be known of a patch before it is laid is written (``patch.cuh``); None where it is laid as it is."""
        is_matched = self.blending is not Blending.SOFT or self.colour_transfer
        return self.memory.array("cells", SEAM_CELLS**2 * 7, np.uint8) if is_matched else None

    def lay(self, parcel: Parcel, pixels: Any, alpha: Any, cells: Any) -> None:
        """Lays a patch over the box of ``parcel``, its masks being part of its alpha: ``rt.compose.lay``."""
        face, matched = parcel.device["face"], (None, None)
        if cells is not None:
            fit = self.memory.array("fit", 6, np.float32) if self.colour_transfer else None
            membrane = self.memory.array("membrane", SEAM_CELLS**2 * 3, np.uint8)
            scratch = self.memory.array("scratch", SCRATCH, np.float32)
            given = (cells, face, self.colour_match, self.colour_transfer, scratch)
            self.launch(MATCHING[self.blending], (512, 1, 1), *given, fit, membrane)
            matched = (fit, None if self.blending is Blending.SOFT else membrane)
        layer = (*self.frame, face, pixels, alpha, *matched)
        if not self.sharpness:
            self.launch("lay_patch", WALK, *layer)
            return
        finish, rows = self._finish(parcel), self.per_pixel("soft rows", np.float32, 3)
        self.launch("lay_rows", WALK, *layer, finish, rows)
        self.launch("lay_columns", WALK, *layer, finish, rows)

    def stamp(self, badge: Any, left: int, top: int) -> None:
        """Lays ``badge`` (u8 [h, w, 4] BGRA on the device) at that place."""
        rows, columns = badge.shape[:2]
        self.launch("paint_badge", (columns, rows, 1), *self.frame, badge, columns, rows, left, top, 256)

    def hide(self, points: np.ndarray) -> None:
        """Makes the face at ``points`` (float32 [468, 2+]) unrecognisable: ``rt.compose.host.blur_face``."""
        box = host.hidden_box(points, self.pixels.shape) if np.isfinite(points).all() else None
        if box is None:
            return
        left, top, right, bottom = box
        columns, rows = host.hidden_cells(points, right - left, bottom - top)
        oval, parcel = host.oval_of(points), self.parcel("hiding", HIDING)
        records.set_box(parcel.host["face"], left, top, right - left, bottom - top, 1.0)
        parcel.host["segments"][:] = oval.seen_from(left, top)
        parcel.host["ramp"][:] = oval.ramp.numbers()
        cells = self.memory.array("hidden", columns * rows * 3, np.uint8)
        self.launch("hide_cells", (256 * columns, rows, 1), *self.frame, parcel.device["face"], cells)
        drawing = (parcel.device["segments"], len(OVAL), parcel.device["ramp"])
        self.launch("hide_face", WALK, *self.frame, parcel.device["face"], cells, columns, rows, *drawing)

    def _finish(self, parcel: Parcel) -> Any:
        """How the box of ``parcel`` is sharpened."""
        finish, amount = self.parcel("finish", FINISH), self.sharpness * self.opacity
        sigma = host.sharpen_sigma(int(parcel.host["face"]["width"][0]))
        records.set_finish(finish.host["finish"], sigma, round(amount * host.SHARPEN_MOST * 256))
        return finish.device["finish"]

    def _sent_limit(self, masking: Masking, left: int, top: int, width: int, height: int) -> Any:
        """What the processor says is left of an alpha of 255."""
        patch = Patch(np.zeros((height, width, 3), np.uint8), np.full((height, width), 255, np.uint8), left, top)
        masking.lower(patch)
        return self.sent(patch.alpha)

    def _put_all(self, values: Sequence[np.ndarray], arrays: Sequence[Any]) -> None:
        for each, array in zip(values, arrays, strict=True):
            self._kernels.put(each, array)

    # --- for the compositor ---

    def give(self, stream: Stream, graphs: Graphs) -> None:
        """Asynchronous: gives ``stream``, of which ``graphs`` are, all that was asked for."""
        sends = [*self.memory.take_pending(), *self._sends]
        if sends:  # as one piece of work: each wakes the stream's thread
            values, arrays = zip(*sends, strict=True)
            stream.enqueue(self._put_all, values, arrays, reads=values, writes=arrays)
        if self._steps:
            graphs.run(tuple(map(_key, self._steps)), self._steps)


def _key(step: Step) -> Hashable:
    """All that a recorded step depends on: what is called, numbers, and where arrays lie."""
    return step.work, *map(_argument_key, step.args)


def _argument_key(value: Any) -> Hashable:
    if not hasattr(value, "strides"):
        return value
    return address_of(value), value.shape
