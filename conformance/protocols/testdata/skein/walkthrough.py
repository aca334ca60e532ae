"""Plays walkthrough.txt. Arguments: address, certificate, key."""
import doctest
import os
import sys

import skein

here = os.path.dirname(os.path.abspath(__file__))
app = skein.ApplicationClient(*sys.argv[1:])
failed, tried = doctest.testfile(os.path.join(here, "walkthrough.txt"), module_relative=False, globs={"app": app},
                                 optionflags=doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS | doctest.FAIL_FAST)
app.close()
sys.exit(1 if failed or tried < 100 else 0)
