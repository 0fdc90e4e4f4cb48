"""What is prepared from one person's photos: the texture in several sizes, and its colour at every vertex."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import cv2
import numpy as np

from engines.errors import PhotoError
from engines.face import SourceFace
from engines.mesh.topology import Topology, topology
from engines.swap.mesh.colour import LOG_OFFSET, LUMA, relief_of, weighted_mean
from engines.swap.mesh.texture import SIDE, Texture, plain_skin, spread, unwrap, vertex_logs, vertex_values

SMOOTH_SKIN, CONTRAST_LEAST, DETAIL_SIGMA = 0.17, 0.65, 0.1
"""Deviation of log luma, within a tenth of an inter-ocular distance, up to which skin is left as it is; and the least that is kept."""

SHADE_LOG, BEARD_LOG = 0.3, 0.35
"""Log luma under the cheeks' up to which a vertex is shaded skin; and how much further below it counts a third."""

SMALLEST_SIDE = 96
"""The chain of halved textures ends here."""


@dataclass(frozen=True)
class MeshIdentity:
    """Immutable; any thread."""

    textures: tuple[np.ndarray, ...]
    """uint8 [side, side, 4] BGRA, each half the size of the one before."""
    logs: np.ndarray
    """float32 [468, 3]: log(colour + 6) of the texture around each vertex."""
    weights: np.ndarray
    """float32 [468]: skin area that is not hidden by hair."""
    contrast: float
    """In (0, 1]: by how much the texture's detail is to be softened, so that a harshly lit photo does not look like a mask."""
    relief: float
    """``relief_of`` the texture's vertices: log units."""
    grey: bool
    """The photos have no colour: the target's is taken."""

    @cached_property
    def colours(self) -> np.ndarray:
        """float32 [468, 3] BGR: ``logs`` as levels."""
        return np.exp(self.logs) - np.float32(LOG_OFFSET)

    def texture_for(self, width_px: float) -> np.ndarray:
        """The smallest texture that is still finer than a face of ``width_px``."""
        fitting = [texture for texture in self.textures if texture.shape[0] >= 1.15 * width_px]
        return fitting[-1] if fitting else self.textures[0]


def prepare(faces: Sequence[SourceFace]) -> MeshIdentity:
    """From one or more photos of a person. Raises ``PhotoError`` for none at all."""
    if not faces:
        raise PhotoError("no photo was given; give at least one photo of the face to wear")
    mesh = topology()
    texture = _merge([unwrap(face) for face in faces], mesh)
    bgra = np.dstack([texture.colour, texture.opaque * 255]).astype(np.uint8)
    shown = vertex_values(np.repeat(texture.opaque[..., None], 3, 2), mesh)[:, 0]
    logs = vertex_logs(texture.colour, mesh)
    weights = (mesh.skin * np.clip(shown * 1.3 - 0.3, 0, 1) * _bare(logs, mesh)).astype(np.float32)
    return MeshIdentity(
        textures=_halve(bgra),
        logs=logs,
        weights=weights if weights.sum() > 20 else mesh.skin,
        contrast=_contrast(texture.colour, mesh),
        relief=max(0.02, relief_of(logs, mesh.kernel(0.28))),
        grey=texture.grey,
    )


def nobody() -> MeshIdentity:
    """Grey all over, to be drawn once before there is a face: by then all is compiled that a photo is prepared by, in a hundredth of
    the time that a photo takes."""
    mesh = topology()
    flat = spread(np.full((468, 3), 128), mesh, SMALLEST_SIDE)
    texture = np.dstack([flat, np.full(flat.shape[:2], 255)]).astype(np.uint8)
    return MeshIdentity((texture,), vertex_logs(flat, mesh), mesh.skin, contrast=1.0, relief=1.0, grey=False)


def _merge(textures: list[Texture], mesh: Topology) -> Texture:
    """Each place from the photos that show it best; all brought to the colour of the best one."""
    best = max(textures, key=lambda texture: float(weighted_mean(texture.trust, mesh.skin)) - texture.grey)
    if len(textures) == 1:
        return best
    aim = weighted_mean(vertex_logs(best.colour, mesh), mesh.skin)
    total = np.zeros((*best.opaque.shape, 1), np.float32)
    colour, opaque = np.zeros_like(best.colour), np.zeros_like(best.opaque)
    for texture in textures:
        step = aim - weighted_mean(vertex_logs(texture.colour, mesh), mesh.skin)
        step = step if not texture.grey else np.full(3, step @ LUMA)
        weight = (spread(texture.trust**3, mesh) + 1e-3) * (texture.opaque[..., None] + 1e-3) * (0.05 if texture.grey != best.grey else 1)
        colour += weight * texture.colour * np.exp(step).astype(np.float32)
        opaque += weight[..., 0] * texture.opaque
        total += weight
    trust = np.max([texture.trust for texture in textures], 0)
    return Texture(np.clip(colour / total, 0, 255), opaque / total[..., 0], trust, best.grey)


def _bare(logs: np.ndarray, mesh: Topology) -> np.ndarray:
    """[468] in [0, 1]: less where the face is darker than its skin: a beard says nothing about the light, and would brighten all around."""
    luma = logs @ LUMA
    typical = float(np.median(luma[plain_skin(mesh) > 0]))
    return np.exp(-((np.minimum(0, luma - typical + SHADE_LOG) / BEARD_LOG) ** 2))


def _contrast(colour: np.ndarray, mesh: Topology) -> float:
    """1 for skin as smooth as most photos', less for deep wrinkles, hard light and shine."""
    luma = np.log(colour @ LUMA + LOG_OFFSET).astype(np.float32)
    detail = luma - cv2.GaussianBlur(luma, (0, 0), SIDE * mesh.texels_per_iod * DETAIL_SIGMA)
    roughness = float(np.std(detail[spread(plain_skin(mesh), mesh)[..., 0] > 0.7]))
    return float(np.clip(SMOOTH_SKIN / max(roughness, 1e-6), CONTRAST_LEAST, 1))


def _halve(texture: np.ndarray) -> tuple[np.ndarray, ...]:
    chain = [texture]
    while chain[-1].shape[0] > SMALLEST_SIDE:
        chain.append(cv2.resize(chain[-1], None, fx=0.5, fy=0.5, interpolation=cv2.INTER_AREA))
    return tuple(chain)
