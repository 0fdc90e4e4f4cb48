"""Vertices of FaceMesh by region: facts of the model (MediaPipe 0.10.21, face_mesh_connections). Rings are closed and in order."""

from __future__ import annotations

OVAL = [
    10, 338, 297, 332, 284, 251, 389, 356, 454, 323, 361, 288, 397, 365, 379, 378, 400, 377,
    152, 148, 176, 149, 150, 136, 172, 58, 132, 93, 234, 127, 162, 21, 54, 103, 67, 109,
]  # fmt: skip
RIGHT_EYE = [263, 249, 390, 373, 374, 380, 381, 382, 362, 398, 384, 385, 386, 387, 388, 466]
"""As the viewer sees it. Sixteen points from the outer corner along the lower lid and back along the upper."""
LEFT_EYE = [33, 7, 163, 144, 145, 153, 154, 155, 133, 173, 157, 158, 159, 160, 161, 246]
INNER_MOUTH = [78, 191, 80, 81, 82, 13, 312, 311, 310, 415, 308, 324, 318, 402, 317, 14, 87, 178, 88, 95]
"""Twenty points from the left corner along the upper lip and back along the lower."""
EYES = [*LEFT_EYE, *RIGHT_EYE]
BROWS = [276, 283, 282, 295, 285, 300, 293, 334, 296, 336, 46, 53, 52, 65, 55, 70, 63, 105, 66, 107]
LIPS = [
    61, 146, 91, 181, 84, 17, 314, 405, 321, 375, 291, 409, 270, 269, 267, 0, 37, 39, 40, 185, *INNER_MOUTH,
    76, 184, 74, 73, 72, 11, 302, 303, 304, 408, 306, 307, 320, 404, 315, 16, 85, 180, 90, 77,
    62, 183, 42, 41, 38, 12, 268, 271, 272, 407, 292, 325, 319, 403, 316, 15, 86, 179, 89, 96,
]  # fmt: skip
LIPS_BESIDE_GAP = [
    *INNER_MOUTH,
    62, 183, 42, 41, 38, 12, 268, 271, 272, 407, 292, 325, 319, 403, 316, 15, 86, 179, 89, 96,
]  # fmt: skip
"""The two of the lips' four rings that are nearest to the gap between them."""
NOSTRILS = [
    1, 2, 98, 327, 97, 326, 60, 290, 20, 250, 238, 458, 241, 461, 242, 462, 99, 328, 79, 309, 239, 459,
    218, 438, 166, 392, 75, 305, 59, 289,
]  # fmt: skip
