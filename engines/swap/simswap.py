"""SimSwap (Chen et al. 2020), exports of 256 and 512 pixels, fed through crossface_simswap."""

from __future__ import annotations

from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families
from engines.swap.embedding import converted_feed, embedding_differences, has_emap
from engines.swap.neural import NeuralSwapper, Recipe, opened, target_side
from engines.tensor import IMAGENET, UNIT

TEMPLATE = "arcface_112_v1"


class SimswapFamily:
    """The network of 256 takes ImageNet's norm, that of 512 plain values; both give plain values, which are not to be normed back.

    As FaceFusion feeds its exports. VisoMaster lays its own of 512 (inputs `input`, `onnx::Gemm_1`) on arcface_128 and embeds by SimSwap's
    own recogniser: such a file is taken for FaceFusion's here, and its faces sit a little lower and larger in the crop than there.
    """

    kind = Kind.SWAPPER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        found = embedding_differences(graph, None)
        if not found and target_side(graph, 256) not in (256, 512):
            found += (f"its target is {target_side(graph, 256)} pixels, not 256 or 512",)
        if has_emap(graph):
            found += ("its last initializer is an emap",)
        if len(graph.outputs) != 1:
            found += built_otherwise(graph, "one output")
        return found

    def open(self, model: ModelFile, kit: Kit) -> NeuralSwapper:
        side = target_side(model.graph, 256)
        recipe = Recipe(TEMPLATE, side, given=IMAGENET if side == 256 else UNIT)
        return opened(model, kit, recipe, converted_feed(kit, "crossface_simswap", normed=True))


families.register("simswap")(SimswapFamily())
