"""Sessions with a model: their messages, model runs and tool calls as the run they are."""
