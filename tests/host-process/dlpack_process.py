# SPDX-License-Identifier: Apache-2.0
"""Shares memory between Tandem and other libraries by DLPack.

Usage: dlpack_process.py LIBTANDEM

For NumPy, and PyTorch if it is there, with the struct of DLPack 1 and the
legacy one where the library knows them.
"""
import ctypes
import gc
import sys

import numpy

TANDEM_F32 = 0x0220
FOREVER = ctypes.c_uint64(2**64 - 1)
P = ctypes.c_void_p

tandem = ctypes.CDLL(sys.argv[1])
tandem.tandem_last_error.restype = ctypes.c_char_p
api = ctypes.pythonapi
api.PyCapsule_GetPointer.restype = P
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [P, ctypes.c_char_p, P]
api.PyCapsule_IsValid.argtypes = [ctypes.py_object, ctypes.c_char_p]

NAMES = {True: b"dltensor_versioned", False: b"dltensor"}
# Capsules keep the pointers to their names.
USED = {True: b"used_dltensor_versioned", False: b"used_dltensor"}


def ok(status):
    """Ends the program if a call failed."""
    if status != 0:
        sys.exit("status %d: %s" % (status, tandem.tandem_last_error().decode()))


def suffix(versioned):
    """Returns the end of a function's name."""
    return "" if versioned else "_legacy"


def capsule_of(array, versioned):
    """Returns the array's capsule, or None if it has none of this kind."""
    try:
        capsule = array.__dlpack__(max_version=(1, 1)) if versioned else array.__dlpack__()
    except TypeError:
        return None
    return capsule if api.PyCapsule_IsValid(capsule, NAMES[versioned]) else None


def tensor_of(context, capsule, versioned):
    """Makes a tensor that owns the capsule's content."""
    tensor = P()
    managed = P(api.PyCapsule_GetPointer(capsule, NAMES[versioned]))
    ok(getattr(tandem, "tandem_tensor_from_dlpack" + suffix(versioned))(
        context, managed, ctypes.byref(tensor)))
    api.PyCapsule_SetName(capsule, USED[versioned])
    return tensor


class Exported:
    """A tensor as libraries expect it: with __dlpack__."""

    def __init__(self, tensor, versioned):
        self.capsule = None
        self.versioned = versioned
        managed = P()
        ok(getattr(tandem, "tandem_tensor_to_dlpack" + suffix(versioned))(
            tensor, FOREVER, ctypes.byref(managed)))
        self.capsule = api.PyCapsule_New(managed, NAMES[versioned], None)

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return (1, 0)


def shared(context, library, array, address, versioned):
    """Negates an array in place in both directions; the memory is the same.

    Returns False if the library does not know the struct.
    """
    capsule = capsule_of(array, versioned)
    if capsule is None:
        return False
    before = sys.getrefcount(array)
    tensor = tensor_of(context, capsule, versioned)
    del capsule
    result = P()
    shape = (ctypes.c_int64 * 2)(3, 4)
    ok(tandem.tandem_tensor_create(context, TANDEM_F32, 2, shape, ctypes.byref(result)))
    neg = tandem.tandem_op_by_name(b"neg")
    identity = ctypes.cast(neg + ctypes.sizeof(ctypes.c_size_t),
                           ctypes.POINTER(ctypes.c_uint32))[0]
    ok(tandem.tandem_unary(context, identity, tensor, result))
    memory = P()
    ok(tandem.tandem_tensor_host_data(tensor, FOREVER, ctypes.byref(memory)))
    assert memory.value == address(array), "the memory was copied"
    # The other direction: the array outlives the tensor.
    exported = Exported(result, versioned)
    ok(tandem.tandem_tensor_host_data(result, FOREVER, ctypes.byref(memory)))
    back = library.from_dlpack(exported)
    assert address(back) == memory.value, "the result was copied"
    try:
        library.from_dlpack(exported)
        raise AssertionError("a capsule was consumed twice")
    except (RuntimeError, ValueError, TypeError, BufferError):
        pass
    tandem.tandem_tensor_destroy(result)
    tandem.tandem_tensor_destroy(tensor)
    gc.collect()
    assert sys.getrefcount(array) <= before, "the array is still in use"
    assert (numpy.asarray(back) == -numpy.arange(12).reshape(3, 4)).all()
    return back


tandem.tandem_op_by_name.restype = P
tandem.tandem_tensor_destroy.argtypes = [P]
libraries = [("NumPy", numpy, lambda array: array.ctypes.data,
              numpy.arange(12, dtype=numpy.float32).reshape(3, 4))]
try:
    import torch
    libraries.append(("PyTorch", torch, lambda array: array.data_ptr(),
                      torch.arange(12, dtype=torch.float32).reshape(3, 4)))
except ImportError:
    pass
for name, library, address, array in libraries:
    for versioned in (False, True):
        context = P()
        ok(tandem.tandem_context_create(None, ctypes.byref(context)))
        kept = shared(context, library, array, address, versioned)
        tandem.tandem_context_destroy(context)
        if kept is False:
            print("%s %s has no %s" % (name, library.__version__,
                                       NAMES[versioned].decode()))
            continue
        # The array outlives the context.
        assert float(kept[2][3]) == -11
        del kept
        gc.collect()
        print("%s %s: %s" % (name, library.__version__, NAMES[versioned].decode()))
