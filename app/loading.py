"""How models are put into memory by the person's settings, for estimates of what that takes."""

from __future__ import annotations

from app.settings import Settings
from model_store.fit import Loading


def loading(settings: Settings) -> Loading:
    return Loading(
        n_ctx=settings.n_ctx,
        n_parallel=settings.n_parallel,
        n_batch=settings.n_batch,
        kv_type=settings.kv_type,
        flash_attention=settings.flash_attention != "off",
    )
