"""What can go wrong with models and photos.

EngineError
├── ModelError           a model file is missing, damaged, or not what its family expects
├── DeviceError          the device cannot do what was asked
└── PhotoError           a source photo cannot be used
    └── NoFaceError      …because no face was found in it

Every message says what was given, what is accepted and what to do.
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of all errors of the engines; its text is fit to be shown to a person."""


class ModelError(EngineError):
    """A model file is missing, damaged, or has other tensors than its family expects."""


class DeviceError(EngineError):
    """A device is missing or refused a call."""


class PhotoError(EngineError):
    """A source photo cannot be opened or used."""


class NoFaceError(PhotoError):
    """A source photo holds no face, or not the one asked for."""
