"""Foreign checkpoint formats, and the links between packets and runs: where documents meet the runtime."""
