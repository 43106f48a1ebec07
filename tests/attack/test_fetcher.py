"""Files that a task fetches: where they come from, where they go, and what an archive brings."""

import contextlib
import http.server
import io
import os
import tarfile
import threading
import zipfile

import drover
import raw_tar
from attack import attack


class Redirects(http.server.BaseHTTPRequestHandler):
    """Sends whoever comes to what the path names."""

    def do_GET(self):
        self.send_response(302)
        self.send_header("Location", self.path[1:].replace("~", ":"))
        self.end_headers()

    def log_message(self, *_):
        pass


class FetcherTest(attack.AttackTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Redirects)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.addClassCleanup(cls.server.server_close)
        cls.addClassCleanup(cls.server.shutdown)
        cls.canary = attack.make_folder(cls.ground / "canary", 0o700)
        attack.make_file(cls.canary / "secret", "of the machine\n", 0o600)

    def fetch(self, *files, script="find . -type f ! -name std* | sort | while read f; do echo $f; cat $f; done", **fields):
        """Runs mallory's task with these files; returns its record and output. Nothing of others changes."""
        with self.unchanged(self.canary, self.victim.home):
            record, output, _ = self.attempt(self.mallory, ["/bin/sh", "-c", script], fetch=list(files), **fields)
        return record, output

    def assert_nothing_brought(self, uri, **fields):
        record, output = self.fetch({"uri": uri, **fields})
        self.assert_refused(record, "etch")
        self.assertEqual(output, "")

    def test_files_that_mallory_may_not_read(self):
        attack.make_file(self.victim.home / "key", "victim's\n", 0o600, self.victim.uid)
        for path in (self.victim.home / "key", self.victim.home / "project/notes.txt", self.canary / "secret", "/etc/shadow",
                     self.daemon.state / "state.db"):
            with self.subTest(path=path):
                self.assert_nothing_brought(f"file://{path}")

    def test_what_the_fetcher_itself_holds(self):
        """It is a child of the daemon: its descriptors, its variables and its memory are not for its user."""
        names = [*(f"fd/{number}" for number in range(12)), "environ", "mem", "cwd/state.db", "root/etc/shadow", "exe", "auxv"]
        places = [f"/proc/{process}/{name}" for name in names for process in ("self", "thread-self", self.daemon.process.pid)]
        tasks = {place: self.submit(self.mallory, ["/bin/cat", "got"], fetch=[{"uri": f"file://{place}", "output_file": "got"}])
                 for place in places}
        for place, task in tasks.items():
            with self.subTest(place=place):
                record = self.daemon.wait_until_final(task)
                self.assertEqual(self.daemon.output(task), "", record)

    def test_servers_that_send_it_elsewhere(self):
        port = self.server.server_address[1]
        for target in ("file~///etc/shadow", f"file~//{self.canary}/secret", "file~///etc/passwd", "gopher~//127.0.0.1/x", "dict~//127.0.0.1/x",
                       "ftp~//127.0.0.1/x", "scp~//127.0.0.1/x", "smb~//x/y", f"http~//127.0.0.1~{port}/http~//127.0.0.1~{port}/loop"):
            with self.subTest(target=target):
                self.assert_nothing_brought(f"http://127.0.0.1:{port}/{target}", output_file="got")

    def test_places_outside_of_the_sandbox(self):
        source = attack.make_file(self.mallory.home / "source", "mine\n", 0o644, self.mallory.uid)
        for place in ("../up", "a/../../up", str(self.canary / "x"), "..", ".", "/", "", "a\0b", "x/" * 3000 + "x", "stdout"):
            with self.subTest(place=place[:20]), self.unchanged(self.canary):
                with contextlib.suppress(drover.ApiError):
                    record, _ = self.fetch({"uri": f"file://{source}", "output_file": place})
                    if place:
                        self.assert_refused(record)

    def archive(self, name, *entries):
        path = self.mallory.home / name
        path.write_bytes(raw_tar.tar(*entries))
        os.chown(path, self.mallory.uid, self.mallory.uid)
        return {"uri": f"file://{path}"}

    def test_archives_that_lead_out(self):
        entry, link, hard = raw_tar.entry, raw_tar.symlink, raw_tar.hard_link
        out = str(self.canary)
        cases = {"climbs": [entry("../../../up", content=b"x")], "absolute": [entry(f"{out}/x", content=b"x")],
                 "through a link": [link("l", out), entry("l/x", content=b"x")],
                 "through two links": [link("a", ".."), link("b", "a/.."), entry("b/x", content=b"x")],
                 "over a link": [link("x", f"{out}/secret"), entry("x", content=b"x")],
                 "hard link": [hard("h", "/etc/shadow")], "hard link through a link": [link("l", "/etc"), hard("h", "l/shadow")],
                 "hard link to a link": [link("l", f"{out}/secret"), hard("h", "l"), entry("h", content=b"x")],
                 "folder over a link": [link("l", out), raw_tar.folder("l", 0o777), entry("l/x", content=b"x")],
                 "device": [entry("d", raw_tar.CHARACTER_DEVICE, device=(1, 3))], "fifo": [entry("f", raw_tar.FIFO)],
                 "output": [link("stdout", f"{out}/secret")]}
        for name, entries in cases.items():
            with self.subTest(archive=name):
                _, output = self.fetch(self.archive(f"{name.replace(' ', '-')}.tar", *entries))
                self.assertNotIn("of the machine", output)
                self.assertNotIn("root:", output)

    def test_programs_with_the_rights_of_their_owner(self):
        record, output = self.fetch(self.archive("setuid.tar", raw_tar.entry("s", content=b"x", mode=0o6755, owner=b"0000000")),
                                    script="stat -c '%A %u' s")
        self.assertEqual(output, f"-rwxr-xr-x {self.mallory.uid}\n", record)

    def test_a_file_through_a_link_that_an_archive_brought(self):
        source = attack.make_file(self.mallory.home / "source", "mine\n", 0o644, self.mallory.uid)
        for target in (str(self.canary), "/etc", "../.."):
            with self.subTest(target=target):
                self.fetch(self.archive("links.tar", raw_tar.symlink("l", target)), {"uri": f"file://{source}", "output_file": "l/evil"})
        self.assertFalse(os.path.lexists("/etc/evil"))

    def test_zips_that_lead_out(self):
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.writestr("../../../../up", b"x")
            archive.writestr(f"{self.canary}/x", b"x")
        path = self.mallory.home / "evil.zip"
        path.write_bytes(packed.getvalue())
        self.fetch({"uri": f"file://{path}"})
        self.assertEqual([found for found in self.daemon.state.rglob("up")], [])

    def test_what_never_ends(self):
        os.mkfifo(self.mallory.home / "pipe")
        for path in (self.mallory.home / "pipe", "/dev/zero", "/dev/tty", "/proc/kmsg", "/dev/random"):
            with self.subTest(path=path):
                self.assert_nothing_brought(f"file://{path}", output_file="got")

    def test_an_archive_that_grows_without_measure(self):
        path = self.mallory.home / "bomb.tar.gz"
        with tarfile.open(path, "w:gz", compresslevel=9) as archive:
            member = tarfile.TarInfo("zeros")
            member.size = 4 << 30
            archive.fileobj.write(member.tobuf())
            for _ in range(64):  # far more than the allowance, far less than it says
                archive.fileobj.write(bytes(16 << 20))
        self.assert_nothing_brought(f"file://{path}")
