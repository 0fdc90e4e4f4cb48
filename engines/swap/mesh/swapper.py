"""MeshSwapper: draws the prepared texture on the face's landmarks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.face import Patch, SourceFace
from engines.mesh import regions
from engines.mesh.topology import VERTICES, Topology, brow_line, smoothstep, topology
from engines.swap.mesh import kernels
from engines.swap.mesh.facing import facing
from engines.swap.mesh.identity import MeshIdentity, nobody, prepare
from engines.swap.mesh.light import Light, Nearness, contrast
from engines.swap.mesh.plan import MeshPlan, planned
from engines.swap.mesh.registration import Draw, registered

SEAM_FOREHEAD, SEAM_SIDE, SEAM_JAW = 0.34, 0.24, 0.15
"""Width over which the patch fades out toward the oval, in inter-ocular distances."""

SMALLEST_FACE_PX = 12.0


class MeshSwapper:
    """``swap`` and ``forget`` belong to one thread; ``prepare`` is any thread's."""

    name = "mesh"
    needs_photo = True
    colour_match = 1.0
    """See ``engines.swap.contract.MatchesColours``."""
    seam_width = 1.0
    """See ``engines.swap.contract.FadesAtSeam``."""

    def __init__(self) -> None:
        self._mesh = topology()
        self._cover = (1.0, cover_of(self._mesh))  # and the seam's width that it is for
        self._facing = facing()
        self._near = Nearness.of_mesh()
        self._lights: dict[int, Light] = {}
        self._pixels = np.empty(0, np.uint8)
        self._alpha = np.empty(0, np.uint8)

    def prepare(self, faces: Sequence[SourceFace]) -> MeshIdentity:
        return prepare([registered(face, _drawing(face)) for face in faces])

    def swap(self, image: np.ndarray, points: np.ndarray, identity: MeshIdentity, face_id: int, captured_ns: int) -> Patch | None:
        plan = self.plan(image, points, identity, face_id, captured_ns)
        return None if plan is None else self.draw(plan, identity)

    def plan(self, image: np.ndarray, points: np.ndarray, identity: MeshIdentity, face_id: int, captured_ns: int) -> MeshPlan | None:
        """As ``swap``, all but the drawing: for whoever draws elsewhere. The picture's colours are looked at here."""
        if not np.isfinite(points).all() or float(np.ptp(points[:, 0])) < SMALLEST_FACE_PX:
            return None
        place = self._mesh.extend(points)
        box = inside(place, image.shape)
        if box is None:
            return None
        light = self._lights.setdefault(face_id, Light(self._near))
        gain = light.gains(image, points, identity, captured_ns) * np.float32(self.colour_match)
        return planned(place, box, np.exp(gain), contrast(gain, light.kept(identity)), self._facing.turn(points))

    def draw(self, plan: MeshPlan, identity: MeshIdentity) -> Patch:
        """Draws what ``plan`` says. The patch is valid until the next call.

        ``rt/compose/kernels/mesh.cu`` draws the same to the bit: each step here is one of float32, in the same order there.
        """
        patch, place, light = self._clear_patch(*plan.box), plan.place, plan.light.values
        texture = identity.texture_for(plan.width_px)
        a, b, c = (place[self._mesh.drawn[:, corner], 2] for corner in range(3))
        far_first = np.argsort(-((a + b + c) / np.float32(3)), kind="stable").astype(np.int32)
        gain, kept = light[:, :3] * light[:, 3:], light[:, 3:]
        bias = identity.colours * light[:, :3] * (np.float32(1) - kept)  # what detail is pulled towards
        if self._cover[0] != self.seam_width:
            self._cover = (self.seam_width, cover_of(self._mesh, self.seam_width))
        cover = self._cover[1].copy()
        cover[:VERTICES] *= self._facing.share(plan.turn)
        uv = self._mesh.uv * np.float32(texture.shape[0]) - np.float32(0.5)
        values = np.concatenate([uv, cover[:, None], self._ringed(gain), self._ringed(bias)], 1)
        kernels.draw(patch.pixels, patch.alpha, place, self._mesh.drawn, far_first, values, texture)
        return patch

    def warm_up(self) -> None:
        image = np.full((160, 160, 3), 128, np.uint8)
        points = (self._mesh.shape * 60 + [80, 80, 0]).astype(np.float32)
        self.swap(image, points, nobody(), -1, 0)
        self.forget(-1)

    def forget(self, face_id: int) -> None:
        self._lights.pop(face_id, None)

    def _clear_patch(self, left: int, top: int, right: int, bottom: int) -> Patch:
        """A patch in memory that is kept and grows; contiguous at every size, since a kernel is compiled for one layout."""
        height, width = bottom - top, right - left
        count = height * width
        if count > self._alpha.size:
            self._pixels, self._alpha = np.zeros(count * 3, np.uint8), np.zeros(count, np.uint8)
        alpha = self._alpha[:count].reshape(height, width)
        alpha[:] = 0
        return Patch(self._pixels[: count * 3].reshape(height, width, 3), alpha, left, top)

    def _ringed(self, values: np.ndarray) -> np.ndarray:
        """float32 [468 + R, 3]: the rings inside eyes and mouth take the values of their rims."""
        return np.concatenate([values, values[self._mesh.ring]]).astype(np.float32)


def _drawing(face: SourceFace) -> Draw:
    """Draws the face of one photo, with a swapper of its own: identities are prepared while another thread swaps."""
    swapper, identity = MeshSwapper(), prepare([face])
    return lambda image, points: swapper.swap(image, points, identity, 0, 0)


def inside(place: np.ndarray, shape: tuple[int, ...]) -> tuple[int, int, int, int] | None:
    """The part of a picture of ``shape`` (H, W, …) that the mesh covers: left, top, right, bottom; None where it is less than four pixels
    wide."""
    height, width = shape[:2]
    left, top = np.maximum(np.floor(place[:, :2].min(0)).astype(int) - 1, 0)
    right, bottom = np.minimum(np.ceil(place[:, :2].max(0)).astype(int) + 2, [width, height])
    return None if right - left < 4 or bottom - top < 4 else (int(left), int(top), int(right), int(bottom))


def cover_of(mesh: Topology, seam_width: float = 1.0) -> np.ndarray:
    """float32 [468 + R]: 0 at the oval and inside eyes and mouth, 1 in the middle; the kernel rounds it. The seam is ``seam_width`` times
    as wide as usual."""
    y, line = mesh.shape[:, 1], brow_line(mesh.shape)
    up = smoothstep(y, line - 0.05, line - 0.25)
    wide = SEAM_JAW + (SEAM_SIDE - SEAM_JAW) * smoothstep(-y, -0.3, 0.2)
    wide = wide + (SEAM_FOREHEAD - wide) * up
    cover = np.clip(mesh.from_oval / (wide * seam_width), 0, 1)
    cover[regions.OVAL] = 0
    return np.r_[cover, np.zeros(len(mesh.ring))].astype(np.float32)
