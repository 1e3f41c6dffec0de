"""Stand-ins for ssh and sudo on PATH: what they are told is written down, what runs "on the node" runs here."""

from __future__ import annotations

import os
import pathlib
import stat

# ssh -G answers like OpenSSH; -O exit removes the socket; else the last argument is the remote command, as for a login shell.
_SSH = r"""#!/bin/sh
printf '%s\n' "$*" >>"{log}"
socket=
for word in "$@"; do
  case "$word" in ControlPath=*) socket=${{word#ControlPath=}};; esac
  last=$word
done
case " $* " in
  *" -G "*) cat "{folder}/config-of-$last" 2>/dev/null || echo "hostname $last"; exit 0;;
  *" -O exit "*) rm -f "$socket"; exit 0;;
esac
{behaviour}
[ -z "$socket" ] || : >"$socket"
sh -c "$last"
"""


class FakeSsh:
    """A folder with a fake ``ssh`` and ``sudo``, to be put first on PATH."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.log = folder / "ssh.log"
        self.behave("")
        self.program("sudo", '[ "$1" = -n ] && shift\nexec "$@"')

    def behave(self, shell: str) -> None:
        """What ssh does before it runs the command (``$last``); ``exit 255`` is a failed connection."""
        text = _SSH.format(log=self.log, folder=self.folder, behaviour=shell)
        self._write("ssh", text)

    def program(self, name: str, shell: str) -> None:
        """One more program on PATH."""
        self._write(name, f"#!/bin/sh\n{shell}\n")

    def alias(self, name: str, settings: str) -> None:
        """What ``ssh -G name`` prints."""
        (self.folder / f"config-of-{name}").write_text(settings)

    def calls(self) -> list[str]:
        """The argument lists so far, as lines."""
        return self.log.read_text().splitlines() if self.log.exists() else []

    def _write(self, name: str, text: str) -> None:
        path = self.folder / name
        path.write_text(text)
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


def on_path(folder: pathlib.Path) -> str:
    """The value of PATH with a folder put first."""
    return f"{folder}{os.pathsep}{os.environ['PATH']}"
