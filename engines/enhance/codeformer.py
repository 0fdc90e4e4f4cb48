"""CodeFormer (Zhou et al. 2022): restores from a codebook; a weight says how near to the picture it stays."""

from __future__ import annotations

import numpy as np

from engines.enhance.restore import Restorer, picture_differences
from engines.errors import ModelError
from engines.family import Graph, Kind, Kit, ModelFile, built_otherwise, families, shape_differences
from engines.network import Network

SIDE, TEMPLATE = 512, "ffhq_512"

WEIGHT = 0.5
"""The authors' own default: 0 gives the best looking face, 1 the one nearest to the picture."""

OPTION = "enhancer_weight"


class CodeFormerFamily:
    """`input` and `weight` (FaceFusion), `x` and `w` (VisoMaster): a picture and one float64; told apart by their shapes."""

    kind = Kind.ENHANCER

    def differences(self, graph: Graph) -> tuple[str, ...]:
        pictures = [spec for spec in graph.inputs if len(spec.shape) == 4]
        weights = [spec for spec in graph.inputs if len(spec.shape) < 2]
        if len(graph.inputs) != 2 or len(pictures) != 1 or len(weights) != 1:
            return built_otherwise(graph, "a picture and a weight")
        found = picture_differences(pictures[0], graph.outputs[0] if graph.outputs else None, (SIDE,))
        shape = (1,) * len(weights[0].shape)
        return found + shape_differences("weight", weights[0], shape, ("float64", "float32"))

    def open(self, model: ModelFile, kit: Kit) -> Restorer:
        """``kit.options["enhancer_weight"]``: 0 to 1. Raises ``ModelError`` for another."""
        weight = float(kit.options.get(OPTION, WEIGHT))
        if not 0 <= weight <= 1:
            raise ModelError(f"the weight of {model.name} is {weight}; give a number from 0 (looks best) to 1 (nearest to the picture)")
        network = Network(model.name, kit.session(model))
        others = {spec.name: np.full((1,) * len(spec.shape), weight, spec.dtype) for spec in network.others}
        return Restorer(network, kit.aligner, TEMPLATE, others)


families.register("codeformer")(CodeFormerFamily())
