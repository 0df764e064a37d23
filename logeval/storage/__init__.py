"""Tables on disk: schemas, checked reading, manifests, atomic writing, locks."""
