"""Python programs of others with a share of a simulated GPU, in a container of an OCI runtime: as their authors publish them."""

import unittest

import cuda_python
import test_cdi
import test_guard
from test_guard import SHARE


class CudaPythonTest(test_guard.SharesTest):
    @classmethod
    def setUpClass(cls):
        cuda_python.packages()
        super().setUpClass()
        cls.image = test_cdi.make_image(cls.daemon.folder / "python", cls.daemon.probe, libraries_for=test_guard.LIBRARIES,
                                        files=cuda_python.files())

    def submit(self, role, fill, **how):
        volumes = [{"host_path": folder, "container_path": folder, "read_only": True} for folder in cuda_python.folders()]
        return self.daemon.submit(command=cuda_python.command(role, fill), env=cuda_python.environment(), image=self.image, volumes=volumes,
                                  gpu_share="8GiB", **how)

    def test_they_run_unchanged_and_a_full_share_is_their_own_exception(self):
        for role in ("bindings", "core", "numba", "tinygrad"):
            with self.subTest(role):
                said, status = self.run_to_end(role, 2 * SHARE << 20)
                self.assertEqual(status, 0, said)
                cuda_python.check_share(self, said, SHARE)


if __name__ == "__main__":
    unittest.main()
