"""Landmarks: FaceMesh, which the program carries, and models that people own. A family is a file in this folder, named in the last
line."""

from engines.landmarks import fan4_2d, fan_68_5, insight_3d68, insight_106, peppa_wutz  # noqa: F401  register themselves
