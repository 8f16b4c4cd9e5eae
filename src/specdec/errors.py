"""Errors that are the user's to mend."""


class UserError(Exception):
    """Bad input, told in one line that names the file, key or value and the remedy.

    The command line prints it without a traceback and exits with 2.
    """

    def __init__(self, message: str):
        super().__init__(" ".join(str(message).split()))
