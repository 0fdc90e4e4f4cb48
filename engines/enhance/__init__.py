"""Enhancers: a swapped face in, a sharper one out. A family is one file in this folder."""

from engines.registry import import_all

import_all(__name__, __path__)
