"""Every option of every command says what it is for."""

from __future__ import annotations

from collections.abc import Iterator

import cyclopts
import pytest

from app.cli import app
from app.face_options import FaceOptions
from rt.options import Blending


def commands(program: cyclopts.App, path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    if program.default_command is not None:
        yield path
    for name in program:
        if not name.startswith("-"):
            yield from commands(program[name], (*path, name))


@pytest.mark.parametrize("path", [" ".join(path) for path in commands(app)])
def test_every_option_is_explained(path: str) -> None:
    program = app
    for name in path.split():
        program = program[name]
    described = program.assemble_argument_collection(parse_docstring=True)
    assert all(argument.parameter.help for argument in described if argument.show), [
        argument.name for argument in described if argument.show and not argument.parameter.help
    ]
    assert program.help, path


def test_commands_are_found() -> None:
    found = {" ".join(path) for path in commands(app)}
    assert {"", "demo", "bench live", "bench quality", "models pull", "faces add", "presets save", "doctor", "cameras"} <= found


def test_face_options_can_be_given_to_another_process() -> None:
    """What `arguments` writes is read back as the same options."""
    for options in (
        FaceOptions(),
        FaceOptions(mask=(), landmarks="2dfan4", pixel_boost=2),
        FaceOptions(mask=("mouth", "hands"), blend=Blending.SEAMLESS),
    ):
        _, bound, _ = app.parse_args(["bench", "live", *options.arguments()], exit_on_error=False)
        assert bound.arguments.get("face", FaceOptions()).settings() == options.settings()
