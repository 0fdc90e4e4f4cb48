"""What a camera offers of exposure. The modes have the numbers of Video4Linux."""

from __future__ import annotations

from dataclasses import dataclass

AUTO, MANUAL, SHUTTER_PRIORITY, APERTURE_PRIORITY = range(4)
"""V4L2_EXPOSURE_…: entries of the menu. A webcam's aperture is fixed, so most say aperture priority for automatic."""


@dataclass(frozen=True, slots=True)
class Exposure:
    """What a camera offers."""

    modes: tuple[int, ...]
    """Those of ``AUTO`` … that it has; empty where it has no choice of them."""
    least_ms: float
    most_ms: float
    """Both 0 where no time can be set."""

    @property
    def automatic(self) -> int | None:
        """The mode in which the camera decides, or None."""
        return next((mode for mode in (AUTO, APERTURE_PRIORITY) if mode in self.modes), None)

    @property
    def fixed(self) -> bool:
        """Whether a time can be set."""
        return self.most_ms > 0 and (not self.modes or MANUAL in self.modes or SHUTTER_PRIORITY in self.modes)
