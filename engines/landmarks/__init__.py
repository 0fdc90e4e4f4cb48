"""Landmarks: FaceMesh, which the program carries, and models that people own. A family is one file in this folder."""
