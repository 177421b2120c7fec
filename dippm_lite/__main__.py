"""``python -m dippm_lite``: the same as the ``dippm-lite`` script."""

from dippm_lite.cli import run

if __name__ == "__main__":
    run()
