"""Configuration files of a Slurm that lies in a folder, with fake GPUs."""

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

HOST = "127.0.0.1"
CLUSTER = "jobcast"
CPUS, MEMORY_MB = 64, 256_000
"""Of a node, whatever the machine has."""
FOLDERS = ("etc", "log", "run", "db", "state", "spool", "jobs", "munge", "dev")
SLURMDBD_CONF = """
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={home}/etc/jwt.key
DbdHost=localhost
DbdAddr={host}
DbdPort={slurmdbd}
SlurmUser=root
LogFile={home}/log/slurmdbd.log
PidFile={home}/run/slurmdbd.pid
StorageType=accounting_storage/mysql
StorageHost={host}
StoragePort={mariadbd}
StorageUser=slurm
StoragePass=slurm
StorageLoc=slurm_acct_db
"""
# AccountingStoragePass: without it sacctmgr and slurmctld ask munge's usual socket when they talk to slurmdbd.
# config_overrides: CPUs and memory are what is written here, not what the machine has.
SLURM_CONF = """
ClusterName={cluster}
SlurmctldHost=localhost({host})
SlurmctldPort={slurmctld}
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={home}/munge/socket
AuthAltTypes=auth/jwt
AuthAltParameters=jwt_key={home}/etc/jwt.key
CryptoType=crypto/munge
StateSaveLocation={home}/state
SlurmdSpoolDir={home}/spool/%n
SlurmctldPidFile={home}/run/slurmctld.pid
SlurmdPidFile={home}/run/slurmd-%n.pid
SlurmctldLogFile={home}/log/slurmctld.log
SlurmdLogFile={home}/log/slurmd-%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
JobAcctGatherType=jobacct_gather/none
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
SlurmdParameters=config_overrides
GresTypes=gpu
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityWeightQOS=10000
PriorityCalcPeriod=1
SchedulerType=sched/backfill
SchedulerParameters={scheduler_parameters}
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost={host}
AccountingStoragePort={slurmdbd}
AccountingStoragePass={home}/munge/socket
AccountingStorageTRES=gres/gpu
AccountingStorageEnforce=associations,limits,qos
AccountingStoreFlags=job_comment
PreemptType=preempt/qos
PreemptMode=REQUEUE
MinJobAge=86400
InactiveLimit=0
KillWait=5
SlurmctldDebug=info
SlurmdDebug=info
"""
HOOKS = "JobSubmitPlugins=lua\nCliFilterPlugins=lua\n"
NODE = (
    "NodeName={name} NodeHostname=localhost NodeAddr={host} Port={port} "
    "CPUs={cpus} RealMemory={memory} Gres=gpu:{gpus}\n"
)
PARTITION = "PartitionName=gpu Nodes=ALL Default=YES MaxTime=14-0 DefaultTime=1:00:00 State=UP\n"


@dataclass(frozen=True)
class Layout:
    """What the files say of a cluster: its folder, nodes, GPUs of a node, and what goes beyond that.

    Attributes
    ----------
    ports : by daemon, of nodes `slurmd-<node>`
    scheduler_parameters : Slurm's `SchedulerParameters`
    hooks : whether Lua is asked when jobs are submitted
    """

    home: Path
    nodes: tuple[str, ...]
    gpus: int
    ports: Mapping[str, int]
    scheduler_parameters: str
    hooks: bool

    def write(self) -> None:
        """Make folders, keys and configuration; keys that are there stay."""
        for name in FOLDERS:
            (self.home / name).mkdir(parents=True, exist_ok=True)
            (self.home / name).chmod(0o755)
        (self.home / "jobs").chmod(0o1777)
        for name, size in (("munge/key", 1024), ("etc/jwt.key", 32)):
            if not (self.home / name).exists():
                self._secret(name, secrets.token_bytes(size))
        self._secret("etc/slurmdbd.conf", SLURMDBD_CONF.format(**self._facts()).encode())
        (self.home / "etc/slurm.conf").write_text(self._slurm_conf())
        # gpu without File= counts as none, and the node drains; empty files will do
        for number in range(self.gpus):
            (self.home / f"dev/fakegpu{number}").touch()
        (self.home / "etc/gres.conf").write_text(f"Name=gpu File={self.home}/dev/fakegpu[0-{self.gpus - 1}]\n")

    def _slurm_conf(self) -> str:
        nodes = (NODE.format(name=name, port=self.ports[f"slurmd-{name}"], **self._facts()) for name in self.nodes)
        hooks = HOOKS if self.hooks else ""
        return SLURM_CONF.format(**self._facts()) + hooks + "".join(nodes) + PARTITION

    def _facts(self) -> dict[str, object]:
        fixed = {"host": HOST, "cluster": CLUSTER, "cpus": CPUS, "memory": MEMORY_MB, "gpus": self.gpus}
        return {**fixed, **self.ports, "home": self.home, "scheduler_parameters": self.scheduler_parameters}

    def _secret(self, name: str, content: bytes) -> None:
        path = self.home / name
        path.touch(0o600)
        path.write_bytes(content)
