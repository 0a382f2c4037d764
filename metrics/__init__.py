"""What the shop counts and times of itself; below every other package, so that each may count.

Processes of one host write what they count into files of one directory, and any of them can add them up. The
directory has to be known before the client library is imported, hence here.
"""

from metrics.directory import choose_directory

choose_directory()
