"""The nouns: frozen values, enums, periods, keys, errors. No I/O, no clock, no decisions."""
