"""`python -m workpacket` is `workpacket`, where the script is not on the path."""

from workpacket.cli.main import console

console()
