"""Sessions with a model: messages, model runs and tool calls, each session as a run."""
