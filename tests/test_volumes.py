"""Folders and files of the machine in a task's container."""

import pathlib

import drover


class VolumeTest(drover.DaemonTest):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.image = drover.make_probe_image(cls.daemon.folder / "image", cls.daemon.probe)
        cls.data = cls.daemon.folder / "data"
        (cls.data / "private").mkdir(parents=True)
        (cls.data / "private/secret").write_text("secret")
        (cls.data / "private").chmod(0o700)
        (cls.data / "file").write_text("from the machine")
        (cls.data / "open").mkdir()
        (cls.data / "open").chmod(0o777)

    def run_with(self, volume, script, uid=None):
        task = self.daemon.submit(command=["/bin/sh", "-c", script], volumes=[volume], uid=uid)
        return task, self.daemon.wait_until_final(task)

    def test_a_user_writes_where_he_may(self):
        volume = {"container_path": "out", "host_path": str(self.data / "open")}
        task, record = self.run_with(volume, "echo made > out/made", uid=drover.NOBODY)
        self.assertEqual(record["state"], "finished", record)
        self.assertEqual((self.data / "open/made").stat().st_uid, drover.NOBODY)

    def test_read_only_is_respected(self):
        volume = {"container_path": "data", "host_path": str(self.data), "read_only": True}
        task, record = self.run_with(volume, "cat data/file; touch data/new")
        self.assertEqual((record["state"], self.daemon.output(task)), ("failed", "from the machine"))
        self.assertIn("Read-only file system", self.daemon.output(task, "stderr"))

    def test_the_command_line_brings_folders_files_and_ports(self):
        program = self.daemon.folder / "tool.sh"
        program.write_text("echo fetched")
        ran = self.daemon.cli("run", "--volume", f"{self.data}:data:ro", "--volume", f"{self.data}/open:out",
                              "--fetch", program, "--", "/bin/sh", "-c",
                              "cat data/file; sh tool.sh; echo made > out/by-flag; echo x > data/new")
        self.assertEqual(ran.out, "from the machinefetched\n", ran)
        self.assertIn("Read-only file system", ran.err)
        self.assertTrue((self.data / "open/by-flag").exists())
        ran = self.daemon.cli("run", "--detach", "--publish", "8080", "--", self.daemon.probe, "serve", "8080", "hello")
        task = ran.out.strip()
        self.addCleanup(self.daemon.stop_task, task, force=True)
        (record,) = [record for record in self.daemon.tasks() if record["task"]["id"] == task]
        self.assertEqual(record["task"]["network"]["mode"], "bridge")
        self.assertEqual(record["task"]["network"]["ports"][0]["container_port"], 8080)
        wrong = self.daemon.cli("run", "--network", "none", "--", "true")
        self.assertIn("--network", wrong.err)

    def test_a_private_folder_of_somebody_else_is_refused(self):
        for path in ("private", "private/secret"):
            volume = {"container_path": "x", "host_path": str(self.data / path), "read_only": True}
            task, record = self.run_with(volume, "cat x x/*", uid=drover.NOBODY)
            self.assertEqual(record["state"], "failed", record)
            self.assertIn("cannot reach it", record["reason"])
            self.assertEqual(self.daemon.output(task, uid=drover.NOBODY), "")
            self.assertEqual(self.run_with(volume, "test -e x")[1]["state"], "finished", "root may")

    def test_the_daemons_folder_is_refused(self):
        for path in (self.daemon.state, self.daemon.state / "tasks", self.daemon.folder, pathlib.Path("/")):
            _, record = self.run_with({"container_path": "x", "host_path": str(path)}, "true")
            self.assertIn("Drover keeps its own files", record["reason"])

    def test_nothing_covers_what_isolation_rests_on(self):
        for path in ("/dev", "/proc/self", "/sys", "/", "."):
            _, record = self.run_with({"container_path": path, "host_path": str(self.data)}, "true")
            self.assertEqual(record["state"], "failed", path)
            self.assertIn("cannot be mounted", record["reason"])

    def test_an_image_has_them_anywhere(self):
        task = self.daemon.submit(command=["/probe", "say", "hello"], image=self.image,
                                  volumes=[{"container_path": "/srv/deep/data", "host_path": str(self.data)}])
        self.assertEqual(self.daemon.wait_until_final(task)["state"], "finished")
