"""What the program knows of itself: versions, parts and their licences, and the report about it all."""

from __future__ import annotations

import platform
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct
from PySide6.QtCore import QObject, qVersion

from app.diagnostics import Facts, report
from app.engine_client import Event
from app.program_log import crash_log, last_lines, program_log, worker_log
from app.protocol import Hello
from ui.session import Session

_LOG_LINES = 120


class Part(Struct, frozen=True):
    """``package`` is its name in the package index, "" for one that is none."""

    name: str
    licence: str
    package: str = ""


# What does most of the work; each of them has licence texts in its own package.
PARTS: tuple[Part, ...] = (
    Part("llama.cpp", "MIT"),
    Part("llama-cpp-python", "MIT", "llama-cpp-python"),
    Part("Qt", "LGPL-3.0"),
    Part("PySide6", "LGPL-3.0", "PySide6-Essentials"),
    Part("pyqtgraph", "MIT", "pyqtgraph"),
    Part("markdown-it-py", "MIT", "markdown-it-py"),
    Part("Pygments", "BSD-2-Clause", "Pygments"),
    Part("pylatexenc", "MIT", "pylatexenc"),
    Part("NumPy", "BSD-3-Clause", "numpy"),
    Part("msgspec", "BSD-3-Clause", "msgspec"),
    Part("Jinja", "BSD-3-Clause", "jinja2"),
    Part("huggingface_hub", "Apache-2.0", "huggingface_hub"),
    Part("SmolLM2-135M-Instruct, the starter model", "Apache-2.0"),
)


def version(package: str = "slipstream") -> str:
    """Of an installed package; "" for one that is not there."""
    from importlib import metadata  # not before somebody asks: it takes a while

    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return ""


class ProgramFacts(QObject):
    """Keeps what the engine said of itself when it started."""

    def __init__(self, session: Session, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._session = session
        self.hello: Hello | None = None
        session.events.connect(self._heard)

    def _heard(self, events: list[Event]) -> None:
        for event in events:
            if isinstance(event, Hello):
                self.hello = event

    def lines(self) -> list[tuple[str, str]]:
        """Name and value of what "About" shows."""
        hello = self.hello
        model = self._session.controller.state.report
        rows = [
            ("Version", version()),
            ("Engine", hello.engine if hello else "not started"),
            ("Computes on", self._device()),
            ("Model", f"{model.name} ({model.description})" if model else "none in memory"),
            ("Python and Qt", f"{platform.python_version()}, {qVersion()}"),
            ("System", platform.platform(terse=True)),
        ]
        return [(name, value) for name, value in rows if value]

    def report(self) -> str:
        """The diagnostic report. Reads the logs; no word of a chat is in it."""
        session = self._session
        hello = self.hello
        return report(
            Facts(
                version=version(),
                python=platform.python_version(),
                qt=qVersion(),
                platform=f"{platform.platform()} {platform.machine()}",
                engine=hello.engine if hello else None,
                devices=hello.devices if hello else (),
                model=session.controller.state.report,
                settings=session.settings,
                home=str(Path.home()),
                logs=tuple(
                    (name, last_lines(path, _LOG_LINES))
                    for name, path in (
                        ("Program log", program_log()),
                        ("Engine log", worker_log()),
                        ("Crashes", crash_log()),
                    )
                ),
                private=tuple(self._private()),
            )
        )

    def _private(self) -> Iterator[str]:
        """What a person wrote or was told, as far as it is in memory."""
        session = self._session
        yield session.settings.system_prompt
        for message in session.controller.conversation.everything:
            yield message.text
            yield message.reasoning
        for chat in (session.controller.chat, *session.store.chats()):
            yield chat.title
            yield chat.draft
            yield chat.system_prompt or ""

    def _device(self) -> str:
        devices = self.hello.devices if self.hello else ()
        names = [device.description or device.name for device in devices if device.kind != "cpu"]
        return ", ".join(names) or (next((d.description or d.name for d in devices), "the processor"))
