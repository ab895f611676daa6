"""The fixture of the tests that type commands."""

from lifecycle.conftest import governed

__all__ = ["governed"]
