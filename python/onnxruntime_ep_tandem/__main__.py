# SPDX-License-Identifier: Apache-2.0
"""The commands of the package: python -m onnxruntime_ep_tandem COMMAND."""

import argparse
import importlib.metadata
import os
import re
import subprocess
import sys

from . import errors, files

PROGRAM = "python -m onnxruntime_ep_tandem"
# The commands that cl-probe runs, with its options and what --help says.
PROBE_COMMANDS = {
    "devices": ([], "list the devices, and the next step (default)"),
    "doctor": (["--doctor"], "check what often goes wrong, and say what to do"),
    "calibrate": (["--calibrate"], "measure the devices of this machine, which takes "
                                   "about a minute a device, or less with --quick"),
    "verify": (["--verify"], "check every operator on every device"),
}


NEXT_STEP = f"\nRun a model:\n  {PROGRAM} run MODEL.onnx"


def run_cl_probe(arguments=None, last_line=None):
    """Replaces this process by cl-probe, by default with the same arguments.

    last_line: printed after it on stderr, in a process that stays."""
    try:
        program = str(files.cl_probe())
        files.use_opencl_loader()
        files.choose_openblas_kernels(child=True)
        command = [program, *(sys.argv[1:] if arguments is None else arguments)]
        if last_line is None:
            os.execv(program, command)
        status = subprocess.run(command, check=False).returncode
        if status == 0:
            print(last_line, file=sys.stderr)
        sys.exit(status)
    except KeyboardInterrupt:
        sys.exit(130)
    except OSError as error:
        errors.fail(f"cannot run cl-probe: {error}")


def print_probe_help(name):
    """Prints the parts of cl-probe's help that are about the command."""
    option = PROBE_COMMANDS[name][0][0]
    try:
        files.use_opencl_loader()
        text = subprocess.run([str(files.cl_probe()), "--help"], text=True, check=True,
                              stdout=subprocess.PIPE).stdout
    except (OSError, subprocess.CalledProcessError) as error:
        errors.fail(f"cannot run cl-probe: {error}")
    others = re.findall("cl-probe (--[a-z-]+)", text)
    usage = re.search(f"cl-probe {option}(.*)", text)[1]
    print(f"usage: {PROGRAM} {name}{usage}\n\n{PROBE_COMMANDS[name][1]}\n")
    for entry in re.findall(r"^  -.*(?:\n {4,}.*)*", text, re.MULTILINE):
        only_with = re.search("with (--[^:]*):", entry)
        if option in only_with[1] if only_with else entry.split()[0] not in others:
            print(re.sub("with --[^:]*: +", "", entry))


def version():
    try:
        return importlib.metadata.version("onnxruntime-ep-tandem")
    except importlib.metadata.PackageNotFoundError:
        return "(not installed)"


def parse_arguments(arguments):
    parser = argparse.ArgumentParser(
        prog=PROGRAM, allow_abbrev=False,
        description="Lists and measures the devices that Tandem can use, and runs ONNX "
                    "models on them.")
    parser.add_argument("--version", action="version",
                        version=f"onnxruntime-ep-tandem {version()}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    for name, (_, text) in PROBE_COMMANDS.items():
        # cl-probe parses the options, --help too.
        commands.add_parser(name, help=text, add_help=False)
    texts = {
        "explain": "say where an ONNX model's operators run, and why",
        "run": "run an ONNX model, and compare it with ONNX Runtime's CPU provider",
    }
    if arguments[0] in texts:
        from . import run  # needs numpy and onnxruntime
        add = {"explain": run.add_model_arguments, "run": run.add_run_arguments}
        for name, text in texts.items():
            command = commands.add_parser(
                name, help=text, allow_abbrev=False,
                description=run.__doc__ if name == "run" else text)
            add[name](command)
            command.set_defaults(function=getattr(run, name))
    else:
        for name, text in texts.items():
            commands.add_parser(name, help=text)
    if arguments[0].endswith(".onnx"):
        parser.error(f"the command is missing: {PROGRAM} run {arguments[0]}")
    return parser.parse_args(arguments)


def main():
    arguments = sys.argv[1:] or ["devices"]
    if arguments[0] in ("doctor", "calibrate", "verify") and (
            {"-h", "--help"} & set(arguments[1:])):
        print_probe_help(arguments[0])
        return
    if arguments[0] in PROBE_COMMANDS:
        leads_on = arguments in (["devices"], ["calibrate"], ["calibrate", "--quick"])
        run_cl_probe([*PROBE_COMMANDS[arguments[0]][0], *arguments[1:]],
                     NEXT_STEP if leads_on else None)
    parsed = parse_arguments(arguments)
    parsed.function(parsed)


if __name__ == "__main__":
    main()
