"""From what people write to the model: documents, aliases, archetypes, calendars, and every error of them at once.

`loader` reads files and folders, `stored` reads what a store holds; both go the same way: a document is
normalised (`aliases`), merged with its archetype (`sources`), decoded (`decode`) and checked (`semantics`).
"""
