"""``python -m handgrad``: the command line."""

from handgrad.cli import main

main()
