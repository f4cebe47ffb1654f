"""The test suite: a package, so that helpers are imported by their full name (tests.drafting.toy)."""
