"""The base revision: whose policy is in force, what was committed there, and which policy was seen last."""
