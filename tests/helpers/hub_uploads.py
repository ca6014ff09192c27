"""The stand-in for the Hub with what an upload needs: repositories, large files and commits."""

import base64
import hashlib
import json
from urllib.parse import unquote, urlsplit

from helpers.hub_server import LARGE, StandIn, _Handler

TOKEN = "hf_" + "t" * 34


class Uploads(StandIn):
    """A stand-in that takes pushes of ``owner``, whose token is `TOKEN`, to its own name only."""

    def __init__(self, repos, owner="somebody"):
        super().__init__(repos)
        self.owner = owner
        self.private = {}
        self.stored = {}
        self.tokens = set()

    @property
    def handler(self):
        return _UploadHandler


class _UploadHandler(_Handler):
    stand_in: Uploads

    def do_POST(self):
        path = unquote(urlsplit(self.path).path)
        self.line = f"POST {path}"
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        if isinstance(fault := self.stand_in.fault(self.line), int):
            return self.answer(fault, b"", {})
        self.stand_in.note("post", self.line)
        if path == "/api/validate-yaml":
            return self.json({"errors": [], "warnings": []})
        sent = self.headers.get("Authorization", "").removeprefix("Bearer ")
        self.stand_in.tokens.add(sent)
        if sent != TOKEN:
            return self.refuse(401, "Invalid username or password.")
        if path == "/api/repos/create":
            return self.create(json.loads(body))
        if path.endswith("/info/lfs/objects/batch"):
            return self.batch(json.loads(body))
        repo, _, action = (
            path.removeprefix("/api/").rpartition("/main")[0].rpartition("/")
        )
        if action == "preupload":
            return self.preupload(json.loads(body))
        return self.commit(repo, [json.loads(line) for line in body.splitlines()])

    def do_PUT(self):
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        oid = self.path.rpartition("/")[2]
        if isinstance(fault := self.stand_in.fault(f"PUT {self.path}"), int):
            return self.answer(fault, b"", {})
        assert hashlib.sha256(body).hexdigest() == oid
        self.stand_in.note("put", f"PUT {self.path}")
        self.stand_in.stored[oid] = body
        return self.answer(200, b"", {})

    def create(self, wanted):
        kind = "datasets/" if wanted.get("type") == "dataset" else ""
        owner = wanted.get("organization") or self.stand_in.owner
        repo = f"{kind}{owner}/{wanted['name']}"
        if owner != self.stand_in.owner:
            return self.refuse(
                403, f"You don't have the rights to create a dataset under {owner}"
            )
        if repo in self.stand_in.repos:
            url = f"{self.stand_in.url}/{repo}"
            return self.refuse(409, "You already created this dataset repo", url=url)
        self.stand_in.repos[repo] = {"main": {}}
        self.stand_in.private[repo] = wanted.get(
            "visibility"
        ) == "private" or wanted.get("private")
        return self.json({"url": f"{self.stand_in.url}/{repo}"})

    def preupload(self, wanted):
        large = [(f["path"], f["path"].endswith(LARGE)) for f in wanted["files"]]
        modes = {path: "lfs" if is_large else "regular" for path, is_large in large}
        entry = {"shouldIgnore": False}
        return self.json(
            {"files": [{"path": p, "uploadMode": m, **entry} for p, m in modes.items()]}
        )

    def batch(self, wanted):
        objects = []
        for each in wanted["objects"]:
            url = f"{self.stand_in.url}/store/{each['oid']}"
            actions = (
                {} if each["oid"] in self.stand_in.stored else {"upload": {"href": url}}
            )
            objects.append({**each, **({"actions": actions} if actions else {})})
        return self.json({"transfer": "basic", "objects": objects})

    def commit(self, repo, lines):
        files = dict(self.stand_in.repos[repo]["main"])
        for line in lines:
            value = line["value"]
            if line["key"] == "file":
                files[value["path"]] = base64.b64decode(value["content"])
            elif line["key"] == "lfsFile":
                files[value["path"]] = self.stand_in.stored[value["oid"]]
            elif line["key"] == "deletedFile":
                files.pop(value["path"])
        self.stand_in.repos[repo]["main"] = files
        oid = self.stand_in.commits(repo)["main"]
        url = f"{self.stand_in.url}/{repo}"
        return self.json(
            {"commitOid": oid, "commitUrl": f"{url}/commit/{oid}", "url": url}
        )

    def refuse(self, status, message, **more):
        self.stand_in.note("refused", self.line)
        headers = {"Content-Type": "application/json", "X-Error-Message": message}
        return self.answer(
            status, json.dumps({"error": message, **more}).encode(), headers
        )
