"""Enhancers: a swapped face in, a sharper one out. A family is a file in this folder, named in the last lines."""

from engines.enhance import codeformer, gfpgan, gpen, restoreformer  # noqa: F401  register themselves
