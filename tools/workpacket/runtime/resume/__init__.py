"""Whether a run may continue, and from where: the observations, the checks in order, and the decision."""
