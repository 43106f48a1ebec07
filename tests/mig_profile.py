"""A simulated machine whose GPUs are, by number: 0 and 1 two V100, 2 and 3 two A100 in MIG mode."""

import pathlib
import shutil
import tempfile

import drover


def made_for(test):
    """Its file, which is there as long as the class of tests."""
    folder = pathlib.Path(tempfile.mkdtemp(prefix="drover-test-"))
    test.addClassCleanup(shutil.rmtree, folder)
    text = (drover.ROOT / "sim/profiles/mixed.yaml").read_text()
    profile = folder / "mig.yaml"
    profile.write_text(text.replace('"pci0000:ae"]}', '"pci0000:ae"], mig: true}')
                       .replace('bridges: ["pci0000:d7"]}', 'bridges: ["pci0000:d7"], mig: true}'))
    return str(profile)
