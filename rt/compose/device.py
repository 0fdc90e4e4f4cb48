"""The compositor of a device: what ``rt.compose.lay`` does on the processor, as kernels on a stream.

The picture goes up once and comes down once; of a face a few pieces of less than 4 kB go up in between, and nothing comes down. All
launches of a frame are one row of steps, which is recorded as a graph where the device can.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from engines.device.contract import Stream
from engines.device.graphs import Graphs
from engines.errors import DeviceError
from engines.mask.contract import NetworkMask
from engines.swap.contract import FadesAtSeam, MatchesColours
from rt.compose.canvas import MASKS, Canvas, masking_of
from rt.compose.contract import compositors
from rt.compose.kernels.contract import Kernels
from rt.compose.kernels.declared import KERNELS
from rt.compose.layers import Layers, by_identity
from rt.compose.lost import Treatment, treatments
from rt.compose.masks import NetworkMasks
from rt.compose.memory import Memory
from rt.compose.packed import PackedPictures
from rt.compose.painters import Painter, PainterKind, painters
from rt.frame import Frame, Place, PlanarPicture, TrackedFace
from rt.options import Look

if TYPE_CHECKING:
    from rt.compose.badge import Badge


class DeviceCompositor:
    """Keeps ``rt.compose.contract.Compositor``."""

    def __init__(self, kernels: Kernels) -> None:
        self._kernels = kernels
        self._memory = Memory(kernels)
        self._packed = PackedPictures(kernels)
        self._painters: dict[str, Painter] = {}
        self._masks: NetworkMasks | None = None
        self._layers = Layers()
        self._known: frozenset[int] = frozenset()
        self._worn: tuple[Any, ...] = ()
        self._plate: tuple[np.ndarray, Any] | None = None  # as the badge made it, and on the device
        self._graphs: tuple[Stream, Graphs] | None = None
        self._given = self._reached = 0  # frames; _reached is written by the stream's thread

    def refusal(self, look: Look) -> str:
        if look.enhancer is not None and _kind(look.enhancer, is_enhancer=True) is None:
            return f"the enhancer {look.enhancer.name} works on pictures of the processor alone"
        if (count := sum(isinstance(mask, NetworkMask) for mask in look.masks)) > MASKS:
            return f"{count} masks of networks were chosen, and a device takes {MASKS} of one face"
        return ""

    def compose(self, stream: Stream, frame: Frame, image: Any, look: Look) -> None:
        for face, what in treatments(frame.faces, look):
            face.treatment = what
        if self._reached != self._given:  # the frame before failed half-way: nobody knows what the device's memory holds
            self.clear()
        self._wear(look)
        self._memory.begin_frame()
        swapped = _faces(frame, Treatment.SWAP)
        canvas = Canvas(self._kernels, self._memory, frame, image, masking_of(look.masks, frame.pixels, swapped))
        self._mask(canvas, look, swapped)
        self._draw(canvas, look, self._layers.of(swapped))
        for what in (Treatment.FREEZE, Treatment.BLUR):  # frozen ones too: not every frame has a good picture to be replaced by
            for face in _faces(frame, what):
                canvas.hide(face.points)
        if look.badge is not None and look.swaps:
            self._stamp(canvas, look.badge)
        self._given += 1
        canvas.give(stream, self._graphs_of(stream))
        stream.enqueue(self._reach, self._given)
        self._forget_others(frame, look)

    def unpack(self, stream: Stream, picture: PlanarPicture, image: Any) -> bool:
        planes = [self._kernels.adopt(plane) for plane in picture.planes]
        height, width = image.shape[:2]
        if any(plane is None for plane in planes) or planes[0].shape != (height, width) or height % 2 or width % 2:
            return False
        stream.enqueue(self._unpack, picture, planes, image, writes=(image,))
        return True

    def _unpack(self, picture: PlanarPicture, planes: Sequence[Any], image: Any) -> None:
        height, width = image.shape[:2]
        codes = [argument for plane in planes for argument in (plane.view(np.uint8), plane.strides[0])]
        how = (width, height, picture.matrix, int(picture.is_full_range))
        self._kernels.await_decoder()
        self._kernels.launch(KERNELS[f"{picture.layout}_to_bgr"], (width, height, 1), *codes, *how, image, image.strides[0])

    @property
    def place(self) -> Place:
        return self._kernels.place

    def pack(self, stream: Stream, image: Any, matrix: int) -> PlanarPicture:
        height, width = image.shape[0] & ~1, image.shape[1] & ~1
        planes = self._packed.take(width, height)
        codes = [argument for plane in planes for argument in (plane, plane.strides[0])]
        given = (image, image.strides[0], width, height, matrix, 0, *codes)
        threads = (width // 2, height // 2, 1)
        stream.enqueue(self._kernels.launch, KERNELS["bgr_to_nv12"], threads, *given, reads=(image,), writes=planes)
        return PlanarPicture("nv12", planes, matrix, is_full_range=False)

    def clear(self) -> None:
        self._packed.clear()
        try:
            self._forget_models()
        finally:  # a graph that could not be closed is as much forgotten
            self._painters.clear()
            self._masks = None
            self._memory, self._plate, self._worn, self._graphs = Memory(self._kernels), None, (), None
            self._given = self._reached = 0

    def _forget_models(self) -> None:
        try:
            if self._graphs is not None:
                self._graphs[1].clear()
        finally:
            for painter in self._painters.values():
                painter.forget()
            if self._masks is not None:
                self._masks.forget()

    def _reach(self, number: int) -> None:
        """On the stream, after all that was given for a frame; skipped where any of it failed."""
        self._reached = number

    def _mask(self, canvas: Canvas, look: Look, swapped: Sequence[TrackedFace]) -> None:
        if swapped and any(isinstance(mask, NetworkMask) for mask in look.masks):
            self._masks = self._masks or NetworkMasks(self._memory)
            self._masks.look(canvas, look.masks, swapped)

    def _draw(self, canvas: Canvas, look: Look, layers: Sequence[Sequence[TrackedFace]]) -> None:
        if isinstance(look.swapper, MatchesColours):
            look.swapper.colour_match = look.colour_match
        if isinstance(look.swapper, FadesAtSeam):
            look.swapper.seam_width = look.seam_width
        canvas.blending, canvas.opacity = look.blending, look.opacity
        canvas.colour_match, canvas.colour_transfer = look.colour_match, look.colour_transfer
        canvas.sharpness = look.sharpness if look.enhancer is None else 0.0  # what is laid last is sharpened
        for layer in layers:
            for identity, wearers in by_identity(look, layer):
                drawn = self._painter(look.swapper).paint(canvas, look.swapper, identity, wearers)
                for face, is_drawn in zip(wearers, drawn, strict=True):
                    if not is_drawn:  # too small, or all but outside: it is not to be shown either
                        canvas.hide(face.points)
        if look.enhancer is None:
            return
        canvas.opacity, canvas.sharpness = look.enhancer_opacity, look.sharpness
        for layer in layers:
            self._painter(look.enhancer, is_enhancer=True).paint(canvas, look.enhancer, None, layer)

    def _stamp(self, canvas: Canvas, badge: Badge) -> None:
        plate, left, top = badge.placed(*canvas.pixels.shape[:2])
        if self._plate is None or self._plate[0] is not plate:
            self._plate = (plate, self._memory.constant(np.dstack([plate, np.full(plate.shape[:2], 255, np.uint8)])))
        canvas.stamp(self._plate[1], left, top)

    def _painter(self, model: Any, *, is_enhancer: bool = False) -> Painter:
        name = _kind(model, is_enhancer)
        if name is None:
            raise DeviceError(f"nothing draws {model.name} on a device; ask refusal() before a look is worn")
        if name not in self._painters:
            self._painters[name] = painters[name].make(self._memory)
        return self._painters[name]

    def _wear(self, look: Look) -> None:
        """What was recorded for other models is of no more use, and holds them."""
        identities = (look.identity, *look.seats, *(role.identity for role in look.roles.values()))
        worn = (look.swapper, *identities, look.enhancer, look.seam_width, *look.masks)
        if len(self._worn) != len(worn) or any(before is not now for before, now in zip(self._worn, worn, strict=True)):
            self._forget_models()
            self._worn = worn

    def _graphs_of(self, stream: Stream) -> Graphs:
        if self._graphs is None or self._graphs[0] is not stream:
            self._graphs = (stream, Graphs(stream))
        return self._graphs[1]

    def _forget_others(self, frame: Frame, look: Look) -> None:
        if look.swapper is None:
            return
        present = frozenset(face.id for face in frame.faces)
        for gone in self._known - present:
            look.swapper.forget(gone)
        self._known = present


def _kind(model: Any, is_enhancer: bool) -> str | None:
    """The painter for a swapper or an enhancer."""

    def takes(kind: PainterKind) -> bool:
        return kind.takes_enhancer(model) if is_enhancer else kind.takes_swapper(model)

    fitting = [(painters[name].order, name) for name in painters if takes(painters[name])]
    return min(fitting)[1] if fitting else None


def _faces(frame: Frame, what: Treatment) -> list[TrackedFace]:
    return [face for face in frame.faces if face.treatment == what]


@compositors.register("cuda")
def on_cuda() -> DeviceCompositor:
    """On the current GPU. Raises ``DeviceError`` where CuPy cannot be used."""
    from rt.compose.kernels.cuda import CudaKernels

    kernels = CudaKernels()
    kernels.warm_up()
    return DeviceCompositor(kernels)


@compositors.register("kernels")
def on_the_host() -> DeviceCompositor:
    """The same kernels compiled for the processor: slow, and the proof of what a GPU does. Raises ``DeviceError`` without a compiler."""
    from rt.compose.kernels.host import HostKernels

    return DeviceCompositor(HostKernels())
