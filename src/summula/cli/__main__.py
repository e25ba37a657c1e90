"""`python -m summula.cli` is the command `summula`."""

from summula.cli.entry import main

if __name__ == "__main__":
    main()
