"""Run a lifecycle command: gather the facts, plan, apply."""
