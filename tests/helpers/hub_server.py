"""A stand-in for the Hub on loopback: refs, listings and files over HTTP, with faults on demand."""

import functools
import hashlib
import json
import threading
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import unquote, urlsplit

# Kept in large file storage, so listed with their SHA-256.
LARGE = (".safetensors", ".bin", ".zip")


def commit_of(files):
    """Return the commit id of a revision: a digest of its files, as in git."""
    return _commit(tuple((name, _sha256(data)) for name, data in sorted(files.items())))


@functools.lru_cache(maxsize=4096)
def _commit(content):
    return hashlib.sha1(json.dumps(dict(content)).encode()).hexdigest()


@functools.lru_cache(maxsize=4096)
def _sha256(data):
    return hashlib.sha256(data).hexdigest()


def digest_of(name, data):
    if name.endswith(LARGE):
        return _sha256(data)
    return hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()


class StandIn:
    """Serves ``repos``: {repository: {revision: {file name: bytes}}}; counts calls.

    Data sets are named ``"datasets/OWNER/NAME"``.

    ``faults`` holds (substring of the request line, status) pairs, each used once; the status
    ``"cut"`` ends the connection half-way through the body.
    """

    @property
    def handler(self):
        return _Handler

    def __init__(self, repos):
        self.repos = repos
        self.calls = Counter()
        self.faults = []
        self.lines = []
        self.entered, self.resume = threading.Event(), threading.Event()
        self.retry_after = None  # seconds, sent with each refusal
        self.headers = {}  # sent with each file beside, or in place of, its own
        self.hold = None  # a substring: such a request waits for `resume`
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(
            ("127.0.0.1", 0), type("Handler", (self.handler,), {"stand_in": self})
        )
        self._server.daemon_threads = True
        self._thread = threading.Thread(
            target=self._server.serve_forever,
            kwargs={"poll_interval": 0.01},
            daemon=True,
        )

    @property
    def url(self):
        return f"http://127.0.0.1:{self._server.server_address[1]}"

    def commits(self, repo):
        return {name: commit_of(files) for name, files in self.repos[repo].items()}

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self.resume.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def note(self, kind, line):
        with self._lock:
            self.calls[kind] += 1
            self.lines.append(line)

    def fault(self, line):
        with self._lock:
            for entry in self.faults:
                if entry[0] in line:
                    self.faults.remove(entry)
                    return entry[1]
        return None

    def files_at(self, repo, revision):
        for name, files in self.repos.get(repo, {}).items():
            if revision in (name, commit_of(files)):
                return commit_of(files), files
        return None, None


class _Handler(BaseHTTPRequestHandler):
    stand_in: StandIn
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_HEAD(self):
        self.serve("HEAD")

    def do_GET(self):
        self.serve("GET")

    def serve(self, method):
        path = unquote(urlsplit(self.path).path)
        line = f"{method} {path}"
        if self.stand_in.hold is not None and self.stand_in.hold in line:
            self.stand_in.entered.set()
            self.stand_in.resume.wait(600)
        fault = self.stand_in.fault(line)
        if isinstance(fault, int):
            self.stand_in.note("refused", line)
            after = self.stand_in.retry_after
            return self.answer(
                fault, b"busy", {} if after is None else {"Retry-After": str(after)}
            )
        if path.startswith("/api/models/"):
            return self.api("", path.removeprefix("/api/models/"), line)
        if path.startswith("/api/datasets/"):
            return self.api("datasets/", path.removeprefix("/api/datasets/"), line)
        return self.resolve(method, path, line, fault)

    def api(self, kind, path, line):
        repo = kind + "/".join(path.split("/")[:2])
        rest = path.split("/")[2:]
        if repo not in self.stand_in.repos:
            return self.missing("RepoNotFound")
        if not rest or rest[0] == "revision":
            self.stand_in.note("info", line)
            commit, files = self.stand_in.files_at(repo, "/".join(rest[1:]) or "main")
            if files is None:
                return self.missing("RevisionNotFound")
            private = bool(getattr(self.stand_in, "private", {}).get(repo))
            return self.json(
                {"id": repo.removeprefix(kind), "sha": commit, "private": private}
            )
        if rest == ["refs"]:
            self.stand_in.note("refs", line)
            branches = [
                {"name": n, "ref": f"refs/heads/{n}", "targetCommit": c}
                for n, c in self.stand_in.commits(repo).items()
            ]
            return self.json({"branches": branches, "converts": [], "tags": []})
        if rest and rest[0] == "tree":
            self.stand_in.note("tree", line)
            _, files = self.stand_in.files_at(repo, "/".join(rest[1:]))
            if files is None:
                return self.missing("RevisionNotFound")
            return self.json([self.entry(n, d) for n, d in sorted(files.items())])
        return self.missing("EntryNotFound")

    def entry(self, name, data):
        oid = hashlib.sha1(b"blob %d\0" % len(data) + data).hexdigest()
        entry = {"type": "file", "oid": oid, "size": len(data), "path": name}
        if name.endswith(LARGE):
            entry["lfs"] = {"oid": _sha256(data), "size": len(data), "pointerSize": 134}
        return entry

    def resolve(self, method, path, line, fault):
        kind = "datasets/" * path.startswith("/datasets/")
        path = path.removeprefix(f"/{kind}").strip("/")
        if path.count("/") < 4:
            return self.missing("EntryNotFound")
        owner, name, _, revision, file = path.split("/", 4)
        commit, files = self.stand_in.files_at(f"{kind}{owner}/{name}", revision)
        if files is None:
            return self.missing("RevisionNotFound")
        if file not in files:
            return self.missing("EntryNotFound", commit)
        self.stand_in.note(method.lower(), line)
        data, status = files[file], 200
        headers = {
            "ETag": f'"{digest_of(file, data)}"',
            "X-Repo-Commit": commit,
            "Accept-Ranges": "bytes",
            **self.stand_in.headers,
        }
        span = self.headers.get("Range")
        if span:
            start = int(span.removeprefix("bytes=").split("-")[0])
            headers["Content-Range"] = f"bytes {start}-{len(data) - 1}/{len(data)}"
            data, status = data[start:], 206
        return self.answer(status, data, headers, cut=fault == "cut")

    def missing(self, code, commit=None):
        headers = {"X-Error-Code": code, "X-Error-Message": "not found"}
        if commit:
            headers["X-Repo-Commit"] = commit
        self.stand_in.note("404", self.path)
        return self.answer(404, b"", headers)

    def json(self, content):
        return self.answer(
            200, json.dumps(content).encode(), {"Content-Type": "application/json"}
        )

    def answer(self, status, data, headers, cut=False):
        self.send_response(status)
        for key, value in headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data[: len(data) // 2] if cut else data)
        if cut:
            self.close_connection = True


def folder_files(folder):
    """Return the files of a folder as a revision."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def build_cache(cache, repo, revisions):
    """Write revisions as huggingface_hub keeps them: blobs, snapshots of links, refs."""
    folder = cache / f"models--{repo.replace('/', '--')}"
    for name, files in revisions.items():
        commit = commit_of(files)
        snapshot = folder / "snapshots" / commit
        snapshot.mkdir(parents=True, exist_ok=True)
        (folder / "blobs").mkdir(exist_ok=True)
        for file, data in files.items():
            blob = folder / "blobs" / digest_of(file, data)
            blob.write_bytes(data)
            if not (snapshot / file).exists():
                (snapshot / file).symlink_to(f"../../blobs/{blob.name}")
        ref = folder / "refs" / name
        ref.parent.mkdir(parents=True, exist_ok=True)
        ref.write_text(commit)
    return folder
