"""The few exceptions of the package.

A fault *in a document* is never an exception: it is a `Finding` value, because the reader wants all of them at once.
What is raised here ends the command: it could not do what was asked, and the code says which exit status that is.
"""


class WorkpacketError(Exception):
    """A command cannot go on. `code` is a reason code of the catalogue, from which the exit status follows."""

    def __init__(self, code: str, message: str, *, hint: str = "", path: str = "", line: int = 0) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint
        self.path = path
        self.line = line

    def __reduce__(self) -> "tuple[object, ...]":
        # Worker processes hand errors back by pickling; keyword-only arguments need a word here.
        return (_rebuild, (type(self), self.code, self.message, self.hint, self.path, self.line))


def _rebuild(kind: "type[WorkpacketError]", code: str, message: str, hint: str, path: str, line: int) -> WorkpacketError:
    return kind(code, message, hint=hint, path=path, line=line)
