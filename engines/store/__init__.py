"""Model files: those that ship with the program, and the shelf of those that a person pulled or imported.

``embedded`` is all that the default needs and all that is imported here; ``catalog`` knows models by name, ``graph`` reads a file without
running it, ``identify`` tells what a file is, ``shelf`` keeps files, ``pull`` fetches them.
"""

from engines.store.embedded import EmbeddedModel, embedded_model, embedded_models, verify

__all__ = ["EmbeddedModel", "embedded_model", "embedded_models", "verify"]
