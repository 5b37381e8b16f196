"""Several processes train what one does, and when one is killed the others end and all go on from the checkpoint."""

from __future__ import annotations

import csv
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np
import pytest
from safetensors.numpy import load_file

from handgrad.cli.train import train_command
from handgrad.engines.cluster import announced

from ..conftest import ENVIRONMENT, Server

pytestmark = pytest.mark.peers

EXAMPLES = Path(__file__).parents[2] / "examples" / "cluster"
BIN = Path(sys.executable).parent
SECONDS = 60
"""In which the end of one process must have ended the others; it takes a second or two on a machine that is free."""

NETWORK = [
    "--hidden",
    "9",
    "--normalisation",
    "batch",
    "--dropout",
    "0.2",
    "--clip-norm",
    "0.5",
    "--dtype",
    "float64",
]
TRAINING = [
    "table.csv",
    "--target",
    "y",
    *NETWORK,
    "--epochs",
    "3",
    "--batch-size",
    "16",
    "--engine",
    "jax",
    "--validation",
    "0",
]


def free_address() -> str:
    """Return localhost with a port on which nothing listens."""
    with socket.socket() as listening:
        listening.bind(("localhost", 0))
        return f"localhost:{listening.getsockname()[1]}"


class Processes:
    """Starts a command in several processes that train together, in a folder with a table of 203 rows."""

    def __init__(self, server: Server, folder: Path) -> None:
        self.server, self.folder = server, folder
        rng = np.random.default_rng(0)
        x = rng.normal(size=(203, 5)).round(3)  # whatever is split off, the last batch is no whole one
        with (folder / "table.csv").open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(["a", "b", "c", "d", "e", "y"])
            writer.writerows([*row, "yes" if row @ row > 5 else "no"] for row in x)

    def start(
        self, count: int, *arguments: object, environments: Sequence[Mapping[str, str]] = ({}, {}, {}, {})
    ) -> list[int]:
        """Start it in so many processes, with the options that say which is which; return their numbers of processes."""
        address = free_address()
        return [
            self.start_one(number, count, address, *arguments, environment=environments[number])
            for number in range(count)
        ]

    def start_one(
        self, number: int, count: int, address: str, *arguments: object, environment: Mapping[str, str] = {}
    ) -> int:
        """Start it as one of ``count`` processes."""
        place = ["--coordinator", address, "--process", number, "--processes", count]
        streams = [os.devnull, self.folder / f"{number}.out", self.folder / f"{number}.err"]
        return self.server.start(self.folder, ["train", *arguments, *place], streams, environment=environment)

    def run(self, count: int, *arguments: object) -> None:
        """Run it to its end; one process is one that trains alone."""
        if count == 1:
            log = self.folder / "0.err"
            started = [self.server.start(self.folder, ["train", *arguments], [os.devnull, os.devnull, log])]
        else:
            started = self.start(count, *arguments)
        for number, process in enumerate(started):
            assert self.server.wait(process) == 0, (self.folder / f"{number}.err").read_text()

    def curve(self, run: str) -> np.ndarray:
        """Return the losses of a run, epoch by epoch."""
        _, *epochs = map(json.loads, (self.folder / run / "history.jsonl").read_text().splitlines())
        return np.array([epoch["loss"] for epoch in epochs])


@pytest.fixture
def processes(server: Server, tmp_path: Path) -> Processes:
    return Processes(server, tmp_path)


def test_two_and_four_processes_train_what_one_does(processes: Processes) -> None:
    """Masks, the means of a batch norm, the norm of all gradients and a short last batch are of all rows."""
    for count in (1, 2, 4):
        processes.run(count, *TRAINING, "--out", f"run{count}")
    for count in (2, 4):
        np.testing.assert_allclose(processes.curve(f"run{count}"), processes.curve("run1"), rtol=1e-10)
        weights = (load_file(processes.folder / f"run{n}" / "weights.safetensors") for n in (count, 1))
        for (name, array), one in zip(next(weights).items(), next(weights).values(), strict=True):
            if name != "b1":  # before a batch norm its gradient is rounding alone, which Adam makes a step of
                np.testing.assert_allclose(array, one, rtol=1e-6, atol=1e-7, err_msg=name)
        for number in range(1, count):  # only the first shows and writes anything
            for stream in ("out", "err"):
                assert (processes.folder / f"{number}.{stream}").read_text() == ""


def test_two_processes_train_several_networks_as_the_reference_does() -> None:
    """A few of the networks that engines are tested with; the script counts all."""
    script = Path(__file__).parents[2] / "benchmarks" / "conformance.py"
    command = [sys.executable, script, "--processes", "2", "--every", "100"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 processes, 2 devices, float64: 2 of 2 agree" in done.stdout


def children(process: int) -> list[int]:
    """Return the processes that a process started."""
    return [int(each) for each in Path(f"/proc/{process}/task/{process}/children").read_text().split()]


def test_a_killed_process_ends_the_other_and_both_go_on_from_the_checkpoint(processes: Processes) -> None:
    """At random moments, either process, its parent or its child; the weights are those of an undisturbed run."""
    moments = random.Random(0)
    long = [*TRAINING, "--epochs", "20", "--checkpoint-minutes", "0.001"]
    processes.run(2, *long, "--out", "whole")
    for number in range(2):
        run = f"run{number}"
        started = processes.start(2, *long, "--out", run)
        checkpoint = processes.folder / run / "checkpoint.safetensors"
        while not checkpoint.exists():
            time.sleep(0.01)
        time.sleep(moments.uniform(0, 0.4))
        killed = moments.randrange(2)
        victim = started[killed]
        os.kill(children(victim)[0] if number else victim, signal.SIGKILL)
        ended = time.monotonic()
        assert processes.server.wait(started[1 - killed]) == 1
        assert time.monotonic() - ended < SECONDS
        assert processes.server.wait(victim) == (1 if number else -signal.SIGKILL)
        said = (processes.folder / f"{1 - killed}.err").read_text()
        assert said.count("Error: another process of this training has ended, or cannot be reached") == 1, (
            said
        )
        assert "Traceback" not in said
        processes.run(2, "--resume", run)
        weights = (load_file(processes.folder / each / "weights.safetensors") for each in (run, "whole"))
        for (name, array), undisturbed in zip(next(weights).items(), next(weights).values(), strict=True):
            np.testing.assert_array_equal(array, undisturbed, err_msg=name)


def test_a_process_whose_address_is_wrong_ends_with_the_time_and_the_reason(processes: Processes) -> None:
    """As does the first one, when the others do not come."""
    place = ["--processes", "2", "--join-minutes", "0.02"]
    for number, host in enumerate(("localhost", "no-such-host.invalid")):
        log = processes.folder / "alone.err"
        address = free_address().replace("localhost", host)
        command = ["train", *TRAINING, *place, "--process", str(number), "--coordinator", address]
        began = time.monotonic()
        started = processes.server.start(processes.folder, command, [os.devnull, os.devnull, log])
        assert processes.server.wait(started) == 1
        assert time.monotonic() - began < SECONDS
        error = log.read_text()
        assert re.match(
            rf"Error: process {number} of 2 has waited \d+ seconds for the others at {address}\n", error
        )
        assert error.count("\n") == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_process_that_waits_for_the_others_is_stopped_at_once(processes: Processes, number: int) -> None:
    log = processes.folder / "waiting.err"
    place = ["--coordinator", "localhost:1", "--processes", "2", "--process", "1"]
    started = processes.server.start(
        processes.folder, ["train", *TRAINING, *place], [os.devnull, os.devnull, log]
    )
    while not children(started):
        time.sleep(0.01)
    time.sleep(3)  # in which it has imported JAX
    (child,) = children(started)
    os.kill(started, number)
    stopped = time.monotonic()
    assert processes.server.wait(started) == 128 + number
    assert time.monotonic() - stopped < 10
    assert log.read_text() == "Stopped.\n"
    assert not Path(f"/proc/{child}").exists()


def test_processes_with_other_numbers_of_devices_are_named(processes: Processes) -> None:
    environments = [{"XLA_FLAGS": f"--xla_force_host_platform_device_count={count}"} for count in (1, 3)]
    for number, started in enumerate(processes.start(2, *TRAINING, environments=environments)):
        assert processes.server.wait(started) == 1
        assert (processes.folder / f"{number}.err").read_text() == (
            "Error: the processes have different numbers of devices: process 0 has 1, process 1 has 3\n"
            "  fix    give each the same number, for example by CUDA_VISIBLE_DEVICES\n"
        )


@pytest.mark.parametrize("counts", [[2, 3], [3, 2, 3]])
def test_processes_that_were_given_other_numbers_of_processes_are_named(
    processes: Processes, counts: list[int]
) -> None:
    """JAX lets them join, and trains in as many as the first one counts."""
    given = ", ".join(f"process {number} was given {count}" for number, count in enumerate(counts))
    address = free_address()
    started = [processes.start_one(number, count, address, *TRAINING) for number, count in enumerate(counts)]
    for number, process in enumerate(started):
        assert processes.server.wait(process) == 1
        assert (processes.folder / f"{number}.err").read_text() == (
            f"Error: the processes were given different numbers of processes: {given}\n"
            "  fix    give each the same --processes\n"
        )


def test_a_process_that_is_too_many_has_no_place_and_the_others_train(processes: Processes) -> None:
    """The second comes when the third has ended: what comes to an address that nobody listens at any more only waits."""
    address = free_address()
    first, third = (processes.start_one(n, count, address, *TRAINING) for n, count in ((0, 2), (2, 3)))
    assert processes.server.wait(third) == 1
    error = (processes.folder / "2.err").read_text()
    assert error.startswith("Error: process 2 of 3 has no place: the first one at ")
    assert " was given 2 or fewer processes\n" in error
    assert error.endswith("\n  fix    give each the same --processes\n")
    second = processes.start_one(1, 2, address, *TRAINING)
    assert processes.server.wait(first) == processes.server.wait(second) == 0


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ("--coordinator localhost --processes 2 --process 1", "--coordinator localhost: there is no port"),
        ("--processes 2", "the other processes are not known: coordinator_address should be defined."),
        ("--cluster --engine reference", "--cluster is given, and the engine reference trains in one"),
    ],
)
def test_a_cluster_that_cannot_be_is_one_error(processes: Processes, arguments: str, error: str) -> None:
    log = processes.folder / "refused.err"
    command = ["train", "xor", *arguments.split()]
    started = processes.server.start(processes.folder, command, [os.devnull, os.devnull, log])
    assert processes.server.wait(started) == 1
    assert log.read_text().startswith(f"Error: {error}\n")
    assert "\n  fix    " in log.read_text()


def test_processes_of_srun_train_together_or_are_told_that_they_do_not(processes: Processes) -> None:
    """The engine may be named in the file of settings too."""
    (processes.folder / "together.toml").write_text('[training]\nengine = "jax"\n')
    for arguments, code, error in (
        ([], 1, "Error: 2 processes are started together, and the engine compiled trains in one\n"),
        (["together.toml"], 1, "Error: the other processes are not known: "),  # there is no srun here
        (["--no-cluster", "--epochs", "1", "--out", "alone"], 0, "xor: 700 training rows"),
    ):
        log = processes.folder / "srun.err"
        command = ["train", *(arguments if "together.toml" in arguments else ["xor", *arguments])]
        started = processes.server.start(
            processes.folder,
            command,
            [os.devnull, os.devnull, log],
            environment={"SLURM_STEP_NUM_TASKS": "2"},
        )
        assert processes.server.wait(started) == code
        assert log.read_text().startswith(error)
        log.unlink()


def test_without_an_option_mpirun_says_that_there_are_two(processes: Processes) -> None:
    """As Open MPI's does, in the environment; the coordinator's port follows from its number of the job."""
    job = random.SystemRandom().randrange(2**12)
    open_mpi = {"OMPI_MCA_orte_hnp_uri": f"{job * 2**12}.0;tcp://127.0.0.1:1", "OMPI_COMM_WORLD_SIZE": "2"}
    started = []
    for number in range(2):
        places = {f"OMPI_COMM_WORLD_{name}": str(number) for name in ("RANK", "LOCAL_RANK")}
        streams = [processes.folder / f"{number}.{stream}" for stream in ("out", "err")]
        command = ["train", *TRAINING, "--epochs", "1", "--out", "run"]
        started.append(
            processes.server.start(
                processes.folder, command, [os.devnull, *streams], environment=open_mpi | places
            )
        )
    for number, process in enumerate(started):
        assert processes.server.wait(process) == 0, (processes.folder / f"{number}.err").read_text()
    head = (processes.folder / "run" / "history.jsonl").read_text().partition("\n")[0]
    assert json.loads(head)["facts"]["processes"] == 2
    assert (processes.folder / "1.out").read_text() == ""


@pytest.mark.parametrize(
    ("environment", "count"),
    [
        ({}, 1),
        ({"SLURM_JOB_ID": "7", "SLURM_NTASKS": "4", "SLURM_PROCID": "0"}, 1),  # the job's script
        ({"SLURM_NTASKS": "4", "SLURM_STEP_NUM_TASKS": "1"}, 1),  # srun --ntasks 1
        ({"SLURM_NTASKS": "3", "SLURM_STEP_NUM_TASKS": "3"}, 3),
        ({"OMPI_COMM_WORLD_SIZE": "1", "OMPI_MCA_orte_hnp_uri": ""}, 1),
        ({"OMPI_COMM_WORLD_SIZE": "3"}, 1),  # Open MPI 5, which JAX does not find
        ({"OMPI_COMM_WORLD_SIZE": "5", "OMPI_MCA_orte_hnp_uri": "", "SLURM_STEP_NUM_TASKS": "1"}, 5),
        ({"TPU_WORKER_HOSTNAMES": "localhost"}, 1),
        ({"TPU_WORKER_HOSTNAMES": "a,b,c,d"}, 4),
        ({"OMPI_COMM_WORLD_SIZE": "", "OMPI_MCA_orte_hnp_uri": ""}, 1),
    ],
)
def test_one_process_is_no_cluster(environment: dict[str, str], count: int) -> None:
    assert announced(environment) == count


def test_the_script_for_two_processes_trains_one_network(processes: Processes) -> None:
    _, port = free_address().split(":")
    environment = {**ENVIRONMENT, "PORT": port, "PATH": f"{BIN}:{os.environ['PATH']}"}
    script = ["bash", EXAMPLES / "two-processes.sh", "run", *TRAINING]
    done = subprocess.run(script, cwd=processes.folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (processes.folder / "run" / "run.json").exists()
    assert done.stdout.count("training loss") == 1


def test_the_schedulers_files_are_sound() -> None:
    """As far as a machine without a scheduler can show: they parse, and their options and variables exist."""
    import yaml

    options = {option for each in train_command.params for option in each.opts}
    variables = {
        each.envvar for each in train_command.params if isinstance(each, click.Option) and each.envvar
    }
    for path in sorted(EXAMPLES.iterdir()):
        text = path.read_text()
        commands = [text]
        if path.suffix == ".yaml":
            service, job = yaml.safe_load_all(text)
            pod = job["spec"]["template"]["spec"]
            (container,) = pod["containers"]
            commands = container["args"]
            values = {each["name"]: each.get("value") for each in container["env"]}
            assert values.keys() == variables
            assert (
                int(values["HANDGRAD_PROCESSES"]) == job["spec"]["completions"] == job["spec"]["parallelism"]
            )
            name = job["metadata"]["name"]
            assert values["HANDGRAD_COORDINATOR"].startswith(f"{name}-0.{service['metadata']['name']}:")
            assert pod["subdomain"] == service["metadata"]["name"]
            assert service["spec"]["selector"] == {"job-name": name}
            assert {each["name"] for each in pod["volumes"]} == {
                each["name"] for each in container["volumeMounts"]
            }
        for command in commands:
            subprocess.run(["bash", "-n"], input=command, text=True, check=True)
            words = re.findall(r"^[^#]*?handgrad train(.*)", command, re.MULTILINE)
            assert len(words) >= 1
            assert all(set(re.findall(r"--[\w-]+", each)) <= options for each in words)
        assert set(re.findall(r"HANDGRAD_\w+", text)) <= variables
