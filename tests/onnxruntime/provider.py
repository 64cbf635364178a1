# SPDX-License-Identifier: Apache-2.0
"""Opens ONNX Runtime sessions that use Tandem's execution provider.

The environment variable TANDEM_ONNXRUNTIME_PROVIDER holds the path of the
provider library (tandem-onnxruntime.so).  The library finds its compute plugins
through TANDEM_PLUGIN_PATH.

The functions are not safe for concurrent first calls: call `register` before
you start threads.
"""

import os
import sys

import numpy
import onnx
import onnxruntime

PROVIDER = 'TandemExecutionProvider'
LIBRARY_VARIABLE = 'TANDEM_ONNXRUNTIME_PROVIDER'
REGISTRATION = 'tandem'
RECORD_ASSIGNMENT = {'session.record_ep_graph_assignment_info': '1'}

_devices = []


def register():
    """Registers the provider library once.

    Returns the devices of ONNX Runtime that stand for the provider.  Exits with
    a message if the environment names no library.
    """
    if _devices:
        return list(_devices)
    library = os.environ.get(LIBRARY_VARIABLE)
    if not library:
        sys.exit('set %s to the path of tandem-onnxruntime.so' %
                 LIBRARY_VARIABLE)
    onnxruntime.register_execution_provider_library(
        REGISTRATION, os.path.abspath(library))
    _devices.extend(device for device in onnxruntime.get_ep_devices()
                    if device.ep_name == PROVIDER)
    if not _devices:
        sys.exit('%s offers no device of %s' % (library, PROVIDER))
    return list(_devices)


def _serialized(model):
    if isinstance(model, onnx.ModelProto):
        return model.SerializeToString()
    return model


def session_options(optimize=True, log_level=4, config=None):
    """Returns session options that print only fatal errors.

    optimize: False disables all of ONNX Runtime's graph optimizations.
    log_level: 0 prints everything, 4 only fatal errors.
    config: a dictionary of session configuration entries.
    """
    options = onnxruntime.SessionOptions()
    options.log_severity_level = log_level
    if not optimize:
        options.graph_optimization_level = (
            onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL)
    for key, value in (config or {}).items():
        options.add_session_config_entry(key, value)
    return options


def _inference_session(model, options, **arguments):
    # enable_fallback=0: the Python class otherwise repeats a run that fails
    # with the CPU provider.
    return onnxruntime.InferenceSession(_serialized(model), options,
                                        enable_fallback=0, **arguments)


def session(model, device, *, fallback=False, optimize=True, log_level=4,
            config=None, devices=None, others=(), **options):
    """Makes a session that runs a model with the provider.

    model: a ModelProto, its serialized bytes, or a path.
    device: the provider's option "device": auto, cpu or opencl:N.
    fallback: True lets ONNX Runtime's CPU provider run the nodes that the
        provider declines.  By default such a node is an error.
    optimize, log_level, config: see session_options.
    devices: devices of another registration of the provider.
    others: devices of other providers.
    options: further options of the provider.  The default of `claim` is "all"
        and that of `first_run` is "wait", because with "cpu" a first run would
        not use the device that is tested.
    """
    settings = {'device': device, 'claim': 'all', 'first_run': 'wait'}
    settings.update((name, str(value)) for name, value in options.items())
    result = session_options(optimize, log_level, config)
    result.add_provider_for_devices(
        register() if devices is None else devices, settings)
    if others:
        result.add_provider_for_devices(others, {})
    if not fallback:
        result.add_session_config_entry('session.disable_cpu_ep_fallback', '1')
    return _inference_session(model, result)


def cpu_session(model, *, optimize=False, log_level=4, config=None):
    """Makes a session of ONNX Runtime's own CPU provider, the reference.

    By default it runs the model as it is, without graph optimizations.
    """
    return _inference_session(
        model, session_options(optimize, log_level, config),
        providers=['CPUExecutionProvider'])


def taken_nodes(session):
    """Returns the number of nodes that the provider took, after ONNX Runtime's
    optimizations, or None if it is unknown.

    ONNX Runtime tells it from version 1.24 on, if `config` is
    RECORD_ASSIGNMENT.
    """
    if not hasattr(session, 'get_provider_graph_assignment_info'):
        return None
    return sum(len(subgraph.get_nodes())
               for subgraph in session.get_provider_graph_assignment_info()
               if subgraph.ep_name == PROVIDER)


def numpy_dtype(element_type):
    """Returns the numpy dtype of an ONNX element type (TensorProto.FLOAT...)."""
    return numpy.dtype(onnx.helper.tensor_dtype_to_np_dtype(element_type))


def element_type(dtype):
    """Returns the ONNX element type of a numpy dtype."""
    return onnx.helper.np_dtype_to_tensor_dtype(numpy.dtype(dtype))


def add_device_argument(parser):
    """Adds the option --device to an argparse parser."""
    parser.add_argument('--device', default='cpu', metavar='DEVICE',
                        help='cpu (the default), opencl:N or auto')


def version():
    """Returns the version of ONNX Runtime as (major, minor)."""
    major, minor = onnxruntime.__version__.split('.')[:2]
    return int(major), int(minor)


def versions():
    """Returns a text that names the versions of ONNX Runtime and ONNX."""
    return 'onnxruntime %s, onnx %s' % (onnxruntime.__version__,
                                        onnx.__version__)
