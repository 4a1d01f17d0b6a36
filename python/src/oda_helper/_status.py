"""Whether calls are recorded now, and if not, what to do about it."""

from typing import List, NamedTuple, Optional

from . import _process, _saying, _settings
from ._visible import visible


class Status(NamedTuple):
    """What is recorded, where to, and what is not. It prints as a few lines of text."""

    recording: bool  # whether a call made now would be recorded
    archive: Optional[str]  # address of the archive
    block: Optional[str]  # identifier of the ExecutionBlock
    ended: Optional[str]  # with which status this process has ended it
    user: Optional[str]  # the acting user; None if the token or the archive says who it is
    spool: str  # folder with what waits
    waiting: int  # records of this process that are not stored yet
    not_recorded: int  # calls of this process that were not recorded
    dropped: int  # records of this process that were lost
    problems: List[str]  # what is wrong, and what to do

    def __str__(self) -> str:
        if self.recording:
            lines = ["Calls are recorded in %s of %s." % (self.block, self.archive)]
        else:
            lines = ["Calls are not recorded."]
        if self.ended:
            lines.append("%s has ended: %s." % (self.block, self.ended))
        lines += self.problems
        if self.waiting:
            lines.append("%d records wait in %s." % (self.waiting, self.spool))
        if self.not_recorded:
            lines.append("%d calls of this process were not recorded." % self.not_recorded)
        if self.dropped:
            lines.append("%d records of this process were lost." % self.dropped)
        return "\n".join(visible(line) for line in lines)

    def __repr__(self) -> str:
        return str(self)


def status() -> Status:
    """Whether calls are recorded now, what waits, and what is wrong and how to mend it."""
    recorder = _process.recorder()
    archive, block = _settings.archive_url(), _settings.block_id()
    problems = []
    if archive is None:
        problems.append("%s. %s" % (_settings.url_fault(), _settings.URL_ADVICE))
    if block is None:
        problems.append("%s. %s" % (_settings.block_fault(), _settings.BLOCK_ADVICE))
    try:
        _settings.token()
    except (OSError, ValueError) as problem:
        problems.append("There is no token to send: %s." % problem)
    return Status(
        recording=archive is not None and block is not None,
        archive=archive,
        block=block,
        ended=_saying.ended(block),
        user=_settings.user(),
        spool=recorder.spool() or _settings.spool_folder(),
        waiting=recorder.lag(),
        not_recorded=recorder.missed_calls,
        dropped=recorder.dropped,
        problems=problems + recorder.troubles(),
    )
