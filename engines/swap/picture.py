"""What swappers that take a picture of the source are fed with."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.align import crop_bgr, five_of_mesh, similarity, template
from engines.errors import NoFaceError
from engines.face import SourceFace
from engines.family import Graph, built_otherwise, shape_differences
from engines.session import TensorSpec
from engines.swap.embedding import FLOATS
from engines.swap.neural import target_of
from engines.tensor import UNIT


class PictureFeed:
    """The first photo's face, aligned. Any thread."""

    def __init__(self, template_name: str, side: int) -> None:
        self._template = template_name
        self._side = side

    def prepare(self, faces: Sequence[SourceFace]) -> np.ndarray:
        """float32 [1, 3, S, S] RGB in [0, 1]; pictures cannot be averaged, so further photos are left out."""
        if not faces:
            raise NoFaceError("no photo was given; this swapper needs one of the face to wear")
        five = five_of_mesh(faces[0].landmarks.points)
        crop = crop_bgr(faces[0].image, similarity(five, template(self._template, self._side)), self._side)
        planes = np.empty((1, 3, self._side, self._side), np.float32)
        UNIT.to_tensor(crop, planes[0])
        return planes


def picture_differences(graph: Graph, source_side: int, side: int) -> tuple[str, ...]:
    """How ``graph`` differs from: two pictures in, one out."""
    if len(graph.inputs) != 2 or len(graph.outputs) != 1:
        return built_otherwise(graph, "two pictures in and one out")
    if not any(len(spec.shape) == 4 for spec in graph.inputs):
        return ("it takes no picture",)
    target = target_of(graph)
    source: TensorSpec = next(spec for spec in graph.inputs if spec is not target)
    return (
        shape_differences("source input", source, (None, 3, source_side, source_side), FLOATS)
        + shape_differences("target input", target, (None, 3, side, side), FLOATS)
        + shape_differences("output", graph.outputs[0], (None, 3, side, side), FLOATS)
    )
