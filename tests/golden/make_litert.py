"""What Google's own interpreter makes of the models before their conversion: python tests/golden/make_litert.py WHEEL

WHEEL is mediapipe 0.10.21 (`pip download --no-deps mediapipe==0.10.21`); needs ai-edge-litert 2.3.0, numpy and Pillow.
Writes tests/golden/litert.npz, which tests/test_models.py compares with. The inputs are pieces of
assets/portraits/astronaut.png, cut and not scaled, so that no resampling can differ.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import numpy as np
from ai_edge_litert.interpreter import Interpreter
from PIL import Image

HERE = Path(__file__).resolve().parent
PORTRAIT = HERE.parent.parent / "assets/portraits/astronaut.png"
CASES = {  # model: (folder in the wheel, left, top, side of the piece, pixel scale, offset, names of the outputs)
    "face_landmark": ("face_landmark", 130, 27, 192, 1 / 255, 0.0, ("points", "logit")),
    "iris_landmark": ("iris_landmark", 176, 74, 64, 1 / 255, 0.0, ("eye", "iris")),
    "face_detection_full_range_sparse": ("face_detection", 130, 27, 192, 1 / 127.5, -1.0, ("boxes", "logits")),
    "face_detection_short_range": ("face_detection", 161, 59, 128, 1 / 127.5, -1.0, ("boxes", "logits")),
    "palm_detection_lite": ("palm_detection", 130, 27, 192, 1 / 255, 0.0, ("boxes", "logits")),
    "hand_landmark_lite": ("hand_landmark", 120, 20, 224, 1 / 255, 0.0, ("points", "presence", "right", "world")),
}
ANCHORS_MAX = 60
"""The likeliest anchors: all would be 99 % of the file. The portrait shows no hand, but its likeliest places are numbers as well."""


def outputs(wheel: zipfile.ZipFile, name: str, picture: np.ndarray) -> dict[str, np.ndarray]:
    folder, left, top, side, scale, offset, names = CASES[name]
    model = Interpreter(model_content=wheel.read(f"mediapipe/modules/{folder}/{name}.tflite"))
    model.allocate_tensors()
    piece = picture[top : top + side, left : left + side].astype(np.float32)
    model.set_tensor(model.get_input_details()[0]["index"], (piece * np.float32(scale) + np.float32(offset))[None])
    model.invoke()
    found = [model.get_tensor(detail["index"]) for detail in model.get_output_details()]
    return dict(zip(names, found, strict=True))


def main(path: str) -> None:
    picture = np.asarray(Image.open(PORTRAIT).convert("RGB"))
    golden = {}
    with zipfile.ZipFile(path) as wheel:
        for name, case in CASES.items():
            result = outputs(wheel, name, picture)
            if "logits" in result:
                likely = np.sort(np.argsort(result["logits"].ravel())[-ANCHORS_MAX:])
                golden[f"{name}/anchors"] = likely.astype(np.int32)
                result = {"boxes": result["boxes"][0, likely], "logits": result["logits"].ravel()[likely]}
            golden[f"{name}/window"] = np.array(case[1:4], np.int32)
            golden.update({f"{name}/{key}": value.astype(np.float32).ravel() for key, value in result.items()})
    np.savez_compressed(HERE / "litert.npz", **golden)


if __name__ == "__main__":
    main(sys.argv[1])
