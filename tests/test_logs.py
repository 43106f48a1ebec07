"""What tasks wrote, with its times and in the order in which both outputs were written."""

import datetime
import re
import subprocess
import unittest

import drover
import test_docker

# A line is written when the one before is there: whoever reads both outputs late cannot know which was first.
SAY = r"""
say() {
  if [ $1 = stderr ]; then echo "$2" >&2; else echo "$2"; fi
  until grep -qx "$2" "$MESOS_SANDBOX/$1"; do sleep 0.01; done
}
"""
ALTERNATING = SAY + "for i in 1 2 3 4; do say stdout out$i; say stderr err$i; done"
OUT, ERR = ("".join(f"{name}{i}\n" for i in range(1, 5)) for name in ("out", "err"))
MERGED = "".join(f"out{i}\nerr{i}\n" for i in range(1, 5))
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z"


def now():
    return datetime.datetime.now(datetime.timezone.utc)


def written(time):
    return time.strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


def both(daemon, *words):
    """What `drover logs` writes to standard output and standard error, as a terminal shows them."""
    ran = subprocess.run(daemon.cli_command("--socket", daemon.socket, "logs", *words), stdin=subprocess.DEVNULL,
                         stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=drover.PATIENCE, text=True)
    if ran.returncode != 0:
        raise AssertionError(ran.stdout)
    return ran.stdout


class LogsTest(drover.DaemonTest):
    def submit(self, script, **fields):
        return self.daemon.submit(command=["/bin/sh", "-c", script], **fields)

    def ended(self, script, **fields):
        task = self.submit(script, **fields)
        self.daemon.wait_until_final(task)
        return task

    def both(self, *words):
        return both(self.daemon, *words)

    def test_both_outputs_come_in_the_order_in_which_they_were_written(self):
        task = self.ended(ALTERNATING)
        self.assertEqual(self.both(task), MERGED)
        self.assertEqual(self.both("-f", task), MERGED)
        apart = self.daemon.cli("logs", task)
        self.assertEqual((apart.out, apart.err), (OUT, ERR))
        self.assertEqual(self.both("--stderr", task), apart.err)
        self.assertEqual(self.both("--tail", "3", task), "err3\nout4\nerr4\n")
        self.assertEqual(self.both("-n", "3", "-f", task), "err3\nout4\nerr4\n")
        for name, text in (("stdout", apart.out), ("stderr", apart.err)):  # as they ever were
            self.assertEqual((self.daemon.state / "tasks" / task / "sandbox" / name).read_text(), text)

    def test_times_stand_in_front_of_lines(self):
        before = now()
        task = self.ended("echo one; sleep 1.2; printf 'two\\nthree' >&2")
        lines = self.both("-t", task).split("\n")
        found = [re.fullmatch(f"({TIME}) (.*)", line) for line in lines]
        self.assertEqual([match and match[2] for match in found], ["one", "two", "three"])
        times = [datetime.datetime.fromisoformat(match[1].replace("Z", "+00:00")) for match in found]
        self.assertLess(before - datetime.timedelta(seconds=1), times[0])
        self.assertLessEqual(datetime.timedelta(seconds=1), times[1] - times[0])
        self.assertLess(times[2], now() + datetime.timedelta(seconds=1))
        self.assertEqual(self.both("--timestamps", "-f", task).split("\n"), lines)
        raw = self.daemon.request("GET", f"/v1/tasks/{task}/logs?stream=stderr&timestamps=true")
        self.assertEqual((raw[1]["Content-Type"], raw[2].decode().split("\n")), ("text/plain; charset=utf-8", lines[1:]))

    def test_begins_with_what_was_written_since(self):
        task = self.ended("echo old; echo old >&2; sleep 1.5; echo new >&2; echo new")
        times = [line.split()[0] for line in self.both("-t", task).splitlines()]
        self.assertEqual(len(times), 4)
        self.assertEqual(self.both("--since", times[2], task), "new\nnew\n")
        self.assertEqual(self.both("--since", times[2], "-f", "--stdout", task), "new\n")
        self.assertEqual(self.both("--since", times[2], "--tail", "1", task), "new\n")
        self.assertEqual(self.both("--since", "1h", task), "old\nold\nnew\nnew\n")
        self.assertEqual(self.both("--since", written(now() + datetime.timedelta(hours=1)), task), "")
        self.assertEqual(self.both("--since-time", times[2], task), "new\nnew\n")  # kubectl's
        status, _, data = self.daemon.request("GET", f"/v1/tasks/{task}/logs?stream=both&since=3600")
        self.assertEqual((status, data.count(b"old"), data.count(b"new"), data.count(b"event: end")), (200, 2, 2, 0))
        refused = self.daemon.cli("logs", "--since", "yesteryear", task)
        self.assertEqual(refused.status, 64)
        self.assertIn("--since: 'yesteryear' is neither a time nor so long ago", refused.err)
        with self.assertRaises(drover.ApiError) as caught:
            self.daemon.api("GET", f"/v1/tasks/{task}/logs?since=yesteryear")
        self.assertEqual(caught.exception.error["path"], "?since")

    def test_what_comes_live_comes_in_order_over_a_crash_of_the_daemon(self):
        task = self.submit(SAY + "i=0; while [ $i -lt 100 ]; do say stdout out$i; say stderr err$i; i=$((i+1)); done")
        following = subprocess.Popen(self.daemon.cli_command("--socket", self.daemon.socket, "logs", "-f", task),
                                     stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        lines = [following.stdout.readline() for _ in range(10)]
        self.daemon.kill()
        self.daemon.start()
        lines += following.stdout
        following.stdout.close()
        self.assertEqual(following.wait(), 0)
        wanted = [f"{name}{i}\n" for i in range(100) for name in ("out", "err")]
        self.assertEqual([line for line in lines if not line.startswith("drover:")], wanted)
        self.assertEqual(self.both(task), "".join(wanted))

    def test_a_task_without_a_record_is_told_one_output_after_the_other(self):
        task = self.ended(ALTERNATING)
        for record in (self.daemon.state / "tasks" / task).glob("output.record*"):
            record.unlink()
        apart = OUT + ERR
        self.assertEqual(self.both(task), apart)
        self.assertEqual(self.both("-t", task), re.sub("(?m)^(?=.)", "- ", apart))
        refused = self.daemon.cli("logs", "--since", "1h", task)
        self.assertNotEqual(refused.status, 0)
        self.assertIn("It is not known when this task wrote its output", refused.err)

    def test_rotated_files_are_told_in_order(self):
        script = SAY + "i=0; while [ $i -lt 60 ]; do head -c 999999 /dev/zero | tr '\\0' a; echo; say stdout .$i; say stderr err$i; i=$((i+1)); done"
        task = self.ended(script)
        sandbox = self.daemon.state / "tasks" / task / "sandbox"
        self.assertTrue((sandbox / "stdout.2").exists())
        lines = self.both(task).splitlines()
        kept = sum(line.startswith("aaa") for line in lines)
        self.assertLess(kept, 60)
        # The oldest of stdout went; what is there of it stands before its line of stderr.
        self.assertEqual([line[:6] for line in lines[-3 * kept:]],
                         [word for i in range(60 - kept, 60) for word in ("aaaaaa", f".{i}", f"err{i}")])
        self.assertNotIn("- ", self.both("-t", "--stderr", task))

    def test_a_terminal_has_times_too(self):
        task = self.daemon.submit(command=["/bin/sh", "-c", "echo a; echo b >&2"], tty=True)
        self.daemon.wait_until_final(task)
        self.assertRegex(self.both("-t", task).replace("\r", ""), f"^{TIME} a\n{TIME} b\n$")


class DockerTest(test_docker.DockerDaemonTest):
    def test_an_engine_s_task_is_told_in_order_with_times(self):
        task = self.submit("say", "one", ",", "sleep", 1, ",", "complain", "two", ",", "sleep", 1, ",", "say", "three")
        self.daemon.wait_until_final(task)
        lines = both(self.daemon, "-t", task).splitlines()
        self.assertEqual([re.sub(f"^{TIME} ", "", line) for line in lines], ["one", "two", "three"])
        self.assertEqual(both(self.daemon, "--since", lines[1].split()[0], task), "two\nthree\n")


class SeveralTest(drover.DaemonTest):
    def test_each_member_of_a_gang_is_told_in_order(self):
        ran = self.daemon.cli("run", "--gang", "2", "--detach", "--", "/bin/sh", "-c", ALTERNATING)
        self.assertEqual(ran.status, 0, ran)
        for record in self.daemon.tasks():
            self.daemon.wait_until_final(record["task"]["id"])
        gang = self.daemon.tasks()[0]["task"]["gang"]["id"]
        shown = both(self.daemon, "-t", gang)
        self.assertEqual(re.sub(TIME + " ", "", shown),
                         "".join(re.sub("(?m)^(?=.)", f"[{rank}] ", MERGED) for rank in (0, 1)))
        tail = both(self.daemon, "-n", "1", gang)
        self.assertEqual(tail, "[0] err4\n[1] err4\n")

    def test_the_run_before(self):
        for number in (1, 2, 3):
            self.daemon.api("POST", "/v1/scheduler/iso8601", {"name": "nightly", "schedule": "R0//P1D", "shell": True,
                                                            "command": f"echo run {number}", "mem": 64, "cpus": 0.1, "owner": "root"})
            ran = self.daemon.cli("job", "run", "nightly")
            self.assertEqual(ran.status, 0, ran)

            def is_there():
                return self.daemon.cli("logs", "nightly").out == f"run {number}\n"

            drover.wait_for(is_there, f"run {number}")
            newest = self.daemon.tasks()[-1]["task"]["id"]
            self.daemon.wait_until_final(newest)
        self.assertEqual(self.daemon.cli("logs", "-p", "nightly").out, "run 2\n")
        second = self.daemon.tasks()[-2]["task"]["id"]
        self.assertEqual(self.daemon.cli("logs", "--previous", second).out, "run 1\n")
        first = self.daemon.tasks()[-3]["task"]["id"]
        none = self.daemon.cli("logs", "--previous", first)
        self.assertEqual(none.status, 66, none)
        task = self.daemon.submit("say", "x")
        self.daemon.wait_until_final(task)
        refused = self.daemon.cli("logs", "-p", task)
        self.assertNotEqual(refused.status, 0)
        self.assertIn("is no instance of an app and no run of a job", refused.err)

    def test_the_instance_before(self):
        self.daemon.api("POST", "/v2/apps", {"id": "/web", "cmd": "cat /proc/sys/kernel/random/uuid; exec sleep 100000", "cpus": 0.1, "mem": 64})

        def running():
            return [record["task"]["id"] for record in self.daemon.tasks()
                    if record["state"] == "running" and record["task"]["origin"].get("name") == "/web"]

        first = drover.wait_for(running, "an instance")[0]
        said = drover.wait_for(lambda: self.daemon.output(first), "its output")
        self.assertEqual(self.daemon.cli("logs", "--previous", "web").status, 66)
        self.daemon.stop_task(first, force=True)
        second = drover.wait_for(lambda: [task for task in running() if task != first], "another instance")[0]
        says = drover.wait_for(lambda: self.daemon.output(second), "its output")
        self.assertNotEqual(said, says)
        self.assertEqual(self.daemon.cli("logs", "web").out, says)
        self.assertEqual(self.daemon.cli("logs", "-p", "web").out, said)
        self.daemon.remove_definitions()


if __name__ == "__main__":
    unittest.main()
