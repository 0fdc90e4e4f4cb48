"""Which names code takes from TensorRT, and whether the real bindings of TensorRT 11 and of TensorRT for RTX have them. Needs no GPU.

Read from the source: every attribute of ``trt``, and of the objects that come from it as far as assignments and the table of names
given tell their class. A statement whose first line ends in ``# rtx only`` or ``# tensorrt only`` is meant for that module alone;
on an ``if``, ``def`` or ``class`` the comment holds for the block.

As a program (``python trt_api.py rtx|tensorrt``) it prints one module's surface as JSON, so that no library stays loaded in the caller.
TensorRT's own libraries are not needed: where ``tensorrt`` does not import, tensorrt_stub.c stands in for them under its bindings.
"""

from __future__ import annotations

import ast
import ctypes
import importlib
import io
import json
import re
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Mapping
from pathlib import Path
from typing import Any

MODULES = {"tensorrt": ("tensorrt", "tensorrt_bindings"), "rtx": ("tensorrt_rtx", "tensorrt_rtx_bindings")}
STUB = Path(__file__).resolve().with_name("tensorrt_stub.c")

Surface = dict[str, Any]


def surface_of(which: str) -> Surface | None:
    """What a module offers; None where its bindings are not installed."""
    done = subprocess.run([sys.executable, __file__, which], capture_output=True, text=True, check=False)
    if done.returncode and "ModuleNotFoundError" in done.stderr:
        return None
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def uses_of(file: Path, surface: Surface, which: str, held: Mapping[str, str]) -> list[tuple[int, str, bool]]:
    """(line, ``Class.name``, whether it is there) for each name that ``file`` takes from a module meant to have it.

    ``held``: name in the source → class of the object that it holds, where the source does not say.
    """
    source = file.read_text(encoding="utf-8")
    tree = ast.parse(source, str(file))
    limited = limited_lines(source, tree)
    uses = Uses(surface["members"], "trt", held)
    uses.visit(tree)
    return [(line, f"{path}.{name}".strip("."), there) for line, path, name, there in uses.found if limited.get(line, which) == which]


# --- what a module offers: read in a process of its own, so that no stub library stays loaded here


def load(which):
    try:
        return importlib.import_module(MODULES[which][0])
    except ImportError:
        if which == "tensorrt":
            with tempfile.TemporaryDirectory() as folder:
                for library in ("nvinfer", "nvinfer_plugin", "nvonnxparser"):
                    path = f"{folder}/lib{library}.so.11"
                    soname = f"-Wl,-soname,lib{library}.so.11"
                    subprocess.run(["gcc", "-shared", "-fPIC", soname, "-o", path, STUB], check=True)
                    ctypes.CDLL(path)  # the loader then takes this one for the bindings' libraries of the same soname
        return importlib.import_module(MODULES[which][1])


def surface(which):
    """{"version": ..., "members": {class path: {member: what it is}}}; the module's own path is "".

    What it is: ["object", class path], ["call", class path of the result], or None when the bindings do not say.
    """
    module = load(which)
    members = {}

    def result_of(member):
        is_property = isinstance(member, property)
        doc = (member.fget.__doc__ if is_property else member.__doc__) or ""
        found = {text.replace("::", ".").rsplit(".", 1)[-1] for text in re.findall(r"->\s*([\w.:]+)", doc)}
        return ["object" if is_property else "call", found.pop()] if len(found) == 1 else None

    def read(path, owner):
        members[path] = {}
        for name in dir(owner):
            try:
                member = getattr(owner, name)
            except AttributeError:
                continue
            inner = f"{path}.{name}" if path else name
            if isinstance(member, type):
                if (member.__module__ or "").startswith(module.__name__.split("_bindings")[0]) and inner not in members:
                    read(inner, member)
                members[path][name] = None
            elif path and isinstance(member, owner):
                members[path][name] = ["object", path]  # a member of an enumeration
            else:
                members[path][name] = result_of(member)

    read("", module)
    return {"version": module.__version__, "members": members}


# --- what a file uses


class Uses(ast.NodeVisitor):
    """Collects (line, class path, attribute, exists) for one file and one module's surface."""

    def __init__(self, members: dict, root: str, held: Mapping[str, str]) -> None:
        self.members, self.root = members, root
        self.held = held  # what the source itself does not say
        self.names = {}  # dotted name -> class of the object it holds
        self.found = []

    def resolve(self, node):
        """("type", path) for the module or a class, ("object", path), ("call", class of the result), or None."""
        if isinstance(node, ast.Name) and node.id == self.root:
            return "type", ""
        if isinstance(node, ast.Call):
            called = self.resolve(node.func)
            return ("object", called[1]) if called and called[0] in ("type", "call") and called[1] in self.members else None
        known = self._known(ast.unparse(node)) if isinstance(node, (ast.Name, ast.Attribute)) else None
        if known is not None:
            return "object", known
        if not isinstance(node, ast.Attribute):
            return None
        base = self.resolve(node.value)
        if not base or base[0] == "call":
            return None
        path, name = base[1], node.attr
        inner = f"{path}.{name}" if path else name
        if base[0] == "type" and inner in self.members:
            return "type", inner
        kind, result = self.members[path].get(name) or (None, None)
        return (kind, result) if result in self.members else None

    def _known(self, text):
        known = self.names.get(text) or self.held.get(text)
        return known if known in self.members else None

    def visit_Attribute(self, node):
        base = self.resolve(node.value)
        if base and base[0] != "call" and isinstance(node.ctx, (ast.Load, ast.Store)):
            use = (node.lineno, base[1], node.attr, node.attr in self.members[base[1]])
            if use not in self.found:
                self.found.append(use)
        self.generic_visit(node)

    def bind(self, target, entity):
        if isinstance(target, (ast.Name, ast.Attribute)):
            self.names.pop(ast.unparse(target), None)
            if entity and entity[0] == "object":
                self.names[ast.unparse(target)] = entity[1]

    def visit_Assign(self, node):
        self.generic_visit(node)
        for target in node.targets:
            self.bind(target, self.resolve(node.value))

    def visit_NamedExpr(self, node):
        self.generic_visit(node)
        self.bind(node.target, self.resolve(node.value))

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        self.bind(node.target, self.annotated(node.annotation) or (node.value and self.resolve(node.value)))

    def annotated(self, annotation):
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            annotation = ast.parse(annotation.value, mode="eval").body
        for part in ast.walk(annotation) if annotation else ():
            entity = self.resolve(part)
            if entity and entity[0] == "type" and entity[1]:
                return "object", entity[1]
        return None

    def visit_FunctionDef(self, node):
        outer, self.names = self.names, dict(self.names)
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            self.bind(ast.Name(argument.arg), self.annotated(argument.annotation))
        self.generic_visit(node)
        outer.update({name: path for name, path in self.names.items() if name.startswith("self.")})
        self.names = outer

    def visit_ClassDef(self, node):
        outer, self.names = self.names, dict(self.names)
        self.generic_visit(node)
        self.names = outer


def limited_lines(source, tree):
    """{line: module} for the statements marked `# rtx only` or `# tensorrt only`."""
    marks = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        found = re.search(r"#\s*(rtx|tensorrt) only\b", token.string) if token.type == tokenize.COMMENT else None
        if found:
            marks[token.start[0]] = found[1]
    lines = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.stmt) and node.lineno in marks:
            lines.update(dict.fromkeys(range(node.lineno, node.end_lineno + 1), marks[node.lineno]))
    return lines


if __name__ == "__main__":
    print(json.dumps(surface(sys.argv[1])))
