"""A stranger's package plugs in as the papers do: kinds, models, names and verbs."""

import pytest

from helpers import warm_process
from helpers.paths import environment

PACKAGE = '''
"""A package of somebody else."""

PUBLIC = {"geometry": {"sizes": ["largest_entry"]}}
'''
SIZES = '''
from dataclasses import dataclass
from typing import ClassVar

from ontogeny import needs
from ontogeny.observables import Observable, by_layer


def largest_entry(A):
    """Return the largest absolute entry."""
    return abs(A).max()


@dataclass(frozen=True)
class LargestActivation(Observable):
    """The largest activation of each layer."""

    layers: str = "mlp"
    kind: ClassVar[str] = "largest-activation"
    question: ClassVar[str] = "How large does an activation get?"
    variables: ClassVar = {"largest": ("largest activation", "activation units")}

    def needs(self):
        return [needs.Activations(self.layers)]

    def observe(self, reading, state):
        values = reading[self.needs()[0]]
        return by_layer(values, lambda path, a: {"largest": a.abs().max()})


def greet(name: str) -> None:
    """Greet somebody."""
    print(f"hello {name}")
'''
ENTRY_POINTS = """
[ontogeny.names]
stranger = stranger
[ontogeny.observables]
largest-activation = stranger.sizes:LargestActivation
[ontogeny.commands]
greet = stranger.sizes:greet
damaged = stranger.nowhere:verb
"""


@pytest.fixture
def installed(tmp_path):
    """A folder on the path with the package, as pip would leave it."""
    (tmp_path / "stranger").mkdir()
    (tmp_path / "stranger" / "__init__.py").write_text(PACKAGE)
    (tmp_path / "stranger" / "sizes.py").write_text(SIZES)
    info = tmp_path / "stranger-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(
        "Metadata-Version: 2.1\nName: stranger\nVersion: 1.0\n"
    )
    (info / "entry_points.txt").write_text(ENTRY_POINTS)
    return tmp_path


def run(folder, *arguments):
    env = environment()
    env["PYTHONPATH"] = f"{folder}:{env['PYTHONPATH']}"
    return warm_process.run(arguments, env=env, cwd=folder)


def test_names_and_kinds_of_a_package_answer(installed):
    code = (
        "import numpy as np, ontogeny as og\n"
        "print(og.geometry.largest_entry(np.array([1.0, -3.0])))\n"
        "print(og.observables.make('largest-activation', layers='attn').arguments())\n"
        "print('largest_entry' in og.geometry.__all__)"
    )
    done = run(installed, "-c", code)
    assert done.stdout.splitlines() == [
        "3.0",
        "{'label': None, 'layers': 'attn'}",
        "False",
    ]


@pytest.mark.slow
def test_the_catalogue_shows_its_kind(installed):
    done = run(installed, "-m", "ontogeny", "list", "observables")
    assert done.stdout.count("largest-activation") == 1
    assert "How large does an activation get?" in " ".join(done.stdout.split())
    assert (
        "largest activation of each layer"
        in run(installed, "-m", "ontogeny", "help", "largest-activation").stdout.lower()
    )


@pytest.mark.slow
def test_a_verb_works_and_a_damaged_one_says_why(installed):
    assert run(installed, "-m", "ontogeny", "greet", "you").stdout == "hello you\n"
    done = run(installed, "-m", "ontogeny", "damaged")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr == (
        "ontogeny: the verb damaged of stranger.nowhere:verb cannot be loaded: "
        "ModuleNotFoundError: No module named 'stranger.nowhere'. Install its package anew, or "
        "remove it.\n"
    )
    assert "greet" in run(installed, "-m", "ontogeny", "--help").stdout


@pytest.mark.slow
def test_a_kind_made_for_another_version_is_named_and_all_others_work(installed):
    sizes = installed / "stranger" / "sizes.py"
    sizes.write_text("from ontogeny.observables.gone import Reading\n" + SIZES)
    said = (
        "ontogeny: the observable largest-activation of stranger.sizes:LargestActivation cannot be "
        "loaded: ModuleNotFoundError: No module named 'ontogeny.observables.gone'. Install its "
        "package anew, or remove it.\n"
    )
    # No list without it is stored, which would hide what installing mends.
    for _ in range(2):
        done = run(installed, "-m", "ontogeny", "list", "observables")
        assert done.returncode == 0 and done.stderr == said
        assert "  loss: " in done.stdout and "largest-activation" not in done.stdout
    assert run(installed, "-m", "ontogeny", "help", "loss").stdout.startswith("loss: ")
    asked = run(installed, "-m", "ontogeny", "help", "largest-activation")
    assert asked.returncode == 1 and asked.stderr.startswith(said)
    code = "import ontogeny as og; og.observables.make('largest-activation')"
    assert said[len("ontogeny: ") :] in run(installed, "-c", code).stderr


def test_names_and_losses_of_a_damaged_package_leave_all_others(installed):
    (installed / "stranger" / "__init__.py").write_text("import nothing_of_this_name")
    info = installed / "stranger-1.0.dist-info" / "entry_points.txt"
    info.write_text(ENTRY_POINTS + "[ontogeny.losses]\nodd = stranger:loss\n")
    code = (
        "import ontogeny as og, torch\n"
        "from ontogeny.capture.objectives import make_loss\n"
        "print(og.observables.WeightNorms.kind)\n"
        "texts, model = og.Inputs.from_tokens([[1, 2]]), torch.nn.Linear(1, 1)\n"
        "make_loss(model, texts, og.needs.Gradients('none'))\n"
        "print('all others')\n"
        "make_loss(model, texts, og.needs.Gradients('odd'))"
    )
    done = run(installed, "-c", code)
    assert done.stdout.splitlines() == ["weight-norms", "all others"]
    assert (
        "the package stranger of stranger cannot be loaded: ModuleNotFoundError"
        in done.stderr
    )
    assert "the loss odd of stranger:loss cannot be loaded: Mod" in done.stderr
