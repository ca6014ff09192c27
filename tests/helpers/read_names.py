"""Where code takes apart what a value is called, or compares it with English."""

import ast

READS = {
    "startswith",
    "endswith",
    "find",
    "index",
    "count",
    "partition",
    "rpartition",
    "split",
}
# What a value is called, in English: its parts are no fields, and nothing is decided by them.
CALLED = {
    "units",
    "label",
    "title",
    "words",
    "quantity",
    "measure",
    "long_name",
    "caption",
    "message",
}
REWRITES = {"replace", "removeprefix", "removesuffix", "rsplit", "lower", "casefold"}
APART = "·"  # between the parts of a row's label


def is_called(node):
    """Whether an expression is what a value is called."""
    if isinstance(node, ast.Attribute):
        return node.attr in CALLED
    if isinstance(node, ast.Name):
        return node.id in CALLED
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant) and node.slice.value in CALLED
    if not isinstance(node, ast.Call) or not node.args:
        return False
    if isinstance(node.func, ast.Attribute) and node.func.attr == "get":
        return any(text in CALLED for text in constants(node.args[0]))
    is_text = ast.unparse(node.func) in ("str", "plain_text")
    return is_text and is_called(node.args[0])


def constants(node):
    """The texts that an expression is, or lists."""
    parts = node.elts if isinstance(node, ast.Tuple | ast.List | ast.Set) else [node]
    return [
        part.value
        for part in parts
        if isinstance(part, ast.Constant) and isinstance(part.value, str)
    ]


def reads_a_name(node):
    """Whether an expression takes a name apart, changes it, or compares it with English."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        given = [text.strip() for each in node.args for text in constants(each)]
        is_read = node.func.attr in READS | REWRITES
        return is_read and (is_called(node.func.value) or APART in given)
    if not isinstance(node, ast.Compare):
        return False
    sides = [node.left, *node.comparators]
    texts = [text.strip() for side in sides for text in constants(side)]
    is_in = any(isinstance(op, ast.In | ast.NotIn) for op in node.ops)
    if is_in and any(map(is_called, node.comparators)):
        return True
    # That there are no units is no English.
    is_of_name = bool({*texts} - {"", "1"}) and any(map(is_called, sides))
    return is_of_name or any(" " in text for text in texts)
