"""Several processes that train one network together: how they join, what they agree on, how the end of one ends the others.

JAX does all of it: `jax.distributed` finds the processes and notices when one has gone, XLA communicates.
"""

from __future__ import annotations

import math
import re
import sys
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np

from handgrad.errors import ConfigurationError, EngineError, need

HEARTBEAT_SECONDS = 30
"""How long a process may be silent before the others end: a network cable that was pulled takes as long to be noticed."""

JOINING_SECONDS = 300
"""How long the first processes wait for the last, where nothing else is given."""

LOST = re.compile("Gloo|NCCL|[Cc]oordination|distributed service|heartbeat")
"""What the messages of JAX have in them where another process has gone."""

UNEXPECTED = re.compile(r"Unexpected task registered with task=(\d+)")
"""What JAX reports where the first process has no place for this one, whose number it is."""


def announced(environment: Mapping[str, str]) -> int:
    """Return how many processes srun, mpirun or a cloud's TPU says are started together; 1 where none says so.

    Of a job whose script is not started by srun, Slurm counts the tasks too: what counts is the step.

    Examples
    --------
    >>> announced({"SLURM_NTASKS": "4"}), announced({"SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "4"})
    (1, 4)
    >>> announced({"TPU_WORKER_HOSTNAMES": "host0,host1"})
    2
    """
    names = ["SLURM_STEP_NUM_TASKS"]
    if (
        "OMPI_MCA_orte_hnp_uri" in environment
    ):  # where JAX reads the coordinator's address; Open MPI 5 has none
        names.append("OMPI_COMM_WORLD_SIZE")
    counts = (environment.get(name, "") for name in names)
    hosts = environment.get("TPU_WORKER_HOSTNAMES", "").count(",") + 1
    return max(hosts, *(int(count) for count in counts if count.isdecimal()), 1)


def join(
    coordinator: str | None = None, processes: int | None = None, process: int | None = None,
    seconds: float = JOINING_SECONDS,
) -> None:  # fmt: skip
    """Join the other processes; what is not given, JAX finds in the environment of srun, mpirun or Kubernetes.

    Parameters
    ----------
    coordinator
        "host:port", where the first process listens.
    processes, process
        How many there are, and the number of this one, from 0.
    seconds
        How long to wait for the others. Where they do not come, JAX ends this process by SIGABRT.

    Raises
    ------
    ConfigurationError
        Where nothing is found, or the processes do not fit together.
    EngineError
        Where the address is not this process's to listen on.
    """
    if coordinator is not None and not re.fullmatch(r".+:\d+", coordinator):
        raise ConfigurationError(
            f"--coordinator {coordinator}: there is no port", fix=f"as in --coordinator {coordinator}:55527"
        )
    distributed = need("jax", "training in several processes").distributed
    given = coordinator, processes, process
    method = None if None in given else "deactivate"
    try:
        distributed.initialize(
            *given,
            cluster_detection_method=method,
            initialization_timeout=math.ceil(seconds),
            heartbeat_timeout_seconds=HEARTBEAT_SECONDS,
        )
    except (ValueError, TypeError, IndexError) as error:
        raise ConfigurationError(
            f"the other processes are not known: {error}",
            given=f"coordinator {coordinator}, processes {processes}, process {process}",
            fix="start each with srun or mpirun, or give coordinator, processes and process, all three; "
            "--no-cluster trains in one process",
        ) from None
    except RuntimeError as error:
        raise EngineError(
            f"the other processes were not found: {str(error).partition(chr(10))[0]}",
            fix="check that all of them are started and reach the coordinator's address, and that no other program "
            "listens there",
        ) from None
    devices_by_process()  # which the next needs to be equally many
    _check_counts(processes)


def _check_counts(processes: int | None) -> None:
    """Raise `ConfigurationError`, in all processes, where they were given different numbers of processes.

    JAX takes the first one's number, and lets the others join with theirs.
    """
    together = need("jax.experimental.multihost_utils", "training in several processes")
    counts = np.atleast_1d(together.process_allgather(np.int32(processes or _jax().process_count())))
    if len({*counts.tolist()}) > 1:
        given = ", ".join(f"process {number} was given {count}" for number, count in enumerate(counts))
        raise ConfigurationError(
            f"the processes were given different numbers of processes: {given}",
            fix="give each the same --processes",
        )


def devices_by_process() -> list[list[Any]]:
    """Return the devices of each process, or raise `ConfigurationError` where some have more than others."""
    jax = need("jax", "the jax engine")
    found = [jax.local_devices(process) for process in range(jax.process_count())]
    if len({*map(len, found)}) > 1:
        counts = ", ".join(f"process {number} has {len(devices)}" for number, devices in enumerate(found))
        raise ConfigurationError(
            f"the processes have different numbers of devices: {counts}",
            fix="give each the same number, for example by CUDA_VISIBLE_DEVICES",
        )
    return found


def leave() -> None:
    """Leave when all have come to this."""
    need("jax", "training in several processes").distributed.shutdown()


def processes() -> int:
    """Return how many processes train together."""
    return _jax().process_count() if _joined() else 1


def is_first() -> bool:
    """Whether this is the process that writes what is saved and shown."""
    return not _joined() or _jax().process_index() == 0


def agreed(number: float) -> float:
    """Return the first process's number, in all: what depends on a clock must not differ."""
    if processes() == 1:
        return number
    together = need("jax.experimental.multihost_utils", "training in several processes")
    with _jax().enable_x64(True):
        return float(together.broadcast_one_to_all(np.float64(number)))


def check_same(settings: str) -> None:
    """Raise `ConfigurationError` where this process's settings are not the first's; all have come to this, then."""
    mine = zlib.crc32(settings.encode())
    if agreed(mine) != mine:
        raise ConfigurationError(
            "the settings or the data of this process are not those of the first one",
            fix="give each process the same command and the same data",
        )


@contextmanager
def lost_processes_named() -> Iterator[None]:
    """Turn what JAX raises where another process has gone into an `EngineError`."""
    try:
        yield
    except (RuntimeError, ValueError) as error:
        if processes() == 1 or not LOST.search(str(error)):
            raise
        raise lost(str(error).partition("\n")[0]) from None


def lost(given: str = "") -> EngineError:
    """Return the error of a process that has lost another one."""
    return EngineError(
        "another process of this training has ended, or cannot be reached",
        given=given,
        fix="see what that one reports, and resume the training in all of them",
    )


def _jax() -> Any:
    return sys.modules["jax"]


def _joined() -> bool:
    return sys.modules.get("jax") is not None and bool(_jax().distributed.is_initialized())
