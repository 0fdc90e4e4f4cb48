"""Hands: found by their palms, then followed by their 21 points. Models of MediaPipe 0.10.21 (Zhang et al. 2020)."""
