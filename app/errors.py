"""What the program tells a person.

AppError
├── UsageError      options that do not fit together or mean nothing
├── MissingError    a package that a command needs is not installed
├── StoreError      a file of a person's own cannot be read or written
│   ├── PresetError   …a preset
│   ├── GalleryError  …an identity of the gallery
│   └── AddressError  …an address of the address book, or its key
├── NotLiveError    only a running line can do what was asked
└── ControlError    the control interface cannot be opened, or no ffrt answers there
"""

from __future__ import annotations


class AppError(Exception):
    """Base; its text is one clear sentence."""


class UsageError(AppError):
    """Options that do not fit together, or a value that means nothing."""


class MissingError(AppError):
    """A package that this command needs is not installed; the text says how to install it."""


class StoreError(AppError):
    """A file of a person's own cannot be read or written; nothing was changed."""


class PresetError(StoreError):
    """A preset that is not there, or that this version cannot read."""


class GalleryError(StoreError):
    """An identity that is not there, or an index that this version cannot read."""


class AddressError(StoreError):
    """An address that is not there, or a key that cannot be kept safely."""


class NotLiveError(AppError):
    """Only a running line can do what was asked."""


class ControlError(AppError):
    """The control interface cannot be opened, or no ffrt answers there."""
