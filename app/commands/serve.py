"""``slipstream serve``: the local server without a window."""

from __future__ import annotations

import argparse
import os
import signal
from dataclasses import replace

import msgspec

from app import api_key
from app.commands.chat import model_path
from app.commands.terminal import note
from app.engine_client import EngineClient, Event
from app.protocol import Loaded
from app.server.application import application
from app.server.host import Address, Host, HostError, listen
from app.server.network import ALL, own_hosts
from app.server.port import EnginePort
from app.server.service import Service
from app.server.shelf import Shelf
from app.settings import Settings, SettingsFile
from app.speed_history import BackgroundHistory, SpeedHistory

KEY_VARIABLE = "SLIPSTREAM_API_KEY"


def serve_command(options: argparse.Namespace) -> int:
    """Serve until interrupted. Raises UsageError for a model that is not there."""
    # A header holds no white space at its ends, which a file's last line may have brought along.
    key = (options.api_key or os.environ.get(KEY_VARIABLE) or "").strip() or api_key.kept()
    address = Address(port=options.port, hosts=tuple(options.allow_host), origins=tuple(options.allow_origin))
    if options.host:
        address = replace(address, bind=tuple(options.host))
        if set(ALL) & set(address.bind):
            address = replace(address, hosts=(*address.hosts, *own_hosts(address.port)))
    if not address.is_local and key is None:
        note(f"to be reached from other machines it needs an API key: --api-key, or {KEY_VARIABLE}")
        return 2
    settings = _settings(SettingsFile().load(), options)
    only = model_path(options.model) if options.model is not None else None
    draft = str(options.draft_model) if options.draft_model is not None else None
    history = BackgroundHistory(SpeedHistory(note))

    def heard(event: Event) -> None:
        if isinstance(event, Loaded):
            for notice in event.model.notices:
                note(notice)
        port.receive(event)

    client = EngineClient(heard)
    port = EnginePort(client, history.record)
    service = Service(
        port,
        Shelf(lambda: settings, draft=draft, only=only),
        lambda: settings,
        queue=options.queue,
        idle_s=options.idle_unload * 60 or None,
    )
    try:
        sockets = listen(address)
    except HostError as error:
        note(str(error))
        return 1
    client.start()
    try:
        host = Host(application(service, address, key))
        where = ", ".join(f"http://{name}" for name in sorted(address.allowed_hosts()))
        note(f"serving at {where}; /docs says how")
        _stop_with(host)
        host.run(sockets, port.stop)
    finally:
        client.close()
        history.close()
    return 0


def _settings(settings: Settings, options: argparse.Namespace) -> Settings:
    given = {
        "server": True,
        "server_parallel": options.parallel,
        "n_ctx": options.ctx,
        "n_threads": options.threads,
        "prompt_cache_mb": options.prompt_cache,
        "server_requests_per_minute": options.rate_limit,
        "learn": False if options.no_learn else None,
    }
    changed = {name: value for name, value in given.items() if value is not None}
    return msgspec.structs.replace(settings, **changed)


def _stop_with(host: Host) -> None:
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: host.stop())
