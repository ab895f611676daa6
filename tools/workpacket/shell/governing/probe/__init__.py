"""What runs inside the processes of a proof: it is copied beside them as the package `workpacket_probe`.

It must not import anything of ours, and works with the Python of the project, 3.8 or newer, whatever ours is.
"""
