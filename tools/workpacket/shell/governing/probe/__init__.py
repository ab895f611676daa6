"""The code that runs inside the processes of a proof, copied next to them as the `workpacket_probe` package.

It must not import other modules of workpacket, and it must work with the project's Python, 3.8 or newer, whichever
version runs workpacket.
"""
