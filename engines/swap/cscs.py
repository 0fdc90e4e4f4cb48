"""CSCS (Huang et al. 2024), export of 256 pixels as VisoMaster runs it: fed by the sum of two recognisers of its own."""

from __future__ import annotations

import numpy as np

from engines.align import crop_bgr, similarity, template
from engines.errors import ModelError
from engines.family import Graph, Kind, Kit, ModelFile, families
from engines.identity import arcface
from engines.identity.contract import Embedding, Recogniser
from engines.swap.embedding import EmbeddingFeed, embedding_differences
from engines.swap.neural import NeuralSwapper, Recipe, opened
from engines.tensor import SIGNED

SIDE, TEMPLATE = 256, "ffhq_512"

RECOGNISERS = ("cscs_arcface_model", "cscs_id_adapter")
"""Its makers' ArcFace (ms1mv3, r100) and the adapter beside it. Graphs and colours are as the family arcface has them, but both see the
photo laid as the target is: the crop of FFHQ, at 112 pixels."""


class BothRecognisers:
    """Keeps ``engines.identity.contract.Recogniser``: the sum of two embeddings of length 1, not made of length 1 again (VisoMaster's
    app/processors/face_swappers.py)."""

    def __init__(self, *both: Recogniser) -> None:
        self.name = " + ".join(one.name for one in both)
        self._both = both

    def embed(self, image: np.ndarray, five: np.ndarray) -> Embedding:
        """Raises ``ModelError``."""
        crop = crop_bgr(image, similarity(five, template(TEMPLATE, arcface.SIDE)), arcface.SIDE)
        as_it_is = template(arcface.TEMPLATE, arcface.SIDE)  # told that the points are where it wants them, ArcFace takes the crop unmoved
        return Embedding(np.sum([one.embed(crop, as_it_is).normed for one in self._both], 0))


class CscsFamily:
    """Simswap, ghost and hififace have the same shapes: the names of the inputs tell it from them."""

    kind = Kind.SWAPPER
    input_names = frozenset({"input_1", "input_2"})
    """The target's crop and the embedding."""

    def differences(self, graph: Graph) -> tuple[str, ...]:
        found = embedding_differences(graph, SIDE)
        names = [spec.name for spec in graph.inputs]
        if not found and set(names) != self.input_names:
            found += (f"its inputs are called {' and '.join(names)}, not {' and '.join(sorted(self.input_names))}",)
        return found

    def open(self, model: ModelFile, kit: Kit) -> NeuralSwapper:
        first, second = (kit.part(Kind.IDENTITY, (name,)) for name in RECOGNISERS)
        if first is second:
            needs = f"{model.name} needs two recognisers of its own, {' and '.join(RECOGNISERS)}"
            raise ModelError(f"{needs}, and --identity puts {first.name} in the place of both; leave --identity out")
        recipe = Recipe(TEMPLATE, SIDE, given=SIGNED, made=SIGNED)
        return opened(model, kit, recipe, EmbeddingFeed(BothRecognisers(first, second), lambda embedding: embedding.raw))


families.register("cscs")(CscsFamily())
