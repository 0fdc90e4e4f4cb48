"""What can go wrong on the line.

RtError
├── SourceError          the input cannot be opened or read
│   ├── NoVideoError     the input holds no pictures
│   └── SourceLostError  …but may come back: it is opened again with back-off
├── SinkError            an output cannot be opened or written
│   └── SinkRetryError   …but may work again later: the sink is reopened with back-off
├── LaneError            no device is left to work on pictures
└── OptionError          a SPEC or option that means nothing

Every message says what was given, what is accepted and what to do.
"""

from __future__ import annotations


class RtError(Exception):
    """Base of all errors of the real-time line; its text is fit to be shown to a person."""


class SourceError(RtError):
    """The input cannot be opened, or broke while it was read."""


class NoVideoError(SourceError):
    """The input opened, and holds no video stream."""


class SourceLostError(SourceError):
    """The input broke off in a way that may pass (a cable, a network): it may be closed and opened again."""


class SinkError(RtError):
    """An output cannot be opened or written; it is closed and the rest of the line goes on."""


class SinkRetryError(SinkError):
    """An output broke in a way that may pass (network, server restart): it is opened again with back-off."""


class LaneError(RtError):
    """Every device that was to work on pictures has failed."""


class OptionError(RtError):
    """An input SPEC or an option that cannot be understood."""
