# SPDX-License-Identifier: Apache-2.0
"""Tandem's execution provider for ONNX Runtime.

    import onnxruntime as ort
    import onnxruntime_ep_tandem as tandem

    ort.register_execution_provider_library("tandem", tandem.get_library_path())
    devices = [d for d in ort.get_ep_devices() if d.ep_name == tandem.get_ep_name()]
    options = ort.SessionOptions()
    options.add_provider_for_devices(devices, {})
    session = ort.InferenceSession("model.onnx", options)

`python -m onnxruntime_ep_tandem --help` lists the commands.
"""

from .files import choose_openblas_kernels as _choose_openblas_kernels
from .files import provider_library as _provider_library
from .files import use_opencl_loader as _use_opencl_loader

__all__ = ["get_ep_name", "get_ep_names", "get_library_path"]


def get_library_path():
    """Returns the absolute path of the provider library.

    If the system has no OpenCL loader, loads the one of this package, so that the
    provider finds it.  Loads the package's OpenBLAS with the kernels that suit the
    processor, unless OPENBLAS_CORETYPE names others.  For this, it sets this variable
    for a moment.
    """
    _use_opencl_loader()
    _choose_openblas_kernels(child=False)
    return str(_provider_library())


def get_ep_name():
    """Returns the name of the execution provider."""
    return "TandemExecutionProvider"


def get_ep_names():
    """Returns the names of all execution providers of the library."""
    return [get_ep_name()]
