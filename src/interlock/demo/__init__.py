"""The demo: the medallion example on a throw-away embedded controller, with time that passes faster.

Everything is real (threads, processes, the store, the files) but the feeds, which are made up, and the clock. Nothing
else in the program knows of the demo.
"""
