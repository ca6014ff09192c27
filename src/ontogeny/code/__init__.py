"""Which code numbers follow from: of a class, all that it can reach, as digests by rooms.

`reach` follows names through the syntax trees of files, `modules` says where an import leads,
`definitions` reads one file, and `kept` keeps what was read.
"""
