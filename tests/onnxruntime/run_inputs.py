# SPDX-License-Identifier: Apache-2.0
"""Tests the command run of the package in the folder python: inputs and output.

Each case runs in a child process; see child_cases.py.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

import numpy
import onnx
import onnxruntime

import child_cases
from child_cases import Skipped, case
from small_models import BOOL, FLOAT, INT64, constant, model, node, value

PYTHON = str(pathlib.Path(__file__).parents[2] / 'python')


def _model():
    """y = x[index] if flag, else -x[index]; x has the shape [n, 4]."""
    return model(
        [node('Gather', 'x index', 'row'), node('Neg', 'row', 'negative'),
         node('Where', 'flag row negative', 'y')],
        [value('x', FLOAT, ['n', 4]), value('index', INT64, ['k']),
         value('flag', BOOL, [1])], [value('y')])


def _reshaped(shape):
    """y = x in a constant shape; x has four open axes."""
    return model([node('Reshape', 'x shape', 'y')],
                 [value('x', FLOAT, ['batch', 'channels', 'height', 'width'])],
                 [value('y')], [constant('shape', shape, numpy.int64)])


def run(arguments, *options, arrays=None, status=0, claim='all',
        device=None, graph=None, command='run'):
    """Runs the command with a graph, or that of _model, and returns its output."""
    with tempfile.TemporaryDirectory() as directory:
        path = os.path.join(directory, 'model.onnx')
        onnx.save(_model() if graph is None else graph, path)
        words = [sys.executable, '-m', 'onnxruntime_ep_tandem', command, path,
                 '--claim', claim, '--device', device or arguments.device]
        if command == 'run':
            words += ['--repeat', '1']
        if arrays is not None:
            file = os.path.join(directory, 'inputs.npz')
            numpy.savez(file, **arrays)
            words += ['--inputs', file]
        result = subprocess.run(words + list(options), text=True, check=False,
                                env={**os.environ, 'PYTHONPATH': PYTHON},
                                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert result.returncode == status, result.stdout
    return result.stdout


def expect(text, *parts):
    for part in parts:
        assert part in text, 'no "%s" in: %s' % (part, text)


@case
def values_and_files_are_inputs(arguments):
    """Arrays of a file, lists and numbers; 999 would be out of range."""
    arrays = {'x': numpy.ones((3, 4), numpy.float32), 'index': numpy.array([999])}
    text = run(arguments, '--value', 'index=[2,0]', '--value', 'flag=true',
               arrays=arrays)
    expect(text, 'output y [2, 4]: largest difference 0')


@case
def a_number_fills_the_shape(arguments):
    text = run(arguments, '--shape', 'index:5', '--value', 'index=0',
               '--value', 'x=2.5')
    expect(text, 'output y [5, 4]: largest difference 0')


@case
def open_dimensions_get_a_size_that_works(arguments):
    """The first model runs with images of 640x640 only, the second with none."""
    text = run(arguments, graph=_reshaped([1, 3, 320, 1280]))
    expect(text, 'input x: 1x3x640x640 (chosen; --shape changes it)',
           'output y [1, 3, 320, 1280]: largest difference 0')
    text = run(arguments, graph=_reshaped([5, 7, 11]), status=1)
    expect(text, 'CPUExecutionProvider failed', 'give other shapes with --shape',
           'the last shapes that were tried are x:1x3x32x32')
    text = run(arguments, '--shape', 'x:1x5x7x11', graph=_reshaped([5, 7, 11]))
    assert 'chosen' not in text, text


@case
def shapes_reach_the_decision(arguments):
    text = run(arguments, '--shape', 'index:5', '--value', 'index=0', claim='cost')
    expect(text, 'index:5')


@case
def last_line_names_the_device(arguments):
    last = run(arguments, '--value', 'index=0').splitlines()[-1]
    expect(last, 'ran on ', arguments.device.split(':')[0] + ':0 (')


@case
def operators_are_listed_by_explain(arguments):
    """run prints a line for each group, then the comparison, then the last line."""
    lines = run(arguments, '--value', 'index=0').splitlines()
    assert not any(line.startswith('  ') for line in lines), lines
    group, = [line for line in lines if re.search(
        r'^group 1 \(from node node_\w+\): \d operators?$', line)]
    start = lines.index(group)
    expect(lines[start + 1], 'output y ')
    expect(lines[start + 2], 'median of 1 run: ')
    assert start + 4 == len(lines), lines
    listed = run(arguments, '--value', 'index=0', command='explain').splitlines()
    assert any(line.startswith('  ') for line in listed), listed


@case
def nothing_is_computed(arguments):
    """The batch is empty."""
    tested = model([node('Relu', 'x', 'y')], [value('x', FLOAT, ['n', 4])], [value('y')])
    text = run(arguments, '--shape', 'x:0x4', graph=tested)
    expect(text.splitlines()[-1], 'had nothing to compute')


@case
def no_node_is_left(arguments):
    """ONNX Runtime computes constant outputs when it loads a model."""
    tested = model([node('Relu', 'c', 'y')], [], [value('y')], [constant('c', [1, -1])])
    text = run(arguments, graph=tested)
    # Only from version 1.24 on is the number of nodes known.
    expect(text.splitlines()[-1], 'Tandem took no node' if
           onnxruntime.__version__.startswith('1.23') else 'no node is left to run')


@case
def a_directory_is_no_model(arguments):
    with tempfile.TemporaryDirectory() as directory:
        result = subprocess.run(
            [sys.executable, '-m', 'onnxruntime_ep_tandem', 'run', directory], text=True,
            check=False, stderr=subprocess.PIPE, env={**os.environ, 'PYTHONPATH': PYTHON})
    assert result.returncode == 1, result
    expect(result.stderr, f'{directory} is a directory; expected an ONNX file')


@case
def one_is_singular(arguments):
    tested = model([node('Relu', 'x', 'y')], [value('x', FLOAT, [3, 4])], [value('y')])
    text = run(arguments, graph=tested)
    expect(text, '1 node from "node_y": taken', 'group 1 (from node node_y): 1 operator\n',
           '(1 operator)')


@case
def error_comes_first(arguments):
    """Nothing is printed before the error if the model cannot be loaded."""
    text = run(arguments, graph=onnx.ModelProto(), status=1)
    assert text.startswith('onnxruntime_ep_tandem: cannot load the model'), text


@case
def random_inputs_are_named(arguments):
    hint = 'inputs that are not given are random (seed 1)'
    expect(run(arguments, '--value', 'index=0'), hint)
    tested = model([node('Relu', 'x', 'y')], [value('x', FLOAT, [3, 4])], [value('y')])
    assert hint not in run(arguments, '--value', 'x=1', graph=tested)


@case
def last_line_names_the_cpu_provider(arguments):
    """With claim=cost, nothing can win on the CPU plugin."""
    text = run(arguments, '--value', 'index=0', claim='cost', device='cpu')
    expect(text.splitlines()[-1], "the model ran on ONNX Runtime's CPU provider")


@case
def help_is_about_the_command(arguments):
    """cl-probe describes its options once, for all of the commands that it runs."""
    if not os.access('cl-probe', os.X_OK):
        raise Skipped('cl-probe is not in the current directory')
    path = os.getcwd() + ':' + os.environ['PATH']

    def text_of(command):
        return subprocess.run(
            [sys.executable, '-m', 'onnxruntime_ep_tandem', command, '--help'],
            text=True, check=True, stdout=subprocess.PIPE,
            env={**os.environ, 'PYTHONPATH': PYTHON, 'PATH': path}).stdout
    for command, options in (
            ('calibrate', '--quick --wait --replace'), ('doctor', ''),
            ('verify', '--operator --report')):
        text = text_of(command)
        expect(text, 'usage: ', command + ' [--' if options else command + '\n')
        listed = set(re.findall('^  .*?(--[a-z-]+)', text, re.MULTILINE))
        assert listed == {*options.split(), '--device', '--timeout', '--driver-timeout',
                          '--json', '--verbose', '--help', '--version'}, text
    expect(text_of('devices'), '--explain')


@case
def wrong_inputs_are_named(arguments):
    x = numpy.ones((3, 4), numpy.float32)
    for arrays, option, parts in (
            ({'z': x}, None, ('--inputs z', 'x, index, flag')),
            ({'x': x.astype(numpy.float64)}, None, ('--inputs x', 'expected float32')),
            ({'x': x[:, :3]}, None, ('--inputs x', '[3, 3]', "['n', 4]")),
            ({'x': x[0]}, None, ('--inputs x', '[4]')),
            (None, 'z=1', ('--value z', 'x, index, flag')),
            (None, 'index=1.5', ('--value index', 'int64')),
            (None, 'flag=2', ('--value flag', 'bool')),
            (None, 'index=[[1]]', ('--value index', '[1, 1]', "['k']"))):
        options = () if option is None else ('--value', option)
        expect(run(arguments, *options, arrays=arrays, status=1),
               'onnxruntime_ep_tandem: ', *parts)
    for option in ('index', 'index=', '=1', 'index=[1,[2]]', 'index="a"'):
        expect(run(arguments, '--value', option, status=2), option, 'expected NAME=')
    expect(run(arguments, '--inputs', '/nonexistent.npz', status=1),
           '--inputs /nonexistent.npz')
    with tempfile.TemporaryDirectory() as directory:
        numpy.save(os.path.join(directory, 'x.npy'), x)
        expect(run(arguments, '--inputs', os.path.join(directory, 'x.npy'), status=1),
               'one array without a name; expected a file that numpy.savez wrote')
        pathlib.Path(directory, 'x.npz').write_text('text', encoding='ascii')
        expect(run(arguments, '--inputs', os.path.join(directory, 'x.npz'), status=1),
               'it is another kind of file, or broken; expected a file that')
    expect(run(arguments, '--value', 'index=0', status=1, device='gpu'),
           'cannot open a session with Tandem: option device has the value "gpu": '
           'there is no device "gpu": no plugin',
           '; expected auto, cpu')


if __name__ == '__main__':
    sys.exit(child_cases.main('run_inputs', __doc__))
