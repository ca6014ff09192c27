"""Which module of the package imports which, read from the sources without importing them."""

import ast


def modules(source):
    """Return ``{module: path}`` of every module under `source`."""
    found = {}
    for path in sorted(source.rglob("*.py")):
        parts = path.relative_to(source).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def import_graph(source):
    """Return ``{module: modules that it imports}``.

    Imports count wherever they stand: also in functions, and for types only. Whoever imports a
    module imports the packages around it as well, but for those that are around both.
    """
    known = modules(source)
    return {module: _imports(module, path, known) for module, path in known.items()}


def _imports(module, path, known):
    found = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = _base(module, path, node)
            # Imports in functions of what has moved away fail first where a user runs them.
            assert base in known or base.split(".")[0] not in known, (
                f"{module}: no {base}"
            )
            found.update(f"{base}.{alias.name}" for alias in node.names)
            found.add(base)
    around = set(_with_packages(module))
    return {
        m
        for name in found
        for m in _with_packages(name)
        if m in known and m not in around
    }


def _base(module, path, node):
    if not node.level:
        return node.module or ""
    package = (
        module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    )
    package = package[: len(package) - node.level + 1]
    return ".".join([*package, *([node.module] if node.module else [])])


def _with_packages(name):
    parts = name.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def between_parts(graph):
    """Return ``{package: {part: parts that it imports}}``; a part is a module or a sub-package."""
    packages = {}
    for module, imported in graph.items():
        for other in imported:
            package, one, two = _parting(module, other)
            if one and two:
                packages.setdefault(package, {}).setdefault(one, set()).add(two)
    return packages


def _parting(module, other):
    """Return the package around both, and the parts of it that they lie in."""
    one, two = module.split("."), other.split(".")
    shared = 0
    while shared < min(len(one), len(two)) and one[shared] == two[shared]:
        shared += 1
    names = [
        ".".join(parts[: shared + 1]) if len(parts) > shared else ""
        for parts in (one, two)
    ]
    return ".".join(one[:shared]), *names


def circles(graph):
    """Return the sets of modules that import each other, however indirectly."""
    reached = {module: _reachable(module, graph) for module in graph}
    groups = {
        frozenset(
            other for other in reached[module] if module in reached.get(other, ())
        )
        for module in graph
    }
    return {group for group in groups if len(group) > 1}


def _reachable(module, graph):
    seen, waiting = set(), [module]
    while waiting:
        for other in graph.get(waiting.pop(), ()):
            if other not in seen:
                seen.add(other)
                waiting.append(other)
    return seen
