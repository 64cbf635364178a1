# SPDX-License-Identifier: Apache-2.0
"""Tests the wheel onnxruntime-ep-tandem, which make wheel makes.

The wheel is installed in an empty directory, which stands for a virtual environment.
Each case runs programs with the package in this directory, and with nothing else of
Tandem.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import zipfile

import onnx

import child_cases
from child_cases import Skipped, case
from small_models import perceptron

MAX_BYTES = 25_000_000
LICENSES = {
    'libclblast': 'libclblast1.txt',
    'libgfortran': 'libgfortran5.txt',
    'libjansson': 'libjansson4.txt',
    'libopenblas': 'libopenblas0-pthread.txt',
    'libquadmath': 'libquadmath0.txt',
    'libsleef': 'libsleef3.txt',
}
FORKED_SECONDS = 20
ORDINARY_USER = 65534
FORK = '''
import multiprocessing, os, sys
import numpy as np, onnxruntime as ort, onnxruntime_ep_tandem as tandem
ort.register_execution_provider_library("tandem", tandem.get_library_path())
devices = [d for d in ort.get_ep_devices() if d.ep_name == tandem.get_ep_name()]
options = ort.SessionOptions()
options.log_severity_level = 4
options.add_provider_for_devices(
    devices, {"device": sys.argv[2], "claim": "all", "first_run": "wait"})
session = ort.InferenceSession(sys.argv[1], options, enable_fallback=0)
feeds = {session.get_inputs()[0].name: np.ones((3, 64), np.float32)}
session.run(None, feeds)
child = os.fork()
if child == 0:
    np.ones((200, 200)) @ np.ones((200, 200))
    try:
        session.run(None, feeds)
        print("the child ran the session", flush=True)
    except Exception as error:
        print("error:", error, flush=True)
    sys.stdout.flush()
    os._exit(7)
print("status", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
process = multiprocessing.get_context("fork").Process(target=sys.exit, args=(8,))
process.start()
process.join(20)
print("process", process.exitcode, flush=True)
session.run(None, feeds)
print("parent ran", flush=True)
'''

OPENBLAS_IN_THE_PROCESS = '''
import ctypes, glob, os, onnxruntime_ep_tandem as tandem
package = os.path.dirname(tandem.__file__)
tandem.get_library_path()
name = ctypes.CDLL(glob.glob(package + ".libs/libopenblas*")[0]).openblas_get_corename
name.restype = ctypes.c_char_p
print(name().decode(), os.environ.get("OPENBLAS_CORETYPE"))
'''


def environment(path, **changes):
    """Returns an environment without variables of Tandem.  `path` is PYTHONPATH."""
    result = {name: value for name, value in os.environ.items()
              if not name.startswith(('TANDEM_', 'PYTHON', 'LD_', 'OPENBLAS_CORETYPE'))}
    result.update(PYTHONPATH=str(path), PYTHONDONTWRITEBYTECODE='1', **changes)
    return result


def call(site, command, status=0, timeout=300, prefix=(), user=None,
         python=sys.executable, modules='', **changes):
    """Runs python with arguments, and returns its output.

    prefix: a command that runs python.  modules: a folder of other modules.
    """
    path = ':'.join(filter(None, (str(site), modules)))
    result = subprocess.run(
        [*prefix, python, *command], text=True, check=False, timeout=timeout,
        user=user, group=user, extra_groups=None if user is None else [],
        env=environment(path, **changes), cwd='/', stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == status, (result.returncode, result.stdout)
    return result.stdout


def command(*arguments):
    return ['-m', 'onnxruntime_ep_tandem', *arguments]


def model_file(directory):
    path = os.path.join(directory, 'model.onnx')
    onnx.save(perceptron(), path)
    os.chmod(directory, 0o755)
    os.chmod(path, 0o644)
    return path


def python_for(user):
    """Returns a Python of this version that a user can start, and the folder of the
    modules of this Python's environment, which the user must be able to read."""
    modules = sysconfig.get_path('purelib')
    system = '/usr/bin/python%d.%d' % sys.version_info[:2]
    for python in (sys.executable, system):
        try:
            subprocess.run([python, '-c', 'import onnxruntime'], user=user, group=user,
                           check=True, extra_groups=[], cwd='/',
                           env=environment(modules), stderr=subprocess.DEVNULL)
            return python, modules
        except (OSError, subprocess.CalledProcessError):
            pass
    raise Skipped('the user cannot start %s or %s' % (sys.executable, system))


def run_model(site, device, **options):
    """Runs a model, and checks which device computed it."""
    with tempfile.TemporaryDirectory() as directory:
        text = call(site, command('run', model_file(directory), '--claim', 'all',
                                  '--device', device, '--repeat', '1'), **options)
    number = device if ':' in device else device + ':0'
    assert re.search(r'ran on %s \(\d' % number, text), text
    assert 'relative to the largest magnitude' in text, text
    return text


def lists(text, device):
    """Returns whether the command "devices" has listed a device."""
    return re.search(r'(?m)^ +%s ' % device, text) is not None


def site_of(arguments):
    return pathlib.Path(arguments.site)


@case
def files(arguments):
    """Size, tag, permissions, licences, and nothing of ONNX Runtime."""
    wheel = pathlib.Path(arguments.wheel)
    assert wheel.stat().st_size <= MAX_BYTES, wheel.stat().st_size
    tag = re.search(r'-py3-none-manylinux_2_(\d+)_\w+\.whl$', wheel.name)
    assert tag and int(tag[1]) <= 34, wheel.name
    with zipfile.ZipFile(wheel) as archive:
        entries = {each.filename: each for each in archive.infolist()}
    names = list(entries)
    libraries = [name for name in names if re.search(r'\.libs/.', name)]
    assert libraries
    for name in libraries:
        base = re.match('lib[a-z]*', os.path.basename(name))[0]
        text = LICENSES.get(base) or LICENSES[base.rstrip('p')]
        assert 'onnxruntime_ep_tandem/licenses/' + text in names, (name, text)
    for program in ('bin/cl-probe', 'bin/tandem-conformance',
                    'lib/tandem/1/tandem-compile'):
        mode = entries['onnxruntime_ep_tandem/' + program].external_attr >> 16
        assert mode & 0o111 == 0o111, (program, oct(mode))
    assert not [name for name in names if 'onnxruntime' in name.lower()
                and 'onnxruntime_ep_tandem' not in name.lower()]


@case
def devices_and_help(arguments):
    site = site_of(arguments)
    text = call(site, command())
    assert lists(text, 'cpu') and lists(text, 'opencl'), text
    assert text.endswith('onnxruntime_ep_tandem run MODEL.onnx\n'), text
    for name in ('devices', 'doctor', 'calibrate', 'verify', 'explain', 'run'):
        assert name in call(site, command('--help'))
        assert 'usage' in call(site, command(name, '--help')).lower()
    version = call(site, command('--version')).split()[-1]
    assert version in pathlib.Path(arguments.wheel).name, version
    call(site, command('fly'), status=2)
    text = call(site, command('model.onnx'), status=2)
    assert 'onnxruntime_ep_tandem run model.onnx' in text, text


@case
def operators_are_verified(arguments):
    """The package contains the tests that this needs. cl-probe is a command, too."""
    site = site_of(arguments)
    options = ('--device=cpu', '--operator=softmax')
    with tempfile.TemporaryDirectory() as cache:
        for program in (command('verify'), [str(site / 'bin/cl-probe'), '--verify']):
            text = call(site, [*program, *options], XDG_CACHE_HOME=cache)
            assert re.search(r'cpu\b.* passed', text), text


@case
def simd_level_is_the_processors(arguments):
    """A compiler without CPU detection makes a plugin that uses generic code, and an
    OpenBLAS that does not know the processor uses SSE."""
    with open('/proc/cpuinfo', encoding='ascii', errors='replace') as file:
        flags = set(re.search('flags.*', file.read())[0].split())
    site = site_of(arguments)
    text = call(site, command('devices', '--list', '--device=cpu'))
    loaded = call(site, ['-c', OPENBLAS_IN_THE_PROCESS])
    for flag, name, kernels in (('avx512vl', 'avx512', 'SkylakeX'),
                                ('avx2', 'avx2', 'Haswell')):
        if flag in flags:
            assert re.search('(?i)extensions.*' + name, text), text
            assert 'openblas:' + kernels in text, text
            assert loaded == kernels + ' None\n', loaded
            text = call(site, command('devices', '--list', '--device=cpu'),
                        OPENBLAS_CORETYPE='Nehalem')
            assert 'openblas:Nehalem' in text, text
            return
    raise Skipped('this processor has no AVX2')


@case
def models_run(arguments):
    site = site_of(arguments)
    run_model(site, 'cpu')
    run_model(site, arguments.device)
    with tempfile.TemporaryDirectory() as directory:
        text = call(site, command('explain', model_file(directory), '--claim', 'all'))
    assert 'ran on ' in text, text


@case
def nothing_is_taken_from_the_system(arguments):
    """All libraries come from the package or from glibc and the compiler."""
    site = site_of(arguments)
    allowed = re.compile(r'ld-linux|lib(c|m|dl|rt|pthread|stdc\+\+|gcc_s|OpenCL)\.so|'
                         'linux-vdso')
    for file in [*site.rglob('*.so*'), site / 'onnxruntime_ep_tandem/bin/cl-probe']:
        result = subprocess.run(['ldd', str(file)], env=environment(site), text=True,
                                check=True, stdout=subprocess.PIPE).stdout
        for line in result.splitlines():
            assert allowed.search(line) or str(site) in line, (file, line)


@case
def moved(arguments):
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        other = os.path.join(directory, 'another place')
        shutil.copytree(arguments.site, other)
        run_model(other, arguments.device)


@case
def ordinary_user_without_a_home(arguments):
    """Nothing can be written; root's files are trusted."""
    if os.getuid() != 0:
        raise Skipped('only root can become another user')
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        site = os.path.join(directory, 'site')
        shutil.copytree(arguments.site, site)
        python, modules = python_for(ORDINARY_USER)
        for home in ('/nonexistent', directory):
            options = {'user': ORDINARY_USER, 'python': python, 'modules': modules,
                       'HOME': home, 'XDG_CACHE_HOME': home + '/.cache'}
            run_model(site, 'cpu', **options)
            text = call(site, command(), **options)
            assert lists(text, 'cpu'), text


@case
def no_opencl_device(arguments):
    """The CPU computes, and no OpenCL device is listed."""
    run_model(site_of(arguments), 'cpu', OCL_ICD_VENDORS='/nonexistent')
    text = call(site_of(arguments), command(), OCL_ICD_VENDORS='/nonexistent')
    assert lists(text, 'cpu') and not lists(text, 'opencl'), text


@case
def kernels_cannot_be_built(arguments):
    """ONNX Runtime computes what the device cannot, and the last line says so."""
    with tempfile.TemporaryDirectory() as directory:
        text = call(site_of(arguments), command(
            'run', model_file(directory), '--claim', 'all', '--device', arguments.device,
            '--repeat', '1'), POCL_CACHE_DIR='/proc/self/fd', XDG_CACHE_HOME=directory)
    assert 'ran on none of its devices' in text, text


@case
def no_opencl_loader(arguments):
    """The package's loader is used if the system has none."""
    loaders = [str(each) for each in pathlib.Path('/usr/lib').rglob('libOpenCL.so.1*')]
    hide = ' && '.join('mount --bind /dev/null "$(readlink -f %s)"' % each
                       for each in loaders)
    prefix = ['unshare', '-m', 'sh', '-c', hide + ' && exec "$@"', 'sh']
    if os.getuid() != 0 or subprocess.run([*prefix, 'true'], check=False,
                                          stderr=subprocess.DEVNULL).returncode:
        raise Skipped('libOpenCL.so.1 cannot be hidden here')
    text = call(site_of(arguments), command(), prefix=prefix)
    assert lists(text, 'opencl'), text
    run_model(site_of(arguments), arguments.device, prefix=prefix)


@case
def forked_child_exits(arguments):
    """A child gets an error, and ends with os._exit, as multiprocessing does.

    With sys.exit, ONNX Runtime waits for its own threads, which a child does not have,
    even without Tandem.
    """
    with tempfile.TemporaryDirectory() as directory:
        for device in ('cpu', arguments.device):
            text = call(site_of(arguments), ['-c', FORK, model_file(directory), device],
                        timeout=FORKED_SECONDS + 60)
            assert 'error: ' in text, text
            assert 'status 7' in text, text
            assert 'process 8' in text, text
            assert 'parent ran' in text, text


@case
def foreign_plugin(arguments):
    """A file that is no plugin of this ABI is named, and the others work."""
    with tempfile.TemporaryDirectory() as directory:
        os.chmod(directory, 0o755)
        site = pathlib.Path(directory, 'site')
        shutil.copytree(arguments.site, site)
        plugins = site / 'onnxruntime_ep_tandem/lib/tandem/1'
        shutil.copy(next(site.rglob('libjansson*')), plugins / 'tandem-other.so')
        text = call(site, command())
        assert 'tandem-other.so' in text and lists(text, 'cpu'), text
        run_model(site, 'cpu')


def add_arguments(parser):
    parser.add_argument('--wheel', required=True, help='the wheel')
    parser.add_argument('--site', required=True, help='the directory with its files')


if __name__ == '__main__':
    sys.exit(child_cases.main('wheel', __doc__, add_arguments))
