"""The referee: checks from outside that the certificates of `maxmargin` are true. See README.md."""

import os

# One thread a process, because cases run side by side. It must be said before numpy is imported.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")
