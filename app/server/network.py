"""What this machine is called by others of its network."""

from __future__ import annotations

import socket

import psutil

ALL = ("0.0.0.0", "::")
"""Stand for each address that the machine has."""


def own_hosts(port: int) -> tuple[str, ...]:
    """Host headers of requests from other machines that are meant for this one, as it is called now."""
    names = {socket.gethostname().lower()}
    names |= {f"{name}.local" for name in names if "." not in name}
    for addresses in psutil.net_if_addrs().values():
        for each in addresses:
            if each.family == socket.AF_INET:
                names.add(each.address)
            elif each.family == socket.AF_INET6 and "%" not in each.address:  # those are of one cable alone
                names.add(f"[{each.address}]")
    return tuple(sorted(f"{name}:{port}" for name in names if name))
