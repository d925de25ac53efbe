import signal

import pytest


@pytest.fixture
def ctrl_c():
    """Let Ctrl-C interrupt this process, also in the background of a shell, where processes ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
