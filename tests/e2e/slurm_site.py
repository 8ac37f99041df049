"""A whole Slurm site on one machine: munge, MariaDB, slurmdbd, slurmctld, slurmd with two GPUs that are no GPUs.

Billing counts GPUs alone, so that Slurm's usage is in device-seconds. Limits are enforced, though there are none: else
Slurm books a job's usage only when a calculation period ends (slurmctld 22.05, ``acct_policy_job_fini``).

All of it lies in one folder and listens on ports that were free; nothing of the machine's own configuration is read or
changed. Whoever makes one stops it. What it says of jobs and shares is Slurm's own word.
"""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

PROGRAMS = (
    "munged",
    "mariadbd",
    "mariadb-install-db",
    "slurmdbd",
    "slurmctld",
    "slurmd",
    "sacctmgr",
    "sbatch",
    "sacct",
    "sshare",
)
PACKAGES = "slurmctld slurmd slurmdbd slurm-client munge mariadb-server"
CLUSTER = "site"
GPUS = 2
HALF_LIFE_DAYS = 3650
"""So long that the minute in which the test runs decays by less than a millionth."""

_WAIT_S = 20
_FORMAT = "Account,User,RawShares,NormShares,RawUsage,NormUsage,EffectvUsage,FairShare,LevelFS"
_SACCT = (
    "JobID,Cluster,User,Account,Partition,QOS,State,Submit,Eligible,Start,End,ElapsedRaw,Suspended,ReqTRES,AllocTRES,"
    "NodeList"
)
"""As the guide says to ask for it."""


def missing_programs() -> list[str]:
    """What of Slurm and its parts is not installed."""
    return [name for name in PROGRAMS if shutil.which(name, path=_PATH) is None]


_PATH = os.environ.get("PATH", "") + ":/usr/sbin:/sbin"


class SlurmSite:
    """A running site.

    Args:
        folder: its own, empty; every part of the path can be entered by all users.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._running: list[subprocess.Popen[bytes]] = []
        self._host = socket.gethostname()
        self._ports = dict(zip(("sql", "dbd", "ctld", "d"), _free_ports(4), strict=True))
        self._socket = folder / "munge" / "munge.sock"
        self._environment = os.environ | {
            "PATH": _PATH, "SLURM_CONF": str(folder / "slurm.conf"), "TZ": "UTC", "SLURM_TIME_FORMAT": "standard",
        }  # fmt: skip

    def start(self) -> None:
        """Bring all of it up, until a job could be taken."""
        for name in ("munge", "sql", "run", "log", "state", "spool"):
            (self.folder / name).mkdir()
        self.folder.chmod(0o755)
        self._write_configuration("")
        self._start_munge()
        self._start_database()
        self._spawn("slurmdbd", "-D")
        self._until("slurmdbd", lambda: self._ok("sacctmgr", "-i", "show", "cluster"))
        self.run("sacctmgr", "-i", "add", "cluster", CLUSTER)
        self._spawn("slurmctld", "-D", "-c")
        self._until("slurmctld", lambda: self._ok("scontrol", "ping"))
        self._spawn("slurmd", "-D")
        self._until("slurmd", lambda: "idle" in self.run("sinfo", "-h", "-o", "%t"))

    def stop(self) -> None:
        """Stop what was started, the last first, and wait until it is gone."""
        for process in reversed(self._running):
            process.terminate()
            try:
                process.wait(timeout=_WAIT_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(timeout=_WAIT_S)
        self._running.clear()

    def run(self, *words: str) -> str:
        """A command of Slurm's, to its end; its output."""
        done = subprocess.run(
            words, env=self._environment, cwd="/", capture_output=True, text=True, timeout=60, check=False
        )
        assert done.returncode == 0, f"{' '.join(words)}: {done.stdout}{done.stderr}{self.logs()}"
        return done.stdout

    def account(self, name: str, shares: int, users: dict[str, int]) -> None:
        """An account below the root, with its users."""
        self.run("sacctmgr", "-i", "add", "account", name, f"Fairshare={shares}", f"Cluster={CLUSTER}")
        for user, count in users.items():
            self.run(
                "sacctmgr", "-i", "add", "user", user, f"Account={name}", f"Fairshare={count}", f"Cluster={CLUSTER}"
            )

    def submit(self, user: str, account: str, *, gpus: int, seconds: int) -> str:
        """A job of a user; its number."""
        return self.run(
            "sbatch", "--parsable", f"--uid={pwd.getpwnam(user).pw_uid}", f"--account={account}", "--chdir=/tmp",
            "--output=/dev/null", f"--gres=gpu:{gpus}", "--ntasks=1", f"--wrap=sleep {seconds}",
        ).strip()  # fmt: skip

    def finish(self, jobs: Sequence[str], within_s: int) -> None:
        """Wait until the jobs are over, and the accounting says so."""
        self._until("the jobs", lambda: not self.run("squeue", "-h", "-o", "%i").split(), within_s=within_s)
        self._until("sacct", lambda: set(jobs) <= self._completed())

    def _completed(self) -> set[str]:
        rows = [line.split("|") for line in self.sacct().splitlines()[1:]]
        return {row[0] for row in rows if "COMPLETED" in row}

    def sacct(self) -> str:
        """The accounting, as the guide says to ask for it, in UTC."""
        return self.run("sacct", "-a", "-D", "-P", "-S", "now-1hours", f"--format={_SACCT}")

    def shares(self, *, is_classic: bool) -> dict[tuple[str, str], dict[str, str]]:
        """What ``sshare`` says by account and user, all factors worked out anew.

        Fair Tree factors are only worked out once in a calculation period, a minute at least, and when the controller
        starts. So it is stopped, which saves the usage, and started.
        """
        controller = next(process for process in self._running if "slurmctld" in process.args)
        controller.terminate()
        controller.wait(timeout=_WAIT_S)
        self._running.remove(controller)
        self._write_configuration("PriorityFlags=NO_FAIR_TREE" if is_classic else "")
        self._spawn("slurmctld", "-D")
        self._until("slurmctld", lambda: self._ok("scontrol", "ping"))
        wanted = "" if is_classic else "FairShare"
        self._until("sshare", lambda: self._is_worked_out(wanted))
        return self._shares()

    def logs(self) -> str:
        """The last lines of every log, for a message."""
        parts = [f"\n--- {path.name}\n{_tail(path)}" for path in sorted((self.folder / "log").glob("*"))]
        return "".join(parts)

    def _is_worked_out(self, column: str) -> bool:
        rows = self._shares()
        used = [row for (_, user), row in rows.items() if user]
        return bool(used) and (not column or any(float(row[column] or 0) > 0 for row in used))

    def _shares(self) -> dict[tuple[str, str], dict[str, str]]:
        head, *lines = self.run("sshare", "-a", "-P", "-o", _FORMAT).splitlines()
        names = head.split("|")
        rows = [dict(zip(names, (cell.strip() for cell in line.split("|")), strict=True)) for line in lines]
        return {(row["Account"], row["User"]): row for row in rows}

    def _write_configuration(self, more: str) -> None:
        folder, ports, host = self.folder, self._ports, self._host
        for number in range(GPUS):
            node = folder / "spool" / f"gpu{number}"
            if not node.exists():
                os.mknod(node, 0o666 | 0o020000, os.makedev(1, 3))
        database = folder / "slurmdbd.conf"
        database.write_text(
            f"""\
AuthType=auth/munge
AuthInfo=socket={self._socket}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={ports["dbd"]}
SlurmUser=root
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={ports["sql"]}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
LogFile={folder}/log/slurmdbd.log
PidFile={folder}/run/slurmdbd.pid
""",
            encoding="utf-8",
        )
        database.chmod(0o600)
        (folder / "gres.conf").write_text(f"NodeName={host} Name=gpu Type=h100 File={folder}/spool/gpu[0-{GPUS - 1}]\n")
        (folder / "slurm.conf").write_text(
            f"""\
ClusterName={CLUSTER}
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports["ctld"]}
SlurmdPort={ports["d"]}
SlurmUser=root
AuthType=auth/munge
AuthInfo=socket={self._socket}
CredType=cred/munge
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/run/slurmctld.pid
SlurmdPidFile={folder}/run/slurmd.pid
SlurmctldLogFile={folder}/log/slurmctld.log
SlurmdLogFile={folder}/log/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
SchedulerParameters=sched_interval=1,batch_sched_delay=0
PriorityType=priority/multifactor
PriorityDecayHalfLife={HALF_LIFE_DAYS}-0
PriorityCalcPeriod=1
PriorityWeightFairshare=10000
{more}
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={ports["dbd"]}
AccountingStoragePass={self._socket}
AccountingStorageTRES=gres/gpu,gres/gpu:h100
AccountingStorageEnforce=associations,limits
GresTypes=gpu
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=4 RealMemory=500 Gres=gpu:h100:{GPUS} State=UNKNOWN
PartitionName=gpu Nodes={host} Default=YES MaxTime=INFINITE State=UP TRESBillingWeights="CPU=0.0,GRES/gpu=1.0"
""",
            encoding="utf-8",
        )

    def _start_munge(self) -> None:
        folder = self.folder / "munge"
        key = folder / "munge.key"
        key.write_bytes(secrets.token_bytes(1024))
        key.chmod(0o600)
        munge = pwd.getpwnam("munge")
        for path in (folder, key):
            os.chown(path, munge.pw_uid, munge.pw_gid)
        folder.chmod(0o755)
        self._spawn(
            "munged", "--foreground", "--force", f"--key-file={key}", f"--socket={self._socket}",
            f"--pid-file={folder}/munged.pid", f"--log-file={folder}/munged.log", f"--seed-file={folder}/seed",
            user="munge",
        )  # fmt: skip
        self._until("munged", self._socket.exists)

    def _start_database(self) -> None:
        place, access = self.folder / "sql", self.folder / "run" / "sql.sock"
        shutil.chown(place, "mysql", "mysql")
        self.run(
            "mariadb-install-db", "--no-defaults", f"--datadir={place}", "--user=mysql", "--skip-test-db",
            "--auth-root-authentication-method=socket",
        )  # fmt: skip
        (self.folder / "run").chmod(0o777)
        self._spawn(
            "mariadbd", "--no-defaults", f"--datadir={place}", "--user=mysql", f"--socket={access}",
            f"--port={self._ports['sql']}", "--bind-address=127.0.0.1", f"--pid-file={place}/sql.pid",
            "--innodb-buffer-pool-size=64M", "--innodb-log-file-size=16M", "--innodb-lock-wait-timeout=900",
        )  # fmt: skip
        query = ["mariadb", "--no-defaults", "-S", str(access), "-e"]
        self._until("mariadbd", lambda: self._ok(*query, "select 1"))
        grants = "; ".join(
            f"create user slurm@{host} identified by 'slurm'; grant all on slurm_acct_db.* to slurm@{host}"
            for host in ("localhost", "'127.0.0.1'")
        )
        self.run(*query, f"create database slurm_acct_db; {grants}")

    def _spawn(self, *words: str, user: str | None = None) -> None:
        log = (self.folder / "log" / f"{words[0]}.out").open("ab")
        with log:
            self._running.append(
                subprocess.Popen(
                    words,
                    env=self._environment,
                    cwd="/",
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    user=user,
                    group=user,
                    extra_groups=[] if user else None,
                )
            )

    def _ok(self, *words: str) -> bool:
        done = subprocess.run(words, env=self._environment, cwd="/", capture_output=True, timeout=60, check=False)
        return done.returncode == 0

    def _until(self, what: str, holds: Callable[[], bool], *, within_s: int = _WAIT_S) -> None:
        deadline = time.monotonic() + within_s
        while not holds():
            dead = [process.args for process in self._running if process.poll() is not None]
            assert not dead, f"{what}: {dead} ended{self.logs()}"
            assert time.monotonic() < deadline, f"{what} is not there after {within_s} s{self.logs()}"
            time.sleep(0.2)


def _free_ports(number: int) -> list[int]:
    """Ports that nobody listens on; asked for all at once, so that they differ."""
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports = [int(one.getsockname()[1]) for one in sockets]
    for one in sockets:
        one.close()
    return ports


def _tail(path: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8", errors="replace").splitlines()[-12:])
