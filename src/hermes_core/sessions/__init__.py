"""Sessions and lineages: titles, references, exports, and the store as the seeds know it."""
