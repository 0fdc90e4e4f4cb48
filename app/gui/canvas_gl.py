"""The preview drawn by the graphics card, where there is one that OpenGL reaches."""

from __future__ import annotations

from typing import Any

import numpy as np
from PySide6.QtCore import QRect, QRectF, QSize, Qt
from PySide6.QtGui import QColor, QHideEvent, QMatrix4x4, QOffscreenSurface, QOpenGLContext, QPainter
from PySide6.QtOpenGL import QOpenGLTexture, QOpenGLTextureBlitter
from PySide6.QtOpenGLWidgets import QOpenGLWidget

from app.gui.canvas import LETTERBOX, Scene, paint_over
from rt.sinks.preview import Picture

GL_COLOR_BUFFER_BIT, GL_SCISSOR_TEST, GL_RENDERER, GL_TEXTURE_2D = 0x4000, 0x0C11, 0x1F01, 0x0DE1

SOFTWARE = ("llvmpipe", "softpipe", "swrast", "swiftshader", "software", "gdi generic", "microsoft basic render")
"""Parts of the names of renderers that are the processor after all: painting for it without OpenGL costs less."""


def gpu_renderer() -> tuple[str, str]:
    """What OpenGL draws with, and why that is not to be used; the second is empty where it is. Main thread; needs an application."""
    context, surface = QOpenGLContext(), QOffscreenSurface()
    surface.create()
    if not context.create() or not context.makeCurrent(surface):
        return "", "OpenGL is not there"
    try:
        name = str(context.functions().glGetString(GL_RENDERER))
    finally:
        context.doneCurrent()
    if any(part in name.lower() for part in SOFTWARE):
        return name, f"{name} is a renderer in software"
    return name, ""


class GpuCanvas(QOpenGLWidget):
    """Uploads each picture once; scaling, mirroring and the split are the card's. Main thread."""

    scales = True

    def __init__(self, scene: Scene, renderer: str) -> None:
        super().__init__()
        self.drawing = f"GPU ({renderer})"
        self._scene = scene
        self._blitter: QOpenGLTextureBlitter | None = None
        self._textures: dict[str, QOpenGLTexture] = {}
        self._uploaded: dict[str, Picture] = {}
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)

    def initializeGL(self) -> None:  # noqa: N802  Qt's names
        """Also once the widget has moved to another window, as for full screen: what was made before goes with its context."""
        self.context().aboutToBeDestroyed.connect(self._release, Qt.ConnectionType.DirectConnection)

    def hideEvent(self, event: QHideEvent) -> None:  # noqa: N802
        self._release()  # a hidden preview holds no memory of the card, and one that is closed leaves none behind

    def paintGL(self) -> None:  # noqa: N802
        gl, scene = self.context().functions(), self._scene
        black = QColor(LETTERBOX)
        gl.glClearColor(black.redF(), black.greenF(), black.blueF(), 1)
        gl.glClear(GL_COLOR_BUFFER_BIT)
        area = scene.area(self.width(), self.height(), self.devicePixelRatioF())
        if scene.picture is not None:
            self._blit("after", scene.picture.pixels, area, None)
            if scene.split is not None and scene.picture.before is not None:
                self._blit("before", scene.picture.before, area, area.left() + area.width() * scene.split)
        painter = QPainter(self)
        paint_over(painter, scene, area, QRectF(self.rect()))
        painter.end()

    def _blit(self, name: str, pixels: np.ndarray, area: QRectF, until: float | None) -> None:
        """``until``: drawn left of it alone, in pixels of the widget."""
        blitter = self._make_blitter()
        gl, ratio = self.context().functions(), self.devicePixelRatioF()
        texture = self._texture(name, pixels)
        viewport = QRect(0, 0, round(self.width() * ratio), round(self.height() * ratio))
        gl.glViewport(0, 0, viewport.width(), viewport.height())
        if until is not None:
            gl.glEnable(GL_SCISSOR_TEST)
            gl.glScissor(0, 0, max(0, round(until * ratio)), viewport.height())
        target = QRectF(area.left() * ratio, area.top() * ratio, area.width() * ratio, area.height() * ratio)
        place = QMatrix4x4(QOpenGLTextureBlitter.targetTransform(target, viewport))
        assert self._scene.picture is not None
        if self._scene.mirrored != self._scene.picture.mirrored:
            place.scale(-1, 1)
        blitter.bind()
        blitter.setRedBlueSwizzle(True)  # BGRX goes up as if it were RGBA: every OpenGL has that
        blitter.blit(texture.textureId(), place, QOpenGLTextureBlitter.Origin.OriginTopLeft)
        blitter.release()
        gl.glDisable(GL_SCISSOR_TEST)

    def _texture(self, name: str, pixels: np.ndarray) -> QOpenGLTexture:
        assert self._scene.picture is not None
        size = QSize(pixels.shape[1], pixels.shape[0])
        texture = self._textures.get(name)
        if texture is None or (texture.width(), texture.height()) != (size.width(), size.height()):
            if texture is not None:
                texture.destroy()
            texture = self._textures[name] = _new_texture(size)
            self._uploaded.pop(name, None)
        if self._uploaded.get(name) is not self._scene.picture:
            memory: Any = pixels.data  # a buffer: the address as a number, which the signature asks for, crashes
            texture.setData(QOpenGLTexture.PixelFormat.RGBA, QOpenGLTexture.PixelType.UInt8, memory)
            self._uploaded[name] = self._scene.picture
        return texture

    def _make_blitter(self) -> QOpenGLTextureBlitter:
        if self._blitter is None:
            self._blitter = QOpenGLTextureBlitter()
            self._blitter.create()
        return self._blitter

    def _release(self) -> None:
        if self._blitter is None and not self._textures:
            return
        self.makeCurrent()
        for texture in self._textures.values():
            texture.destroy()
        self._textures.clear()
        self._uploaded.clear()
        if self._blitter is not None:
            self._blitter.destroy()
            self._blitter = None
        self.doneCurrent()


def _new_texture(size: QSize) -> QOpenGLTexture:
    texture = QOpenGLTexture(QOpenGLTexture.Target.Target2D)
    texture.setFormat(QOpenGLTexture.TextureFormat.RGBA8_UNorm)
    texture.setSize(size.width(), size.height())
    texture.setMipLevels(texture.maximumMipLevels())  # made anew with every upload: small previews of large pictures do not shimmer
    texture.setMinMagFilters(QOpenGLTexture.Filter.LinearMipMapLinear, QOpenGLTexture.Filter.Linear)
    texture.setWrapMode(QOpenGLTexture.WrapMode.ClampToEdge)
    texture.allocateStorage(QOpenGLTexture.PixelFormat.RGBA, QOpenGLTexture.PixelType.UInt8)
    return texture
