"""What the machine is called by others, where it serves them."""

from __future__ import annotations

import socket

from app.server.background import Place, _address
from app.server.network import own_hosts


def test_only_for_the_network_it_listens_everywhere() -> None:
    alone = _address(Place(1400))
    assert alone.is_local and set(alone.bind) == {"127.0.0.1", "::1"}
    shared = _address(Place(1400, network=True, key="k"))
    assert not shared.is_local
    assert f"{socket.gethostname().lower()}:1400" in shared.allowed_hosts()
    assert alone.allowed_hosts() <= shared.allowed_hosts() | {"[::1]:1400"}
    assert "evil.example:1400" not in shared.allowed_hosts()


def test_hosts_are_as_a_header_has_them() -> None:
    for host in own_hosts(1400):
        name, _, port = host.rpartition(":")
        assert port == "1400" and name == name.lower()
        assert ":" not in name or (name.startswith("[") and name.endswith("]"))


def test_the_key_is_in_no_words_about_a_place() -> None:
    assert "secret" not in repr(Place(1400, True, "secret"))
