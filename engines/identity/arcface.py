"""ArcFace (Deng et al. 2019), InsightFace's w600k networks (r50, mbf): a face → 512 numbers."""

from __future__ import annotations

import numpy as np

from engines.align import crop_bgr, five_of_mesh, similarity, template
from engines.errors import ModelError
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.identity.contract import Embedding
from engines.session import Session
from engines.tensor import SIGNED

SIDE, TEMPLATE = 112, "arcface_112_v2"
"""InsightFace's norm_crop. Colours: RGB in [-1, 1], its (x - 127.5) / 127.5."""


class ArcFace:
    """Not thread-safe: one thread at a time."""

    def __init__(self, name: str, session: Session) -> None:
        self.name = name
        self._session = session
        self._planes = np.empty((1, 3, SIDE, SIDE), np.float32)

    def embed(self, image: np.ndarray, five: np.ndarray) -> Embedding:
        """Raises ``ModelError`` where the network gives something else than its file says."""
        crop = crop_bgr(image, similarity(five, template(TEMPLATE, SIDE)), SIDE)
        SIGNED.to_tensor(crop, self._planes[0])
        (spec,) = self._session.inputs
        raw = next(iter(self._session.run({spec.name: self._planes.astype(spec.dtype, copy=False)}).values()))
        if raw.size != 512 or not np.isfinite(raw).all():
            raise ModelError(f"{self.name} gave {raw.shape} or values that are no numbers where 512 were expected; pull the model again")
        return Embedding(raw.reshape(512).astype(np.float32))

    def crop(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """What the network looks at: uint8 [112, 112, 3] BGR of ``image`` (uint8 BGR), ``points`` float32 [468, 3] in its pixels."""
        return crop_bgr(image, similarity(five_of_mesh(points), template(TEMPLATE, SIDE)), SIDE)


class ArcFaceFamily:
    """Input named `input` (FaceFusion's export) or `input.1` (InsightFace's)."""

    kind = Kind.IDENTITY

    def differences(self, graph: Graph) -> tuple[str, ...]:
        if len(graph.inputs) != 1 or len(graph.outputs) != 1:
            return built_otherwise(graph, "one of each")
        given = shape_differences("input", graph.inputs[0], (None, 3, SIDE, SIDE), ("float32", "float16"))
        return given + shape_differences("output", graph.outputs[0], (None, 512), ("float32", "float16"))

    def open(self, model: ModelFile, kit: Kit) -> ArcFace:
        return ArcFace(model.name, kit.session(model))


families.register("arcface")(ArcFaceFamily())
