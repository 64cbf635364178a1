# SPDX-License-Identifier: Apache-2.0
"""Tests threads, lifetimes and the end of the process with Tandem's provider.

Each case runs in a child process.  A crash, a hang or a wrong result is one
failed case.  The exit status is 0 only if all cases passed.

TANDEM_ONNXRUNTIME_PROVIDER holds the path of the provider library; see
provider.py.
"""

import concurrent.futures
import ctypes
import gc
import os
import random
import sys
import tempfile
import threading
import time

# More threads of numpy's BLAS would only take time from the provider.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')

import numpy  # noqa: E402
import onnxruntime  # noqa: E402

import child_cases  # noqa: E402
import provider  # noqa: E402
import small_models  # noqa: E402
from child_cases import case, completed, note  # noqa: E402
from small_models import (FLOAT, INT64, check_outputs, expect_error,  # noqa
                          node, value)

THREADS = 8
RUNS_PER_THREAD = 300
FORM_CACHE = 32  # shapes that a subgraph keeps
SESSION_CYCLES = 200
WARM_UP_CYCLES = 50
# Growth that is not a leak: the allocators of several threads, and the
# driver's own pools.
MAX_SESSION_GROWTH_MIB = 8
MAX_SHAPE_GROWTH_MIB = 16

_kept = []  # sessions that live until the process ends


# ---- helpers ----

def run_threads(work, count):
    """Runs work(0), work(1)... in `count` threads.  Raises an exception of one."""
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        list(pool.map(work, range(count)))


class Workload:
    """A model, inputs of several shapes, and the expected outputs."""

    def __init__(self, model, inputs):
        self.model = model.SerializeToString()
        self.inputs = inputs
        reference = provider.cpu_session(self.model)
        self.expected = [reference.run(None, each) for each in inputs]

    def session(self, arguments):
        return small_models.open_session(self.model, arguments.device)

    def check(self, session, index=0):
        index %= len(self.inputs)
        check_outputs(session.run(None, self.inputs[index]),
                      self.expected[index], 'input %d' % index)


def perceptron(count=4, seed=1):
    """Returns a workload with `count` batch sizes."""
    return Workload(small_models.perceptron(seed),
                    [small_models.perceptron_input(3 * i + 1)
                     for i in range(count)])


def transformer(count=4, seed=1):
    """Returns a workload with `count` lengths of the sequence."""
    return Workload(small_models.transformer(seed),
                    [small_models.transformer_input(1 + i % 3, 2 + i)
                     for i in range(count)])


def reshape_session(arguments):
    """Makes a session that reshapes x to the input `shape`."""
    model = small_models.model(
        [node('Exp', 'x', 'e'), node('Reshape', 'e shape', 'r'),
         node('Exp', 'r', 'y')],
        [value('x', FLOAT, ['n']), value('shape', INT64, [2])], [value('y')])
    return small_models.open_session(model, arguments.device)


def repetitions(arguments, count):
    """Returns the part of `count` repetitions that --percent asks for."""
    return max(1, count * arguments.percent // 100)


def resident_mib():
    """Returns the resident memory of this process, without freed memory that
    the C library keeps."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), 'malloc_trim', None)  # glibc only
    if trim is not None:
        trim(0)
    with open('/proc/self/statm') as file:
        return int(file.read().split()[1]) * os.sysconf('SC_PAGESIZE') / 2**20


def check_growth(before, after, limit, what):
    growth = after - before
    note('%s: resident memory grew by %.1f MiB, at most %d are allowed' % (
        what, growth, limit))
    assert growth <= limit, '%s: resident memory grew by %.1f MiB' % (
        what, growth)


def run_threads_on(sessions, workload, runs, threads=THREADS):
    """Runs all sessions from several threads, each with its own shapes."""
    barrier = threading.Barrier(threads)

    def work(number):
        barrier.wait()
        session = sessions[number % len(sessions)]
        for i in range(runs):
            workload.check(session, number + i % 3 * threads)
    run_threads(work, threads)


# ---- threads ----

@case
def threads_run_one_session(arguments):
    """Eight threads run one session with different shapes, then one of another
    model with more operators and more shapes than are cached."""
    for workload, runs in ((perceptron(3 * THREADS), RUNS_PER_THREAD),
                           (transformer(FORM_CACHE + 8), RUNS_PER_THREAD // 4)):
        run_threads_on([workload.session(arguments)], workload,
                       repetitions(arguments, runs))


@case
def threads_run_two_sessions(arguments):
    """Sessions of one model share their weights, and threads use two of them."""
    workload = Workload(small_models.perceptron(1, 1024, 4096),
                        [small_models.perceptron_input(i, 0, 1024)
                         for i in range(1, 9)])
    weights_mib = 1024 * 4096 * 4 / 2**20
    sessions = [workload.session(arguments)]
    workload.check(sessions[0])
    before = resident_mib()
    for _ in range(3):
        sessions.append(workload.session(arguments))
        workload.check(sessions[-1])
    check_growth(before, resident_mib(), weights_mib * 3 // 2,
                 'three more sessions with %d MiB of weights' % weights_mib)
    del sessions
    workload = perceptron(8)
    sessions = [workload.session(arguments) for _ in range(2)]
    run_threads_on(sessions, workload, 20, 4)
    del sessions[0]
    run_threads_on(sessions, workload, 20, 4)


@case
def threads_create_sessions(arguments):
    """Threads create, run and destroy sessions while others run one."""
    workloads = [perceptron(2, i) for i in range(3)] + [transformer(2)]
    shared = workloads[0].session(arguments)

    def work(number):
        for i in range(10):
            workload = workloads[(number + i) % len(workloads)]
            workload.check(workload.session(arguments), i)
            workloads[0].check(shared, i)
    run_threads(work, 4)


@case
def failing_runs_between_good_ones(arguments):
    """Threads run a session; some of their runs fail."""
    session = reshape_session(arguments)
    x = numpy.linspace(0, 1, 12, dtype=numpy.float32)

    def work(number):
        for i in range(repetitions(arguments, RUNS_PER_THREAD)):
            rows = (number + i) % 7 + 1
            shape = numpy.array([rows, 12 // rows])
            feeds = {'x': x, 'shape': shape}
            if 12 % rows != 0:
                expect_error(lambda: session.run(None, feeds), 'node_r')
                continue
            check_outputs(session.run(None, feeds),
                          [numpy.exp(numpy.exp(x)).reshape(shape)])
    run_threads(work, 4)


# ---- the order of destruction ----

@case
def session_destroyed_after_run_in_other_thread(arguments):
    """A thread destroys a session as soon as another thread's run returned."""
    workload = perceptron(2)
    for i in range(30):
        holder = [workload.session(arguments)]
        returned = threading.Event()

        def work(number):
            if number == 0:
                returned.wait()
                holder.clear()
                return
            try:
                workload.check(holder[0], i)
            finally:
                returned.set()
        run_threads(work, 2)


@case
def sessions_destroyed_in_other_orders(arguments):
    """Sessions are destroyed in the order of creation, in reverse and mixed."""
    workloads = [perceptron(2, i // 2) for i in range(4)]
    workloads += [transformer(2, i // 2) for i in range(4)]
    orders = [list(range(8)), list(reversed(range(8)))]
    generator = random.Random(arguments.seed)
    for _ in range(2):
        orders.append(generator.sample(range(8), 8))
    for order in orders:
        sessions = {i: workloads[i].session(arguments) for i in range(8)}
        for i in order:
            workloads[i].check(sessions[i])
            del sessions[i]
            for other, session in sessions.items():
                workloads[other].check(session, 1)


@case
def sessions_of_the_cpu_load_no_opencl(arguments):
    """Sessions with device=cpu load no libraries of GPUs; later ones may."""
    os.environ.pop('TANDEM_BACKENDS', None)  # it would name opencl
    workload = perceptron(2)
    cpu = small_models.open_session(workload.model, 'cpu')
    workload.check(cpu)
    with open('/proc/self/maps') as file:
        maps = file.read()
    for library in ('tandem-opencl', 'libOpenCL', 'libclblast'):
        assert library not in maps, '%s is loaded' % library
    session = workload.session(arguments)
    for index in range(2):
        workload.check(session, index)
        workload.check(cpu, index)
    del session
    workload.check(cpu)


# ---- registration ----

def _register(name):
    library = os.path.abspath(os.environ[provider.LIBRARY_VARIABLE])
    before = len(onnxruntime.get_ep_devices())
    onnxruntime.register_execution_provider_library(name, library)
    return onnxruntime.get_ep_devices()[before:]


@case
def library_registered_again(arguments):
    """The library is unregistered and registered again, at first unused."""
    workload = perceptron(2)
    _register('tandem')
    onnxruntime.unregister_execution_provider_library('tandem')
    for _ in range(6):
        devices = _register('tandem')
        sessions = [provider.session(workload.model, arguments.device,
                                     devices=devices) for _ in range(2)]
        for session in sessions:
            workload.check(session)
        del session, sessions, devices
        gc.collect()
        onnxruntime.unregister_execution_provider_library('tandem')
    assert all(device.ep_name != provider.PROVIDER
               for device in onnxruntime.get_ep_devices())


@case
def library_registered_twice(arguments):
    """The library is registered under two names, and both are used."""
    workload = perceptron(2)
    devices = [_register('first'), _register('second')]
    assert len(devices[0]) == 1 and len(devices[1]) == 1, devices
    sessions = [provider.session(workload.model, arguments.device,
                                 devices=each) for each in devices]
    run_threads_on(sessions, workload, 20, 4)
    del sessions[0], devices[0]
    gc.collect()
    onnxruntime.unregister_execution_provider_library('first')
    workload.check(sessions[0], 1)
    del sessions, devices
    gc.collect()
    onnxruntime.unregister_execution_provider_library('second')


def _unregister():
    gc.collect()
    onnxruntime.unregister_execution_provider_library('tandem')


@case
def sessions_outlive_the_registration(arguments):
    """Sessions run, fail and are destroyed after the library is unregistered."""
    workload = perceptron(4)
    devices = _register('tandem')
    sessions = [provider.session(workload.model, arguments.device,
                                 devices=devices) for _ in range(3)]
    workload.check(sessions[0])  # the others did not run yet
    values = sessions[0].run_with_ort_values(
        None, {'x': onnxruntime.OrtValue.ortvalue_from_numpy(
            workload.inputs[0]['x'])})
    del devices
    _unregister()
    run_threads_on(sessions, workload, 20, 4)
    del sessions[1:]
    workload.check(sessions[0], 1)
    check_outputs([values[0].numpy()], workload.expected[0])
    del sessions[0]
    check_outputs([values[0].numpy()], workload.expected[0])
    del values
    # The library can be registered again.
    devices = _register('tandem')
    workload.check(provider.session(workload.model, arguments.device,
                                    devices=devices))
    del devices
    _unregister()


@case
def runs_fail_after_the_registration(arguments):
    """Runs of a session whose library is unregistered fail with a message."""
    session = reshape_session(arguments)
    _unregister()
    x = numpy.linspace(0, 1, 12, dtype=numpy.float32)
    for rows in (5, 3, 7, 4):
        feeds = {'x': x, 'shape': numpy.array([rows, 12 // rows])}
        if 12 % rows != 0:
            expect_error(lambda: session.run(None, feeds), 'node_r')
        else:
            check_outputs(session.run(None, feeds),
                          [numpy.exp(numpy.exp(x)).reshape(feeds['shape'])])
    del session
    gc.collect()


@case
def process_ends_after_the_registration(arguments):
    """The process ends with a session whose library is unregistered."""
    workload = perceptron(2)
    _kept.append(workload.session(arguments))
    workload.check(_kept[0])
    _unregister()
    workload.check(_kept[0], 1)


@case
def provider_with_other_providers(arguments):
    """The list of providers has Tandem's and the CPU provider."""
    model = small_models.model(
        [node('MatMul', 'x w', 'a'),
         node('Tan', 'a', 'b'),  # Tandem does not serve it
         node('Exp', 'b', 'y')],
        [value('x', FLOAT, ['n', 8])], [value('y')],
        [small_models.constant('w', numpy.eye(8) * 0.3)])
    workload = Workload(model, [{'x': numpy.ones((3, 8), numpy.float32)}])
    provider.register()
    cpu = [device for device in onnxruntime.get_ep_devices()
           if device.ep_name == 'CPUExecutionProvider']
    assert cpu, onnxruntime.get_ep_devices()
    for others in ((), cpu):
        session = provider.session(workload.model, arguments.device,
                                   fallback=True, others=others)
        assert session.get_providers()[0] == provider.PROVIDER
        assert 'CPUExecutionProvider' in session.get_providers()
        workload.check(session)


# ---- the end of the process ----

def _start_busy_threads(arguments, seconds=None):
    """Starts threads that run sessions, for some time or forever.  Returns the
    threads, and a list that gets an entry from each that ends well."""
    workload = transformer(8)
    _kept.append(workload.session(arguments))
    end = None if seconds is None else time.monotonic() + seconds
    started = threading.Barrier(4)
    ended = []

    def work(number):
        workload.check(_kept[0], number)
        started.wait()
        i = 0
        while end is None or time.monotonic() < end:
            workload.check(_kept[0], number + i % 8)
            i += 1
        ended.append(number)
    threads = [threading.Thread(target=work, args=(number,), daemon=seconds is None)
               for number in range(3)]
    for thread in threads:
        thread.start()
    started.wait()
    return threads, ended


@case
def exit_with_live_sessions(arguments):
    """The process ends with a session, one that never ran, one that is part of a
    reference cycle, and a registered library."""
    workload = perceptron(2)
    _kept.extend(workload.session(arguments) for _ in range(2))
    workload.check(_kept[0])
    cycle = [workload.session(arguments)]
    cycle.append(cycle)
    workload.check(cycle[0])
    gc.disable()


@case
def exit_while_threads_run(arguments):
    """sys.exit while other threads run; Python waits for them."""
    _start_busy_threads(arguments, 1)
    completed()
    sys.exit(0)


@case
def underscore_exit_in_a_busy_thread(arguments):
    """A thread that ran a session calls os._exit while others run."""
    _start_busy_threads(arguments)

    def end():
        completed()
        os._exit(0)
    threading.Thread(target=end).start()
    time.sleep(10)
    raise AssertionError('the process did not end')


def _fork_and_exit():
    """Forks a child that ends at once.  Returns its exit code."""
    child = os.fork()
    if child == 0:
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@case
def fork_with_a_session(arguments):
    """The process forks; the child ends at once; the parent goes on."""
    workload = transformer(4)
    session = workload.session(arguments)
    for i in range(10):
        workload.check(session, i)
        assert _fork_and_exit() == 0
        workload.check(session, i + 1)
    other = workload.session(arguments)
    workload.check(other)


@case
def fork_while_threads_run(arguments):
    """As before, while other threads run the session."""
    threads, ended = _start_busy_threads(arguments, 2)
    for _ in range(20):
        assert _fork_and_exit() == 0
        time.sleep(0.02)
    for thread in threads:
        thread.join()
    assert sorted(ended) == [0, 1, 2], ended


# ---- memory ----

def check_repetitions(arguments, run, warm_up, count, limit, what):
    """Calls run(0), run(1)... and checks how the memory grows after the
    warm-up.

    With fewer repetitions (--percent), the limit is lower in the same proportion.

    If it grows too much, it is measured once more: a heap that threads share
    may take more calls to reach its size, but a leak continues.
    """
    count = repetitions(arguments, count)
    limit *= arguments.percent / 100
    for i in range(warm_up):
        run(i)
    before = resident_mib()
    for i in range(warm_up, warm_up + count):
        run(i)
    if resident_mib() - before > limit:
        note('%d %s: resident memory grew by %.1f MiB; once more' %
             (count, what, resident_mib() - before))
        before = resident_mib()
        for i in range(warm_up + count, warm_up + 2 * count):
            run(i)
    check_growth(before, resident_mib(), limit, '%d %s' % (count, what))


@case
def memory_of_session_cycles(arguments):
    """Up to 200 sessions are created, run and destroyed, after a warm-up of 50."""
    workloads = [perceptron(3), transformer(3)]

    def cycle(i):
        workload = workloads[i % 2]
        workload.check(workload.session(arguments), i // 2)
    check_repetitions(arguments, cycle, WARM_UP_CYCLES, SESSION_CYCLES,
                      MAX_SESSION_GROWTH_MIB, 'sessions')


@case
def memory_of_many_shapes(arguments):
    """A session runs with more shapes than it keeps, again and again."""
    workload = transformer(FORM_CACHE + 28)
    session = workload.session(arguments)
    shapes = len(workload.inputs)
    check_repetitions(arguments, lambda i: workload.check(session, i),
                      2 * shapes, 6 * shapes, MAX_SHAPE_GROWTH_MIB, 'shapes')


@case
def memory_of_failed_runs(arguments):
    """Runs that fail do not leak."""
    session = reshape_session(arguments)
    x = numpy.ones(64 * 1024, numpy.float32)

    def fail(i):
        feeds = {'x': x, 'shape': numpy.array([3, i])}
        expect_error(lambda: session.run(None, feeds), 'node_r')
    check_repetitions(arguments, fail, 300, 1200, MAX_SESSION_GROWTH_MIB,
                      'failed runs')


@case
def exit_while_kernels_compile(arguments):
    """The last session ends while a driver without caches compiles. No thread of
    Tandem compiles afterwards, because drivers crash if a process exits then."""
    with tempfile.TemporaryDirectory() as directory:
        os.environ['XDG_CACHE_HOME'] = directory
        os.environ['POCL_CACHE_DIR'] = directory
        session = provider.session(small_models.perceptron(), arguments.device,
                                   first_run='cpu')
        session.run(None, small_models.perceptron_input(3))
        time.sleep(0.5)
        del session
        gc.collect()
        names = set()
        for task in os.listdir('/proc/self/task'):
            with open('/proc/self/task/%s/comm' % task, encoding='ascii') as file:
                names.add(file.read().strip())
        assert 'tandem-compile' not in names, names


def _add_arguments(parser):
    parser.add_argument('--percent', type=int, default=100, metavar='NUMBER',
                        help='part of the repetitions in the cases about threads '
                        'and memory (default: 100)')


if __name__ == '__main__':
    sys.exit(child_cases.main('lifetime', __doc__, _add_arguments))
