"""The FaceMesh as a surface: its triangles, its regions, its flat map. Knows nothing of pictures."""
