# SPDX-License-Identifier: Apache-2.0
"""Servers for tests of remote storage, all on 127.0.0.1: SeaweedFS and Ceph (real S3 servers), rclone (which answers ranges
with 200), a bucket in memory, and our proxy that breaks answers on purpose."""
import contextlib
import hashlib
import hmac
import http.server
import json
import os
import pathlib
import random
import select
import shutil
import socket
import ssl
import subprocess
import sys
import sysconfig
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
import uuid
from collections.abc import Callable

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEY_ID = "LEATTESTKEY0000001"
SECRET = "leat-test-secret-do-not-print-0001"
BUCKET = "leat-test"
SKIP = 77  # meson's code for "skipped"


def program(name: str) -> str | None:
    """The binary, from .venv (scripts/setup.sh puts it there) or the path."""
    for place in (ROOT / ".venv/bin", pathlib.Path(sys.executable).parent):
        if (place / name).exists():
            return str(place / name)
    return shutil.which(name)


def is_free(port: int) -> bool:
    with socket.socket() as s:
        try:
            s.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port whose number plus 10000 is also free: SeaweedFS uses that for its own protocol. Below the ports that the
    kernel assigns to clients."""
    while True:
        port = random.SystemRandom().randrange(10100, 22000)
        if is_free(port) and is_free(port + 10000):
            return port


def wait_for(port: int, process: subprocess.Popen, seconds: float = 60) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"the server ended with {process.returncode}")
        try:
            request = urllib.request.Request(f"http://127.0.0.1:{port}/")
            urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=2).close()
            return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
    raise RuntimeError("the server did not start")


class Server:
    """A child process with its own folder; stop() ends it and removes the folder."""

    def __init__(self) -> None:
        self.dir = tempfile.mkdtemp(prefix="leat-remote-")
        self.process: subprocess.Popen | None = None
        self.port = free_port()

    def start(self, command: list[str]) -> None:
        with open(os.path.join(self.dir, "log"), "wb") as log:
            self.process = subprocess.Popen(command, stdout=log, stderr=log, cwd=self.dir)
        wait_for(self.port, self.process)

    def stop(self) -> None:
        if self.process is not None:
            self.process.terminate()
            try:
                self.process.wait(10)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        shutil.rmtree(self.dir, ignore_errors=True)


class Weed(Server):
    def __init__(self) -> None:
        super().__init__()
        config = os.path.join(self.dir, "s3.json")
        with open(config, "w") as f:
            credentials = [{"accessKey": KEY_ID, "secretKey": SECRET}]
            json.dump({"identities": [{"name": "test", "credentials": credentials,
                                       "actions": ["Admin", "Read", "Write", "List", "Tagging"]}]}, f)
        os.mkdir(os.path.join(self.dir, "data"))
        ports = [free_port() for _ in range(3)]
        self.filer = ports[2]
        self.start([program("weed"), "server", f"-dir={self.dir}/data", "-ip=127.0.0.1",
                    "-ip.bind=127.0.0.1", f"-master.port={ports[0]}", f"-volume.port={ports[1]}",
                    "-filer", f"-filer.port={ports[2]}", "-s3", f"-s3.port={self.port}",
                    f"-s3.config={config}", "-s3.port.iceberg=0",
                    "-s3.port.lance=0", "-volume.max=80", "-master.volumeSizeLimitMB=256"])


class Rclone(Server):
    """Serves `folder`: each folder in it is a bucket."""

    def __init__(self, folder: str) -> None:
        super().__init__()
        self.start([program("rclone"), "serve", "s3", "--addr", f"127.0.0.1:{self.port}",
                    "--auth-key", f"{KEY_ID},{SECRET}", "--config", "/dev/null", folder])


class Ceph(Server):
    """A Ceph cluster of one monitor, one storage daemon that keeps everything in memory, and the S3 gateway. The programs
    are those of build-ceph (scripts/ceph.sh) or of the system."""

    def __init__(self) -> None:
        super().__init__()
        self.children: list[subprocess.Popen] = []
        self.conf = os.path.join(self.dir, "ceph.conf")
        root, mon, fsid = Ceph.root(), free_port(), str(uuid.uuid4())
        libs = f"{root}/usr/lib/{sysconfig.get_config_var('MULTIARCH') or 'x86_64-linux-gnu'}"
        self.env = {**os.environ, "PATH": f"{root}/usr/bin:{root}/usr/sbin:{os.environ['PATH']}", "CEPH_CONF": self.conf,
                    "LD_LIBRARY_PATH": f"{libs}:{libs}/ceph:{libs.replace('/usr/lib', '/lib')}", "PYTHONPATH": f"{root}/usr/lib/python3/dist-packages"}
        settings = {"fsid": fsid, "mon host": f"[v2:127.0.0.1:{mon}]", "public addr": "127.0.0.1",
                    "cluster addr": "127.0.0.1", "mon data": f"{self.dir}/mon", "osd data": f"{self.dir}/osd",
                    "osd objectstore": "memstore", "memstore device bytes": 2 << 30, "osd pool default size": 1,
                    "osd pool default min size": 1, "mon allow pool size one": "true", "osd crush chooseleaf type": 0,
                    "osd pool default pg num": 2, "osd pool default pg autoscale mode": "off", "run dir": self.dir,
                    "log file": f"{self.dir}/$name.log", "admin socket": f"{self.dir}/$name.asok", "pid file": f"{self.dir}/$name.pid",
                    "crash dir": self.dir, "mon cluster log file": f"{self.dir}/cluster.log", "keyring": f"{self.dir}/keyring", "plugin dir": f"{libs}/ceph",
                    "erasure code dir": f"{libs}/ceph/erasure-code", "osd class dir": f"{libs}/rados-classes",
                    "rgw frontends": f"beast endpoint=127.0.0.1:{self.port} tcp_nodelay=1", "rgw data": self.dir}
        with open(self.conf, "w") as f:
            f.write("[global]\n" + "".join(f"{name} = {value}\n" for name, value in settings.items()))
            f.write(f"[osd]\nkeyring = {self.dir}/osd/keyring\n")
        try:
            self._bring_up(mon, fsid)
        except BaseException:
            self.stop()
            raise

    @staticmethod
    def root() -> str:
        """Where the programs are below; "" for those of the system."""
        return str(ROOT / "build-ceph") if (ROOT / "build-ceph/usr/bin/radosgw").exists() else ""

    @staticmethod
    def available() -> bool:
        return bool(Ceph.root()) or shutil.which("radosgw") is not None

    def _run(self, *command: str) -> str:
        done = subprocess.run(command, env=self.env, cwd=self.dir, capture_output=True, text=True, timeout=90)
        if done.returncode != 0:
            raise RuntimeError(f"{command[0]}: {done.stderr.strip()[-300:]}")
        return done.stdout

    def _spawn(self, *command: str) -> subprocess.Popen:
        with open(os.path.join(self.dir, command[0] + ".out"), "wb") as log:
            self.children.append(subprocess.Popen([*command, "-f", "-c", self.conf], env=self.env, cwd=self.dir, stdout=log,
                                                  stderr=log))
        return self.children[-1]

    def _bring_up(self, mon: int, fsid: str) -> None:
        osd = str(uuid.uuid4())
        os.mkdir(os.path.join(self.dir, "osd"))
        self._run("ceph-authtool", "--create-keyring", "keyring", "--gen-key", "-n", "mon.", "--cap", "mon", "allow *")
        self._run("ceph-authtool", "keyring", "--gen-key", "-n", "client.admin", "--cap", "mon", "allow *", "--cap", "osd",
                  "allow *", "--cap", "mgr", "allow *")
        self._run("monmaptool", "--create", "--addv", "a", f"[v2:127.0.0.1:{mon}]", "--fsid", fsid, "monmap")
        self._run("ceph-mon", "-c", self.conf, "--mkfs", "-i", "a", "--monmap", "monmap", "--keyring", "keyring")
        self._spawn("ceph-mon", "-i", "a")
        ceph = ("/usr/bin/python3", shutil.which("ceph", path=self.env["PATH"]) or "ceph", "--connect-timeout", "60")
        self._run(*ceph, "osd", "new", osd)
        self._run(*ceph, "auth", "get-or-create", "osd.0", "mon", "allow profile osd", "osd", "allow *", "-o", "osd/keyring")
        self._run("ceph-osd", "-c", self.conf, "-i", "0", "--mkfs", "--osd-uuid", osd)
        self._spawn("ceph-osd", "-i", "0")
        self._run("radosgw-admin", "user", "create", "--uid=test", "--display-name=test", f"--access-key={KEY_ID}",
                  f"--secret-key={SECRET}")
        wait_for(self.port, self._spawn("radosgw", "-n", "client.admin"))

    def stop(self) -> None:
        for child in reversed(self.children):
            child.kill()
            child.wait()
        super().stop()


def environment(port: int, **more: str) -> dict[str, str]:
    """The environment to reach the server, without the user's own settings."""
    env = {k: v for k, v in os.environ.items() if not k.startswith(("AWS_", "AZURE_", "GS_", "LEAT_REMOTE"))}
    env.update(AWS_ACCESS_KEY_ID=KEY_ID, AWS_SECRET_ACCESS_KEY=SECRET, AWS_REGION="us-east-1",
               AWS_ENDPOINT_URL=f"http://127.0.0.1:{port}", AWS_CONFIG_FILE="/dev/null",
               AWS_SHARED_CREDENTIALS_FILE="/dev/null", AWS_EC2_METADATA_DISABLED="true",
               NO_PROXY="127.0.0.1", no_proxy="127.0.0.1", LEAT_REMOTE_STALL_S="1")
    env.update(more)
    return env


def signed(method: str, port: int, path: str, data: bytes = b"", query: str = "",
           headers: dict[str, str] | None = None) -> bytes:
    """One request, signed here and not by leat: an independent check of the signature."""
    now = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    payload = hashlib.sha256(data).hexdigest()
    host = f"127.0.0.1:{port}"
    path = urllib.parse.quote(path)
    sign = {"host": host, "x-amz-content-sha256": payload, "x-amz-date": now}
    names = ";".join(sorted(sign))
    lines = "".join(f"{k}:{sign[k]}\n" for k in sorted(sign))
    canonical = f"{method}\n{path}\n{query}\n{lines}\n{names}\n{payload}"
    scope = f"{now[:8]}/us-east-1/s3/aws4_request"
    text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(canonical.encode()).hexdigest()}"
    key = ("AWS4" + SECRET).encode()
    for part in (now[:8], "us-east-1", "s3", "aws4_request"):
        key = hmac.new(key, part.encode(), "sha256").digest()
    signature = hmac.new(key, text.encode(), "sha256").hexdigest()
    sign["Authorization"] = (f"AWS4-HMAC-SHA256 Credential={KEY_ID}/{scope}, SignedHeaders={names}, "
                             f"Signature={signature}")
    sign.update(headers or {})
    url = f"http://{host}{path}" + (f"?{query}" if query else "")
    request = urllib.request.Request(url, data=data if method in ("PUT", "POST") else None, method=method,
                                     headers=sign)
    with urllib.request.build_opener(urllib.request.ProxyHandler({})).open(request, timeout=30) as answer:
        return answer.read()


def put(port: int, key: str, data: bytes) -> None:
    signed("PUT", port, f"/{BUCKET}/{key}", data)


def make_bucket(port: int) -> None:
    for _ in range(100):
        try:
            signed("PUT", port, f"/{BUCKET}")
            put(port, "ready", b"yes")  # the volume server may start later
            return
        except (urllib.error.HTTPError, OSError):
            time.sleep(0.1)
    raise RuntimeError("the bucket cannot be made")


class Web:
    """Answers byte ranges of one file, with TLS if `tls` names a certificate with its key; 404 for any other name. Keeps
    the headers of all requests. With `region`, signatures for another region get the answer of Amazon."""

    def __init__(self, file: str, tls: str | None = None, region: str = "") -> None:
        data, name, seen = pathlib.Path(file).read_bytes(), os.path.basename(file), []

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_GET(self) -> None:
                seen.append(dict(self.headers))
                body, status = data, 200
                where = self.headers.get("Range")
                if self.path.split("?")[0].split("/")[-1] != name:
                    body, status, where = b"<Error><Code>NoSuchKey</Code></Error>", 404, None
                signed = self.headers.get("Authorization", "")
                if region and signed and f"/{region}/s3/" not in signed:
                    body, status, where = (f"<Error><Code>AuthorizationHeaderMalformed</Code><Region>{region}</Region>"
                                           "</Error>").encode(), 400, None
                first = 0
                if where:
                    low, high = where.removeprefix("bytes=").split("-")
                    first = int(low) if low else max(0, len(data) - int(high))
                    last = min(int(high), len(data) - 1) if low and high else len(data) - 1
                    body, status = data[first:last + 1], 206
                self.send_response(status)
                if where:
                    self.send_header("Content-Range", f"bytes {first}-{first + len(body) - 1}/{len(data)}")
                if status == 400:
                    self.send_header("x-amz-bucket-region" if self.command == "HEAD" else "x-other", region)
                self.send_header("ETag", '"1"')
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            do_HEAD = do_GET

            def log_message(self, *args: object) -> None:
                pass

        self.seen: list[dict[str, str]] = seen
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.handle_error = lambda *args: None  # type: ignore[method-assign]
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


def tag(data: bytes) -> str:
    return f'"{hashlib.md5(data).hexdigest()}"'


class Bucket:
    """An S3 in memory, whose writes take `delay` seconds before they count. Signatures are not checked. `seen` has
    (method, path with query, headers in lower case) of all requests. `before_write(path)` is called before an object appears."""

    def __init__(self, delay: float = 0) -> None:
        objects: dict[str, bytes] = {}
        parts: dict[str, dict[int, bytes]] = {}
        seen: list[tuple[str, str, dict[str, str]]] = []
        bucket = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self, status: int, body: bytes = b"", **headers: str) -> None:
                self.send_response(status)
                for name, value in {"ETag": '"e"', **headers}.items():
                    self.send_header(name.replace("_", "-"), value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command == "GET" and bucket.trickle(bucket.count("GET")):
                    for at in range(0, len(body), 10):
                        self.wfile.write(body[at:at + 10])
                        time.sleep(1)
                elif self.command != "HEAD":
                    self.wfile.write(body)

            def handle_one_request(self) -> None:
                with contextlib.suppress(ConnectionError):
                    super().handle_one_request()

            def do_GET(self) -> None:
                seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                path = self.path.partition("?")[0] if bucket.signed else self.path
                data, where = objects.get(path), self.headers.get("Range")
                if path == bucket.outage_key and bucket.fail_after > 0:
                    bucket.outage_gets += 1
                    if bucket.outage_gets == 2 and bucket.outage_ends:
                        bucket.outage_key = ""
                    elif bucket.outage_gets == 2:
                        bucket.fail_after = 0
                    self.answer(503, b"<Error><Code>SlowDown</Code></Error>")
                elif bucket.count("GET") > bucket.fail_after and (self.headers.get("If-Match") or not bucket.opens):
                    status, code = bucket.failure
                    self.answer(status, f"<Error><Code>{code}</Code></Error>".encode())
                elif where is None and self.command == "GET" and path in bucket.broken:
                    self.answer(500, b"<Error><Code>InternalError</Code></Error>")
                elif path in bucket.forbidden:
                    self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
                elif data is None and bucket.echo:
                    words = f"{self.path} {self.headers.get('x-amz-security-token')} {self.headers.get('Authorization')}"
                    words = words.replace("AWS4-HMAC-SHA256", "").replace("SignedHeaders=", "")  # 200 bytes are shown
                    self.answer(404, f"<Error><Code>NoSuchKey</Code><Message>{words.replace('&', '&amp;')}</Message></Error>".encode())
                elif data is None:
                    self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                elif where is None or self.command == "HEAD" or (where.startswith("bytes=-") and not bucket.suffixes):
                    self.answer(200, data, ETag=tag(data))
                else:
                    low, high = where.removeprefix("bytes=").split("-")
                    first = int(low) if low else max(0, len(data) - int(high))
                    last = min(int(high), len(data) - 1) if low and high else len(data) - 1
                    if any(first <= at <= last for at in bucket.unreadable.get(path, ())):
                        self.answer(500, b"<Error><Code>InternalError</Code></Error>")
                        return
                    first, last = max(0, first - bucket.shift), last - bucket.shift
                    body = bytearray(data[first:last + 1])
                    if bucket.flip(bucket.count("GET")):
                        body[len(body) // 2] ^= 1
                    self.answer(206, bytes(body), Content_Range=f"bytes {first}-{last}/{len(data)}", ETag=tag(data))

            do_HEAD = do_GET

            def closed(self) -> bool:
                """Whether the client hung up during the delay, as a real server would notice."""
                end = time.monotonic() + bucket.delay
                while time.monotonic() < end:
                    if select.select([self.connection], [], [], min(0.05, bucket.delay))[0]:
                        return True
                return False

            def do_PUT(self) -> None:
                seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                key, _, query = self.path.partition("?")
                values = dict(urllib.parse.parse_qsl(query, keep_blank_values=True))
                if self.closed():
                    self.close_connection = True
                elif bucket.fail_writes:
                    self.answer(500)
                elif "uploads" in values:
                    parts[key] = {}
                    self.answer(200, b"<R><UploadId>1</UploadId></R>")
                elif "partNumber" in values:
                    parts[key][int(values["partNumber"])] = body
                    self.answer(200)
                else:
                    time.sleep(bucket.hold)
                    bucket.before_write(key)
                    if bucket.conflicts > 0:
                        bucket.conflicts -= 1
                        self.answer(409, b"<Error><Code>ConditionalRequestConflict</Code></Error>")
                        return
                    match = self.headers.get("If-Match")
                    if match and key not in objects:
                        self.answer(404, b"<Error><Code>NoSuchKey</Code></Error>")
                        return
                    if (self.headers.get("If-None-Match") and key in objects) or \
                            (match and bucket.matches and match != tag(objects[key])):
                        self.answer(412)
                        return
                    if "uploadId" in values:
                        body = b"".join(data for _, data in sorted(parts.pop(key).items()))
                    objects[key] = body
                    if bucket.lost_answers > 0:
                        bucket.lost_answers -= 1
                        self.close_connection = True
                        return
                    self.answer(200, b"<CompleteMultipartUploadResult/>" if self.command == "POST" else b"")

            do_POST = do_PUT

            def do_DELETE(self) -> None:
                seen.append((self.command, self.path, {k.lower(): v for k, v in self.headers.items()}))
                if bucket.before_removal():
                    self.close_connection = True
                    return
                if bucket.forbid_removal:
                    self.answer(403, b"<Error><Code>AccessDenied</Code></Error>")
                    return
                (parts if "?" in self.path else objects).pop(self.path.partition("?")[0], None)
                self.answer(204)

            def log_message(self, *args: object) -> None:
                pass

        self.delay, self.objects, self.parts, self.seen = delay, objects, parts, seen
        self.hold = 0.0  # seconds before an object appears, even when the client hung up
        self.fail_after = 1 << 60  # later GETs are answered with `failure`
        self.failure = 500, "InternalError"
        self.opens = False  # except those that open an object, which carry no If-Match
        self.outage_key, self.outage_gets = "", 0  # the first GETs of this object fail, and after two of them all GETs,
        self.outage_ends = False  # or none
        self.unreadable: dict[str, set[int]] = {}  # bytes of objects: ranges that have one are answered with 500
        self.broken: set[str] = set()  # objects whose end can be read, but not the whole: that is answered with 500
        self.forbidden: set[str] = set()  # objects whose GET is answered with 403
        self.matches = True  # writes with If-Match are refused when the object has changed, else it is ignored
        self.forbid_removal = False  # DELETE is answered with 403
        self.fail_writes = False  # PUT and POST are answered with 500
        self.conflicts = 0  # this many objects are refused with 409 first: another write came between
        self.lost_answers = 0  # this many objects are stored without an answer: the connection closes
        self.suffixes = True  # ranges counted from the end are answered
        self.shift = 0  # bytes by which a range that is sent begins too early
        self.echo = False  # errors repeat the request
        self.signed = False  # URLs with a signature: the name ends before the query
        self.trickle: Callable[[int], bool] = lambda get: False  # True: the answer has 10 bytes a second
        self.flip: Callable[[int], bool] = lambda get: False  # True: one bit of the range is wrong
        self.before_write: Callable[[str], None] = lambda key: None
        self.before_removal: Callable[[], bool] = lambda: False  # True: no answer, and nothing is removed
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.port = self.server.server_port
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def count(self, method: str) -> int:
        return sum(1 for name, _, _ in self.seen if name == method)

    def stop(self) -> None:
        self.server.shutdown()
        self.server.server_close()


class Proxy:
    """A proxy between leat and a server. `faults` gives the probability of each fault for a GET: drop, reset, error
    (503), truncate (the connection closes), short (too few bytes with a matching length), wrong (a flipped byte),
    stall. `latency` is added to each answer, in seconds; `rate` limits the bytes per second of each connection,
    `up_rate` those sent to the server by all of them."""

    def __init__(self, upstream: int, seed: int = 1, latency: float = 0, rate: float = 0, up_rate: float = 0,
                 **faults: float):
        self.up_rate, self.up_lock, self.sent = up_rate, threading.Lock(), 0
        self.upstream, self.latency, self.rate, self.faults = upstream, latency, rate, faults
        self.random = random.Random(seed)
        self.method = "GET"  # whose answers are broken
        self.lock = threading.Lock()
        self.requests = self.gets = self.bytes = 0
        self.hits: dict[str, int] = {}
        self.connections = self.open = self.most = 0
        self.listener = socket.socket()
        self.listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.listener.bind(("127.0.0.1", 0))
        self.listener.listen(256)
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def stop(self) -> None:
        self.listener.close()

    def reset_counts(self) -> None:
        with self.lock:
            self.requests = self.gets = self.bytes = 0
            self.hits = {}

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _draw(self, method: str) -> str | None:
        with self.lock:
            self.requests += 1
            self.gets += method == "GET"
            if method != self.method:
                return None
            at = self.random.random()
            for name, share in self.faults.items():
                at -= share
                if at < 0:
                    self.hits[name] = self.hits.get(name, 0) + 1
                    return name
        return None

    @staticmethod
    def _head(stream) -> bytes:
        head = b""
        while not head.endswith(b"\r\n\r\n"):
            line = stream.readline()
            if not line:
                return b""
            head += line
        return head

    @staticmethod
    def _length(head: bytes) -> int:
        for line in head.split(b"\r\n")[1:]:
            if line.lower().startswith(b"content-length:"):
                return int(line.split(b":")[1])
        return 0

    def _serve(self, client: socket.socket) -> None:
        client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self.lock:
            self.connections += 1
        try:
            server = socket.create_connection(("127.0.0.1", self.upstream))
            server.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            up, down = server.makefile("rb"), client.makefile("rb")
            while True:
                head = self._head(down)
                if not head:
                    break
                method = head.split(b" ", 1)[0].decode()
                data = head + down.read(self._length(head))
                with self.up_lock:
                    self.sent += len(data)
                    if self.up_rate:
                        time.sleep(len(data) / self.up_rate)
                server.sendall(data)
                answer = self._head(up)
                if not answer:
                    break
                while answer.split(b" ")[1] == b"100":
                    client.sendall(answer)
                    answer = self._head(up)
                body = b"" if method == "HEAD" or answer.split(b" ")[1] in (b"204", b"304") else \
                    self._body(up, answer)
                if self.latency:
                    time.sleep(self.latency)
                if not self._answer(client, answer, body, self._draw(method)):
                    break
        except OSError:
            pass
        finally:
            client.close()
            server.close()

    def _body(self, up, answer: bytes) -> bytes:
        if b"transfer-encoding: chunked" not in answer.lower():
            return up.read(self._length(answer))
        body = b""
        while True:  # passed on unchanged
            size = up.readline()
            body += size
            body += up.read(int(size, 16) + 2)
            if int(size, 16) == 0:
                return body

    def _send(self, client: socket.socket, data: bytes) -> None:
        with self.lock:
            self.bytes += len(data)
        if not self.rate:
            client.sendall(data)
            return
        step = max(int(self.rate / 50), 1024)
        for at in range(0, len(data), step):
            client.sendall(data[at:at + step])
            time.sleep(len(data[at:at + step]) / self.rate)

    def _answer(self, client: socket.socket, head: bytes, body: bytes, fault: str | None) -> bool:
        part = self.random.randrange(len(body)) if body else 0
        if fault == "drop":
            return False
        if fault == "error":
            client.sendall(b"HTTP/1.1 503 Slow Down\r\nContent-Length: 36\r\n\r\n<Error><Code>SlowDown</Code></Error>")
            return True
        if fault in ("truncate", "reset", "stall"):
            self._send(client, head + body[:part])
            if fault == "stall":
                time.sleep(2.5)
            if fault == "reset":
                client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            return False
        if fault == "short" and len(body) > 1:
            lines = [b"Content-Length: %d" % part if l.lower().startswith(b"content-length:") else l
                     for l in head.split(b"\r\n")]
            self._send(client, b"\r\n".join(lines) + body[:part])
            return True
        if fault == "wrong" and body:
            body = body[:part] + bytes([body[part] ^ 1]) + body[part + 1:]
        self._send(client, head + body)
        return True
