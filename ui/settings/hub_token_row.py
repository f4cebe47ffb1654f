"""The Hub's access token."""

from __future__ import annotations

from PySide6.QtWidgets import QWidget

from app import hub_token
from app.declaration import Declared
from ui.settings.secret_row import SecretRow
from ui.theme import Theme

_WORDS = Declared(
    "hub_token",
    "Hub token",
    "For models that ask for an account. Make one that may read at huggingface.co/settings/tokens. It is "
    "kept where Hugging Face's own tools keep it, readable by you alone, and is in no export and no log.",
    group="storage",
)


class HubTokenRow(SecretRow):
    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(theme, _WORDS, hub_token, "hf_…", "access key login gated", parent)

    def can_forget(self) -> bool:
        return hub_token.from_environment() is None
