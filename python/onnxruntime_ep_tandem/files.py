# SPDX-License-Identifier: Apache-2.0
"""Finds the libraries and programs of Tandem.

A wheel contains them.  Without them, for example in a source tree, the environment
variable TANDEM_ONNXRUNTIME_PROVIDER names the provider library; otherwise the installed
library is used, which pkg-config finds, and the program cl-probe in PATH.
"""

import ctypes
import os
import pathlib
import platform
import re
import shutil
import subprocess

_PACKAGE = pathlib.Path(__file__).resolve().parent
_OPENCL_LOADER = _PACKAGE / "lib" / "opencl-loader" / "libOpenCL.so.1"
_COPIED_LIBRARIES = _PACKAGE.parent / "onnxruntime_ep_tandem.libs"  # by auditwheel

_OPENBLAS_VARIABLE = "OPENBLAS_CORETYPE"
# OpenBLAS's kernels, and the flags in /proc/cpuinfo of processors that can run them;
# the fastest first.
_OPENBLAS_KERNELS = {
    "SkylakeX": {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"},
    "Haswell": {"avx2", "fma"},
}


def _installed_library():
    command = ["pkg-config", "--variable=onnxruntime_provider", "tandem"]
    if shutil.which(command[0]):
        output = subprocess.run(command, capture_output=True, text=True, check=False)
        return output.stdout.strip()
    return ""


def provider_library():
    """Returns the path of the provider library."""
    path = _PACKAGE / "lib" / "tandem" / "tandem-onnxruntime.so"
    if not path.is_file():
        other = os.environ.get("TANDEM_ONNXRUNTIME_PROVIDER") or _installed_library()
        path = pathlib.Path(other or path).absolute()
    if not path.is_file():
        raise FileNotFoundError(
            f"the library {path} was not found; install the package "
            "onnxruntime-ep-tandem again, set TANDEM_ONNXRUNTIME_PROVIDER, or add the "
            "directory of tandem.pc to PKG_CONFIG_PATH")
    return path


def cl_probe():
    """Returns the path of the program cl-probe."""
    path = _PACKAGE / "bin" / "cl-probe"
    if path.is_file():
        return path
    found = shutil.which("cl-probe")
    if found is None:
        raise FileNotFoundError(f"{path} was not found, nor cl-probe in PATH; install "
                                "the package onnxruntime-ep-tandem again")
    return pathlib.Path(found)


def use_opencl_loader():
    """Loads the package's OpenCL loader if the system has none.

    The driver of a GPU often comes without a loader.  A library that is loaded later
    and needs libOpenCL.so.1 gets the one that is loaded; child processes find it by
    LD_LIBRARY_PATH.
    """
    if not _OPENCL_LOADER.is_file():
        return
    try:
        ctypes.CDLL("libOpenCL.so.1")
    except OSError:
        ctypes.CDLL(str(_OPENCL_LOADER))
        paths = [os.environ.get("LD_LIBRARY_PATH"), str(_OPENCL_LOADER.parent)]
        os.environ["LD_LIBRARY_PATH"] = ":".join(filter(None, paths))


def _openblas_kernels():
    """Returns the kernels that suit the processor, or None if OpenBLAS should choose."""
    if platform.machine() != "x86_64" or _OPENBLAS_VARIABLE in os.environ:
        return None
    try:
        text = pathlib.Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        return None
    found = re.search("^flags.*", text, re.MULTILINE)
    flags = set(found[0].split()) if found else set()
    return next((name for name, needed in _OPENBLAS_KERNELS.items()
                 if needed <= flags), None)


def choose_openblas_kernels(child):
    """Makes the package's OpenBLAS use the kernels that suit the processor.

    On a processor that is newer than it, OpenBLAS uses kernels for SSE, which multiply
    about seven times slower.  It reads the name of better ones from the environment when
    it is loaded.  child: leave the name there for a child process; otherwise OpenBLAS is
    loaded now, and the environment is then as before.
    """
    libraries = list(_COPIED_LIBRARIES.glob("libopenblas*.so*"))
    kernels = _openblas_kernels()
    if not libraries or kernels is None:
        return
    os.environ[_OPENBLAS_VARIABLE] = kernels
    if child:
        return
    try:
        ctypes.CDLL(str(libraries[0]))
    except OSError:
        pass  # Registering the provider reports it.
    del os.environ[_OPENBLAS_VARIABLE]
