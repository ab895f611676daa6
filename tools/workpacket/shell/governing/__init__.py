"""Carrying out a command of the lifecycle: gather the facts, plan, apply."""
