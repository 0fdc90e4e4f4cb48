"""Measurements of the program by itself: how good the swap is, how fast the line."""
