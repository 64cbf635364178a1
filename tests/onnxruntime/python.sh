# SPDX-License-Identifier: Apache-2.0
# Runs the Python tests of the ONNX Runtime provider. The scripts next to this
# file source it, in the build directory.
#
# ./quickstart check installs two versions of ONNX Runtime in build/onnxruntime:
# the newest one, and the oldest one that the provider supports. Without them,
# python3's own onnxruntime is the newest.

: "${srcdir=.}"
provider=$PWD/src/adapters/onnxruntime/.libs/tandem-onnxruntime.so
level=${CONFORMANCE_LEVEL:-standard}
seed=${CONFORMANCE_SEED:-1}
status=0

if test ! -f "$provider"; then
    echo "the ONNX Runtime provider was not built"
    exit 77
fi

# interpreter newest|oldest: prints the path of a Python that has ONNX Runtime.
interpreter() {
    if test -x "$PWD/onnxruntime/$1/bin/python3"; then
        echo "$PWD/onnxruntime/$1/bin/python3"
    elif test "$1" = newest; then
        command -v python3
    fi
}

# onnxruntime_version PYTHON: prints the version of its ONNX Runtime, if it can import
# what the tests need.
onnxruntime_version() {
    test -z "$1" || "$1" -c 'import sys, numpy, onnx, onnxruntime
version = tuple(int(n) for n in onnxruntime.__version__.split(".")[:2])
if version < (1, 23):
    sys.exit(1)
print(onnxruntime.__version__)' 2>/dev/null
}

# The imports take half a second, so each Python is asked once.
newest=$(onnxruntime_version "$(interpreter newest)")
oldest=$(onnxruntime_version "$(interpreter oldest)")
if test -z "$newest"; then
    echo "no Python with onnxruntime 1.23 and onnx: ./quickstart check installs them"
    exit 77
fi

TANDEM_ONNXRUNTIME_PROVIDER=$provider
: "${TANDEM_PLUGIN_PATH=$PWD/.libs}"
: "${TANDEM_BACKENDS=cpu,opencl}"
: "${XDG_CACHE_HOME=$PWD/test-cache}"
: "${POCL_CACHE_DIR=$PWD/pocl-cache}"
: "${OCL_ICD_VENDORS=/etc/OpenCL/vendors/pocl.icd}"
PYTHONDONTWRITEBYTECODE=1
export TANDEM_ONNXRUNTIME_PROVIDER TANDEM_PLUGIN_PATH TANDEM_BACKENDS
export XDG_CACHE_HOME POCL_CACHE_DIR OCL_ICD_VENDORS PYTHONDONTWRITEBYTECODE
mkdir -p "$XDG_CACHE_HOME" "$POCL_CACHE_DIR" || exit 99

# run newest|oldest SCRIPT [ARGUMENT]...: runs a script of this directory, and
# records a failure in $status.
run() {
    python=$(interpreter "$1") script=$2
    case $1 in
    newest) installed=$newest ;;
    *) installed=$oldest ;;
    esac
    test -n "$installed" || return 0
    shift 2
    echo "== $script $* (onnxruntime $installed)"
    "$python" "$srcdir/tests/onnxruntime/$script" "$@" || status=1
}
