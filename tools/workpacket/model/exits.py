"""Exit statuses of the command. The runtime's stop reasons use 10 to 79, which their own catalogue entries define."""

OK = 0
FINDINGS = 1
USAGE = 2
REFUSED = 3
CONFLICT = 4
INTEGRITY = 5
ENVIRONMENT = 6
INTERNAL = 9
INTERRUPTED = 130
# The status of a program that the system stops because its output is no longer read.
BROKEN_PIPE = 141
