"""The policy of a repository in which one person approves."""

WHO = "ann@example.org"
POLICY = f"""[approvals]
repository = "example/bench"
[approvals.roles]
approver = ["{WHO}"]
[approvals.gates.activation]
roles = ["approver"]
threshold = 1
separation = []
[approvals.gates.policy]
roles = ["approver"]
threshold = 1
separation = []
"""
