"""Foreign forms of checkpoints, and the links between packets and runs: documents on one side, the runtime on the other."""
