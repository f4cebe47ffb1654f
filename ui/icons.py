"""Our own icons, drawn in a colour of the theme, and the program's own."""

from __future__ import annotations

import logging
from functools import lru_cache
from pathlib import Path

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from app import paths
from model_store.files import write_atomically

log = logging.getLogger(__name__)


@lru_cache(maxsize=256)
def icon(name: str, colour: str, size: int = 16) -> QIcon:
    """``name`` is a file in assets/icons whose strokes are ``currentColor``."""
    source = (paths.assets_dir() / "icons" / f"{name}.svg").read_text(encoding="utf-8")
    renderer = QSvgRenderer(QByteArray(source.replace("currentColor", colour).encode()))
    result = QIcon()
    for scale in (1, 2, 3):
        pixmap = QPixmap(size * scale, size * scale)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(0, 0, size * scale, size * scale))
        painter.end()
        pixmap.setDevicePixelRatio(scale)
        result.addPixmap(pixmap)
    return result


def icon_file(name: str, colour: str) -> Path:
    """The icon in ``colour`` as a file, for style sheets, which take nothing else."""
    source = paths.assets_dir() / "icons" / f"{name}.svg"
    try:
        path = paths.cache_dir() / "icons" / f"{name}-{colour.lstrip('#')}.svg"
        content = source.read_text(encoding="utf-8").replace("currentColor", colour)
        if not path.exists() or path.read_text(encoding="utf-8") != content:
            path.parent.mkdir(exist_ok=True)
            write_atomically(path, content.encode("utf-8"))
    except OSError as error:
        log.info("the icon %s has the colour that it comes in: %s", name, error)
        return source
    return path


@lru_cache(maxsize=1)
def app_icon() -> QIcon:
    """What stands for the program: window, tray, notifications."""
    renderer = QSvgRenderer(str(paths.assets_dir() / "slipstream.svg"))
    result = QIcon()
    for size in (16, 24, 32, 48, 64, 128, 256):
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        result.addPixmap(pixmap)
    return result
