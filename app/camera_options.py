"""The options of the command line that say how a camera's picture is held, the same for every command that has an input."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from cyclopts import Parameter

from app.live_options import usage
from app.settings import parse_crop, parse_exposure
from rt.options import CropFit


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class CameraOptions:
    """What becomes of the input's picture before a face is looked for.

    Parameters
    ----------
    mirror
        the picture is mirrored, for everybody who sees it.
    rotate
        degrees by which it is turned, clockwise: 0, 90, 180 or 270.
    crop
        LEFT,TOP,RIGHT,BOTTOM: shares of the picture that are cut away, as in 0.1,0,0.1,0.
    crop_fit
        fill: what a crop leaves fills a picture of the same size and shape; part: the picture gets as small as what is left.
    exposure
        of a camera: auto, or milliseconds; left as it is otherwise.
    reconnect
        seconds for which a camera or an address that broke off is waited for; for ever otherwise, 0 ends at once.
    """

    mirror: bool = False
    rotate: Literal[0, 90, 180, 270] = 0
    crop: str | None = None
    crop_fit: CropFit = CropFit.FILL
    exposure: str | None = None
    reconnect: float | None = None

    def settings(self) -> dict[str, Any]:
        """Fields of ``app.settings.InputSettings``. Raises ``UsageError``."""
        crop = {} if self.crop is None else {"crop": usage(parse_crop, self.crop)}
        exposure = {} if self.exposure is None else {"exposure_ms": usage(parse_exposure, self.exposure)}
        return {"mirror": self.mirror, "rotate": self.rotate, "crop_fit": self.crop_fit, "reconnect_s": self.reconnect, **crop, **exposure}
