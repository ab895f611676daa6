"""The public import location of the exception that a failed command raises; it is defined with the problems it
carries."""

from workpacket.problem import WorkpacketError

__all__ = ["WorkpacketError"]
