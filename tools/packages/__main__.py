"""`python -m tools.packages`."""

import sys

from tools.packages.build import main

sys.exit(main())
