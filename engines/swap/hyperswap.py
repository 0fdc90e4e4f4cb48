"""hyperswap 1a, 1b, 1c (FaceFusion): 256 pixels; says itself what of its picture is face."""

from __future__ import annotations

from engines.family import Graph, Kind, Kit, ModelFile, families, shape_differences
from engines.swap.embedding import FLOATS, arcface_feed, embedding_differences
from engines.swap.neural import NeuralSwapper, Recipe, opened
from engines.tensor import SIGNED

SIDE = 256


class HyperswapFamily:
    """Its second output, a mask of the picture's size, is used: others throw it away."""

    kind = Kind.SWAPPER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        mask = graph.outputs[1] if len(graph.outputs) > 1 else None
        return embedding_differences(graph, SIDE) + shape_differences("second output", mask, (None, 1, SIDE, SIDE), FLOATS)

    def open(self, model: ModelFile, kit: Kit) -> NeuralSwapper:
        recipe = Recipe("arcface_128", SIDE, given=SIGNED, made=SIGNED)
        return opened(model, kit, recipe, arcface_feed(kit, lambda embedding: embedding.normed))


families.register("hyperswap")(HyperswapFamily())
