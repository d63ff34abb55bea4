"""`python -m jobcast` is the command line."""

from jobcast.pipelines.cli.main import main

if __name__ == "__main__":
    main()
