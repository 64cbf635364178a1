# SPDX-License-Identifier: Apache-2.0
"""Tandem in a process that has NumPy, whose BLAS may be the very library that
the CPU plugin uses: results of both stay right, the number of its threads
stays what the process made it, and the process ends well.

    numpy_process.py LIBTANDEM ORDER

ORDER is "numpy" or "tandem": what is loaded first."""

import ctypes
import sys

SIDE = 192
FOREVER = ctypes.c_uint64(-1).value
F32 = 0x0220


class Options(ctypes.Structure):
    _fields_ = [
        ("struct_size", ctypes.c_size_t),
        ("plugin_path", ctypes.c_char_p),
        ("profile_path", ctypes.c_char_p),
        ("device", ctypes.c_char_p),
        ("open_keys", ctypes.POINTER(ctypes.c_char_p)),
        ("open_values", ctypes.POINTER(ctypes.c_char_p)),
        ("open_count", ctypes.c_uint32),
        ("deterministic", ctypes.c_uint32),
        ("log_level", ctypes.c_uint32),
        ("measure", ctypes.c_uint32),
        ("log", ctypes.c_void_p),
        ("log_user", ctypes.c_void_p),
        ("hang_timeout_ms", ctypes.c_uint32),
        ("reserved", ctypes.c_uint32),
    ]


def ok(tandem, status):
    if status != 0:
        tandem.tandem_last_error.restype = ctypes.c_char_p
        sys.exit("tandem: " + tandem.tandem_last_error().decode())


def tandem_open(path, threads):
    """The library and a context on the CPU, with so many threads."""
    tandem = ctypes.CDLL(path)
    context = ctypes.c_void_p()
    options = Options(struct_size=ctypes.sizeof(Options), device=b"cpu")
    if threads is not None:
        options.open_keys = (ctypes.c_char_p * 1)(b"num_threads")
        options.open_values = (ctypes.c_char_p * 1)(b"%d" % threads)
        options.open_count = 1
    ok(tandem, tandem.tandem_context_create(ctypes.byref(options),
                                            ctypes.byref(context)))
    return tandem, context


def wrap(tandem, context, array):
    shape = (ctypes.c_int64 * 2)(*array.shape)
    tensor = ctypes.c_void_p()
    ok(tandem, tandem.tandem_tensor_wrap(
        context, ctypes.c_void_p(array.ctypes.data), F32, 2, shape, None, 0,
        ctypes.byref(tensor)))
    return tensor


def product(tandem, context, numpy, a, b):
    c = numpy.zeros((a.shape[0], b.shape[1]), numpy.float32)
    tensors = [wrap(tandem, context, x) for x in (a, b, c)]
    ok(tandem, tandem.tandem_matmul(context, None, *tensors))
    ok(tandem, tandem.tandem_tensor_sync(tensors[2],
                                         ctypes.c_uint64(FOREVER)))
    for tensor in tensors:
        tandem.tandem_tensor_destroy(tensor)
    return c


def blas_threads():
    """What each OpenBLAS of the process says, NumPy's own among them, whose
    names have a prefix and an end; None where there is none."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "openblas" in line}
    counts = []
    for path in sorted(paths):
        library = ctypes.CDLL(path)
        for name in ("openblas_get_num_threads",
                     "scipy_openblas_get_num_threads64_",
                     "scipy_openblas_get_num_threads"):
            if hasattr(library, name):
                counts.append(getattr(library, name)())
                break
        else:
            sys.exit(path + " does not tell its number of threads")
    return counts or None


def near(numpy, x, y):
    return numpy.allclose(x, y, rtol=1e-4, atol=1e-3)


def main():
    path, order = sys.argv[1:3]
    if order == "tandem":
        tandem, context = tandem_open(path, None)
    import numpy
    random = numpy.random.RandomState(1)
    a = random.rand(SIDE, SIDE).astype(numpy.float32)
    b = random.rand(SIDE, SIDE).astype(numpy.float32)
    exact = a.astype(numpy.float64) @ b.astype(numpy.float64)
    before = a @ b
    if order == "numpy":
        threads = blas_threads()
        tandem, context = tandem_open(path, None)
    else:
        threads = blas_threads()
    assert near(numpy, before, exact), "NumPy's product is wrong"
    assert near(numpy, product(tandem, context, numpy, a, b), exact), \
        "Tandem's product is wrong"
    assert numpy.array_equal(a @ b, before), "NumPy's product changed"
    # Fewer threads for Tandem are no business of NumPy's.
    _, single = tandem_open(path, 1)
    assert near(numpy, product(tandem, single, numpy, a, b), exact), \
        "Tandem's product with one thread is wrong"
    assert numpy.array_equal(a @ b, before), "NumPy's product changed"
    after = blas_threads()
    if threads is not None:
        assert after[:len(threads)] == threads, \
            "BLAS had %s threads, now %s" % (threads, after)
    with numpy.errstate(all="raise"):
        numpy.add(a, b)
    tandem.tandem_context_destroy(single)
    if order == "numpy":
        tandem.tandem_context_destroy(context)
    # Else it ends without: that must do no harm either.
    print("%s first: BLAS threads %s" % (order, after))
    print("1 passed, 0 failed, 0 skipped")


main()
