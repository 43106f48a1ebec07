"""A libcurl of the machine that knows fewer options than ours."""

import subprocess
import unittest

import drover
import registries


class OldLibcurlTest(unittest.TestCase):
    """Where the machine's libcurl does not know an option, nothing is got without what the option is for."""

    OPTIONS = {"PROTOCOLS_STR": 10318, "REDIR_PROTOCOLS_STR": 10319, "FOLLOWLOCATION": 52, "MAXREDIRS": 68, "CONNECTTIMEOUT": 78,
               "TIMEOUT": 13, "LOW_SPEED_TIME": 20, "MAXFILESIZE_LARGE": 30117, "XFERINFOFUNCTION": 20219}

    def test_an_option_that_it_does_not_know_is_said(self):
        libraries = [line.split()[-1] for line in drover.run(["/sbin/ldconfig", "-p"]).out.splitlines() if "libcurl.so.4" in line]
        if not libraries:
            self.skipTest("the machine has no libcurl")
        daemon = drover.Daemon("k40m")
        self.addCleanup(lambda: self.assertEqual(daemon.close(), []))
        unknown = daemon.folder / "unknown"
        unknown.write_text("")
        folder = daemon.folder / "lib"
        folder.mkdir()
        subprocess.run(["clang-19", "-shared", "-fPIC", f'-DREAL_LIBCURL="{libraries[0]}"', "-o", folder / "libcurl.so.4",
                        drover.ROOT / "tests/old_libcurl.c"], check=True)
        daemon.environment.update(LD_LIBRARY_PATH=str(folder), OLD_LIBCURL_UNKNOWN=str(unknown))
        daemon.start()
        registry = registries.ScriptedRegistry()
        self.addCleanup(registry.close)
        name = registry.tag("team/tool:1", registry.images.image([registries.make_tar({"file": b"content"})]))
        for option, number in self.OPTIONS.items():
            with self.subTest(option=option):
                unknown.write_text(f"{number}\n")
                ran = daemon.cli("image", "pull", name)
                self.assertNotEqual(ran.status, 0, ran)
                self.assertIn(f"libcurl does not take its option {option}: An unknown option was passed in to libcurl", ran.err)
        self.assertEqual(registry.requests, [])
        unknown.write_text("")
        self.assertEqual(daemon.cli("image", "pull", name).status, 0)


if __name__ == "__main__":
    unittest.main()
