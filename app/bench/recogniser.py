"""Who is in a picture, by a network that took no part in making it: dlib's 128-D descriptor.

Davis King, "High quality face recognition with deep metric learning" (dlib blog, 2017): two descriptors nearer than 0.6 are
read as one person. The models are CC0; they come in the package ``face_recognition_models``.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import cv2
import numpy as np

from app.errors import MissingError

SAME_PERSON = 0.6
"""The distance below which dlib's author reads two descriptors as one person."""

VIEW, MARGIN = 300, 1.8
"""Side of the upright view that dlib is shown, in pixels, and over the face's box."""


def _models_folder() -> Path:
    """Found without importing the package, which needs setuptools to be installed."""
    spec = importlib.util.find_spec("face_recognition_models")
    if spec is None or not spec.submodule_search_locations:
        raise ImportError("face_recognition_models is not installed")
    return Path(spec.submodule_search_locations[0]) / "models"


class Recogniser:
    """One thread."""

    def __init__(self) -> None:
        """Raises ``MissingError`` where dlib or its models are not installed."""
        try:
            import dlib

            folder = _models_folder()
        except ImportError as error:
            raise MissingError(f"the quality bench needs dlib and its models ({error}); pip install 'ffrt[bench]'") from None
        self._rectangle = dlib.rectangle
        self._detect: Any = dlib.get_frontal_face_detector()
        self._place: Any = dlib.shape_predictor(str(folder / "shape_predictor_5_face_landmarks.dat"))
        self._network: Any = dlib.face_recognition_model_v1(str(folder / "dlib_face_recognition_resnet_model_v1.dat"))

    def describe(self, image: np.ndarray, points: np.ndarray) -> np.ndarray:
        """float64 [128] of the face near ``points`` (float32 [468, 2+] pixels) of ``image`` (uint8 [H, W, 3] BGR)."""
        view = _view(image, points)
        found = self._detect(view, 0)
        box = max(found, key=lambda rect: rect.area()) if found else self._usual_box()
        return np.array(self._network.compute_face_descriptor(view, self._place(view, box), 0))

    def _usual_box(self) -> Any:
        """Where dlib's detector puts its box in such a view, for the faces it misses: the median of 27 photos."""
        low, high = round(VIEW * 0.26), round(VIEW * 0.76)
        return self._rectangle(low, low, high, high)


def _view(image: np.ndarray, points: np.ndarray) -> np.ndarray:
    """uint8 [VIEW, VIEW, 3] RGB around the face; grey beyond the border."""
    low, high = points[:, :2].min(0), points[:, :2].max(0)
    scale = VIEW / (MARGIN * float((high - low).max()))
    matrix = np.array([[scale, 0, 0], [0, scale, 0]], np.float64)
    matrix[:, 2] = VIEW / 2 - scale * (low + high) / 2
    flags = cv2.INTER_AREA if scale < 1 else cv2.INTER_LINEAR
    view = cv2.warpAffine(image, matrix, (VIEW, VIEW), flags=flags, borderMode=cv2.BORDER_CONSTANT, borderValue=(128, 128, 128))
    return cv2.cvtColor(view, cv2.COLOR_BGR2RGB)
