"""Fuzz every reader of files, guided by which of its lines an input reaches, and print what came out.

    python tests/fuzz/run.py --minutes 10

Needs atheris (`pip install 'handgrad[fuzz]'`). Each reader has a process of its own, begins with the files of
tests/fuzz/corpus, and has the same share of the time. What makes a reader raise anything but an error of handgrad's,
run for seconds or ask for more than 2 GiB is kept in the folder that --keep names, and the exit code is 1. To have it
looked at by the tests for ever, put it into tests/fuzz/corpus/hard as FILE-NAME, for example run.json-deep.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile
import traceback
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[2]))

SLOW = 10  # seconds for one input
MEGABYTES = 2048


def main() -> int:
    """Fuzz the readers one after the other; return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=2, help="for all readers together")
    parser.add_argument(
        "--keep", type=Path, default=Path("fuzz-crashes"), help="where crashing inputs are kept"
    )
    parser.add_argument("--reader", help="only this one, in this process")
    chosen = parser.parse_args()
    if chosen.reader:
        fuzz(chosen.reader, 60 * chosen.minutes, chosen.keep)
    from tests.fuzz.readers import READERS

    chosen.keep.mkdir(parents=True, exist_ok=True)
    known = set(chosen.keep.iterdir())
    tried = 0
    print(f"{'reader':<12}  {'inputs tried':>12}  {'edges':>6}  crashes")
    for name in READERS:
        share = chosen.minutes / len(READERS)
        command = [sys.executable, __file__, "--reader", name, "--minutes", str(share), "--keep", chosen.keep]
        with tempfile.TemporaryDirectory(prefix="handgrad-fuzz-") as folder:  # for what the process leaves
            here = os.environ | {"TMPDIR": folder}
            done = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False, env=here
            )
        inputs = int((re.findall(r"number_of_executed_units: (\d+)", done.stderr) or [0])[-1])
        edges = (re.findall(r"cov: (\d+)", done.stderr) or [0])[-1]
        crashes = set(chosen.keep.iterdir()) - known
        known |= crashes
        tried += inputs
        print(
            f"{name:<12}  {inputs:>12,}  {edges:>6}  {', '.join(sorted(p.name for p in crashes)) or 'none'}"
        )
        if not inputs or (done.returncode and not crashes):
            print(done.stderr[-3000:])
            return 1
    found = len(list(chosen.keep.iterdir()))
    print(f"{tried:,} inputs tried, crashes: {found or 'none'}")
    if not found:
        chosen.keep.rmdir()
    return int(found > 0)


def fuzz(name: str, seconds: float, keep: Path) -> None:
    """Fuzz one reader; this ends the process."""
    import atheris

    with atheris.instrument_imports(include=["handgrad"]):
        from tests.fuzz.readers import READERS
    from tests.fuzz.mutations import damage

    reader = READERS[name]
    files = reader.sound()

    def try_on(content: bytes) -> None:
        try:
            reader.try_on(content)
        except Exception as error:
            *_, place = traceback.extract_tb(error.__traceback__)
            seen = f"{type(error).__name__} {place.filename} {place.lineno}"
            label = f"{Path(reader.file).name}-{type(error).__name__}-{hashlib.sha256(seen.encode()).hexdigest()[:8]}"
            if not (keep / label).exists():
                (keep / label).write_bytes(content)
                traceback.print_exc()

    def mutate(content: bytes, most: int, seed: int) -> bytes:
        chance = random.Random(seed)
        if chance.random() < 0.5:
            return atheris.Mutate(content, most)
        return damage(content, files, chance)[:most]

    corpus = Path(tempfile.mkdtemp(prefix="handgrad-fuzz-corpus-"))
    for number, content in enumerate(files):
        (corpus / str(number)).write_bytes(content)
    options = [
        f"-max_total_time={max(1, round(seconds))}", f"-timeout={SLOW}", f"-rss_limit_mb={MEGABYTES}",
        f"-max_len={4 * max(map(len, files)) + 4096}", f"-artifact_prefix={keep}/{Path(reader.file).name}-",
        "-print_final_stats=1",
    ]  # fmt: skip
    atheris.Setup([sys.argv[0], *options, str(corpus)], try_on, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    sys.exit(main())
