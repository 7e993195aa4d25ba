"""The store's file: connections, the one writer, groups of commits, the store port on it, copies and checks."""
