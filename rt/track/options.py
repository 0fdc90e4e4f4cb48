"""Immutable settings of the tracker."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TrackOptions:
    """Defaults suit one streamer before a webcam."""

    max_faces: int = 1
    detect_every: int = 15
    """With fewer than ``max_faces`` in sight, look for more every so many frames."""
    hold_frames: int = 5
    """For how many frames the place of a face that is not found is predicted."""
    smoothing: float = 1.0
    """0 takes points as they come, 1 filters them fully."""
    lost_seconds: float = 10.0
    """For how long the last place of a lost face is reported, so that it can be hidden."""
    min_face_px: float = 20.0
    """A face narrower than this is not one."""

    def __post_init__(self) -> None:
        whole = {"max_faces": (self.max_faces, 1), "detect_every": (self.detect_every, 1), "hold_frames": (self.hold_frames, 0)}
        for name, (value, least) in whole.items():
            if value < least:
                raise ValueError(f"{name} is {value}; give {least} or more")
        if not 0 <= self.smoothing <= 1:
            raise ValueError(f"smoothing is {self.smoothing}; give a number from 0 (off) to 1 (full)")
        if self.lost_seconds < 0 or self.min_face_px < 0:
            raise ValueError(f"lost_seconds is {self.lost_seconds} and min_face_px {self.min_face_px}; neither may be negative")
