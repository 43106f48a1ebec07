"""Somebody sets the machine's clock: time limits go on as they were, and times that people see follow it.

The clock of the machine stays as it is: the daemon is told another time by a library that is loaded before the others.
"""

import os
import pathlib
import subprocess
import unittest

import drover

LIBRARY = r"""
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

/* As many seconds as the file says lie between this clock and the machine's. */
int clock_gettime(clockid_t clock, struct timespec* time) {
  const int failed = syscall(SYS_clock_gettime, clock, time);
  const char* path = getenv("DROVER_TEST_CLOCK");
  FILE* file = clock == CLOCK_REALTIME && path ? fopen(path, "re") : NULL;
  long seconds = 0;
  if (file) {
    if (fscanf(file, "%ld", &seconds) == 1) time->tv_sec += seconds;
    fclose(file);
  }
  return failed;
}
"""


class ClockTest(unittest.TestCase):
    def setUp(self):
        if os.geteuid() != 0:
            self.skipTest("needs root: containers, devices and mounts are made for real")
        if drover.is_sanitized():
            self.skipTest("a sanitizer wants to be loaded first")
        self.daemon = drover.Daemon("k40m")
        self.addCleanup(lambda: self.assertEqual(self.daemon.close(), []))
        library, self.clock = self.daemon.folder / "clock.so", self.daemon.folder / "clock"
        source = pathlib.Path(self.daemon.folder, "clock.c")
        source.write_text(LIBRARY)
        subprocess.run(["clang-19", "-shared", "-fPIC", "-O1", "-o", library, source], check=True)
        self.daemon.environment |= {"LD_PRELOAD": str(library), "DROVER_TEST_CLOCK": str(self.clock)}
        self.set_clock(0)
        self.daemon.start()

    def set_clock(self, hours):
        new = self.clock.with_suffix(".new")
        new.write_text(str(hours * 3600))
        new.rename(self.clock)

    def running(self, **fields):
        task = self.daemon.submit("say", "begun", ",", "sleep", 600, **fields)
        self.daemon.wait_for_output(task, "begun")
        return self.daemon.wait_until_running(task)["task"]["id"]

    def look(self):
        """After this the daemon has looked at what is due: an end makes it, and a start."""
        self.daemon.kill()
        self.daemon.start()

    def test_the_clock_is_set_while_a_task_has_a_time_limit(self):
        limited = self.running(timeout="1h")
        for hours in (2, -48, 24 * 30):
            with self.subTest(hours=hours):
                self.set_clock(hours)
                self.look()
                after = self.daemon.wait_until_running(self.running())
                self.assertEqual(self.daemon.task(limited)["state"], "running")
                self.assertNotEqual(after["submitted_at"][:10], self.daemon.task(limited)["submitted_at"][:10] if hours != 2 else "",
                                    "what people see follows the clock")

    def test_the_clock_is_set_back_and_time_is_up_all_the_same(self):
        limited = self.running(timeout="5s")
        self.set_clock(-48)
        self.look()
        record = self.daemon.wait_until_final(limited)
        self.assertEqual((record["state"], record["timed_out"]), ("failed", True), record)

    def test_what_ended_is_not_forgotten_because_the_clock_was_set(self):
        ended = self.daemon.submit("write", "result", "precious")
        self.daemon.wait_until_final(ended)
        self.set_clock(24 * 30)
        self.look()
        self.running()
        self.assertEqual(self.daemon.file(ended, "result").strip(), "precious")

    def test_a_boot_in_between_goes_by_the_clock(self):
        """What is kept of another boot does not count."""
        limited = self.running(timeout="1h")
        self.daemon.stop()
        (self.daemon.state / "timeline").write_text("another-boot 5\n")
        self.set_clock(2)
        self.daemon.start()
        record = self.daemon.wait_until_final(limited)
        self.assertEqual((record["state"], record["timed_out"]), ("failed", True), record)


if __name__ == "__main__":
    unittest.main()
