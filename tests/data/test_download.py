"""Downloads come from the first mirror that has a file intact, once; and nothing wrong is kept."""

from __future__ import annotations

import hashlib
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from handgrad.data.builtin import MIRRORS, SHA256, fetch, fetch_mnist
from handgrad.errors import DataError, MissingPackageError

CONTENTS = {"a.gz": b"first", "b.gz": b"second file"}
HASHES = {name: hashlib.sha256(content).hexdigest() for name, content in CONTENTS.items()}


class Site:
    """A web site on this machine: mirror ``bad/`` has one file, damaged; mirror ``good/`` has all."""

    def __init__(self, root: Path) -> None:
        for mirror in ("bad", "good"):
            (root / mirror).mkdir(parents=True)
        (root / "bad" / "a.gz").write_bytes(b"damaged")
        for name, content in CONTENTS.items():
            (root / "good" / name).write_bytes(content)
        self.requests: list[str] = []
        requests = self.requests

        class Handler(SimpleHTTPRequestHandler):
            def log_message(self, format: str, *args: object) -> None:  # noqa: A002
                requests.append(self.path)

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Handler, directory=root))
        self.bad, self.good = (f"http://127.0.0.1:{self.server.server_port}/{m}/" for m in ("bad", "good"))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    site = Site(tmp_path / "site")
    thread = threading.Thread(target=site.server.serve_forever, args=(0.01,))
    thread.start()
    yield site
    site.server.shutdown()
    thread.join()
    site.server.server_close()


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_files_are_downloaded_once(site: Site, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "cache"
    assert fetch(HASHES, [site.good, site.bad], folder) == folder
    assert contents(folder) == CONTENTS
    assert set(site.requests) == {"/good/a.gz", "/good/b.gz"}
    site.requests.clear()
    fetch(HASHES, [site.good], folder)
    assert site.requests == []


def test_the_next_mirror_is_tried_after_a_damaged_file_and_a_missing_one(site: Site, tmp_path: Path) -> None:
    fetch(HASHES, [site.bad, site.good], tmp_path / "cache")
    assert contents(tmp_path / "cache") == CONTENTS


def test_a_damaged_file_in_the_cache_is_replaced(site: Site, tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"half")
    fetch({"a.gz": HASHES["a.gz"]}, [site.good], tmp_path)
    assert (tmp_path / "a.gz").read_bytes() == CONTENTS["a.gz"]


def test_when_no_mirror_helps_each_failure_is_told_and_nothing_is_kept(site: Site, tmp_path: Path) -> None:
    closed = "http://127.0.0.1:9/"
    with pytest.raises(DataError) as caught:
        fetch(HASHES, [closed, site.bad], tmp_path / "cache")
    message = str(caught.value)
    assert message.startswith("a.gz: no mirror gave the file\n")
    assert f"{closed}: ConnectionError: " in message
    assert f"{site.bad}: ValueError: SHA256 hash" in message
    assert "set HANDGRAD_MNIST to their folder" in message
    assert contents(tmp_path / "cache") == {}


def test_mnist_is_fetched_into_the_cache_folder_of_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = []
    monkeypatch.setattr("pooch.os_cache", lambda project: tmp_path / project)
    monkeypatch.setattr("handgrad.data.builtin.fetch", lambda *asking: asked.append(asking) or asking[2])
    assert fetch_mnist() == tmp_path / "handgrad" / "mnist"
    assert asked == [(SHA256, MIRRORS, tmp_path / "handgrad" / "mnist")]


def test_without_pooch_the_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pooch", None)
    with pytest.raises(MissingPackageError, match=r"HANDGRAD_MNIST.*\n.*pip install 'handgrad\[download\]'"):
        fetch_mnist()
