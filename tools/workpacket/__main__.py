"""`python -m workpacket`: run the `workpacket` command when the script is not on the path."""

from workpacket.cli.main import console

console()
