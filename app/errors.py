"""What the program tells a person.

AppError
├── UsageError     options that do not fit together or mean nothing
└── MissingError   a package that a command needs is not installed
"""

from __future__ import annotations


class AppError(Exception):
    """Base; its text is one clear sentence."""


class UsageError(AppError):
    """Options that do not fit together, or a value that means nothing."""


class MissingError(AppError):
    """A package that this command needs is not installed; the text says how to install it."""
