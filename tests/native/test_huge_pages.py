"""Which processes ask for huge pages."""

from __future__ import annotations

import sys

import pytest

from native.huge_pages import with_huge_pages

linux = pytest.mark.skipif(sys.platform != "linux", reason="the variable is the Linux C library's")


@linux
def test_asked_for_beside_what_else_is_set() -> None:
    assert with_huge_pages({"A": "b"}) == {"A": "b", "GLIBC_TUNABLES": "glibc.malloc.hugetlb=1"}
    others = {"GLIBC_TUNABLES": "glibc.malloc.check=3"}
    assert with_huge_pages(others)["GLIBC_TUNABLES"] == "glibc.malloc.check=3:glibc.malloc.hugetlb=1"
    assert others["GLIBC_TUNABLES"] == "glibc.malloc.check=3"


def test_what_a_person_chose_stays() -> None:
    chosen = {"GLIBC_TUNABLES": "glibc.malloc.hugetlb=0"}
    assert with_huge_pages(chosen) == chosen
