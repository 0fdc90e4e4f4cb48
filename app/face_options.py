"""The options of the command line that say how a face is worn, the same for every command that swaps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Annotated, Any

from cyclopts import Parameter, Token

from app.errors import UsageError
from engines.face_regions import WORN, Region
from rt.options import Blending, Corner, OnLost

NO_MASK = "none"
"""What `--mask` takes for the whole face to be swapped, whatever is in front of it."""


def whole_number(type_: type, tokens: Sequence[Token]) -> int:
    """Of an option. The parser itself would take 2.5 for 2. Raises ``UsageError``."""
    (token,) = tokens
    try:
        return int(token.value)
    except ValueError:
        raise UsageError(f"{token.keyword} {token.value} was given; give a whole number") from None


Whole = Annotated[int, Parameter(converter=whole_number)]


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class FaceOptions:
    """What works on a face. Names are of what is built in, of models that `ffrt models` lists, or paths of model files; FAMILY:PATH where
    a file fits several families.

    Parameters
    ----------
    swapper
        what draws the face: mesh, a model, or a file (.onnx, .dfm).
    detector
        what finds faces: blazeface-full, blazeface-short, a model or a file.
    landmarks
        a model that aligns faces for neural swappers, masks and enhancers; FaceMesh otherwise.
    identity
        a model that swappers are fed by; the one that they were trained with otherwise.
    mask
        what stays the target's own: hands, mouth, none, models or files, one or several.
    enhancer
        a model or file that sharpens the swapped face.
    enhancer_opacity
        0 leaves the swap as it is, 1 shows the enhancer's picture alone.
    enhancer_weight
        what CodeFormer prefers: 0 a fine picture, 1 the face that it was given.
    regions
        where the face is worn, of a mask that tells regions apart (bisenet): face, mouth, hair, glasses, ears, hat, neck, one or several.
    pixel_boost
        1 to 4; a neural swapper works on so many times its own size.
    blend
        soft: by the soft edge alone; seamless: the face's colours first move to those along its seam; poisson: its gradients go over into
        the picture's; multiband: its coarse colours go over into the picture's over a wide seam, its detail over a narrow one.
    seam_width
        0.1 to 2; over how wide a seam the face fades out, times what the swapper has by itself.
    runtime
        what runs neural models: auto (the best that can run each), rtx, tensorrt, ort-cuda, ort-directml, ort-coreml, ort-openvino or ort
        (the processor), or several in the order in which they are tried, as in rtx,ort.
    """

    swapper: str = "mesh"
    detector: str = "blazeface-full"
    landmarks: str | None = None
    identity: str | None = None
    mask: Annotated[tuple[str, ...], Parameter(consume_multiple=True)] = ("hands",)
    enhancer: str | None = None
    enhancer_opacity: float = 0.8
    enhancer_weight: float = 0.5
    pixel_boost: Whole = 1
    regions: Annotated[tuple[Region, ...], Parameter(consume_multiple=True)] = WORN
    blend: Blending = Blending.SOFT
    seam_width: float = 1.0
    runtime: str = "auto"

    def arguments(self) -> list[str]:
        """The command line that gives these options to another process."""
        words: list[str] = []
        for option in fields(self):
            value = getattr(self, option.name)
            values = (value or (NO_MASK,)) if isinstance(value, tuple) else (value,)
            words += [word for one in values if one is not None for word in (f"--{option.name.replace('_', '-')}", str(one))]
        return words

    def settings(self) -> dict[str, Any]:
        """Fields of ``app.settings.LookSettings``."""
        return {
            "swapper": self.swapper,
            "detector": self.detector,
            "landmarks": self.landmarks,
            "identity": self.identity,
            "masks": tuple(name for name in self.mask if name != NO_MASK),
            "enhancer": self.enhancer,
            "enhancer_opacity": self.enhancer_opacity,
            "enhancer_weight": self.enhancer_weight,
            "pixel_boost": self.pixel_boost,
            "regions": self.regions,
            "blending": self.blend,
            "seam_width": self.seam_width,
            "runtime": self.runtime,
        }


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class LookOptions(FaceOptions):
    """All of a look: what works on a face, and how it is worn.

    Parameters
    ----------
    on_lost
        what is shown when the face is not found: hold, blur, freeze or show.
    opacity
        0 shows the person filmed, 1 the source.
    colour_match
        0 leaves the face its own colours, 1 gives it those of the person filmed: of the mesh, and of --blend seamless, poisson and
        multiband.
    colour_transfer
        0 leaves the face its own mean colour and contrast, 1 gives it those of the face it covers, whatever swapper drew it.
    sharpness
        0 leaves the face as it is drawn, 1 sharpens it most.
    badge
        text in a corner of the picture while a face is worn, as in "AI face".
    badge_corner
        where: top-left, top-right, bottom-left or bottom-right.
    smoothing
        0 takes landmarks as they come, 1 steadies them fully.
    max_faces
        how many faces are swapped.
    hold_frames
        for how many frames a face that is not found is predicted.
    detect_every
        look for further faces every so many frames.
    """

    on_lost: OnLost = OnLost.HOLD
    opacity: float = 1.0
    colour_match: float = 1.0
    colour_transfer: float = 0.0
    sharpness: float = 0.0
    badge: str = ""
    badge_corner: Corner = Corner.BOTTOM_LEFT
    smoothing: float = 1.0
    max_faces: Whole = 1
    hold_frames: Whole = 5
    detect_every: Whole = 15

    def settings(self) -> dict[str, Any]:
        own = [option.name for option in fields(LookOptions) if option.name not in {inherited.name for inherited in fields(FaceOptions)}]
        return {**super().settings(), **{name: getattr(self, name) for name in own}}
