"""Sessions with a model: messages, model runs and tool calls; each session is a run."""
