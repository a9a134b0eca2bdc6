# SPDX-License-Identifier: Apache-2.0
"""Who may change something, and how it is served beyond the host: tokens, users of a Unix socket, TLS. Real clients
(curl, Python's ssl, openssl) against the server over a made-up daemon."""

import contextlib
import itertools
import json
import os
import re
import signal
import socket
import ssl
import subprocess

import pytest

from harness import config_text, free_port, lab, sections_for
from stub import GOOD, Answer, curl, read_all, read_one

CI, OPS = "c" * 32, "Ops-._~+/" * 8 + "=="
OUTSIDE = "0.0.0.0:0 127.0.0.1:0"  # the first is not loopback, wherever one comes from


def port(stub, index):
    return int(stub.addresses[index].rsplit(":", 1)[1])


def ask(stub, index, method, target, *headers):
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost", "Connection: close", *headers, "", ""]
    with socket.create_connection(("127.0.0.1", port(stub, index))) as s:
        s.settimeout(60)
        s.sendall("\r\n".join(lines).encode())
        return Answer(read_all(s))


def bearer(token):
    return f"Authorization: Bearer {token}"


@pytest.fixture
def tokens(tmp_path):
    path = tmp_path / "tokens"
    path.write_text(f"# who may start runs\n\nci {CI}\nops\t{OPS}\n")
    path.chmod(0o600)
    return path


# ---- tokens -----------------------------------------------------------------


def test_a_token_opens_an_outside_address(make, tokens):
    stub = make(listen=OUTSIDE, tokens=tokens)
    assert ask(stub, 0, "GET", "/status").status == 200
    for headers, code, challenge in (
        ([], "token_needed", 'Bearer realm="tierprobe"'),
        (["Authorization: Basic Y2k6Y2k="], "token_needed", 'Bearer realm="tierprobe"'),
        (["Authorization: Bearer"], "token_needed", 'Bearer realm="tierprobe"'),
        ([bearer("x" * 32)], "token_wrong", 'Bearer realm="tierprobe", error="invalid_token"'),
        ([bearer(CI[:-1])], "token_wrong", 'Bearer realm="tierprobe", error="invalid_token"'),
        ([bearer(CI + "c")], "token_wrong", 'Bearer realm="tierprobe", error="invalid_token"'),
        ([bearer("ci")], "token_wrong", 'Bearer realm="tierprobe", error="invalid_token"'),
        ([bearer("")], "token_needed", 'Bearer realm="tierprobe"'),
        ([bearer("y" * 20000)], "token_wrong", 'Bearer realm="tierprobe", error="invalid_token"'),
    ):
        answer = ask(stub, 0, "POST", "/run?target=logs", *headers)
        assert (answer.status, answer.code, answer.headers["www-authenticate"]) == (401, code, challenge), headers
    assert ask(stub, 0, "POST", "/run", bearer(CI), bearer(CI)).code == "bad_header"
    assert ask(stub, 0, "POST", "/run", bearer(CI), "Origin: http://evil.example").code == "foreign_origin"
    assert ask(stub, 0, "DELETE", "/runs/20261130T131405-000000").status == 401
    assert ask(stub, 0, "DELETE", "/runs/20261130T131405-000000", bearer(OPS)).code == "run_ended"
    assert ask(stub, 0, "POST", "/run?target=logs", f"authorization:  bearer  {OPS}").status == 202
    assert ask(stub, 0, "POST", "/run?target=cache", bearer(CI)).status == 202
    log = stub.close()
    assert "start logs by token ops, 127.0.0.1:" in log and "start cache by token ci, 127.0.0.1:" in log
    assert OPS not in log and CI not in log


def test_a_token_on_loopback_is_not_needed_but_must_be_right(make, tokens):
    stub = make(listen=OUTSIDE, tokens=tokens)
    assert ask(stub, 1, "POST", "/run?target=logs").status == 202
    assert ask(stub, 1, "POST", "/run?target=cache", bearer("x" * 32)).status == 401
    assert ask(stub, 1, "POST", "/run?target=cache", "Authorization: Basic Y2k6Y2k=").status == 202
    stub = make(listen=OUTSIDE)
    assert ask(stub, 0, "POST", "/run", bearer(CI)).code == "read_only_listener"
    assert ask(stub, 1, "POST", "/run", bearer(CI)).status == 202  # there are none to be wrong


def test_tokens_are_renewed(make, tokens):
    """A token that is taken away does not live on in a connection; a file that is wrong changes nothing."""
    stub = make(listen=OUTSIDE, tokens=tokens)

    def start(s, token):
        s.sendall(f"DELETE /runs/x HTTP/1.1\r\nHost: localhost\r\n{bearer(token)}\r\n\r\n".encode())
        return read_one(s).status

    with socket.create_connection(("127.0.0.1", port(stub, 0))) as s:
        assert start(s, CI) == 404 and start(s, "n" * 40) == 401
        tokens.write_text("new " + "n" * 40 + "\n")
        assert start(s, CI) == 404
        assert stub.command("renew") == "ok"
        assert start(s, CI) == 401 and start(s, "n" * 40) == 404
        tokens.write_text("new\n")
        assert "line 1: a token has 32 to 255" in stub.command("renew")
        assert start(s, "n" * 40) == 404
        tokens.unlink()
        assert "cannot be read: No such file" in stub.command("renew")
        assert start(s, "n" * 40) == 404


@pytest.mark.parametrize(
    "text, complaint",
    [
        ("", "there is no token in it"),
        ("# none\n\n", "there is no token in it"),
        ("ci\n", "line 1: a token has 32 to 255"),
        (f"ci {CI}\nci {OPS}\n", "line 2: the name or the token stands there twice"),
        (f"ci {CI}\nops {CI}\n", "line 2: the name or the token stands there twice"),
        (f"ci {CI} x\n", "line 1: there is something behind the token"),
        (f"c/i {CI}\n", "line 1: the name may have"),
        (f"ci\0 {CI}\n", "line 1: the name may have"),
        (f"ci {CI[1:]}\n", 'line 1: a token has 32 to 255 letters, digits and -._~+/=; "openssl rand -hex 32" makes one'),
        (f"ci {'c' * 256}\n", "line 1: a token has 32 to 255"),
        (f"ci {CI}ä\n", "line 1: a token has 32 to 255"),
        ("".join(f"n{i} {i:032}\n" for i in range(101)), "line 101: there are more than 100 tokens"),
    ],
)
def test_bad_token_files(make, tokens, text, complaint):
    tokens.write_text(text)
    error = make(tokens=tokens).error
    assert f"{tokens}: {complaint}" in error and CI[1:] not in error


def test_token_files_that_others_may_touch(make, tokens):
    for mode, complaint in ((0o604, "others may read or write it"), (0o602, "others may"), (0o660, "its group may write it")):
        tokens.chmod(mode)
        assert complaint in make(tokens=tokens).error
    tokens.chmod(0o640)
    assert make(tokens=tokens).error is None
    assert "not a regular file" in make(tokens=tokens.parent).error
    tokens.write_bytes(b"#" * (1 << 20) + b"\n")
    assert "larger than 1 MiB" in make(tokens=tokens).error
    os.mkfifo(tokens.parent / "fifo", 0o600)
    assert "not a regular file" in make(tokens=tokens.parent / "fifo").error
    assert "cannot be read" in make(tokens="/nonexistent/tokens").error


@pytest.mark.root
def test_a_token_file_of_another_user(make, tokens):
    os.chown(tokens, 65534, 65534)
    assert "belongs to another user" in make(tokens=tokens).error


def test_a_credential(make, tokens):
    """systemd's LoadCredential=token:FILE, with a token alone in it."""
    (tokens.parent / "token").write_text(CI + "\n")
    (tokens.parent / "token").chmod(0o400)
    stub = make(listen=OUTSIDE, credentials=tokens.parent)
    assert ask(stub, 0, "POST", "/run?target=logs", bearer(CI)).status == 202
    assert "by token line-1, 127.0.0.1:" in stub.close()
    assert ask(make(listen=OUTSIDE, credentials=tokens.parent / "state-0"), 0, "POST", "/run").code == "read_only_listener"


def test_wrong_tokens_by_the_thousand(make, tokens):
    """Each is answered, few are told of, and the right one works afterwards as before."""
    stub = make(listen=OUTSIDE, tokens=tokens)
    for _ in range(5):
        with socket.create_connection(("127.0.0.1", port(stub, 0))) as s:
            for i in range(900):
                s.sendall(f"POST /run HTTP/1.1\r\nHost: localhost\r\n{bearer(f'{i:032}')}\r\n\r\n".encode())
                assert read_one(s).status == 401
    assert ask(stub, 0, "POST", "/run", bearer(CI)).status == 202
    log = stub.close()
    assert 1 <= log.count("wrong token") <= 3 and "a wrong token came from 127.0.0.1:" in log


# ---- users of a Unix socket -------------------------------------------------


@pytest.mark.root
def test_users_of_a_unix_socket(make, tokens, tmp_path):
    tmp_path.chmod(0o755)
    for parent in itertools.takewhile(lambda it: it.name.startswith(("pytest-", "popen-", "test_")), tmp_path.parents):
        parent.chmod(0o755)
    path = tmp_path / "s"
    stub = make(listen=f"unix:{path}", tokens=tokens)

    def status(method, target, *arguments, **who):
        done = subprocess.run(
            ["curl", "-sS", "-o", "/dev/null", "-w", "%{http_code}", "--unix-socket", path, "-X", method, *arguments,
             f"http://localhost{target}"], capture_output=True, text=True, timeout=60, cwd="/", **who)
        return done.stdout

    stranger = {"user": 65534, "group": 65534, "extra_groups": []}
    assert status("POST", "/run?target=cache") == "202"  # root
    assert status("GET", "/status", **stranger) == "000"  # the mode does not let it in
    path.chmod(0o666)
    assert status("GET", "/status", **stranger) == "200"
    assert status("POST", "/run?target=logs", **stranger) == "403"
    assert status("DELETE", "/runs/x", **stranger) == "403"
    assert status("DELETE", "/runs/x", "-H", bearer(CI), **stranger) == "404"
    assert status("DELETE", "/runs/x", "-H", bearer(OPS[:-3]), **stranger) == "401"
    os.chown(path, 0, 4242)
    assert status("DELETE", "/runs/x", user=65534, group=65534, extra_groups=[4242]) == "404"
    assert status("DELETE", "/runs/x", user=65534, group=4242, extra_groups=[]) == "404"
    path.chmod(0o606)  # a group without the right has none
    assert status("DELETE", "/runs/x", user=65533, group=65533, extra_groups=[]) == "403"
    assert "start cache by uid 0 pid " in stub.close()


# ---- TLS --------------------------------------------------------------------


def openssl(*arguments, cwd):
    subprocess.run(["openssl", *map(str, arguments)], cwd=cwd, check=True, stdin=subprocess.DEVNULL,
                   stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=60)


def issue(folder, name="server", days=30, subject="localhost"):
    """A self-signed certificate for localhost and its key."""
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", days,
            "-keyout", f"{name}.key", "-out", f"{name}.pem", "-subj", f"/CN={subject}",
            "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1", cwd=folder)
    (folder / f"{name}.key").chmod(0o600)
    return folder / f"{name}.pem", folder / f"{name}.key"


def issue_between(folder, name, start, end):
    """The same with dates of its own."""
    issue(folder, name)
    openssl("req", "-new", "-key", f"{name}.key", "-out", f"{name}.csr", "-subj", "/CN=localhost", cwd=folder)
    (folder / "index.txt").write_text("")
    (folder / "ca.conf").write_text(
        "[ca]\ndefault_ca = it\n[it]\ndatabase = index.txt\nrand_serial = yes\nnew_certs_dir = .\ndefault_md = sha256\n"
        "policy = any\n[any]\ncommonName = supplied\n")
    openssl("ca", "-batch", "-notext", "-config", "ca.conf", "-selfsign", "-keyfile", f"{name}.key", "-in", f"{name}.csr",
            "-out", f"{name}.pem", "-startdate", start, "-enddate", end, cwd=folder)
    return folder / f"{name}.pem", folder / f"{name}.key"


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    return issue(tmp_path_factory.mktemp("tls"))


def context(cert, version=None):
    it = ssl.create_default_context(cafile=cert)
    if version:
        it.minimum_version = it.maximum_version = version
    return it


def tls(stub, cert, version=None, index=0):
    s = socket.create_connection(("127.0.0.1", port(stub, index)))
    s.settimeout(60)
    return context(cert, version).wrap_socket(s, server_hostname="localhost")


def test_tls(make, pair, tokens, tmp_path):
    stub = make(listen=f"{OUTSIDE} unix:{tmp_path}/s", cert=pair[0], key=pair[1], tokens=tokens)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with tls(stub, pair[0], version) as s:
            for _ in range(3):
                s.sendall(GOOD.encode())
                assert read_one(s).status == 200
            s.sendall(f"POST /run HTTP/1.1\r\nHost: localhost\r\n{bearer(CI)}\r\n\r\n".encode())
            assert read_one(s).status in (202, 409)
    with tls(stub, pair[0], index=1) as s:
        s.sendall(GOOD.encode())
        assert read_one(s).status == 200
    assert curl("--unix-socket", f"{tmp_path}/s", "http://localhost/healthz").stdout.startswith("{")
    done = subprocess.run(["curl", "-sS", "--cacert", pair[0], f"https://localhost:{port(stub, 0)}/status"],
                          capture_output=True, text=True, timeout=60)
    certificate = json.loads(done.stdout)["service"]["certificate"]
    assert certificate["days_left"] in (29, 30) and certificate["expires_at"].endswith("Z")
    assert json.loads(ask(make(), 0, "GET", "/status").body)["service"]["certificate"] is None


def test_what_is_not_tls_enough(make, pair):
    stub = make(listen=OUTSIDE, cert=pair[0], key=pair[1])
    for option in ("-tls1", "-tls1_1"):
        done = subprocess.run(
            ["openssl", "s_client", option, "-cipher", "ALL:@SECLEVEL=0", "-connect", f"127.0.0.1:{port(stub, 0)}"],
            stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)
        assert done.returncode != 0 and "BEGIN CERTIFICATE" not in done.stdout
    with socket.create_connection(("127.0.0.1", port(stub, 0))) as s:
        s.settimeout(60)
        s.sendall(GOOD.encode())
        assert b"200 OK" not in read_all(s)
    with tls(stub, pair[0]) as s:
        s.sendall(GOOD.encode())
        assert read_one(s).status == 200


def test_a_certificate_is_renewed(make, tmp_path):
    """On reload, and nobody loses the connection that has the old one."""
    cert, key = issue(tmp_path, subject="first")
    old = cert.parent / "old.pem"
    old.write_bytes(cert.read_bytes())
    stub = make(listen=OUTSIDE, cert=cert, key=key)

    def alive(s):
        s.sendall(GOOD.encode())
        return read_one(s).status == 200

    with tls(stub, old) as first, socket.create_connection(("127.0.0.1", port(stub, 0))) as between:
        assert alive(first)
        issue(tmp_path, subject="second")
        assert stub.command("renew") == "ok"
        assert alive(first)
        with tls(stub, cert) as second:
            assert alive(second)
            assert first.getpeercert()["subject"] != second.getpeercert()["subject"]
        between.settimeout(60)  # connected before, handshake after
        with context(old).wrap_socket(between, server_hostname="localhost") as s:
            assert alive(s) and alive(first)
        for _ in range(20):
            assert stub.command("renew") == "ok"
        assert alive(first)
        cert.write_text("nonsense")
        assert f"{cert}: no certificate in PEM form" in stub.command("renew")
        assert alive(first)
    with pytest.raises(ssl.SSLError):
        tls(stub, old)


def test_certificates_that_will_not_do(make, tmp_path, pair):
    other = issue(tmp_path, "other")
    past = issue_between(tmp_path, "past", "20200101000000Z", "20200201000000Z")
    future = issue_between(tmp_path, "future", "20900101000000Z", "20910101000000Z")
    encrypted = tmp_path / "encrypted.key"
    openssl("ec", "-in", pair[1], "-aes128", "-passout", "pass:x", "-out", encrypted, cwd=tmp_path)
    encrypted.chmod(0o600)
    empty = tmp_path / "empty"
    empty.touch(0o600)
    open_key = tmp_path / "open.key"
    open_key.write_bytes(pair[1].read_bytes())
    open_key.chmod(0o644)

    def error(cert, key, listen=OUTSIDE):
        env = {"listen": listen}
        if cert:
            env["cert"] = cert
        if key:
            env["key"] = key
        return make(**env).error

    assert "are not a pair" in error(pair[0], other[1])
    assert "has expired at 2020-02-01T00:00:00" in error(*past)
    assert "not valid before 2090-01-01T00:00:00" in error(*future)
    assert "cannot be read: No such file" in error(tmp_path / "none", pair[1])
    assert "cannot be read: No such file" in error(pair[0], tmp_path / "none")
    assert "no certificate in PEM form" in error(empty, pair[1])
    assert "no private key in PEM form without a password" in error(pair[0], empty)
    assert "no private key in PEM form without a password" in error(pair[0], encrypted)
    assert "others may read or write it" in error(pair[0], open_key)
    assert "go together" in error(pair[0], None)
    assert "go together" in error(None, pair[1])
    assert "has no effect" in error(*pair, listen=f"unix:{tmp_path}/s")


def test_handshakes_that_stop(make, pair):
    """In the middle, at the start, with nonsense: the next client is served, and the end is clean."""
    stub = make(listen=OUTSIDE, cert=pair[0], key=pair[1])
    outgoing = ssl.MemoryBIO()
    half = context(pair[0]).wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname="localhost")
    with contextlib.suppress(ssl.SSLWantReadError):
        half.do_handshake()
    hello = outgoing.read()
    stopped = []
    for i in range(200):
        s = socket.create_connection(("127.0.0.1", port(stub, 0)))
        s.sendall((hello[: len(hello) // 2], hello, b"", b"\x16\x03\x01\xff\xff" + b"x" * 300)[i % 4])
        stopped.append(s)
        if i % 20 == 19:
            with tls(stub, pair[0]) as s:
                s.sendall(GOOD.encode())
                assert read_one(s).status == 200
    assert stub.sockets() < 100
    for s in stopped:
        s.close()


def test_renegotiation_is_no_way_in(make, pair):
    """Asked for by the hundred, on connections of TLS 1.2: each costs a handshake at most, and the next client is served."""
    stub = make(listen=OUTSIDE, cert=pair[0], key=pair[1])
    for _ in range(10):
        done = subprocess.run(["openssl", "s_client", "-tls1_2", "-legacy_renegotiation", "-connect", f"127.0.0.1:{port(stub, 0)}"],
                              input="R\n" * 100, capture_output=True, text=True, timeout=60)
        assert "RENEGOTIATING" in done.stdout + done.stderr
        assert (done.stdout + done.stderr).count("verify return") <= 8
        with tls(stub, pair[0]) as s:
            s.sendall(GOOD.encode())
            assert read_one(s).status == 200
    lab.wait_for("their connections to go", lambda: stub.sockets() < 20)


def test_tls_and_a_long_answer(make, pair):
    stub = make(listen=OUTSIDE, cert=pair[0], key=pair[1], records=12000, capacity=20000)
    done = subprocess.run(
        ["curl", "-sS", "--cacert", pair[0], f"https://localhost:{port(stub, 0)}/history?target=cache&limit=10000"],
        capture_output=True, text=True, timeout=120)
    assert [s["seq"] for s in json.loads(done.stdout)["samples"]] == list(range(2001, 12001))
    with tls(stub, pair[0]) as s:  # one that reads nothing
        s.sendall(b"GET /history?target=cache&limit=10000 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        with tls(stub, pair[0]) as other:
            other.sendall(GOOD.encode())
            assert read_one(other).status == 200


# ---- the daemon -------------------------------------------------------------


def test_the_daemon_reads_them_again(daemon, tokens, tmp_path, place, tierprobed):
    """On reload, with a configuration that names them; one that does not hold changes nothing."""
    cert, key = issue(tmp_path)
    at = free_port()
    sections = sections_for(place, http={"token_file": tokens, "tls_cert": cert, "tls_key": key})
    sections["http"]["listen"] = [f"0.0.0.0:{at}", f"unix:{tmp_path}/socket"]
    it = daemon(sections=sections, here=tmp_path, listen=f"unix:{tmp_path}/socket")
    assert it.status["service"]["certificate"]["days_left"] in (29, 30)

    def abort(token, cafile=cert):
        done = subprocess.run(["curl", "-sS", "--cacert", cafile, "-o", "/dev/null", "-w", "%{http_code}", "-X", "DELETE",
                               "-H", bearer(token), f"https://localhost:{at}/runs/none"],
                              capture_output=True, text=True, timeout=60)
        return done.stdout

    def reload():
        before = len(re.findall("reloaded|stays as it was", it.stderr))
        it.process.send_signal(signal.SIGHUP)
        lab.wait_for("the end of the reload", lambda: len(re.findall("reloaded|stays as it was", it.stderr)) > before, 60)

    assert abort(CI) == "404" and abort("n" * 40) == "401"
    tokens.write_text("new " + "n" * 40 + "\n")
    issue(tmp_path)
    reload()
    assert abort("n" * 40) == "404" and abort(CI) == "401"
    tokens.chmod(0o644)
    reload()
    assert f"{tokens}: others may read or write it" in it.stderr
    assert abort("n" * 40) == "404"
    config = tmp_path / "tierprobed.conf"
    checked = tierprobed("--config", config, "--check-config")
    assert checked.returncode == 78 and f"{tokens}: others may read or write it" in checked.stderr
    tokens.chmod(0o600)
    assert tierprobed("--config", config, "--check-config").returncode == 0
    sections["http"] = {"listen": f"unix:{tmp_path}/socket", "tls_cert": cert, "tls_key": key}
    config.write_text(config_text(sections))
    assert "tls_cert has no effect" in tierprobed("--config", config, "--check-config").stderr
    sections["http"]["listen"] = [f"0.0.0.0:{at}", f"unix:{tmp_path}/socket"]
    config.write_text(config_text(sections))
    reload()  # without tokens
    assert abort("n" * 40) == "403"
