"""What can go wrong with models and photos.

EngineError
├── ModelError           a model file is missing, damaged, or not what its family expects
│   ├── ParityError      …because it computes something else than its fp32 reference
│   └── PullCancelled    …because its download was called off
├── BuildError           an engine could not be built
│   └── BuildCancelled   …because it was called off
├── CacheError           the folder of built engines cannot be used
├── FolderError          a folder of the user's is no place at all
├── DeviceError          the device cannot do what was asked
│   └── DeviceMemoryError  …because it has no memory left
└── PhotoError           a source photo cannot be used
    └── NoFaceError      …because no face was found in it

Every message says what was given, what is accepted and what to do.
"""

from __future__ import annotations


class EngineError(Exception):
    """Base of all errors of the engines; its text is fit to be shown to a person."""


class ModelError(EngineError):
    """A model file is missing, damaged, or has other tensors than its family expects."""


class ParityError(ModelError):
    """A model, at this precision and on this runtime, computes something else than its fp32 reference."""


class PullCancelled(ModelError):
    """The download of a model was called off by whoever asked for it."""


class BuildError(EngineError):
    """An engine could not be built: the runtime refused the model, or the build ran out of memory or crashed."""


class BuildCancelled(BuildError):
    """The build was called off by whoever asked for it."""


class CacheError(EngineError):
    """The folder of built engines cannot be written or read."""


class FolderError(EngineError):
    """What the environment, or the system, says of a folder of the user's is no place."""


class DeviceError(EngineError):
    """A device is missing or refused a call."""


class DeviceMemoryError(DeviceError):
    """The device has no memory left for what was asked; with less of a look it may do."""


class PhotoError(EngineError):
    """A source photo cannot be opened or used."""


class NoFaceError(PhotoError):
    """A source photo holds no face, or not the one asked for."""
