"""Several photos of one person become one embedding."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from engines.align import five_of_mesh
from engines.face import SourceFace
from engines.identity.contract import Embedding, Recogniser


def embed_all(recogniser: Recogniser, faces: Sequence[SourceFace]) -> Embedding:
    """The mean direction of the photos' embeddings, at their mean length: a photo of large norm says no more than another."""
    found = [recogniser.embed(face.image, five_of_mesh(face.landmarks.points)) for face in faces]
    direction = np.mean([one.normed for one in found], 0)
    length = float(np.mean([np.linalg.norm(one.raw) for one in found]))
    return Embedding((direction / max(float(np.linalg.norm(direction)), 1e-12) * length).astype(np.float32))
