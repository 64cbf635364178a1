# SPDX-License-Identifier: Apache-2.0
"""Builds the libraries and programs of the wheel with configure and make.

pip calls this through hatchling (pyproject.toml).  It needs what ./quickstart needs to
build Tandem.  TANDEM_WHEEL_EXTRA names a directory whose files are added to the package
(python/make-wheel).  To build for another machine, TANDEM_WHEEL_CONFIGURE has more
arguments of configure, and TANDEM_WHEEL_PLATFORM is the platform of the wheel's tag
(docs/packaging.md).
"""

import os
import pathlib
import shlex
import shutil
import subprocess
import sysconfig
import tempfile

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = "onnxruntime_ep_tandem"
# Where libtandem looks for plugins after its own directory, and for the caches of all
# users: as in Debian's packages.
CONFIGURE = ["--prefix=/usr", "--libdir=/usr/lib", "--localstatedir=/var",
             "--disable-static"]
# Each program and library finds libtandem next to itself, wherever the package is.
LDFLAGS = "-s -Wl,-rpath,'$$ORIGIN/../lib' " + os.environ.get("LDFLAGS", "")


def call(command, directory):
    try:
        subprocess.run(command, cwd=directory, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(f"onnxruntime-ep-tandem: {error}; docs/start.md lists the "
                         "packages that the build needs") from None


def build(source, directory):
    """Builds the source, and returns the directory with the installed files."""
    if not (source / "configure").is_file():
        call(["autoreconf", "-fi"], source)
    more = shlex.split(os.environ.get("TANDEM_WHEEL_CONFIGURE", ""))
    call([source / "configure", *CONFIGURE, "CFLAGS=-O2",
          f"LDFLAGS={LDFLAGS}", *more], directory)
    call(["make", f"-j{len(os.sched_getaffinity(0))}"], directory)
    call(["make", "install", f"DESTDIR={directory / 'stage'}"], directory)
    return directory / "stage" / "usr"


def package_files(installed):
    """Returns the files of the package as pairs: the file, and its path in it."""
    for program in "cl-probe", "tandem-conformance":
        yield installed / "bin" / program, f"bin/{program}"
    yield (installed / "lib/libtandem.so.0").resolve(), "lib/libtandem.so.0"
    for file in sorted((installed / "lib/tandem").rglob("*")):
        if file.is_file():
            yield file, file.relative_to(installed)


class NativeBuildHook(BuildHookInterface):
    def initialize(self, version, build_data):
        if version == "editable":
            raise SystemExit("onnxruntime-ep-tandem: an editable installation has no "
                             "libraries; use pip install .")
        self.temporary = tempfile.mkdtemp(prefix="tandem-wheel-")
        try:
            installed = build(pathlib.Path(self.root), pathlib.Path(self.temporary))
        except BaseException:
            shutil.rmtree(self.temporary, ignore_errors=True)
            raise
        files = list(package_files(installed))
        if "TANDEM_WHEEL_EXTRA" in os.environ:
            extra = pathlib.Path(os.environ["TANDEM_WHEEL_EXTRA"])
            files += [(file, file.relative_to(extra))
                      for file in sorted(extra.rglob("*")) if file.is_file()]
        build_data["force_include"].update(
            (str(file), f"{PACKAGE}/{path}") for file, path in files)
        platform = os.environ.get("TANDEM_WHEEL_PLATFORM") or sysconfig.get_platform()
        platform = platform.replace("-", "_").replace(".", "_")
        build_data["tag"] = f"py3-none-{platform}"
        build_data["pure_python"] = False

    def finalize(self, version, build_data, artifact_path):
        shutil.rmtree(self.temporary, ignore_errors=True)
