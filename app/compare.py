"""Two looks on one picture: what each makes of it, so that a person can choose."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

import cv2
import numpy as np

from app.errors import AppError
from app.session import LiveSession
from app.settings import InputSettings, OutputSettings, RunSettings, Settings
from rt.frame import Frame

PATIENCE_S = 30.0
"""For one picture on a machine that is busy with the line."""


class _Last:
    """A ``rt.witness.Witness`` that keeps the picture as it leaves."""

    def __init__(self) -> None:
        self.picture: np.ndarray | None = None

    def before(self, frame: Frame) -> None:
        pass

    def after(self, frame: Frame) -> None:
        self.picture = frame.pixels.copy()


def worn_on(picture: np.ndarray, settings: Settings) -> np.ndarray:
    """uint8 [H, W, 3] BGR: ``picture`` (the same, as it was filmed) with the look and the source of ``settings``.

    A line of its own with this one picture: whatever runs beside it goes on. Takes as long as a line takes to start. Any thread.
    Raises ``AppError``, ``RtError`` or ``EngineError``.
    """
    witness = _Last()
    with TemporaryDirectory(prefix="ffrt-") as folder:
        file = Path(folder) / "still.png"
        cv2.imwrite(str(file), picture)
        still = {"input": InputSettings(spec=str(file)), "output": OutputSettings(null=True), "run": RunSettings(budget_ms=0)}
        run = settings.model_copy(update=still)
        session = LiveSession(run, witness=witness)
        try:
            session.start()
            session.wait(PATIENCE_S)
        finally:
            session.close()
    if witness.picture is None:
        raise AppError(str(session.line.error or "the picture could not be compared: its line gave nothing; try again"))
    return witness.picture
