"""Measures workpacket and other tools in one run: `just bench`."""
