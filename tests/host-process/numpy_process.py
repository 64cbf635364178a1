# SPDX-License-Identifier: Apache-2.0
"""Tandem in a process that has NumPy, whose BLAS may be the very library that
the CPU plugin uses: results of both stay right, the number of its threads
stays what the process made it, and the process ends well.

    numpy_process.py LIBTANDEM ORDER

ORDER is "numpy" or "tandem": what is loaded first."""

import ctypes
import sys

SIDE = 192
FOREVER = ctypes.c_uint64(-1)
F32 = 0x0220


class Options(ctypes.Structure):
    """struct tandem_context_options of version 0.1."""
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
    ]


class Context:
    """A context on the CPU, with the default number of threads or this one."""

    def __init__(self, path, threads=None):
        self.functions = ctypes.CDLL(path)
        self.functions.tandem_last_error.restype = ctypes.c_char_p
        self.handle = ctypes.c_void_p()
        options = Options(struct_size=ctypes.sizeof(Options), device=b"cpu")
        if threads is not None:
            options.open_keys = (ctypes.c_char_p * 1)(b"num_threads")
            options.open_values = (ctypes.c_char_p * 1)(b"%d" % threads)
            options.open_count = 1
        self.call("context_create", ctypes.byref(options),
                  ctypes.byref(self.handle))

    def call(self, function, *arguments):
        if getattr(self.functions, "tandem_" + function)(*arguments) != 0:
            sys.exit("tandem: " + self.functions.tandem_last_error().decode())

    def wrap(self, array):
        tensor = ctypes.c_void_p()
        self.call("tensor_wrap", self.handle,
                  ctypes.c_void_p(array.ctypes.data), F32, 2,
                  (ctypes.c_int64 * 2)(*array.shape), None, 0,
                  ctypes.byref(tensor))
        return tensor

    def product(self, a, b):
        c = a * 0
        tensors = [self.wrap(x) for x in (a, b, c)]
        self.call("matmul", self.handle, None, *tensors)
        self.call("tensor_sync", tensors[2], FOREVER)
        for tensor in tensors:
            self.functions.tandem_tensor_destroy(tensor)
        return c


def blas_threads():
    """The number of threads of each OpenBLAS of the process. The names in
    NumPy's own have a prefix and an end."""
    with open("/proc/self/maps") as maps:
        paths = {line.split()[-1] for line in maps if "openblas" in line}
    counts = []
    for path in sorted(paths):
        names = [name for name in ("openblas_get_num_threads",
                                   "scipy_openblas_get_num_threads64_",
                                   "scipy_openblas_get_num_threads")
                 if hasattr(ctypes.CDLL(path), name)]
        assert names, path + " does not tell its number of threads"
        counts.append(getattr(ctypes.CDLL(path), names[0])())
    return counts


def main():
    path, order = sys.argv[1:3]
    if order == "tandem":
        context = Context(path)
    import numpy
    random = numpy.random.RandomState(1)
    a = random.rand(SIDE, SIDE).astype(numpy.float32)
    b = random.rand(SIDE, SIDE).astype(numpy.float32)
    exact = a.astype(numpy.float64) @ b.astype(numpy.float64)
    before = a @ b
    threads = blas_threads()
    if order == "numpy":
        context = Context(path)
    # Fewer threads for Tandem are no business of NumPy's.
    single = Context(path, 1)
    for what, product in (("NumPy", before), ("Tandem", context.product(a, b)),
                          ("one thread", single.product(a, b))):
        assert numpy.allclose(product, exact, rtol=1e-4, atol=1e-3), what
        assert numpy.array_equal(a @ b, before), "NumPy's product changed"
    after = blas_threads()
    assert after[:len(threads)] == threads, \
        "BLAS had %s threads, now %s" % (threads, after)
    with numpy.errstate(all="raise"):
        numpy.add(a, b)
    single.functions.tandem_context_destroy(single.handle)
    if order == "numpy":
        context.functions.tandem_context_destroy(context.handle)
    # Else it ends without: that must do no harm either.
    print("%s first: BLAS threads %s" % (order, after))
    print("1 passed, 0 failed, 0 skipped")


main()
