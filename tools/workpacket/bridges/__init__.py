"""Foreign forms of checkpoints, and the links between packets and runs: documents here, the runtime there."""
