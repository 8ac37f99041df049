"""``make test``: every test, in two processes side by side: those that mostly wait for real clocks, and all others.

The first half starts agents, servers and watchers of the kernel, and needs a core now and then; the other computes. One
after the other they take twice as long. What the waiting half says is shown when both have ended.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile

WAITING = ("tests/e2e", "tests/sources/test_ebpf.py", "tests/operations/test_stores_hurt.py")
"""What runs in the waiting half: whoever reads this machine's kernel is there, so that they come one by one."""


def main() -> int:
    """Run both halves; the worse of their exit codes."""
    pytest = [sys.executable, "-m", "pytest", "-q"]
    with tempfile.TemporaryFile() as said:
        waiting = subprocess.Popen([*pytest, *WAITING], stdout=said, stderr=subprocess.STDOUT)
        try:
            others = subprocess.run([*pytest, *(f"--ignore={each}" for each in WAITING)], check=False).returncode
            ended = waiting.wait()
        finally:
            waiting.kill()
            waiting.wait()
        said.seek(0)
        sys.stdout.flush()
        sys.stdout.buffer.write(said.read())
    return others or ended


if __name__ == "__main__":
    sys.exit(main())
