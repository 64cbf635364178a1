# SPDX-License-Identifier: Apache-2.0
"""How the commands report errors."""

import sys


def fail(message):
    """Ends the program with a message and the exit status 1."""
    sys.exit(f"onnxruntime_ep_tandem: {message}")
