"""Landmarks: FaceMesh, which the program carries, and models that people own. A family is one file in this folder."""

from engines.registry import import_all

import_all(__name__, __path__)
