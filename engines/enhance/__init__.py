"""Enhancers: a swapped face in, a sharper one out. A family is one file in this folder."""
