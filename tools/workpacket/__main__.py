"""`python -m workpacket`: the command `workpacket`, if the script is not on the path."""

from workpacket.cli.main import console

console()
