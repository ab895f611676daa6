"""The few exceptions of the package.

A fault *in a document* is never an exception: it is a `Finding` value, because the reader wants all of them at once.
What is raised here ends the command: it could not do what was asked, and the code says which exit status that is.
"""


class WorkpacketError(Exception):
    """A command cannot go on. `code` is a reason code of the catalogue, from which the exit status follows."""

    def __init__(self, code: str, message: str, *, hint: str = "", path: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.path = path
