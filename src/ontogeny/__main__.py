"""``python -m ontogeny`` is the command ``ontogeny``."""

from .cli import main

if __name__ == "__main__":
    main()
