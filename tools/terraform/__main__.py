"""`python -m tools.terraform`: see `checks`."""

import sys

from tools.terraform.checks import main

sys.exit(main())
