"""From a photo to a texture: the face unwrapped, cleaned of noise, of its own light, of hair, its far side filled from the near one.

Constants were measured on 16 pairs of photos and clips, and checked on 12 others.
"""

from __future__ import annotations

from dataclasses import dataclass

import cv2
import numpy as np

from engines.face import SourceFace
from engines.mesh import regions
from engines.mesh.topology import Topology, brow_line, smoothstep, topology
from engines.swap.mesh import kernels
from engines.swap.mesh.colour import LOG_OFFSET, LUMA, smooth, weighted_mean

SIDE = 512
"""Texels of a side of the flat map."""

ENLARGE_MAX = 4.0
"""A small face in a photo is enlarged at most so much."""

NOISY, VERY_NOISY = 0.006, 0.016
"""Noise over brightness of the skin from which a photo is smoothed once, and twice."""

GREY = 0.05
"""Mean deviation of log colours from grey under which a photo counts as black and white."""

LIPS_UNDER_SKIN, TEETH = 0.25, 4.0
"""What between the lips is brighter than skin less this much log luma gives way to lip of that tone; how fast, for each log unit."""

SHINE, SHINE_ROOM, SHINE_TINTS = 0.24, 0.25, 0.08
"""Log luma over the skin's from which brightness counts as shine, how much of it is left at most, and from where on it gets the skin's
colour. Looked at on seven photos worn by four people."""

LIPS_LEAST = 50
"""Texels of lip that say what colour it is."""

SMALL_SIDE = 80
"""The texture is reduced to this before its vertices' colours are taken."""


@dataclass(slots=True)
class Texture:
    """One photo's face in the flat map."""

    colour: np.ndarray
    """float32 [SIDE, SIDE, 3] BGR, light removed."""
    opaque: np.ndarray
    """float32 [SIDE, SIDE] in [0, 1]: 0 where the photo shows hair, or nothing."""
    trust: np.ndarray
    """float32 [468] in [0, 1]: how well the photo shows each vertex."""
    grey: bool
    """The photo has no colour of its own."""


def unwrap(face: SourceFace) -> Texture:
    """The whole way from photo to texture: about 0.2 s."""
    mesh = topology()
    image, points = _cut_out(face.image, face.landmarks.points)
    colour, covered, outside = _flatten(image, points, mesh)
    skin = spread(plain_skin(mesh), mesh)[..., 0] > 0.7
    colour = _denoise(colour, skin).astype(np.float32)
    seen = smoothstep(-_normals(points, mesh)[:, 2], 0.10, 0.42).astype(np.float32)
    logs = vertex_logs(colour, mesh)
    grey = bool(np.abs(logs - (logs @ LUMA)[:, None])[mesh.skin > 0].mean() < GREY)
    light, side = _light(logs @ LUMA, seen, mesh)
    borrow, trust = _what_to_borrow(seen, side, mesh)
    field = spread(np.stack([np.exp(-light), borrow, seen], 1), mesh)
    field[..., 0][~covered] = 1
    colour = colour * field[..., :1]
    if borrow.max() > 0.05:
        colour, outside = _borrow_from_other_side(colour, outside, field[..., 1], borrow, seen, mesh)
    colour = _close_mouth(_take_shine(colour, skin), skin, mesh)
    hidden = np.maximum.reduce([_hair(colour, skin, mesh), outside, _edge_on(seen, mesh)])
    return Texture(np.clip(colour, 0, 255), 1 - _soften_edge_of_hair(hidden, mesh), np.maximum(trust, borrow * 0.5), grey)


def spread(values: np.ndarray, mesh: Topology, side: int = SIDE) -> np.ndarray:
    """Values of vertices [468] or [468, K] → float32 [side, side, K] over the flat map; eyes and mouth filled from their rims."""
    values = np.asarray(values, np.float32).reshape(len(values), -1)
    out = np.zeros((side, side, values.shape[1]), np.float32)
    extended = np.concatenate([values, values[mesh.ring]])
    kernels.spread(mesh.uv * side - 0.5, mesh.drawn, np.ascontiguousarray(extended), out)
    return out


def vertex_values(flat: np.ndarray, mesh: Topology) -> np.ndarray:
    """float32 [468, 3]: ``flat`` [SIDE, SIDE, 3] around each vertex."""
    small = cv2.resize(np.ascontiguousarray(flat, np.float32), (SMALL_SIDE, SMALL_SIDE), interpolation=cv2.INTER_AREA)
    out = np.empty((468, 3), np.float32)
    kernels.sample(small, mesh.uv[:468, 0] * SMALL_SIDE - 0.5, mesh.uv[:468, 1] * SMALL_SIDE - 0.5, out)
    return out


def vertex_logs(colour: np.ndarray, mesh: Topology) -> np.ndarray:
    """float32 [468, 3]: log(colour + 6) around each vertex."""
    return np.log(np.maximum(0, vertex_values(colour, mesh)) + LOG_OFFSET)


def _cut_out(image: np.ndarray, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The face with a margin of 20 pixels, scaled to about the texture's size; and the points in it."""
    height, width = image.shape[:2]
    left, top = np.clip(points[:, :2].min(0) - 20, 0, [width - 2, height - 2]).astype(int)
    right, bottom = np.minimum(points[:, :2].max(0) + 20, [width, height]).astype(int)
    scale = min(ENLARGE_MAX, SIDE / float(np.ptp(points[:, 0])))
    how = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    cut = cv2.resize(image[top:bottom, left:right], None, fx=scale, fy=scale, interpolation=how)
    moved = (points - [left - 0.5, top - 0.5, 0]) * scale - [0.5, 0.5, 0]  # a pixel's centre is half a pixel from its border
    return cut, moved.astype(np.float32)


def _flatten(image: np.ndarray, points: np.ndarray, mesh: Topology) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The flat picture uint8 [SIDE, SIDE, 3]; where the mesh covers it; and float32 1 where the mesh reaches out of the photo."""
    place = np.full((SIDE, SIDE, 2), -1, np.float32)
    extended = mesh.extend(points)
    kernels.spread(mesh.uv * SIDE - 0.5, mesh.drawn, np.ascontiguousarray(extended[:, :2]), place)
    flat = cv2.remap(image, place[..., 0], place[..., 1], cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    height, width = image.shape[:2]
    covered = np.zeros((SIDE, SIDE), bool)
    covered[:] = spread(np.ones(468), mesh)[..., 0] > 0
    outside = covered & ((place < 1).any(-1) | (place[..., 0] > width - 2) | (place[..., 1] > height - 2))
    return flat, covered, outside.astype(np.float32)


def plain_skin(mesh: Topology) -> np.ndarray:
    """Cheeks, nose and lower forehead: vertices that are skin on anybody."""
    y = mesh.shape[:, 1]
    return ((mesh.skin > 0) & (mesh.from_oval > 0.18) & (y > brow_line(mesh.shape) + 0.10) & (y < 0.45)).astype(np.float32)


def _denoise(flat: np.ndarray, skin: np.ndarray) -> np.ndarray:
    grey = cv2.cvtColor(flat, cv2.COLOR_BGR2GRAY).astype(np.float32)
    iod = SIDE * topology().texels_per_iod
    rough = grey - cv2.GaussianBlur(grey, (0, 0), iod * 0.015)
    noise = 1.4826 * float(np.median(np.abs(rough[skin])))
    relative = noise / max(20.0, float(np.median(grey[skin])))
    if relative > NOISY:
        flat = cv2.bilateralFilter(flat, 0, 3 * noise + 2, iod * 0.016)
    if relative > VERY_NOISY:
        flat = cv2.bilateralFilter(flat, 0, 3 * noise + 2, iod * 0.022)
    return flat


def _normals(points: np.ndarray, mesh: Topology) -> np.ndarray:
    """float64 [468, 3] unit normals that point out of the head."""
    a, b, c = (points[mesh.triangles[:, k]].astype(np.float64) for k in range(3))
    flat = np.cross(b - a, c - a)
    a, b, c = (mesh.shape[mesh.triangles[:, k]].astype(np.float64) for k in range(3))
    away = (a + b + c) / 3 - [0, 0, 0.7]  # a point inside the head
    flat *= np.sign((np.cross(b - a, c - a) * away).sum(1))[:, None]
    normals = np.zeros((468, 3))
    for k in range(3):
        np.add.at(normals, mesh.triangles[:, k], flat)
    return normals / (np.linalg.norm(normals, axis=1, keepdims=True) + 1e-9)


def _light(luma: np.ndarray, seen: np.ndarray, mesh: Topology) -> tuple[np.ndarray, np.ndarray]:
    """The photo's own light, in log units, to be taken out; and how much brighter each vertex is than its mirror."""
    skin = (mesh.skin > 0) & (mesh.from_oval > 0.18)
    typical = float(np.median(luma[skin]))
    weights = (mesh.skin * (0.02 + seen) * np.exp(-(((luma - typical) / 1.3) ** 2))).astype(np.float32)
    wide = smooth(mesh.kernel(0.30), luma[:, None], weights)[:, 0]
    near = smooth(mesh.kernel(0.12), luma[:, None], mesh.skin + np.float32(1e-3))[:, 0]
    even = (wide + wide[mesh.mirror]) / 2
    side = near - near[mesh.mirror]
    light = np.clip(even - weighted_mean(even, mesh.skin), -0.8, 0.6) + np.clip(side / 2, -0.5, 0.5)
    return light, side


def _what_to_borrow(seen: np.ndarray, side: np.ndarray, mesh: Topology) -> tuple[np.ndarray, np.ndarray]:
    """float32 [468] in [0, 1] twice: how much of each vertex comes from its mirror; how well the photo shows it."""
    trust = seen * smoothstep(side, -0.95, -0.30)
    wish = np.clip((trust[mesh.mirror] - trust) * 1.7 - 0.10, 0, 1).astype(np.float32)
    return smooth(mesh.kernel(0.09), wish[:, None], np.ones(468, np.float32))[:, 0], trust.astype(np.float32)


def _borrow_from_other_side(
    colour: np.ndarray, outside: np.ndarray, share: np.ndarray, borrow: np.ndarray, seen: np.ndarray, mesh: Topology
) -> tuple[np.ndarray, np.ndarray]:
    """Mixes in the mirrored texture, its low frequencies matched to this side's."""
    logs = vertex_logs(colour, mesh)
    both = mesh.skin * (1 - borrow) * (1 - borrow[mesh.mirror]) * seen * seen[mesh.mirror] + 1e-4 * mesh.skin
    step = smooth(mesh.kernel(0.25), (logs - logs[mesh.mirror]).astype(np.float32), both.astype(np.float32))
    luma = np.clip(step @ LUMA, -0.15, 0.15)[:, None]
    step = np.clip(step - (step @ LUMA)[:, None], -0.12, 0.12) + luma
    mix = cv2.GaussianBlur(share, (0, 0), SIDE * mesh.texels_per_iod * 0.03)[..., None]
    mixed = colour * (1 - mix) + colour[:, ::-1] * spread(np.exp(step), mesh) * mix
    return mixed, outside * (1 - mix[..., 0]) + outside[:, ::-1] * mix[..., 0]


def _take_shine(colour: np.ndarray, skin: np.ndarray) -> np.ndarray:
    """Shine of the skin, of wet lips, of glasses before it, is light and not skin: it is bent down, and gets the skin's colour.

    White as it is, the light of another picture would tint it: red skin that is to be less red would shine green.
    """
    typical = np.median(colour[skin], 0)
    over = np.log((colour @ LUMA + LOG_OFFSET) / (float(typical @ LUMA) + LOG_OFFSET))
    shine = np.maximum(0, over - SHINE)
    bent = np.minimum(over, SHINE) + shine * SHINE_ROOM / (SHINE_ROOM + shine)
    tint = smoothstep(over, SHINE_TINTS, SHINE_TINTS + SHINE_ROOM)[..., None]
    own = (colour + LOG_OFFSET) * np.exp(bent - over)[..., None]
    of_skin = (typical + LOG_OFFSET) * np.exp(bent)[..., None]
    return (own * (1 - tint) + of_skin * tint - LOG_OFFSET).astype(np.float32)


def _close_mouth(colour: np.ndarray, skin: np.ndarray, mesh: Topology) -> np.ndarray:
    """Teeth that a smile shows between the lips give way to lip: on a closed mouth they would glow."""
    near = np.zeros(468, np.float32)
    near[regions.LIPS_BESIDE_GAP] = 1
    region = cv2.GaussianBlur(spread(near, mesh), (0, 0), SIDE * mesh.texels_per_iod * 0.015)
    typical = np.median(colour[skin], 0)
    over = np.maximum(0, np.log((colour @ LUMA + LOG_OFFSET) / (float(typical @ LUMA) + LOG_OFFSET)) + LIPS_UNDER_SKIN)
    white = smoothstep(_saturation(colour) / max(0.05, float(_saturation(typical))), 0.8, 0.4)
    white = np.maximum(white, smoothstep(over, LIPS_UNDER_SKIN, LIPS_UNDER_SKIN + 0.2))  # lips are never brighter than skin
    mix = ((1 - np.exp(-TEETH * over)) * white * region)[..., None]
    closed: np.ndarray = colour * (1 - mix) + _lip_colour(colour, over * white, typical, mesh) * mix
    return closed


def _lip_colour(colour: np.ndarray, teeth: np.ndarray, typical: np.ndarray, mesh: Topology) -> np.ndarray:
    """float32 [3]: of what is lip in a mouth of which ``teeth`` [SIDE, SIDE] are more than 0; darkened ``typical`` skin where all are."""
    lips = np.zeros(468, np.float32)
    lips[regions.LIPS] = 1
    seen = colour[(spread(lips, mesh)[..., 0] > 0.9) & (teeth < 0.02)]
    skin = typical * np.exp(-LIPS_UNDER_SKIN)
    if len(seen) < LIPS_LEAST:
        return skin
    lip = np.median(seen, 0)
    return lip * min(1.0, float((skin @ LUMA) / max(1.0, lip @ LUMA)))


def _saturation(colour: np.ndarray) -> np.ndarray:
    """[...] in [0, 1]: how far from grey colours [..., 3] are."""
    blue, green, red = colour[..., 0], colour[..., 1], colour[..., 2]  # along an axis of three, NumPy takes ten times as long
    most = np.maximum(np.maximum(blue, green), red)
    share: np.ndarray = (most - np.minimum(np.minimum(blue, green), red)) / (most + LOG_OFFSET)
    return share


def _hair(colour: np.ndarray, skin: np.ndarray, mesh: Topology) -> np.ndarray:
    """float32 [SIDE, SIDE]: 1 where forehead, temples or jaw are not of the cheeks' colour."""
    iod = SIDE * mesh.texels_per_iod
    lab = cv2.cvtColor(np.clip(colour / 255, 0, 1).astype(np.float32), cv2.COLOR_BGR2LAB)
    lab = cv2.GaussianBlur(lab, (0, 0), iod * 0.012)
    cheeks = lab[skin]
    typical = np.median(cheeks, 0)
    deviation = np.clip(1.4826 * np.median(np.abs(cheeks - typical), 0), [3, 1.2, 1.2], [6.5, 3.2, 3.2])
    away = ((lab - typical) / (deviation * 1.5)) ** 2
    distance = np.sqrt(away[..., 0] + away[..., 1] + away[..., 2])
    y, line = mesh.shape[:, 1], brow_line(mesh.shape)
    forehead = smoothstep(y, line + 0.02, line - 0.10) * smoothstep(mesh.from_brows, 0.03, 0.075)
    temples = smoothstep(mesh.from_oval, 0.32, 0.12) * smoothstep(y, 0.50, 0.30) * (mesh.from_eyes > 0.12)
    jaw = smoothstep(mesh.from_oval, 0.14, 0.05) * 0.9
    region = spread(np.maximum(np.maximum(forehead, temples), jaw), mesh)[..., 0]
    found = (smoothstep(distance, 1.9, 3.2) * np.clip(region * 1.4, 0, 1)).astype(np.float32)
    hair = cv2.morphologyEx(found, cv2.MORPH_OPEN, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (5, 5)))
    return cv2.dilate(hair, cv2.getStructuringElement(cv2.MORPH_ELLIPSE, (int(iod * 0.06) | 1,) * 2))


def _edge_on(seen: np.ndarray, mesh: Topology) -> np.ndarray:
    """float32 [SIDE, SIDE]: 1 along the oval where neither half of the photo's face is turned to the viewer.

    A few pixels of the photo are stretched over such places, and what stood behind the face is among them.
    """
    side = (1 - np.maximum(seen, seen[mesh.mirror])) * smoothstep(mesh.from_oval, 0.40, 0.25)
    field: np.ndarray = spread(side, mesh)[..., 0]
    return field


def _soften_edge_of_hair(hidden: np.ndarray, mesh: Topology) -> np.ndarray:
    soft = cv2.GaussianBlur(hidden, (0, 0), SIDE * mesh.texels_per_iod * 0.035)
    off_brows = np.clip(spread(np.minimum(1, mesh.from_brows / 0.05), mesh)[..., 0], 0, 1)
    return np.clip(soft * (0.25 + 0.75 * off_brows) * 1.2, 0, 1)
