"""Text that commands no terminal, whoever has written it.

What a server answers, or a file says, may have characters that a terminal obeys, or
that turn the direction of the text.
"""

import logging


def visible(text: str) -> str:
    """The text with every such character as its number, as in \\x1b."""
    if text.isprintable():
        return text
    return "".join(
        each if each.isprintable() else each.encode("unicode_escape").decode("ascii")
        for each in text
    )


def escape(record: logging.LogRecord) -> bool:
    """Makes a message visible before any handler gets it; for a logger's addFilter."""
    text = record.getMessage()
    if not text.isprintable():
        record.msg, record.args = visible(text), None
    return True
