"""``python -m specdec <stage>``."""

from specdec.cli import main

main()
