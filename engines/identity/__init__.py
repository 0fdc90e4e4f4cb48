"""Who a face is: source photos, recognisers and the converters between them. A model family is a file named in the last line."""

from engines.identity import arcface, crossface  # noqa: F401  register themselves
