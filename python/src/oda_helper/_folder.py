"""Folders of a spool, opened so that nobody else can have made what is in them.

Among the temporary files, and wherever else others can write, a name may lead to
something of theirs: a link to a file of this user, to which records would be appended; a
session that names their server; a pipe, on which a program waits for ever. So the
spool, its sessions and their files must belong to the effective user and be writable for
nobody else. Names are looked up in the folder that was opened, whatever becomes of its
path, and no link is followed. client/recorder/folder.go has the same rules.
"""

import os
import shlex
import stat
from typing import Callable, List, Optional

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe must not be waited for.
_FILE = os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


class Unsafe(PermissionError):
    """Something in a spool may be somebody else's work. The text says what to do."""


class Folder:
    """An open folder: a spool, or a session in one, which knows its spool.

    It is closed when nobody uses it any more, so that no thread finds another folder in
    its place.
    """

    def __init__(self, path: str, within: Optional["Folder"] = None):
        self._descriptor = -1
        self.path = path  # for people
        self.within = within
        where = None if within is None else within._descriptor
        name = path if within is None else os.path.basename(path)
        named = os.stat(name, dir_fd=where, follow_symlinks=False)
        _ours(path, named, True)
        self._descriptor = os.open(name, _FOLDER, dir_fd=where)
        _same(path, named, os.fstat(self._descriptor))

    def __del__(self, close: Callable[[int], None] = os.close) -> None:
        if self._descriptor >= 0:
            close(self._descriptor)

    def make(self, name: str) -> "Folder":
        """Makes a folder in this one."""
        os.mkdir(name, 0o700, dir_fd=self._descriptor)
        return self.enter(name)

    def enter(self, name: str) -> "Folder":
        """Opens a folder in this one."""
        return Folder(os.path.join(self.path, name), self)

    def names(self) -> List[str]:
        """What is in it."""
        return os.listdir(self._descriptor)

    def stat(self, name: str) -> os.stat_result:
        """Describes a file, or a link itself."""
        return os.stat(name, dir_fd=self._descriptor, follow_symlinks=False)

    def has(self, name: str) -> bool:
        """Whether there is anything of a name."""
        try:
            self.stat(name)
        except FileNotFoundError:
            return False
        return True

    def open(self, name: str, flags: int = os.O_RDONLY) -> int:
        """Opens an existing file; returns its descriptor."""
        path, named = os.path.join(self.path, name), self.stat(name)
        _ours(path, named, False)
        descriptor = os.open(name, flags | _FILE, dir_fd=self._descriptor)
        try:
            _same(path, named, os.fstat(descriptor))
        except BaseException:
            os.close(descriptor)
            raise
        return descriptor

    def create(self, name: str) -> int:
        """Makes a file to append to; raises FileExistsError if there is anything of its name."""
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        return os.open(name, flags, 0o600, dir_fd=self._descriptor)

    def extend(self, name: str) -> int:
        """Opens a file to append to, made if necessary."""
        try:
            return self.create(name)
        except FileExistsError:
            return self.open(name, os.O_RDWR | os.O_APPEND)

    def read(self, name: str, most: int = -1) -> bytes:
        """The content of a file, or its first bytes."""
        with open(self.open(name), "rb") as file:
            return file.read(most)

    def replace(self, name: str, content: bytes) -> None:
        """Replaces the content of a file, completely or not at all."""
        temporary = name + ".tmp"
        try:
            descriptor = self.create(temporary)
        except FileExistsError:  # left by a process that was killed, or by somebody else
            self.unlink(temporary)
            descriptor = self.create(temporary)
        try:
            with open(descriptor, "wb") as file:
                file.write(content)
            where = self._descriptor
            os.replace(temporary, name, src_dir_fd=where, dst_dir_fd=where)
        except BaseException:
            try:
                self.unlink(temporary)
            except OSError:
                pass  # report the first problem
            raise

    def unlink(self, name: str) -> None:
        """Removes a file."""
        os.unlink(name, dir_fd=self._descriptor)

    def touch(self, name: str, ns: int) -> None:
        """Sets the time of a file."""
        os.utime(name, ns=(ns, ns), dir_fd=self._descriptor, follow_symlinks=False)

    def sync(self, name: Optional[str] = None) -> None:
        """Syncs a file to disk, or the names in the folder."""
        if name is None:
            os.fsync(self._descriptor)
            return
        descriptor = self.open(name)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def named(self) -> bool:
        """Whether it still has its name."""
        try:
            if self.within is None:
                named = os.lstat(self.path)
            else:
                named = self.within.stat(os.path.basename(self.path))
        except (FileNotFoundError, NotADirectoryError):
            return False
        return os.path.samestat(named, os.fstat(self._descriptor))

    def rename(self, name: str) -> None:
        """Gives it another name in its spool."""
        assert self.within is not None
        where = self.within._descriptor
        os.rename(os.path.basename(self.path), name, src_dir_fd=where, dst_dir_fd=where)
        self.path = os.path.join(self.within.path, name)

    def remove(self) -> None:
        """Removes it with all files in it, as far as that is possible."""
        assert self.within is not None
        try:
            for name in self.names():
                self.unlink(name)
            os.rmdir(os.path.basename(self.path), dir_fd=self.within._descriptor)
        except OSError:
            pass  # somebody else removes it, or will


def own(info: os.stat_result) -> bool:
    """Whether a file belongs to the effective user."""
    return info.st_uid == os.geteuid()


def _ours(path: str, info: os.stat_result, folder: bool) -> None:
    if stat.S_ISLNK(info.st_mode):
        raise Unsafe(
            "%s is a link, which is not followed in a spool; name the folder that it leads to, "
            "or remove it" % path
        )
    if folder and not stat.S_ISDIR(info.st_mode):
        raise Unsafe("%s is not a folder; name another one, or move it away" % path)
    if not folder and not stat.S_ISREG(info.st_mode):
        raise Unsafe("%s is not a file; remove it" % path)
    if not own(info):
        raise Unsafe(
            "%s does not belong to the user who runs this program; run it as the owner, or use "
            "a spool of your own" % path
        )
    quoted = shlex.quote(path)
    if info.st_mode & 0o022:
        raise Unsafe(
            "others may write to %s, so what is in it may be theirs; if it is not, take that "
            "right away: chmod go-w %s" % (path, quoted)
        )
    if not folder and info.st_nlink > 1:
        raise Unsafe(
            "%s is also another file, by a hard link; replace it by a copy: "
            "cp -p %s %s.copy && mv %s.copy %s" % (path, quoted, quoted, quoted, quoted)
        )


def _same(path: str, named: os.stat_result, opened: os.stat_result) -> None:
    if not os.path.samestat(named, opened):
        raise Unsafe(
            "%s was replaced while it was opened; see who can write to the folder that it is in"
            % path
        )
