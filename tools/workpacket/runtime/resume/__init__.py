"""May a run go on, and from where? What was observed, the checks in their order, and the decision."""
