"""A badge in a corner of the picture: it tells an audience that the face is worn."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np
from PIL import Image, ImageDraw, ImageFont

from rt.errors import OptionError
from rt.options import Corner

FONTS = ("DejaVuSans.ttf", "NotoSansCJK-Regular.ttc", "segoeui.ttf", "msyh.ttc", "Arial Unicode.ttf", "PingFang.ttc")
"""Files by which systems know a font of many letters, in the order in which they are tried; one of Latin letters comes with Pillow."""

HEIGHT_SHARE, SIDE_MIN = 0.045, 14
"""Of the plate: share of the picture's height; pixels at least."""

WIDTH_SHARE = 0.9
"""Of the picture, at most: a longer text is written smaller."""

PLATE, LETTERS = (24, 24, 24), (245, 245, 245)
"""Opaque, so that a picture that is shown twice shows the same badge."""

MISSING = "\U0010ffff"
"""No font has it: what is drawn for it is drawn for every letter that is missing."""


@dataclass(eq=True)
class Badge:
    """Any thread, several at once: lanes stamp one badge."""

    text: str
    corner: Corner
    _plates: dict[tuple[int, int], np.ndarray] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        """Raises ``OptionError`` where no font of this machine has the text's letters."""
        _font(self.text, SIDE_MIN)

    def stamp(self, pixels: np.ndarray) -> None:
        """Paints the badge over ``pixels`` (uint8 [H, W, 3] BGR), in place."""
        plate, left, top = self.placed(*pixels.shape[:2])
        pixels[top : top + plate.shape[0], left : left + plate.shape[1]] = plate

    def placed(self, height: int, width: int) -> tuple[np.ndarray, int, int]:
        """uint8 [h, w, 3] BGR, the same array for pictures of one size, and its left and top in a picture of that size."""
        plate = self._plates.get((height, width))
        if plate is None:
            plate = _plate(self.text, height, width)
            self._plates = {(height, width): plate}  # one size at a time; replaced as a whole
        margin = min(plate.shape[0] // 2, (height - plate.shape[0]) // 2, (width - plate.shape[1]) // 2)
        top = margin if self.corner in (Corner.TOP_LEFT, Corner.TOP_RIGHT) else height - margin - plate.shape[0]
        left = margin if self.corner in (Corner.TOP_LEFT, Corner.BOTTOM_LEFT) else width - margin - plate.shape[1]
        return plate, left, top


def _plate(text: str, height: int, width: int) -> np.ndarray:
    """uint8 [h, w, 3] BGR, no larger than a picture of ``height`` × ``width``."""
    side = min(height, max(SIDE_MIN, round(HEIGHT_SHARE * height)))
    font = _font(text, 0.62 * side)
    room = max(1, round(WIDTH_SHARE * width) - side)
    if font.getlength(text) > room:
        font = _font(text, max(1.0, 0.62 * side * room / font.getlength(text)))
    picture = Image.new("RGB", (min(width, round(font.getlength(text)) + side), side), PLATE)
    ImageDraw.Draw(picture).text((picture.width / 2, side / 2), text, LETTERS, font, anchor="mm")
    return np.ascontiguousarray(np.asarray(picture)[..., ::-1])


def _font(text: str, size: float) -> ImageFont.FreeTypeFont:
    for font in _fonts(size):
        missing = bytes(font.getmask(MISSING))
        if all(bytes(font.getmask(letter)) != missing for letter in set(text) - {" "}):
            return font
    raise OptionError(f"the badge {text!r} was given, and no font here has all its letters; write it with others, as in 'AI face'")


def _fonts(size: float) -> Iterator[ImageFont.FreeTypeFont]:
    own = ImageFont.load_default(size)
    if isinstance(own, ImageFont.FreeTypeFont):
        yield own
    for name in FONTS:
        try:
            yield ImageFont.truetype(name, size)
        except OSError:
            continue  # of another system
