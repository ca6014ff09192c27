"""Concepts of a result: the facts of one, their lives, and the atlas that the page shows of them.

`arrays` reads the facts (`facts`) of a concept, which cards write on the page (`cards`) and, in
`ontogeny.atlas`, in notebooks and on terminals. `nodes` finds the nodes with concepts, and `atlas`
packs them.
"""
