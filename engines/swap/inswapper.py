"""inswapper (InsightFace): 128 pixels; and what was trained again on its contract (reswapper 128 and 256, InStyleSwapper 256)."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from engines.errors import ModelError
from engines.family import Graph, Kind, Kit, ModelFile, families
from engines.identity.contract import Embedding
from engines.store.graph import read_last_initializer
from engines.store.kept import kept
from engines.swap.embedding import arcface_feed, embedding_differences, has_emap, of_length_one
from engines.swap.neural import NeuralSwapper, Recipe, opened, target_side

TEMPLATE = "arcface_128"


class InswapperFamily:
    """Told from other swappers by its emap, the last initializer of the file."""

    kind = Kind.SWAPPER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        found = embedding_differences(graph, None)
        if not has_emap(graph):
            found += ("its last initializer is no matrix [512, 512]",)
        return found

    def open(self, model: ModelFile, kit: Kit) -> NeuralSwapper:
        feed = arcface_feed(kit, latent_by(read_emap(model)))
        return opened(model, kit, Recipe(TEMPLATE, target_side(model.graph, 128)), feed)


def latent_by(emap: np.ndarray) -> Callable[[Embedding], np.ndarray]:
    """The family's own step: the normed embedding times ``emap`` float32 [512, 512], then made of length 1.

    As in InsightFace's own inswapper class. FaceFusion leaves out the last norm, DeepFaceLive feeds its recogniser otherwise.
    """
    return lambda embedding: of_length_one(embedding.normed @ emap)


def read_emap(model: ModelFile) -> np.ndarray:
    """float32 [512, 512]: the last initializer; a second's work for 554 MB, so it is kept by the file's hash. Raises ``ModelError``."""
    emap = kept(model.sha256, "emap", lambda: read_last_initializer(model.path))
    if emap.shape != (512, 512) or not np.isfinite(emap).all():
        what = f"is {list(emap.shape)} or not finite, not a matrix [512, 512]"
        raise ModelError(f"the last initializer of {model.path.name} {what}; it is no inswapper file, or a damaged one: fetch it again")
    return emap.astype(np.float32)


families.register("inswapper")(InswapperFamily())
