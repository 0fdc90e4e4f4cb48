"""What a model is tried on before it is trusted: real faces, as its family's own part gives them to its network.

The part itself is opened over a session that takes down what it is given, and looks at each face once. Range, norm, layout and colour
order are then those of the live line, and are written nowhere a second time.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from engines.align import Aligner, MeshAligner, five_of_mesh
from engines.build.crops import CROPS_MIN, Framing, Pixels, feeds_of, portrait_crops
from engines.build.views import View, portrait_views, scenes_of, views_of
from engines.errors import ModelError
from engines.face import Landmarks, SourceFace
from engines.family import Graph, Kind, Kit, ModelFile, TellsOutputs, families
from engines.identity.contract import Embedding
from engines.landmarks.contract import sought_by_mesh
from engines.measure import Check
from engines.session import Session, Shapes
from engines.wording import counted

STRANGER_LENGTH = 22.0
"""ArcFace's embeddings are some 20 to 25 long, before they are normed, for a clear photo."""

Feeds = list[dict[str, np.ndarray]]
"""The inputs of one run each, by name."""


@dataclass(frozen=True, slots=True)
class Trial:
    """What a person may say of it. Picklable."""

    family: str | None = None
    """Of ``engines.family.families``; None: found by the file. A model that is of none is fed by ``framing`` and ``pixels``."""
    crops: np.ndarray | None = None
    """uint8 [N ≥ 32, S, S, 3] RGB; None: from the portraits that come with the program."""
    framing: Framing = Framing.FACE
    pixels: Pixels | None = None
    """Where it is given, the model is fed by it and ``framing``, of whatever family it is."""
    checks: Mapping[str, Check] = field(default_factory=dict)
    """By output; what is not named is compared as its family says, or by its shape."""

    def flags(self) -> tuple[str, ...]:
        """For an engine's key: small numbers depend on what they were measured on."""
        crops = "portraits" if self.crops is None else hashlib.sha256(self.crops.tobytes()).hexdigest()
        if self.pixels is not None:
            return (f"crops={crops}", f"framing={self.framing}", f"pixels={self.pixels.mean:g}/{self.pixels.std:g}")
        return (f"crops={crops}", f"framing={self.framing}", f"family={self.family or 'by its file'}")

    def feeds(self, path: Path, session: Session, shapes: Shapes) -> Feeds:
        """32 or more. ``session``: the fp32 model at ``path``. ``shapes``: of inputs whose sizes may vary, the number of pictures first.

        Raises ``ModelError`` where ``path`` fits several families, and for an input that nothing can be made up for.
        """
        model = None if self.pixels is not None else model_at(path, self.family)
        if model is not None:
            return _overheard(model, session, self.crops, shapes)
        crops = self.crops if self.crops is not None else portrait_crops(framing=self.framing)
        return feeds_of(session.inputs, crops, shapes=shapes, pixels=self.pixels)

    def checks_of(self, path: Path) -> Mapping[str, Check]:
        """What is known of the outputs of the model at ``path``. Raises ``ModelError`` as ``feeds`` does."""
        model = model_at(path, self.family)
        family = None if model is None else families[model.family]
        if model is None or not isinstance(family, TellsOutputs):
            return self.checks
        return {**family.checks(model.graph), **self.checks}


def model_at(path: Path, family: str | None = None) -> ModelFile | None:
    """What the file is: by what was said of it, its card on the shelf, its hash, or its graph. None where it is of no family.

    Raises ``ModelError`` for one that fits several families, with how to say which.
    """
    from engines.store.catalog import load_catalog
    from engines.store.graph import read_graph
    from engines.store.identify import identify
    from engines.store.shelf import Shelf, sha256_of

    graph, shelf = read_graph(path), Shelf()
    card = shelf.has(sha256_of(path)) if family is None else None
    if card is not None:
        return ModelFile(card.name, path, card.sha256, card.family, card.graph)
    if family is None and all(families[name].differences(graph) for name in families):
        return None
    found = identify(path, load_catalog(), families, family=family)
    return ModelFile(found.name, path, found.sha256, found.family, found.graph)


def missing_shapes(path: Path, graph: Graph, given: Shapes, family: str | None = None) -> Shapes:
    """What is missing in ``given`` of inputs whose file leaves sizes open: the shape that the model's family gives them when it looks
    at one face of a square picture, or what is on record of a model that ships with the program. Nothing for others.

    ``graph``: that of ``path``. Raises ``ModelError`` as ``model_at`` does.
    """
    free = [spec.name for spec in graph.inputs if not all(isinstance(size, int) for size in spec.shape[1:])]
    unsaid = [name for name in free if name not in given]
    heard = _shapes_heard(path, family) if unsaid else {}
    return {name: heard[name] for name in unsaid if name in heard}


# --- listening to a part


def _shapes_heard(path: Path, family: str | None) -> Shapes:
    model = model_at(path, family)
    if model is None:
        return _shape_on_record(path)
    kind, eavesdropper = families[model.family].kind, _Eavesdropper(model.graph)
    part = families[model.family].open(model, _LoneKit(eavesdropper))
    try:
        LOOKS[kind](part, portrait_views(1)[0])
    except _Overheard as heard:
        return heard.shapes
    return {}


def _shape_on_record(path: Path) -> Shapes:
    """Of the input of an embedded model."""
    from engines.store.embedded import embedded_models
    from engines.store.graph import read_graph
    from engines.store.shelf import sha256_of

    digest = sha256_of(path)
    shapes = [model.usual_shape for model in embedded_models().values() if model.sha256 == digest and model.usual_shape]
    return {read_graph(path).inputs[0].name: shape for shape in shapes}


def _overheard(model: ModelFile, session: Session, crops: np.ndarray | None, shapes: Shapes) -> Feeds:
    kind = families[model.family].kind
    listener = _Listener(session, shapes)
    part = families[model.family].open(model, _LoneKit(listener))
    for view in _views(kind, crops):
        LOOKS[kind](part, view)
    if len(listener.heard) < CROPS_MIN:
        seen = f"{model.name} looked at {counted(len(listener.heard), 'face')}, and {CROPS_MIN} are needed"
        raise ModelError(f"{seen}; give --pixels, which feeds it without its family")
    return [_repeated(feed, shapes) for feed in listener.heard]


def _views(kind: Kind, crops: np.ndarray | None) -> Sequence[View]:
    if crops is None:
        return portrait_views()
    return scenes_of(crops) if kind in (Kind.DETECTOR, Kind.CONVERTER) else views_of(crops)


def _detect(part: Any, view: View) -> None:
    part.detect(view.image)


def _locate(part: Any, view: View) -> None:
    part.locate(view.image, [sought_by_mesh(view.points)])


def _embed(part: Any, view: View) -> None:
    part.embed(view.image, five_of_mesh(view.points))


def _convert(part: Any, view: View) -> None:
    part.convert(_stranger(view.image))


def _swap(part: Any, view: View) -> None:
    identity = part.prepare([SourceFace(view.image, Landmarks(view.points, 1.0), "")])
    part.swap(view.image, view.points, identity, 0, 0)


def _enhance(part: Any, view: View) -> None:
    part.enhance(view.image, view.points)


def _mask(part: Any, view: View) -> None:
    part.covers(view.image, [view.points])


LOOKS: Mapping[Kind, Callable[[Any, View], None]] = {
    Kind.DETECTOR: _detect,
    Kind.LANDMARKS: _locate,
    Kind.IDENTITY: _embed,
    Kind.CONVERTER: _convert,
    Kind.SWAPPER: _swap,
    Kind.ENHANCER: _enhance,
    Kind.MASK: _mask,
}
"""How a part of each kind is made to look at a face: one run of its network."""


class _Listener:
    """A session that takes down what it is given. The network runs for the first face alone: what comes out changes nothing here."""

    def __init__(self, session: Session, shapes: Shapes) -> None:
        """``shapes``: what the model is to be taken for, but for the number of pictures."""
        self.inputs = tuple(
            replace(spec, shape=(spec.shape[0], *shapes[spec.name][1:])) if spec.name in shapes and spec.shape else spec
            for spec in session.inputs
        )
        self.outputs = session.outputs
        self.runtime = session.runtime
        self.memory_bytes = None
        self.heard: Feeds = []
        self._session = session
        self._results: dict[str, np.ndarray] = {}

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        self.heard.append({name: np.array(value) for name, value in feeds.items()})  # a part's memory is the same from call to call
        self._results = self._results or self._session.run(feeds)
        return {name: value.copy() for name, value in self._results.items()}

    def warm_up(self) -> None:
        """Nothing to be heard."""

    def close(self) -> None:
        """Whoever opened the session closes it."""


class _Overheard(Exception):
    """What a network would have been given; no error: it ends what need not go on."""

    def __init__(self, feeds: Mapping[str, np.ndarray]) -> None:
        super().__init__()
        self.shapes: Shapes = {name: value.shape for name, value in feeds.items()}


class _Eavesdropper:
    """A session without a network: what it is given ends the run."""

    def __init__(self, graph: Graph) -> None:
        self.inputs, self.outputs = graph.inputs, graph.outputs
        self.runtime = "none"
        self.memory_bytes = None

    def run(self, feeds: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        raise _Overheard(feeds)

    def warm_up(self) -> None:
        """Nothing runs."""

    def close(self) -> None:
        """Nothing is open."""


class _LoneKit:
    """Keeps ``engines.family.Kit`` for one model. Recognisers and converters that are not here are stood in for."""

    def __init__(self, session: Session) -> None:
        self.options: Mapping[str, Any] = {}
        self.aligner: Aligner = MeshAligner()
        self._session = session

    def session(self, model: ModelFile, shapes: Shapes | None = None) -> Session:
        return self._session

    def part(self, kind: Kind, names: Sequence[str]) -> Any:
        if kind is Kind.IDENTITY:  # a swapper takes one person's embedding as it takes another's
            return _AnyRecogniser()
        try:
            return _shelf_kit().part(kind, names)
        except ModelError:
            if kind is not Kind.CONVERTER:
                raise
            return _NoConverter()


def _shelf_kit() -> Kit:
    from engines.kit import ModelKit
    from engines.store.catalog import load_catalog
    from engines.store.shelf import Shelf

    return ModelKit(Shelf(), load_catalog(), families, {})


class _AnyRecogniser:
    name = "any recogniser"

    def embed(self, image: np.ndarray, five: np.ndarray) -> Embedding:
        return _stranger(image)


class _NoConverter:
    name = "no converter"

    def convert(self, embedding: Embedding) -> np.ndarray:
        return embedding.raw


def _stranger(image: np.ndarray) -> Embedding:
    """Of somebody who does not exist. The same for the same picture.

    A swapper is given what lies on a sphere in 512 dimensions. A recogniser that is trained with an angular margin (ArcFace, Deng et al.
    2019) spreads people over all of it: embeddings of strangers are nearly at right angles, cosines of 0 give or take a few hundredths.
    So are these: the cosine of two random directions has mean 0 and deviation 1 / sqrt(512) = 0.044. What an embedding of a real photo
    has beside its direction is its length, of which swappers see nothing (they norm it) or what ``STRANGER_LENGTH`` gives.
    """
    seed = int.from_bytes(hashlib.sha256(image.tobytes()).digest()[:4], "big")
    vector = np.random.default_rng(seed).standard_normal(512)
    return Embedding((vector / np.linalg.norm(vector) * STRANGER_LENGTH).astype(np.float32))


def _repeated(feed: Mapping[str, np.ndarray], shapes: Shapes) -> dict[str, np.ndarray]:
    """As many pictures as ``shapes`` want, where one was heard."""
    return {name: _times(value, shapes.get(name, ())) for name, value in feed.items()}


def _times(value: np.ndarray, shape: Sequence[int]) -> np.ndarray:
    return np.repeat(value, shape[0], 0) if shape and value.ndim and len(value) == 1 else value
