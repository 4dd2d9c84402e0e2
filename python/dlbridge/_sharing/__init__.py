"""Memory that several processes look at. handle.py has what users call; the rest is below it:

segments.py  host memory by its descriptor: opening another process's, mapping it, making new memory
loans.py     memory of GPUs, kept for who has borrowed it; allocations.py has the driver's handles for it
returns.py   how what was borrowed goes back
mappings.py  which descriptor the memory of an array belongs to, if to any
layouts.py   an array as a place in a segment, checked when it is made an array again
messages.py  descriptors that are on their way to another process
"""
