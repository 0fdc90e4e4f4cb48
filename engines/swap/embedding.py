"""What swappers that take an embedding are fed with; and what the graphs of that kind have in common."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from engines.errors import ModelError, NoFaceError
from engines.face import SourceFace
from engines.family import Graph, Kind, Kit, built_otherwise, shape_differences
from engines.identity.combine import embed_all
from engines.identity.contract import Embedding, Recogniser
from engines.session import TensorSpec

ARCFACE = ("arcface_w600k_r50", "w600k_r50")
"""Names by which InsightFace's recogniser of that training goes; the swappers here were trained with it."""

FLOATS = ("float32", "float16")


class EmbeddingFeed:
    """Photos → the recogniser's embedding → what the network takes. Any thread, one at a time."""

    def __init__(self, recogniser: Recogniser, latent: Callable[[Embedding], np.ndarray]) -> None:
        """``latent``: the family's own step, embedding → float32 [512]."""
        self._recogniser = recogniser
        self._latent = latent

    def prepare(self, faces: Sequence[SourceFace]) -> np.ndarray:
        """float32 [1, 512]. Raises ``NoFaceError`` without a photo."""
        if not faces:
            raise NoFaceError("no photo was given; this swapper needs at least one of the face to wear")
        latent = self._latent(embed_all(self._recogniser, faces)).reshape(1, 512).astype(np.float32)
        if not np.isfinite(latent).all():
            raise ModelError("the face of the photo came out as values that are no numbers; give another photo")
        return latent


def arcface_feed(kit: Kit, latent: Callable[[Embedding], np.ndarray]) -> EmbeddingFeed:
    """Raises ``ModelError`` where no ArcFace model is on this machine."""
    return EmbeddingFeed(kit.part(Kind.IDENTITY, ARCFACE), latent)


def converted_feed(kit: Kit, converter: str, *, normed: bool) -> EmbeddingFeed:
    """Through the crossface model called ``converter``; ``normed``: made of length 1 after it."""
    crossface = kit.part(Kind.CONVERTER, (converter,))

    def latent(embedding: Embedding) -> np.ndarray:
        made: np.ndarray = crossface.convert(embedding)
        return of_length_one(made) if normed else made

    return arcface_feed(kit, latent)


def of_length_one(vector: np.ndarray) -> np.ndarray:
    return (vector / max(float(np.linalg.norm(vector)), 1e-12)).astype(np.float32)


def vector_and_picture(graph: Graph) -> tuple[TensorSpec | None, TensorSpec | None]:
    """The inputs [·, 512] and [·, 3, S, S] of a graph that has just these two, in whatever order."""
    vectors = [spec for spec in graph.inputs if len(spec.shape) == 2]
    pictures = [spec for spec in graph.inputs if len(spec.shape) == 4]
    return (vectors[0] if len(vectors) == 1 else None), (pictures[0] if len(pictures) == 1 else None)


def embedding_differences(graph: Graph, side: int | None) -> tuple[str, ...]:
    """How ``graph`` differs from: a vector of 512 and a picture of ``side`` in, the picture (and maybe more) out."""
    if len(graph.inputs) != 2:
        return built_otherwise(graph, "a source and a target")
    vector, picture = vector_and_picture(graph)
    shape = (None, 3, side, side)
    found = shape_differences("source input", vector, (None, 512), FLOATS) + shape_differences("target input", picture, shape, FLOATS)
    return found + shape_differences("first output", graph.outputs[0] if graph.outputs else None, shape, FLOATS)


def has_emap(graph: Graph) -> bool:
    """The last initializer is a matrix [512, 512], as in inswapper."""
    last = graph.last_initializer
    return last is not None and last.shape == (512, 512)
